//! PAX records: `LENGTH KEY=VALUE\n`, where the value may hold any byte.

use std::collections::BTreeMap;

use super::{Time, malformed};
use crate::Error;

/// Attributes are kept under this prefix, by Joerg Schilling's star and all container tools.
const XATTR: &str = "SCHILY.xattr.";

/// The records that stand before an entry. Of two with one key the last holds.
#[derive(Debug, Default)]
pub(super) struct Records {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// GNU's sparse format 0.0 repeats two keys, in order.
    pub(super) sparse: Vec<(Vec<u8>, Vec<u8>)>,
}

// === impl Records ===

impl Records {
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut records = Self::default();
        while !bytes.is_empty() {
            let (key, value, rest) = split(bytes).ok_or_else(|| malformed("a PAX record is broken"))?;
            if matches!(key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes") {
                records.sparse.push((key.to_vec(), value.to_vec()));
            }
            records.values.insert(key.to_vec(), value.to_vec());
            bytes = rest;
        }
        Ok(records)
    }

    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.values.get(key.as_bytes()).map(Vec::as_slice)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        self.values.remove(key.as_bytes())
    }

    /// A decimal number.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Error> {
        self.get(key).map(decimal).transpose()
    }

    /// Seconds with a fraction, maybe negative.
    pub(super) fn time(&self, key: &str) -> Result<Option<Time>, Error> {
        let broken = || malformed("a PAX time is broken");
        self.get(key).map(|value| time(value).ok_or_else(broken)).transpose()
    }

    /// Extended attributes by name.
    pub(super) fn xattrs(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let named =
            |(key, value): (Vec<u8>, Vec<u8>)| Some((key.strip_prefix(XATTR.as_bytes())?.to_vec(), value));
        self.values.into_iter().filter_map(named).collect()
    }
}

/// Key, value and what follows. The length counts the whole record, itself included.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(&bytes[..space]).ok()?).ok()?;
    let (record, rest) = bytes.split_at_checked(length)?;
    let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some((&pair[..equals], &pair[equals + 1..], rest))
}

pub(super) fn decimal(value: &[u8]) -> Result<u64, Error> {
    // `parse` would take a sign.
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or_else(|| malformed("a number is expected"))
}

fn time(value: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: u32 = format!("{fraction:0<9.9}").parse().ok()?;
    let is_negative = whole.starts_with('-') && nanoseconds > 0;
    Some(match is_negative {
        true => Time { seconds: seconds.checked_sub(1)?, nanoseconds: 1_000_000_000 - nanoseconds },
        false => Time { seconds, nanoseconds },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_hold_line_feeds_and_equals_signs() {
        let mut records = Records::parse(b"13 path=a\n=b\n20 SCHILY.xattr.x=\0\n").unwrap();
        assert_eq!(records.take("path").unwrap(), b"a\n=b");
        assert_eq!(records.xattrs(), [(b"x".to_vec(), b"\0".to_vec())]);
    }

    #[test]
    fn of_two_values_the_last_holds() {
        let mut records = Records::parse(b"9 path=a\n9 path=b\n").unwrap();
        assert_eq!(records.take("path").unwrap(), b"b");
    }

    #[test]
    fn a_length_that_lies_is_refused() {
        for broken in
            [&b"99 path=a\n"[..], b"8 path=a\n", b"0 a=b\n", b"x a=b\n", b"+9 path=a\n", b"9 pathxa\n", b"\n"]
        {
            assert!(Records::parse(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn times_have_fractions_and_may_lie_before_1970() {
        assert_eq!(time(b"12.5"), Some(Time { seconds: 12, nanoseconds: 500_000_000 }));
        assert_eq!(time(b"-1.25"), Some(Time { seconds: -2, nanoseconds: 750_000_000 }));
        assert_eq!(time(b"7.0000000019"), Some(Time { seconds: 7, nanoseconds: 1 }));
        assert_eq!((time(b""), time(b"1.x"), time(b"1e9")), (None, None, None));
    }
}
