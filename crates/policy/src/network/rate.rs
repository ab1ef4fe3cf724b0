//! How often a rule may be used.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::InvalidQuantity;

/// So many per span of time, written `"10/s"`, `"600/m"` or `"1000/h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    /// How many; as many may come at once.
    pub count: NonZeroU32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    Second,
    Minute,
    Hour,
}

const UNITS: [(&str, Unit); 3] = [("s", Unit::Second), ("m", Unit::Minute), ("h", Unit::Hour)];

// === impl Rate ===

impl Rate {
    /// The span that [`Rate::count`] is for.
    #[must_use]
    pub fn per(&self) -> Duration {
        Duration::from_secs(match self.unit {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 3600,
        })
    }
}

impl FromStr for Rate {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let invalid = || InvalidQuantity {
            text: text.to_owned(),
            wanted: "a rate such as \"10/s\", \"600/m\" or \"1000/h\"",
        };
        let (count, unit) = text.split_once('/').ok_or_else(invalid)?;
        let digits = count.bytes().all(|b| b.is_ascii_digit());
        let count = digits.then(|| count.parse().ok()).flatten().ok_or_else(invalid)?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        Ok(Self { count, unit: *unit })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Second => "s",
            Unit::Minute => "m",
            Unit::Hour => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

impl TryFrom<String> for Rate {
    type Error = InvalidQuantity;

    fn try_from(text: String) -> Result<Self, InvalidQuantity> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "How many per second, minute or hour, such as \"10/s\", \"600/m\" or \"1000/h\".",
            "pattern": "^[0-9]+/[smh]$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, count, seconds) in [("10/s", 10, 1), ("600/m", 600, 60), ("1/h", 1, 3600)] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.count.get(), rate.per().as_secs()), (count, seconds));
            assert_eq!(rate.to_string(), text);
        }
        for text in ["", "10", "/s", "0/s", "+1/s", "1/d", "1.5/s", "10 / s", "10/second", "99999999999/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
