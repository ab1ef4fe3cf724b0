//! Running other programs: the command line is shown first, and a failure names it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The top of the checkout this xtask was built from.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("xtask lies in the checkout")
}

/// `cargo`, as the one that started us, in the top folder.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// What a person would type to get the same.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs with our own output streams; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs quietly and returns standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let result = command.stderr(Stdio::inherit()).output();
    let result = result.with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !result.status.success() {
        bail!("`{}` ended with {}", shown(command), result.status);
    }
    String::from_utf8(result.stdout).with_context(|| format!("output of `{}`", shown(command)))
}

/// The first executable of that name on `PATH`, or where `cargo install` puts programs.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(installed_by_cargo());
    folders.map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn installed_by_cargo() -> Option<PathBuf> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    Some(own.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))?.join("bin"))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
