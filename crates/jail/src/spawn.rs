//! Starting one command, as init.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use redoma_sys::{Errno, Program};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::channel::{ExecRequest, Terminal};
use crate::confine::Confinement;
use crate::error::{Failure, InStep, Step};

/// A command that runs, and the outer end of its terminal.
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) terminal: Option<OwnedFd>,
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
    let (told, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step(Step::Fork)?;
    let Some(pid) = redoma_sys::fork().step(Step::Fork)? else {
        let failure = command.become_it(&streams, terminal.as_ref(), confinement);
        let encoded = postcard::to_allocvec(&failure).unwrap_or_default();
        let _ = rustix::io::write(&tell, &encoded);
        redoma_sys::exit_now(127);
    };
    drop(tell);
    match failure_told(&told) {
        None => Ok(Spawned { pid, terminal: terminal.map(|pty| pty.outer) }),
        Some(failure) => {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            Err(failure)
        }
    }
}

/// The pipe closes without a word when the program runs: its other end is closed by `execve`.
fn failure_told(pipe: &OwnedFd) -> Option<Failure> {
    let mut bytes = [0u8; 8192];
    match rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut bytes)) {
        Ok(0) => None,
        Ok(length) => {
            Some(postcard::from_bytes(&bytes[..length]).unwrap_or(Failure::new(Step::Program, Errno::IO)))
        }
        Err(errno) => Some(Failure::new(Step::Program, errno)),
    }
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
struct Command {
    program: Program,
    candidates: Vec<CString>,
    folder: CString,
}

impl Command {
    fn new(request: &ExecRequest) -> Result<Self, Errno> {
        let strings = |list: &[Vec<u8>]| -> Result<Vec<CString>, Errno> {
            list.iter().map(|bytes| CString::new(bytes.as_slice()).map_err(|_| Errno::INVAL)).collect()
        };
        let name = request.argv.first().filter(|name| !name.is_empty()).ok_or(Errno::NOENT)?;
        Ok(Self {
            program: Program::new(strings(&request.argv)?, strings(&request.envp)?),
            candidates: strings(&candidates(name, &request.envp))?,
            folder: CString::new(request.folder.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?,
        })
    }

    fn become_it(
        &self,
        streams: &[OwnedFd; 3],
        pty: Option<&Pty>,
        confinement: Option<&Confinement>,
    ) -> Failure {
        match self.prepare(streams, pty, confinement) {
            Ok(()) => Failure::new(Step::Program, self.execute()),
            Err(failure) => failure,
        }
    }

    fn prepare(
        &self,
        streams: &[OwnedFd; 3],
        pty: Option<&Pty>,
        confinement: Option<&Confinement>,
    ) -> Result<(), Failure> {
        // A session of its own: the command has the terminal made for it or none, never the user's.
        rustix::process::setsid().step(Step::Terminal)?;
        if let Some(pty) = pty {
            rustix::process::ioctl_tiocsctty(&pty.inner).step(Step::Terminal)?;
        }
        let [input, output, error] = streams;
        rustix::stdio::dup2_stdin(input).step(Step::Stdio)?;
        rustix::stdio::dup2_stdout(output).step(Step::Stdio)?;
        rustix::stdio::dup2_stderr(error).step(Step::Stdio)?;
        rustix::process::chdir(self.folder.as_c_str()).step(Step::Folder)?;
        redoma_sys::close_on_exec_from(3).step(Step::Stdio)?;
        confinement.map_or(Ok(()), Confinement::apply)?;
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
