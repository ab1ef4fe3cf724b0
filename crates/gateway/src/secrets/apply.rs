//! Credentials into a request's head.

use data_encoding::{BASE64, HEXUPPER};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use memchr::memmem;
use redoma_policy::SecretPlace;
use zeroize::Zeroize;

use super::sigv4::{self, Signer};
use super::{AwsKey, Credential, Credentials, Pair};
use crate::refuse::Refusal;
use crate::scan::percent_decoded;
use crate::{Reason, Target};

/// What is put where a placeholder stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// Nothing: what then still holds a placeholder holds it where it does not belong.
    Nothing,
    /// The real credential.
    Real,
}

impl Credentials {
    /// Puts credentials where their placeholders stand in their places, if the request goes to a host of theirs; their
    /// names. The caller has seen to it that the host is who it says it is.
    ///
    /// # Errors
    /// When a request's signature cannot be made again.
    pub(crate) fn apply(&self, parts: &mut Parts, target: &Target, put: Put) -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        for credential in self.all.iter().filter(|credential| credential.is_for(&target.host)) {
            if credential.apply(parts, put)? {
                names.push(credential.rule.name.clone());
            }
        }
        Ok(names)
    }

    /// Whether a signature covers the body and does not say its hash.
    pub(crate) fn need_body(&self, parts: &Parts, target: &Target) -> bool {
        let mut keys = self.all.iter().filter(|credential| credential.is_for(&target.host));
        keys.any(|key| {
            let id = key.aws.as_ref().map(|aws| aws.id.placeholder.expose());
            id.is_some_and(|id| sigv4::needs_body(parts, id))
        })
    }
}

impl Credential {
    fn apply(&self, parts: &mut Parts, put: Put) -> Result<bool, Refusal> {
        let swap = Swap::new(self.placeholder.expose(), self.real.expose(), put);
        Ok(match self.place() {
            SecretPlace::Headers => in_headers(parts, None, &swap)?,
            SecretPlace::Header(name) => in_headers(parts, Some(name), &swap)?,
            SecretPlace::Query(key) => in_query(parts, key, &swap)?,
            SecretPlace::Basic(user) => in_basic(parts, user.as_deref(), &swap)?,
            SecretPlace::Aws { .. } => match &self.aws {
                Some(aws) => self.sign(parts, aws, put)?,
                None => false,
            },
        })
    }

    fn sign(&self, parts: &mut Parts, aws: &AwsKey, put: Put) -> Result<bool, Refusal> {
        let Some(signature) = sigv4::find(parts, aws.id.placeholder.expose())? else { return Ok(false) };
        if put == Put::Nothing {
            if let Some(token) = &aws.token {
                let swap = token.swap(put);
                in_headers(parts, Some("x-amz-security-token"), &swap)?;
                in_query(parts, "X-Amz-Security-Token", &swap)?;
            }
            return Ok(true);
        }
        let signer = Signer {
            id: aws.id.swap(put),
            token: aws.token.as_ref().map(|token| token.swap(put)),
            secret: Swap::new(self.placeholder.expose(), self.real.expose(), put),
        };
        sigv4::sign_again(parts, &signature, &signer)?;
        Ok(true)
    }
}

impl Pair {
    fn swap(&self, put: Put) -> Swap<'_> {
        Swap::new(self.placeholder.expose(), self.real.expose(), put)
    }
}

/// One value in place of another.
pub(super) struct Swap<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
}

impl<'a> Swap<'a> {
    fn new(placeholder: &'a str, real: &'a str, put: Put) -> Self {
        let to = match put {
            Put::Nothing => "",
            Put::Real => real,
        };
        Self { from: placeholder, to }
    }

    /// `text` with the other value, if the one is in it.
    fn in_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        let finder = memmem::Finder::new(self.from);
        let mut swapped = Vec::new();
        let mut done = 0;
        for at in finder.find_iter(text) {
            swapped.extend_from_slice(&text[done..at]);
            swapped.extend_from_slice(self.to.as_bytes());
            done = at + self.from.len();
        }
        (done > 0).then(|| {
            swapped.extend_from_slice(&text[done..]);
            swapped
        })
    }
}

pub(super) fn in_headers(parts: &mut Parts, only: Option<&str>, swap: &Swap<'_>) -> Result<bool, Refusal> {
    let mut any = false;
    for (name, value) in &mut parts.headers {
        if only.is_some_and(|only| only != name.as_str()) {
            continue;
        }
        let swapped = swap.in_text(value.as_bytes()).or_else(|| basic(name, value, None, swap));
        if let Some(swapped) = swapped {
            *value = sensitive(swapped)?;
            any = true;
        }
    }
    Ok(any)
}

fn in_basic(parts: &mut Parts, user: Option<&str>, swap: &Swap<'_>) -> Result<bool, Refusal> {
    let mut any = false;
    for (name, value) in &mut parts.headers {
        if let Some(swapped) = basic(name, value, user, swap) {
            *value = sensitive(swapped)?;
            any = true;
        }
    }
    Ok(any)
}

/// Basic authentication with the password swapped (RFC 7617), or with the user, where a token is all there is.
fn basic(name: &HeaderName, value: &HeaderValue, user: Option<&str>, swap: &Swap<'_>) -> Option<Vec<u8>> {
    let (scheme, encoded) =
        value.as_bytes().split_at_checked(6).filter(|_| *name == header::AUTHORIZATION)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut plain = BASE64.decode(encoded.trim_ascii()).ok()?;
    let colon = plain.iter().position(|&byte| byte == b':')?;
    let (theirs, password) = (&plain[..colon], &plain[colon + 1..]);
    let swapped = if user.is_none_or(|user| user.as_bytes() == theirs) && password == swap.from.as_bytes() {
        Some([theirs, b":", swap.to.as_bytes()].concat())
    } else if user.is_none() && theirs == swap.from.as_bytes() && matches!(password, b"" | b"x-oauth-basic") {
        Some([swap.to.as_bytes(), b":", password].concat())
    } else {
        None
    };
    plain.zeroize();
    let mut swapped = swapped?;
    let written = format!("Basic {}", BASE64.encode(&swapped)).into_bytes();
    swapped.zeroize();
    Some(written)
}

pub(super) fn in_query(parts: &mut Parts, key: &str, swap: &Swap<'_>) -> Result<bool, Refusal> {
    let Some(query) = parts.uri.query() else { return Ok(false) };
    let mut any = false;
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = (percent_decoded(name.as_bytes()) == key.as_bytes())
            .then(|| percent_decoded(value.as_bytes()))?;
        Some(format!("{name}={}", percent_encoded(&swap.in_text(&value)?)))
    };
    let pairs: Vec<String> = query
        .split('&')
        .map(|one| match pair(one) {
            Some(swapped) => {
                any = true;
                swapped
            }
            None => one.to_owned(),
        })
        .collect();
    if any {
        set_query(parts, &pairs.join("&"))?;
    }
    Ok(any)
}

pub(super) fn set_query(parts: &mut Parts, query: &str) -> Result<(), Refusal> {
    let unfit = |_| Refusal::new(Reason::Malformed, "a credential does not fit into its URL");
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    let path = uri.path_and_query.as_ref().map_or("/", PathAndQuery::path);
    let changed = PathAndQuery::try_from(format!("{path}?{query}")).map_err(|error| unfit(error.into()))?;
    uri.path_and_query = Some(changed);
    parts.uri = http::Uri::from_parts(uri).map_err(|error| unfit(http::Error::from(error)))?;
    Ok(())
}

/// All but RFC 3986's unreserved characters escaped: what signatures want, too.
pub(super) fn percent_encoded(text: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&HEXUPPER.encode(&[byte]));
        }
    }
    encoded
}

pub(super) fn sensitive(value: Vec<u8>) -> Result<HeaderValue, Refusal> {
    let mut value = HeaderValue::from_maybe_shared(bytes::Bytes::from(value))
        .map_err(|_| Refusal::new(Reason::Malformed, "a credential does not fit into its header"))?;
    value.set_sensitive(true);
    Ok(value)
}
