//! One parsed policy document, which knows where each of its entries stands.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use crate::error::Located;
use crate::file::PolicyFile;
use crate::{Layer, Origin, PolicyError, Source};

/// Most bytes of a policy file. Above it nothing is parsed: a person's policy is a few KiB.
pub const MAX_FILE: usize = 1 << 20;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) layer: Layer,
    /// `redoma.toml`, `profile default`, ...
    pub(crate) name: Arc<Path>,
    /// Where it was read from, if from a file.
    pub(crate) path: Option<PathBuf>,
    pub(crate) trusted: bool,
    pub(crate) file: PolicyFile,
    text: Arc<str>,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// One entry of a document or one thing typed: its text, and whom to blame for it.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) text: &'a str,
    pub(crate) blame: Blame<'a>,
}

/// Where an entry stands.
#[derive(Clone, Copy)]
pub(crate) enum Blame<'a> {
    Document(&'a Document, usize, usize),
    Flag(&'static str),
}

/// Reads one document without resolving anything: syntax, keys, values and combinations.
///
/// # Errors
/// What [`crate::resolve`] would say about the document alone.
pub fn check(source: &Source) -> Result<(), PolicyError> {
    Document::read(source).map(|_| ())
}

// === impl Document ===

impl Document {
    /// Parses what the caller read.
    pub(crate) fn read(source: &Source) -> Result<Self, PolicyError> {
        let fallback = || PathBuf::from(format!("{} policy", source.layer));
        let name = source.path.clone().unwrap_or_else(fallback);
        if source.text.len() > MAX_FILE {
            return Err(PolicyError::TooLarge { file: name, size: source.text.len() });
        }
        let text = std::str::from_utf8(&source.text)
            .map_err(|error| PolicyError::NotText { file: name.clone(), offset: error.valid_up_to() })?;
        let mut document = Self::parse(source.layer, &name, text, source.trusted)?;
        document.path.clone_from(&source.path);
        crate::check::check(&document)?;
        Ok(document)
    }

    /// Parses a document that ships with Redoma; `name` is `profile default`.
    pub(crate) fn embedded(name: &str, text: &str) -> Result<Self, PolicyError> {
        Self::parse(Layer::Builtin, Path::new(name), text, true)
    }

    /// A document around sections that were made elsewhere; `text` is what their spans point into.
    pub(crate) fn around(name: &str, text: &str, file: PolicyFile) -> Self {
        Self::new(Layer::Builtin, Path::new(name), Arc::from(text), true, file)
    }

    fn parse(layer: Layer, name: &Path, text: &str, trusted: bool) -> Result<Self, PolicyError> {
        match toml::from_str(text) {
            Ok(file) => Ok(Self::new(layer, name, Arc::from(text), trusted, file)),
            Err(error) => Err(PolicyError::Malformed(Box::new(malformed(name, text, &error)))),
        }
    }

    fn new(layer: Layer, name: &Path, text: Arc<str>, trusted: bool, file: PolicyFile) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Self { layer, name: Arc::from(name), path: None, trusted, file, text, lines }
    }

    /// The origin of what stands at a byte.
    pub(crate) fn origin(&self, at: usize, text: &str) -> Origin {
        let line = self.lines.partition_point(|start| *start <= at);
        Origin {
            layer: self.layer,
            file: Some(Arc::clone(&self.name)),
            line: u32::try_from(line).ok(),
            text: Arc::from(text),
        }
    }

    /// A problem at a span, still without label and help.
    pub(crate) fn located(&self, span: Range<usize>, message: impl Into<String>) -> Located {
        Located::new(self.name.display().to_string(), &self.text, span, message.into())
    }

    /// The entries of one list.
    pub(crate) fn entries<'a>(&'a self, list: &'a [Spanned<String>]) -> impl Iterator<Item = Entry<'a>> {
        list.iter().map(|entry| self.entry(entry, entry.get_ref()))
    }

    /// One value with a text of its own.
    pub(crate) fn entry<'a, T>(&'a self, spanned: &Spanned<T>, text: &'a str) -> Entry<'a> {
        let Range { start, end } = spanned.span();
        Entry { text, blame: Blame::Document(self, start, end) }
    }
}

// === impl Entry ===

impl<'a> Entry<'a> {
    pub(crate) fn typed(flag: &'static str, text: &'a str) -> Self {
        Self { text, blame: Blame::Flag(flag) }
    }

    pub(crate) fn origin(&self) -> Origin {
        match self.blame {
            Blame::Document(document, start, _) => document.origin(start, self.text),
            Blame::Flag(flag) => Origin::typed(flag, self.text),
        }
    }

    pub(crate) fn layer(&self) -> Layer {
        match self.blame {
            Blame::Document(document, ..) => document.layer,
            Blame::Flag(_) => Layer::CommandLine,
        }
    }

    pub(crate) fn trusted(&self) -> bool {
        match self.blame {
            Blame::Document(document, ..) => document.trusted,
            Blame::Flag(_) => true,
        }
    }

    /// An error about this entry.
    pub(crate) fn error(&self, problem: impl Into<String>, hint: impl Into<String>) -> PolicyError {
        match self.blame {
            Blame::Document(document, start, end) => {
                PolicyError::Value(Box::new(document.located(start..end, problem).help(hint)))
            }
            Blame::Flag(flag) => PolicyError::Typed {
                flag: flag.to_owned(),
                value: self.text.to_owned(),
                problem: problem.into(),
                hint: hint.into(),
            },
        }
    }
}

// === what TOML refuses ===

/// Turns the parser's error into one with a caret and, for a misspelt key, the key that was meant.
pub(crate) fn malformed(name: &Path, text: &str, error: &toml::de::Error) -> Located {
    let span = error.span().unwrap_or(0..0);
    let text: Arc<str> = Arc::from(text);
    let message = error.message();
    let located = |message: String| Located::new(name.display().to_string(), &text, span.clone(), message);
    let Some((unknown, known)) = unknown_name(message) else {
        let help = match message.contains("expected a sequence") {
            true => "put it in brackets: [\"one\", \"two\"]",
            false => "`redoma policy schema` describes every key",
        };
        return located(one_line(message)).help(help);
    };
    let what = if message.starts_with("unknown variant") { "value" } else { "key" };
    let refused = located(format!("there is no {what} `{}` here", unknown.escape_debug())).label("not known");
    match crate::nearest(unknown, known.iter().copied()) {
        Some(near) => refused.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => refused,
        None => refused.help(format!("known here: {}", known.join(", "))),
    }
}

/// Takes serde's `unknown field `x`, expected one of `a`, `b`` apart: the name and what was expected.
fn unknown_name(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest =
        ["unknown field `", "unknown variant `"].iter().find_map(|front| message.strip_prefix(front))?;
    // A key may itself hold backquotes; serde's own words come last.
    let (unknown, expected) =
        rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no"))?;
    let known = expected.split('`').skip(1).step_by(2).collect();
    Some((unknown, known))
}

/// The parser may use several lines; the caret says the rest.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(", ")
}
