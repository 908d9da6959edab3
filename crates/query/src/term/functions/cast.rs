//! `CAST(a AS b)`: conversions among numbers, among types with a time, and to text (`CastFcts`).

use bytes::Bytes;
use ilion_types::CqlType;

use super::time::{date_of_millis, millis_bytes, millis_of};
use super::{Number, ScalarFunction};
use crate::Error;

type Conversion = Box<dyn Fn(&Bytes) -> Result<Option<Bytes>, Error> + Send + Sync>;

/// The types that casts convert from.
const SOURCES: [CqlType; 20] = [
    CqlType::Ascii,
    CqlType::BigInt,
    CqlType::Boolean,
    CqlType::Counter,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::SmallInt,
    CqlType::Text,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::TimeUuid,
    CqlType::TinyInt,
    CqlType::Uuid,
    CqlType::Varint,
    CqlType::Blob,
    CqlType::Duration,
];

/// The casts from other types to `to`, as messages list them; empty if no cast has that result.
pub(super) fn signatures(to: &CqlType) -> Vec<String> {
    let others = SOURCES.iter().filter(|from| *from != to);
    let made = others.filter_map(|from| make(from, to));
    made.map(|function| function.to_string()).collect()
}

/// The conversion function; `None` if the cast is not possible.
pub(super) fn make(from: &CqlType, to: &CqlType) -> Option<ScalarFunction> {
    let name = format!("cast_as_{to}");
    let source = from.clone();
    let target = to.clone();
    let (from, to) = (from.clone(), to.clone());
    let body: Conversion = match (&from, &to) {
        _ if from == to => Box::new(|value| Ok(Some(value.clone()))),
        (CqlType::Ascii, CqlType::Text) => Box::new(|value| Ok(Some(value.clone()))),
        (_, CqlType::Counter) => return None,
        _ if from.is_numeric() && to.is_numeric() => Box::new(move |value| {
            let number = Number::decode(&source, value)?;
            number.map(|number| number.encode(&target)).transpose()
        }),
        // Compat: the cast of a counter, whose values may stand for those of a timestamp.
        (CqlType::Timestamp, CqlType::BigInt | CqlType::Varint) => Box::new(move |value| {
            let number = Number::decode(&CqlType::BigInt, value)?;
            number.map(|number| number.encode(&target)).transpose()
        }),
        (CqlType::Timestamp | CqlType::TimeUuid, CqlType::Date) => {
            Box::new(move |value| Ok(millis_of(&source, value)?.map(date_of_millis)))
        }
        (CqlType::Date | CqlType::TimeUuid, CqlType::Timestamp) => {
            Box::new(move |value| Ok(millis_of(&source, value)?.map(millis_bytes)))
        }
        (_, CqlType::Text | CqlType::Ascii) if has_text(&from) => {
            Box::new(move |value| print(&source, value))
        }
        _ => return None,
    };
    Some(ScalarFunction::of_value(name, from, to, body))
}

fn has_text(ty: &CqlType) -> bool {
    ty.is_numeric()
        || matches!(
            ty,
            CqlType::Boolean
                | CqlType::Date
                | CqlType::Time
                | CqlType::Timestamp
                | CqlType::Uuid
                | CqlType::TimeUuid
                | CqlType::Inet
        )
}

fn print(ty: &CqlType, value: &[u8]) -> Result<Option<Bytes>, Error> {
    if value.is_empty() {
        return Ok(None);
    }
    let text = match ty {
        // The literal is in ISO form, within quotes, which are removed.
        CqlType::Timestamp => ty.print_literal(value)?.trim_matches('\'').to_owned(),
        _ => ty.print_plain(value)?,
    };
    Ok(Some(text.into()))
}
