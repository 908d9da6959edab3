//! Values of a column as an array of Arrow.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, FixedSizeListArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, MapArray, StructArray,
    Time64NanosecondArray, TimestampMillisecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use ilion_types::{CqlType, Duration, collection_elements, map_entries, tuple_components, vector_elements};

use crate::arrow_type::{FileKind, arrow_type, element_field, entry_fields, fields_of, parts_of};

/// Days of CQL begin at -2^31.
pub const SIGN: u32 = 1 << 31;

/// Serialized values of one type; `None` is null.
type Cells<'a> = [Option<&'a [u8]>];

/// The values as an array. An empty value of a type that has none, which old tables can contain, becomes null.
///
/// # Errors
/// A value is none of its type.
pub fn array_of(cql_type: &CqlType, cells: &Cells<'_>, kind: FileKind) -> Result<ArrayRef, String> {
    Ok(match cql_type {
        CqlType::Ascii | CqlType::Text => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                let text = cell.map(|bytes| std::str::from_utf8(bytes)).transpose();
                builder.append_option(text.map_err(|_| "a text is not UTF-8")?);
            }
            Arc::new(builder.finish())
        }
        CqlType::Blob | CqlType::Custom(_) => {
            let mut builder = BinaryBuilder::new();
            cells.iter().for_each(|cell| builder.append_option(*cell));
            Arc::new(builder.finish())
        }
        CqlType::Boolean => Arc::new(BooleanArray::from(fixed(cells, |[byte]: [u8; 1]| byte != 0)?)),
        CqlType::TinyInt => Arc::new(Int8Array::from(fixed(cells, i8::from_be_bytes)?)),
        CqlType::SmallInt => Arc::new(Int16Array::from(fixed(cells, i16::from_be_bytes)?)),
        CqlType::Int => Arc::new(Int32Array::from(fixed(cells, i32::from_be_bytes)?)),
        CqlType::BigInt | CqlType::Counter => Arc::new(Int64Array::from(fixed(cells, i64::from_be_bytes)?)),
        CqlType::Float => Arc::new(Float32Array::from(fixed(cells, f32::from_be_bytes)?)),
        CqlType::Double => Arc::new(Float64Array::from(fixed(cells, f64::from_be_bytes)?)),
        CqlType::Date => Arc::new(Date32Array::from(fixed(cells, |bytes| {
            (u32::from_be_bytes(bytes) ^ SIGN).cast_signed()
        })?)),
        CqlType::Time => Arc::new(Time64NanosecondArray::from(fixed(cells, i64::from_be_bytes)?)),
        CqlType::Timestamp => {
            let millis = fixed(cells, i64::from_be_bytes)?;
            Arc::new(TimestampMillisecondArray::from(millis).with_timezone("UTC"))
        }
        CqlType::Duration if kind == FileKind::Arrow => {
            let interval = |bytes: &[u8]| {
                let duration = Duration::decode(bytes).map_err(|error| error.to_string())?;
                Ok(IntervalMonthDayNano::new(
                    duration.months(),
                    duration.days(),
                    duration.nanos(),
                ))
            };
            let values = cells.iter().map(|cell| filled(*cell).map(interval).transpose());
            let values: Vec<_> = values.collect::<Result<_, String>>()?;
            Arc::new(IntervalMonthDayNanoArray::from(values))
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => list(element, cells, kind)?,
        CqlType::Vector { element, dimension } => vector(cql_type, element, *dimension, cells, kind)?,
        CqlType::Map { key, value, .. } => map(key, value, cells, kind)?,
        CqlType::Tuple(_) | CqlType::Udt { .. } => structs(cql_type, cells, kind)?,
        CqlType::Varint
        | CqlType::Decimal
        | CqlType::Uuid
        | CqlType::TimeUuid
        | CqlType::Inet
        | CqlType::Duration
        | CqlType::Empty => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                let text = filled(*cell).map(|bytes| cql_type.print_plain(bytes)).transpose();
                builder.append_option(text.map_err(|error| error.to_string())?);
            }
            Arc::new(builder.finish())
        }
    })
}

fn filled(cell: Option<&[u8]>) -> Option<&[u8]> {
    cell.filter(|bytes| !bytes.is_empty())
}

/// Values of a fixed size.
fn fixed<const N: usize, T>(
    cells: &Cells<'_>,
    decode: impl Fn([u8; N]) -> T,
) -> Result<Vec<Option<T>>, String> {
    let value = |bytes: &[u8]| match <[u8; N]>::try_from(bytes) {
        Ok(bytes) => Ok(decode(bytes)),
        Err(_) => Err(format!("a value has {} bytes instead of {N}", bytes.len())),
    };
    let values = cells.iter().map(|cell| filled(*cell).map(value).transpose());
    values.collect()
}

fn nulls(cells: &Cells<'_>) -> NullBuffer {
    cells.iter().map(Option::is_some).collect::<Vec<bool>>().into()
}

fn failed(error: impl ToString) -> String {
    error.to_string()
}

fn list(element: &CqlType, cells: &Cells<'_>, kind: FileKind) -> Result<ArrayRef, String> {
    let (mut elements, mut lengths) = (Vec::new(), Vec::with_capacity(cells.len()));
    for cell in cells {
        let begin = elements.len();
        if let Some(bytes) = cell {
            for part in collection_elements(bytes).map_err(failed)? {
                elements.push(Some(part.map_err(failed)?));
            }
        }
        lengths.push(elements.len() - begin);
    }
    let values = array_of(element, &elements, kind)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(element_field(element, kind), offsets, values, Some(nulls(cells)));
    Ok(Arc::new(list.map_err(failed)?))
}

fn vector(
    whole: &CqlType,
    element: &CqlType,
    dimension: u32,
    cells: &Cells<'_>,
    kind: FileKind,
) -> Result<ArrayRef, String> {
    let DataType::FixedSizeList(field, size) = arrow_type(whole, kind) else {
        return Err("the vector has too many dimensions".to_owned());
    };
    let mut elements = Vec::new();
    for cell in cells {
        match cell {
            Some(bytes) => {
                for part in vector_elements(bytes, element, dimension) {
                    elements.push(Some(part.map_err(failed)?));
                }
            }
            None => elements.resize(elements.len() + dimension as usize, None),
        }
    }
    let values = array_of(element, &elements, kind)?;
    let list = FixedSizeListArray::try_new(field, size, values, Some(nulls(cells)));
    Ok(Arc::new(list.map_err(failed)?))
}

fn map(key: &CqlType, value: &CqlType, cells: &Cells<'_>, kind: FileKind) -> Result<ArrayRef, String> {
    let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::with_capacity(cells.len()));
    for cell in cells {
        let begin = keys.len();
        if let Some(bytes) = cell {
            for entry in map_entries(bytes).map_err(failed)? {
                let (left, right) = entry.map_err(failed)?;
                keys.push(Some(left));
                values.push(Some(right));
            }
        }
        lengths.push(keys.len() - begin);
    }
    let fields = entry_fields(key, value, kind);
    let columns = vec![array_of(key, &keys, kind)?, array_of(value, &values, kind)?];
    let entries = StructArray::try_new(fields.clone(), columns, None).map_err(failed)?;
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let map = MapArray::try_new(field, offsets, entries, Some(nulls(cells)), false);
    Ok(Arc::new(map.map_err(failed)?))
}

fn structs(whole: &CqlType, cells: &Cells<'_>, kind: FileKind) -> Result<ArrayRef, String> {
    let parts = parts_of(whole);
    let mut columns: Vec<Vec<Option<&[u8]>>> = vec![Vec::with_capacity(cells.len()); parts.len()];
    for cell in cells {
        let mut components = cell.map(tuple_components);
        for column in &mut columns {
            // A value that was written before its type got more fields is shorter.
            let part = components.as_mut().and_then(Iterator::next).transpose();
            column.push(part.map_err(failed)?.flatten());
        }
    }
    let columns = columns.iter().zip(&parts);
    let columns = columns.map(|(column, (_, part))| array_of(part, column, kind));
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    let structs = StructArray::try_new(fields_of(whole, kind), columns, Some(nulls(cells)));
    Ok(Arc::new(structs.map_err(failed)?))
}
