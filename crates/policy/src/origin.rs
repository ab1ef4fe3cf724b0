//! Where a rule comes from, and the documents rules are read from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Who wrote a rule. Later layers refine earlier ones; none can take back a deny or a protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A profile or an agent preset that ships with Redoma.
    Builtin,
    /// `/etc/redoma/policy.toml`: also a ceiling for every later layer.
    System,
    /// The user's own policy.
    User,
    /// `redoma.toml` in the project: could have been written by a sandbox, so it widens nothing until trusted.
    Project,
    /// What was typed.
    CommandLine,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Builtin => "builtin",
            Self::System => "system",
            Self::User => "user",
            Self::Project => "project",
            Self::CommandLine => "command line",
        })
    }
}

/// Where one rule comes from. Displays as `project redoma.toml:12`, `profile default:8` or `--write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose rule it is.
    pub layer: Layer,
    /// The file; `profile default` or `agent claude` for what ships with Redoma; the flag for a typed rule.
    pub file: Option<Arc<Path>>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// The rule as written.
    pub text: Arc<str>,
}

impl Origin {
    /// A rule that was typed: `flag` is what names it (`--write`), `text` its value.
    #[must_use]
    pub fn typed(flag: &str, text: &str) -> Self {
        Self {
            layer: Layer::CommandLine,
            file: Some(Arc::from(Path::new(flag))),
            line: None,
            text: Arc::from(text),
        }
    }

    /// The file's short name: a project or user file is known by its last component.
    fn file_label(&self) -> Option<std::borrow::Cow<'_, str>> {
        let file = self.file.as_deref()?;
        let short = match self.layer {
            Layer::Project | Layer::User => file.file_name().map_or(file, Path::new),
            Layer::Builtin | Layer::System | Layer::CommandLine => file,
        };
        Some(short.to_string_lossy())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names_itself = matches!(self.layer, Layer::Builtin | Layer::CommandLine);
        match self.file_label() {
            Some(file) if names_itself => f.write_str(&file)?,
            Some(file) => write!(f, "{} {file}", self.layer)?,
            None => write!(f, "{}", self.layer)?,
        }
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Origin", 5)?;
        fields.serialize_field("layer", &self.layer)?;
        fields.serialize_field("file", &self.file.as_deref().map(Path::to_string_lossy))?;
        fields.serialize_field("line", &self.line)?;
        fields.serialize_field("text", &*self.text)?;
        fields.serialize_field("label", &self.to_string())?;
        fields.end()
    }
}

/// One policy document, as read by the caller.
#[derive(Clone, Debug)]
pub struct Source {
    /// Whose document it is.
    pub layer: Layer,
    /// Where it was read from; relative `extends` are looked up beside it.
    pub path: Option<PathBuf>,
    /// Its bytes, unparsed.
    pub text: Vec<u8>,
    /// Whether it may widen anything. The caller decides, by [`content_hash`] or by who owns the file.
    pub trusted: bool,
}

/// The BLAKE3 hash of a document: what `redoma policy trust` remembers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Reads the 64 hexadecimal digits that [`fmt::Display`] writes.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

/// Hashes a document exactly as it lies on disk: trust is in bytes, not in their meaning.
#[must_use]
pub fn content_hash(text: &[u8]) -> ContentHash {
    ContentHash(*blake3::hash(text).as_bytes())
}

/// Something the user should know about how the policy was resolved, short of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// What sort of thing it is.
    pub kind: NoticeKind,
    /// One plain sentence.
    pub message: String,
    /// One line that works when pasted.
    pub hint: Option<String>,
    /// The rule it is about.
    pub origin: Option<Origin>,
}

/// What a [`Notice`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// An untrusted document wanted to widen something and was not heard.
    Untrusted,
    /// The system policy's ceiling cut something off.
    Ceiling,
    /// A granted path does not exist, so there is nothing to grant.
    Missing,
    /// A variable that can make programs load code passes, because it was named.
    Loader,
    /// What a preset came to: the hosts that nobody typed.
    Preset,
    /// Anything else worth a line.
    Note,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(layer: Layer, file: &str, line: Option<u32>) -> Origin {
        Origin { layer, file: Some(Arc::from(Path::new(file))), line, text: Arc::from("x") }
    }

    #[test]
    fn an_origin_names_its_layer_file_and_line() {
        assert_eq!(origin(Layer::Project, "/p/redoma.toml", Some(12)).to_string(), "project redoma.toml:12");
        assert_eq!(origin(Layer::Builtin, "profile default", Some(8)).to_string(), "profile default:8");
        assert_eq!(
            origin(Layer::System, "/etc/redoma/policy.toml", Some(1)).to_string(),
            "system /etc/redoma/policy.toml:1"
        );
        assert_eq!(Origin::typed("--write", ".").to_string(), "--write");
    }

    #[test]
    fn a_content_hash_survives_its_text_form() {
        let hash = content_hash(b"[filesystem]\n");
        assert_eq!(ContentHash::from_hex(&hash.to_string()), Some(hash));
        assert_ne!(content_hash(b"[filesystem]"), hash);
        assert_eq!(ContentHash::from_hex("00"), None);
    }
}
