//! Which name is behind which address: each name that is asked for gets addresses of its own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{PoisonError, RwLock};

use redoma_policy::HostName;

/// Names and their synthetic addresses, for the life of a gateway.
///
/// The addresses are of 198.18.0.0/15, which is set aside for benchmarks (RFC 2544) and routed nowhere, and of a unique local
/// prefix (RFC 4193). A name keeps its addresses, and no two names share any.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<HostName, u32>,
    names: Vec<HostName>,
}

const V4: u32 = u32::from_be_bytes([198, 18, 1, 0]);
const V6: u128 = 0xfd72_6564_6f6d_6100 << 64;
/// Enough for any real session; what a hostile one makes up beyond is refused.
const MOST: usize = 65_000;

impl Names {
    /// The addresses of a name; none once there are too many names.
    pub(crate) fn addresses_of(&self, name: &HostName) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).numbers.get(name).copied();
        let number = known.or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner).add(name))?;
        Some((Ipv4Addr::from(V4 + number), Ipv6Addr::from(V6 + u128::from(number))))
    }

    /// The name that an address was made for.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<HostName> {
        let number = number_of(address)?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).names.get(number).cloned()
    }
}

impl Table {
    fn add(&mut self, name: &HostName) -> Option<u32> {
        // Another thread may have been faster.
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < MOST)?;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        Some(number)
    }
}

/// Whether an address is one that no machine has.
pub(crate) fn is_synthetic(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            (a, b & 0xfe) == (198, 18)
        }
        IpAddr::V6(address) => u128::from(address) >> 64 == V6 >> 64,
    }
}

fn number_of(address: IpAddr) -> Option<usize> {
    let number = match address.to_canonical() {
        IpAddr::V4(address) => u32::from(address).checked_sub(V4)?,
        IpAddr::V6(address) => u32::try_from(u128::from(address).checked_sub(V6)?).ok()?,
    };
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_keeps_its_addresses_and_they_lead_back() {
        let names = Names::default();
        let (v4, v6) = names.addresses_of(&name("a.example")).unwrap();
        let other = names.addresses_of(&name("b.example")).unwrap();
        assert_eq!(names.addresses_of(&name("A.example.")), Some((v4, v6)));
        assert_ne!(other, (v4, v6));
        assert_eq!(names.name_of(v4.into()), Some(name("a.example")));
        assert_eq!(names.name_of(v6.into()), Some(name("a.example")));
        assert_eq!(names.name_of(v4.to_ipv6_mapped().into()), Some(name("a.example")));
        assert!(is_synthetic(v4.into()) && is_synthetic(v6.into()));
    }

    #[test]
    fn other_addresses_have_no_name() {
        let names = Names::default();
        names.addresses_of(&name("a.example")).unwrap();
        for address in
            ["198.18.0.0", "198.18.1.1", "198.19.255.255", "1.1.1.1", "fd72:6564:6f6d:6100::1", "::1"]
        {
            assert_eq!(names.name_of(address.parse().unwrap()), None, "{address}");
        }
        assert!(!is_synthetic("1.1.1.1".parse().unwrap()));
    }

    #[test]
    fn names_do_not_grow_without_end() {
        let names = Names::default();
        let all = (0..MOST + 10).filter(|n| names.addresses_of(&name(&format!("n{n}.example"))).is_some());
        assert_eq!(all.count(), MOST);
        assert!(names.addresses_of(&name("n0.example")).is_some());
    }
}
