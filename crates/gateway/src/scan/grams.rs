//! The filter that nearly all of a text stops at: three bytes that nothing begins with.

/// A set of three bytes, which may say yes where it should say no.
pub(super) struct Grams {
    bits: Box<[u64; WORDS]>,
    empty: bool,
}

const BITS: u32 = 17;
const WORDS: usize = 1 << (BITS - 6);
/// Places told apart with one load: eight bytes hold six times three.
const STRIDE: usize = 6;

impl Default for Grams {
    fn default() -> Self {
        Self { bits: Box::new([0; WORDS]), empty: true }
    }
}

impl Grams {
    pub(super) fn insert(&mut self, start: [u8; 3]) {
        let bit = bit(u64::from(start[0]) | u64::from(start[1]) << 8 | u64::from(start[2]) << 16);
        self.bits[bit >> 6] |= 1 << (bit & 63);
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
        while let Some(eight) = bytes.get(at..at + 8) {
            let mut word = [0; 8];
            word.copy_from_slice(eight);
            let word = u64::from_le_bytes(word);
            // One branch for six places: that is what makes it fast.
            let mut hits = 0;
            for step in 0..STRIDE {
                hits |= self.bit(word >> (8 * step)) << step;
            }
            while hits != 0 {
                each(at + hits.trailing_zeros() as usize);
                hits &= hits - 1;
            }
            at += STRIDE;
        }
        for (step, three) in bytes.get(at..).unwrap_or_default().windows(3).enumerate() {
            let word = u64::from(three[0]) | u64::from(three[1]) << 8 | u64::from(three[2]) << 16;
            if self.bit(word) != 0 {
                each(at + step);
            }
        }
    }

    fn bit(&self, word: u64) -> u64 {
        let bit = bit(word);
        self.bits[bit >> 6] >> (bit & 63) & 1
    }
}

/// Which bit stands for the lowest three bytes: Fibonacci hashing.
fn bit(word: u64) -> usize {
    let three = word as u32 & 0x00ff_ffff;
    (three.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}
