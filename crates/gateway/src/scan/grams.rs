//! The filter that nearly all of a text stops at: three bytes that nothing begins with.

/// A set of three bytes, which may say yes where it should say no, once in thousands of times.
pub(super) struct Grams {
    /// By one part of the hash, another part of it; 0 for none.
    marks: Box<[u8; SLOTS]>,
    empty: bool,
}

/// As much as the first cache holds besides the text.
const SLOTS: usize = 1 << 14;
/// Places told apart with one load: eight bytes hold six times three.
const STRIDE: usize = 6;
/// Several share the slot.
const ANY: u8 = u8::MAX;

impl Default for Grams {
    fn default() -> Self {
        Self { marks: Box::new([0; SLOTS]), empty: true }
    }
}

impl Grams {
    pub(super) fn insert(&mut self, start: [u8; 3]) {
        let hash = hash(u64::from_le_bytes([start[0], start[1], start[2], 0, 0, 0, 0, 0]));
        let known = &mut self.marks[slot(hash)];
        *known = if [0, mark(hash)].contains(known) { mark(hash) } else { ANY };
        self.empty = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Calls `each` with the places in `bytes`, from `from` on, that something may begin at; the last two are none.
    pub(super) fn places(&self, bytes: &[u8], from: usize, mut each: impl FnMut(usize)) {
        if self.empty {
            return;
        }
        let mut at = from;
        while let Some(Ok(eight)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
            let word = u64::from_le_bytes(eight);
            // One branch for six places: that is what makes it fast.
            let marks = (0..STRIDE).fold(0, |marks, step| marks | self.marks[slot(hash(word >> (8 * step)))]);
            if marks != 0 {
                (0..STRIDE).filter(|step| self.has(word >> (8 * step))).for_each(|step| each(at + step));
            }
            at += STRIDE;
        }
        for (step, three) in bytes.get(at..).unwrap_or_default().windows(3).enumerate() {
            if self.has(u64::from_le_bytes([three[0], three[1], three[2], 0, 0, 0, 0, 0])) {
                each(at + step);
            }
        }
    }

    fn has(&self, word: u64) -> bool {
        let hash = hash(word);
        let known = self.marks[slot(hash)];
        known == mark(hash) || known == ANY
    }
}

/// Fibonacci hashing of the lowest three bytes.
fn hash(word: u64) -> u32 {
    ((word as u32) << 8).wrapping_mul(0x9e37_79b1)
}

fn slot(hash: u32) -> usize {
    (hash >> 18) as usize
}

/// Neither none nor any.
fn mark(hash: u32) -> u8 {
    ((hash >> 10) as u8).clamp(1, ANY - 1)
}
