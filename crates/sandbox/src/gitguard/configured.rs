//! What git's configuration makes git run or read, where that lies in the project.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use redoma_policy::{Layer, Origin, PathFacts, PathKind, PathPattern, PathRule, ResolvedPolicy};

use super::config::{Config, Entry};
use crate::project::Project;
use crate::settings::{HostPaths, nearest_canonical};
use crate::small_file::{Links, SmallFile, SmallFileError};

/// Git itself sets no bound; the largest that are written by hand have some hundred lines.
pub(super) const CONFIG_MAX: usize = 1 << 20;
/// Files that include files. Git stops at 10.
const DEPTH_MAX: u32 = 5;
/// Files read in all.
const FILES_MAX: usize = 64;

/// What git looks for in `core.hooksPath` (githooks(5)), for when that is the project's top folder, which cannot be
/// protected as a whole.
const HOOKS: [&str; 27] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "sendemail-validate",
    "update",
];

/// A configuration file that cannot be read, so that nobody knows what git on the host would run.
#[derive(Debug, thiserror::Error)]
#[error("cannot read git's configuration {}: {why}", path.display())]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub why: String,
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A folder of programs.
    Hooks,
    /// A configuration file.
    Include,
    /// A file that is read.
    File,
    /// A command line; the files it names are what it runs.
    Command,
}

/// Adds to the protected paths what git's configuration names in the project: git on the host runs it.
pub(crate) fn protect_configured(
    policy: &mut ResolvedPolicy,
    project: &Project,
    home: &Path,
) -> Result<(), ConfigError> {
    let mut reading = Reading { project, home, seen: HashSet::new(), rules: Vec::new() };
    for folder in std::iter::once(project.root.join(".git")).chain(project.git_dirs.iter().cloned()) {
        for name in ["config", "config.worktree"] {
            reading.file(&folder.join(name), 0)?;
        }
    }
    // What is configured for all repositories may name something in each.
    for file in [".gitconfig", ".config/git/config"] {
        reading.file(&home.join(file), 0)?;
    }
    for rule in reading.rules {
        if !policy.filesystem.protect.iter().any(|known| known.pattern == rule.pattern) {
            policy.filesystem.protect.push(rule);
        }
    }
    Ok(())
}

struct Reading<'a> {
    project: &'a Project,
    home: &'a Path,
    seen: HashSet<PathBuf>,
    rules: Vec<PathRule>,
}

// === impl Reading ===

impl Reading<'_> {
    fn file(&mut self, path: &Path, depth: u32) -> Result<(), ConfigError> {
        if depth > DEPTH_MAX || self.seen.len() >= FILES_MAX || !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let file = match SmallFile::read(path, CONFIG_MAX, Links::Follow) {
            Ok(Some(file)) => file,
            // Git cannot read it either, or passes over what is no file.
            Ok(None) | Err(SmallFileError::Io(_) | SmallFileError::NotRegular) => return Ok(()),
            Err(error) => return Err(ConfigError { path: path.to_owned(), why: error.to_string() }),
        };
        for entry in Config::parse(&file.bytes).entries {
            self.entry(path, &entry, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, file: &Path, entry: &Entry, depth: u32) -> Result<(), ConfigError> {
        let (Some(meaning), Some(value)) = (meaning(entry), &entry.value) else { return Ok(()) };
        let origin = self.origin(file, entry);
        match meaning {
            Meaning::Hooks => self.hooks(value, &origin),
            Meaning::File => self.protect(&self.path(&self.project.root, value), false, &origin),
            Meaning::Command => self.command(value, &origin),
            Meaning::Include => {
                let path = self.path(file.parent().unwrap_or(file), value);
                self.protect(&path, false, &origin);
                self.file(&nearest_canonical(&path), depth + 1)?;
            }
        }
        Ok(())
    }

    /// A path as git understands it (git-config(1), "pathname"), relative to `base`.
    fn path(&self, base: &Path, value: &[u8]) -> PathBuf {
        match value.strip_prefix(b"~/") {
            Some(rest) => self.home.join(OsStr::from_bytes(rest)),
            None => base.join(OsStr::from_bytes(value)),
        }
    }

    fn hooks(&mut self, value: &[u8], origin: &Origin) {
        let folder = self.path(&self.project.root, value);
        if nearest_canonical(&folder) == self.project.root {
            HOOKS.iter().for_each(|hook| self.protect(&folder.join(hook), false, origin));
        } else {
            self.protect(&folder, true, origin);
        }
    }

    /// Every word of a command line that names a file of the project, and the program where it is named by a path: git
    /// runs command lines by the shell, in the top folder.
    fn command(&mut self, value: &[u8], origin: &Origin) {
        let separates = |byte: &u8| byte.is_ascii_whitespace() || b"\"'!;&|()<>=".contains(byte);
        let words = value.split(separates).filter(|word| !word.is_empty());
        for (at, word) in words.enumerate() {
            let path = self.path(&self.project.root, word);
            if path.is_file() || at == 0 && word.contains(&b'/') {
                self.protect(&path, false, origin);
            }
        }
    }

    /// Protects what a path leads to, and the links on the way: led elsewhere, they would lead git as well.
    fn protect(&mut self, path: &Path, folder: bool, origin: &Origin) {
        let real = nearest_canonical(path);
        let links = self.links(path);
        let wanted = links.into_iter().map(|link| (link, false)).chain([(real, folder)]);
        for (path, folder) in wanted {
            // The top folder itself, or one above it, would close the whole project.
            let plain = !path.components().any(|part| part == Component::ParentDir);
            if plain && path.starts_with(&self.project.root) && path != self.project.root {
                let found: Option<PathKind> = HostPaths.kind(&path);
                let pattern = PathPattern::Exact { path, folder, found };
                self.rules.push(PathRule { pattern, origin: origin.clone() });
            }
        }
    }

    fn links(&self, path: &Path) -> Vec<PathBuf> {
        let mut way = PathBuf::new();
        let mut links = Vec::new();
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    way = nearest_canonical(&way).parent().map(Path::to_owned).unwrap_or_default();
                }
                part => way.push(part),
            }
            if way.starts_with(&self.project.root) && way.is_symlink() {
                let parent = way.parent().map(nearest_canonical).unwrap_or_default();
                links.extend(way.file_name().map(|name| parent.join(name)));
            }
        }
        links
    }

    fn origin(&self, file: &Path, entry: &Entry) -> Origin {
        let file = file.strip_prefix(&self.project.root).unwrap_or(file);
        let sub = entry.subsection.as_deref().map(|sub| format!(".{}", String::from_utf8_lossy(sub)));
        let key = format!("{}{}.{}", entry.section, sub.unwrap_or_default(), entry.name);
        Origin {
            layer: Layer::Builtin,
            file: Some(Arc::from(file)),
            line: Some(entry.line),
            text: Arc::from(format!("{}: {key}", file.display())),
        }
    }
}

/// git-config(1): the settings whose value git runs, or reads as more settings.
fn meaning(entry: &Entry) -> Option<Meaning> {
    Some(match (entry.section.as_str(), entry.name.as_str()) {
        ("core", "hookspath") => Meaning::Hooks,
        ("include" | "includeif", "path") => Meaning::Include,
        ("core", "attributesfile") => Meaning::File,
        (
            "core",
            "fsmonitor" | "editor" | "pager" | "sshcommand" | "askpass" | "gitproxy" | "alternaterefscommand",
        )
        | ("sequence", "editor")
        | ("diff", "command" | "textconv" | "external")
        | ("filter", "clean" | "smudge" | "process")
        | ("merge", "driver")
        | ("difftool" | "mergetool", "cmd" | "path")
        | ("gpg", "program")
        | ("credential", "helper")
        | ("alias" | "pager", _)
        | ("remote", "uploadpack" | "receivepack" | "vcs")
        | ("trailer", "command" | "cmd")
        | ("sendemail", "tocmd" | "cccmd" | "sendmailcmd")
        | ("uploadpack", "packobjectshook")
        | ("interactive", "difffilter")
        | ("hook", "command") => Meaning::Command,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Bed {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            Self { _dir: dir, root }
        }

        fn file(&self, path: &str, text: &str) -> &Self {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            self
        }

        /// What is protected, below the project.
        fn protected(&self) -> Vec<String> {
            let root = self.root.join("p");
            let project = Project { root: root.clone(), cwd: root.clone(), git_dirs: Vec::new() };
            let home = self.root.join("home");
            let mut reading =
                Reading { project: &project, home: &home, seen: HashSet::new(), rules: Vec::new() };
            for file in [root.join(".git/config"), home.join(".gitconfig")] {
                reading.file(&file, 0).unwrap();
            }
            let mut shown: Vec<String> = reading
                .rules
                .iter()
                .map(|rule| rule.pattern.anchor().strip_prefix(&root).unwrap().display().to_string())
                .collect();
            shown.sort();
            shown.dedup();
            shown
        }
    }

    #[test]
    fn what_git_would_run_or_read_in_the_project_is_protected() {
        let bed = Bed::new();
        bed.file("p/tools/clean.py", "").file(
            "p/.git/config",
            "[core]\nhooksPath = .githooks\nfsmonitor = ./watch --x\nattributesFile = attrs\nexcludesFile = ex\n\
             [filter \"a\"]\nclean = python3 'tools/clean.py' %f\nsmudge = cat\n\
             [include]\npath = ../shared\n[core]\neditor = /usr/bin/vi\n",
        );
        bed.file("p/shared", "[includeIf \"gitdir:x\"]\npath = more\n")
            .file("p/more", "[gpg]\nprogram = bin/gpg\n");
        bed.file("home/.gitconfig", "[core]\nhooksPath = hooks.d\n");
        assert_eq!(
            bed.protected(),
            [".githooks", "attrs", "bin/gpg", "hooks.d", "more", "shared", "tools/clean.py", "watch"]
        );
    }

    #[test]
    fn links_on_the_way_are_protected_and_circles_end() {
        let bed = Bed::new();
        bed.file("p/real/hooks/pre-commit", "").file(
            "p/.git/config",
            "[core]\nhooksPath = link/hooks\n[include]\npath = config\npath = ../up\n",
        );
        bed.file("p/up", "[include]\npath = .git/config\npath = ../../../outside\n");
        std::os::unix::fs::symlink("real", bed.root.join("p/link")).unwrap();
        assert_eq!(bed.protected(), [".git/config", "link", "real/hooks", "up"]);
    }

    #[test]
    fn hooks_in_the_top_folder_are_protected_one_by_one() {
        let bed = Bed::new();
        bed.file("p/.git/config", "[core]\nhooksPath = .\n");
        let protected = bed.protected();
        assert!(
            protected.contains(&"pre-commit".to_owned()) && protected.len() == HOOKS.len(),
            "{protected:?}"
        );
    }

    #[test]
    fn a_file_too_large_to_be_known_is_an_error() {
        let bed = Bed::new();
        bed.file("p/.git/config", &"#".repeat(CONFIG_MAX + 1));
        let root = bed.root.join("p");
        let project = Project { root: root.clone(), cwd: root.clone(), git_dirs: Vec::new() };
        let mut reading = Reading { project: &project, home: &root, seen: HashSet::new(), rules: Vec::new() };
        assert!(reading.file(&root.join(".git/config"), 0).is_err());
    }
}
