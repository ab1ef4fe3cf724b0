//! What is let through of HTTP: every request by itself, and no message that two servers could read in two ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use redoma_policy::{Authority, RequestProblem};

use super::exchange::Exchange;
use super::{LONGEST_HEAD, Scope, Version};
use crate::refuse::Refusal;
use crate::{Reason, Target};

/// Counts what a request sends.
pub(crate) struct Meter {
    /// What it may still send, by itself.
    left: Option<u64>,
    /// What its rule may still send in this session, and the limit.
    session: Option<(Arc<AtomicU64>, u64)>,
}

/// Between two neighbours only (RFC 9110, section 7.6.1). `TE` is kept: it says that trailers are welcome.
const HOP_BY_HOP: [&str; 6] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "upgrade",
    "http2-settings",
];

/// Judges a request; with what counts its body, where that is limited.
pub(super) fn judge(scope: &Scope, parts: &mut Parts) -> Result<Option<Meter>, Refusal> {
    let size = size(parts);
    if size > LONGEST_HEAD {
        let because = format!("its head is longer than {} KiB", LONGEST_HEAD >> 10);
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refusal::new(Reason::Malformed, because).with_status(status));
    }
    framing(parts, scope.version)?;
    host(scope, parts)?;
    rule(scope, parts, size as u64)
}

/// Makes it fit to be passed on.
pub(super) fn finish(scope: &Scope, parts: &mut Parts, exchange: &Exchange) -> Result<(), Refusal> {
    let credentials = scope.gateway.guard.head(&scope.flow, parts)?;
    exchange.carries(&credentials);
    clean(&mut parts.headers);
    Ok(())
}

/// About as many bytes as the head has on the wire.
fn size(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let field = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    line + parts.headers.iter().map(field).sum::<usize>()
}

/// HTTP/1 says in several ways where a message ends; servers differ where they contradict each other (RFC 9112, section 6.3).
fn framing(parts: &Parts, version: Version) -> Result<(), Refusal> {
    let malformed = |what: &str| Err(Refusal::new(Reason::Malformed, what));
    if parts.method == Method::CONNECT {
        return malformed("a connection inside a connection is asked for");
    }
    let all = |name: HeaderName| parts.headers.get_all(name).iter().collect::<Vec<_>>();
    let (lengths, codings) = (all(header::CONTENT_LENGTH), all(header::TRANSFER_ENCODING));
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(()),
        ([length], []) if length.as_bytes().iter().all(u8::is_ascii_digit) => Ok(()),
        ([], [coding]) if version == Version::One && coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Ok(())
        }
        _ => malformed("it says in more than one way, or in an odd way, where it ends"),
    }
}

/// The request must be for the host that was decided on.
fn host(scope: &Scope, parts: &mut Parts) -> Result<(), Refusal> {
    let target = scope.flow.target();
    let hosts: Vec<_> = parts.headers.get_all(header::HOST).iter().collect();
    // As clients write it.
    let is_usual = |authority: &[u8]| authority == scope.authority.as_bytes();
    let means = |authority: &[u8]| is_usual(authority) || means(authority, target, scope.secure);
    let in_uri = parts.uri.authority().map(|authority| means(authority.as_str().as_bytes()));
    let in_header = match hosts.as_slice() {
        [] => None,
        [host] => Some(means(host.as_bytes())),
        _ => Some(false),
    };
    let named = match (in_uri, in_header) {
        // HTTP/1.0 knows no such header.
        (None, None) => parts.version == http::Version::HTTP_10,
        (uri, header) => uri.unwrap_or(true) && header.unwrap_or(true),
    };
    if !named {
        return Err(Refusal::new(Reason::HostMismatch, "the request names another host than the connection"));
    }
    if scope.version == Version::One && parts.uri.authority().is_some() {
        let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        parts.uri =
            path.parse::<Uri>().map_err(|_| Refusal::new(Reason::Malformed, "its URL is malformed"))?;
    }
    Ok(())
}

fn means(authority: &[u8], target: &Target, secure: bool) -> bool {
    let usual = if secure { 443 } else { 80 };
    let text = std::str::from_utf8(authority).unwrap_or_default();
    text.parse::<Authority>().is_ok_and(|authority| {
        authority.host == target.host && authority.port.unwrap_or(usual) == target.port
    })
}

/// What the rules say of the request, and what it may send.
fn rule(scope: &Scope, parts: &Parts, head: u64) -> Result<Option<Meter>, Refusal> {
    let (gateway, target) = (&scope.gateway, scope.flow.target());
    let connection = gateway.policy.connection(&target.host, target.port, gateway.tier);
    let path = parts.uri.path_and_query().map_or(parts.uri.path(), http::uri::PathAndQuery::as_str);
    let refuse = |problem: RequestProblem| {
        let reason = match problem {
            RequestProblem::Method => Reason::Method,
            RequestProblem::Path | RequestProblem::Override => Reason::Path,
            RequestProblem::Ambiguous(_) => Reason::Malformed,
        };
        let change = connection.verdict.rule.as_ref().map(|rule| format!("the rule is {rule}"));
        Refusal::new(reason, format!("{} {}: {problem}", parts.method, parts.uri.path())).unless(change)
    };
    let Some(rule) = connection.permits(parts.method.as_str(), path).map_err(refuse)? else {
        return Ok(None);
    };
    for name in parts.headers.keys() {
        rule.permits_header(name.as_str()).map_err(refuse)?;
    }
    gateway.budgets.count_one(rule)?;
    let session = rule.max_upload_session.map(|limit| (gateway.budgets.sent_by(rule), limit.0));
    let mut meter = Meter { left: rule.max_upload.map(|limit| limit.0), session };
    let announced =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let too_much = |reason: Reason| Refusal::new(reason, reason.in_words());
    meter.could_send(announced.unwrap_or(0)).map_err(too_much)?;
    // Heads carry data as well: many small requests are no way around.
    meter.count_head(head).map_err(too_much)?;
    Ok(meter.limits().then_some(meter))
}

/// Headers that are for us, and those that a `Connection` header takes along.
fn clean(headers: &mut HeaderMap) {
    let nominated: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != header::TE)
        .collect();
    let closes = nominated.iter().any(|name| name == "close");
    for name in nominated {
        // What the message needs is not for the taking.
        if ![header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(&name) {
            headers.remove(name);
        }
    }
    headers.remove(header::CONNECTION);
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    if closes {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// The same for an answer.
pub(super) fn clean_answer<B>(answer: &mut Response<B>, scope: &Scope) {
    clean(answer.headers_mut());
    // Of the two, the client is to hear the one that we went by (RFC 9112, section 6.3).
    if answer.headers().contains_key(header::TRANSFER_ENCODING) {
        answer.headers_mut().remove(header::CONTENT_LENGTH);
    }
    if scope.version == Version::Two {
        answer.headers_mut().remove(header::CONNECTION);
    } else if scope.one_request {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

impl Meter {
    fn limits(&self) -> bool {
        self.left.is_some() || self.session.is_some()
    }

    /// Whether this much could go.
    fn could_send(&self, bytes: u64) -> Result<(), Reason> {
        let by_session = self
            .session
            .as_ref()
            .is_none_or(|(sent, limit)| sent.load(Ordering::Relaxed).saturating_add(bytes) <= *limit);
        let by_itself = self.left.is_none_or(|left| bytes <= left);
        if by_session && by_itself { Ok(()) } else { Err(Reason::Budget) }
    }

    /// Counts what goes.
    pub(super) fn count(&mut self, bytes: u64) -> Result<(), Reason> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes).ok_or(Reason::Budget)?;
        }
        self.count_head(bytes)
    }

    /// Counts what only the session's limit is about.
    fn count_head(&mut self, bytes: u64) -> Result<(), Reason> {
        match &self.session {
            Some((sent, limit))
                if sent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > *limit =>
            {
                Err(Reason::Budget)
            }
            _ => Ok(()),
        }
    }
}
