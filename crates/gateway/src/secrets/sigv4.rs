//! Signatures of AWS (Signature Version 4), made with the placeholder inside and made again with the real key here.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>. Services differ in how they
//! write a path before they sign it. The client's own signature tells: the way that leads to it, with the placeholder as
//! the key, is the way to sign. So a request that was not signed with the placeholder is not signed again either.

use std::borrow::Cow;

use aws_lc_rs::{digest, hmac};
use data_encoding::HEXLOWER;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;

use super::apply::{Swap, in_headers, percent_encoded, sensitive, set_query};
use crate::Reason;
use crate::refuse::Refusal;
use crate::scan::percent_decoded;

/// The key that is put in.
pub(super) struct Signer<'a> {
    pub(super) id: Swap<'a>,
    pub(super) token: Option<Swap<'a>>,
    pub(super) secret: Swap<'a>,
}

/// What a request says about its signature.
#[derive(Debug)]
pub(super) struct Signature {
    place: Place,
    date: String,
    /// Day, region, service, and `aws4_request`.
    scope: String,
    signed: Vec<String>,
    hex: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In `Authorization`.
    Header,
    /// In the query: a URL that was signed beforehand.
    Query,
}

/// The hash of a body that was taken in as a whole, among a request's extensions.
#[derive(Clone)]
pub(crate) struct BodyHash(String);

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const CONTENT_HASH: &str = "x-amz-content-sha256";

/// The signature that was made with the key of this id, if there is one.
pub(super) fn find(parts: &Parts, id: &str) -> Result<Option<Signature>, Refusal> {
    let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(value) = header.filter(|value| value.contains(id)) {
        return in_header(value, &parts.headers, id).map(Some);
    }
    match parts.uri.query() {
        Some(query) if query.contains(id) => in_url(query, id),
        _ => Ok(None),
    }
}

fn in_header(value: &str, headers: &HeaderMap, id: &str) -> Result<Signature, Refusal> {
    let fields =
        value.strip_prefix(ALGORITHM).ok_or_else(|| unfit("it is not of the kind AWS4-HMAC-SHA256"))?;
    let field = |name: &str| {
        let mut fields = fields.split(',').filter_map(|field| field.trim().split_once('='));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let date = headers.get("x-amz-date").and_then(|date| date.to_str().ok());
    let whole = (|| {
        let scope = field("Credential")?.strip_prefix(id)?.strip_prefix('/')?;
        let signed = field("SignedHeaders")?;
        Some(Signature::new(Place::Header, date?, scope, signed, field("Signature")?))
    })();
    whole.ok_or_else(|| unfit("it is not complete"))
}

fn in_url(query: &str, id: &str) -> Result<Option<Signature>, Refusal> {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(key, _)| *key == name)?.1;
        String::from_utf8(decoded(value)).ok()
    };
    let Some(credential) = value("X-Amz-Credential") else { return Ok(None) };
    if value("X-Amz-Algorithm").as_deref() != Some(ALGORITHM) {
        return Err(unfit("it is not of the kind AWS4-HMAC-SHA256"));
    }
    let whole = (|| {
        let scope = credential.strip_prefix(id)?.strip_prefix('/')?;
        let (date, signed) = (value("X-Amz-Date")?, value("X-Amz-SignedHeaders")?);
        Some(Signature::new(Place::Query, &date, scope, &signed, &value("X-Amz-Signature")?))
    })();
    whole.map(Some).ok_or_else(|| unfit("it is not complete"))
}

/// Whether the body's hash is signed, and not in the head: only S3's clients always say it.
pub(super) fn needs_body(parts: &Parts, id: &str) -> bool {
    let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.is_some_and(|value| value.contains(id)) && !parts.headers.contains_key(CONTENT_HASH)
}

/// Signs again, as the client signed, with the real key.
pub(super) fn sign_again(parts: &mut Parts, old: &Signature, signer: &Signer<'_>) -> Result<(), Refusal> {
    let payloads = payloads(parts, old.place)?;
    let ways = PATHS.iter().flat_map(|path| payloads.iter().map(move |payload| (path, payload)));
    let made = |parts: &Parts, path: &fn(&str) -> String, payload: &str, secret: &str| {
        let canonical = canonical(parts, old, path(parts.uri.path()), payload);
        sign(secret, &old.date, &old.scope, &canonical)
    };
    let mut ways = ways.filter(|(path, payload)| made(parts, path, payload, signer.secret.from) == old.hex);
    let Some((path, payload)) = ways.next() else {
        return Err(unfit("it does not belong to this request, or its body's hash is not in its head"));
    };
    match old.place {
        Place::Header => {
            if let Some(token) = &signer.token {
                in_headers(parts, Some("x-amz-security-token"), token)?;
            }
            let hex = made(parts, path, payload, signer.secret.to);
            let signed = old.signed.join(";");
            let (id, scope) = (signer.id.to, &old.scope);
            let value =
                format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={signed}, Signature={hex}");
            parts.headers.insert(header::AUTHORIZATION, sensitive(value.into_bytes())?);
        }
        Place::Query => {
            let mut changed = vec![("X-Amz-Credential", format!("{}/{}", signer.id.to, old.scope))];
            changed.extend(signer.token.iter().map(|token| ("X-Amz-Security-Token", token.to.to_owned())));
            replace(parts, &changed)?;
            let hex = made(parts, path, payload, signer.secret.to);
            replace(parts, &[("X-Amz-Signature", hex)])?;
        }
    }
    Ok(())
}

/// What the body may have been signed as.
fn payloads(parts: &Parts, place: Place) -> Result<Vec<String>, Refusal> {
    let said = parts.headers.get(CONTENT_HASH).map(HeaderValue::to_str);
    if let Some(said) = said {
        let said = said.map_err(|_| unfit("its body's hash is malformed"))?;
        if said.starts_with("STREAMING-") && said != "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
            return Err(unfit("each piece of its body is signed by itself, which cannot be made again"));
        }
        return Ok(vec![said.to_owned()]);
    }
    let known = parts.extensions.get::<BodyHash>().map(|hash| hash.0.clone());
    let mut payloads = vec![known.unwrap_or_else(|| hash(b""))];
    if place == Place::Query {
        payloads.push(UNSIGNED.to_owned());
    }
    Ok(payloads)
}

/// How services write a path: as it is sent (S3); escaped once more (all others); and both as a client may have meant them.
const PATHS: [fn(&str) -> String; 4] = [
    str::to_owned,
    |path| segments(path, |segment| percent_encoded(segment.as_bytes())),
    |path| segments(path, |segment| percent_encoded(&decoded(segment))),
    |path| segments(&without_dots(path), |segment| percent_encoded(segment.as_bytes())),
];

fn segments(path: &str, each: impl Fn(&str) -> String) -> String {
    path.split('/').map(each).collect::<Vec<_>>().join("/")
}

/// RFC 3986, section 5.2.4, and no segments without a name.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

/// The request in the form that is signed.
fn canonical(parts: &Parts, signature: &Signature, path: String, payload: &str) -> String {
    let path = if path.is_empty() { "/".to_owned() } else { path };
    let mut pairs: Vec<(String, String)> = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(key, _)| signature.place == Place::Header || *key != "X-Amz-Signature")
        .map(|(key, value)| (percent_encoded(&decoded(key)), percent_encoded(&decoded(value))))
        .collect();
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let headers: String =
        signature.signed.iter().map(|name| format!("{name}:{}\n", header_value(parts, name))).collect();
    let signed = signature.signed.join(";");
    format!("{}\n{path}\n{}\n{headers}\n{signed}\n{payload}", parts.method, query.join("&"))
}

fn header_value(parts: &Parts, name: &str) -> String {
    let values = parts.headers.get_all(name).iter();
    let mut values: Vec<Cow<'_, str>> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    if values.is_empty() && name == "host" {
        values.extend(parts.uri.authority().map(|authority| authority.as_str().into()));
    }
    let plain = values.iter().map(|value| value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    plain.collect::<Vec<_>>().join(",")
}

fn sign(secret: &str, date: &str, scope: &str, canonical: &str) -> String {
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hash(canonical.as_bytes()));
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| hmac(&key, part));
    HEXLOWER.encode(&hmac(&key, &text))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// A query's pairs with other values for some keys, in their order.
fn replace(parts: &mut Parts, changed: &[(&str, String)]) -> Result<(), Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let pair = |pair: &str| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        match changed.iter().find(|(name, _)| *name == key) {
            Some((_, value)) => format!("{key}={}", percent_encoded(value.as_bytes())),
            None => pair.to_owned(),
        }
    };
    let query = query.split('&').map(pair).collect::<Vec<_>>().join("&");
    set_query(parts, &query)
}

/// A `+` is one: signatures know no form.
fn decoded(text: &str) -> Vec<u8> {
    percent_decoded(text.replace('+', "%2B").as_bytes())
}

fn unfit(why: &str) -> Refusal {
    Refusal::new(Reason::Malformed, format!("the request's signature for AWS cannot be made again: {why}"))
}

impl BodyHash {
    pub(crate) fn of(body: &[u8]) -> Self {
        Self(hash(body))
    }
}

impl Signature {
    fn new(place: Place, date: &str, scope: &str, signed: &str, hex: &str) -> Self {
        let signed = signed.split(';').map(str::to_owned).collect();
        Self { place, date: date.to_owned(), scope: scope.to_owned(), signed, hex: hex.to_owned() }
    }
}

#[cfg(test)]
mod tests;
