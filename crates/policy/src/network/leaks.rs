//! What happens to secrets on their way out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens when something of a class is seen in what is sent. Ordered from loose to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeakAction {
    /// Nothing.
    Off,
    /// It passes, and an alert says so.
    Alert,
    /// The request ends, and an alert says so.
    Block,
}

/// What happens to each class of secrets, in requests that are looked into.
///
/// There is no key for placeholders: one on its way to a host that is not its secret's is always blocked, since it
/// could do nothing there and only who means to steal the secret would send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Leaks {
    /// Values out of decoys: nobody has them who did not look where it was denied.
    pub decoys: LeakAction,
    /// Private keys, which no protocol over HTTP sends.
    pub private_keys: LeakAction,
    /// What looks like a cloud's or provider's token. An agent sends its own with every request, so it is an alert.
    pub tokens: LeakAction,
    /// Cards, national numbers, telephone numbers and e-mail addresses. Source code and commits are full of the last,
    /// so it is off: alerts that are always there hide those that matter.
    pub personal: LeakAction,
}

// === impl Leaks ===

impl Leaks {
    /// The classes by their keys, in the order they are written.
    #[must_use]
    pub fn classes(&self) -> [(&'static str, LeakAction); 4] {
        [
            ("decoys", self.decoys),
            ("private_keys", self.private_keys),
            ("tokens", self.tokens),
            ("personal", self.personal),
        ]
    }

    /// The strictest of all classes: whether there is anything to look for.
    #[must_use]
    pub fn strictest(&self) -> LeakAction {
        self.classes().into_iter().map(|(_, action)| action).max().unwrap_or(LeakAction::Off)
    }
}

impl Default for Leaks {
    fn default() -> Self {
        Self {
            decoys: LeakAction::Block,
            private_keys: LeakAction::Block,
            tokens: LeakAction::Alert,
            personal: LeakAction::Off,
        }
    }
}

impl fmt::Display for LeakAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Alert => "alert",
            Self::Block => "block",
        })
    }
}
