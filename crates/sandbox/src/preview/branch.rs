//! What is checked out in a folder, read from a repository's files as hostile input (gitrepository-layout(5)).

use std::fmt;
use std::path::{Path, PathBuf};

use crate::project::{self, Project};
use crate::small_file::{Links, SmallFile};

/// Longer than any name of a branch that a file system could hold.
const HEAD_LIMIT: usize = 4096 + 16;

/// A tree, and which branch it is of which repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The repository: the folder that all its worktrees share.
    pub repository: PathBuf,
    /// The tree's top folder.
    pub tree: PathBuf,
    /// What is checked out in it.
    pub branch: Branch,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Branch {
    /// A branch, without `refs/heads/`.
    Named(String),
    /// A commit, by its whole id.
    Detached(String),
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BranchError {
    #[error("{} is in no git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("{} belongs to a repository that does not know it", .0.display())]
    NotMutual(PathBuf),
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: String },
    #[error("{} names no branch: {said:?}", path.display())]
    NoBranch { path: PathBuf, said: String },
}

impl BranchError {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoRepository(_) => "git init".into(),
            Self::NotMutual(_) => "git worktree repair".into(),
            Self::Read { .. } | Self::NoBranch { .. } => "git status".into(),
        }
    }
}

impl Checkout {
    /// What is checked out in a project.
    ///
    /// # Errors
    /// [`BranchError`].
    pub fn of(project: &Project) -> Result<Self, BranchError> {
        let repository = repository(project)?;
        let head = own_folder(project)?.join("HEAD");
        Ok(Self { repository, tree: project.root.clone(), branch: read(&head)? })
    }
}

/// The folder that all worktrees of the project's repository share: with `.git` at its end, the folder above it.
pub(super) fn repository(project: &Project) -> Result<PathBuf, BranchError> {
    let git = project.root.join(".git");
    let common = match git.symlink_metadata() {
        Ok(found) if found.is_dir() => git,
        Ok(found) if found.is_file() => match project.git_dirs.first() {
            Some(common) => common.clone(),
            // It lies in the project itself, or nothing points back at it.
            None => own_folder(project)?,
        },
        _ => return Err(BranchError::NoRepository(project.root.clone())),
    };
    let above = if common.ends_with(".git") { common.parent() } else { None };
    Ok(above.map(Path::to_owned).unwrap_or(common))
}

/// The git folder of this very tree.
fn own_folder(project: &Project) -> Result<PathBuf, BranchError> {
    let git = project.root.join(".git");
    match git.symlink_metadata() {
        Ok(found) if found.is_dir() => Ok(git),
        Ok(found) if found.is_file() => {
            let own = project::pointed_git_dir(&project.root);
            let known = |own: &PathBuf| {
                own.starts_with(&project.root) || project.git_dirs.iter().any(|dir| own.starts_with(dir))
            };
            own.filter(known).ok_or_else(|| BranchError::NotMutual(project.root.clone()))
        }
        _ => Err(BranchError::NoRepository(project.root.clone())),
    }
}

fn read(head: &Path) -> Result<Branch, BranchError> {
    let unread = |why: String| BranchError::Read { path: head.to_owned(), why };
    let file = SmallFile::read(head, HEAD_LIMIT, Links::Refuse).map_err(|error| unread(error.to_string()))?;
    let bytes = file.ok_or_else(|| unread("there is none".into()))?.bytes;
    Branch::parse(&bytes).ok_or_else(|| {
        let said = String::from_utf8_lossy(&bytes).trim_end().chars().take(80).collect();
        BranchError::NoBranch { path: head.to_owned(), said }
    })
}

impl Branch {
    /// The content of a `HEAD`: `ref: refs/heads/NAME`, or a commit's id. What git would not have written there is none:
    /// see git-check-ref-format(1).
    fn parse(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        if let Some(name) = text.strip_prefix("ref: refs/heads/") {
            return is_branch(name).then(|| Self::Named(name.to_owned()));
        }
        let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self::Detached(text.to_ascii_lowercase()))
    }
}

fn is_branch(name: &str) -> bool {
    let bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.is_empty()
        && name.len() <= 1024
        && !name.contains(bad)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && !name.starts_with('-')
        && name != "@"
        && name.split('/').all(part)
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            // A colon is in no branch's name.
            Self::Detached(id) => write!(f, "detached:{}", &id[..12]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_branch_or_a_commit_and_nothing_else() {
        let named = |name: &str| Some(Branch::Named(name.to_owned()));
        assert_eq!(Branch::parse(b"ref: refs/heads/main\n"), named("main"));
        assert_eq!(Branch::parse("ref: refs/heads/ana/olá".as_bytes()), named("ana/olá"));
        let id = "0123456789abcdef0123456789ABCDEF01234567";
        let detached = Branch::parse(id.as_bytes()).unwrap();
        assert_eq!(detached.to_string(), "detached:0123456789ab");
        for bad in [
            "",
            "ref: refs/heads/",
            "ref: refs/heads/../x",
            "ref: refs/heads/a b",
            "ref: refs/heads/a\nb",
            "ref: refs/heads/\u{1b}[2J",
            "ref: refs/heads/-x",
            "ref: refs/heads/a//b",
            "ref: refs/heads/.a",
            "ref: refs/tags/v1",
            "ref: /etc/passwd",
            "0123",
            "ref: refs/heads/a.lock",
        ] {
            assert_eq!(Branch::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Branch::parse(b"ref: refs/heads/\xff"), None);
    }
}
