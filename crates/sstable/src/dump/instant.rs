//! Prints times like Java's `Instant`: `2023-11-14T22:13:20.000024Z`.

use ilion_types::civil_from_days;

const SECS_PER_DAY: i64 = 86_400;
const NANOS_PER_SEC: i64 = 1_000_000_000;

/// How times are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStyle {
    /// As numbers, as stored.
    Raw,
    /// As ISO 8601.
    Iso,
}

impl TimeStyle {
    pub(super) fn micros(self, micros: i64) -> String {
        match self {
            Self::Raw => micros.to_string(),
            // Compat: Java's conversion to nanoseconds saturates.
            Self::Iso => print(
                micros.div_euclid(1_000_000),
                micros.saturating_mul(1_000).rem_euclid(NANOS_PER_SEC),
            ),
        }
    }

    pub(super) fn secs(self, secs: u32) -> String {
        match self {
            Self::Raw => secs.to_string(),
            Self::Iso => print(i64::from(secs), 0),
        }
    }
}

fn print(secs: i64, nanos: i64) -> String {
    let (year, month, day) = civil_from_days(secs.div_euclid(SECS_PER_DAY));
    let second = secs.rem_euclid(SECS_PER_DAY);
    let year = match year {
        10_000.. => format!("+{year}"),
        0.. => format!("{year:04}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    };
    let fraction = match nanos {
        0 => String::new(),
        nanos if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        nanos => format!(".{nanos:09}"),
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_java_prints_them() {
        let iso = TimeStyle::Iso;
        assert_eq!(iso.micros(1_700_000_000_000_024), "2023-11-14T22:13:20.000024Z");
        assert_eq!(iso.micros(1_700_000_000_120_000), "2023-11-14T22:13:20.120Z");
        assert_eq!(iso.micros(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(iso.secs(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso.micros(i64::MAX), "+294247-01-10T04:00:54.854775807Z");
        assert_eq!(TimeStyle::Raw.secs(5), "5");
    }
}
