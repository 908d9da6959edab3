//! Days and times of the day, as the types `date` and `time` have them.

use std::fmt;

use ilion_types::{EPOCH_DAY, NANOS_PER_DAY, civil_from_days, days_from_civil, print_date, print_time};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A day of the Gregorian calendar: a value of the type `date`.
///
/// ```
/// let day = ilion::Date::new(2026, 11, 27).ok_or("no such day")?;
/// assert_eq!(day.to_string(), "2026-11-27");
/// assert_eq!(day.days(), 20_784);
/// assert!(ilion::Date::new(2026, 2, 29).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    days: i32,
}

impl Date {
    /// A day; `None` if the calendar does not have it. Months and days count from 1.
    ///
    /// ```
    /// use ilion::Date;
    ///
    /// assert_eq!(Date::new(1970, 1, 2).map(Date::days), Some(1));
    /// assert_eq!(Date::new(2027, 2, 29), None);
    /// ```
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let wanted = (i64::from(year), i64::from(month), i64::from(day));
        let days = days_from_civil(wanted.0, wanted.1, wanted.2);
        let days = i32::try_from(days).ok()?;
        (civil_from_days(i64::from(days)) == wanted).then_some(Self { days })
    }

    /// The day that is `days` days after 1970-01-01.
    ///
    /// ```
    /// assert_eq!(ilion::Date::from_days(20_784).to_string(), "2026-11-27");
    /// ```
    pub fn from_days(days: i32) -> Self {
        Self { days }
    }

    /// Days since 1970-01-01; negative before it.
    ///
    /// ```
    /// assert_eq!(ilion::Date::new(1969, 12, 31).ok_or("no such day")?.days(), -1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn days(self) -> i32 {
        self.days
    }

    /// Year, month and day; months and days count from 1.
    ///
    /// ```
    /// assert_eq!(ilion::Date::from_days(20_784).year_month_day(), (2026, 11, 27));
    /// ```
    pub fn year_month_day(self) -> (i64, i64, i64) {
        civil_from_days(i64::from(self.days))
    }

    pub(crate) fn of_value(value: u32) -> Self {
        let days = i64::from(value) - EPOCH_DAY;
        #[expect(clippy::cast_possible_truncation, reason = "any u32 less 2^31 is an i32")]
        Self { days: days as i32 }
    }

    pub(crate) fn value(self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "any i32 plus 2^31 is a u32"
        )]
        {
            (i64::from(self.days) + EPOCH_DAY) as u32
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        print_date(self.value(), &mut text);
        f.write_str(&text)
    }
}

/// A time of the day in nanoseconds: a value of the type `time`.
///
/// ```
/// let time = ilion::Time::new(13, 30, 54, 234_000_000).ok_or("no such time")?;
/// assert_eq!(time.to_string(), "13:30:54.234000000");
/// assert!(ilion::Time::new(24, 0, 0, 0).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    nanos: i64,
}

impl Time {
    /// A time; `None` if a part is too large.
    ///
    /// ```
    /// use ilion::Time;
    ///
    /// assert_eq!(Time::new(0, 1, 0, 5).map(Time::nanos), Some(60_000_000_005));
    /// assert_eq!(Time::new(12, 60, 0, 0), None);
    /// ```
    pub fn new(hour: u8, minute: u8, second: u8, nano: u32) -> Option<Self> {
        let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        let is_time = hour < 24 && minute < 60 && second < 60 && i64::from(nano) < NANOS_PER_SECOND;
        is_time.then_some(Self {
            nanos: seconds * NANOS_PER_SECOND + i64::from(nano),
        })
    }

    /// The time `nanos` nanoseconds after midnight; `None` if that is on another day.
    ///
    /// ```
    /// use ilion::Time;
    ///
    /// assert_eq!(Time::from_nanos(3_600_000_000_000), Time::new(1, 0, 0, 0));
    /// assert_eq!(Time::from_nanos(-1), None);
    /// ```
    pub fn from_nanos(nanos: i64) -> Option<Self> {
        (0..NANOS_PER_DAY).contains(&nanos).then_some(Self { nanos })
    }

    /// Nanoseconds since midnight.
    ///
    /// ```
    /// assert_eq!(ilion::Time::new(0, 0, 1, 0).ok_or("no such time")?.nanos(), 1_000_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nanos(self) -> i64 {
        self.nanos
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        print_time(self.nanos, &mut text);
        f.write_str(&text)
    }
}
