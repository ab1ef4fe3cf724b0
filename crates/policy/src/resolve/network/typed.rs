//! What `--allow` says: a list of hosts, and presets that came to some.

use std::num::NonZeroU16;

use super::{Merge, rule, split_port, web_ports};
use crate::{
    Action, HostPattern, InvalidHost, Network, NetworkDefault, NetworkRule, Notice, NoticeKind, Origin,
    PolicyError, Preset, Reach,
};

const FLAG: &str = "--allow";

impl Merge<'_> {
    pub(super) fn merge_typed_hosts(&mut self, merged: &mut Network) -> Result<(), PolicyError> {
        for text in &self.typed.allow {
            has_network(text, merged.default)?;
            for item in text.split(',') {
                merge_host(item, text, merged)?;
            }
        }
        for preset in &self.typed.presets {
            has_network(&preset.name, merged.default)?;
            self.merge_preset(preset, merged);
        }
        Ok(())
    }

    /// A preset's hosts are rules as if each had been typed; the user is told which, since nobody typed them.
    fn merge_preset(&mut self, preset: &Preset, merged: &mut Network) {
        let origin = Origin::typed(FLAG, &preset.name);
        for endpoint in &preset.endpoints {
            let place = match endpoint.reaches() {
                Some(reaches) => {
                    add_reaches(merged, &reaches);
                    format!("a port of this machine: {endpoint}")
                }
                None => {
                    let ports = endpoint.ports.clone();
                    let rule = rule(endpoint.host.clone(), ports, Action::Inspect, origin.clone());
                    merged.rules.push(NetworkRule { private: endpoint.private, ..rule });
                    endpoint.to_string()
                }
            };
            self.notice_preset(preset, &place, &origin);
        }
        for note in &preset.notes {
            self.notice_preset(preset, note, &origin);
        }
    }

    fn notice_preset(&mut self, preset: &Preset, what: &str, origin: &Origin) {
        self.notices.push(Notice {
            kind: NoticeKind::Preset,
            message: format!("{} → {what}", preset.name),
            hint: None,
            origin: Some(origin.clone()),
        });
    }
}

fn add_reaches(merged: &mut Network, reaches: &[Reach]) {
    let new = reaches.iter().filter(|reach| !merged.local.reach.contains(reach));
    let new: Vec<_> = new.copied().collect();
    merged.local.reach.extend(new);
}

fn refuse(typed: &str, problem: impl Into<String>, hint: &str) -> PolicyError {
    PolicyError::Typed {
        flag: FLAG.to_owned(),
        value: typed.to_owned(),
        problem: problem.into(),
        hint: hint.to_owned(),
    }
}

fn has_network(typed: &str, default: NetworkDefault) -> Result<(), PolicyError> {
    match default {
        NetworkDefault::None => Err(refuse(typed, "there is no network to allow it on", "add --net deny")),
        _ => Ok(()),
    }
}

/// One host of a list. A port of this machine is one to reach.
fn merge_host(item: &str, typed: &str, merged: &mut Network) -> Result<(), PolicyError> {
    let (host, port) = split_port(item);
    let host: HostPattern = host.parse().map_err(|error: InvalidHost| {
        refuse(typed, error.problem, "--allow example.com or --allow example.com:8443")
    })?;
    let number = |port: &str| {
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| port.parse::<NonZeroU16>().ok()).flatten()
    };
    let bad_port = || refuse(typed, "the port is no number from 1 to 65535", "--allow example.com:443");
    let port = port.map(|port| number(port).ok_or_else(bad_port)).transpose()?;
    if host.only_host().is_some_and(|host| host.is_loopback()) {
        let port = port.ok_or_else(|| {
            refuse(typed, "a port of this machine is reached one by one", "--allow localhost:5432")
        })?;
        add_reaches(merged, &[Reach { port }]);
        return Ok(());
    }
    let ports = port.map_or_else(web_ports, |port| vec![port]);
    merged.rules.push(rule(host, ports, Action::Inspect, Origin::typed(FLAG, item)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Machine;
    use crate::{CommandLine, Effect, Endpoint, Place, ResolvedPolicy, Tier};

    fn connect(policy: &ResolvedPolicy, host: &str, port: u16) -> (Effect, Place) {
        let verdict = policy.connection(&host.parse().unwrap(), port, Tier::Full).verdict;
        (verdict.effect, verdict.place)
    }

    #[test]
    fn a_list_of_hosts_is_typed_with_commas() {
        let typed = |text: &str| CommandLine { allow: vec![text.to_owned()], ..CommandLine::default() };
        let list = "github.com,*.githubusercontent.com,db.example:5432,localhost:6379,[2001:db8::1]:22";
        let policy = Machine::with(&[]).resolve(&[], &typed(list));
        for (host, port) in [
            ("github.com", 443),
            ("github.com", 80),
            ("raw.githubusercontent.com", 443),
            ("db.example", 5432),
            ("2001:db8::1", 22),
            ("localhost", 6379),
        ] {
            assert_eq!(connect(&policy, host, port), (Effect::Allow, Place::Host), "{host}:{port}");
        }
        for (host, port) in [("a.github.com", 443), ("githubusercontent.com", 443), ("db.example", 443)] {
            assert_eq!(connect(&policy, host, port).0, Effect::Deny, "{host}:{port}");
        }
        for bad in
            ["", "a.com,", ",a.com", "a.com, b.com", "a.com:0", "a.com:+1", "localhost", "a b", "a.com:"]
        {
            assert!(Machine::with(&[]).try_resolve(&[], &typed(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_preset_is_what_it_came_to_and_says_so() {
        let endpoint = |host: &str, port, private| Endpoint {
            host: host.parse().unwrap(),
            ports: vec![NonZeroU16::new(port).unwrap()],
            from: "the tool's configuration".to_owned(),
            private,
        };
        let preset = Preset {
            name: "tool".to_owned(),
            endpoints: vec![endpoint("registry.example", 8443, true), endpoint("127.0.0.1", 4873, true)],
            variables: vec![("TOOL_INDEX".to_owned(), "https://registry.example:8443/".to_owned())],
            notes: vec!["what else".to_owned()],
        };
        let typed = CommandLine { presets: vec![preset], ..CommandLine::default() };
        let policy = Machine::with(&[]).resolve(&[], &typed);
        assert_eq!(connect(&policy, "registry.example", 8443), (Effect::Allow, Place::Host));
        assert_eq!(connect(&policy, "registry.example", 443).0, Effect::Deny);
        assert_eq!(connect(&policy, "localhost", 4873), (Effect::Allow, Place::Host));
        assert!(policy.network.rules[0].private);
        let told: Vec<_> = policy.notices.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(
            told,
            [
                "tool → registry.example on port 8443 (the tool's configuration)",
                "tool → a port of this machine: 127.0.0.1 on port 4873 (the tool's configuration)",
                "tool → what else",
            ]
        );
        let set = policy.environment.value_of("TOOL_INDEX".as_ref()).unwrap();
        assert_eq!(set.value, "https://registry.example:8443/");
        let none = CommandLine { net: Some(NetworkDefault::None), ..typed };
        assert!(Machine::with(&[]).try_resolve(&[], &none).is_err());
    }
}
