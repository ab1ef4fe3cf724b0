//! One text, in pieces.

use super::{BEHIND, Finding, Judged, Scanner, Spot};

/// How far one text was looked at, with what is still needed of it: a few hundred bytes.
pub(crate) struct Stream {
    /// The end of what came, from `base` on.
    window: Vec<u8>,
    base: u64,
    /// What was looked at, from the window's beginning.
    looked: Looked,
    /// Places that later bytes decide about, from the window's beginning.
    open: Vec<(usize, Kind)>,
}

#[derive(Default)]
struct Looked {
    grams: usize,
    personal: usize,
}

/// Who judges a place.
#[derive(Clone, Copy)]
enum Kind {
    Gram,
    Personal,
}

/// Looked at in one go: fits near the processor.
const PART: usize = 64 << 10;

impl Stream {
    pub(crate) fn new() -> Self {
        Self { window: Vec::new(), base: 0, looked: Looked::default(), open: Vec::new() }
    }

    /// What the next piece completes.
    pub(crate) fn push(&mut self, scanner: &Scanner, piece: &[u8]) -> Vec<Finding> {
        let mut found = Vec::new();
        for part in piece.chunks(PART) {
            self.window.extend_from_slice(part);
            self.look(scanner, false, &mut found);
            self.forget();
        }
        found
    }

    /// What the end decides.
    pub(crate) fn end(&mut self, scanner: &Scanner) -> Vec<Finding> {
        let mut found = Vec::new();
        self.look(scanner, true, &mut found);
        found
    }

    /// Bytes that are kept for what comes next.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.window.len() + self.open.len()
    }

    fn look(&mut self, scanner: &Scanner, ended: bool, found: &mut Vec<Finding>) {
        let Self { window, base, looked, open } = self;
        let mut judge = |at: usize, kind: Kind, open: &mut Vec<(usize, Kind)>| {
            let spot = Spot { bytes: window, at, ended };
            let judged = match (kind, &scanner.personal) {
                (Kind::Gram, _) => scanner.judge(spot),
                (Kind::Personal, Some(personal)) => personal.judge(spot),
                (Kind::Personal, None) => Judged::Nothing,
            };
            match judged {
                Judged::Nothing => {}
                Judged::Open => open.push((at, kind)),
                Judged::Found(class, name, excerpt) => {
                    found.push(Finding { offset: *base + at as u64, class, name, excerpt });
                }
            }
        };
        for (at, kind) in std::mem::take(open) {
            judge(at, kind, open);
        }
        scanner.grams.places(window, looked.grams, |at| judge(at, Kind::Gram, open));
        if let Some(personal) = &scanner.personal {
            personal.places(window, looked.personal, |at| judge(at, Kind::Personal, open));
        }
        looked.grams = window.len().saturating_sub(2).max(looked.grams);
        looked.personal = window.len();
    }

    /// Drops what nothing needs any more.
    fn forget(&mut self) {
        let first_open = self.open.iter().map(|(at, _)| *at).min().unwrap_or(usize::MAX);
        let needed = first_open.min(self.looked.grams).saturating_sub(BEHIND);
        self.window.drain(..needed);
        self.base += needed as u64;
        self.looked.grams -= needed;
        self.looked.personal -= needed;
        self.open.iter_mut().for_each(|(at, _)| *at -= needed);
    }
}
