//! What of a change set is never applied.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::Refusal;
use crate::walk::tree::as_path;

/// Marks that change what a file is; Redoma mounts with neither feature, so somebody else set them.
const FOREIGN_MARKS: [&str; 2] = ["user.overlay.metacopy", "user.overlay.redirect"];

/// What speaks against an entry by its own nature; `target` is where it leads if it is a link.
pub(super) fn by_nature(rel: &Path, stat: &Stat, target: Option<&[u8]>) -> Option<Refusal> {
    if !rel.components().all(|component| matches!(component, Component::Normal(_))) {
        return Some(Refusal::Name);
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o6000 != 0 => Some(Refusal::SetId),
        FileType::Directory if stat.st_mode & 0o4000 != 0 => Some(Refusal::SetId),
        FileType::RegularFile | FileType::Directory => None,
        FileType::Symlink => {
            let target = as_path(target.unwrap_or_default());
            leaves(rel, target).then(|| Refusal::LinkOutside(target.to_path_buf()))
        }
        FileType::Fifo => Some(Refusal::Fifo),
        FileType::Socket => Some(Refusal::Socket),
        _ => Some(Refusal::Device),
    }
}

/// Whether a link at `rel` leads out of the project, as far as its text tells. `..` after a name is taken to leave: that
/// name may be, or become, a link itself.
fn leaves(rel: &Path, target: &Path) -> bool {
    let mut depth = rel.components().count().saturating_sub(1);
    let mut named = target.as_os_str().is_empty();
    for component in target.components() {
        match component {
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 && !named => depth -= 1,
            _ => return true,
        }
    }
    target.as_os_str().is_empty()
}

/// Whether a file or folder, held open, carries a mark that does not come from the kernel here.
pub(super) fn has_foreign_mark(file: &OwnedFd) -> bool {
    FOREIGN_MARKS.iter().any(|mark| has_mark(file, mark))
}

/// Whether the kernel marked it: the value is not looked at where its presence says all.
pub(super) fn has_mark(file: &OwnedFd, mark: &str) -> bool {
    rustix::fs::fgetxattr(file, mark, &mut [0_u8; 0][..]).is_ok()
}

/// Whether a folder hides what lies below it.
pub(super) fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0_u8; 2];
    rustix::fs::fgetxattr(folder, "user.overlay.opaque", &mut value[..])
        .is_ok_and(|length| value[..length] == *b"y")
}

/// The path of `name` in `rel`.
pub(super) fn below(rel: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    rel.join(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_may_lead_within_the_project_only() {
        for (at, target) in [("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a", "./b/c")] {
            assert!(!leaves(Path::new(at), Path::new(target)), "{at} -> {target}");
        }
        for (at, target) in
            [("a", "/etc"), ("a", ".."), ("a/b", "../../c"), ("a", "b/../../c"), ("a/b", "x/../y"), ("a", "")]
        {
            assert!(leaves(Path::new(at), Path::new(target)), "{at} -> {target}");
        }
    }
}
