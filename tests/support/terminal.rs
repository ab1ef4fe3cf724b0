//! A pseudoterminal (pty(7)) on which a test types and reads like a person.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::PATIENCE;
use crate::process::{readable, wait_gone};

/// Our end of the terminal, and the process at the other.
pub struct Terminal {
    ours: File,
    child: Child,
    seen: Vec<u8>,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a new pseudoterminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("the other end opens up");
        let name = ptsname(&ours, Vec::new()).expect("the other end has a name");
        let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let theirs = File::from(theirs);
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // `command` still holds the other end; the end of input shows only when it is gone.
        drop(command);
        let terminal = Self { ours: File::from(ours), child, seen: Vec::new() };
        terminal.resize(24, 80);
        terminal
    }

    /// Types.
    ///
    /// # Panics
    /// If the terminal takes no more.
    pub fn send(&mut self, keys: impl AsRef<[u8]>) {
        self.ours.write_all(keys.as_ref()).expect("the terminal takes what is typed");
    }

    /// Changes the window's size, which sends SIGWINCH.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).expect("a terminal has a size");
    }

    /// Reads until `needle` has been shown since the last call, and returns what came before it.
    ///
    /// # Panics
    /// If it does not come before [`crate::PATIENCE`] or the end.
    pub fn expect(&mut self, needle: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(at) = find(&self.seen, needle.as_bytes()) {
                let before = String::from_utf8_lossy(&self.seen[..at]).into_owned();
                self.seen.drain(..at + needle.len());
                return before;
            }
            let more = self.read_some(start);
            assert!(more, "{needle:?} was not shown, only {:?}", String::from_utf8_lossy(&self.seen));
        }
    }

    fn read_some(&mut self, start: Instant) -> bool {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if !readable(&self.ours, left) {
            return false;
        }
        let mut buffer = [0; 65536];
        // EIO: the last process at the other end is gone.
        let length = self.ours.read(&mut buffer).unwrap_or(0);
        self.seen.extend_from_slice(&buffer[..length]);
        length > 0
    }

    /// The process id of `redoma`: setsid(1) becomes it by exec.
    ///
    /// # Panics
    /// Never: process ids fit.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Reads to the end, and returns the exit code and everything shown since the last `expect`.
    ///
    /// # Panics
    /// If it does not end before [`PATIENCE`]; it is killed first.
    #[must_use]
    pub fn finish(mut self) -> (i32, String) {
        let start = Instant::now();
        while self.read_some(start) {}
        if !wait_gone(self.pid(), PATIENCE.saturating_sub(start.elapsed())) {
            self.child.kill().unwrap();
            panic!("did not end; shown: {:?}", String::from_utf8_lossy(&self.seen));
        }
        let status = self.child.wait().unwrap();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        (code, String::from_utf8_lossy(&self.seen).into_owned())
    }
}

impl Drop for Terminal {
    /// A failed test leaves nothing behind. An error means that it has ended already.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_terminal(script: &str) -> Terminal {
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", script]);
        Terminal::start(command)
    }

    #[test]
    fn what_is_typed_arrives_and_the_exit_code_comes_back() {
        let mut terminal = on_terminal("read line; echo \"got <$line>\"; exit 3");
        terminal.send("hello\n");
        terminal.expect("got <hello>");
        assert_eq!(terminal.finish().0, 3);
    }

    #[test]
    fn ctrl_c_reaches_the_foreground_process() {
        let mut terminal = on_terminal("echo ready; exec sleep 1000");
        terminal.expect("ready");
        terminal.send([3]);
        assert_eq!(terminal.finish().0, 130);
    }

    #[test]
    #[should_panic(expected = "was not shown")]
    fn what_never_comes_fails() {
        on_terminal("echo other").expect("needle");
    }
}
