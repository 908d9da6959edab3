//! Dates, times of day and timestamps as text, over the whole range of their types.
//!
//! ```text
//! date      := year '-' month '-' day                         day number: 2^31 is 1970-01-01
//! year      := 4 digits | '-' 4 to 9 digits | '+' 5 to 9 digits
//! time      := hour ':' minute ':' second ['.' 1 to 9 digits]
//! timestamp := date [('T' | ' ') hour ':' minute [':' second ['.' 0 to 9 digits]]] [zone]
//! zone      := [' '] ('Z' | offset) | ' ' ('UTC' | 'GMT') offset | ' ' name
//! offset    := (+|-) hour [[':'] minute]
//! ```
//!
//! The calendar is the proleptic Gregorian one, as in `java.time`. In a timestamp, a day up to 31 that the month does not have
//! is the month's last day, and 24:00 is the next midnight. Compat: a timestamp without a zone is in UTC here, but in the
//! server's zone in Cassandra. [`time_zone`] has the names of zones.

use std::fmt::Write as _;

use crate::{Error, time_zone};

/// Nanoseconds of a day. A time of day is below this value.
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;
const MILLIS_PER_DAY: i64 = 86_400_000;
const NANOS_PER_SEC: i64 = 1_000_000_000;
/// The serialized date of 1970-01-01.
pub const EPOCH_DAY: i64 = 1 << 31;

/// Appends a serialized date as text.
pub fn print_date(date: u32, out: &mut String) {
    print_day(i64::from(date) - EPOCH_DAY, out);
}

/// Appends a time of day with nine decimals.
pub fn print_time(nanos: i64, out: &mut String) {
    let (seconds, fraction) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let _ = write!(
        out,
        "{:02}:{:02}:{:02}.{fraction:09}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
}

/// Appends a timestamp in UTC with milliseconds; `separator` is between date and time.
pub fn print_timestamp(millis: i64, separator: char, out: &mut String) {
    print_day(millis.div_euclid(MILLIS_PER_DAY), out);
    let millis = millis.rem_euclid(MILLIS_PER_DAY);
    let seconds = millis / 1000;
    out.push(separator);
    push_padded(seconds / 3600, 2, out);
    out.push(':');
    push_padded(seconds / 60 % 60, 2, out);
    out.push(':');
    push_padded(seconds % 60, 2, out);
    out.push('.');
    push_padded(millis % 1000, 3, out);
    out.push('Z');
}

/// Appends the last digits of a number that is not negative.
fn push_padded(number: i64, width: u32, out: &mut String) {
    for place in (0..width).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        out.push(char::from(b'0' + digit.to_le_bytes()[0]));
    }
}

fn print_day(day: i64, out: &mut String) {
    let (year, month, day) = civil_from_days(day);
    match year {
        10_000.. => {
            let _ = write!(out, "+{year}");
        }
        ..0 => {
            let _ = write!(out, "-{:04}", year.unsigned_abs());
        }
        _ => push_padded(year, 4, out),
    }
    out.push('-');
    push_padded(month, 2, out);
    out.push('-');
    push_padded(day, 2, out);
}

/// Parses a date: `yyyy-mm-dd`, or the raw day number.
pub(crate) fn parse_date(text: &str) -> Result<u32, Error> {
    if is_number(text) {
        return text
            .parse()
            .map_err(|_| Error::literal(format!("Unable to make unsigned int (for date) from: '{text}'")));
    }
    let mut scanner = Scanner(text);
    let day = scanner
        .date()
        .and_then(Date::exact)
        .filter(|_| scanner.is_at_end());
    let day =
        day.ok_or_else(|| Error::literal(format!("Unable to coerce '{text}' to a formatted date (long)")))?;
    u32::try_from(day + EPOCH_DAY).map_err(|_| {
        Error::literal(match day {
            ..0 => format!("Input date {text} is less than min supported date -5877641-06-23T00:00Z"),
            _ => format!("Input date {text} is greater than max supported date +5881580-07-11T00:00Z"),
        })
    })
}

/// Parses a time of day: `hh:mm:ss[.fffffffff]`, or nanoseconds.
pub(crate) fn parse_time(text: &str) -> Result<i64, Error> {
    let refused = || {
        Error::literal(format!(
            "(TimeType) Unable to coerce '{text}' to a formatted time (long)"
        ))
    };
    if is_number(text) {
        return match text.parse() {
            Ok(nanos) if (0..NANOS_PER_DAY).contains(&nanos) => Ok(nanos),
            _ => Err(Error::literal(format!(
                "Unable to make long (for time) from: '{text}'"
            ))),
        };
    }
    let mut scanner = Scanner(text.trim());
    let nanos = scanner.time().filter(|_| scanner.is_at_end());
    nanos.ok_or_else(refused)
}

/// Parses a timestamp: one of the forms of ISO 8601 that CQL accepts, or milliseconds.
pub(crate) fn parse_timestamp(text: &str) -> Result<i64, Error> {
    if is_number(text) {
        return text
            .parse()
            .map_err(|_| Error::literal(format!("Unable to make long (for date) from: '{text}'")));
    }
    timestamp(text).ok_or_else(|| Error::literal(format!("Unable to parse a date/time from '{text}'")))
}

fn timestamp(text: &str) -> Option<i64> {
    let mut scanner = Scanner(text);
    let day = scanner.date()?.nearest();
    let before = scanner.0;
    let nanos = match scanner.accept('T') || scanner.accept(' ') {
        true if scanner.0.starts_with(|c: char| c.is_ascii_digit()) => scanner.time_of_timestamp()?,
        // A space may also come before the zone.
        _ => {
            scanner.0 = before;
            0
        }
    };
    let offset_secs = zone_offset_secs(scanner.0, day, nanos)?;
    // Computed with 128 bits: the sum may fit 64 bits even if the product does not.
    let of_day = nanos / 1_000_000 - i64::from(offset_secs) * 1000;
    i64::try_from(i128::from(day) * i128::from(MILLIS_PER_DAY) + i128::from(of_day)).ok()
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The largest offset of a zone from UTC, in seconds.
const ZONE_SECS_MAX: i32 = 18 * 3600;

/// The offset of a zone from UTC on a day (0 is 1970-01-01), at a time of this day.
fn zone_offset_secs(text: &str, day: i64, nanos_of_day: i64) -> Option<i32> {
    if matches!(text, "" | "Z" | " Z") {
        return Some(0);
    }
    let Some(name) = text.strip_prefix(' ') else {
        return offset(text);
    };
    let of_utc = ["UTC", "GMT"]
        .iter()
        .find_map(|utc| offset(name.strip_prefix(utc)?));
    of_utc.or_else(|| offset(name)).or_else(|| {
        // 24:00 is the midnight of the next day.
        let day = day + nanos_of_day / NANOS_PER_DAY;
        let seconds = nanos_of_day % NANOS_PER_DAY / NANOS_PER_SEC;
        time_zone::offset_secs(name, civil_from_days(day), seconds)
    })
}

/// Parses an offset from UTC, in seconds.
fn offset(text: &str) -> Option<i32> {
    let mut scanner = Scanner(text);
    let sign = match (scanner.accept('+'), scanner.accept('-')) {
        (true, _) => 1,
        (_, true) => -1,
        _ => return None,
    };
    let hours = scanner.two_digits(18)?;
    let minutes = if scanner.is_at_end() {
        0
    } else {
        scanner.accept(':');
        scanner.two_digits(59)?
    };
    let secs = i32::try_from(hours * 3600 + minutes * 60).ok();
    let secs = secs.filter(|secs| *secs <= ZONE_SECS_MAX && scanner.is_at_end());
    secs.map(|secs| sign * secs)
}

/// A year, a month from 1 to 12, and a day from 1 to 31, even if the month is shorter.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// Days since 1970-01-01; `None` if the month does not have this day.
    fn exact(self) -> Option<i64> {
        let days = days_from_civil(self.year, self.month, self.day);
        // If the month does not have the day, the number is converted back to another date.
        (civil_from_days(days) == (self.year, self.month, self.day)).then_some(days)
    }

    /// Days since 1970-01-01. If the month does not have this day: of the month's last day.
    fn nearest(self) -> i64 {
        let days = days_from_civil(self.year, self.month, self.day);
        match civil_from_days(days) {
            (_, month, _) if month == self.month => days,
            (_, _, days_beyond) => days - days_beyond,
        }
    }
}

/// The part of the text that is not parsed yet.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn accept(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.accept(wanted).then_some(())
    }

    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses `len_min` to `len_max` digits.
    fn digits(&mut self, len_min: usize, len_max: usize) -> Option<i64> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        if len < len_min || len > len_max {
            return None;
        }
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        digits.parse().ok()
    }

    fn two_digits(&mut self, max: i64) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        digits.parse().ok().filter(|value| *value <= max)
    }

    fn date(&mut self) -> Option<Date> {
        let (is_negative, is_signed) = (self.accept('-'), self.accept('+'));
        let before = self.0.len();
        let year = self.digits(4, 9)?;
        let is_long = before - self.0.len() > 4;
        if !is_negative && is_signed != is_long || is_negative && (is_signed || year == 0) {
            return None;
        }
        self.expect('-')?;
        let month = self.two_digits(12).filter(|month| *month > 0)?;
        self.expect('-')?;
        let day = self.two_digits(31).filter(|day| *day > 0)?;
        Some(Date {
            year: if is_negative { -year } else { year },
            month,
            day,
        })
    }

    /// Parses a value of the type `time`; returns nanoseconds.
    fn time(&mut self) -> Option<i64> {
        let hours = self.signed(23)?;
        self.expect(':')?;
        let minutes = self.signed(59)?;
        self.expect(':')?;
        let seconds = self.signed(59)?;
        let nanos = if self.accept('.') { self.fraction(1)? } else { 0 };
        Some((hours * 3600 + minutes * 60 + seconds) * NANOS_PER_SEC + nanos)
    }

    /// Parses the time of a timestamp, up to 24:00 (the midnight at the end of the day); returns nanoseconds.
    fn time_of_timestamp(&mut self) -> Option<i64> {
        let hours = self.number(24)?;
        self.expect(':')?;
        let minutes = self.number(59)?;
        let (mut seconds, mut nanos) = (0, 0);
        if self.accept(':') {
            seconds = self.number(59)?;
            if self.accept('.') {
                nanos = self.fraction(0)?;
            }
        }
        let nanos = (hours * 3600 + minutes * 60 + seconds) * NANOS_PER_SEC + nanos;
        Some(nanos).filter(|nanos| *nanos <= NANOS_PER_DAY)
    }

    /// Parses a number of at most 18 digits; `None` if it is above `max`.
    fn number(&mut self, max: i64) -> Option<i64> {
        self.digits(1, 18).filter(|value| *value <= max)
    }

    /// Like [`Self::number`], with an optional sign.
    fn signed(&mut self, max: i64) -> Option<i64> {
        self.accept('+');
        self.number(max)
    }

    /// Parses up to nine digits behind a point; returns billionths.
    fn fraction(&mut self, len_min: usize) -> Option<i64> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 && len_min == 0 {
            return Some(0);
        }
        let digits = self.digits(1, 9)?;
        Some(digits * 10_i64.pow(9 - u32::try_from(len).ok()?))
    }
}

const DAYS_PER_ERA: i64 = 146_097;

/// Year, month and day of a day number (0 is 1970-01-01). Years start in March here, so that the leap day is the last day.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil_from_days`].
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - 719_468
}

#[cfg(test)]
mod tests;
