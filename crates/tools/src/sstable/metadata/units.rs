//! Formats numbers like `sstablemetadata`.

use clap::ValueEnum;
use ilion_rows::NO_DELETION_TIME;
use ilion_types::{CqlType, civil_from_days};

/// The unit of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum TimestampUnit {
    /// 1,000,000,000 per second.
    Nanoseconds,
    /// 1,000,000 per second, as in CQL.
    Microseconds,
    /// 1,000 per second.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl TimestampUnit {
    /// Converts to milliseconds. Compat: rounds towards zero.
    pub(super) fn millis(self, timestamp: i64) -> i64 {
        match self {
            Self::Nanoseconds => timestamp / 1_000_000,
            Self::Microseconds => timestamp / 1000,
            Self::Milliseconds => timestamp,
            Self::Seconds => timestamp.saturating_mul(1000),
            Self::Minutes => timestamp.saturating_mul(60_000),
            Self::Hours => timestamp.saturating_mul(3_600_000),
            Self::Days => timestamp.saturating_mul(86_400_000),
        }
    }
}

/// `MM/dd/yyyy HH:mm:ss` in UTC.
pub(super) fn date(secs: i64) -> String {
    let (year, month, day) = civil_from_days(secs.div_euclid(86_400));
    let second = secs.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
}

/// Prints a local deletion time, or that there are no tombstones.
pub(super) fn deletion(secs: u32) -> String {
    match secs {
        0 | NO_DELETION_TIME => "no tombstones".to_owned(),
        _ => date(i64::from(secs)),
    }
}

/// Days, hours, minutes and seconds without zeros at the ends; `None` for 0.
pub(super) fn duration(secs: u32) -> Option<String> {
    if secs == 0 {
        return None;
    }
    if secs == i32::MAX.unsigned_abs() {
        return Some("never".to_owned());
    }
    let parts = [
        (secs / 86_400, "day"),
        (secs / 3600 % 24, "hour"),
        (secs / 60 % 60, "minute"),
        (secs % 60, "second"),
    ];
    let first = parts.iter().position(|(count, _)| *count > 0)?;
    let last = parts.iter().rposition(|(count, _)| *count > 0)?;
    let texts = parts[first..=last].iter().map(|(count, unit)| match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    });
    Some(texts.collect::<Vec<_>>().join(" "))
}

/// Bytes with a unit; `None` for 0.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(super) fn bytes(size: u64) -> Option<String> {
    if size == 0 {
        return None;
    }
    if size < 1024 {
        return Some(format!("{size} B"));
    }
    let mut value = size as f64 / 1024.0;
    let mut units = ["kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next()?;
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    // Compat: Java rounds halves up, and one decimal of a binary fraction may be a half.
    Some(format!("{:.1} {unit}", (value * 10.0 + 0.5).floor() / 10.0))
}

/// Prints a number as Java prints doubles.
pub(super) fn double(value: f64) -> String {
    CqlType::Double
        .print_plain(&value.to_be_bytes())
        .unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_read_as_in_cassandra() {
        assert_eq!(duration(600_000_000).unwrap(), "6944 days 10 hours 40 minutes");
        assert_eq!(duration(1).unwrap(), "1 second");
        assert_eq!(duration(86_401).unwrap(), "1 day 0 hours 0 minutes 1 second");
        assert_eq!(duration(0), None);
        assert_eq!(bytes(17_084).unwrap(), "16.7 kB");
        assert_eq!(bytes(1023).unwrap(), "1023 B");
        assert_eq!(date(1_700_000_000), "11/14/2023 22:13:20");
    }
}
