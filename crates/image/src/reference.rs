//! The names of images.
//!
//! The grammar is that of `github.com/distribution/reference`; names without a registry are of Docker Hub, as everywhere.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Digest, Error};

/// Where names without a registry are looked up.
const HUB: &str = "docker.io";
/// The registry that serves Docker Hub's images.
const HUB_SERVER: &str = "registry-1.docker.io";
/// Docker Hub's images without an owner belong to it.
const LIBRARY: &str = "library/";
/// The tag of a name that says nothing.
const LATEST: &str = "latest";
/// Longest tag.
const TAG: usize = 128;
/// Longest name, registry included.
const NAME: usize = 255;

/// The full name of an image: registry, repository, and a tag, a digest or both.
///
/// Displayed short, as people type it: `docker.io/library/debian:12` is `debian:12`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

// === impl Reference ===

impl Reference {
    /// The registry's name and port, as the user knows it.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; a name with a digest may have none.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest of a manifest or an index, which pins the content.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The same name, pinned.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// Host and port to connect to.
    pub(crate) fn server(&self) -> &str {
        if self.registry == HUB { HUB_SERVER } else { &self.registry }
    }

    /// What stands for the manifest in the registry's paths: the digest where there is one, since it decides.
    pub(crate) fn version(&self) -> String {
        self.digest
            .map_or_else(|| self.tag.clone().unwrap_or_else(|| LATEST.into()), |digest| digest.to_string())
    }

    /// Nothing is left out.
    #[must_use]
    pub fn full(&self) -> String {
        format!("{}/{}{}", self.registry, self.repository, self.suffix())
    }

    fn suffix(&self) -> String {
        let tag = self.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        let digest = self.digest.map(|digest| format!("@{digest}")).unwrap_or_default();
        tag + &digest
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = match (self.registry.as_str(), self.repository.strip_prefix(LIBRARY)) {
            (HUB, Some(official)) if !official.contains('/') => official.to_owned(),
            (HUB, _) => self.repository.clone(),
            _ => format!("{}/{}", self.registry, self.repository),
        };
        write!(f, "{short}{}", self.suffix())
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |why| Error::Reference { text: text.to_owned(), why };
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest.parse()?)),
            None => (text, None),
        };
        let (name, tag) = split_tag(named);
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(invalid("the tag may have letters, digits, _ . - and at most 128 of them"));
        }
        let (registry, path) = split_registry(name);
        if !is_registry(registry) {
            return Err(invalid("the registry is a host name, with a port after a colon"));
        }
        let repository =
            if registry == HUB && !path.contains('/') { format!("{LIBRARY}{path}") } else { path.into() };
        if repository.len() + registry.len() > NAME || !repository.split('/').all(is_component) {
            return Err(invalid("names are lower-case letters and digits, with single . _ or - between"));
        }
        let tag = tag.map(String::from).or_else(|| digest.is_none().then(|| LATEST.into()));
        Ok(Self { registry: registry.into(), repository, tag, digest })
    }
}

impl TryFrom<String> for Reference {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.full()
    }
}

/// A colon after the last slash begins the tag; before it, a port.
fn split_tag(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (named, None),
    }
}

/// The first part is a registry when it looks like a host: a dot, a port, or `localhost`.
fn split_registry(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            (if host == "index.docker.io" { HUB } else { host }, path)
        }
        _ => (HUB, name),
    }
}

fn is_registry(host: &str) -> bool {
    let (name, port) = split_port(host);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.split('.').all(is_label),
    };
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
}

/// Host and port; the colons of an IPv6 address are inside brackets.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// Whether `host` (with a port or not) is this machine, by its own name: nobody can listen on the way there.
pub(crate) fn is_loopback(host: &str) -> bool {
    let (name, _) = split_port(host);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || name.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

/// Lower-case letters and digits, separated by one dot, one or two underscores, or any number of dashes.
fn is_component(component: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators =
        component.split(|c: char| c.is_ascii() && is_plain(c as u8)).filter(|part| !part.is_empty());
    let ends =
        component.bytes().next().is_some_and(is_plain) && component.bytes().next_back().is_some_and(is_plain);
    let is_separator = |part: &str| matches!(part, "." | "_" | "__") || part.bytes().all(|byte| byte == b'-');
    ends && separators.into_iter().all(is_separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(text: &str) -> String {
        text.parse::<Reference>().unwrap().full()
    }

    #[test]
    fn what_is_left_out_is_what_everybody_leaves_out() {
        assert_eq!(full("debian"), "docker.io/library/debian:latest");
        assert_eq!(full("redis:7"), "docker.io/library/redis:7");
        assert_eq!(full("grafana/loki"), "docker.io/grafana/loki:latest");
        assert_eq!(full("index.docker.io/library/a"), "docker.io/library/a:latest");
        assert_eq!(full("localhost:5000/a/b:c"), "localhost:5000/a/b:c");
        assert_eq!(full("localhost/a"), "localhost/a:latest");
        assert_eq!(full("[::1]:5000/a"), "[::1]:5000/a:latest");
        assert_eq!(full("ghcr.io/a/b_c-d.e"), "ghcr.io/a/b_c-d.e:latest");
    }

    #[test]
    fn a_digest_needs_no_tag_and_may_have_one() {
        let digest = Digest::of(b"");
        assert_eq!(full(&format!("a@{digest}")), format!("docker.io/library/a@{digest}"));
        let both: Reference = format!("a:1@{digest}").parse().unwrap();
        assert_eq!((both.version(), both.to_string()), (digest.to_string(), format!("a:1@{digest}")));
    }

    #[test]
    fn shown_short_it_is_read_as_the_same() {
        for text in ["debian", "a/b:1", "localhost:5000/x", "docker.io/library/a/b"] {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference, "{text}");
        }
    }

    #[test]
    fn what_could_leave_a_url_or_a_folder_is_no_name() {
        let long = "a".repeat(300);
        for text in [
            "",
            "A",
            "a//b",
            "../x",
            "a/../b",
            "a b",
            "a:",
            "a:.x",
            "-a",
            "a?x",
            "a#x",
            "a%2f",
            "x.y:0/a",
            "x.y:99999/a",
            "u@h/a",
            "a@sha256:12",
            "a._b",
            "a___b",
            "é",
            "[::g]:1/a",
            "h.x\\y/a",
            &long,
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "localhost:1", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]:1", "ghcr.io"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
