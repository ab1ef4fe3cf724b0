//! Messages for the kernel's netlink families and the answers to them. See `netlink(7)`.
//!
//! All messages for one family go in one write. The kernel carries them out before the write returns, so every answer is
//! there when it is asked for, and a kernel that leaves one out is an error and never a wait.

use redoma_sys::{Errno, nr};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Several messages, carried out in this order.
#[derive(Default)]
pub(super) struct Request {
    bytes: Vec<u8>,
    count: usize,
}

/// The outcome of each message, by its place in the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answers(Vec<Result<(), Errno>>);

/// What follows a message's header: a structure of its family, then attributes.
pub(super) struct Body<'r>(&'r mut Vec<u8>);

/// `nlmsghdr`: length, kind, flags, sequence number, port.
const HEADER: usize = 16;
/// Everything begins at a multiple of this.
const ALIGNMENT: usize = 4;

impl Request {
    /// Appends a message. Its sequence number is its place, counted from 1: nobody else talks on the socket.
    pub(super) fn message(&mut self, kind: u16, flags: i32, fill: impl FnOnce(&mut Body<'_>)) {
        self.count += 1;
        let start = self.bytes.len();
        let flags = (nr::NLM_F_REQUEST | flags) as u16;
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend((self.count as u32).to_ne_bytes());
        self.bytes.extend([0; 4]);
        fill(&mut Body(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Sends all of them and reads what came of each. Errors are always told. Success is told of a message with
    /// `NLM_F_ACK`, and there must be one that is carried out last.
    pub(super) fn send(&self, family: Option<Protocol>) -> Result<Answers, Errno> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, family)?;
        rustix::net::send(&socket, &self.bytes, SendFlags::empty())?;
        let mut answers = vec![None; self.count];
        let mut answer = [0; 256];
        loop {
            match rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => note(&mut answers, &answer[..length])?,
                Err(Errno::AGAIN) => return Answers::of(answers),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// An `NLMSG_ERROR` has a negative errno behind its header, 0 for success, and then the header that it answers.
fn note(answers: &mut [Option<Result<(), Errno>>], answer: &[u8]) -> Result<(), Errno> {
    let word = |at: usize| answer.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let kind = answer.get(4..6).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).map(u16::from_ne_bytes);
    let (Some(code), Some(sequence)) = (word(HEADER), word(8)) else { return Err(Errno::BADMSG) };
    let place = (u32::from_ne_bytes(sequence) as usize).checked_sub(1).and_then(|at| answers.get_mut(at));
    match (kind.map(i32::from), place) {
        (Some(nr::NLMSG_ERROR), Some(place)) => {
            *place = Some(match i32::from_ne_bytes(code) {
                0 => Ok(()),
                code => Err(Errno::from_raw_os_error(code.saturating_neg())),
            });
            Ok(())
        }
        _ => Err(Errno::BADMSG),
    }
}

impl Answers {
    /// What was not told of went well, if anything at all was told.
    fn of(told: Vec<Option<Result<(), Errno>>>) -> Result<Self, Errno> {
        if told.iter().all(Option::is_none) {
            return Err(Errno::BADMSG);
        }
        Ok(Self(told.into_iter().map(|outcome| outcome.unwrap_or(Ok(()))).collect()))
    }

    /// Of the message at this place in the request, counted from 0.
    pub(super) fn at(&self, place: usize) -> Result<(), Errno> {
        self.0.get(place).copied().unwrap_or(Err(Errno::BADMSG))
    }

    /// The first that failed.
    pub(super) fn all(&self) -> Result<(), Errno> {
        self.0.iter().copied().collect()
    }
}

impl Body<'_> {
    /// The structure of the family, as bytes.
    pub(super) fn structure(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.align();
    }

    /// An attribute: length, kind, value.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.wrap(kind, |body| body.0.extend(value));
    }

    /// A text, which ends with a zero byte.
    pub(super) fn text(&mut self, kind: u16, text: &str) {
        self.wrap(kind, |body| body.0.extend(text.bytes().chain([0])));
    }

    /// A number in network order, as netfilter has them.
    pub(super) fn number(&mut self, kind: u16, number: u32) {
        self.attribute(kind, &number.to_be_bytes());
    }

    /// An attribute made of attributes.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        self.wrap(kind | nr::NLA_F_NESTED as u16, fill);
    }

    fn wrap(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        fill(&mut Body(self.0));
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.align();
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, sequence: u32, code: i32) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(code.to_ne_bytes());
        bytes
    }

    #[test]
    fn messages_and_attributes_carry_their_length_and_are_aligned() {
        let mut request = Request::default();
        request.message(7, nr::NLM_F_ACK, |body| {
            body.structure(&[9]);
            body.nest(1, |body| body.text(2, "ab"));
        });
        request.message(8, 0, |_| {});
        let (first, second) = request.bytes.split_at(32);
        assert_eq!(first[..4], 32u32.to_ne_bytes());
        assert_eq!(first[8..12], 1u32.to_ne_bytes());
        assert_eq!(first[16..20], [9, 0, 0, 0]);
        assert_eq!(first[20..], [12, 0, 1, 0x80, 7, 0, 2, 0, b'a', b'b', 0, 0]);
        assert_eq!(second[8..12], 2u32.to_ne_bytes());
        assert_eq!(second.len(), HEADER);
    }

    #[test]
    fn each_answer_goes_to_its_message() {
        let mut told = vec![None; 3];
        note(&mut told, &answer(2, 2, -1)).unwrap();
        note(&mut told, &answer(2, 3, 0)).unwrap();
        let answers = Answers::of(told).unwrap();
        assert_eq!((answers.at(0), answers.at(1), answers.at(2)), (Ok(()), Err(Errno::PERM), Ok(())));
        assert_eq!(answers.all(), Err(Errno::PERM));
        assert_eq!(answers.at(3), Err(Errno::BADMSG));
    }

    #[test]
    fn silence_and_what_is_no_answer_are_errors() {
        assert_eq!(Answers::of(vec![None; 2]), Err(Errno::BADMSG));
        for strange in
            [answer(3, 1, 0), answer(2, 0, 0), answer(2, 2, 0), answer(2, 1, 0)[..19].to_vec(), vec![]]
        {
            assert_eq!(note(&mut [None], &strange), Err(Errno::BADMSG));
        }
    }
}
