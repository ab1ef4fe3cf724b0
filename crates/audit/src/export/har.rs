//! HTTP Archive 1.2, as browsers' tools and proxies read it: <http://www.softwareishard.com/blog/har-12-spec/>.
//!
//! An entry is an exchange that was seen and let through. What nobody saw (opaque) and what did not happen (blocked) is listed
//! beside the entries, in fields of our own (`_flows`, `_refused`), so that an archive without anything suspicious in its
//! entries does not read as one of everything that was sent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::event::{Exchange, Flow, Message, Visibility};
use crate::{Event, SessionId, Text};

/// As an exchange, the reason of one that the server failed, and not the policy.
const FAILED: &str = "upstream-failed";

/// An archive of what `events` tell of a session. Of records with the same numbers the last counts.
#[must_use]
pub fn har(session: SessionId, events: impl IntoIterator<Item = Event>) -> impl Serialize {
    let (mut flows, mut exchanges) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::Flow(flow) => drop(flows.insert(flow.flow, flow)),
            Event::Exchange(exchange) => drop(exchanges.insert((exchange.flow, exchange.number), exchange)),
            _ => {}
        }
    }
    let mut exchanges: Vec<Exchange> = exchanges.into_values().collect();
    exchanges.sort_by_key(|exchange| (exchange.started_us, exchange.flow, exchange.number));
    let (refused, seen): (Vec<_>, Vec<_>) = exchanges.iter().partition(|exchange| is_refused(exchange));
    let unseen = flows.values().filter(|flow| flow.visibility != Visibility::Inspected);
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "redoma", "version": env!("CARGO_PKG_VERSION") },
        "entries": seen.iter().map(|exchange| entry(exchange, flows.get(&exchange.flow))).collect::<Vec<_>>(),
        "comment": format!(
            "Session {session}. Entries are what was looked into; _flows are connections that passed unseen or were \
             blocked, _refused are requests that were not let through."
        ),
        "_flows": unseen.collect::<Vec<_>>(),
        "_refused": refused.iter().map(|exchange| request_refused(exchange)).collect::<Vec<_>>(),
    }})
}

fn is_refused(exchange: &Exchange) -> bool {
    exchange.refused.as_ref().is_some_and(|reason| reason.as_str() != FAILED)
}

fn entry(exchange: &Exchange, flow: Option<&Flow>) -> Value {
    let wait = exchange.answered_us.or(exchange.finished_us).unwrap_or(0);
    let receive = exchange.finished_us.unwrap_or(wait).saturating_sub(wait);
    let mut entry = json!({
        "startedDateTime": started(exchange),
        "time": milliseconds(wait + receive),
        "request": request(exchange),
        "response": response(exchange),
        "cache": {},
        // Connecting is the gateway's, not the client's: it is not part of the exchange.
        "timings": { "send": 0, "wait": milliseconds(wait), "receive": milliseconds(receive) },
        "connection": exchange.flow.to_string(),
    });
    if let Some(address) = flow.and_then(|flow| flow.address) {
        entry["serverIPAddress"] = json!(address);
    }
    if let Some(process) = flow.and_then(|flow| flow.process.as_ref()) {
        entry["_process"] = json!(process);
    }
    if let Some(tls) = flow.and_then(|flow| flow.tls.as_ref()) {
        entry["_tls"] = json!(tls);
    }
    if let Some(reason) = &exchange.refused {
        entry["_error"] = json!(reason);
    }
    if exchange.finished_us.is_none() {
        entry["comment"] = json!("still on its way when the record was read");
    }
    entry
}

fn request(exchange: &Exchange) -> Value {
    let message = &exchange.request;
    let mut request = json!({
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": exchange.version,
        // The record keeps no cookies' values.
        "cookies": [],
        "headers": headers(message),
        "queryString": query(exchange.url.as_str()),
        "headersSize": -1,
        "bodySize": message.bytes,
    });
    if message.bytes > 0 {
        let mut data = body(message);
        data.entry("text").or_insert_with(|| json!(""));
        request["postData"] = Value::Object(data);
    }
    request
}

/// Without an answer the status is 0, as browsers write it.
fn response(exchange: &Exchange) -> Value {
    let nothing = Message::default();
    let message = exchange.response.as_ref().unwrap_or(&nothing);
    let mut content = body(message);
    content.insert("size".to_owned(), json!(message.bytes));
    json!({
        "status": exchange.status.unwrap_or(0),
        // HTTP/2 has no words for it, and the record keeps none.
        "statusText": "",
        "httpVersion": exchange.version,
        "cookies": [],
        "headers": headers(message),
        "content": content,
        "redirectURL": header(message, "location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": if exchange.response.is_some() { json!(message.bytes) } else { json!(-1) },
    })
}

/// Its type, and as much of it as the record has.
fn body(message: &Message) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("mimeType".to_owned(), json!(header(message, "content-type").unwrap_or_default()));
    if let Some(preview) = &message.preview {
        body.insert("text".to_owned(), json!(preview));
    }
    if message.bytes > 0 {
        body.insert("comment".to_owned(), json!("at most the beginning, decoded and redacted"));
    }
    if let Some(digest) = message.digest {
        body.insert("_blake3".to_owned(), json!(digest.to_string()));
    }
    body
}

fn headers(message: &Message) -> Vec<Value> {
    message.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn header<'m>(message: &'m Message, wanted: &str) -> Option<&'m str> {
    let mut found = message.headers.iter().filter(|(name, _)| name.as_str().eq_ignore_ascii_case(wanted));
    found.next().map(|(_, value)| value.as_str())
}

fn query(url: &str) -> Vec<Value> {
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
    let pairs = form_urlencoded::parse(query.as_bytes());
    // Decoding may uncover what the rules about secrets did not see in its encoded form.
    pairs.map(|(name, value)| json!({ "name": Text::from(&*name), "value": Text::from(&*value) })).collect()
}

fn request_refused(exchange: &Exchange) -> Value {
    json!({
        "startedDateTime": started(exchange),
        "connection": exchange.flow.to_string(),
        "request": request(exchange),
        "reason": exchange.refused,
    })
}

fn started(exchange: &Exchange) -> String {
    let time = i64::try_from(exchange.started_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    format!("{:.6}", time.unwrap_or(Timestamp::UNIX_EPOCH))
}

/// HAR counts in milliseconds.
fn milliseconds(us: u64) -> f64 {
    // Exact up to 285 years.
    #[expect(clippy::cast_precision_loss)]
    let us = us as f64;
    us / 1000.0
}

#[cfg(test)]
mod tests;
