//! Decisions about connections. A deny beats all other rules, then the closest rules decide; without one, the default.
//!
//! The gateway asks twice: [`ResolvedPolicy::connection`] about the name and port that a client wants, before a
//! resolver hears of it, and [`ResolvedPolicy::may_resolve_to`] about each address that the name turned out to have,
//! before that address is dialled.

use std::net::IpAddr;

use super::{Effect, Place, SmallestChange, Verdict};
use crate::{
    Action, Authority, Host, NetworkDefault, NetworkRule, RequestProblem, ResolvedPolicy, Scope, Tier, scope,
};

/// What was decided about a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection<'a> {
    /// Yes, no, or a person decides; and why.
    pub verdict: Verdict,
    /// The rule that decided; `None` is the default, or loopback.
    pub rule: Option<&'a NetworkRule>,
    /// That rule and those that name host and port as closely: a request needs one that permits it.
    pub(super) alike: Vec<&'a NetworkRule>,
    port: u16,
}

/// Why an address is not dialled, though the name that led to it may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable<'a> {
    /// It is not on the internet, and nothing says that the name may lead there.
    Scope(Scope),
    /// A rule denies the address itself.
    Denied(&'a NetworkRule),
}

impl ResolvedPolicy {
    /// Decides about a connection, as [`ResolvedPolicy::decide`] does, and says by which rule.
    #[must_use]
    pub fn connection(&self, host: &Host, port: u16, tier: Tier) -> Connection<'_> {
        let without_rule = |verdict| Connection { verdict, rule: None, alike: Vec::new(), port };
        if host.is_loopback() {
            return without_rule(self.decide_loopback(port, tier));
        }
        if self.network.default == NetworkDefault::None {
            let change = SmallestChange::Add { section: "network", line: "default = \"deny\"".to_owned() };
            return without_rule(Verdict::deny(Place::Absent, "there is no network").unless(change));
        }
        let alike = self.network.rules_for(host, port);
        match alike.first() {
            Some(rule) => Connection { verdict: by_rule(rule), rule: Some(rule), alike, port },
            None => without_rule(self.by_default(host, port)),
        }
    }

    /// Whether an address may be dialled that a connection's name has: one of the internet, unless its rule has
    /// `private`, or another rule that opens names the very address. Loopback is never among them; `reach` leads there.
    ///
    /// # Errors
    /// Says what stands against it.
    pub fn may_resolve_to<'a>(
        &'a self,
        connection: &Connection<'_>,
        address: IpAddr,
    ) -> Result<(), Unreachable<'a>> {
        let scope = scope(address);
        let named = self.network.rules_for(&Host::from(address), connection.port);
        let private = scope == Scope::Private && connection.alike.iter().any(|rule| rule.private);
        match named.first() {
            Some(rule) if rule.action == Action::Deny => Err(Unreachable::Denied(rule)),
            _ if scope == Scope::Loopback => Err(Unreachable::Scope(scope)),
            Some(rule) if rule.action != Action::Ask => Ok(()),
            _ if private || scope == Scope::Public => Ok(()),
            _ => Err(Unreachable::Scope(scope)),
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

// === impl Connection ===

impl<'a> Connection<'a> {
    /// Which rule lets a request through; `None` where no rule decided, which limits nothing. Of rules that name the
    /// host as closely, one is enough: so a host may have other methods on other paths.
    ///
    /// # Errors
    /// Says what stands against it, by the rule that decided about the connection.
    pub fn permits(&self, method: &str, target: &str) -> Result<Option<&'a NetworkRule>, RequestProblem> {
        let Some(first) = self.rule else { return Ok(None) };
        let permitting = self.alike.iter().find(|rule| rule.permits(method, target).is_ok());
        permitting.map_or_else(|| first.permits(method, target).map(|()| Some(first)), |rule| Ok(Some(*rule)))
    }

    /// Whether what passes is looked into: always, unless the rule lets it through unseen.
    #[must_use]
    pub fn inspected(&self) -> bool {
        self.rule.is_none_or(|rule| rule.action != Action::Allow)
    }
}

// === impl Unreachable ===

impl Unreachable<'_> {
    /// What would let the address be dialled.
    #[must_use]
    pub fn change(&self, address: IpAddr, port: u16) -> SmallestChange {
        match self {
            Self::Denied(rule) => SmallestChange::Remove(rule.origin.clone()),
            Self::Scope(Scope::Loopback) => SmallestChange::Add {
                section: "network.local",
                line: format!("reach = [\"localhost:{port}\"]"),
            },
            Self::Scope(_) => {
                let target = Authority { host: Host::from(address), port: Some(port) };
                SmallestChange::Command(format!("redoma allow {}", super::shell_word(&target.to_string())))
            }
        }
    }
}

impl std::fmt::Display for Unreachable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scope(scope) => write!(f, "the name leads to a {scope} address"),
            Self::Denied(rule) => write!(f, "a rule denies the address ({})", rule.origin),
        }
    }
}

#[cfg(test)]
mod tests;
