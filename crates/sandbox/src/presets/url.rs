//! Addresses as tools write them.

use std::num::NonZeroU16;

use redoma_policy::{Authority, Host};

/// The parts of a URL that matter for reaching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) host: Host,
    pub(super) port: NonZeroU16,
    /// The URL without user and password.
    pub(super) text: String,
    /// Whether there was a user or password in it.
    pub(super) signed_in: bool,
}

const PORTS: [(&str, u16); 5] = [("https", 443), ("http", 80), ("ssh", 22), ("git", 9418), ("ftp", 21)];

// === impl Url ===

impl Url {
    /// Reads a URL, with or without a tool's word in front (`sparse+https://…`). `None` for what is fetched from no host.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let (front, scheme) = scheme.rsplit_once('+').map_or(("", scheme), |(front, scheme)| (front, scheme));
        let (_, usual) = PORTS.iter().find(|(name, _)| *name == scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (user, place) = place.rsplit_once('@').map_or((None, place), |(user, place)| (Some(user), place));
        let authority: Authority = place.parse().ok()?;
        let port = NonZeroU16::new(authority.port.unwrap_or(*usual))?;
        let plus = if front.is_empty() { "" } else { "+" };
        let text = format!("{front}{plus}{scheme}://{authority}{path}");
        Some(Self { host: authority.host, port, text, signed_in: user.is_some() })
    }

    /// Every URL of a text, whatever stands around them.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'<>,;()[]{}|\\".contains(c);
        text.split(ends).filter_map(Self::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_tools_write_them() {
        for (text, host, port, plain) in [
            ("https://registry.example/", "registry.example", 443, "https://registry.example/"),
            ("http://127.0.0.1:4873/x?y", "127.0.0.1", 4873, "http://127.0.0.1:4873/x?y"),
            ("sparse+https://Index.Example/", "index.example", 443, "sparse+https://index.example/"),
            ("https://u:p@h.example:8443", "h.example", 8443, "https://h.example:8443"),
            ("ssh://git@h.example/x", "h.example", 22, "ssh://h.example/x"),
            ("http://[2001:db8::1]:8080/", "2001:db8::1", 8080, "http://[2001:db8::1]:8080/"),
        ] {
            let url = Url::read(text).unwrap();
            assert_eq!((url.host.to_string().as_str(), url.port.get()), (host, port), "{text}");
            assert_eq!(url.text, plain);
            assert_eq!(url.signed_in, text.contains('@'));
        }
        for text in
            ["", "registry.example", "file:///srv", "https://", "https://a b/", "https://h:0/", "cdrom:[x]/"]
        {
            assert_eq!(Url::read(text), None, "{text}");
        }
    }

    #[test]
    fn urls_are_found_in_a_text() {
        let text =
            "*** SOURCES ***\n\nhttps://a.example/\n\"b\": \"http://b.example:1/x\", see <https://c.example>";
        let hosts: Vec<_> = Url::all(text).iter().map(|url| url.host.to_string()).collect();
        assert_eq!(hosts, ["a.example", "b.example", "c.example"]);
    }
}
