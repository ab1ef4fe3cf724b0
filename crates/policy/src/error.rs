//! Why a policy is refused. Files are shown with the line, the caret and the fix.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::Origin;

/// Why a policy is refused, one variant per step of [`crate::resolve`].
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A policy larger than [`crate::MAX_FILE`].
    #[error("{} is {size} bytes; a policy has at most {}", file.display(), crate::MAX_FILE)]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its size.
        size: usize,
    },
    /// A policy that is no text.
    #[error("{} is not UTF-8 at byte {offset}", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// Where the first wrong byte stands, from 0.
        offset: usize,
    },
    /// No TOML, a key that is not known, or a value of the wrong kind.
    #[error(transparent)]
    Malformed(Box<Located>),
    /// Settings that exclude each other.
    #[error(transparent)]
    Combination(Box<Located>),
    /// A path, glob or variable that means nothing.
    #[error(transparent)]
    Value(Box<Located>),
    /// `extends` names what does not exist, cannot be read, or leads back to itself.
    #[error(transparent)]
    Extends(Box<Located>),
    /// Nothing has this name.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// `profile` or `agent`.
        what: &'static str,
        /// As written.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// Something typed makes no sense.
    #[error("{flag} {value}: {problem}")]
    Typed {
        /// The flag.
        flag: String,
        /// Its value.
        value: String,
        /// What is wrong.
        problem: String,
        /// What to type instead.
        hint: String,
    },
    /// Something typed goes beyond the system policy's ceiling.
    #[error("{flag} {value} goes beyond the ceiling of the system policy ({ceiling})")]
    AboveCeiling {
        /// The flag.
        flag: String,
        /// Its value.
        value: String,
        /// The rule that bounds it.
        ceiling: Box<Origin>,
    },
}

/// A problem at a place in a file.
#[derive(Debug)]
pub struct Located {
    message: String,
    source: NamedSource<Arc<str>>,
    span: Range<usize>,
    label: String,
    help: Option<String>,
}

// === impl PolicyError ===

impl PolicyError {
    /// What to do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLarge { .. } => Some("keep rules in the policy and data elsewhere".to_owned()),
            Self::NotText { .. } => Some("save the file as UTF-8".to_owned()),
            Self::Unknown { hint, .. } | Self::Typed { hint, .. } => Some(hint.clone()),
            Self::AboveCeiling { .. } => Some("ask whoever administers this machine".to_owned()),
            _ => self.located().and_then(|located| located.help.clone()),
        }
    }

    /// The place in a file, if it has one.
    #[must_use]
    pub fn located(&self) -> Option<&Located> {
        match self {
            Self::Malformed(at) | Self::Combination(at) | Self::Value(at) | Self::Extends(at) => Some(at),
            _ => None,
        }
    }

    /// The error as a person reads it, with the line and the caret where there is one.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let theme = match colour {
            true => miette::GraphicalTheme::unicode(),
            false => miette::GraphicalTheme::unicode_nocolor(),
        };
        let mut out = String::new();
        let handler = miette::GraphicalReportHandler::new_themed(theme).with_links(false).with_width(100);
        // Writing to a String cannot fail, so an error here is one of rendering: the message alone still says it all.
        match handler.render_report(&mut out, self) {
            Ok(()) => out,
            Err(_) => self.to_string(),
        }
    }
}

impl Diagnostic for PolicyError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.hint().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.located().map(|at| &at.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let at = self.located()?;
        let label = LabeledSpan::new_with_span(Some(at.label.clone()), at.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

// === impl Located ===

impl Located {
    pub(crate) fn new(name: String, text: &Arc<str>, span: Range<usize>, message: String) -> Self {
        let source = NamedSource::new(name, Arc::clone(text)).with_language("TOML");
        Self { message, source, span, label: "here".to_owned(), help: None }
    }

    pub(crate) fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The file's name.
    #[must_use]
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// Which bytes of the file are meant.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        let before = self.span.start.min(self.source.inner().len());
        self.source.inner().as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Located {}

#[cfg(test)]
mod tests;
