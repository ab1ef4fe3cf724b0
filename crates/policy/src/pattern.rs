//! Patterns for paths, as deny and protect lists hold them.
//!
//! Syntax of a glob is that of the `fast-glob` crate: `*` and `?` stay within one component, `**` spans components,
//! `[a-z]`, `{a,b}` and `\` work as in a shell. A glob is **anchored**: it can match only below its literal prefix.
//! Names are compared byte by byte, so no encoding can hide one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::PathKind;

/// Which paths a rule means. Whatever it means, it means everything below as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPattern {
    /// One path.
    Exact {
        /// Absolute; its parents are canonical, and so is the path itself unless the rule means the link.
        path: PathBuf,
        /// Written with a trailing `/`: a folder, also when it does not exist yet.
        folder: bool,
        /// What was there when the policy was resolved; the jail looks again.
        found: Option<PathKind>,
    },
    /// All paths that match below an anchor and exist when the session starts.
    Glob(PathGlob),
}

/// An anchored glob with its exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    anchor: PathBuf,
    glob: Arc<str>,
    folder: bool,
    /// `**/name`: the last component alone decides. Nearly all globs of the built-in profile are of this kind, and a
    /// walk asks about every file.
    by_name: bool,
    except: Arc<[PathGlob]>,
}

/// Why a glob was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{glob}` is not a glob: {problem}")]
pub struct InvalidGlob {
    /// As written.
    pub glob: String,
    /// What is wrong with it.
    pub problem: String,
}

// === impl PathPattern ===

impl PathPattern {
    /// Whether the pattern means this very path (not merely one of its parents).
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        match self {
            Self::Exact { path: own, .. } => path == own,
            Self::Glob(glob) => glob.matches(path),
        }
    }

    /// Whether the pattern means this path or a folder above it.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        match self {
            Self::Exact { path: own, .. } => path.starts_with(own),
            Self::Glob(glob) => glob.covers(path),
        }
    }

    /// The folder at or below which everything lies that the pattern can match.
    #[must_use]
    pub fn anchor(&self) -> &Path {
        match self {
            Self::Exact { path, .. } => path,
            Self::Glob(glob) => glob.anchor(),
        }
    }

    /// Whether it can only be answered by looking at what exists.
    #[must_use]
    pub fn is_glob(&self) -> bool {
        matches!(self, Self::Glob(_))
    }
}

impl std::fmt::Display for PathPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact { path, folder, .. } => {
                write!(f, "{}{}", escape(path), if *folder { "/" } else { "" })
            }
            Self::Glob(glob) => glob.fmt(f),
        }
    }
}

// === impl PathGlob ===

impl PathGlob {
    /// A glob below `anchor`; `glob` is relative to it. A trailing `/` marks a folder.
    ///
    /// # Errors
    /// When the glob is malformed or could climb out of its anchor.
    pub fn new(anchor: PathBuf, glob: &str) -> Result<Self, InvalidGlob> {
        let refuse = |problem: String| InvalidGlob { glob: glob.to_owned(), problem };
        let body = glob.strip_suffix('/').unwrap_or(glob);
        fast_glob::validate(body).map_err(|error| refuse(error.to_string()))?;
        if body.is_empty() || body.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            return Err(refuse("empty, `.` and `..` components have no meaning in a glob".to_owned()));
        }
        let folder = body.len() < glob.len();
        // A leading `!` would turn the meaning round, in the matcher's eyes; a name may begin with one.
        let body = if body.starts_with('!') { format!("\\{body}") } else { body.to_owned() };
        let lone = |name: &str| !name.contains('/') && !name.contains("**") && !name.starts_with('!');
        let by_name = body.strip_prefix("**/").is_some_and(lone);
        Ok(Self { anchor, glob: body.into(), folder, by_name, except: Arc::from([]) })
    }

    /// The same glob, not meaning what one of `except` matches.
    #[must_use]
    pub fn except(self, except: Arc<[PathGlob]>) -> Self {
        Self { except, ..self }
    }

    /// The folder below which it can match.
    #[must_use]
    pub fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// The pattern relative to the anchor.
    #[must_use]
    pub fn glob(&self) -> &str {
        &self.glob
    }

    /// Whether it was written with a trailing `/`.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.folder
    }

    /// What it does not mean although it matches.
    #[must_use]
    pub fn exceptions(&self) -> &[PathGlob] {
        &self.except
    }

    /// Whether it means this very path.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        self.below_anchor(path).is_some_and(|below| self.means(below, path))
    }

    /// Whether it means this path or a folder above it.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        let Some(below) = self.below_anchor(path) else { return false };
        let whole = path.as_os_str().as_bytes();
        let start = whole.len() - below.len();
        let ends = below.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.chain([below.len()])
            .any(|end| self.means(&below[..end], Path::new(OsStr::from_bytes(&whole[..start + end]))))
    }

    /// What follows the anchor. Bytes, not components: paths here are canonical, and a walk asks very often.
    fn below_anchor<'a>(&self, path: &'a Path) -> Option<&'a [u8]> {
        let rest = path.as_os_str().as_bytes().strip_prefix(self.anchor.as_os_str().as_bytes())?;
        let below = if self.anchor == Path::new("/") { rest } else { rest.strip_prefix(b"/")? };
        (!below.is_empty()).then_some(below)
    }

    fn means(&self, below: &[u8], whole: &Path) -> bool {
        let (glob, text) = match self.by_name {
            true => (&self.glob["**/".len()..], below.rsplit(|byte| *byte == b'/').next().unwrap_or(below)),
            false => (&*self.glob, below),
        };
        fast_glob::glob_match(glob, text) && !self.except.iter().any(|exception| exception.matches(whole))
    }
}

impl std::fmt::Display for PathGlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let anchor = escape(&self.anchor);
        let slash = if self.folder { "/" } else { "" };
        write!(f, "{}/{}{slash}", anchor.trim_end_matches('/'), self.glob)
    }
}

impl Serialize for PathGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let except: Vec<String> = self.except.iter().map(ToString::to_string).collect();
        let mut fields = serializer.serialize_struct("PathGlob", 4)?;
        fields.serialize_field("anchor", &self.anchor.to_string_lossy())?;
        fields.serialize_field("glob", &*self.glob)?;
        fields.serialize_field("folder", &self.folder)?;
        fields.serialize_field("except", &except)?;
        fields.end()
    }
}

// === text ===

const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// Whether a written path holds an unescaped character that makes it a glob.
pub(crate) fn is_glob(text: &str) -> bool {
    literal_end(text) < text.len()
}

/// Splits `/a/b/**/c` into its literal folder `/a/b` (unescaped) and the rest `**/c`.
pub(crate) fn split_literal(text: &str) -> (String, &str) {
    let end = literal_end(text);
    let cut = text[..end].rfind('/').map_or(0, |slash| slash + 1);
    (unescape(&text[..cut]), &text[cut..])
}

/// Where the first unescaped special character stands.
fn literal_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if SPECIAL.contains(&c) => return at,
            _ => {}
        }
    }
    text.len()
}

/// Takes the backslashes off a written path.
pub(crate) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}

/// Puts backslashes before what a glob would read as special, so that the text form can be parsed again.
pub(crate) fn escape(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' || SPECIAL.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn glob(anchor: &str, text: &str) -> PathGlob {
        PathGlob::new(PathBuf::from(anchor), text).unwrap()
    }

    #[test]
    fn a_glob_matches_only_below_its_anchor() {
        let dotenv = glob("/p", "**/.env*");
        for path in ["/p/.env", "/p/a/.env.local", "/p/a/b/.envrc"] {
            assert!(dotenv.matches(Path::new(path)), "{path}");
        }
        for path in ["/.env", "/p2/.env", "/p", "/p/x.env", "/p/.en", "/q/p/.env"] {
            assert!(!dotenv.matches(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_glob_covers_what_lies_below_a_match() {
        let pattern = glob("/p", "**/secret*");
        assert!(pattern.covers(Path::new("/p/a/secrets/deep/file")));
        assert!(!pattern.matches(Path::new("/p/a/secrets/deep/file")));
        assert!(!pattern.covers(Path::new("/p/a/public/file")));
    }

    #[test]
    fn an_exception_lifts_only_the_path_it_names() {
        let dotenv = glob("/p", "**/.env*").except(Arc::from([glob("/p", "**/.env.example")]));
        assert!(!dotenv.covers(Path::new("/p/a/.env.example")));
        assert!(dotenv.covers(Path::new("/p/a/.env.example2")));
        assert!(dotenv.covers(Path::new("/p/.env/.env.example")));
    }

    #[test]
    fn names_that_are_not_text_are_matched_too() {
        let path = Path::new("/p").join(OsStr::from_bytes(b".env\xff"));
        assert!(glob("/p", "**/.env*").matches(&path));
    }

    #[test]
    fn malformed_globs_are_refused() {
        for text in ["[a", "{a,b", "a/../b", "./a", "a//b", "", "/", "a\\"] {
            assert!(PathGlob::new(PathBuf::from("/p"), text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_literal_part_is_the_anchor() {
        assert_eq!(split_literal("/a/b*/c"), ("/a/".to_owned(), "b*/c"));
        assert_eq!(split_literal("**/x"), (String::new(), "**/x"));
        assert_eq!(split_literal("/a/\\*b/c?"), ("/a/*b/".to_owned(), "c?"));
        assert!(!is_glob("/a/\\*b"));
        assert!(is_glob("a?"));
    }

    #[test]
    fn a_leading_exclamation_mark_is_part_of_the_name() {
        let odd = glob("/p", "!a*");
        assert!(odd.matches(Path::new("/p/!abc")) && !odd.matches(Path::new("/p/b")));
    }

    proptest! {
        #[test]
        fn a_name_is_matched_as_the_whole_path_would_be(path in "([a.!]{1,3}/){0,3}[a.!]{1,3}", name in "[a.*?!]{1,4}") {
            let text = format!("**/{name}");
            if let Ok(glob) = PathGlob::new(PathBuf::from("/p"), &text) {
                let whole = Path::new("/p").join(&path);
                prop_assert_eq!(glob.matches(&whole), fast_glob::glob_match(&text, &path));
            }
        }

        #[test]
        fn escaping_can_be_undone(text in "[a-z*?{}\\[\\]\\\\/]{0,20}") {
            let escaped = escape(Path::new(&text));
            prop_assert!(!is_glob(&escaped));
            prop_assert_eq!(unescape(&escaped), text);
        }

        #[test]
        fn what_matches_is_covered(path in "(/[a-c.]{1,3}){1,4}", pattern in "(\\*\\*/)?[a-c*.]{1,3}") {
            if let Ok(glob) = PathGlob::new(PathBuf::from("/"), &pattern) {
                let path = Path::new(&path);
                prop_assert!(!glob.matches(path) || glob.covers(path));
            }
        }
    }
}
