//! The keeper's loop: one thread that watches over a running command until it ends.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use redoma_audit::Event;
use redoma_jail::{Event as Change, Jail, Piece};
use redoma_sys::{Errno, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use crate::ask::{Answered, Asking};
use crate::error::RunError;
use crate::gateway::{Served, Serving};
use crate::held::Held;
use crate::pipes::Pipes;
use crate::quarantine::{Quarantined, Watch};
use crate::run::RunEnd;
use crate::terminal::{Relay, Wants};

/// What happens while a command runs, for the record.
pub(crate) enum News {
    /// Something appeared where nothing may, and was moved away.
    Quarantined(Vec<Quarantined>),
    /// Somebody outside replaced these, and they were covered or pinned again.
    HeldAgain(Vec<PathBuf>),
    /// Something went over the network, or did not.
    Network(Box<Event>),
    /// A person answered, or nobody did.
    Answered(Answered),
    /// The gateway is gone.
    GatewayGone,
}

/// What the keeper holds while a command runs.
pub(crate) struct Keeper<'a> {
    pub(crate) jail: &'a Jail,
    pub(crate) signals: SignalFd,
    pub(crate) relay: Option<Relay>,
    pub(crate) pipes: Pipes,
    pub(crate) watch: Option<&'a mut Watch>,
    pub(crate) held: Option<&'a mut Held>,
    pub(crate) gateway: Option<&'a mut Serving>,
    /// Made when the first question comes.
    pub(crate) asking: Option<Asking>,
    pub(crate) deadline: Option<Instant>,
    /// When to begin to listen for changes from outside; none once it has.
    pub(crate) listen_at: Option<Instant>,
    /// Whether somebody outside asked for a stop, as Ctrl-Z does where the terminal is not ours.
    pub(crate) stop_asked: bool,
}

/// The number of the one command that a run has.
const ONLY: u32 = 0;

/// A command that ends before this is only looked after once it has: the kernel takes tens of milliseconds to let go of
/// a watch, many times what such a command takes.
pub(crate) const UNWATCHED: Duration = Duration::from_millis(10);

/// Signals that the user or the system sends to `redoma` and means for the command.
const FORWARDED: [Signal; 7] =
    [Signal::INT, Signal::TERM, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2, Signal::TSTP];

/// What one round of waiting brought.
#[derive(Default)]
struct Ready {
    event: bool,
    signal: bool,
    quarantine: bool,
    held: bool,
    gateway: bool,
    keys: bool,
    relay: Wants,
    pipes: Vec<usize>,
}

/// From now on signals are read from a descriptor; to be called before the command runs, so that none is lost.
pub(crate) fn take_signals() -> Result<SignalFd, RunError> {
    let also = [Signal::WINCH, Signal::CONT];
    let all: Vec<Signal> = FORWARDED.into_iter().chain(also).collect();
    SignalFd::new(&all).map_err(RunError::Wait)
}

impl Keeper<'_> {
    /// Waits until the command ends or its time is up. `tell` is told what happens meanwhile.
    pub(crate) fn watch_over(
        &mut self,
        tell: &mut dyn FnMut(News) -> Result<(), RunError>,
    ) -> Result<RunEnd, RunError> {
        loop {
            let Some(ready) = self.wait()? else { return Ok(RunEnd::TimedOut) };
            if self.listen_at.is_some_and(|at| Instant::now() >= at) {
                self.listen(tell)?;
            }
            if let Some(relay) = &mut self.relay {
                relay.pump(ready.relay);
            }
            ready.pipes.iter().for_each(|&index| self.pipes.pump(index));
            if ready.signal {
                self.take_signal()?;
            }
            if ready.quarantine {
                tell(News::Quarantined(self.watch.as_mut().map(|watch| watch.handle()).unwrap_or_default()))?;
                self.require_hearing()?;
            }
            if ready.held {
                let lost = self.held.as_mut().map(|held| held.lost()).transpose()?.unwrap_or_default();
                self.hold_again(&lost, tell)?;
            }
            if ready.gateway {
                self.hear_gateway(tell)?;
            }
            self.hear_person(ready.keys, tell)?;
            if ready.event {
                match self.jail.event()? {
                    Some(Change::Ended { ending, .. }) => return Ok(RunEnd::Command(ending)),
                    Some(Change::Stopped { .. }) => self.stop_along()?,
                    Some(Change::Alone) => {}
                    _ => return Err(RunError::Jail(redoma_jail::JailError::Gone)),
                }
            }
        }
    }

    fn hear_gateway(&mut self, tell: &mut dyn FnMut(News) -> Result<(), RunError>) -> Result<(), RunError> {
        let Some(gateway) = &mut self.gateway else { return Ok(()) };
        for served in gateway.receive()? {
            match served {
                Served::Event(event) => tell(News::Network(event))?,
                Served::Question(question) => {
                    let asking = self.asking.get_or_insert_with(Asking::new);
                    if let Some(answered) = asking.take(*question) {
                        gateway.answer(answered.question.number, answered.answer);
                        tell(News::Answered(answered))?;
                    }
                }
                Served::Gone => {
                    self.gateway = None;
                    return tell(News::GatewayGone);
                }
            }
        }
        Ok(())
    }

    /// Passes answers on, and puts up the next question.
    fn hear_person(
        &mut self,
        keys: bool,
        tell: &mut dyn FnMut(News) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let Some(asking) = &mut self.asking else { return Ok(()) };
        let answered = if keys { asking.read_keys() } else { None };
        if let Some(answered) = answered.or_else(|| asking.expire()) {
            if let Some(gateway) = &mut self.gateway {
                gateway.answer(answered.question.number, answered.answer);
            }
            tell(News::Answered(answered))?;
        }
        asking.put_up(self.relay.as_ref().is_some_and(Relay::has_whole_screen));
        if let Some(relay) = &mut self.relay {
            relay.hold(asking.stands());
        }
        Ok(())
    }

    fn listen(&mut self, tell: &mut dyn FnMut(News) -> Result<(), RunError>) -> Result<(), RunError> {
        self.listen_at = None;
        if let Some(held) = &mut self.held {
            let lost = held.listen()?;
            self.hold_again(&lost, tell)?;
        }
        if let Some(watch) = &mut self.watch {
            tell(News::Quarantined(watch.listen()?))?;
        }
        self.require_hearing()
    }

    fn require_hearing(&self) -> Result<(), RunError> {
        let deaf = self.watch.as_ref().and_then(|watch| watch.deaf());
        deaf.map_or(Ok(()), |error| Err(error.into()))
    }

    fn hold_again(
        &self,
        lost: &[Piece],
        tell: &mut dyn FnMut(News) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if lost.is_empty() {
            return Ok(());
        }
        self.jail.place_again(lost)?;
        tell(News::HeldAgain(lost.iter().map(|piece| piece.at().clone()).collect()))
    }

    /// None when the time is up.
    fn wait(&self) -> Result<Option<Ready>, RunError> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return Ok(None);
        }
        let asked = self.asking.as_ref().and_then(Asking::deadline);
        let at_once = self.jail.has_event().then_some(now);
        let next = self.deadline.into_iter().chain(self.listen_at).chain(asked).chain(at_once).min();
        let left = next.map(|next| timespec(next.saturating_duration_since(now)));
        let wants = self.relay.as_ref().map(Relay::wants).unwrap_or_default();
        let mut fds = vec![PollFd::new(self.jail, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        let watch =
            self.watch.as_ref().and_then(|watch| watch.fd()).map(|fd| push(&mut fds, fd, PollFlags::IN));
        let held = self.held.as_ref().and_then(|held| held.fd()).map(|fd| push(&mut fds, fd, PollFlags::IN));
        let gateway = self.gateway.as_ref().map(|gateway| push(&mut fds, gateway.as_fd(), PollFlags::IN));
        let keys =
            self.asking.as_ref().and_then(Asking::keys).map(|keys| push(&mut fds, keys, PollFlags::IN));
        let places = relay_places(self.relay.as_ref(), &mut fds, wants);
        let pipes: Vec<(usize, usize)> =
            self.pipes.waits().map(|(index, fd, flags)| (index, push(&mut fds, fd, flags))).collect();
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(RunError::Wait(errno)),
        }
        let any = |place: Option<usize>| place.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Some(Ready {
            event: any(Some(0)) || self.jail.has_event(),
            signal: any(Some(1)),
            quarantine: any(watch),
            held: any(held),
            gateway: any(gateway),
            keys: any(keys),
            pipes: pipes.into_iter().filter(|(_, at)| any(Some(*at))).map(|(index, _)| index).collect(),
            relay: relay_ready(places, wants, any),
        }))
    }

    fn take_signal(&mut self) -> Result<(), RunError> {
        while let Some(number) = self.signals.next().map_err(RunError::Wait)? {
            if number == Signal::WINCH.as_raw() {
                self.relay.iter().for_each(Relay::resize);
            } else if number == Signal::CONT.as_raw() {
                self.go_on();
            } else if FORWARDED.iter().any(|signal| signal.as_raw() == number) {
                self.stop_asked |= number == Signal::TSTP.as_raw();
                // A command that is gone already needs no signal.
                let _ = self.jail.signal(ONLY, number, true);
            }
        }
        Ok(())
    }

    /// The command was stopped. If the user did it, by Ctrl-Z, `redoma` stops too, so that the user's shell takes over;
    /// but first everything inside: nothing may run while nobody watches. A command that stops itself just stands.
    fn stop_along(&mut self) -> Result<(), RunError> {
        let by_user =
            std::mem::take(&mut self.stop_asked) || self.relay.as_ref().is_some_and(Relay::has_terminal);
        if !by_user {
            return Ok(());
        }
        self.jail.freeze(true)?;
        if let Some(asking) = &mut self.asking {
            asking.take_down("");
        }
        if let Some(relay) = &mut self.relay {
            relay.give_terminal_back();
        }
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        self.jail.freeze(false)?;
        self.go_on();
        Ok(())
    }

    fn go_on(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.take_terminal();
            relay.resize();
        }
        let _ = self.jail.signal(ONLY, Signal::CONT.as_raw(), true);
    }
}

/// Where a relay's input, output and inner end are among the descriptors, as far as they are waited for.
pub(crate) type RelayPlaces = (Option<usize>, Option<usize>, Option<usize>);

pub(crate) fn relay_places<'a>(
    relay: Option<&'a Relay>,
    fds: &mut Vec<PollFd<'a>>,
    wants: Wants,
) -> RelayPlaces {
    let Some(relay) = relay else { return (None, None, None) };
    let (input, output, inner) = relay.descriptors();
    let mut inner_flags = PollFlags::empty();
    inner_flags.set(PollFlags::IN, wants.read_inner);
    inner_flags.set(PollFlags::OUT, wants.write_inner);
    (
        input.filter(|_| wants.read_input).map(|fd| push(fds, fd, PollFlags::IN)),
        output.filter(|_| wants.write_output).map(|fd| push(fds, fd, PollFlags::OUT)),
        (!inner_flags.is_empty()).then(|| push(fds, inner, inner_flags)),
    )
}

pub(crate) fn relay_ready(
    (input, output, inner): RelayPlaces,
    wants: Wants,
    any: impl Fn(Option<usize>) -> bool,
) -> Wants {
    Wants {
        read_input: any(input),
        write_output: any(output),
        read_inner: any(inner) && wants.read_inner,
        write_inner: any(inner) && wants.write_inner,
    }
}

pub(crate) fn push<'a>(fds: &mut Vec<PollFd<'a>>, fd: BorrowedFd<'a>, flags: PollFlags) -> usize {
    fds.push(PollFd::from_borrowed_fd(fd, flags));
    fds.len() - 1
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
