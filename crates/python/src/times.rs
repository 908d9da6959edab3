//! Dates and times of Python as CQL has them, and back.

use ilion_types::{EPOCH_DAY, civil_from_days, days_from_civil};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyString, PyTime, PyTimeAccess as _, PyTzInfoAccess as _};

use crate::classes::Classes;
use crate::errors::{Converted, Problem, unfit};

const MILLIS_PER_DAY: i64 = 86_400_000;

fn too_large<T>(value: &Bound<'_, PyAny>) -> Converted<T> {
    Err(Problem::Unfit(format!("{value} is too large for it")))
}

/// A `date`: a date of Python, an object with `days_from_epoch`, text as `2026-11-27`, or a number as CQL has it (2^31 is 1970-01-01).
pub fn date(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<u32> {
    if let Ok(raw) = value.extract::<i64>() {
        return u32::try_from(raw).or_else(|_| too_large(value));
    }
    let days = match value.getattr_opt("days_from_epoch")? {
        Some(days) => days,
        None if value.is_instance_of::<PyDate>() || value.is_instance_of::<PyString>() => {
            let date = classes.date.bind(value.py()).call1((value,));
            let date = date.map_err(|error| Problem::Unfit(error.value(value.py()).to_string()))?;
            date.getattr("days_from_epoch")?
        }
        None => return unfit("date", value),
    };
    let days = days
        .extract::<i64>()
        .ok()
        .and_then(|days| days.checked_add(EPOCH_DAY));
    match days.and_then(|days| u32::try_from(days).ok()) {
        Some(days) => Ok(days),
        None => too_large(value),
    }
}

/// A `time`: a time of Python, an object with `nanosecond_time`, text as `13:30:54.234`, or a number of nanoseconds.
pub fn time(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<i64> {
    if let Ok(nanos) = value.extract::<i64>() {
        return Ok(nanos);
    }
    let nanos = match value.getattr_opt("nanosecond_time")? {
        Some(nanos) => nanos,
        None if value.is_instance_of::<PyTime>() || value.is_instance_of::<PyString>() => {
            let time = classes.time.bind(value.py()).call1((value,));
            let time = time.map_err(|error| Problem::Unfit(error.value(value.py()).to_string()))?;
            time.getattr("nanosecond_time")?
        }
        None => return unfit("time", value),
    };
    nanos.extract().or_else(|_| too_large(value))
}

/// A `timestamp`: a datetime (UTC if it has no zone), a date, or a number of milliseconds since 1970. Parts of a millisecond are cut off,
/// towards the past.
pub fn timestamp(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<i64> {
    if let Ok(moment) = value.cast::<PyDateTime>() {
        let in_utc = match moment.get_tzinfo() {
            None => moment.clone(),
            Some(_) => {
                let moved = moment.call_method1("astimezone", (&classes.utc,))?;
                moved.cast_into::<PyDateTime>().map_err(PyErr::from)?
            }
        };
        let seconds = i64::from(in_utc.get_hour()) * 3600
            + i64::from(in_utc.get_minute()) * 60
            + i64::from(in_utc.get_second());
        let millis = seconds * 1000 + i64::from(in_utc.get_microsecond() / 1000);
        return Ok(days(&in_utc) * MILLIS_PER_DAY + millis);
    }
    if let Ok(day) = value.cast::<PyDate>() {
        return Ok(days(day) * MILLIS_PER_DAY);
    }
    if let Ok(millis) = value.extract::<i64>() {
        return Ok(millis);
    }
    match value.extract::<f64>() {
        #[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
        Ok(millis) if millis.abs() < 9e18 => Ok(millis as i64),
        Ok(_) => too_large(value),
        Err(_) => unfit("datetime", value),
    }
}

/// Days since 1970.
fn days(date: &impl pyo3::types::PyDateAccess) -> i64 {
    let (year, month, day) = (date.get_year(), date.get_month(), date.get_day());
    days_from_civil(i64::from(year), i64::from(month), i64::from(day))
}

/// The datetime in UTC, without a zone, of this many milliseconds since 1970.
pub fn datetime(py: Python<'_>, millis: i64) -> Converted<Bound<'_, PyDateTime>> {
    let (year, month, day) = civil_from_days(millis.div_euclid(MILLIS_PER_DAY));
    let Some(year) = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year)) else {
        return Err(Problem::Unfit(format!(
            "datetime has years from 1 to 9999 only, this is {millis} ms since 1970: read it with to_arrow"
        )));
    };
    let in_day = millis.rem_euclid(MILLIS_PER_DAY);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "parts of a date and of a day are small"
    )]
    let made = PyDateTime::new(
        py,
        year,
        month as u8,
        day as u8,
        (in_day / 3_600_000) as u8,
        (in_day / 60_000 % 60) as u8,
        (in_day / 1000 % 60) as u8,
        (in_day % 1000 * 1000) as u32,
        None,
    );
    Ok(made?)
}
