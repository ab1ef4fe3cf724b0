use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use redoma_sys::{Errno, nr};

use crate::caller::Caller;

/// `sockaddr_in` and `sockaddr_in6`; the kernel takes the latter without its zone too, as RFC 2133 had it.
const INET_LENGTH: usize = 16;
const INET6_LENGTH: usize = 28;
const INET6_LENGTH_WITHOUT_ZONE: usize = 24;
/// `sockaddr_storage`.
const LONGEST: usize = 128;

/// The second and third argument of `connect(2)` and `bind(2)`: an address and its length.
pub(super) fn read(caller: &Caller<'_>) -> Result<SocketAddr, Errno> {
    let length = usize::try_from(caller.int(2) as i32).map_err(|_| Errno::INVAL)?;
    if length > LONGEST {
        return Err(Errno::INVAL);
    }
    parse(&caller.bytes(caller.word(1), length.min(INET6_LENGTH))?)
}

/// No address of another family leads anywhere: `AF_UNIX` to sockets of the host, `AF_UNSPEC` back to a socket that is
/// not connected, which is what would let a command connect it a second time.
fn parse(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    let (family, rest) = bytes.split_first_chunk().ok_or(Errno::INVAL)?;
    match i32::from(u16::from_ne_bytes(*family)) {
        nr::AF_INET if bytes.len() >= INET_LENGTH => inet(rest),
        nr::AF_INET6 if bytes.len() >= INET6_LENGTH_WITHOUT_ZONE => inet6(rest),
        nr::AF_INET | nr::AF_INET6 => Err(Errno::INVAL),
        _ => Err(Errno::ACCESS),
    }
}

/// Port and address. See `ip(7)`.
fn inet(rest: &[u8]) -> Result<SocketAddr, Errno> {
    let (port, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
    let (address, _) = rest.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
    Ok((Ipv4Addr::from_octets(*address), u16::from_be_bytes(*port)).into())
}

/// Port, flow label, address, zone. See `ipv6(7)`.
fn inet6(rest: &[u8]) -> Result<SocketAddr, Errno> {
    let (port, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
    let (_flow, rest) = rest.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
    let (address, zone) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
    let zone = zone.first_chunk().map_or(0, |zone| u32::from_ne_bytes(*zone));
    Ok(SocketAddrV6::new(Ipv6Addr::from_octets(*address), u16::from_be_bytes(*port), 0, zone).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(family: i32, rest: &[u8]) -> Vec<u8> {
        [&u16::try_from(family).unwrap().to_ne_bytes(), rest].concat()
    }

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let v4 = bytes(nr::AF_INET, &[1, 187, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse(&v4), Ok("192.0.2.1:443".parse().unwrap()));
        let mut rest = vec![0, 80, 9, 9, 9, 9];
        rest.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(parse(&bytes(nr::AF_INET6, &rest)), Ok("[::1]:80".parse().unwrap()));
        rest.extend(3u32.to_ne_bytes());
        let SocketAddr::V6(zoned) = parse(&bytes(nr::AF_INET6, &rest)).unwrap() else { panic!("v6") };
        assert_eq!((zoned.scope_id(), zoned.flowinfo()), (3, 0));
    }

    #[test]
    fn what_is_too_short_or_of_another_family_is_none() {
        assert_eq!(parse(&[]), Err(Errno::INVAL));
        assert_eq!(parse(&bytes(nr::AF_INET, &[0; 13])), Err(Errno::INVAL));
        assert_eq!(parse(&bytes(nr::AF_INET6, &[0; 21])), Err(Errno::INVAL));
        assert_eq!(parse(&bytes(nr::AF_UNIX, b"/run/socket")), Err(Errno::ACCESS));
        assert_eq!(parse(&bytes(nr::AF_UNSPEC, &[0; 14])), Err(Errno::ACCESS));
    }
}
