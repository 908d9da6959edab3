//! `floor`: the start of the interval that contains a time (`TimeFcts`, `Duration.floorTimestamp`).

use bytes::Bytes;
use ilion_types::{CqlType, Duration, Value};

use super::time::{MILLIS_PER_DAY, add_months, date_of_millis, millis_bytes, millis_of};
use super::{Arguments, ScalarFunction};
use crate::Error;

const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_DAY: i64 = MILLIS_PER_DAY * NANOS_PER_MILLI;
/// The days of the longest month. With it, the estimated number of intervals is never too large.
const DAYS_OF_MONTH_MAX: i64 = 31;

/// The functions of this name.
pub(super) fn candidates(name: &str, out: &mut Vec<ScalarFunction>) {
    if name != "floor" {
        return;
    }
    for (from, to) in [
        (CqlType::Timestamp, CqlType::Timestamp),
        (CqlType::TimeUuid, CqlType::Timestamp),
        (CqlType::Date, CqlType::Date),
    ] {
        let with_start = vec![from.clone(), CqlType::Duration, to.clone()];
        for types in [with_start[..2].to_vec(), with_start] {
            let (source, result) = (from.clone(), to.clone());
            out.push(ScalarFunction::new(
                name,
                types,
                to.clone(),
                move |arguments, _| floor_of_values(&source, &result, arguments),
            ));
        }
    }
    let types = [CqlType::Time, CqlType::Duration];
    out.push(ScalarFunction::new(name, types, CqlType::Time, |arguments, _| {
        floor_of_day(arguments)
    }));
}

fn decode(duration: &[u8]) -> Result<Option<Duration>, Error> {
    Ok(match Value::decode(&CqlType::Duration, duration)? {
        Value::Duration(duration) => Some(duration),
        _ => None,
    })
}

fn floor_of_values(from: &CqlType, to: &CqlType, arguments: Arguments<'_>) -> Result<Option<Bytes>, Error> {
    let (time, duration, start) = match arguments {
        [Some(time), Some(duration)] => (time, duration, Some(0)),
        [Some(time), Some(duration), Some(start)] => (time, duration, millis_of(to, start)?),
        _ => return Ok(None),
    };
    let (Some(time), Some(duration), Some(start)) = (millis_of(from, time)?, decode(duration)?, start) else {
        return Ok(None);
    };
    let unit_nanos = if *to == CqlType::Date {
        NANOS_PER_DAY
    } else {
        NANOS_PER_MILLI
    };
    if duration.nanos() % unit_nanos != 0 {
        let unit = if *to == CqlType::Date {
            "day"
        } else {
            "millisecond"
        };
        return Err(Error::Invalid(format!(
            "The floor on {from} values cannot be computed for the {duration} duration as precision is below 1 {unit}"
        )));
    }
    let floor = floor_of(time, duration, start)?;
    Ok(Some(match to {
        CqlType::Date => date_of_millis(floor),
        _ => millis_bytes(floor),
    }))
}

fn refuse_negative(duration: Duration) -> Result<(), Error> {
    if duration.months() < 0 || duration.days() < 0 || duration.nanos() < 0 {
        return Err(Error::invalid(
            "Negative durations are not supported by the floor function",
        ));
    }
    Ok(())
}

/// The greatest `start + n * duration` that is not after `time`, all in milliseconds.
fn floor_of(time: i64, duration: Duration, start: i64) -> Result<i64, Error> {
    refuse_negative(duration)?;
    if start > time {
        return Err(Error::invalid(
            "The floor function starting time is greater than the provided time",
        ));
    }
    let months = i64::from(duration.months());
    let rest = i64::from(duration.days())
        .saturating_mul(MILLIS_PER_DAY)
        .saturating_add(duration.nanos() / NANOS_PER_MILLI);
    let elapsed = time.saturating_sub(start);
    if months == 0 {
        return Ok(if rest == 0 { time } else { time - elapsed % rest });
    }
    let after = |count: i64| {
        add_months(start, months.saturating_mul(count)).saturating_add(rest.saturating_mul(count))
    };
    let longest = months
        .saturating_mul(DAYS_OF_MONTH_MAX * MILLIS_PER_DAY)
        .saturating_add(rest);
    let mut count = elapsed / longest;
    // `i64::MAX` stands for all times that do not fit into an `i64`.
    while after(count + 1) <= time && after(count + 1) < i64::MAX {
        // The estimate is short by less than a tenth, so the loop converges fast.
        count += ((time - after(count)) / longest).max(1);
    }
    Ok(after(count))
}

fn floor_of_day(arguments: Arguments<'_>) -> Result<Option<Bytes>, Error> {
    let [Some(time), Some(duration)] = arguments else {
        return Ok(None);
    };
    let (Value::Time(nanos), Some(duration)) = (Value::decode(&CqlType::Time, time)?, decode(duration)?)
    else {
        return Ok(None);
    };
    refuse_negative(duration)?;
    if duration.months() != 0 || duration.days() != 0 || duration.nanos() > NANOS_PER_DAY {
        return Err(Error::invalid(
            "For time values, the floor can only be computed for durations smaller that a day",
        ));
    }
    let floor = match duration.nanos() {
        0 => nanos,
        interval => nanos - nanos % interval,
    };
    Ok(Some(millis_bytes(floor)))
}
