//! Where the program under test and the tools it runs are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The built `redoma`: `REDOMA_BIN` (set by `cargo xtask test`), else the one in the target folder.
///
/// # Panics
/// If neither exists.
#[must_use]
pub fn redoma() -> PathBuf {
    let chosen = std::env::var_os("REDOMA_BIN").map_or_else(beside_the_tests, PathBuf::from);
    assert!(chosen.is_file(), "{} is missing; run `cargo build -p redoma-cli` first", chosen.display());
    chosen
}

/// A test binary lies in `target/<profile>/deps`, programs one folder up.
fn beside_the_tests() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps/test");
    profile.join("redoma")
}

/// The Rust toolchain that tests build with, readable by every user; set by `cargo xtask test`.
///
/// Unset when the suite runs without xtask: then the one that `rustc` on PATH belongs to.
#[must_use]
pub fn toolchain() -> Option<PathBuf> {
    if let Some(shared) = std::env::var_os("REDOMA_TEST_TOOLCHAIN") {
        return Some(PathBuf::from(shared));
    }
    let printed = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    String::from_utf8(printed.stdout).ok().map(|path| PathBuf::from(path.trim()))
}

/// Folders with programs that tests may rely on.
pub(crate) fn search_path() -> OsString {
    let default = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    std::env::var_os("REDOMA_TEST_PATH").unwrap_or_else(|| default.into())
}
