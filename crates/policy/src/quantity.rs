//! Amounts: bytes, time, processors. Each is read once, from the text a person writes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Why a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidQuantity {
    pub(crate) text: String,
    pub(crate) wanted: &'static str,
}

/// A number of bytes, written `"1GiB"`, `"500 MB"` or `"4096"`. `K`, `M`, `G`, `T` alone are binary, as in `ulimit` and cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(pub u64);

/// A span of time, written `"30m"`, `"90d"`, `"1h 30m"` or `"250ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeSpan(pub Duration);

/// A number of processors, above zero: `2.0`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Cpus(f64);

const BYTE_UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const TIME_UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

// === impl ByteSize ===

impl FromStr for ByteSize {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let invalid =
            || InvalidQuantity { text: text.to_owned(), wanted: "a size such as \"512MiB\" or \"1GiB\"" };
        let (number, unit) = split_number(text.trim()).ok_or_else(invalid)?;
        let (_, scale) = BYTE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        scaled(number, *scale).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |shift: u32| self.0 >> shift << shift == self.0 && self.0 >> shift > 0;
        let (shift, unit) = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
            .into_iter()
            .find(|(shift, _)| whole(*shift))
            .unwrap_or((0, "B"));
        write!(f, "{}{unit}", self.0 >> shift)
    }
}

impl TryFrom<String> for ByteSize {
    type Error = InvalidQuantity;

    fn try_from(text: String) -> Result<Self, InvalidQuantity> {
        text.parse()
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A number of bytes, such as \"512MiB\" or \"1GiB\".",
            "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*(B|K|KiB|M|MiB|G|GiB|T|TiB|kB|MB|GB|TB)?\\s*$"
        })
    }
}

// === impl TimeSpan ===

impl FromStr for TimeSpan {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let invalid = || InvalidQuantity {
            text: text.to_owned(),
            wanted: "a time such as \"90s\", \"30m\" or \"1h 30m\"",
        };
        let mut total: u64 = 0;
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(invalid());
        }
        while !rest.is_empty() {
            let (millis, after) = one_span(rest).ok_or_else(invalid)?;
            total = total.checked_add(millis).ok_or_else(invalid)?;
            rest = after.trim_start();
        }
        if total == 0 {
            return Err(invalid());
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

/// Reads `30m` off the front: its milliseconds and what follows.
fn one_span(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = split_number(text)?;
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    let (_, scale) = TIME_UNITS.iter().find(|(name, _)| *name == unit)?;
    Some((scaled(number, *scale)?, after))
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, scale) = TIME_UNITS
            .iter()
            .rev()
            .skip(1) // weeks read badly: 90d, not 12w 6d
            .find(|(_, scale)| millis.is_multiple_of(*scale))
            .unwrap_or(&TIME_UNITS[0]);
        write!(f, "{}{unit}", millis / scale)
    }
}

impl TryFrom<String> for TimeSpan {
    type Error = InvalidQuantity;

    fn try_from(text: String) -> Result<Self, InvalidQuantity> {
        text.parse()
    }
}

impl From<TimeSpan> for String {
    fn from(span: TimeSpan) -> Self {
        span.to_string()
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A span of time, such as \"90s\", \"30m\" or \"1h 30m\".",
            "pattern": "^\\s*([0-9]+(\\.[0-9]+)?\\s*(ms|s|m|h|d|w)\\s*)+$"
        })
    }
}

// === impl Cpus ===

impl Cpus {
    /// How many processors.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Cpus {
    type Error = InvalidQuantity;

    fn try_from(number: f64) -> Result<Self, InvalidQuantity> {
        // Below one percent the kernel's CFS quota has no value to express it (1 ms of a 100 ms period).
        if (0.01..=4096.0).contains(&number) {
            return Ok(Self(number));
        }
        Err(InvalidQuantity {
            text: number.to_string(),
            wanted: "a number of processors between 0.01 and 4096",
        })
    }
}

impl From<Cpus> for f64 {
    fn from(cpus: Cpus) -> Self {
        cpus.0
    }
}

impl FromStr for Cpus {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let number = text.trim().parse::<f64>().map_err(|_| InvalidQuantity {
            text: text.to_owned(),
            wanted: "a number of processors such as 2 or 0.5",
        })?;
        Self::try_from(number)
    }
}

impl JsonSchema for Cpus {
    fn schema_name() -> Cow<'static, str> {
        "Cpus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0.01, "maximum": 4096 })
    }
}

// === numbers ===

/// Splits `1.5GiB` into `1.5` and `GiB`.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some((number, rest.trim_start()))
}

/// `number × scale` without floating point, so that large sizes stay exact; at most six decimals.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    if number.contains('.') {
        if fraction.is_empty() || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let divisor = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
        let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / u128::from(divisor);
        total = total.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in
            [("1GiB", 1 << 30), ("1.5 GiB", 3 << 29), ("512M", 512 << 20), ("10MB", 10_000_000), ("7", 7)]
        {
            assert_eq!(text.parse::<ByteSize>().unwrap().0, bytes, "{text}");
        }
        for text in ["", "GiB", "-1", "1.GiB", "1..5K", "1 Gib", "99999999TiB", "1e9", "0x10"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, seconds) in [("30m", 1800), ("90d", 7_776_000), ("1h 30m", 5400), ("1.5h", 5400)] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().0.as_secs(), seconds, "{text}");
        }
        for text in ["", "30", "m", "0s", "1h-30m", "30 minutes"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_have_bounds() {
        assert!(Cpus::try_from(0.5).is_ok());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Cpus::try_from(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_size_survives_its_text_form(bytes: u64) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse::<ByteSize>().unwrap(), ByteSize(bytes));
        }

        #[test]
        fn a_span_survives_its_text_form(millis in 1_u64..1 << 50) {
            let span = TimeSpan(Duration::from_millis(millis));
            prop_assert_eq!(span.to_string().parse::<TimeSpan>().unwrap(), span);
        }
    }
}
