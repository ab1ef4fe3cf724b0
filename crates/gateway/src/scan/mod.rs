//! What must not leave, found in bytes while they stream.
//!
//! A [`Scanner`] knows what to look for and is shared; a [`Stream`] is one look at one text, in whatever pieces it comes.
//! Each position is judged by itself, as soon as enough bytes follow it, so that pieces never change what is found; a
//! known value is found in the very piece that completes it. What is found is named, and never repeated.
//!
//! # What it cannot find
//! Who means to hide a secret from it can: encrypted, reversed, or spelt in words, anything leaves that a rule of the
//! policy lets leave. It stops what leaks by mistake, and what is sent as it was read.

mod decode;
mod frames;
mod grams;
mod guard;
mod known;
mod personal;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;
mod watched;

use std::borrow::Cow;

use redoma_policy::{LeakAction, Leaks};

pub(crate) use decode::{Decoder, percent_decoded};
use grams::Grams;
pub(crate) use guard::Watchful;
pub(crate) use known::Known;
use known::Needles;
use personal::Personal;
use shapes::Shapes;
pub(crate) use stream::Stream;
pub(crate) use watched::Watched;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// What stands inside for a credential.
    Placeholder,
    /// A real credential that stays outside.
    Credential,
    /// A value that only a decoy has.
    Decoy,
    /// A private key.
    PrivateKey,
    /// What looks like a cloud's or a provider's token.
    Token,
    /// What says who somebody is.
    Personal,
}

/// Something that was found. It does not hold what it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Where it begins, in bytes from the beginning of the text.
    pub(crate) offset: u64,
    /// What kind of thing.
    pub(crate) class: Class,
    /// Which: the variable of a placeholder, the name of a rule.
    pub(crate) name: Cow<'static, str>,
    /// What is public of it: the prefix that every such token has, or its first characters.
    pub(crate) excerpt: String,
}

/// What is looked for.
pub(crate) struct Scanner {
    grams: Grams,
    needles: Needles,
    shapes: Shapes,
    personal: Option<Personal>,
}

/// A place in a text, with what is around it.
#[derive(Clone, Copy)]
struct Spot<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether nothing follows.
    ended: bool,
}

/// What a place turns out to be.
enum Judged {
    Nothing,
    /// What follows decides.
    Open,
    Found(Class, Cow<'static, str>, String),
}

/// The most bytes before a place that are looked at.
const BEHIND: usize = 96;

// === impl Class ===

impl Class {
    /// What the policy says about it. Credentials and what stands for them are not for the policy to let go.
    pub(crate) fn action(self, leaks: &Leaks) -> LeakAction {
        match self {
            Self::Placeholder | Self::Credential => LeakAction::Block,
            Self::Decoy => leaks.decoys,
            Self::PrivateKey => leaks.private_keys,
            Self::Token => leaks.tokens,
            Self::Personal => leaks.personal,
        }
    }

    /// In a sentence.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Placeholder => "the placeholder",
            Self::Credential => "the credential",
            Self::Decoy => "the decoy's value",
            Self::PrivateKey => "a private key",
            Self::Token => "a token",
            Self::Personal => "personal data",
        }
    }
}

// === impl Scanner ===

impl Scanner {
    /// Looks for these values, and for what the policy wants looked for.
    pub(crate) fn new(known: &[Known], leaks: &Leaks) -> Self {
        let on = |action| action != LeakAction::Off;
        let known = known.iter().filter(|known| on(known.class.action(leaks)));
        let needles = Needles::new(known);
        let shapes = Shapes::new(on(leaks.tokens), on(leaks.private_keys));
        let mut grams = Grams::default();
        needles.beginnings().chain(shapes.beginnings()).for_each(|start| grams.insert(start));
        Self { grams, needles, shapes, personal: on(leaks.personal).then(Personal::built_in) }
    }

    /// Whether there is anything to look for.
    pub(crate) fn is_idle(&self) -> bool {
        self.grams.is_empty() && self.personal.is_none()
    }

    /// Everything in a text that is there as a whole.
    pub(crate) fn all(&self, text: &[u8]) -> Vec<Finding> {
        let mut stream = Stream::new();
        let mut found = stream.push(self, text);
        found.extend(stream.end(self));
        found
    }

    /// What begins with three bytes that something begins with.
    fn judge(&self, spot: Spot<'_>) -> Judged {
        match self.needles.judge(spot) {
            Judged::Nothing => self.shapes.judge(spot),
            judged => judged,
        }
    }
}

// === impl Spot ===

impl<'a> Spot<'a> {
    fn rest(self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn before(self) -> &'a [u8] {
        &self.bytes[self.at.saturating_sub(BEHIND)..self.at]
    }

    /// Whether a word begins here.
    fn begins_word(self) -> bool {
        !self.before().last().is_some_and(u8::is_ascii_alphanumeric)
    }

    /// That there is not enough to tell, or, at the end, nothing.
    fn too_short(self) -> Judged {
        if self.ended { Judged::Nothing } else { Judged::Open }
    }
}
