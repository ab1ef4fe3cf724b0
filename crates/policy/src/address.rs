//! What an address belongs to: the public internet, or something nearer that a name must not lead to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// What an address belongs to (RFC 6890 and the IANA special-purpose registries).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The internet.
    Public,
    /// A private network: RFC 1918, unique local addresses (RFC 4193), carrier-grade NAT (RFC 6598).
    Private,
    /// This machine. `0.0.0.0` and `::` too: connect(2) takes them for loopback.
    Loopback,
    /// The link alone (RFC 3927, RFC 4291).
    LinkLocal,
    /// Where clouds hand out a machine's own credentials.
    Metadata,
    /// Many at once.
    Multicast,
    /// Everything else that is no host on the internet: documentation, benchmarks, tunnels, what is not assigned.
    Reserved,
}

/// Where clouds answer with a machine's credentials, without asking for any. Each lies in a block that would count as
/// something else; one is public.
const METADATA: [&str; 9] = [
    "169.254.169.254", // most clouds
    "169.254.170.2",   // credentials of container tasks
    "169.254.170.23",  // credentials of pods
    "100.100.100.200", // in carrier-grade NAT
    "168.63.129.16",   // a public address that the host answers
    "192.0.0.192",     // in the IETF's block
    "fd00:ec2::254",   // unique local
    "fd00:ec2::23",    // unique local, of pods
    "fd20:ce::254",    // unique local
];

/// What an address belongs to. A mapped address is the IPv4 address it hides, and so is one that a NAT64 translates.
#[must_use]
pub fn scope(address: IpAddr) -> Scope {
    let address = address.to_canonical();
    if METADATA.iter().any(|known| known.parse() == Ok(address)) {
        return Scope::Metadata;
    }
    match address {
        IpAddr::V4(address) => scope_v4(address),
        IpAddr::V6(address) => scope_v6(address),
    }
}

fn scope_v4(address: Ipv4Addr) -> Scope {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        _ if address.is_loopback() || address.is_unspecified() => Scope::Loopback,
        _ if address.is_private() => Scope::Private,
        (100, 64..=127, _) => Scope::Private,
        _ if address.is_link_local() => Scope::LinkLocal,
        _ if address.is_multicast() => Scope::Multicast,
        _ if address.is_documentation() => Scope::Reserved,
        // "This network", the IETF's own, 6to4 relays.
        (0 | 240.., _, _) | (192, 0, 0) | (192, 88, 99) => Scope::Reserved,
        // Benchmarks, and the gateway's synthetic addresses.
        (198, 18 | 19, _) => Scope::Reserved,
        _ => Scope::Public,
    }
}

/// Only 2000::/3 is handed out; tunnels that carry an IPv4 address (6to4, Teredo) could carry a private one.
fn scope_v6(address: Ipv6Addr) -> Scope {
    match address.segments() {
        _ if address.is_loopback() || address.is_unspecified() => Scope::Loopback,
        // The translator's well-known prefix (RFC 6052): networks without IPv4 reach all of it through there.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            scope(IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))))
        }
        [0xfc00..=0xfdff, ..] => Scope::Private,
        [0xfe80..=0xfebf, ..] => Scope::LinkLocal,
        [0xff00..=0xffff, ..] => Scope::Multicast,
        [0x2002, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Scope::Reserved
        }
        [0x2000..=0x3fff, ..] => Scope::Public,
        _ => Scope::Reserved,
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_block_is_known() {
        let table: [(Scope, &[&str]); 7] = [
            (
                Scope::Public,
                &["1.1.1.1", "100.63.255.255", "100.128.0.0", "172.32.0.1", "198.20.0.1", "2606:4700::1111"],
            ),
            (
                Scope::Private,
                &[
                    "10.0.0.1",
                    "172.16.0.1",
                    "172.31.255.255",
                    "192.168.1.1",
                    "100.64.0.1",
                    "100.127.255.255",
                    "fd00::1",
                    "fc00::1",
                    "::ffff:10.0.0.1",
                    "64:ff9b::a00:1",
                ],
            ),
            (Scope::Loopback, &["127.0.0.1", "127.255.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"]),
            (Scope::LinkLocal, &["169.254.0.1", "fe80::1", "febf::1"]),
            (
                Scope::Metadata,
                &[
                    "169.254.169.254",
                    "::ffff:169.254.169.254",
                    "64:ff9b::a9fe:a9fe",
                    "100.100.100.200",
                    "168.63.129.16",
                    "fd00:ec2::254",
                ],
            ),
            (Scope::Multicast, &["224.0.0.1", "239.1.1.1", "ff02::1"]),
            (
                Scope::Reserved,
                &[
                    "0.1.2.3",
                    "192.0.0.1",
                    "192.0.2.1",
                    "198.18.0.1",
                    "198.19.255.255",
                    "198.51.100.1",
                    "203.0.113.1",
                    "240.0.0.1",
                    "255.255.255.255",
                    "::127.0.0.1",
                    "64:ff9b:1::a00:1",
                    "100::1",
                    "2002:a00:1::",
                    "2001::1",
                    "2001:db8::1",
                    "3fff:fff::1",
                    "fec0::1",
                    "4000::1",
                ],
            ),
        ];
        for (wanted, addresses) in table {
            for address in addresses {
                assert_eq!(scope(address.parse().unwrap()), wanted, "{address}");
            }
        }
    }

    #[test]
    fn the_list_of_metadata_addresses_is_well_formed() {
        for address in METADATA {
            assert_eq!(scope(address.parse().unwrap()), Scope::Metadata, "{address}");
        }
    }
}
