//! One connection, from its first byte to its last record.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use redoma_audit::event::{self, Direction, Process, Tls, Visibility};
use redoma_audit::export::pcapng::Side;
use redoma_audit::{Event, Text};
use redoma_policy::Host;

use crate::{Reason, Recorder, Sink};

/// Where a connection wants to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The name behind the address, or the address itself.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// Numbers flows and writes their records.
pub struct Flows {
    sink: Arc<dyn Sink>,
    recorder: Option<Arc<Recorder>>,
    next: AtomicU64,
}

/// One connection. Its verdict is blocked until something else is said, so that whatever goes wrong, a panic too, ends it
/// as blocked; its last record is written when it is dropped.
pub struct Flow {
    number: u64,
    target: Target,
    direction: Direction,
    process: Option<Process>,
    opened: Instant,
    sent: AtomicU64,
    received: AtomicU64,
    sink: Arc<dyn Sink>,
    recorder: Option<Arc<Recorder>>,
    state: Mutex<State>,
}

/// What becomes known on the way.
struct State {
    visibility: Visibility,
    reason: Reason,
    protocol: Text,
    address: Option<IpAddr>,
    rule: Option<Text>,
    change: Option<Text>,
    detail: Option<Text>,
    tls: Option<Tls>,
}

// === impl Target ===

impl Target {
    /// The host as it stands in a URL.
    pub(crate) fn host_in_url(&self) -> String {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
            host => host.to_string(),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

// === impl Flows ===

impl Flows {
    /// Numbers from 1.
    pub fn new(sink: Arc<dyn Sink>) -> Self {
        Self { sink, recorder: None, next: AtomicU64::new(1) }
    }

    /// What goes over the wire is kept by `recorder`.
    #[must_use]
    pub fn recorded_by(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// A connection that was captured; nothing is decided yet.
    pub fn open(&self, target: Target, direction: Direction, process: Option<Process>) -> Arc<Flow> {
        let address = match target.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        };
        Arc::new(Flow {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            target,
            direction,
            process,
            opened: Instant::now(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sink: Arc::clone(&self.sink),
            recorder: self.recorder.clone(),
            state: Mutex::new(State {
                visibility: Visibility::Blocked,
                reason: Reason::Internal,
                protocol: Text::default(),
                address,
                rule: None,
                change: None,
                detail: None,
                tls: None,
            }),
        })
    }
}

// === impl Flow ===

impl Flow {
    /// Whether both sides speak TLS, so that the server is who it says it is.
    pub(crate) fn is_in_tls(&self) -> bool {
        self.state().tls.is_some()
    }

    /// Its number in this session.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where it wants to go.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Who opened it.
    pub fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// Where records go.
    pub fn sink(&self) -> &Arc<dyn Sink> {
        &self.sink
    }

    /// It is looked into.
    pub fn inspected(&self, reason: Reason) {
        self.decided(Visibility::Inspected, reason);
    }

    /// It passes unseen.
    pub fn opaque(&self, reason: Reason) {
        self.decided(Visibility::Opaque, reason);
    }

    /// It is refused, or cut off if it was on its way.
    pub fn blocked(&self, reason: Reason) {
        self.decided(Visibility::Blocked, reason);
    }

    /// How visible it is by now, and why.
    pub fn verdict(&self) -> (Visibility, Reason) {
        let state = self.state();
        (state.visibility, state.reason)
    }

    /// The rule that decided, and the smallest change that would decide otherwise.
    pub fn set_rule(&self, rule: Option<&str>, change: Option<&str>) {
        let mut state = self.state();
        state.rule = rule.map(Text::from);
        state.change = change.map(Text::from);
    }

    /// The protocol seen in the first bytes.
    pub fn set_protocol(&self, protocol: &str) {
        self.state().protocol = Text::from(protocol);
    }

    /// The address that was dialled.
    pub fn set_address(&self, address: IpAddr) {
        self.state().address = Some(address);
    }

    /// What TLS agreed on.
    pub fn set_tls(&self, tls: Tls) {
        self.state().tls = Some(tls);
    }

    /// What went wrong, in words.
    pub fn set_detail(&self, detail: &str) {
        self.state().detail = Some(Text::from(detail));
    }

    /// The address that was dialled or asked for.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.state().address
    }

    /// Whether what goes over the wire is kept.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// These went from inside to outside.
    pub(crate) fn sent(&self, bytes: &[u8]) {
        self.add_sent(bytes.len() as u64);
        self.record_chunk(Side::Client, bytes);
    }

    /// These went from outside to inside.
    pub(crate) fn received(&self, bytes: &[u8]) {
        self.add_received(bytes.len() as u64);
        self.record_chunk(Side::Server, bytes);
    }

    fn record_chunk(&self, side: Side, bytes: &[u8]) {
        if let Some(recorder) = &self.recorder {
            recorder.chunk(self, side, bytes);
        }
    }

    /// Counts bytes from inside to outside.
    pub fn add_sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes from outside to inside.
    pub fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    fn decided(&self, visibility: Visibility, reason: Reason) {
        let mut state = self.state();
        if (state.visibility, state.reason) == (visibility, reason) {
            return;
        }
        (state.visibility, state.reason) = (visibility, reason);
        let record = self.record(&state, true);
        // Told under the lock: the order in the record is the order of the decisions.
        self.sink.tell(record);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, state: &State, open: bool) -> Event {
        let host = match &self.target.host {
            Host::Name(name) => Some(Text::from(name.as_str())),
            Host::Address(_) => None,
        };
        Event::Flow(event::Flow {
            flow: self.number,
            open,
            direction: self.direction,
            host,
            address: state.address,
            port: self.target.port,
            protocol: state.protocol.clone(),
            visibility: state.visibility,
            reason: Text::from(state.reason.name()),
            rule: state.rule.clone(),
            change: state.change.clone(),
            detail: state.detail.clone(),
            process: self.process.clone(),
            tls: state.tls.clone(),
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            duration_us: self.opened.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
        })
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.state();
            (state.visibility, state.reason) = (Visibility::Blocked, Reason::Internal);
        }
        let record = self.record(&self.state(), false);
        self.sink.tell(record);
        if let Some(recorder) = &self.recorder {
            recorder.close(self.number);
        }
    }
}
