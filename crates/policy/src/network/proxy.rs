//! The proxy through which a company lets its machines out.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Authority, Host, HostName};

/// Which proxy the gateway goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum UpstreamProxy {
    /// The one that the caller's environment names, if any: `https_proxy`, `HTTPS_PROXY`, `all_proxy`, `ALL_PROXY`.
    #[default]
    Environment,
    /// None.
    Off,
    /// This one.
    Fixed(Proxy),
}

/// An HTTP proxy that is asked to `CONNECT` (RFC 9110, section 9.3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// Whom to sign in as, if it asks.
    pub user: Option<String>,
    /// With what. Only from the environment: a policy is no place for it.
    pub password: Option<Password>,
}

/// A password, which neither `Debug` nor anything else shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// A proxy, and what it is not for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    proxy: Proxy,
    direct: Vec<Direct>,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    Everything,
    Below(HostName),
    Network(IpAddr, u8),
}

/// Why a proxy was refused. It does not show the value, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} names no proxy: {problem}")]
pub struct InvalidProxy {
    /// The variable or key.
    pub place: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

const VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

// === impl UpstreamProxy ===

impl UpstreamProxy {
    /// The proxy to go through, by the caller's environment where that is asked for. `NO_PROXY` holds in either case.
    ///
    /// # Errors
    /// When a variable holds what is no HTTP proxy: going out without it would go round what a company put there.
    pub fn choose(&self, vars: &dyn Fn(&str) -> Option<String>) -> Result<Option<Upstream>, InvalidProxy> {
        let set = |name: &str| vars(name).filter(|value| !value.is_empty());
        let proxy = match self {
            Self::Off => None,
            Self::Fixed(proxy) => Some(proxy.clone()),
            Self::Environment => VARIABLES
                .iter()
                .find_map(|name| Some((name, set(name)?)))
                .map(|(name, value)| Proxy::from_url(&value).map_err(|problem| refuse(name, problem)))
                .transpose()?,
        };
        let list = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
        let direct = || list.split([',', ' ']).filter_map(Direct::read).collect();
        Ok(proxy.map(|proxy| Upstream { proxy, direct: direct() }))
    }
}

fn refuse(place: &str, problem: &'static str) -> InvalidProxy {
    InvalidProxy { place: place.to_owned(), problem }
}

impl FromStr for UpstreamProxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let place = "upstream_proxy";
        match text {
            "env" => Ok(Self::Environment),
            "none" => Ok(Self::Off),
            url => match Proxy::from_url(url).map_err(|problem| refuse(place, problem))? {
                Proxy { password: Some(_), .. } => {
                    Err(refuse(place, "a password belongs into the environment: HTTPS_PROXY"))
                }
                proxy => Ok(Self::Fixed(proxy)),
            },
        }
    }
}

impl fmt::Display for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("env"),
            Self::Off => f.write_str("none"),
            Self::Fixed(proxy) => proxy.fmt(f),
        }
    }
}

impl TryFrom<String> for UpstreamProxy {
    type Error = InvalidProxy;

    fn try_from(text: String) -> Result<Self, InvalidProxy> {
        text.parse()
    }
}

impl From<UpstreamProxy> for String {
    fn from(proxy: UpstreamProxy) -> Self {
        proxy.to_string()
    }
}

impl JsonSchema for UpstreamProxy {
    fn schema_name() -> Cow<'static, str> {
        "UpstreamProxy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "`env` (what HTTPS_PROXY says), `none`, or a proxy such as \"http://proxy.example:3128\".",
            "pattern": "^(env|none|http://.+)$"
        })
    }
}

// === impl Proxy ===

impl Proxy {
    /// Reads `http://user:password@host:port`; scheme, user and password may be missing. The port may not: programs do not
    /// agree on what it is then.
    fn from_url(url: &str) -> Result<Self, &'static str> {
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err("only http:// proxies are understood"),
            None => url,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (signing, place) =
            rest.rsplit_once('@').map_or((None, rest), |(front, place)| (Some(front), place));
        let Authority { host, port } = place.parse().map_err(|_| "write http://host:port")?;
        let port = port.ok_or("the port is missing")?;
        let (user, password) = match signing.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
            None => (None, None),
        };
        let password = password.filter(|password| !password.is_empty()).map(Password);
        Ok(Self { host, port, user, password })
    }
}

/// User names and passwords are escaped in a URL (RFC 3986, section 3.2.1).
fn decoded(text: &str) -> Result<String, &'static str> {
    const PROBLEM: &str = "an escape in the user or password is malformed";
    let mut out = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    out.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or(PROBLEM)?;
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let value = plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten().ok_or(PROBLEM)?;
        out.push(value);
        out.extend(rest.bytes());
    }
    let text = String::from_utf8(out).map_err(|_| PROBLEM)?;
    // A line break would end the header that carries it.
    if text.chars().any(char::is_control) { Err(PROBLEM) } else { Ok(text) }
}

/// Without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("http://")?;
        if let Some(user) = &self.user {
            for byte in user.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        write!(f, "{}", char::from(byte))?;
                    }
                    byte => write!(f, "%{byte:02X}")?,
                }
            }
            f.write_str("@")?;
        }
        Authority { host: self.host.clone(), port: Some(self.port) }.fmt(f)
    }
}

// === impl Password ===

impl Password {
    /// The password itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

// === impl Upstream ===

impl Upstream {
    /// The proxy for a host; `None` is to go there directly.
    #[must_use]
    pub fn proxy_for(&self, host: &Host) -> Option<&Proxy> {
        (!self.direct.iter().any(|direct| direct.means(host))).then_some(&self.proxy)
    }
}

// === impl Direct ===

impl Direct {
    /// Reads an entry as curl(1) does: a name means what lies below it as well. What is none is passed over.
    fn read(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address = address.parse::<IpAddr>().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            return bits.parse().ok().filter(|bits| *bits <= most).map(|bits| Self::Network(address, bits));
        }
        let bare = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')).unwrap_or(text);
        match bare.parse().or_else(|_| bare.parse().map(|authority: Authority| authority.host)).ok()? {
            Host::Name(name) => Some(Self::Below(name)),
            Host::Address(address) => Some(Self::Network(address, if address.is_ipv4() { 32 } else { 128 })),
        }
    }

    fn means(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Everything, _) => true,
            (Self::Below(own), Host::Name(name)) => name == own || name.is_below(own),
            (Self::Network(IpAddr::V4(own), bits), Host::Address(IpAddr::V4(address))) => {
                let shift = 32 - u32::from(*bits);
                own.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (Self::Network(IpAddr::V6(own), bits), Host::Address(IpAddr::V6(address))) => {
                let shift = 128 - u32::from(*bits);
                own.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(key: &str, vars: &[(&str, &str)]) -> Result<Option<Upstream>, InvalidProxy> {
        let value =
            |name: &str| vars.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        key.parse::<UpstreamProxy>().unwrap().choose(&value)
    }

    #[test]
    fn the_environments_proxy_is_taken_unless_the_policy_says_otherwise() {
        let vars = [("HTTPS_PROXY", "http://me:p%40ss@Proxy.Example:3128/"), ("ALL_PROXY", "http://other:1")];
        let upstream = choose("env", &vars).unwrap().unwrap();
        let proxy = upstream.proxy_for(&"example.com".parse().unwrap()).unwrap();
        assert_eq!(proxy.to_string(), "http://me@proxy.example:3128");
        assert_eq!(proxy.password.as_ref().unwrap().expose(), "p@ss");
        assert!(!format!("{upstream:?}").contains("p@ss"));
        assert_eq!(choose("none", &vars), Ok(None));
        assert_eq!(choose("env", &[("HTTPS_PROXY", "")]), Ok(None));
        let fixed = choose("http://10.0.0.1:8080", &vars).unwrap().unwrap();
        assert_eq!(fixed.proxy.to_string(), "http://10.0.0.1:8080");
    }

    #[test]
    fn what_is_no_http_proxy_is_an_error_that_shows_no_password() {
        for value in [
            "https://p:1",
            "socks5://secretword@p:1",
            "http://p",
            "http://secretword@p:0",
            "http://u:secretword@p:1/x",
            "http://u:secret%zzword@p:1",
            "http://u:secretword%0d@p:1",
            "http://a b:1",
        ] {
            let error = choose("env", &[("https_proxy", value)]).unwrap_err().to_string();
            assert!(error.starts_with("https_proxy") && !error.contains("secretword"), "{error}");
        }
        for key in ["", "environment", "http://u:p@h:1", "ftp://h:1"] {
            assert!(key.parse::<UpstreamProxy>().is_err(), "{key}");
        }
    }

    #[test]
    fn some_hosts_are_reached_directly() {
        let list = "corp.example, .inside.example,*.x.example,10.0.0.0/8,192.0.2.1,fd00::/8,api.y.example:443,0.0.0.0/40,bad..name";
        let upstream = choose("http://p:1", &[("no_proxy", list), ("NO_PROXY", "*")]).unwrap().unwrap();
        let direct = |host: &str| upstream.proxy_for(&host.parse().unwrap()).is_none();
        for host in [
            "corp.example",
            "a.corp.example",
            "a.inside.example",
            "a.x.example",
            "10.9.9.9",
            "192.0.2.1",
            "fd12::1",
            "api.y.example",
        ] {
            assert!(direct(host), "{host}");
        }
        for host in ["notcorp.example", "example.com", "11.0.0.1", "192.0.2.2", "2001:db8::1", "y.example"] {
            assert!(!direct(host), "{host}");
        }
        let all = choose("http://p:1", &[("NO_PROXY", "*")]).unwrap().unwrap();
        assert_eq!(all.proxy_for(&"example.com".parse().unwrap()), None);
        let zero = choose("http://p:1", &[("NO_PROXY", "0.0.0.0/0")]).unwrap().unwrap();
        assert_eq!(zero.proxy_for(&"1.1.1.1".parse().unwrap()), None);
    }

    #[test]
    fn a_proxy_survives_its_text_form() {
        for text in ["env", "none", "http://p.example:3128", "http://a%40b@[2001:db8::1]:3128"] {
            assert_eq!(text.parse::<UpstreamProxy>().unwrap().to_string(), text);
        }
    }
}
