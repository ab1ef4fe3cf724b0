//! The gateway by itself, for clients outside any sandbox that are told to use a proxy.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use redoma_audit::event::{Answer, Outcome, Usage};
use redoma_audit::{Event, SessionId, Store};
use redoma_gateway::{Authority, Credentials, Doors, Parts};
use redoma_jail::Sockets;
use redoma_policy::{ResolvedPolicy, Tier};
use redoma_sys::{Errno, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink};
use rustix::process::Signal;

use crate::ask::{Answered, Asking};
use crate::error::RunError;
use crate::gateway::{Processes, Served, Serving, Way, upstream};
use crate::homes::Homes;
use crate::record::RunRecord;
use crate::run::NetworkSummary;

/// A proxy that listens.
#[derive(Debug)]
pub struct Listening {
    /// The session in the record.
    pub session: SessionId,
    /// Where it listens.
    pub address: SocketAddr,
    /// The certificate that its clients are to trust (PEM).
    pub certificate: String,
}

/// A proxy, and who watches over it.
struct Proxy {
    serving: Serving,
    signals: SignalFd,
    asking: Asking,
    record: RunRecord,
    summary: NetworkSummary,
}

/// Serves until a signal ends it. `ready` is told where it listens.
pub(crate) fn serve(
    homes: &Homes,
    policy: &ResolvedPolicy,
    listen: SocketAddr,
    ready: &mut dyn FnMut(&Listening) -> io::Result<()>,
) -> Result<NetworkSummary, RunError> {
    let port = listen.port();
    let listener = TcpListener::bind(listen).map_err(|source| RunError::Listen { port, source })?;
    let address = listener.local_addr().map_err(RunError::Gateway)?;
    let store = Store::open(homes.state(), &homes.keys())?;
    let session = SessionId::random()?;
    let upstream = upstream(policy, &std::env::vars_os().collect::<Vec<_>>())?;
    let authority =
        Authority::new(session.as_str()).map_err(|error| RunError::Gateway(io::Error::other(error)))?;
    let certificate = authority.pem();
    let record = RunRecord::begin_proxy(&store, session, policy, address)?;
    let serving = Serving::fork(|keep| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        let diag = rustix::net::socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
        keep(&[listener.as_fd(), diag.as_fd()])?;
        // Whose a client is can be told of the user's own processes.
        let who = Processes::new(1, Some(Sockets::from(diag)));
        let doors = Doors { proxy: vec![listener], ..Doors::default() };
        let (who, inside) = (Arc::new(who), Arc::new(Way::default()));
        // Loopback is the machine's own, as in the landlock tier.
        let (policy, tier) = (policy.clone(), Tier::Landlock);
        let (credentials, decoys, recorder) = (Credentials::default(), Vec::new(), None);
        Ok((Parts { policy, tier, who, inside, authority, upstream, credentials, decoys, recorder }, doors))
    })?;
    let signals = SignalFd::new(&[Signal::INT, Signal::TERM, Signal::HUP]).map_err(RunError::Wait)?;
    ready(&Listening { session, address, certificate }).map_err(RunError::Gateway)?;
    let proxy = Proxy { serving, signals, asking: Asking::new(), record, summary: NetworkSummary::default() };
    proxy.watch_over()
}

impl Proxy {
    fn watch_over(mut self) -> Result<NetworkSummary, RunError> {
        loop {
            let (keys, signal) = self.wait()?;
            if signal {
                return self.end(Outcome::Exited { code: 0 });
            }
            for served in self.serving.receive()? {
                match served {
                    Served::Event(event) => self.note(&event)?,
                    Served::Question(question) => {
                        if let Some(answered) = self.asking.take(*question) {
                            self.answer(&answered)?;
                        }
                    }
                    Served::Gone => {
                        let reason = redoma_audit::Text::new("the gateway ended");
                        return self.end(Outcome::Failed { reason });
                    }
                }
            }
            let answered = if keys { self.asking.read_keys() } else { None };
            if let Some(answered) = answered.or_else(|| self.asking.expire()) {
                self.answer(&answered)?;
            }
            self.asking.put_up(false);
        }
    }

    fn wait(&self) -> Result<(bool, bool), RunError> {
        let left = self.asking.deadline().map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds =
            vec![PollFd::new(&self.serving, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(self.asking.keys().map(|keys| PollFd::from_borrowed_fd(keys, PollFlags::IN)));
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(RunError::Wait(errno)),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok((is_ready(2), is_ready(1)))
    }

    fn note(&mut self, event: &Event) -> Result<(), RunError> {
        self.summary.add(event);
        self.record.append(event)
    }

    fn answer(&mut self, answered: &Answered) -> Result<(), RunError> {
        self.serving.answer(answered.question.number, answered.answer);
        if answered.answer == Answer::Always {
            self.summary.always.push(answered.target());
        }
        self.record.answered(answered)
    }

    fn end(self, outcome: Outcome) -> Result<NetworkSummary, RunError> {
        let Self { serving, mut record, mut summary, .. } = self;
        serving.finish(&mut |event| {
            summary.add(event);
            record.append(event)
        })?;
        record.end(outcome, Usage::default())?;
        Ok(summary)
    }
}
