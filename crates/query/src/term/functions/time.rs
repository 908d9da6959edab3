//! Clocks, UUIDs and dates.
//!
//! The names with underscores are those of Cassandra 5.0; the older ones still work.

use bytes::Bytes;
use ilion_types::{
    CqlType, Uuid, civil_from_days, days_from_civil, max_time_uuid, min_time_uuid, time_uuid_unix_millis,
};

use super::ScalarFunction;
use crate::Error;

pub(super) const MILLIS_PER_DAY: i64 = 86_400_000;
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// The date 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

/// The functions of this name.
pub(super) fn candidates(name: &str, out: &mut Vec<ScalarFunction>) {
    match name {
        "uuid" => out.push(ScalarFunction::new(name, [], CqlType::Uuid, |_, execution| {
            execution.calls.note_volatile();
            Ok(Some(uuid_bytes(execution.store.random_uuid())))
        })),
        "now" | "current_timeuuid" | "currenttimeuuid" => {
            out.push(ScalarFunction::new(
                name,
                [],
                CqlType::TimeUuid,
                |_, execution| {
                    execution.calls.note_volatile();
                    Ok(Some(uuid_bytes(execution.store.time_uuid())))
                },
            ));
        }
        "current_timestamp" | "currenttimestamp" => clock(name, CqlType::Timestamp, out, |micros| {
            millis_bytes(micros.div_euclid(1000))
        }),
        "current_date" | "currentdate" => clock(name, CqlType::Date, out, |micros| {
            date_of_millis(micros.div_euclid(1000))
        }),
        "current_time" | "currenttime" => clock(name, CqlType::Time, out, |micros| {
            millis_bytes(micros.rem_euclid(MICROS_PER_DAY) * 1000)
        }),
        "min_timeuuid" | "mintimeuuid" => bound(name, out, min_time_uuid),
        "max_timeuuid" | "maxtimeuuid" => bound(name, out, max_time_uuid),
        "to_date" | "todate" => conversions(name, CqlType::Date, out, date_of_millis),
        "to_timestamp" | "totimestamp" => conversions(name, CqlType::Timestamp, out, millis_bytes),
        "to_unix_timestamp" | "tounixtimestamp" => conversions(name, CqlType::BigInt, out, millis_bytes),
        _ => {}
    }
}

fn clock(name: &str, result: CqlType, out: &mut Vec<ScalarFunction>, of_micros: fn(i64) -> Bytes) {
    out.push(ScalarFunction::new(name, [], result, move |_, execution| {
        execution.calls.note_volatile();
        Ok(Some(of_micros(execution.store.now_micros())))
    }));
}

fn bound(name: &str, out: &mut Vec<ScalarFunction>, of_millis: fn(i64) -> Uuid) {
    let body = move |value: &Bytes| {
        Ok(millis_of(&CqlType::Timestamp, value)?.map(|millis| uuid_bytes(of_millis(millis))))
    };
    out.push(ScalarFunction::of_value(
        name,
        CqlType::Timestamp,
        CqlType::TimeUuid,
        body,
    ));
}

/// Adds a conversion to `result` from each type that contains a time, except from `result` itself.
fn conversions(name: &str, result: CqlType, out: &mut Vec<ScalarFunction>, of_millis: fn(i64) -> Bytes) {
    for from in [CqlType::TimeUuid, CqlType::Timestamp, CqlType::Date] {
        if from == result {
            continue;
        }
        let ty = from.clone();
        let body = move |value: &Bytes| Ok(millis_of(&ty, value)?.map(of_millis));
        out.push(ScalarFunction::of_value(name, from, result.clone(), body));
    }
}

/// The time in a value, in milliseconds since 1970; `None` for an empty value.
pub(super) fn millis_of(ty: &CqlType, value: &[u8]) -> Result<Option<i64>, Error> {
    use ilion_types::Value;
    Ok(match Value::decode(ty, value)? {
        Value::Timestamp(millis) => Some(millis),
        Value::TimeUuid(uuid) => Some(time_uuid_unix_millis(&uuid)),
        Value::Date(day) => Some((i64::from(day) - EPOCH_DAY) * MILLIS_PER_DAY),
        _ => None,
    })
}

/// The serialized date of a time in milliseconds since 1970.
pub(super) fn date_of_millis(millis: i64) -> Bytes {
    let day = millis.div_euclid(MILLIS_PER_DAY) + EPOCH_DAY;
    let day = u32::try_from(day.clamp(0, i64::from(u32::MAX))).unwrap_or_default();
    Bytes::copy_from_slice(&day.to_be_bytes())
}

/// The eight bytes of a timestamp or bigint.
pub(super) fn millis_bytes(millis: i64) -> Bytes {
    Bytes::copy_from_slice(&millis.to_be_bytes())
}

fn uuid_bytes(uuid: Uuid) -> Bytes {
    Bytes::copy_from_slice(uuid.as_bytes())
}

/// The same time of day some months later. If that month lacks the day, the last day of the month.
pub(super) fn add_months(millis: i64, months: i64) -> i64 {
    if months == 0 {
        return millis;
    }
    let (days, rest) = (
        millis.div_euclid(MILLIS_PER_DAY),
        millis.rem_euclid(MILLIS_PER_DAY),
    );
    let (year, month, day) = civil_from_days(days);
    let month_count = (year * 12 + month - 1).saturating_add(months);
    let (year, month) = (month_count.div_euclid(12), month_count.rem_euclid(12) + 1);
    let last_day = days_from_civil(year + month / 12, month % 12 + 1, 1) - days_from_civil(year, month, 1);
    let day = day.min(last_day);
    days_from_civil(year, month, day)
        .saturating_mul(MILLIS_PER_DAY)
        .saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_added_in_the_calendar() {
        let after = |text: &str, months| {
            let bytes = CqlType::Timestamp.parse_plain(text).unwrap();
            let millis = i64::from_be_bytes(bytes.try_into().unwrap());
            let bytes = add_months(millis, months).to_be_bytes();
            CqlType::Timestamp.print_plain(&bytes).unwrap()
        };
        assert_eq!(after("2024-01-31 10:00:00Z", 1), "2024-02-29T10:00:00.000Z");
        assert_eq!(after("2024-12-15 00:00:00Z", 1), "2025-01-15T00:00:00.000Z");
        assert_eq!(after("2024-03-31 00:00:00Z", -13), "2023-02-28T00:00:00.000Z");
        assert_eq!(after("1969-01-01 00:00:00Z", -1), "1968-12-01T00:00:00.000Z");
    }
}
