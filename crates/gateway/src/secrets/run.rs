//! A program that tells a credential.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use zeroize::Zeroize;

/// Long enough to type a passphrase.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program writes, if it ends well and in time. Its errors go where ours go; it has no input, but a terminal if
/// it opens one. No thread is made: the caller forks later.
pub(super) fn output(words: &[String], longest: usize) -> io::Result<Vec<u8>> {
    within(words, longest, PATIENCE)
}

fn within(words: &[String], longest: usize, patience: Duration) -> io::Result<Vec<u8>> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut read = drain(&mut child, longest, Instant::now() + patience);
    if read.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    match &mut read {
        Ok(output) if !status.success() => {
            output.zeroize();
            Err(io::Error::other(format!("it ended with {status}")))
        }
        _ => read,
    }
}

fn drain(child: &mut Child, longest: usize, deadline: Instant) -> io::Result<Vec<u8>> {
    let Some(out) = &mut child.stdout else { return Ok(Vec::new()) };
    let (mut output, mut piece) = (Vec::with_capacity(longest), [0; 4096]);
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).unwrap_or_default();
        let ready = {
            let mut wait = [PollFd::new(&*out, PollFlags::IN)];
            rustix::io::retry_on_intr(|| rustix::event::poll(&mut wait, Some(&left)))?
        };
        if ready == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        let length = out.read(&mut piece)?;
        if length == 0 {
            piece.zeroize();
            return Ok(output);
        }
        if output.len() + length > longest {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it wrote more than any credential has"));
        }
        output.extend_from_slice(&piece[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: u64) -> io::Result<Vec<u8>> {
        let words = ["sh", "-c", script].map(str::to_owned);
        within(&words, 64, Duration::from_millis(patience))
    }

    #[test]
    fn a_program_is_heard_if_it_ends_well_in_time_and_is_brief() {
        assert_eq!(shell("echo value", 10_000).unwrap(), b"value\n");
        assert_eq!(shell("exec sleep 60", 50).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            shell("echo value; exit 3", 10_000).unwrap_err().to_string(),
            "it ended with exit status: 3"
        );
        assert_eq!(shell("yes", 10_000).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let missing = output(&["/nowhere/program".to_owned()], 64);
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
