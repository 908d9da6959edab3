//! Rust values as bind values.

use std::net::IpAddr;

use ilion_query::{ColumnSpec, Values};
use ilion_types::{CqlType, Uuid, Value};
use num_bigint::BigInt;

use crate::Error;

/// A Rust value for one bind marker. An integer fits every integer type that can hold it.
pub trait ToValue {
    /// The value for a marker of this type.
    ///
    /// # Errors
    /// The value does not fit; the text is the reason.
    fn to_value(&self, ty: &CqlType) -> Result<Value, String>;
}

/// Rust values for all bind markers of a statement, by position: `()`, tuples, slices and vectors.
pub trait Arguments {
    /// The serialized values.
    ///
    /// # Errors
    /// A value does not fit its marker, or their number is wrong.
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error>;

    /// Number of values.
    fn count(&self) -> usize;
}

fn encode(index: usize, marker: &ColumnSpec, argument: &dyn ToValue) -> Result<ilion_query::Value, Error> {
    let refuse = |problem: String| Error::Argument {
        index,
        name: marker.name.to_string(),
        ty: marker.ty.to_string(),
        problem,
    };
    match argument.to_value(&marker.ty).map_err(refuse)? {
        Value::Null => Ok(ilion_query::Value::Null),
        value => {
            let bytes = value
                .to_bytes(&marker.ty)
                .map_err(|error| refuse(error.to_string()))?;
            Ok(ilion_query::Value::Bytes(bytes.into()))
        }
    }
}

fn encode_all(arguments: &[&dyn ToValue], markers: &[ColumnSpec]) -> Result<Values, Error> {
    if arguments.len() != markers.len() {
        return Err(ilion_query::Error::Invalid(format!(
            "the statement has {} bind markers, {} values were given",
            markers.len(),
            arguments.len()
        ))
        .into());
    }
    let pairs = arguments.iter().zip(markers).enumerate();
    let values: Result<Vec<_>, Error> = pairs
        .map(|(index, (argument, marker))| encode(index, marker, *argument))
        .collect();
    Ok(Values::Positional(values?))
}

impl Arguments for () {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        encode_all(&[], markers)
    }

    fn count(&self) -> usize {
        0
    }
}

impl<T: ToValue> Arguments for [T] {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        let arguments: Vec<&dyn ToValue> = self.iter().map(|argument| argument as &dyn ToValue).collect();
        encode_all(&arguments, markers)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: ToValue> Arguments for Vec<T> {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        self.as_slice().to_values(markers)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: ToValue, const N: usize> Arguments for [T; N] {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        self.as_slice().to_values(markers)
    }

    fn count(&self) -> usize {
        N
    }
}

impl<A: Arguments + ?Sized> Arguments for &A {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        (**self).to_values(markers)
    }

    fn count(&self) -> usize {
        (**self).count()
    }
}

macro_rules! tuple_arguments {
    ($($name:ident $index:tt),+) => {
        impl<$($name: ToValue),+> Arguments for ($($name,)+) {
            fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
                encode_all(&[$(&self.$index as &dyn ToValue),+], markers)
            }

            fn count(&self) -> usize {
                [$($index),+].len()
            }
        }
    };
}

tuple_arguments!(A 0);
tuple_arguments!(A 0, B 1);
tuple_arguments!(A 0, B 1, C 2);
tuple_arguments!(A 0, B 1, C 2, D 3);
tuple_arguments!(A 0, B 1, C 2, D 3, E 4);
tuple_arguments!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple_arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

impl ToValue for Value {
    fn to_value(&self, _: &CqlType) -> Result<Value, String> {
        Ok(self.clone())
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        self.as_ref().map_or(Ok(Value::Null), |value| value.to_value(ty))
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        (**self).to_value(ty)
    }
}

fn integer(value: i64, ty: &CqlType) -> Result<Value, String> {
    let too_large = || format!("{value} is too large for it");
    Ok(match ty {
        CqlType::TinyInt => Value::TinyInt(value.try_into().map_err(|_| too_large())?),
        CqlType::SmallInt => Value::SmallInt(value.try_into().map_err(|_| too_large())?),
        CqlType::Int => Value::Int(value.try_into().map_err(|_| too_large())?),
        CqlType::BigInt => Value::BigInt(value),
        CqlType::Counter => Value::Counter(value),
        CqlType::Timestamp => Value::Timestamp(value),
        CqlType::Varint => Value::Varint(BigInt::from(value)),
        _ => return Err(format!("the integer {value} is no value of it")),
    })
}

macro_rules! integer_values {
    ($($integer:ty),+) => {$(
        impl ToValue for $integer {
            fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
                integer(i64::from(*self), ty)
            }
        }
    )+};
}

integer_values!(i8, i16, i32, i64, u16, u32);

macro_rules! plain_values {
    ($($rust:ty => |$value:ident| $make:expr),+ $(,)?) => {$(
        impl ToValue for $rust {
            fn to_value(&self, _: &CqlType) -> Result<Value, String> {
                let $value = self;
                Ok($make)
            }
        }
    )+};
}

plain_values!(
    str => |text| Value::Text(text.to_owned()),
    String => |text| Value::Text(text.clone()),
    bool => |value| Value::Boolean(*value),
    f32 => |value| Value::Float(*value),
    [u8] => |bytes| Value::Blob(bytes.to_vec()),
    Vec<u8> => |bytes| Value::Blob(bytes.clone()),
    IpAddr => |address| Value::Inet(*address),
);

impl ToValue for f64 {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        #[expect(clippy::cast_possible_truncation, reason = "the column holds no more digits")]
        Ok(match ty {
            CqlType::Float => Value::Float(*self as f32),
            _ => Value::Double(*self),
        })
    }
}

impl ToValue for Uuid {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        Ok(match ty {
            CqlType::TimeUuid => Value::TimeUuid(*self),
            _ => Value::Uuid(*self),
        })
    }
}
