//! Starting one command, as init.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use redoma_sys::{Errno, Program};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions, WaitStatus};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, ExecRequest, Ids, Terminal};
use crate::confine::Confinement;
use crate::error::{Failure, InStep, Step};

/// A command that runs.
pub(crate) struct Spawned {
    /// Init's child: the command, or the leader of its session, which ends and stops as the command does.
    pub(crate) child: Pid,
    /// The command, which leads its process group.
    pub(crate) command: Pid,
    /// The outer end of its terminal.
    pub(crate) terminal: Option<OwnedFd>,
    /// What its supervised calls come out of, where there are any (landlock tier).
    pub(crate) listener: Option<OwnedFd>,
}

/// What the new process says before it runs the program.
#[derive(Serialize, Deserialize)]
enum Word {
    /// The command is this process, and who says so leads its session.
    Leads(i32),
    /// The filter is on; what supervised calls come out of is sent along.
    Supervised,
    /// The program does not run.
    Failed(Failure),
}

/// Forks, sets the child up and waits until it runs the program or says why it doesn't.
///
/// `confinement` is given where init itself is not confined (landlock tier).
pub(crate) fn spawn(
    request: &ExecRequest,
    given: Vec<OwnedFd>,
    confinement: Option<&Confinement>,
) -> Result<Spawned, Failure> {
    let terminal = request.terminal.map(|wanted| Pty::open(wanted).step(Step::Terminal)).transpose()?;
    let command = Command::new(request).step(Step::Program)?;
    let streams = streams(request, given, terminal.as_ref())?;
    let (told, tell) = Channel::pair().step(Step::Fork)?;
    let Some(child) = redoma_sys::fork().step(Step::Fork)? else {
        let _never = redoma_sys::NoReturn;
        let failure = command.become_it(&streams, terminal.as_ref(), confinement, &tell);
        // Who listens is init; without it there is nobody left to tell.
        let _ = tell.send(&Word::Failed(failure), &[]);
        redoma_sys::exit_now(127);
    };
    drop(tell);
    let Heard { command, listener, failure } = listen(&told)?;
    match failure {
        Some(failure) => {
            let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
            Err(failure)
        }
        None => {
            let terminal = terminal.map(|pty| pty.outer);
            Ok(Spawned { child, command: command.unwrap_or(child), terminal, listener })
        }
    }
}

/// All that the new process had to say.
#[derive(Default)]
struct Heard {
    /// The command, if another process leads its session.
    command: Option<Pid>,
    listener: Option<OwnedFd>,
    /// Why it does not run.
    failure: Option<Failure>,
}

/// Listens until the socket closes, which `execve` does.
fn listen(socket: &Channel) -> Result<Heard, Failure> {
    let mut heard = Heard::default();
    while let Some((word, descriptors)) = socket.receive().step(Step::Program)? {
        match word {
            Word::Leads(pid) => heard.command = Pid::from_raw(pid),
            Word::Supervised => heard.listener = descriptors.into_iter().next(),
            Word::Failed(why) => heard.failure = Some(why),
        }
    }
    Ok(heard)
}

/// Standard input, output and error: the terminal's inner end or what the keeper handed in.
fn streams(request: &ExecRequest, given: Vec<OwnedFd>, pty: Option<&Pty>) -> Result<[OwnedFd; 3], Failure> {
    let mut given = given.into_iter();
    let on_terminal = request.terminal.map_or([false; 3], |terminal| terminal.streams);
    let mut stream = |index: usize| match (on_terminal[index], pty) {
        (true, Some(pty)) => rustix::io::fcntl_dupfd_cloexec(&pty.inner, 3).step(Step::Stdio),
        _ => given.next().ok_or(Failure::new(Step::Stdio, Errno::BADF)),
    };
    Ok([stream(0)?, stream(1)?, stream(2)?])
}

struct Pty {
    outer: OwnedFd,
    inner: OwnedFd,
}

impl Pty {
    /// Made in the sandbox's own devpts, so that its name is good inside. See `pty(7)`.
    fn open(wanted: Terminal) -> Result<Self, Errno> {
        let outer = rustix::fs::openat(
            CWD,
            "/dev/ptmx",
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::pty::unlockpt(&outer)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let inner = rustix::pty::ioctl_tiocgptpeer(&outer, flags)?;
        let (ws_row, ws_col) = wanted.size;
        rustix::termios::tcsetwinsize(&outer, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
        Ok(Self { outer, inner })
    }
}

/// A command with everything that needs memory made before the fork.
struct Command<'a> {
    program: Program,
    candidates: Vec<CString>,
    folder: CString,
    user: Option<&'a Ids>,
    held: bool,
}

impl<'a> Command<'a> {
    fn new(request: &'a ExecRequest) -> Result<Self, Errno> {
        let strings = |list: &[Vec<u8>]| -> Result<Vec<CString>, Errno> {
            list.iter().map(|bytes| CString::new(bytes.as_slice()).map_err(|_| Errno::INVAL)).collect()
        };
        let name = request.argv.first().filter(|name| !name.is_empty()).ok_or(Errno::NOENT)?;
        Ok(Self {
            program: Program::new(strings(&request.argv)?, strings(&request.envp)?),
            candidates: strings(&candidates(name, &request.envp))?,
            folder: CString::new(request.folder.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?,
            user: request.user.as_ref(),
            held: request.held,
        })
    }

    fn become_it(
        &self,
        streams: &[OwnedFd; 3],
        pty: Option<&Pty>,
        confinement: Option<&Confinement>,
        tell: &Channel,
    ) -> Failure {
        match self.prepare(streams, pty, confinement, tell) {
            Ok(()) => Failure::new(Step::Program, self.execute()),
            Err(failure) => failure,
        }
    }

    fn prepare(
        &self,
        streams: &[OwnedFd; 3],
        pty: Option<&Pty>,
        confinement: Option<&Confinement>,
        tell: &Channel,
    ) -> Result<(), Failure> {
        // A session of its own: the command has the terminal made for it or none, never the user's.
        rustix::process::setsid().step(Step::Terminal)?;
        if let Some(pty) = pty {
            rustix::process::ioctl_tiocsctty(&pty.inner).step(Step::Terminal)?;
        }
        if pty.is_some() || self.held {
            leave_a_leader(tell, self.held)?;
        }
        match pty {
            Some(pty) => come_to_the_foreground(pty).step(Step::Terminal)?,
            None if self.held => rustix::process::setpgid(None, None).step(Step::Terminal)?,
            None => {}
        }
        let [input, output, error] = streams;
        rustix::stdio::dup2_stdin(input).step(Step::Stdio)?;
        rustix::stdio::dup2_stdout(output).step(Step::Stdio)?;
        rustix::stdio::dup2_stderr(error).step(Step::Stdio)?;
        if let Some(user) = self.user {
            become_user(user).step(Step::MapUser)?;
        }
        rustix::process::chdir(self.folder.as_c_str()).step(Step::Folder)?;
        redoma_sys::close_on_exec_from(3).step(Step::Stdio)?;
        if let Some(confinement) = confinement {
            let listener = confinement.apply_supervised()?;
            tell.send(&Word::Supervised, &[listener.as_fd()]).step(Step::Supervise)?;
        }
        redoma_sys::restore_default_signals();
        Ok(())
    }

    /// Tries each place, as `execvp(3)` does: a file that may not be run is told apart from no file at all.
    fn execute(&self) -> Errno {
        let mut verdict = Errno::NOENT;
        for path in &self.candidates {
            match redoma_sys::execve(path, &self.program) {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => verdict = Errno::ACCESS,
                Errno::NOEXEC => return self.execute_script(path),
                errno => return errno,
            }
        }
        verdict
    }

    fn execute_script(&self, path: &CStr) -> Errno {
        let shell = c"/bin/sh";
        redoma_sys::execve(shell, &self.program.behind([shell.to_owned(), path.to_owned()]))
    }
}

/// Groups first: whoever is not user 0 any more changes neither. See `credentials(7)`.
fn become_user(ids: &Ids) -> Result<(), Errno> {
    let group = Gid::from_raw(ids.group);
    let groups: Vec<Gid> = ids.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    rustix::thread::set_thread_groups(&groups)?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    let user = Uid::from_raw(ids.user);
    rustix::thread::set_thread_res_uid(user, user, user)
}

// === the leader of a session with a terminal, or of all that a command starts ===

/// Returns in a child; this process stays behind and leads the session. A command that led it itself could not be
/// stopped by Ctrl-Z: the kernel does not stop a process group whose parents are all in other sessions. See "orphaned
/// process group" in `setpgid(2)`.
///
/// A leader that `holds` inherits every orphan below it, so that all that the command starts is found below the leader.
fn leave_a_leader(tell: &Channel, holds: bool) -> Result<(), Failure> {
    match redoma_sys::fork().step(Step::Fork)? {
        None => Ok(()),
        Some(command) => {
            let _ = tell.send(&Word::Leads(command.as_raw_nonzero().get()), &[]);
            if holds {
                let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            }
            lead(command, holds)
        }
    }
}

fn lead(command: Pid, holds: bool) -> ! {
    // Nothing stays open here: the socket would keep init listening, the terminal the keeper.
    let closed = redoma_sys::close_all();
    debug_assert!(closed.is_ok());
    redoma_sys::restore_default_signals();
    let _ = redoma_sys::block_signals(&[Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::TSTP]);
    loop {
        match rustix::process::wait(WaitOptions::UNTRACED) {
            // An orphan of the command's.
            Ok(Some((pid, _))) if pid != command => {}
            Ok(Some((_, status))) if status.stopped() => {
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            }
            // By a signal that ends the leader too, init tells that somebody else did.
            Ok(Some((_, status))) if holds && status.terminating_signal() == Some(Signal::KILL.as_raw()) => {
                redoma_sys::exit_now(128 + Signal::KILL.as_raw())
            }
            Ok(Some((_, status))) => end_like(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => redoma_sys::exit_now(127),
        }
    }
}

/// Ends as the command did, so that init sees the command's end in the leader's.
fn end_like(status: WaitStatus) -> ! {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        redoma_sys::restore_default_signals();
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    redoma_sys::exit_now(status.exit_status().unwrap_or(127))
}

fn come_to_the_foreground(pty: &Pty) -> Result<(), Errno> {
    rustix::process::setpgid(None, None)?;
    // From a group in the background this call asks for SIGTTOU; see tcsetpgrp(3).
    redoma_sys::block_signals(&[Signal::TTOU])?;
    rustix::termios::tcsetpgrp(&pty.inner, rustix::process::getpid())
}

/// The name itself if it has a slash, else it in each folder of `PATH`.
fn candidates(name: &[u8], envp: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if name.contains(&b'/') {
        return vec![name.to_vec()];
    }
    let path =
        envp.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    path.split(|&byte| byte == b':')
        .map(|folder| if folder.is_empty() { b"." } else { folder })
        .map(|folder| [folder, b"/", name].concat())
        .collect()
}

/// Init keeps nothing of the user's: the streams of commands come with each request.
pub(crate) fn replace_standard_streams() -> Result<(), Errno> {
    let null = rustix::fs::openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_searched_in_path() {
        let envp = vec![b"HOME=/h".to_vec(), b"PATH=/a::/b".to_vec()];
        assert_eq!(candidates(b"x", &envp), [b"/a/x".to_vec(), b"./x".to_vec(), b"/b/x".to_vec()]);
        assert_eq!(candidates(b"./x", &envp), [b"./x".to_vec()]);
        assert_eq!(candidates(b"x", &[]).len(), 3);
    }
}
