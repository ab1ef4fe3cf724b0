//! Decisions about connections. A deny beats all other rules, then the closest rule decides; without one, the default.

use super::{Effect, Place, SmallestChange, Verdict};
use crate::{Action, Authority, Host, NetworkDefault, NetworkRule, ResolvedPolicy, Scope, Tier, scope};

impl ResolvedPolicy {
    pub(super) fn decide_connection(&self, host: &Host, port: u16, tier: Tier) -> Verdict {
        if host.is_loopback() {
            return self.decide_loopback(port, tier);
        }
        if self.network.default == NetworkDefault::None {
            return Verdict::deny(Place::Absent, "there is no network")
                .unless(SmallestChange::Add { section: "network", line: "default = \"deny\"".to_owned() });
        }
        match self.network.rule_for(host, port) {
            Some(rule) => by_rule(rule),
            None => self.by_default(host, port),
        }
    }

    /// Loopback is the sandbox's own, except for the host's ports that a rule names.
    fn decide_loopback(&self, port: u16, tier: Tier) -> Verdict {
        let off = self.network.default == NetworkDefault::None;
        if !off && self.network.local.reach.iter().any(|reach| reach.port.get() == port) {
            return Verdict::allow(Place::Host, "a rule lets it reach this port of the machine");
        }
        match tier {
            Tier::Full => Verdict::allow(Place::Private, "loopback is the sandbox's own"),
            Tier::Landlock => Verdict::deny(Place::Absent, "without namespaces loopback is the machine's"),
        }
    }

    fn by_default(&self, host: &Host, port: u16) -> Verdict {
        let target = Authority { host: host.clone(), port: Some(port) }.to_string();
        if matches!(host, Host::Address(address) if scope(*address) != Scope::Public) {
            return Verdict::deny(Place::Absent, "an address that is not public needs a rule that names it")
                .unless_allowed(&target);
        }
        match self.network.default {
            NetworkDefault::None | NetworkDefault::Deny => {
                Verdict::deny(Place::Absent, "no rule allows the host").unless_allowed(&target)
            }
            NetworkDefault::Ask => {
                Verdict::new(Effect::Ask, Place::Host, "no rule names the host, so it asks")
            }
            NetworkDefault::Allow => {
                Verdict::allow(Place::Host, "no rule names the host, and the default allows")
            }
        }
    }
}

fn by_rule(rule: &NetworkRule) -> Verdict {
    let verdict = match rule.action {
        Action::Deny => Verdict::deny(Place::Absent, "a deny rule names the host")
            .unless(SmallestChange::Remove(rule.origin.clone())),
        Action::Ask => Verdict::new(Effect::Ask, Place::Host, "a rule says to ask about the host"),
        Action::Inspect => Verdict::allow(Place::Host, "a rule allows the host and looks inside"),
        Action::Allow => Verdict::allow(Place::Host, "a rule allows the host"),
    };
    verdict.by(&rule.origin)
}
