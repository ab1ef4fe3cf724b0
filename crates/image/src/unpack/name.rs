//! Names of entries. An archive may say anything here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::limits::{Limits, within};

/// Longest name of one file, on every file system of Linux.
const NAME: u64 = 255;
/// What begins the name of an entry that takes something of the layers below away.
const WHITEOUT: &[u8] = b".wh.";
/// The entry that hides everything that the layers below have in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other names of AUFS's own, which mean nothing outside of it.
const AUFS: &[u8] = b".wh..wh.";

/// A path within the layer: relative, without `.`, `..` or empty parts. Empty for the layer's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(PathBuf);

/// What a name asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// To make something of this name.
    Make(Name),
    /// To hide what the layers below have under this name.
    Hide(Name),
    /// To hide all that the layers below have in this folder.
    HideAll(Name),
    /// Nothing.
    Nothing,
}

// === impl Name ===

impl Name {
    /// Reads what an archive says. A leading slash means the layer's root, as for every container tool.
    ///
    /// # Errors
    /// [`Error::Entry`] for `..` and NUL: resolving them could leave the layer, and no image needs them.
    pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        let refuse = |why| Error::Entry { entry: lossy(bytes), why };
        within("the length of a path", bytes.len() as u64, limits.path)?;
        if bytes.contains(&0) {
            return Err(refuse("its name holds a NUL"));
        }
        let mut path = PathBuf::new();
        let mut depth = 0;
        for part in bytes.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
            if part == b".." {
                return Err(refuse("its name holds `..`"));
            }
            within("the length of a file's name", part.len() as u64, NAME)?;
            depth += 1;
            path.push(OsStr::from_bytes(part));
        }
        within("the depth of folders", depth, limits.depth)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Where it lies, and what it is called there; `None` for the layer's root.
    pub(super) fn split(&self) -> Option<(&Path, &OsStr)> {
        Some((self.0.parent()?, self.0.file_name()?))
    }

    /// What an entry of this name means.
    ///
    /// <https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts>
    ///
    /// # Errors
    /// [`Error::Entry`] for a whiteout of nothing, of its folder or of the folder above.
    pub(super) fn meaning(self) -> Result<Meaning, Error> {
        let Some((parent, last)) = self.split() else { return Ok(Meaning::Make(self)) };
        let last = last.as_bytes();
        if last == OPAQUE {
            return Ok(Meaning::HideAll(Self(parent.into())));
        }
        if last.starts_with(AUFS) {
            return Ok(Meaning::Nothing);
        }
        match last.strip_prefix(WHITEOUT) {
            None => Ok(Meaning::Make(self)),
            Some(b"" | b"." | b"..") => {
                Err(Error::Entry { entry: lossy(self.0.as_os_str().as_bytes()), why: "it hides no name" })
            }
            Some(hidden) => Ok(Meaning::Hide(Self(parent.join(OsStr::from_bytes(hidden))))),
        }
    }
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Name, Error> {
        Name::parse(text.as_bytes(), &Limits::default())
    }

    fn meaning(text: &str) -> Meaning {
        parse(text).unwrap().meaning().unwrap()
    }

    fn name(text: &str) -> Name {
        Name(text.into())
    }

    #[test]
    fn every_name_is_below_the_root() {
        for (text, wanted) in [("/etc/x", "etc/x"), ("./a//b/./c/", "a/b/c"), ("/", ""), (".", ""), ("", "")]
        {
            assert_eq!(parse(text).unwrap(), name(wanted), "{text}");
        }
        for text in ["..", "../x", "a/../b", "/..", "a/..", "x\0y"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("..x/...").unwrap(), name("..x/..."));
    }

    #[test]
    fn names_have_bounds() {
        assert!(parse(&"a".repeat(256)).is_err() && parse(&"a".repeat(255)).is_ok());
        assert!(parse(&"a/".repeat(201)).is_err() && parse(&"a/".repeat(200)).is_ok());
        assert!(parse(&"./".repeat(2048)).is_err());
    }

    #[test]
    fn whiteouts_name_what_they_hide() {
        assert_eq!(meaning("a/.wh.b"), Meaning::Hide(name("a/b")));
        assert_eq!(meaning(".wh.b"), Meaning::Hide(name("b")));
        assert_eq!(meaning("a/.wh..wh..opq"), Meaning::HideAll(name("a")));
        assert_eq!(meaning(".wh..wh..opq"), Meaning::HideAll(name("")));
        assert_eq!(meaning("a/.wh..wh.plnk"), Meaning::Nothing);
        assert_eq!(meaning("a/.whb"), Meaning::Make(name("a/.whb")));
        assert_eq!(meaning(".wh.a/b"), Meaning::Make(name(".wh.a/b")));
    }

    #[test]
    fn a_whiteout_cannot_hide_its_folder_or_the_one_above() {
        for text in ["a/.wh.", "a/.wh..", "a/.wh..."] {
            assert!(parse(text).unwrap().meaning().is_err(), "{text}");
        }
        assert_eq!(meaning("a/.wh...."), Meaning::Hide(name("a/...")));
    }

    proptest! {
        #[test]
        fn whatever_is_read_stays_below(bytes: Vec<u8>) {
            let Ok(name) = Name::parse(&bytes, &Limits::default()) else { return Ok(()) };
            prop_assert!(name.path().components().all(|part| matches!(part, std::path::Component::Normal(_))));
            if let Ok(Meaning::Hide(name) | Meaning::Make(name) | Meaning::HideAll(name)) = name.meaning() {
                prop_assert!(name.path().components().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }
}
