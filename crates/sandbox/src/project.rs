//! Which folder is the project, and which git folders outside it belong to it.
//!
//! Everything read here may have been written by a sandbox (promise 12): `.git` files are parsed with bounds, links
//! are not followed, and a git folder outside the project counts only when it points back at the project, which
//! nobody inside could have arranged.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::small_file::{Links, SmallFile};

/// A `.git` file, `commondir` and `gitdir` hold one path each: PATH_MAX and a prefix.
const POINTER_LIMIT: usize = 4096 + 16;
/// A submodule's `config` is a few lines; git itself sets no bound.
const CONFIG_LIMIT: usize = 256 * 1024;
/// Folders looked at upward before giving up.
const DEPTH_LIMIT: usize = 128;

/// The project of a command: what `write = ["."]` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The canonical top folder.
    pub root: PathBuf,
    /// The canonical folder the command starts in; it lies in `root`.
    pub cwd: PathBuf,
    /// Canonical git folders outside `root` that git needs to work in it: of a linked worktree (its own and the
    /// common one) or of a submodule.
    pub git_dirs: Vec<PathBuf>,
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The current folder cannot be told or was removed.
    #[error("cannot tell the folder to start in, {}", path.display())]
    Cwd {
        /// The folder as it was given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Granting this folder would grant nearly everything.
    #[error("{} is too wide to be a project: {reason}", root.display())]
    TooWide {
        /// The folder.
        root: PathBuf,
        /// What else it holds.
        reason: &'static str,
    },
}

impl ProjectError {
    /// What to do about it, as one command line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Cwd { .. } => "cd into an existing folder".to_owned(),
            Self::TooWide { .. } => "mkdir -p ~/project && cd ~/project".to_owned(),
        }
    }
}

// === impl Project ===

impl Project {
    /// Finds the project of `cwd`: the git top level above it, else `cwd` itself.
    ///
    /// A top level is passed over when it belongs to neither the caller nor the owner of `cwd` (somebody planted
    /// `/tmp/.git`), or when it is `home` or holds it (a home folder kept in git is not meant as a project).
    pub fn discover(cwd: &Path, home: &Path) -> Result<Self, ProjectError> {
        let failed = |source| ProjectError::Cwd { path: cwd.to_owned(), source };
        let cwd = cwd.canonicalize().map_err(failed)?;
        let owner = std::fs::metadata(&cwd).map_err(failed)?.uid();
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let Some(root) = top_level(&cwd, &home, owner) else {
            return Ok(Self { root: cwd.clone(), cwd, git_dirs: Vec::new() });
        };
        let git_dirs = outside_git_dirs(&root);
        Ok(Self { root, cwd, git_dirs })
    }

    /// Refuses a project whose grant would swallow the system or the user's whole home.
    pub fn check_width(&self, home: &Path) -> Result<(), ProjectError> {
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let refuse = |reason| Err(ProjectError::TooWide { root: self.root.clone(), reason });
        if self.root == home {
            return refuse("it is your home folder");
        }
        if home.starts_with(&self.root) {
            return refuse("it holds your home folder");
        }
        if ["/proc", "/sys", "/dev"].iter().any(|pseudo| self.root.starts_with(pseudo)) {
            return refuse("it shows the kernel, not files");
        }
        if self.root.parent() == Some(Path::new("/")) && SYSTEM.iter().any(|name| self.root.ends_with(name)) {
            return refuse("it is part of the system");
        }
        Ok(())
    }
}

/// Top folders that hold the system or everybody's files, or that a sandbox replaces by its own.
const SYSTEM: [&str; 12] =
    ["bin", "boot", "etc", "home", "lib", "lib64", "opt", "run", "sbin", "tmp", "usr", "var"];

fn top_level(cwd: &Path, home: &Path, owner: u32) -> Option<PathBuf> {
    let caller = rustix::process::geteuid().as_raw();
    cwd.ancestors()
        .take(DEPTH_LIMIT)
        .take_while(|folder| !home.starts_with(folder))
        .find(|folder| is_top_level(folder, &[caller, owner]))
        .map(Path::to_owned)
}

fn is_top_level(folder: &Path, owners: &[u32]) -> bool {
    let Ok(mark) = std::fs::symlink_metadata(folder.join(".git")) else { return false };
    let plausible = mark.is_file() || mark.is_dir() && folder.join(".git/HEAD").symlink_metadata().is_ok();
    plausible && owners.contains(&mark.uid())
}

/// The git folders outside `root` that its `.git` file names, if they point back at `root`.
fn outside_git_dirs(root: &Path) -> Vec<PathBuf> {
    let Some(git_dir) = pointed_git_dir(root) else { return Vec::new() };
    let mut found =
        worktree_dirs(root, &git_dir).or_else(|| submodule_dirs(root, git_dir)).unwrap_or_default();
    found.retain(|dir| !dir.starts_with(root));
    found
}

/// Where a `.git` file points (gitrepository-layout(5)): `gitdir: PATH`, relative to the file's folder.
pub(crate) fn pointed_git_dir(root: &Path) -> Option<PathBuf> {
    let text = pointer(&root.join(".git"))?;
    let path = Path::new(std::ffi::OsStr::from_bytes(text.strip_prefix(b"gitdir: ")?));
    root.join(path).canonicalize().ok()
}

/// A linked worktree: `COMMON/worktrees/NAME`, whose `gitdir` file names this very `.git` file.
///
/// The common folder follows from the place alone. Its `commondir` file is compared, not believed: the session can
/// write to it.
fn worktree_dirs(root: &Path, git_dir: &Path) -> Option<Vec<PathBuf>> {
    let worktrees = git_dir.parent().filter(|dir| dir.ends_with("worktrees"))?;
    let common = worktrees.parent()?;
    let says_common = git_dir.join(pointer_path(&git_dir.join("commondir"))?).canonicalize().ok()?;
    let says_file = git_dir.join(pointer_path(&git_dir.join("gitdir"))?);
    let points_back = says_file.parent()?.canonicalize().ok()? == root && says_file.ends_with(".git");
    (says_common == common && points_back && common.join("HEAD").is_file()).then(|| vec![common.to_owned()])
}

/// A submodule: below `SUPER/.git/modules/`, whose `config` sets `core.worktree` to this very folder.
fn submodule_dirs(root: &Path, git_dir: PathBuf) -> Option<Vec<PathBuf>> {
    let in_modules = git_dir.components().any(|part| part == Component::Normal("modules".as_ref()));
    let config = SmallFile::read(&git_dir.join("config"), CONFIG_LIMIT, Links::Refuse).ok()??;
    let worktree = core_worktree(&config.bytes)?;
    let points_back = git_dir.join(worktree).canonicalize().ok()? == root;
    (in_modules && points_back).then(|| vec![git_dir])
}

/// The value of `core.worktree` in a git config (git-config(1)), as `git submodule` writes it: unquoted, one line.
fn core_worktree(config: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(config).ok()?;
    let mut in_core = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_core = line.eq_ignore_ascii_case("[core]");
        }
        let Some((key, value)) = line.split_once('=').filter(|_| in_core) else { continue };
        if key.trim().eq_ignore_ascii_case("worktree") {
            found = Some(PathBuf::from(value.trim().trim_matches('"')));
        }
    }
    found
}

fn pointer(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = SmallFile::read(path, POINTER_LIMIT, Links::Refuse).ok()??.bytes;
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    // A NUL or a second line is not what git writes.
    (!bytes.is_empty() && !bytes.iter().any(|byte| matches!(byte, 0 | b'\n'))).then_some(bytes)
}

fn pointer_path(path: &Path) -> Option<PathBuf> {
    pointer(path).map(|bytes| PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    struct Tree {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            Self { _dir: dir, root }
        }

        fn file(&self, path: &str, text: &str) -> &Self {
            let path = self.root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
            self
        }

        fn at(&self, path: &str) -> PathBuf {
            self.root.join(path)
        }

        fn discover(&self, cwd: &str) -> Project {
            create_dir_all(self.at(cwd)).unwrap();
            Project::discover(&self.at(cwd), &self.at("home")).unwrap()
        }

        /// `main` with the linked worktree `linked`, as `git worktree add` lays them out.
        fn with_worktree(&self) -> &Self {
            let git = self.at("main/.git/worktrees/linked");
            self.file("main/.git/HEAD", "ref: refs/heads/main\n")
                .file("main/.git/worktrees/linked/commondir", "../..\n")
                .file("linked/.git", &format!("gitdir: {}\n", git.display()))
                .file("main/.git/worktrees/linked/gitdir", &format!("{}\n", self.at("linked/.git").display()))
        }
    }

    #[test]
    fn the_git_top_level_above_is_the_project() {
        let tree = Tree::new();
        tree.file("repo/.git/HEAD", "ref: refs/heads/main\n");
        let project = tree.discover("repo/src/deep");
        assert_eq!(project.root, tree.at("repo"));
        assert_eq!(project.cwd, tree.at("repo/src/deep"));
        assert_eq!(project.git_dirs, Vec::<PathBuf>::new());
    }

    #[test]
    fn without_git_the_folder_itself_is_the_project() {
        let tree = Tree::new();
        tree.file("plain/.git/config", "no HEAD here");
        assert_eq!(tree.discover("plain/src").root, tree.at("plain/src"));
    }

    #[test]
    fn a_home_kept_in_git_is_not_the_project_of_what_lies_below() {
        let tree = Tree::new();
        tree.file("home/.git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(tree.discover("home/code/app").root, tree.at("home/code/app"));
    }

    #[test]
    fn a_linked_worktree_brings_its_common_git_folder() {
        let tree = Tree::new();
        tree.with_worktree();
        assert_eq!(tree.discover("linked/src").git_dirs, [tree.at("main/.git")]);
    }

    #[test]
    fn a_git_file_that_points_at_a_folder_not_pointing_back_brings_nothing() {
        let tree = Tree::new();
        tree.with_worktree();
        let git = tree.at("main/.git/worktrees/linked");
        tree.file("evil/.git", &format!("gitdir: {}\n", git.display()));
        assert!(tree.discover("evil").git_dirs.is_empty());
        tree.file("evil2/.git", &format!("gitdir: {}\n", tree.at("main/.git").display()));
        assert!(tree.discover("evil2").git_dirs.is_empty());
    }

    #[test]
    fn a_forged_commondir_or_a_second_line_brings_nothing() {
        let tree = Tree::new();
        tree.with_worktree();
        tree.file("secret/HEAD", "").file("main/.git/worktrees/linked/commondir", "../../../../secret\n");
        assert!(tree.discover("linked").git_dirs.is_empty());
        tree.with_worktree();
        assert_eq!(tree.discover("linked").git_dirs.len(), 1);
        let git = tree.at("main/.git/worktrees/linked");
        tree.file("linked/.git", &format!("gitdir: {}\nx\n", git.display()));
        assert!(tree.discover("linked").git_dirs.is_empty());
    }

    #[test]
    fn a_submodule_brings_its_git_folder_only_when_its_worktree_points_back() {
        let tree = Tree::new();
        tree.file("super/.git/HEAD", "ref: refs/heads/main\n")
            .file("super/sub/.git", "gitdir: ../.git/modules/sub\n")
            .file("super/.git/modules/sub/HEAD", "ref: refs/heads/main\n")
            .file("super/.git/modules/sub/config", "[core]\n\tbare = false\n\tworktree = ../../../sub\n");
        let project = tree.discover("super/sub");
        assert_eq!(project.root, tree.at("super/sub"));
        assert_eq!(project.git_dirs, [tree.at("super/.git/modules/sub")]);
        tree.file("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../other\n");
        assert!(tree.discover("super/sub").git_dirs.is_empty());
    }

    #[test]
    fn the_home_folder_what_holds_it_and_the_system_are_too_wide() {
        let home = Path::new("/nowhere/ana");
        let wide = |root: &str| {
            Project { root: root.into(), cwd: root.into(), git_dirs: Vec::new() }.check_width(home).is_err()
        };
        assert!(wide("/nowhere/ana") && wide("/nowhere") && wide("/") && wide("/etc") && wide("/proc/1"));
        assert!(!wide("/nowhere/ana/code") && !wide("/tmp/x") && !wide("/srv") && !wide("/opt/app"));
    }
}
