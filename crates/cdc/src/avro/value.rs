//! Values of CQL as values of Avro, and their schemas.
//!
//! | CQL | Avro |
//! | --- | --- |
//! | ascii, text | string |
//! | tinyint, smallint, int | int |
//! | bigint, counter; time (nanoseconds of the day) | long |
//! | float, double, boolean | the same |
//! | blob, custom types | bytes |
//! | date, timestamp | int `date`, long `timestamp-millis` |
//! | uuid, timeuuid | string `uuid` |
//! | varint, decimal, inet, duration | string, as CQL prints them: varint and decimal have no bounds |
//! | list, set, vector | array |
//! | map | array of records with `key` and `value`, since keys of Avro's maps are strings |
//! | tuple | record with `field1`, `field2` and so on |
//! | user type | record with its fields |
//!
//! All values, also elements, may be null. A value of 0 bytes becomes null if its type has no empty value, as `int`, unlike `text`.

use apache_avro::types::Value as Avro;
use ilion_types::{CqlType, Value};
use serde_json::{Value as Json, json};

use super::names::udt_fields;

/// The Avro type of a CQL type. Records in it have the namespace.
pub(super) fn schema(ty: &CqlType, namespace: &str) -> Json {
    match ty {
        CqlType::Ascii
        | CqlType::Text
        | CqlType::Varint
        | CqlType::Decimal
        | CqlType::Inet
        | CqlType::Duration => json!("string"),
        CqlType::TinyInt | CqlType::SmallInt | CqlType::Int => json!("int"),
        CqlType::BigInt | CqlType::Counter | CqlType::Time => json!("long"),
        CqlType::Float => json!("float"),
        CqlType::Double => json!("double"),
        CqlType::Boolean => json!("boolean"),
        CqlType::Blob | CqlType::Custom(_) | CqlType::Empty => json!("bytes"),
        CqlType::Date => json!({"type": "int", "logicalType": "date"}),
        CqlType::Timestamp => json!({"type": "long", "logicalType": "timestamp-millis"}),
        CqlType::Uuid | CqlType::TimeUuid => json!({"type": "string", "logicalType": "uuid"}),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            array(schema(element, &format!("{namespace}.element")))
        }
        CqlType::Map { key, value, .. } => {
            let of =
                |name: &str, ty: &CqlType| optional(name, schema(ty, &format!("{namespace}.{name}")), None);
            let entry = record(namespace, "Entry", vec![of("key", key), of("value", value)]);
            json!({"type": "array", "items": entry})
        }
        CqlType::Tuple(types) => {
            let fields = types.iter().enumerate().map(|(index, ty)| {
                let name = tuple_field(index);
                let ty = schema(ty, &format!("{namespace}.{name}"));
                optional(&name, ty, None)
            });
            record(namespace, "Value", fields.collect())
        }
        CqlType::Udt { definition, .. } => {
            let names = udt_fields(definition.fields.iter());
            let fields = definition.fields.iter().zip(&names);
            let fields = fields.map(|((_, ty), name)| {
                let ty = schema(ty, &format!("{namespace}.{name}"));
                optional(name, ty, None)
            });
            record(namespace, "Value", fields.collect())
        }
    }
}

/// A type that is a record.
pub(super) fn record(namespace: &str, name: &str, fields: Vec<Json>) -> Json {
    json!({"type": "record", "name": name, "namespace": namespace, "fields": fields})
}

/// A field that may be null.
pub(super) fn optional(name: &str, ty: Json, doc: Option<String>) -> Json {
    let mut field = json!({"name": name, "type": ["null", ty], "default": null});
    if let Some(doc) = doc {
        field["doc"] = json!(doc);
    }
    field
}

fn array(items: Json) -> Json {
    json!({"type": "array", "items": ["null", items]})
}

fn tuple_field(index: usize) -> String {
    format!("field{}", index + 1)
}

/// Value of a field that may be null.
pub(super) fn some(value: Avro) -> Avro {
    Avro::Union(1, Box::new(value))
}

/// Null of a field that may be null.
pub(super) fn none() -> Avro {
    Avro::Union(0, Box::new(Avro::Null))
}

/// A serialized value as the value of a field that may be null.
///
/// # Errors
/// The bytes are no value of the type: text for people.
pub(super) fn of_bytes(ty: &CqlType, bytes: Option<&[u8]>) -> Result<Avro, String> {
    let Some(bytes) = bytes else {
        return Ok(none());
    };
    let value = Value::decode(ty, bytes).map_err(|error| error.to_string())?;
    Ok(of_value(ty, value))
}

fn of_value(ty: &CqlType, value: Value) -> Avro {
    some(match (value, ty) {
        (Value::Null | Value::Empty, _) => return none(),
        (Value::Text(text), _) => Avro::String(text),
        (Value::Blob(bytes), _) => Avro::Bytes(bytes),
        (Value::Boolean(value), _) => Avro::Boolean(value),
        (Value::TinyInt(value), _) => Avro::Int(value.into()),
        (Value::SmallInt(value), _) => Avro::Int(value.into()),
        (Value::Int(value), _) => Avro::Int(value),
        (Value::BigInt(value) | Value::Counter(value) | Value::Time(value), _) => Avro::Long(value),
        (Value::Varint(value), _) => Avro::String(value.to_string()),
        (Value::Decimal(value), _) => Avro::String(value.to_string()),
        (Value::Float(value), _) => Avro::Float(value),
        (Value::Double(value), _) => Avro::Double(value),
        // CQL counts days from 2^31 before the epoch.
        (Value::Date(days), _) => Avro::Date((days ^ (1 << 31)).cast_signed()),
        (Value::Timestamp(millis), _) => Avro::TimestampMillis(millis),
        (Value::Uuid(uuid) | Value::TimeUuid(uuid), _) => Avro::Uuid(uuid),
        (Value::Inet(address), _) => Avro::String(address.to_string()),
        (Value::Duration(duration), _) => Avro::String(duration.to_string()),
        (
            Value::List(values) | Value::Set(values) | Value::Vector(values),
            CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. },
        ) => {
            let values = values.into_iter();
            Avro::Array(values.map(|value| of_value(element, value)).collect())
        }
        (
            Value::Map(entries),
            CqlType::Map {
                key: key_type,
                value: value_type,
                ..
            },
        ) => {
            let entry = |(key, value)| {
                Avro::Record(vec![
                    ("key".to_owned(), of_value(key_type, key)),
                    ("value".to_owned(), of_value(value_type, value)),
                ])
            };
            Avro::Array(entries.into_iter().map(entry).collect())
        }
        (Value::Tuple(values), CqlType::Tuple(types)) => {
            let fields = values.into_iter().zip(types.iter()).enumerate();
            let fields = fields.map(|(index, (value, ty))| (tuple_field(index), of_value(ty, value)));
            Avro::Record(fields.collect())
        }
        (Value::Udt(values), CqlType::Udt { definition, .. }) => {
            let names = udt_fields(definition.fields.iter());
            let fields = names.into_iter().zip(values).zip(&definition.fields);
            let fields = fields.map(|((name, value), (_, ty))| (name, of_value(ty, value)));
            Avro::Record(fields.collect())
        }
        // `Value::decode` gives no others.
        (
            Value::List(_)
            | Value::Set(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Tuple(_)
            | Value::Udt(_),
            _,
        ) => {
            return none();
        }
    })
}
