use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redoma_audit::{Event, SessionId};
use redoma_gateway::{Doors, Inside, Keeper, Parts, Question, Recorder, Relay, Told};
use redoma_jail::{Entrance, Jail, Preface, Wires};
use redoma_policy::{HostName, ResolvedPolicy, Tier};
use redoma_sys::{Cloned, Errno, Namespaces, NoReturn};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

use super::Prepared;
use super::who::Processes;
use crate::disposable::Peers;
use crate::error::RunError;

/// A gateway at work. Dropping it ends it.
pub(crate) struct Serving {
    pidfd: OwnedFd,
    keeper: Keeper,
}

/// What a gateway has to say.
pub(crate) enum Served {
    /// For the record.
    Event(Box<Event>),
    /// For a person.
    Question(Box<Question>),
    /// It is gone: nothing leaves any more.
    Gone,
}

/// How long a gateway has to come to its end.
const PATIENCE: Duration = Duration::from_secs(5);

impl Prepared {
    /// Starts the gateway of a sandbox whose boundary stands.
    pub(crate) fn start(
        self,
        session: SessionId,
        jail: &mut Jail,
        policy: &ResolvedPolicy,
        tier: Tier,
    ) -> Result<Serving, RunError> {
        let (wires, init) = (jail.take_wires(), jail.pid());
        self.serve(session, wires, policy, tier, init)
    }

    /// Starts the gateway of a network that somebody else raised. Its clients are looked for among all processes.
    pub(crate) fn start_outside(
        self,
        session: SessionId,
        wires: Wires,
        policy: &ResolvedPolicy,
    ) -> Result<Serving, RunError> {
        self.serve(session, Some(wires), policy, Tier::Full, Pid::INIT)
    }

    fn serve(
        self,
        session: SessionId,
        wires: Option<Wires>,
        policy: &ResolvedPolicy,
        tier: Tier,
        init: Pid,
    ) -> Result<Serving, RunError> {
        Serving::fork(move |keep| {
            let publish = self.publish.iter().map(|(_, listener)| listener.as_fd());
            let relay = self.relay.iter().map(|(listener, _)| listener.as_fd());
            let inside = wires.iter().flat_map(Wires::descriptors);
            let capture = self.capture.iter().map(AsFd::as_fd);
            keep(&publish.chain(relay).chain(inside).chain(capture).collect::<Vec<_>>())?;
            self.open(session, wires, policy, tier, init)
        })
    }

    fn open(
        self,
        session: SessionId,
        wires: Option<Wires>,
        policy: &ResolvedPolicy,
        tier: Tier,
        init: Pid,
    ) -> io::Result<(Parts, Doors)> {
        let recorder = self.capture.map(|file| Recorder::new(file, session.as_str(), redoma_gateway::MOST));
        let mut doors = Doors { publish: self.publish, ..Doors::default() };
        let (mut sockets, mut entrance) = (None, None);
        if let Some(wires) = wires {
            doors.capture = wires.capture.into_iter().map(TcpListener::from).collect();
            doors.dns = wires.dns.into_iter().map(UdpSocket::from).collect();
            doors.proxy = wires.proxy.into_iter().map(TcpListener::from).collect();
            let reach = wires.reach.into_iter();
            doors.reach =
                reach.filter_map(|(port, end)| Some((NonZeroU16::new(port)?, end.into()))).collect();
            (sockets, entrance) = (Some(wires.sockets), Some(wires.entrance));
        }
        doors.relay = self.relay.map(|(listener, token)| Relay {
            listener,
            preface: Preface::LENGTH,
            parse: Box::new(move |bytes| {
                let preface = Preface::parse(bytes.try_into().ok()?, &token)?;
                Some((preface.destination, preface.pid))
            }),
        });
        let init = init.as_raw_nonzero().get().unsigned_abs();
        let parts = Parts {
            policy: policy.clone(),
            tier,
            who: Arc::new(Processes::new(init, sockets)),
            inside: Arc::new(Way { own: entrance.map(Mutex::new), peers: self.peers }),
            authority: self.authority,
            upstream: self.upstream,
            credentials: self.credentials,
            decoys: self.decoys,
            recorder: recorder.transpose()?.map(Arc::new),
        };
        Ok((parts, doors))
    }
}

impl Serving {
    /// Forks the process of a gateway. `open` says which descriptors to keep, and then has what it is made of.
    pub(crate) fn fork(
        open: impl FnOnce(&mut dyn FnMut(&[BorrowedFd<'_>]) -> io::Result<()>) -> io::Result<(Parts, Doors)>,
    ) -> Result<Self, RunError> {
        let (keeper, link) = Keeper::pair().map_err(RunError::Gateway)?;
        let cloned = redoma_sys::clone_process(Namespaces::NONE);
        match cloned.map_err(|errno| RunError::Gateway(errno.into()))? {
            Cloned::Parent { pidfd, .. } => Ok(Self { pidfd, keeper }),
            Cloned::Child => {
                let _never = NoReturn;
                let served = open(&mut |kept| withdraw(kept, &link))
                    .and_then(|(parts, doors)| redoma_gateway::serve(parts, doors, link));
                redoma_sys::exit_now(i32::from(served.is_err()))
            }
        }
    }

    /// What it has said since, without waiting.
    pub(crate) fn receive(&mut self) -> Result<Vec<Served>, RunError> {
        let told = self.keeper.receive().map_err(RunError::Gateway)?;
        told.map_or_else(|| Ok(vec![Served::Gone]), |told| told.into_iter().map(served).collect())
    }

    /// Answers a question.
    pub(crate) fn answer(&mut self, number: u64, answer: redoma_audit::event::Answer) {
        self.keeper.answer(number, answer);
    }

    /// Has it come to its end, now that nothing runs inside any more, and hears its last words.
    pub(crate) fn finish(
        mut self,
        tell: &mut dyn FnMut(&Event) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let deadline = Instant::now() + PATIENCE;
        self.keeper.finish();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let mut wait = [PollFd::new(&self.keeper, PollFlags::IN)];
            match rustix::event::poll(&mut wait, Some(&left)) {
                Ok(0) => return Err(RunError::Gateway(io::ErrorKind::TimedOut.into())),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(RunError::Wait(errno)),
            }
            for served in self.receive()? {
                match served {
                    Served::Event(event) => tell(&event)?,
                    Served::Question(_) => {}
                    Served::Gone => return Ok(()),
                }
            }
        }
    }
}

impl AsFd for Serving {
    /// Readable when it has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.keeper.as_fd()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
        });
    }
}

/// Only what a gateway has to tell: hostile bytes may have got hold of it.
fn served(told: Told) -> Result<Served, RunError> {
    match told {
        Told::Question(question) => Ok(Served::Question(Box::new(question))),
        Told::Event(event) => match *event {
            Event::Flow(_) | Event::Exchange(_) | Event::Dns(_) | Event::Alert(_) => Ok(Served::Event(event)),
            _ => Err(RunError::Gateway(io::ErrorKind::InvalidData.into())),
        },
    }
}

/// The way to what listens inside: through init, or on the host's own loopback where there is no other; and to neighbours.
#[derive(Default)]
pub(crate) struct Way {
    pub(crate) own: Option<Mutex<Entrance>>,
    pub(crate) peers: Option<Peers>,
}

impl Inside for Way {
    fn dial(&self, port: NonZeroU16) -> io::Result<TcpStream> {
        match &self.own {
            None => TcpStream::connect((Ipv4Addr::LOCALHOST, port.get())),
            Some(entrance) => {
                let entrance = entrance.lock().unwrap_or_else(PoisonError::into_inner);
                entrance.dial(port).map(TcpStream::from).map_err(io::Error::other)
            }
        }
    }

    fn is_peer(&self, name: &HostName) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.has(name))
    }

    fn dial_peer(&self, name: &HostName, port: NonZeroU16) -> io::Result<TcpStream> {
        let peers = self.peers.as_ref().ok_or(io::ErrorKind::AddrNotAvailable)?;
        peers.dial(name, port.get())
    }
}

/// Leaves everything behind that is the keeper's: its terminal, its life, its descriptors.
fn withdraw(kept: &[BorrowedFd<'_>], link: &UnixStream) -> io::Result<()> {
    let keeper = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != keeper {
        return Err(io::ErrorKind::NotFound.into());
    }
    rustix::process::setsid()?;
    // It holds the authority's key.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    redoma_sys::close_all_but(&[kept, &[link.as_fd()]].concat())?;
    raise_descriptors();
    Ok(())
}

/// Two for each flow; as many as the user may have, and root more.
fn raise_descriptors() {
    const PLENTY: u64 = 1 << 20;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised =
        |most| Rlimit { current: Some(most), maximum: limit.maximum.map(|maximum| maximum.max(most)) };
    let granted = rustix::process::setrlimit(Resource::Nofile, raised(PLENTY));
    if granted.is_err() {
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
