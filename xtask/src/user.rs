//! The ordinary user for whom the end-to-end, red-team and bench runs are repeated when we are root.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The account `cargo xtask setup` makes.
pub(crate) const NAME: &str = "redoma-test";

/// One line of passwd(5), as far as we need it.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
}

/// Whether we run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The test account, if setup has made it.
pub(crate) fn find() -> Result<Option<User>> {
    let passwd = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    passwd.lines().find(|line| line.split(':').next() == Some(NAME)).map(parse).transpose()
}

fn parse(line: &str) -> Result<User> {
    let fields: Vec<&str> = line.split(':').collect();
    let [_, _, uid, gid, _, home, _] = fields.as_slice() else {
        bail!("/etc/passwd: the line of {NAME} has not seven fields");
    };
    Ok(User { uid: uid.parse()?, gid: gid.parse()?, home: PathBuf::from(home) })
}

impl User {
    /// `program` as this user: own groups, no capabilities, an environment made from nothing.
    ///
    /// setpriv(1) rather than su(1): no PAM session, no shell in between, the exit status is the program's.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, path: &OsStr) -> Command {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={}", self.uid)).arg(format!("--regid={}", self.gid));
        command.args(["--init-groups", "--inh-caps=-all", "--"]).arg(program);
        command.env_clear().env("HOME", &self.home).env("USER", NAME).env("LOGNAME", NAME);
        command.env("PATH", path).env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command.current_dir(&self.home);
        command
    }

    /// Hands a path that root made over to this user.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("cannot give {} to {NAME}", path.display()))
    }
}
