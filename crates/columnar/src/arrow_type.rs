//! CQL types as types of Arrow.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use ilion_types::CqlType;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Parquet, compressed with Snappy.
    Parquet,
    /// An IPC file of Arrow (Feather V2), not compressed.
    Arrow,
}

/// The name of the elements of lists. Compat: that of pyarrow.
pub const ELEMENT: &str = "item";

/// The type of a column.
pub fn arrow_type(cql_type: &CqlType, kind: FileKind) -> DataType {
    match cql_type {
        CqlType::Blob | CqlType::Custom(_) => DataType::Binary,
        CqlType::Boolean => DataType::Boolean,
        CqlType::TinyInt => DataType::Int8,
        CqlType::SmallInt => DataType::Int16,
        CqlType::Int => DataType::Int32,
        CqlType::BigInt | CqlType::Counter => DataType::Int64,
        CqlType::Float => DataType::Float32,
        CqlType::Double => DataType::Float64,
        CqlType::Date => DataType::Date32,
        CqlType::Time => DataType::Time64(TimeUnit::Nanosecond),
        CqlType::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        CqlType::Duration if kind == FileKind::Arrow => DataType::Interval(IntervalUnit::MonthDayNano),
        // Arrow has no numbers of any size and scale, and few programs know its type for UUIDs.
        CqlType::Ascii
        | CqlType::Text
        | CqlType::Varint
        | CqlType::Decimal
        | CqlType::Uuid
        | CqlType::TimeUuid
        | CqlType::Inet
        | CqlType::Duration
        | CqlType::Empty => DataType::Utf8,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            DataType::List(element_field(element, kind))
        }
        CqlType::Vector { element, dimension } => {
            let field = element_field(element, kind);
            match i32::try_from(*dimension) {
                Ok(dimension) => DataType::FixedSizeList(field, dimension),
                Err(_) => DataType::List(field),
            }
        }
        CqlType::Map { key, value, .. } => DataType::Map(
            Arc::new(Field::new(
                "entries",
                DataType::Struct(entry_fields(key, value, kind)),
                false,
            )),
            false,
        ),
        CqlType::Tuple(_) | CqlType::Udt { .. } => DataType::Struct(fields_of(cql_type, kind)),
    }
}

/// The elements of a list.
pub fn element_field(element: &CqlType, kind: FileKind) -> Arc<Field> {
    Arc::new(Field::new(ELEMENT, arrow_type(element, kind), true))
}

/// Key and value of a map.
pub fn entry_fields(key: &CqlType, value: &CqlType, kind: FileKind) -> Fields {
    Fields::from(vec![
        Field::new("key", arrow_type(key, kind), false),
        Field::new("value", arrow_type(value, kind), true),
    ])
}

/// The fields of a tuple or user type.
pub fn fields_of(cql_type: &CqlType, kind: FileKind) -> Fields {
    let field = |(name, part): (String, &CqlType)| Field::new(name, arrow_type(part, kind), true);
    parts_of(cql_type).into_iter().map(field).collect()
}

/// The parts of a tuple or user type, with their names. Those of a tuple are its numbers from 0.
pub fn parts_of(cql_type: &CqlType) -> Vec<(String, &CqlType)> {
    match cql_type {
        CqlType::Tuple(types) => {
            let types = types.iter().enumerate();
            types.map(|(index, part)| (index.to_string(), part)).collect()
        }
        CqlType::Udt { definition, .. } => {
            let fields = definition.fields.iter();
            fields.map(|(name, part)| (name.clone(), part)).collect()
        }
        _ => Vec::new(),
    }
}
