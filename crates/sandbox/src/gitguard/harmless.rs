//! Settings of a repository that make git neither run nor read anything else.

use super::config::Entry;

/// Section, whether it has a subsection, and names; everything in lower case. What is not listed may run something, now
/// or in the next version of git.
const HARMLESS: [(&str, bool, &[&str]); 13] = [
    (
        "core",
        false,
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "symlinks",
            "precomposeunicode",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
        ],
    ),
    ("user", false, &["name", "email", "useconfigonly"]),
    ("remote", true, &["url", "fetch", "pushurl", "tagopt", "prune"]),
    ("branch", true, &["remote", "merge", "rebase", "pushremote"]),
    ("submodule", true, &["url", "active", "path"]),
    ("submodule", false, &["active"]),
    ("init", false, &["defaultbranch"]),
    ("extensions", false, &["objectformat", "refstorage"]),
    ("pull", false, &["rebase", "ff"]),
    ("push", false, &["default", "autosetupremote"]),
    ("commit", false, &["gpgsign"]),
    ("tag", false, &["gpgsign"]),
    ("gc", false, &["auto"]),
];

/// Transports that run what their address says (git-remote-ext(1), git-remote-fd(1)), or a program of the address's own
/// choice (`helper::address`).
fn names_helper(address: &[u8]) -> bool {
    let helper = address.windows(2).position(|pair| pair == b"::").map(|at| &address[..at]);
    let is_name =
        |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte));
    helper.is_some_and(is_name) || address.starts_with(b"-")
}

/// Whether git does nothing with it but what every repository makes it do. `core.worktree` depends on where it leads.
pub(super) fn is_harmless(entry: &Entry) -> bool {
    let listed = HARMLESS.iter().any(|(section, sub, names)| {
        *section == entry.section
            && *sub == entry.subsection.is_some()
            && names.contains(&entry.name.as_str())
    });
    let address = matches!(entry.name.as_str(), "url" | "pushurl");
    listed && !(address && entry.value.as_deref().is_some_and(names_helper))
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    #[test]
    fn what_runs_something_is_not_harmless() {
        let verdict = |text: &str| is_harmless(&Config::parse(text.as_bytes()).entries[0]);
        for good in [
            "[core]\nbare=true",
            "[remote \"o\"]\nurl=https://h/x",
            "[branch \"m\"]\nmerge=x",
            "[CORE]\nBare",
        ] {
            assert!(verdict(good), "{good}");
        }
        for bad in [
            "[core]\nfsmonitor=x",
            "[core \"a\"]\nbare=x",
            "[include]\npath=x",
            "[alias]\nx=!x",
            "[remote \"o\"]\nuploadpack=x",
            "[remote \"o\"]\nurl=ext::sh -c x",
            "[submodule \"s\"]\nupdate=!x",
            "[extensions]\nworktreeconfig=true",
            "[init]\ntemplatedir=x",
        ] {
            assert!(!verdict(bad), "{bad}");
        }
    }
}
