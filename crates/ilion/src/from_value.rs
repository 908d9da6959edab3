//! Columns as Rust values.

use std::net::IpAddr;

use ilion_types::{Uuid, Value};

/// A Rust type as which columns can be read.
pub trait FromValue: Sized {
    /// Converts the value of a column.
    ///
    /// # Errors
    /// The value has another type; it is returned.
    fn from_value(value: Value) -> Result<Self, Value>;
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self, Value> {
        Ok(value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! from_values {
    ($($rust:ty => $pattern:pat => $make:expr),+ $(,)?) => {$(
        impl FromValue for $rust {
            fn from_value(value: Value) -> Result<Self, Value> {
                match value {
                    $pattern => Ok($make),
                    other => Err(other),
                }
            }
        }
    )+};
}

from_values!(
    String => Value::Text(text) => text,
    Vec<u8> => Value::Blob(bytes) => bytes,
    bool => Value::Boolean(value) => value,
    i8 => Value::TinyInt(value) => value,
    i16 => Value::SmallInt(value) => value,
    i32 => Value::Int(value) => value,
    i64 => Value::BigInt(value) | Value::Counter(value) | Value::Timestamp(value) | Value::Time(value) => value,
    f32 => Value::Float(value) => value,
    f64 => Value::Double(value) => value,
    Uuid => Value::Uuid(value) | Value::TimeUuid(value) => value,
    IpAddr => Value::Inet(value) => value,
    Vec<Value> => Value::List(values) | Value::Set(values) | Value::Tuple(values) | Value::Vector(values) => values,
);
