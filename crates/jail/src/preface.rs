use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// What init writes first on a connection that it makes for a command (landlock tier): where the command wanted to go.
///
/// The command holds the same socket and could write before init does. What it writes then stands where the token has to
/// be, and since it doesn't know the token such a connection is nobody's. Nor could it gain by knowing it: a destination
/// is judged by the policy whoever names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// The argument of `connect(2)`. An IPv4 address in IPv6 clothes (RFC 4291, 2.5.5.2) is told as the IPv4 address.
    pub destination: SocketAddr,
    /// Id of the thread that connects; `/proc` shows its process under it.
    pub pid: u32,
}

/// Tells the connections of a session from all others that somebody on this machine makes to the relay. Random, and
/// made anew for each session.
#[derive(Clone, Copy)]
pub struct Token([u8; Token::LENGTH]);

impl Preface {
    /// Bytes of every preface.
    pub const LENGTH: usize = Token::LENGTH + 16 + 2 + 4 + 4;

    /// The token, the address as an IPv6 one, its port, its zone and the thread; numbers in network order.
    pub fn encode(&self, token: &Token) -> [u8; Self::LENGTH] {
        let (address, zone) = match self.destination {
            SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
            SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
        };
        let port = self.destination.port().to_be_bytes();
        let parts: [&[u8]; 5] =
            [&token.0, &address.octets(), &port, &zone.to_be_bytes(), &self.pid.to_be_bytes()];
        let mut bytes = parts.iter().flat_map(|part| part.iter().copied());
        std::array::from_fn(|_| bytes.next().unwrap_or_default())
    }

    /// The preface of a connection, or none without the right token: then nothing that came on it is to be believed.
    pub fn parse(bytes: &[u8; Self::LENGTH], token: &Token) -> Option<Self> {
        let (claimed, rest) = bytes.split_first_chunk()?;
        let (address, rest) = rest.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let (zone, pid) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*port);
        let destination = match Ipv6Addr::from_octets(*address).to_canonical() {
            IpAddr::V4(v4) => SocketAddr::new(v4.into(), port),
            IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, u32::from_be_bytes(*zone)).into(),
        };
        let pid = u32::from_be_bytes(pid.try_into().ok()?);
        token.is(claimed).then_some(Self { destination, pid })
    }
}

impl Token {
    const LENGTH: usize = 32;

    /// Takes time that says nothing about where they differ.
    fn is(&self, claimed: &[u8; Self::LENGTH]) -> bool {
        self.0.iter().zip(claimed).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl From<[u8; Token::LENGTH]> for Token {
    fn from(random: [u8; Token::LENGTH]) -> Self {
        Self(random)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn destination() -> impl Strategy<Value = SocketAddr> {
        let v6 = |(bits, port, zone)| SocketAddrV6::new(Ipv6Addr::from_bits(bits), port, 0, zone).into();
        prop_oneof![
            any::<([u8; 4], u16)>().prop_map(|(octets, port)| SocketAddr::from((octets, port))),
            any::<(u128, u16, u32)>().prop_map(v6),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_parsed(destination in destination(), pid: u32, token: [u8; 32]) {
            let token = Token::from(token);
            let preface = Preface { destination, pid };
            prop_assert_eq!(Preface::parse(&preface.encode(&token), &token), Some(preface));
        }

        #[test]
        fn one_wrong_bit_in_the_token_is_refused(destination in destination(), token: [u8; 32], bit in 0usize..256) {
            let token = Token::from(token);
            let mut bytes = Preface { destination, pid: 1 }.encode(&token);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Preface::parse(&bytes, &token), None);
        }

        #[test]
        fn any_bytes_behind_the_token_parse_to_what_encodes_alike(rest: [u8; 26]) {
            let token = Token::from([7; 32]);
            let mut bytes = [7; Preface::LENGTH];
            bytes[32..].copy_from_slice(&rest);
            let parsed = Preface::parse(&bytes, &token).unwrap();
            prop_assert_eq!(Preface::parse(&parsed.encode(&token), &token), Some(parsed));
        }
    }

    #[test]
    fn an_ipv4_address_in_ipv6_clothes_is_an_ipv4_address() {
        let token = Token::from([1; 32]);
        let preface = Preface { destination: "[::ffff:192.0.2.1]:443".parse().unwrap(), pid: 2 };
        let parsed = Preface::parse(&preface.encode(&token), &token).unwrap();
        assert_eq!(parsed.destination, "192.0.2.1:443".parse().unwrap());
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token::from([0x41; 32])), "Token(..)");
    }
}
