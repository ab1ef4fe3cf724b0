//! What a client says over a WebSocket, taken out of its frames (RFC 6455, section 5).

/// Takes frames apart while they stream. What is no frame gives something or other, and is looked at as it is, too.
#[derive(Default)]
pub(super) struct Frames {
    /// The beginning of a frame whose head is not complete.
    head: Vec<u8>,
    /// What is still to come of the frame's payload.
    left: u64,
    mask: [u8; 4],
    /// Bytes of the payload that came, for the mask's turn.
    turn: usize,
}

impl Frames {
    /// The payload in the next piece, unmasked, of one message after the other.
    pub(super) fn payload(&mut self, mut piece: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(piece.len());
        while let Some((first, rest)) = piece.split_first() {
            if self.left > 0 {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
                let (now, after) = piece.split_at(length);
                payload
                    .extend(now.iter().enumerate().map(|(at, byte)| byte ^ self.mask[(self.turn + at) % 4]));
                self.turn = (self.turn + length) % 4;
                self.left -= length as u64;
                piece = after;
                continue;
            }
            self.head.push(*first);
            piece = rest;
            if let Some((left, mask)) = head(&self.head) {
                (self.left, self.mask, self.turn) = (left, mask, 0);
                self.head.clear();
            }
        }
        payload
    }
}

/// A frame's length and mask, once its head is complete.
fn head(head: &[u8]) -> Option<(u64, [u8; 4])> {
    let second = *head.get(1)?;
    let (length, after) = match second & 0x7f {
        126 => (u64::from(u16::from_be_bytes(head.get(2..4)?.try_into().ok()?)), 4),
        127 => (u64::from_be_bytes(head.get(2..10)?.try_into().ok()?), 10),
        length => (u64::from(length), 2),
    };
    if second & 0x80 == 0 {
        return Some((length, [0; 4]));
    }
    Some((length, head.get(after..after + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(text: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0x81];
        match text.len() {
            length @ ..126 => frame.push(0x80 | length as u8),
            length @ ..65536 => frame.extend([&[0xfe][..], &(length as u16).to_be_bytes()].concat()),
            length => frame.extend([&[0xff][..], &(length as u64).to_be_bytes()].concat()),
        }
        frame.extend(mask);
        frame.extend(text.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        frame
    }

    proptest! {
        #[test]
        fn what_was_framed_comes_out(texts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), any::<[u8; 4]>()), 0..5), cut in 1usize..50) {
            let framed: Vec<u8> = texts.iter().flat_map(|(text, mask)| frame(text, *mask)).collect();
            let mut frames = Frames::default();
            let out: Vec<u8> = framed.chunks(cut).flat_map(|piece| frames.payload(piece)).collect();
            prop_assert_eq!(out, texts.into_iter().flat_map(|(text, _)| text).collect::<Vec<_>>());
        }
    }

    #[test]
    fn long_ones_too_and_the_servers() {
        let text = vec![b'a'; 70_000];
        assert_eq!(Frames::default().payload(&frame(&text, [1, 2, 3, 4])), text);
        assert_eq!(Frames::default().payload(b"\x81\x02hi\x89\x00\x81\x01!"), b"hi!");
    }
}
