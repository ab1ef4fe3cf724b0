//! A host with its port, as protocols write it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use super::{Host, InvalidHost, text};

/// A host and perhaps a port: a `Host` header, an `:authority`, a `CONNECT` target (RFC 3986, section 3.2, without user
/// information). An IPv6 address stands in brackets, nothing else does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, never 0; `None` is the protocol's own.
    pub port: Option<u16>,
}

// === impl Authority ===

impl Authority {
    /// Reads an authority as it came over a wire: any bytes may stand there.
    ///
    /// # Errors
    /// When they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidHost> {
        text(bytes)?.parse()
    }
}

impl FromStr for Authority {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let refuse = |problem| InvalidHost { text: text.to_owned(), problem };
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or_else(|| refuse("a bracket is missing"))?;
                // Brackets hold IPv6 alone: others would be a second spelling, and zones mean links of this machine.
                let address = address.parse::<Ipv6Addr>();
                let address = address.map_err(|_| refuse("brackets hold an IPv6 address without zone"))?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':').ok_or_else(|| refuse("a port follows a colon"))?),
                };
                (Host::from(IpAddr::V6(address)), port)
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(refuse("an IPv6 address stands in brackets"));
                }
                Some((host, port)) => (host.parse()?, Some(port)),
                None => (text.parse()?, None),
            },
        };
        let port = port.map(|port| port_number(port).ok_or_else(|| refuse("a port is a number to 65535")));
        Ok(Self { host, port: port.transpose()? })
    }
}

/// Digits only and no leading zeros, which `parse` alone would let pass, as it would a sign.
fn port_number(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            host => host.fmt(f)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}
