//! Questions for the person at the terminal, while a program inside may own the screen.
//!
//! One question stands at a time. While it does, keys are ours and the program's output waits; what was typed before it stood
//! answers nothing. Who can't be asked is a no.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use redoma_audit::event::Answer;
use redoma_gateway::Question;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios};

/// The questions that wait, and the one that stands.
pub(crate) struct Asking {
    terminal: Option<File>,
    waiting: VecDeque<Waiting>,
    standing: Option<Standing>,
}

struct Waiting {
    question: Question,
    until: Instant,
}

struct Standing {
    since: Instant,
    /// The terminal as it was, if we changed it.
    saved: Option<Termios>,
    whole_screen: bool,
}

/// An answer, and to what.
pub(crate) struct Answered {
    pub(crate) question: Question,
    pub(crate) answer: Answer,
}

impl Answered {
    /// As `redoma allow` takes it.
    pub(crate) fn target(&self) -> String {
        target(&self.question)
    }
}

fn target(question: &Question) -> String {
    redoma_policy::Authority { host: question.host.clone(), port: Some(question.port) }.to_string()
}

/// More than a person answers: whoever asks more is refused.
const MOST: usize = 16;
/// A key pressed so soon after the question came up was meant for something else.
const READING: Duration = Duration::from_millis(400);

const SAVE_AND_GO_TO_THE_LAST_LINE: &str = "\x1b7\x1b[999;1H\x1b[2K\x1b[7m";
const CLEAR_AND_GO_BACK: &str = "\x1b[0m\x1b[2K\x1b8";

impl Asking {
    /// Asks at the controlling terminal, if there is one.
    pub(crate) fn new() -> Self {
        let mut options = std::fs::OpenOptions::new();
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let terminal =
            options.read(true).write(true).custom_flags(flags.bits().cast_signed()).open("/dev/tty");
        Self { terminal: terminal.ok(), waiting: VecDeque::new(), standing: None }
    }

    /// Takes a question; an answer at once where nobody can be asked.
    pub(crate) fn take(&mut self, question: Question) -> Option<Answered> {
        if self.waiting.len() >= MOST || !self.can_ask() {
            return Some(Answered { question, answer: Answer::Expired });
        }
        let until = Instant::now() + question.timeout;
        self.waiting.push_back(Waiting { question, until });
        None
    }

    /// Whether a question stands: then the terminal is ours.
    pub(crate) fn stands(&self) -> bool {
        self.standing.is_some()
    }

    /// Where keys come from while a question stands.
    pub(crate) fn keys(&self) -> Option<BorrowedFd<'_>> {
        self.terminal.as_ref().filter(|_| self.stands()).map(AsFd::as_fd)
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Puts the next question up, if none stands. `whole_screen`: a program draws on all of it.
    pub(crate) fn put_up(&mut self, whole_screen: bool) {
        let (None, Some(next)) = (&self.standing, self.waiting.front()) else { return };
        let text = ask(&next.question);
        let Some(terminal) = &mut self.terminal else { return };
        // What was typed was not an answer.
        let _ = rustix::termios::tcflush(&*terminal, QueueSelector::IFlush);
        let saved = by_single_keys(terminal);
        let shown = match whole_screen {
            true => {
                write!(terminal, "{SAVE_AND_GO_TO_THE_LAST_LINE}{} {CHOICES} ", text.replace("\r\n", " "))
            }
            false => write!(terminal, "\r\n{text}\r\n{CHOICES} "),
        };
        // A terminal that takes nothing shows nothing; the time-out answers.
        drop(shown);
        self.standing = Some(Standing { since: Instant::now(), saved, whole_screen });
    }

    /// Reads keys; an answer if one was among them.
    pub(crate) fn read_keys(&mut self) -> Option<Answered> {
        let (terminal, standing) = (self.terminal.as_mut()?, self.standing.as_ref()?);
        let mut keys = [0; 64];
        let length = terminal.read(&mut keys).unwrap_or(0);
        if standing.since.elapsed() < READING {
            return None;
        }
        let answer = keys[..length].iter().find_map(|key| meaning(*key))?;
        self.end(answer)
    }

    /// What nobody answered in time.
    pub(crate) fn expire(&mut self) -> Option<Answered> {
        let now = Instant::now();
        if self.waiting.front()?.until <= now {
            return self.end(Answer::Expired);
        }
        let late = self.waiting.iter().position(|waiting| waiting.until <= now)?;
        let question = self.waiting.remove(late)?.question;
        Some(Answered { question, answer: Answer::Expired })
    }

    /// Whether a question that stood had the whole screen to itself is told, so that the program can draw anew.
    fn end(&mut self, answer: Answer) -> Option<Answered> {
        self.take_down(word(answer));
        let question = self.waiting.pop_front()?.question;
        Some(Answered { question, answer })
    }

    /// Gives the terminal back, as when the session is stopped.
    pub(crate) fn take_down(&mut self, last: &str) {
        let (Some(terminal), Some(standing)) = (&mut self.terminal, self.standing.take()) else { return };
        let shown = match standing.whole_screen {
            true => write!(terminal, "{CLEAR_AND_GO_BACK}"),
            false => write!(terminal, "{last}\r\n"),
        };
        drop(shown);
        if let Some(saved) = standing.saved {
            let _ = rustix::termios::tcsetattr(&*terminal, OptionalActions::Now, &saved);
        }
    }

    /// A job in the background must not touch the terminal.
    fn can_ask(&self) -> bool {
        let foreground = |terminal| rustix::termios::tcgetpgrp(terminal);
        self.terminal.as_ref().is_some_and(|terminal| {
            foreground(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.take_down("");
    }
}

const CHOICES: &str = "allow [o]nce, for this [s]ession, [a]lways, or [D]eny?";

/// Everything that comes from inside is shown escaped.
fn ask(question: &Question) -> String {
    let who = question.process.as_ref().map_or_else(
        || "a program".to_owned(),
        |process| format!("{} (process {})", process.path, process.inside.unwrap_or(process.pid)),
    );
    format!("redoma: {who} wants to connect to {}", target(question))
}

fn meaning(key: u8) -> Option<Answer> {
    const INTERRUPT: u8 = 3;
    const ESCAPE: u8 = 27;
    match key {
        b'o' | b'O' => Some(Answer::Once),
        b's' | b'S' => Some(Answer::Session),
        b'a' | b'A' => Some(Answer::Always),
        b'd' | b'D' | b'n' | b'N' | b'\r' | b'\n' | INTERRUPT | ESCAPE => Some(Answer::Deny),
        _ => None,
    }
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "once",
        Answer::Session => "for this session",
        Answer::Always => "always",
        Answer::Deny => "denied",
        Answer::Expired => "denied: nobody answered",
    }
}

/// Keys come as they are typed and are not shown; what the terminal was like before, if that had to be changed.
fn by_single_keys(terminal: &File) -> Option<Termios> {
    let saved = rustix::termios::tcgetattr(terminal).ok()?;
    if !saved.local_modes.contains(LocalModes::ICANON) {
        return None;
    }
    let mut single = saved.clone();
    single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    rustix::termios::tcsetattr(terminal, OptionalActions::Now, &single).ok().map(|()| saved)
}

/// Whether programs draw on the whole screen, by what they tell the terminal (`1049` and its elders in xterm's control
/// sequences).
#[derive(Debug, Default)]
pub(crate) struct Screen {
    alternate: bool,
    tail: Vec<u8>,
}

impl Screen {
    /// Takes note of what goes to the terminal.
    pub(crate) fn see(&mut self, output: &[u8]) {
        const LONGEST: usize = b"\x1b[?1049h".len();
        let sequences = ["\x1b[?1049", "\x1b[?1047", "\x1b[?47"];
        self.tail.extend_from_slice(output);
        let mut last = None;
        for sequence in sequences {
            for at in memchr::memmem::find_iter(&self.tail, sequence) {
                let on = match self.tail.get(at + sequence.len()) {
                    Some(b'h') => true,
                    Some(b'l') => false,
                    _ => continue,
                };
                last = last.max(Some((at, on)));
            }
        }
        self.alternate = last.map_or(self.alternate, |(_, on)| on);
        self.tail.drain(..self.tail.len().saturating_sub(LONGEST - 1));
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.alternate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_the_whole_screen_is_known_however_it_comes() {
        for size in 1..12 {
            let mut screen = Screen::default();
            let output = b"hello \x1b[?1049h\x1b[2J text";
            output.chunks(size).for_each(|piece| screen.see(piece));
            assert!(screen.is_alternate(), "{size}");
            b"bye \x1b[?1049l$ ".chunks(size).for_each(|piece| screen.see(piece));
            assert!(!screen.is_alternate(), "{size}");
        }
        let mut screen = Screen::default();
        screen.see(b"\x1b[?1049h\x1b[?1049l");
        assert!(!screen.is_alternate());
    }

    #[test]
    fn only_named_keys_answer() {
        let answers: Vec<_> = b"xq1 o".iter().map(|key| meaning(*key)).collect();
        assert_eq!(answers, [None, None, None, None, Some(Answer::Once)]);
        assert_eq!(meaning(b'\r'), Some(Answer::Deny));
    }
}
