//! Decisions about connections. The strictest matching rule decides; without one, the default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Effect, Place, SmallestChange, Verdict};
use crate::{Action, HostName, NetworkDefault, NetworkRule, ResolvedPolicy, Tier};

impl ResolvedPolicy {
    pub(super) fn decide_connection(&self, host: &str, port: u16, tier: Tier) -> Verdict {
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if address.is_none() && host.parse::<HostName>().is_err() {
            return Verdict::deny(Place::Absent, "it is no well-formed host");
        }
        if is_loopback(host, address) {
            return self.decide_loopback(port, tier);
        }
        if self.network.default == NetworkDefault::None {
            return Verdict::deny(Place::Absent, "there is no network")
                .unless(SmallestChange::Add { section: "network", line: "default = \"deny\"".to_owned() });
        }
        match self.network.rule_for(host, port) {
            Some(rule) => by_rule(rule),
            None => self.by_default(host, port, address),
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

    fn by_default(&self, host: &str, port: u16, address: Option<IpAddr>) -> Verdict {
        let target = format!("{host}:{port}");
        if address.is_some_and(|address| !is_public(address)) {
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

fn is_loopback(host: &str, address: Option<IpAddr>) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_some_and(|address| address.is_loopback())
}

/// Whether an address is one of the public internet's: none of the special-purpose blocks of RFC 6890.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 240.., _, _) | (192, 0, 0))
        || (a == 100 && b & 0xc0 == 64) // carrier-grade NAT, where some clouds put metadata
        || (a == 198 && b & 0xfe == 18); // benchmarking; the gateway's synthetic addresses
    !special
}

/// Only 2000::/3 is handed out; tunnels that carry an IPv4 address (6to4, Teredo) could carry a private one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let tunnel = a == 0x2002 || (a == 0x2001 && b < 0x200);
    a & 0xe000 == 0x2000 && !tunnel && !(a == 0x2001 && b == 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "8.8.8.8", "2606:4700::1111"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
