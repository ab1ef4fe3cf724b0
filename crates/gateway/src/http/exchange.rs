//! The record of one request and its answer.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;
use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use redoma_audit::event::{self, Message};
use redoma_audit::{Digest, Event, Text};

use super::Scope;
use crate::Reason;

/// Written when the last that has to do with it is gone, and once before if it takes long.
pub(crate) struct Exchange {
    scope: Arc<Scope>,
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    record: Record,
    refused: Option<Reason>,
    announced: bool,
}

/// What happened, as it came. It is made fit for the log when it is told, which nobody waits for.
pub(super) struct Record {
    event: event::Exchange,
    asked: HeaderMap,
    answered: HeaderMap,
    request: Part,
    response: Part,
}

/// Whose body.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Request,
    Response,
}

/// What is kept of a body.
#[derive(Default)]
struct Part {
    hasher: Option<Box<blake3::Hasher>>,
    bytes: u64,
    /// The beginning, if it may be text.
    start: Vec<u8>,
    text: bool,
    encoding: Option<String>,
    over: bool,
}

/// As much of a body as is shown.
const PREVIEW: usize = 4 << 10;
/// What takes longer is written before it is over.
const LONG: Duration = Duration::from_secs(1);
/// More headers than any message has.
const MOST_HEADERS: usize = 128;

/// Headers whose values are secrets, and words in the names of others.
const SECRET_HEADERS: [HeaderName; 4] =
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE, header::SET_COOKIE];
const SECRET_WORDS: [&str; 7] = ["token", "secret", "api-key", "apikey", "password", "session", "credential"];

impl Exchange {
    pub(super) fn begin(scope: &Arc<Scope>, number: u64, parts: &Parts) -> Arc<Self> {
        let scheme = if scope.secure { "https" } else { "http" };
        let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let url = format!("{scheme}://{}{path}", scope.authority);
        let started_us = jiff::Timestamp::now().as_microsecond().try_into().unwrap_or(0);
        Arc::new(Self {
            scope: Arc::clone(scope),
            begun: Instant::now(),
            state: Mutex::new(State {
                record: Record {
                    event: event::Exchange {
                        flow: scope.flow.number(),
                        number,
                        started_us,
                        answered_us: None,
                        finished_us: None,
                        version: Text::from(format!("{:?}", parts.version).trim_end_matches(".0")),
                        method: Text::from(parts.method.as_str()),
                        url: Text::from(url.as_str()),
                        request: Message::default(),
                        status: None,
                        response: None,
                        refused: None,
                        credentials: Vec::new(),
                    },
                    asked: parts.headers.clone(),
                    answered: HeaderMap::new(),
                    request: Part::of(&parts.headers),
                    response: Part::default(),
                },
                refused: None,
                announced: false,
            }),
        })
    }

    /// Credentials that were put in.
    pub(super) fn carries(&self, names: &[String]) {
        self.state().record.event.credentials = names.iter().map(|name| Text::from(name.as_str())).collect();
    }

    /// The answer's head is there.
    pub(super) fn answered<B>(&self, answer: &Response<B>) {
        let mut state = self.state();
        state.record.event.answered_us = Some(micros(self.begun));
        state.record.event.status = Some(answer.status().as_u16());
        state.record.event.response = Some(Message::default());
        state.record.answered = answer.headers().clone();
        state.record.response = Part::of(answer.headers());
    }

    /// It was not let through, or not to its end. That is what the flow ends with.
    pub(super) fn refused(&self, reason: Reason) {
        let mut state = self.state();
        if state.refused.is_none() {
            state.refused = Some(reason);
            state.record.event.refused = Some(Text::from(reason.name()));
        }
        drop(state);
        if reason != Reason::UpstreamFailed {
            self.scope.flow.blocked(reason);
        }
    }

    /// Why it did not go on, if it didn't.
    pub(super) fn stopped(&self) -> Option<Reason> {
        self.state().refused
    }

    /// A piece of a body went through.
    pub(super) fn piece(&self, side: Side, piece: &Bytes) {
        let mut state = self.state();
        state.part(side).add(piece);
        if !state.announced && self.begun.elapsed() > LONG {
            self.announce(&mut state);
        }
    }

    /// A body went through to its end.
    pub(super) fn end_of(&self, side: Side) {
        self.state().part(side).over = true;
    }

    /// It is known to take long.
    pub(super) fn goes_on(&self) {
        self.announce(&mut self.state());
    }

    fn announce(&self, state: &mut State) {
        state.announced = true;
        let event = state.record.so_far();
        self.scope.flow.sink().tell(Event::Exchange(event));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.refused(Reason::Internal);
        }
        let finished = micros(self.begun);
        let Record { event, asked, answered, request, response } =
            &mut self.state.get_mut().unwrap_or_else(PoisonError::into_inner).record;
        event.finished_us = Some(finished);
        self.scope.record(Record {
            event: event.clone(),
            asked: std::mem::take(asked),
            answered: std::mem::take(answered),
            request: std::mem::take(request),
            response: std::mem::take(response),
        });
    }
}

impl Record {
    /// As it is told while it goes on.
    fn so_far(&self) -> event::Exchange {
        let mut event = self.event.clone();
        event.request.headers = headers(&self.asked);
        if let Some(answer) = &mut event.response {
            answer.headers = headers(&self.answered);
        }
        event
    }

    /// As it is told at the end.
    pub(super) fn whole(&self) -> Event {
        let mut event = self.so_far();
        self.request.note(&mut event.request);
        if let Some(answer) = &mut event.response {
            self.response.note(answer);
        }
        Event::Exchange(event)
    }
}

impl State {
    fn part(&mut self, side: Side) -> &mut Part {
        match side {
            Side::Request => &mut self.record.request,
            Side::Response => &mut self.record.response,
        }
    }
}

impl Part {
    fn of(headers: &HeaderMap) -> Self {
        let value = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let text = value(header::CONTENT_TYPE).is_some_and(is_text);
        Self {
            text,
            encoding: value(header::CONTENT_ENCODING).map(str::to_ascii_lowercase),
            ..Self::default()
        }
    }

    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.hasher.get_or_insert_default().update(piece);
        if self.text && self.start.len() < PREVIEW {
            let room = PREVIEW - self.start.len();
            self.start.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// The hash is of the whole or not at all.
    fn note(&self, message: &mut Message) {
        message.bytes = self.bytes;
        if self.bytes > 0 && self.over {
            message.digest = self.hasher.as_ref().map(|hasher| Digest::from(hasher.finalize()));
        }
        if !self.start.is_empty() {
            let decoded = decoded(&self.start, self.encoding.as_deref());
            message.preview = Some(Text::from(&*String::from_utf8_lossy(&decoded)));
        }
    }
}

/// Types that are read as text.
fn is_text(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let applications =
        ["json", "xml", "javascript", "x-www-form-urlencoded", "graphql", "yaml", "toml", "x-ndjson"];
    kind.starts_with("text/") || applications.iter().any(|name| kind.ends_with(name))
}

/// The beginning of a body without its coding, as far as it can be told from its first bytes.
fn decoded(start: &[u8], encoding: Option<&str>) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match encoding {
        None | Some("identity") => return start.to_vec(),
        Some("gzip" | "x-gzip") => Box::new(flate2::read::GzDecoder::new(start)),
        Some("deflate") => Box::new(flate2::read::ZlibDecoder::new(start)),
        Some("br") => Box::new(brotli::Decompressor::new(start, PREVIEW)),
        Some("zstd") => match zstd::stream::read::Decoder::new(start) {
            Ok(decoder) => Box::new(decoder),
            Err(_) => return Vec::new(),
        },
        Some(_) => return Vec::new(),
    };
    let mut decoded = Vec::new();
    let mut piece = [0; 1024];
    while decoded.len() < PREVIEW {
        match reader.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => decoded.extend_from_slice(&piece[..length]),
        }
    }
    decoded.truncate(PREVIEW);
    decoded
}

fn headers(headers: &HeaderMap) -> Vec<(Text, Text)> {
    let shown = |(name, value): (&HeaderName, &http::HeaderValue)| {
        let value = match is_secret(name) {
            true => Text::from("[redacted]"),
            false => Text::from(&*String::from_utf8_lossy(value.as_bytes())),
        };
        (Text::from(name.as_str()), value)
    };
    headers.iter().take(MOST_HEADERS).map(shown).collect()
}

fn is_secret(name: &HeaderName) -> bool {
    SECRET_HEADERS.contains(name) || SECRET_WORDS.iter().any(|word| name.as_str().contains(word))
}

fn micros(since: Instant) -> u64 {
    since.elapsed().as_micros().try_into().unwrap_or(u64::MAX)
}
