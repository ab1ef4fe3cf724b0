//! What is done about what was found.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use http::header::{self, HeaderName};
use http::request::Parts;
use redoma_audit::event::{Alert, Severity};
use redoma_audit::{Event, Text};
use redoma_policy::{LeakAction, Leaks};

use super::decode::{Undecodable, percent_decoded};
use super::frames::Frames;
use super::{Class, Decoder, Finding, Known, Scanner, Stream};
use crate::guard::{Framing, Guard, Scan};
use crate::refuse::Refusal;
use crate::secrets::{Credentials, Put};
use crate::{Flow, Reason, Secret, Target};

/// Looks at everything that leaves, and puts credentials in.
pub(crate) struct Watchful(Arc<Watch>);

struct Watch {
    scanner: Arc<Scanner>,
    leaks: Leaks,
    credentials: Credentials,
    /// What was told once: the same token leaves with every request.
    told: Mutex<HashSet<(Target, String)>>,
}

/// One body.
struct BodyScan {
    watch: Arc<Watch>,
    flow: Arc<Flow>,
    place: &'static str,
    raw: Stream,
    decoder: Decoding,
}

/// What is known about how a body is written.
enum Decoding {
    /// Its first bytes tell.
    Open {
        encoding: Option<String>,
        form: bool,
    },
    Plain,
    By(Box<Decoder>),
    /// Frames, whose payload is a text of its own.
    Frames(Frames, Stream),
}

/// Something told more often than this is told again: memory is bounded.
const MOST_TOLD: usize = 4096;
/// Where a token is expected: it is how a client says who it is.
const CREDENTIAL_HEADERS: [HeaderName; 3] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];

impl Watchful {
    /// Looks for the credentials, the values of decoys (by name), and what the policy names.
    pub(crate) fn new(leaks: Leaks, credentials: Credentials, decoys: Vec<(String, Secret<String>)>) -> Self {
        let decoys = decoys.into_iter().map(|(name, value)| Known { name, class: Class::Decoy, value });
        let known: Vec<Known> = credentials.known().into_iter().chain(decoys).collect();
        let scanner = Arc::new(Scanner::new(&known, &leaks));
        Self(Arc::new(Watch { scanner, leaks, credentials, told: Mutex::default() }))
    }
}

impl Guard for Watchful {
    fn head(&self, flow: &Flow, parts: &mut Parts) -> Result<Vec<String>, Refusal> {
        let watch = &self.0;
        if watch.scanner.is_idle() {
            return Ok(Vec::new());
        }
        let verified =
            !watch.credentials.is_empty() && (flow.is_in_tls() || flow.target().host.is_loopback());
        if !verified {
            watch.look_at_head(flow, parts)?;
            return Ok(Vec::new());
        }
        let mut without = parts.clone();
        watch.credentials.apply(&mut without, flow.target(), Put::Nothing)?;
        watch.look_at_head(flow, &without)?;
        watch.credentials.apply(parts, flow.target(), Put::Real)
    }

    fn needs_body(&self, flow: &Flow, parts: &Parts) -> bool {
        self.0.credentials.need_body(parts, flow.target())
    }

    fn body(&self, flow: &Arc<Flow>, parts: &Parts) -> Option<Box<dyn Scan>> {
        if self.0.scanner.is_idle() {
            return None;
        }
        let text = |name| parts.headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
        let encoding = text(header::CONTENT_ENCODING).filter(|name| *name != "identity").map(str::to_owned);
        let form = text(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        Some(Box::new(self.0.scan(flow, "the body", Decoding::Open { encoding, form })))
    }

    fn connection(&self, flow: &Arc<Flow>, framing: Framing) -> Option<Box<dyn Scan>> {
        if self.0.scanner.is_idle() {
            return None;
        }
        let decoder = match framing {
            Framing::None => Decoding::Plain,
            Framing::WebSocket => Decoding::Frames(Frames::default(), Stream::new()),
        };
        Some(Box::new(self.0.scan(flow, "the connection", decoder)))
    }
}

// === impl Watch ===

impl Watch {
    fn scan(self: &Arc<Self>, flow: &Arc<Flow>, place: &'static str, decoder: Decoding) -> BodyScan {
        BodyScan { watch: Arc::clone(self), flow: Arc::clone(flow), place, raw: Stream::new(), decoder }
    }

    fn look_at_head(&self, flow: &Flow, parts: &Parts) -> Result<(), Refusal> {
        let url = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        self.look(flow, "the URL", false, url.as_bytes())?;
        if url.contains(['%', '+']) {
            self.look(flow, "the URL", false, &percent_decoded(url.as_bytes()))?;
        }
        for (name, value) in &parts.headers {
            let expected = CREDENTIAL_HEADERS.contains(name)
                || name.as_str().ends_with("-key")
                || name.as_str().ends_with("-token");
            self.look(flow, &format!("the header {name}"), expected, value.as_bytes())?;
        }
        Ok(())
    }

    fn look(&self, flow: &Flow, place: &str, expected: bool, text: &[u8]) -> Result<(), Refusal> {
        let found = self.scanner.all(text);
        self.weigh(flow, place, expected, &found)
    }

    /// Tells of what was found, and whether it must not leave.
    fn weigh(&self, flow: &Flow, place: &str, expected: bool, found: &[Finding]) -> Result<(), Refusal> {
        let mut refusal = None;
        for finding in found {
            let action = self.action(flow, finding);
            if action != LeakAction::Off {
                self.tell(flow, place, expected, finding, action);
            }
            if action == LeakAction::Block && refusal.is_none() {
                refusal = Some(self.refusal(flow, place, finding));
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// A credential's own host has the real one: what stands for it says nothing new there. An agent that printed its
    /// variables has the placeholder in all that it says from then on.
    fn action(&self, flow: &Flow, finding: &Finding) -> LeakAction {
        let known = matches!(finding.class, Class::Placeholder | Class::Credential);
        if known && self.credentials.is_for(&finding.name, &flow.target().host) {
            return LeakAction::Alert;
        }
        finding.class.action(&self.leaks)
    }

    fn tell(&self, flow: &Flow, place: &str, expected: bool, finding: &Finding, action: LeakAction) {
        let blocked = action == LeakAction::Block;
        let new = self.is_new(flow, finding.in_words());
        // What is refused is told each time: there is a flow's record for each, too.
        if !new && !blocked {
            return;
        }
        let severity = match (blocked, expected) {
            (true, _) => Severity::Critical,
            (false, true) => Severity::Notice,
            (false, false) => Severity::Warning,
        };
        let ended = if blocked { "was kept from leaving" } else { "left" };
        let message = format!("{} {ended} to {} in {place}", finding.in_words(), flow.target());
        flow.sink().tell(Event::Alert(Alert {
            rule: Text::from(finding.class.rule()),
            severity,
            message: Text::from(message),
            path: None,
            pid: flow.process().map(|process| process.pid),
        }));
    }

    /// Whether nobody was told of it yet, for this host.
    fn is_new(&self, flow: &Flow, what: String) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        told.insert((flow.target().clone(), what))
    }

    fn refusal(&self, flow: &Flow, place: &str, finding: &Finding) -> Refusal {
        let because = format!("{} is in {place}", finding.in_words());
        let hint = match finding.class {
            Class::Placeholder | Class::Credential => {
                format!(
                    "name {} in the `hosts` of [secrets.{}] if it belongs there",
                    flow.target().host,
                    finding.name
                )
            }
            class => format!(
                "set {} = \"alert\" in [network.leaks] to let it pass",
                class.rule().trim_start_matches("leaks.")
            ),
        };
        flow.set_detail(&because);
        Refusal::new(Reason::SecretDetected, because).unless(Some(hint))
    }
}

impl Class {
    /// The alert's rule: the policy's key where there is one.
    fn rule(self) -> &'static str {
        match self {
            Self::Placeholder => "leaks.placeholder",
            Self::Credential => "leaks.credential",
            Self::Decoy => "leaks.decoys",
            Self::PrivateKey => "leaks.private_keys",
            Self::Token => "leaks.tokens",
            Self::Personal => "leaks.personal",
        }
    }
}

impl Finding {
    fn in_words(&self) -> String {
        let Self { class, name, excerpt, .. } = self;
        match class {
            Class::Placeholder | Class::Credential | Class::Decoy => format!("{} {name}", class.in_words()),
            Class::PrivateKey => format!("{} ({})", class.in_words(), excerpt.to_lowercase()),
            Class::Token | Class::Personal => format!("{} ({name}, {excerpt})", class.in_words()),
        }
    }
}

// === impl BodyScan ===

impl BodyScan {
    fn weigh(&self, found: &[Finding]) -> Result<(), Reason> {
        self.watch.weigh(&self.flow, self.place, false, found).map_err(|refusal| refusal.reason)
    }

    /// The first piece tells how it is written.
    fn decide(&mut self, piece: &[u8]) -> Result<(), Undecodable> {
        let Decoding::Open { encoding, form } = &self.decoder else { return Ok(()) };
        let scanner = &self.watch.scanner;
        let decoder = match encoding {
            Some(encoding) => Decoder::for_encoding(encoding, scanner, piece)?,
            None if *form => Some(Decoder::for_form(scanner)),
            None => Decoder::for_file(piece, scanner)?,
        };
        let unknown = encoding.as_deref().filter(|_| decoder.is_none());
        if let Some(encoding) = unknown {
            self.unseen(&format!("is written in {encoding}, which is not looked into"));
        }
        self.decoder = decoder.map_or(Decoding::Plain, |decoder| Decoding::By(Box::new(decoder)));
        Ok(())
    }

    fn decoded(&mut self, found: Result<Vec<Finding>, Undecodable>) -> Result<(), Reason> {
        match found {
            Ok(found) => self.weigh(&found),
            Err(Undecodable::Broken) => {
                self.unseen("is not what it says it is: it cannot be decoded");
                self.decoder = Decoding::Plain;
                Ok(())
            }
            Err(Undecodable::Bomb) => {
                self.unseen("becomes too large when it is decoded");
                Err(Reason::Malformed)
            }
            Err(Undecodable::Busy) => {
                self.unseen("is compressed like too many others at the same time");
                Err(Reason::Budget)
            }
        }
    }

    fn unseen(&self, why: &str) {
        if !self.watch.is_new(&self.flow, why.to_owned()) {
            return;
        }
        self.flow.sink().tell(Event::Alert(Alert {
            rule: Text::from("leaks.unseen"),
            severity: Severity::Notice,
            message: Text::from(format!("a body to {} {why}", self.flow.target())),
            path: None,
            pid: self.flow.process().map(|process| process.pid),
        }));
    }
}

impl Scan for BodyScan {
    fn push(&mut self, piece: &[u8]) -> Result<(), Reason> {
        if piece.is_empty() {
            return Ok(());
        }
        let decided = self.decide(piece);
        self.decoded(decided.map(|()| Vec::new()))?;
        let found = self.raw.push(&self.watch.scanner, piece);
        self.weigh(&found)?;
        match &mut self.decoder {
            Decoding::By(decoder) => {
                let found = decoder.push(piece);
                self.decoded(found)
            }
            Decoding::Frames(frames, said) => {
                let found = said.push(&self.watch.scanner, &frames.payload(piece));
                self.weigh(&found)
            }
            Decoding::Open { .. } | Decoding::Plain => Ok(()),
        }
    }

    fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Reason> {
        let mut values = trailers.values();
        values.try_for_each(|value| {
            let found = self.watch.scanner.all(value.as_bytes());
            self.weigh(&found)
        })
    }

    fn end(&mut self) -> Result<(), Reason> {
        let found = self.raw.end(&self.watch.scanner);
        self.weigh(&found)?;
        match &mut self.decoder {
            Decoding::By(decoder) => {
                let found = decoder.end();
                self.decoded(found)
            }
            Decoding::Frames(_, said) => {
                let found = said.end(&self.watch.scanner);
                self.weigh(&found)
            }
            Decoding::Open { .. } | Decoding::Plain => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
