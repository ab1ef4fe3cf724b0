//! Ethernet, IP (RFC 791, RFC 8200) and TCP (RFC 9293) around a piece of a stream.

use std::net::{IpAddr, SocketAddr};

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

const TCP: u8 = 6;
const TCP_LENGTH: usize = 20;
const HOPS: u8 = 64;
/// The largest that can be said without options.
const WINDOW: u16 = u16::MAX;

/// What stands before the bytes of a packet.
pub(super) struct Headers {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
}

impl Headers {
    /// The whole frame.
    pub(super) fn frame(&self, bytes: &[u8]) -> Vec<u8> {
        let segment = self.segment(bytes);
        let (kind, ip) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (0x0800_u16, v4(from.octets(), to.octets(), segment.len())),
            (from, to) => (0x86dd, v6(v6_octets(from), v6_octets(to), segment.len())),
        };
        let mut frame = Vec::with_capacity(14 + ip.len() + segment.len());
        // Locally administered: nobody's card.
        frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        frame.extend(kind.to_be_bytes());
        frame.extend(ip);
        frame.extend(segment);
        frame
    }

    fn segment(&self, bytes: &[u8]) -> Vec<u8> {
        let mut segment = Vec::with_capacity(TCP_LENGTH + bytes.len());
        segment.extend(self.from.port().to_be_bytes());
        segment.extend(self.to.port().to_be_bytes());
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.to_be_bytes());
        // The header's length in words of 32 bits.
        segment.extend([5 << 4, self.flags]);
        segment.extend(WINDOW.to_be_bytes());
        // The checksum, which is known below, and no urgent data.
        segment.extend([0; 4]);
        segment.extend_from_slice(bytes);
        let sum = sum(&segment) + self.pseudo_header(segment.len());
        segment[16..18].copy_from_slice(&folded(sum).to_be_bytes());
        segment
    }

    /// What the checksum counts besides the segment.
    fn pseudo_header(&self, length: usize) -> u64 {
        let addresses = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => sum(&from.octets()) + sum(&to.octets()),
            (from, to) => sum(&v6_octets(from)) + sum(&v6_octets(to)),
        };
        addresses + u64::from(TCP) + length as u64
    }
}

fn v4(from: [u8; 4], to: [u8; 4], length: usize) -> Vec<u8> {
    const LENGTH: usize = 20;
    let total = u16::try_from(LENGTH + length).unwrap_or(u16::MAX);
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    // No identification; not to be fragmented.
    header.extend([0, 0, 0x40, 0, HOPS, TCP, 0, 0]);
    header.extend(from);
    header.extend(to);
    let checksum = folded(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn v6(from: [u8; 16], to: [u8; 16], length: usize) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    header.extend([TCP, HOPS]);
    header.extend(from);
    header.extend(to);
    header
}

fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The sum of the words of 16 bits, not folded yet (RFC 1071).
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|word| [word[0], word.get(1).copied().unwrap_or(0)]);
    words.map(|word| u64::from(u16::from_be_bytes(word))).sum()
}

pub(super) fn folded(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum & u64::from(u16::MAX)) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}
