//! Durations: months, days and nanoseconds, which cannot be converted into each other.
//!
//! ```text
//! duration := months: svint, days: svint, nanoseconds: svint
//! ```

use std::fmt;

use ilion_codec::Writer;

/// A duration. Invariant: its parts are all >= 0 or all <= 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    months: i32,
    days: i32,
    nanos: i64,
}

impl Duration {
    /// A duration; `None` if the signs of its parts differ.
    pub fn new(months: i32, days: i32, nanos: i64) -> Option<Self> {
        let none_negative = months >= 0 && days >= 0 && nanos >= 0;
        let none_positive = months <= 0 && days <= 0 && nanos <= 0;
        (none_negative || none_positive).then_some(Self { months, days, nanos })
    }

    /// Months.
    pub fn months(&self) -> i32 {
        self.months
    }

    /// Days.
    pub fn days(&self) -> i32 {
        self.days
    }

    /// Nanoseconds.
    pub fn nanos(&self) -> i64 {
        self.nanos
    }

    /// Appends the serialized form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::from_vec(std::mem::take(out));
        writer.svint(i64::from(self.months));
        writer.svint(i64::from(self.days));
        writer.svint(self.nanos);
        *out = writer.into_vec();
    }
}

/// Prints as Cassandra does: `-1y2mo3d4h5m6s7ms8us9ns`; a zero duration is an empty text.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.months < 0 || self.days < 0 || self.nanos < 0 {
            f.write_str("-")?;
        }
        let months = u64::from(self.months.unsigned_abs());
        let days = u64::from(self.days.unsigned_abs());
        let nanos = self.nanos.unsigned_abs();
        write_units(f, months, &[(12, "y"), (1, "mo")])?;
        write_units(f, days, &[(1, "d")])?;
        write_units(
            f,
            nanos,
            &[
                (3_600_000_000_000, "h"),
                (60_000_000_000, "m"),
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "us"),
                (1, "ns"),
            ],
        )
    }
}

fn write_units(f: &mut fmt::Formatter<'_>, mut amount: u64, units: &[(u64, &str)]) -> fmt::Result {
    for (size, name) in units {
        if amount >= *size {
            write!(f, "{}{name}", amount / size)?;
        }
        amount %= size;
    }
    Ok(())
}
