//! A test whose tool is missing says so loudly, and fails where skipping is not accepted.

use std::io::Write;
use std::path::PathBuf;

use crate::binary::search_path;

/// Leaves the test, loudly, unless every named program is on the tests' search path.
///
/// Under `CI=true` or `REDOMA_REQUIRE_ALL=1` a missing program fails the test instead.
#[macro_export]
macro_rules! requires {
    ($($program:expr),+ $(,)?) => {
        $(if !$crate::available($program, module_path!()) { return; })+
    };
}

/// Whether `program` is on the search path; if not, records the skip of `test`.
///
/// # Panics
/// If it is missing where skipping is not accepted.
#[must_use]
pub fn available(program: &str, test: &str) -> bool {
    if available_tool(program).is_some() {
        return true;
    }
    skip(test, &format!("{program} is missing"));
    false
}

/// Where `program` is on the tests' search path.
#[must_use]
pub fn available_tool(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path()).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Records that `test` cannot run here, and why.
///
/// # Panics
/// Where skipping is not accepted: a test that passes by not running proves nothing.
pub fn skip(test: &str, why: &str) {
    let strict = std::env::var("CI").is_ok_and(|value| value == "true")
        || std::env::var_os("REDOMA_REQUIRE_ALL").is_some();
    assert!(!strict, "{test}: {why}, and nothing may be skipped here; hint: cargo xtask setup");
    eprintln!("SKIPPED {test}: {why}");
    if let Some(log) = std::env::var_os("REDOMA_SKIP_LOG") {
        let line = format!("{test}: {why}\n");
        let opened = std::fs::OpenOptions::new().append(true).open(log);
        opened.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip log takes a line");
    }
}
