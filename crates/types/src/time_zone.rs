//! Time zones by name: those of the tz database, and abbreviations.
//!
//! Compat: as in Java, an abbreviation stands for a region with its summer time: `CET` in July is two hours ahead of UTC, as `CEST` is. Not
//! known here are abbreviations that several regions use (`IST`, `BST`) and long names (`Central European Time`).

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZoneDatabase};

/// The tz database is part of the program, so that all nodes of one version have the same rules.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Abbreviations and the zones that they stand for. `WET`, `CET`, `EET`, `UTC` and others are names in the database.
const ABBREVIATIONS: [(&str, &str); 24] = [
    ("UT", "UTC"),
    ("WEST", "WET"),
    ("CEST", "CET"),
    ("EEST", "EET"),
    ("MSK", "Europe/Moscow"),
    ("EST", "America/New_York"),
    ("EDT", "America/New_York"),
    ("CST", "America/Chicago"),
    ("CDT", "America/Chicago"),
    ("MST", "America/Denver"),
    ("MDT", "America/Denver"),
    ("PST", "America/Los_Angeles"),
    ("PDT", "America/Los_Angeles"),
    ("AKST", "America/Anchorage"),
    ("AKDT", "America/Anchorage"),
    ("HST", "Pacific/Honolulu"),
    ("JST", "Asia/Tokyo"),
    ("KST", "Asia/Seoul"),
    ("HKT", "Asia/Hong_Kong"),
    ("SGT", "Asia/Singapore"),
    ("AEST", "Australia/Sydney"),
    ("AEDT", "Australia/Sydney"),
    ("NZST", "Pacific/Auckland"),
    ("NZDT", "Pacific/Auckland"),
];

/// Years in which the rules of time zones are looked up; other years have the rules of such a year with the same calendar.
const YEARS: RangeInclusive<i64> = -9998..=9998;
/// The calendar repeats after this many years, with the days of the week.
const YEARS_PER_CYCLE: i64 = 400;

/// How far the clocks of a zone are ahead of UTC, in seconds, when they show this date (year, month, day) and second of the day; `None` if
/// the zone is not known. Times that the clocks show twice, or skip, have the offset from before the change.
pub(crate) fn offset_secs(
    name: &str,
    (year, month, day): (i64, i64, i64),
    second_of_day: i64,
) -> Option<i32> {
    let found = ABBREVIATIONS
        .iter()
        .find(|(abbreviation, _)| *abbreviation == name);
    let region = found.map_or(name, |(_, region)| region);
    let zone = DATABASE.get(region).ok()?;
    // The database ignores case; Cassandra does not.
    if zone.iana_name() != Some(region) {
        return None;
    }
    let year = match year {
        year if YEARS.contains(&year) => year,
        ..0 => YEARS.start() + (year - YEARS.start()).rem_euclid(YEARS_PER_CYCLE),
        _ => YEARS.end() - YEARS_PER_CYCLE + (year - YEARS.end()).rem_euclid(YEARS_PER_CYCLE),
    };
    let shown = DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(second_of_day / 3600).ok()?,
        i8::try_from(second_of_day / 60 % 60).ok()?,
        i8::try_from(second_of_day % 60).ok()?,
        0,
    );
    let (AmbiguousOffset::Unambiguous { offset }
    | AmbiguousOffset::Gap { before: offset, .. }
    | AmbiguousOffset::Fold { before: offset, .. }) = zone.to_ambiguous_timestamp(shown.ok()?).offset();
    Some(offset.seconds())
}
