//! The machine as a tool sees it: without the project.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{PresetError, Tool};
use crate::small_file::{Links, SmallFile};

/// How long a tool may take to say what it is configured to do.
const PATIENCE: Duration = Duration::from_secs(20);
/// Most bytes of an answer or a configuration file.
const MOST: usize = 4 << 20;
/// Variables that tools need to run at all. What makes them load code (`NODE_OPTIONS`, `PYTHONPATH`) is not among them.
const USUAL: [&str; 18] = [
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "JAVA_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NVM_DIR",
    "VOLTA_HOME",
    "ASDF_DATA_DIR",
    "RBENV_ROOT",
    "SDKMAN_DIR",
];

/// Where tools and their configuration are looked for.
pub struct Outside<'a> {
    /// The user's home.
    pub home: &'a Path,
    /// The project's canonical top folder, from which nothing is taken.
    pub project: &'a Path,
    /// The caller's variables.
    pub vars: Vec<(OsString, OsString)>,
    /// The folder that holds `etc`: `/`.
    pub root: &'a Path,
}

// === impl Outside ===

impl Outside<'_> {
    pub(super) fn in_project(&self, path: &Path) -> bool {
        path.starts_with(self.project)
    }

    /// A variable of the caller's, unless it leads into the project.
    pub(super) fn var(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.vars.iter().find(|(own, _)| own == name)?;
        (!value.is_empty() && self.is_clear(value)).then_some(value)
    }

    /// A variable's text.
    pub(super) fn text_var(&self, name: &str) -> Option<&str> {
        self.var(name).and_then(OsStr::to_str)
    }

    /// Whether a value says nothing about the project: a variable may have been set by a hook of its folder.
    fn is_clear(&self, value: &OsStr) -> bool {
        !value.to_string_lossy().contains(&*self.project.to_string_lossy())
    }

    /// A file of the table, in which `~/.config` is `XDG_CONFIG_HOME` where that is set.
    pub(super) fn user_file(&self, file: &str) -> PathBuf {
        let config = self.var("XDG_CONFIG_HOME").map(Path::new).filter(|folder| folder.is_absolute());
        match (file.strip_prefix("~/.config/"), config, file.strip_prefix("~/")) {
            (Some(rest), Some(folder), _) => folder.join(rest),
            (.., Some(rest)) => self.home.join(rest),
            _ => PathBuf::from(file),
        }
    }

    /// A configuration file's text; `None` if there is none.
    pub(super) fn read(&self, path: &Path) -> Result<Option<String>, PresetError> {
        let failed = |why: String| PresetError::Unreadable { path: path.to_owned(), why };
        let file = SmallFile::read(path, MOST, Links::Follow).map_err(|error| failed(error.to_string()))?;
        let Some(file) = file else { return Ok(None) };
        if path.canonicalize().is_ok_and(|real| self.in_project(&real)) {
            return Err(failed("it leads into the project".to_owned()));
        }
        String::from_utf8(file.bytes).map(Some).map_err(|_| failed("it is not UTF-8".to_owned()))
    }

    /// The folders of `PATH`, without those in the project or relative to wherever one stands.
    fn path(&self) -> Vec<PathBuf> {
        let Some((_, path)) = self.vars.iter().find(|(name, _)| name == "PATH") else { return Vec::new() };
        let real = |folder: PathBuf| folder.is_absolute().then(|| folder.canonicalize().ok()).flatten();
        std::env::split_paths(path).filter_map(real).filter(|folder| !self.in_project(folder)).collect()
    }

    /// A program outside the project; links in its own name are not followed, as programs go by the name they have.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |file: &PathBuf| {
            let real = file.canonicalize().ok().filter(|real| real.is_file() && !self.in_project(real));
            real.is_some() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
        };
        self.path().into_iter().map(|folder| folder.join(name)).find(is_program)
    }

    /// The tool's own program.
    pub(super) fn program_of(&self, tool: &Tool) -> Result<PathBuf, PresetError> {
        let missing = || PresetError::NoProgram { preset: tool.name.clone(), program: tool.program.clone() };
        self.program(&tool.program).ok_or_else(missing)
    }

    /// Runs a program and returns what it wrote. It must succeed, in time.
    pub(super) fn run(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        passes: &[String],
    ) -> Result<String, PresetError> {
        let failed = |why: String| PresetError::Failed { program: program.to_owned(), why };
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").env_clear().envs(self.variables(passes));
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (ended, output) = attend(child).map_err(|error| failed(error.to_string()))?;
        match ended {
            Some(status) if status.success() => {
                String::from_utf8(output).map_err(|_| failed("its answer is not UTF-8".to_owned()))
            }
            Some(status) => Err(failed(format!("it ended with {status}"))),
            None => Err(failed(format!("it has not answered within {} s", PATIENCE.as_secs()))),
        }
    }

    fn variables(&self, passes: &[String]) -> Vec<(OsString, OsString)> {
        let wanted = |name: &OsStr| {
            USUAL.iter().any(|usual| name == *usual)
                || passes.iter().any(|glob| fast_glob::glob_match(glob, name.as_bytes()))
        };
        let own = self.vars.iter().filter(|(name, value)| wanted(name) && self.is_clear(value));
        let mut variables: Vec<_> = own.cloned().collect();
        // Joining folders that PATH was split into cannot fail: none has a colon.
        variables.push(("PATH".into(), std::env::join_paths(self.path()).unwrap_or_default()));
        // Shims of package managers must not fetch a version of the tool to answer with.
        variables.push(("COREPACK_ENABLE_NETWORK".into(), "0".into()));
        variables.push(("GOTOOLCHAIN".into(), "local".into()));
        variables
    }
}

/// Reads all that a child writes and waits for its end, without a thread: the caller is about to clone. `None` is a child
/// that took too long; it is killed.
fn attend(mut child: Child) -> std::io::Result<(Option<std::process::ExitStatus>, Vec<u8>)> {
    let until = Instant::now() + PATIENCE;
    let mut output = Vec::new();
    let done = match child.stdout.take() {
        Some(stdout) => drain(stdout, &mut output, until)? && is_over(&child, until)?,
        None => is_over(&child, until)?,
    };
    if !done {
        child.kill()?;
        child.wait()?;
        return Ok((None, output));
    }
    Ok((Some(child.wait()?), output))
}

/// Reads to the end; `false` is too late or too much.
fn drain(mut from: impl Read + AsFd, output: &mut Vec<u8>, until: Instant) -> std::io::Result<bool> {
    let mut chunk = [0; 16 << 10];
    while readable(&from, until)? {
        match from.read(&mut chunk)? {
            0 => return Ok(true),
            _ if output.len() > MOST => return Ok(false),
            read => output.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(false)
}

fn is_over(child: &Child, until: Instant) -> std::io::Result<bool> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return Ok(true) };
    readable(&pidfd_open(pid, PidfdFlags::empty())?, until)
}

/// Waits until a descriptor has something, or time is up.
fn readable(fd: &impl AsFd, until: Instant) -> std::io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
