//! What a person sees when a policy is refused.

use insta::assert_snapshot;

use crate::testbed::{Machine, project, system, user};
use crate::{CommandLine, Layer, MAX_FILE, NetworkDefault, Source, Workspace};

fn machine() -> Machine {
    Machine::with(&[]).file("/home/u/.config/redoma/a.toml", "extends = \"./b.toml\"", true).file(
        "/home/u/.config/redoma/b.toml",
        "extends = \"./../redoma/a.toml\"",
        true,
    )
}

fn refused(source: Source) -> String {
    machine().try_resolve(&[source], &CommandLine::default()).unwrap_err().render(false)
}

fn typed(typed: &CommandLine) -> String {
    machine().try_resolve(&[], typed).unwrap_err().render(false)
}

#[test]
fn a_misspelt_key_is_shown_with_the_right_one() {
    assert_snapshot!(refused(user("[filesystem]\nread = []\ndenny = [\"~/.ssh\"]\n")));
    assert_snapshot!(refused(user("[filesytem]\n")));
    assert_snapshot!(refused(user("[network]\nzebra = 1\n")));
}

#[test]
fn a_misspelt_default_is_never_allow() {
    assert_snapshot!(refused(user("[network]\ndefault = \"alow\"\n")));
}

#[test]
fn a_wrong_value_is_shown_where_it_stands() {
    assert_snapshot!(refused(user("[filesystem]\nread = \"~/x\"\n")));
    assert_snapshot!(refused(user("[limits]\nmemory = \"1 Gigabyte\"\n")));
    assert_snapshot!(refused(user("[[network.rule]]\nhost = \"a b.com\"\naction = \"allow\"\n")));
    assert_snapshot!(refused(user("[[network.rule]]\nhost = \"a.com\"\nports = [0]\naction = \"allow\"\n")));
    assert_snapshot!(refused(user("[filesystem]\nread = []\nread = []\n")));
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert_snapshot!(refused(user(
        "[[network.rule]]\nhost = \"a.com\"\naction = \"allow\"\npinned = \"opaque\"\n"
    )));
    assert_snapshot!(refused(user("[filesystem]\nworkspace = \"overlay\"\nundo = true\n")));
    assert_snapshot!(refused(user("[network]\ndefault = \"none\"\n[network.local]\npublish = [\"3000\"]\n")));
    assert_snapshot!(refused(project(true, "[ceiling]\nwrite = [\".\"]\n")));
    assert_snapshot!(refused(user("[secrets.KEY]\nfrom = \"file\"\nhosts = [\"a.com\"]\n")));
}

#[test]
fn a_rule_says_only_what_its_action_can_hold() {
    let rule = |action: &str, key: &str| {
        let text = format!("[[network.rule]]\nhost = \"a.com\"\naction = \"{action}\"\n{key}\n");
        machine().try_resolve(&[user(&text)], &CommandLine::default()).map_err(|error| error.to_string())
    };
    let inside = [
        "methods = [\"GET\"]",
        "paths = [\"/\"]",
        "max_upload = \"1B\"",
        "pinned = \"block\"",
        "protocol = \"http\"",
    ];
    let opening = ["protocol = \"tls\"", "max_upload_session = \"1B\"", "rate = \"1/s\"", "private = true"];
    for (action, refused) in [
        ("inspect", vec![]),
        ("allow", inside.to_vec()),
        ("ask", inside.to_vec()),
        ("deny", [&inside[..], &opening[..]].concat()),
    ] {
        for key in inside.iter().chain(&opening) {
            assert_eq!(rule(action, key).is_err(), refused.contains(key), "{action} {key}");
        }
    }
    for key in [
        "paths = [\"v1\"]",
        "paths = [\"/a%20b\"]",
        "paths = [\"/{a\"]",
        "methods = [\"get\"]",
        "rate = \"1\"",
    ] {
        assert!(rule("inspect", key).is_err(), "{key}");
    }
}

#[test]
fn a_secret_is_put_in_one_place() {
    let secret = |place: &str| {
        let text = format!("[secrets.KEY]\nfrom = \"env\"\nhosts = [\"a.com\"]\n{place}\n");
        machine().try_resolve(&[user(&text)], &CommandLine::default()).is_ok()
    };
    for place in [
        "",
        "header = \"X-Api-Key\"",
        "query = \"key\"",
        "basic = \"me\"",
        "basic = \"*\"",
        "aws = {}",
        "aws = { access_key_id = \"MY_ID\" }",
    ] {
        assert!(secret(place), "{place}");
    }
    for place in [
        "header = \"x\"\nquery = \"key\"",
        "basic = \"me\"\naws = {}",
        "header = \"a b\"",
        "query = \"a&b\"",
        "query = \"\"",
        "basic = \"a:b\"",
        "aws = { access_key_id = \"1\" }",
        "aws = { region = \"x\" }",
    ] {
        assert!(!secret(place), "{place}");
    }
}

#[test]
fn a_secret_that_nothing_could_use_is_noticed() {
    let text = "[secrets.KEY]\nfrom = \"env\"\nhosts = [\"a.com\", \"b.com,*.b.com\"]\n[[network.rule]]\nhost = \"a.com\"\naction = \"inspect\"\n";
    let policy = machine().resolve(&[user(text)], &CommandLine::default());
    let hints: Vec<_> = policy.notices.iter().filter_map(|notice| notice.hint.as_deref()).collect();
    assert_eq!(hints, ["redoma allow 'b.com,*.b.com'"]);
    let verdict = policy.decide(&crate::Question::Env("KEY"), crate::Tier::Full);
    assert_eq!((verdict.effect, verdict.place), (crate::Effect::Allow, crate::Place::Private));
}

#[test]
fn a_path_that_means_nothing_is_refused() {
    assert_snapshot!(refused(user("[filesystem]\nread = [\"${NOWHERE}/x\"]\n")));
    assert_snapshot!(refused(user("[filesystem]\nwrite = [\"src/*.rs\"]\n")));
    assert_snapshot!(refused(user("[filesystem]\ndeny = [\"**/{a,b\"]\n")));
    assert_snapshot!(refused(user("[filesystem]\ndeny = [\"!~/.ssh\"]\n")));
    assert_snapshot!(refused(user("[filesystem]\nread = [\"/\"]\n")));
    assert_snapshot!(refused(user("[filesystem]\nread = [\"~root/x\"]\n")));
}

#[test]
fn extends_that_leads_nowhere_or_back_is_refused() {
    assert_snapshot!(refused(user("extends = \"defualt\"\n")));
    assert_snapshot!(refused(user("extends = \"./missing.toml\"\n")));
    assert_snapshot!(refused(user("extends = \"./a.toml\"\n")));
}

#[test]
fn a_chain_of_extends_has_an_end() {
    let mut machine = Machine::with(&[]);
    for at in 0..20 {
        let text = format!("extends = \"./{}.toml\"", at + 1);
        machine = machine.file(&format!("/home/u/.config/redoma/{at}.toml"), &text, true);
    }
    let error = machine.try_resolve(&[user("extends = \"./0.toml\"")], &CommandLine::default()).unwrap_err();
    assert_snapshot!(error.render(false));
}

#[test]
fn files_that_are_no_policies_are_refused_before_they_are_parsed() {
    let bytes = |text: Vec<u8>| Source {
        layer: Layer::Project,
        path: Some("redoma.toml".into()),
        text,
        trusted: true,
    };
    assert_snapshot!(refused(bytes(vec![b'#'; 10_000_000])));
    assert!(machine().try_resolve(&[bytes(vec![b'#'; MAX_FILE])], &CommandLine::default()).is_ok());
    assert_snapshot!(refused(bytes(b"# caf\xe9\n".to_vec())));
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(machine().try_resolve(&[bytes(deep.into_bytes())], &CommandLine::default()).is_err());
}

#[test]
fn what_was_typed_is_named_by_its_flag() {
    let base = CommandLine::default;
    assert_snapshot!(typed(&CommandLine { read: vec!["/nowhere".into()], ..base() }));
    assert_snapshot!(typed(&CommandLine { profile: Some("strcit".into()), ..base() }));
    assert_snapshot!(typed(&CommandLine { agent: "cluade".parse().ok(), ..base() }));
    assert_snapshot!(typed(&CommandLine { allow: vec!["http://a.com".into()], ..base() }));
    let none = CommandLine { net: Some(NetworkDefault::None), allow: vec!["a.com".into()], ..base() };
    assert_snapshot!(typed(&none));
    let both = CommandLine { workspace: Some(Workspace::Overlay), undo: Some(true), ..base() };
    assert_snapshot!(typed(&both));
}

#[test]
fn a_ceiling_names_itself() {
    let typed = CommandLine { net: Some(NetworkDefault::Allow), ..CommandLine::default() };
    let bound = system("[network]\n\n[ceiling]\nnetwork = \"deny\"\n");
    assert_snapshot!(machine().try_resolve(&[bound], &typed).unwrap_err().render(false));
}
