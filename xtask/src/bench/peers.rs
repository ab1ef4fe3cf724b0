//! The peers, each told to enforce what Redoma does in the same row.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::bed::Bed;
use crate::process::find;
use crate::setup::PEERS;

/// Where `program` is: installed by `cargo xtask setup --peers`, or on PATH.
pub(crate) fn locate(program: &str) -> Option<PathBuf> {
    let own = Path::new(PEERS).join("bin").join(program);
    if own.exists() { Some(own) } else { find(program) }
}

/// bubblewrap with the namespaces, mounts and private folders of Redoma's full tier, and what else is `shown`.
pub(crate) fn bwrap(bed: &Bed, project: &Path, shown: &[&Path]) -> Command {
    let mut command = bed.command(project, "bwrap");
    command.args([
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/usr",
        "/usr",
        "--ro-bind",
        "/etc",
        "/etc",
    ]);
    for link in ["bin", "sbin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{link}"), &format!("/{link}")]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs"]);
    command.arg(bed.home());
    for path in shown {
        command.arg("--ro-bind").args([path, path]);
    }
    command.arg("--bind").args([project, project]).arg("--chdir").arg(project).arg("--");
    command
}

/// `codex sandbox`: Landlock, seccomp and namespaces, with its default of no network.
pub(crate) fn codex(bed: &Bed, project: &Path) -> Command {
    let mut command = bed.command(project, locate("codex").unwrap_or_else(|| "codex".into()));
    command.args(["sandbox", "--"]);
    command
}

/// Anthropic's sandbox-runtime, with a settings file beside the home.
pub(crate) fn srt(bed: &Bed, project: &Path, settings: &Path) -> Command {
    let mut command = bed.command(project, locate("srt").unwrap_or_else(|| "srt".into()));
    command.arg("--settings").arg(settings);
    command
}

/// nono: Landlock, network blocked, the project granted.
pub(crate) fn nono(bed: &Bed, project: &Path) -> Command {
    let mut command = bed.command(project, locate("nono").unwrap_or_else(|| "nono".into()));
    command.args(["run", "--silent", "--allow-cwd", "--block-net", "--read", "/usr", "--"]);
    command
}
