//! The blocks of a pcapng file, little-endian.

use std::net::IpAddr;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const SECRETS: u32 = 10;

const ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
/// `TLSK`
const TLS_KEYS: u32 = 0x544c_534b;

const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;

/// What every file begins with.
pub(super) fn section(out: &mut Vec<u8>, comment: &str) {
    write(out, SECTION, |out| {
        out.extend(ORDER.to_le_bytes());
        out.extend([1_u16, 0].iter().flat_map(|part| part.to_le_bytes()));
        // The section's length is not known.
        out.extend((-1_i64).to_le_bytes());
        options(
            out,
            &[(COMMENT, comment), (USER_APPLICATION, concat!("redoma ", env!("CARGO_PKG_VERSION")))],
        );
    });
}

/// Where packets were seen; times are in microseconds if nothing else is said.
pub(super) fn interface(out: &mut Vec<u8>, name: &str) {
    write(out, INTERFACE, |out| {
        out.extend(ETHERNET.to_le_bytes());
        // Two bytes that are reserved, and no limit to a packet's length.
        out.extend([0; 6]);
        options(out, &[(INTERFACE_NAME, name)]);
    });
}

pub(super) fn packet(out: &mut Vec<u8>, time_us: u64, frame: &[u8], comment: Option<&str>) {
    write(out, PACKET, |out| {
        out.extend(0_u32.to_le_bytes());
        out.extend(time(time_us));
        out.extend(length(frame));
        out.extend(length(frame));
        padded(out, frame);
        if let Some(comment) = comment {
            options(out, &[(COMMENT, comment)]);
        }
    });
}

/// Lines of a TLS key log.
pub(super) fn secrets(out: &mut Vec<u8>, lines: &str) {
    write(out, SECRETS, |out| {
        out.extend(TLS_KEYS.to_le_bytes());
        out.extend(length(lines.as_bytes()));
        padded(out, lines.as_bytes());
    });
}

pub(super) fn name(out: &mut Vec<u8>, address: IpAddr, name: &str) {
    let (kind, mut record) = match address {
        IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    record.extend(name.as_bytes());
    record.push(0);
    write(out, NAMES, |out| {
        option(out, kind, &record);
        option(out, 0, &[]);
    });
}

pub(super) fn statistics(out: &mut Vec<u8>, time_us: u64, comment: &str) {
    write(out, STATISTICS, |out| {
        out.extend(0_u32.to_le_bytes());
        out.extend(time(time_us));
        options(out, &[(COMMENT, comment)]);
    });
}

/// Its length stands before and after what it holds.
fn write(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = u32::try_from(out.len() - start + 4).unwrap_or(u32::MAX).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

fn options(out: &mut Vec<u8>, options: &[(u16, &str)]) {
    for (code, text) in options {
        option(out, *code, text.as_bytes());
    }
    option(out, 0, &[]);
}

/// An option, or a record of names, which has the same form. What is too long is cut.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.extend(code.to_le_bytes());
    out.extend(length.to_le_bytes());
    padded(out, &value[..usize::from(length)]);
}

fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
}

/// The high half first.
fn time(time_us: u64) -> impl Iterator<Item = u8> {
    let halves = [time_us >> 32, time_us & u64::from(u32::MAX)];
    halves.into_iter().flat_map(|half| u32::try_from(half).unwrap_or(u32::MAX).to_le_bytes())
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}
