//! What must hold for every set of rules and every host.

use proptest::prelude::*;

use super::*;
use crate::testbed::{Machine, user};
use crate::{CommandLine, HostPattern, Question};

const PORTS: [u16; 4] = [22, 80, 443, 9999];

fn policy(text: &str) -> ResolvedPolicy {
    Machine::with(&[]).resolve(&[user(text)], &CommandLine::default())
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn connect(policy: &ResolvedPolicy, name: &str, port: u16) -> Effect {
    policy.connection(&host(name), port, Tier::Full).verdict.effect
}

fn patterns() -> impl Strategy<Value = String> {
    prop_oneof![
        "([ab]\\.){0,2}c",
        "\\*\\.([ab]\\.){0,1}c",
        "([ab]\\.){0,1}c".prop_map(|name| format!("{name},*.{name}")),
        Just("198.51.100.7".to_owned()),
    ]
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    let ports = proptest::sample::subsequence(vec![22, 80, 443], 0..=2);
    let action = proptest::sample::select(vec!["allow", "inspect", "ask", "deny"]);
    let rule = (patterns(), ports, action).prop_map(|(host, ports, action)| {
        let ports = if ports.is_empty() { String::new() } else { format!("ports = {ports:?}\n") };
        format!("[[network.rule]]\nhost = \"{host}\"\naction = \"{action}\"\n{ports}")
    });
    proptest::collection::vec(rule, 0..6)
}

fn defaults() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["none", "deny", "ask", "allow"])
}

fn with(default: &str, rules: &[String]) -> ResolvedPolicy {
    // A file with rules must not say `none`; what is typed may.
    let net = match default {
        "none" => NetworkDefault::None,
        "deny" => NetworkDefault::Deny,
        "ask" => NetworkDefault::Ask,
        _ => NetworkDefault::Allow,
    };
    let typed = CommandLine { profile: Some("empty".into()), net: Some(net), ..CommandLine::default() };
    Machine::with(&[]).resolve(&[user(&rules.concat())], &typed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_matching_deny_beats_every_other_rule(
        default in defaults(), rules in rules(), name in "([ab]\\.){0,3}c", port in proptest::sample::select(&PORTS[..]),
    ) {
        let policy = with(default, &rules);
        let denied = policy.network.rules.iter().any(|rule| rule.action == Action::Deny && rule.matches(&host(&name), port));
        if denied {
            prop_assert_eq!(connect(&policy, &name, port), Effect::Deny);
        }
    }

    #[test]
    fn why_says_what_the_gateway_is_told(
        default in defaults(), rules in rules(), name in "([ab]\\.){0,3}c", port in proptest::sample::select(&PORTS[..]),
    ) {
        let policy = with(default, &rules);
        let host = host(&name);
        for tier in [Tier::Full, Tier::Landlock] {
            let verdict = policy.decide(&Question::Connect { host: &host, port }, tier);
            prop_assert_eq!(policy.connection(&host, port, tier).verdict, verdict);
        }
    }

    #[test]
    fn the_order_of_rules_decides_nothing(
        default in defaults(), rules in rules(), name in "([ab]\\.){0,3}c", port in proptest::sample::select(&PORTS[..]),
    ) {
        let turned: Vec<_> = rules.iter().rev().cloned().collect();
        prop_assert_eq!(connect(&with(default, &rules), &name, port), connect(&with(default, &turned), &name, port));
    }

    #[test]
    fn the_closest_rule_decides(
        rules in rules(), name in "([ab]\\.){0,3}c", port in proptest::sample::select(&PORTS[..]),
    ) {
        let policy = with("deny", &rules);
        let host = host(&name);
        let connection = policy.connection(&host, port, Tier::Full);
        let matching: Vec<_> = policy.network.rules.iter().filter(|rule| rule.matches(&host, port)).collect();
        prop_assert_eq!(connection.rule.is_some(), !matching.is_empty());
        let Some(rule) = connection.rule else { return Ok(()) };
        for other in matching {
            let wider = other.host != rule.host && other.host.contains(&rule.host);
            let narrower = other.host != rule.host && rule.host.contains(&other.host);
            prop_assert!(!narrower || rule.action == Action::Deny, "{:?} was closer than {:?}", other.host, rule.host);
            prop_assert!(other.action != Action::Deny || rule.action == Action::Deny);
            prop_assert!(wider || narrower || other.host == rule.host || matches!(other.host, HostPattern::Subdomains(_)|HostPattern::Tree(_)));
        }
    }

    #[test]
    fn a_name_is_resolved_exactly_when_some_port_of_it_could_be_reached(
        default in defaults(), rules in rules(), name in "([ab]\\.){0,3}c",
    ) {
        let policy = with(default, &rules);
        let reachable = PORTS.iter().any(|port| connect(&policy, &name, *port) != Effect::Deny);
        prop_assert_eq!(policy.network.could_allow(&name.parse().unwrap()), reachable);
    }

    #[test]
    fn no_name_leads_to_this_machine_or_a_near_address_by_itself(default in defaults(), rules in rules(), bits: u32) {
        let policy = with(default, &rules);
        let connection = policy.connection(&host("a.c"), 443, Tier::Full);
        let address = IpAddr::V4(bits.into());
        let reached = policy.may_resolve_to(&connection, address).is_ok();
        prop_assert_eq!(reached, scope(address) == Scope::Public);
    }
}

const NEAR: &str = r#"
    [network]
    default = "allow"
    [[network.rule]]
    host = "inside.example,*.inside.example"
    action = "inspect"
    private = true
    [[network.rule]]
    host = "plain.example"
    action = "inspect"
    [[network.rule]]
    host = "10.0.0.7"
    ports = [443]
    action = "allow"
    [[network.rule]]
    host = "10.0.0.8"
    action = "deny"
    [[network.rule]]
    host = "203.0.113.9"
    action = "deny"
    [[network.rule]]
    host = "10.0.0.9"
    action = "ask"
    [[network.rule]]
    host = "127.0.0.1"
    action = "allow"
    [[network.rule]]
    host = "169.254.169.254"
    ports = [80]
    action = "allow"
"#;

#[test]
fn a_name_leads_to_near_addresses_only_where_a_rule_says_so() {
    let policy = policy(NEAR);
    let leads = |name: &str, port, address: &str| {
        let connection = policy.connection(&host(name), port, Tier::Full);
        policy.may_resolve_to(&connection, address.parse().unwrap()).is_ok()
    };
    for (name, port, address, allowed) in [
        ("inside.example", 443, "10.1.2.3", true),
        ("a.inside.example", 443, "100.64.0.1", true),
        ("a.inside.example", 443, "fd00::1", true),
        ("a.inside.example", 443, "::ffff:10.1.2.3", true),
        ("a.inside.example", 443, "1.1.1.1", true),
        ("a.inside.example", 443, "127.0.0.1", false),
        ("a.inside.example", 443, "0.0.0.0", false),
        ("a.inside.example", 443, "169.254.169.254", false),
        ("a.inside.example", 443, "169.254.1.1", false),
        ("a.inside.example", 443, "fd00:ec2::254", false),
        ("a.inside.example", 443, "224.0.0.1", false),
        ("a.inside.example", 443, "10.0.0.8", false),
        // A port that its rule does not name is left to the default, and that says nothing of private networks.
        ("a.inside.example", 22, "10.1.2.3", false),
        ("plain.example", 443, "10.1.2.3", false),
        ("plain.example", 443, "10.0.0.7", true),
        ("plain.example", 80, "10.0.0.7", false),
        ("plain.example", 443, "10.0.0.9", false),
        ("plain.example", 443, "127.0.0.1", false),
        ("plain.example", 443, "203.0.113.9", false),
        ("plain.example", 80, "169.254.169.254", true),
        ("other.example", 443, "1.1.1.1", true),
        ("other.example", 443, "198.18.0.1", false),
    ] {
        assert_eq!(leads(name, port, address), allowed, "{name}:{port} {address}");
    }
}

#[test]
fn what_is_suggested_for_an_address_lets_it_be_dialled() {
    let text = "[[network.rule]]\nhost = \"plain.example\"\naction = \"inspect\"\n";
    let address: IpAddr = "fd00::1".parse().unwrap();
    let dial = |text: &str| {
        let policy = policy(text);
        let connection = policy.connection(&host("plain.example"), 443, Tier::Full);
        policy.may_resolve_to(&connection, address).map_err(|why| why.change(address, 443).to_string())
    };
    let command = dial(text).unwrap_err();
    let target = command.strip_prefix("redoma allow ").unwrap().trim_matches('\'').parse().unwrap();
    assert_eq!(dial(&crate::edit::allow(text, &target).unwrap()), Ok(()));
}

#[test]
fn a_closer_rule_decides_before_a_wider_one() {
    let policy = policy(
        r#"
        [[network.rule]]
        host = "example.com,*.example.com"
        action = "ask"
        [[network.rule]]
        host = "*.api.example.com"
        action = "inspect"
        [[network.rule]]
        host = "api.example.com"
        action = "allow"
        [[network.rule]]
        host = "api.example.com"
        ports = [443]
        action = "inspect"
        [[network.rule]]
        host = "*.bad.example.com"
        action = "deny"
        [[network.rule]]
        host = "good.bad.example.com"
        action = "allow"
    "#,
    );
    let action =
        |name: &str, port| policy.connection(&host(name), port, Tier::Full).rule.map(|rule| rule.action);
    assert_eq!(action("www.example.com", 443), Some(Action::Ask));
    assert_eq!(action("a.api.example.com", 443), Some(Action::Inspect));
    assert_eq!(action("api.example.com", 80), Some(Action::Allow));
    assert_eq!(action("api.example.com", 443), Some(Action::Inspect));
    assert_eq!(action("good.bad.example.com", 443), Some(Action::Deny));
    assert_eq!(action("api.example.com", 22), None);
}

#[test]
fn a_request_needs_one_of_the_closest_rules() {
    let policy = policy(
        r#"
        [[network.rule]]
        host = "example.com,*.example.com"
        action = "inspect"
        [[network.rule]]
        host = "api.example.com"
        action = "inspect"
        methods = ["GET"]
        [[network.rule]]
        host = "api.example.com"
        action = "inspect"
        methods = ["POST"]
        paths = ["/v1/**"]
    "#,
    );
    let by = |name: &str, method, target| {
        let connection = policy.connection(&host(name), 443, Tier::Full);
        connection.permits(method, target).map(|rule| rule.map(|rule| rule.origin.line.unwrap_or_default()))
    };
    assert_eq!(by("api.example.com", "GET", "/x"), Ok(Some(5)));
    assert_eq!(by("api.example.com", "POST", "/v1/x"), Ok(Some(9)));
    assert_eq!(by("api.example.com", "POST", "/x"), Err(RequestProblem::Method));
    assert_eq!(
        by("api.example.com", "PUT", "/v1/x"),
        Err(RequestProblem::Method),
        "the wider rule has no say"
    );
    assert_eq!(by("www.example.com", "PUT", "/v1/x"), Ok(Some(2)));
    assert_eq!(by("localhost", "PUT", "/v1/x"), Ok(None));
}
