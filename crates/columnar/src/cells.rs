//! An array of Arrow as values of a CQL type.
//!
//! Values of the same type are copied. The text of any other scalar is parsed as a value of the CQL type, so that integers of another size,
//! numbers as text, and UUIDs as text are read, too. Timestamps are cut to milliseconds.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use ilion_types::{CqlType, encode_list, encode_map, encode_tuple, encode_vector};

use crate::arrays::SIGN;
use crate::arrow_type::parts_of;

/// A serialized value, or what could not become one; `None` is null.
pub type Cell = Result<Option<Vec<u8>>, Wrong>;

/// A value that is none of the type of its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The value as text; empty if it has parts.
    pub text: String,
    /// What is wrong.
    pub problem: String,
}

impl Wrong {
    fn new(text: &str, problem: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            problem: problem.into(),
        }
    }
}

/// The values of an array as values of a type.
pub fn cells_of(cql_type: &CqlType, array: &ArrayRef) -> Vec<Cell> {
    (0..array.len())
        .map(|row| match array.is_null(row) {
            true => Ok(None),
            false => value(cql_type, array, row).map(Some),
        })
        .collect()
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

/// A value that is not null.
fn value(cql_type: &CqlType, array: &ArrayRef, row: usize) -> Result<Vec<u8>, Wrong> {
    let other = || Wrong::new("", format!("{} is no {cql_type}", array.data_type()));
    Ok(match (cql_type, array.data_type()) {
        (CqlType::TinyInt, DataType::Int8) => primitive::<Int8Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::SmallInt, DataType::Int16) => primitive::<Int16Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::Int, DataType::Int32) => primitive::<Int32Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::BigInt, DataType::Int64) => primitive::<Int64Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::Float, DataType::Float32) => primitive::<Float32Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::Double, DataType::Float64) => primitive::<Float64Type>(array, row).to_be_bytes().to_vec(),
        (CqlType::Double, DataType::Float32) => {
            let value = f64::from(primitive::<Float32Type>(array, row));
            value.to_be_bytes().to_vec()
        }
        (CqlType::Boolean, DataType::Boolean) => vec![u8::from(array.as_boolean().value(row))],
        (CqlType::Date, DataType::Date32) => {
            let day = primitive::<Date32Type>(array, row).cast_unsigned() ^ SIGN;
            day.to_be_bytes().to_vec()
        }
        (CqlType::Time, _) if let Some(nanos) = time_of_day(array, row) => nanos
            .ok_or_else(|| Wrong::new("", "the time is too large"))?
            .to_be_bytes()
            .to_vec(),
        (CqlType::Timestamp, _) if let Some(millis) = timestamp(array, row) => millis
            .ok_or_else(|| Wrong::new("", "the timestamp is too large"))?
            .to_be_bytes()
            .to_vec(),
        (CqlType::Blob | CqlType::Custom(_), _) if let Some(bytes) = binary(array, row) => bytes.to_vec(),
        (CqlType::Uuid | CqlType::TimeUuid, _)
            if let Some(bytes) = binary(array, row).filter(|bytes| bytes.len() == 16) =>
        {
            let bytes = bytes.to_vec();
            cql_type
                .validate(&bytes)
                .map_err(|error| Wrong::new("", error.to_string()))?;
            bytes
        }
        (CqlType::List { element, .. }, _) if let Some(parts) = list(array, row) => {
            encode_list(slices(&elements(element, &parts?)?))
        }
        (CqlType::Set { element, .. }, _) if let Some(parts) = list(array, row) => {
            let mut elements = elements(element, &parts?)?;
            elements.sort_by(|left, right| element.compare(left, right));
            elements.dedup();
            encode_list(slices(&elements))
        }
        (CqlType::Vector { element, dimension }, _) if let Some(parts) = list(array, row) => {
            let elements = elements(element, &parts?)?;
            if u32::try_from(elements.len()) != Ok(*dimension) {
                let problem = format!(
                    "the vector has {} elements instead of {dimension}",
                    elements.len()
                );
                return Err(Wrong::new("", problem));
            }
            encode_vector(slices(&elements), element)
        }
        (CqlType::Map { key, value, .. }, DataType::Map(..)) => {
            let entries = array.as_map().value(row);
            let keys = elements(key, entries.column(0))?;
            let values = elements(value, entries.column(1))?;
            let mut entries: Vec<_> = keys.into_iter().zip(values).collect();
            entries.sort_by(|left, right| key.compare(&left.0, &right.0));
            entries.dedup_by(|left, right| left.0 == right.0);
            encode_map(
                entries
                    .iter()
                    .map(|(key, value)| (key.as_slice(), value.as_slice())),
            )
        }
        (CqlType::Tuple(_) | CqlType::Udt { .. }, DataType::Struct(_)) => structs(cql_type, array, row)?,
        (CqlType::List { .. } | CqlType::Set { .. } | CqlType::Vector { .. }, _)
        | (CqlType::Map { .. } | CqlType::Tuple(_) | CqlType::Udt { .. }, _) => return Err(other()),
        _ => {
            let text = text(array, row).ok_or_else(other)?;
            let parsed = cql_type.parse_plain(&text);
            parsed.map_err(|error| Wrong::new(&text, error.to_string()))?
        }
    })
}

fn slices(elements: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    elements.iter().map(Vec::as_slice)
}

/// The elements of a collection. An element that is null is an error.
fn elements(cql_type: &CqlType, array: &ArrayRef) -> Result<Vec<Vec<u8>>, Wrong> {
    let element = |cell: Cell| cell?.ok_or_else(|| Wrong::new("", "null is no element of a collection"));
    cells_of(cql_type, array).into_iter().map(element).collect()
}

/// The elements of a list; `None` if the array has no lists.
fn list(array: &ArrayRef, row: usize) -> Option<Result<ArrayRef, Wrong>> {
    Some(Ok(match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(row),
        _ => return None,
    }))
}

/// A tuple by the places of its parts; a user type by their names.
fn structs(cql_type: &CqlType, array: &ArrayRef, row: usize) -> Result<Vec<u8>, Wrong> {
    let structs = array.as_struct();
    let parts = parts_of(cql_type);
    if let Some(name) = structs
        .column_names()
        .into_iter()
        .find(|name| !parts.iter().any(|(known, _)| known == name))
    {
        return Err(Wrong::new("", format!("{cql_type} has no field {name}")));
    }
    let part = |(name, part): &(String, &CqlType)| match structs.column_by_name(name) {
        Some(column) if !column.is_null(row) => value(part, column, row).map(Some),
        _ => Ok(None),
    };
    let parts: Vec<_> = parts.iter().map(part).collect::<Result<_, Wrong>>()?;
    Ok(encode_tuple(parts.iter().map(Option::as_deref)))
}

fn binary(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => return None,
    })
}

/// Nanoseconds of the day; `None` if the array has no times, `Some(None)` if they are too many.
fn time_of_day(array: &ArrayRef, row: usize) -> Option<Option<i64>> {
    let (units, nanos) = match array.data_type() {
        DataType::Time32(TimeUnit::Second) => (
            i64::from(primitive::<Time32SecondType>(array, row)),
            1_000_000_000,
        ),
        DataType::Time32(_) => (
            i64::from(primitive::<Time32MillisecondType>(array, row)),
            1_000_000,
        ),
        DataType::Time64(TimeUnit::Microsecond) => (primitive::<Time64MicrosecondType>(array, row), 1000),
        DataType::Time64(_) => (primitive::<Time64NanosecondType>(array, row), 1),
        _ => return None,
    };
    let nanos = units.checked_mul(nanos);
    Some(nanos.filter(|nanos| (0..86_400_000_000_000).contains(nanos)))
}

/// Milliseconds since 1970; `None` if the array has no timestamps, `Some(None)` if they are too many.
fn timestamp(array: &ArrayRef, row: usize) -> Option<Option<i64>> {
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            primitive::<TimestampSecondType>(array, row).checked_mul(1000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Some(primitive::<TimestampMillisecondType>(array, row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(primitive::<TimestampMicrosecondType>(array, row).div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Some(primitive::<TimestampNanosecondType>(array, row).div_euclid(1_000_000))
        }
        DataType::Date32 => i64::from(primitive::<Date32Type>(array, row)).checked_mul(86_400_000),
        DataType::Date64 => Some(primitive::<Date64Type>(array, row)),
        _ => return None,
    })
}

/// A scalar as text; `None` if it has parts, or is no text.
fn text(array: &ArrayRef, row: usize) -> Option<String> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => primitive::<Int8Type>(array, row).to_string(),
        DataType::Int16 => primitive::<Int16Type>(array, row).to_string(),
        DataType::Int32 => primitive::<Int32Type>(array, row).to_string(),
        DataType::Int64 => primitive::<Int64Type>(array, row).to_string(),
        DataType::UInt8 => primitive::<UInt8Type>(array, row).to_string(),
        DataType::UInt16 => primitive::<UInt16Type>(array, row).to_string(),
        DataType::UInt32 => primitive::<UInt32Type>(array, row).to_string(),
        DataType::UInt64 => primitive::<UInt64Type>(array, row).to_string(),
        DataType::Float32 => primitive::<Float32Type>(array, row).to_string(),
        DataType::Float64 => primitive::<Float64Type>(array, row).to_string(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        _ => return None,
    })
}
