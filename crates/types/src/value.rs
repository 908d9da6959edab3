//! Decoded values.
//!
//! Hot paths use serialized bytes (`compare`, `validate`, `elements`); decoded values are for functions, tests, tools and callers of
//! the library. Invariant: decoding an encoded value returns the same value, except for the order of a set or map.

use std::net::IpAddr;

use num_bigint::BigInt;
use uuid::Uuid;

use crate::elements::{collection_elements, map_entries, tuple_components, vector_elements};
use crate::{CqlType, Decimal, Duration, Error, encode_list, encode_map, encode_tuple, encode_vector};

/// A CQL value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A missing column, or null inside a tuple or user type.
    Null,
    /// An empty value of a type whose values usually have bytes.
    Empty,
    /// `ascii` or `text`.
    Text(String),
    /// `blob`, or a custom type.
    Blob(Vec<u8>),
    /// `boolean`.
    Boolean(bool),
    /// `tinyint`.
    TinyInt(i8),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`.
    BigInt(i64),
    /// `counter`, as clients see it.
    Counter(i64),
    /// `varint`.
    Varint(BigInt),
    /// `decimal`.
    Decimal(Decimal),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `date`: days, 2^31 is 1970-01-01.
    Date(u32),
    /// `time`: nanoseconds of the day.
    Time(i64),
    /// `timestamp`: milliseconds since 1970.
    Timestamp(i64),
    /// `uuid`.
    Uuid(Uuid),
    /// `timeuuid`.
    TimeUuid(Uuid),
    /// `inet`.
    Inet(IpAddr),
    /// `duration`.
    Duration(Duration),
    /// `list`.
    List(Vec<Value>),
    /// `set`, in the order of its elements.
    Set(Vec<Value>),
    /// `map`, in the order of its keys.
    Map(Vec<(Value, Value)>),
    /// `tuple`; missing trailing components are null.
    Tuple(Vec<Value>),
    /// A user type: its fields in declaration order; missing trailing fields are null.
    Udt(Vec<Value>),
    /// `vector`.
    Vector(Vec<Value>),
}

/// Converts the bytes to an array. Requires: `validate` has checked the length.
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Error> {
    bytes
        .try_into()
        .map_err(|_| Error::bytes(format!("Expected {N} bytes ({})", bytes.len())))
}

impl Value {
    /// Decodes a serialized value.
    ///
    /// # Errors
    /// The bytes are not a value of `ty`.
    pub fn decode(ty: &CqlType, bytes: &[u8]) -> Result<Value, Error> {
        ty.validate(bytes)?;
        let sized_by_content = matches!(
            ty,
            CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Custom(_)
        );
        if bytes.is_empty() && !sized_by_content {
            return Ok(match ty {
                CqlType::Tuple(types) => Value::Tuple(vec![Value::Null; types.len()]),
                CqlType::Udt { definition, .. } => Value::Udt(vec![Value::Null; definition.fields.len()]),
                _ => Value::Empty,
            });
        }
        Self::decode_scalar(ty, bytes)?.map_or_else(|| Self::decode_compound(ty, bytes), Ok)
    }

    fn decode_scalar(ty: &CqlType, bytes: &[u8]) -> Result<Option<Value>, Error> {
        Ok(Some(match ty {
            CqlType::Ascii | CqlType::Text => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            CqlType::Blob | CqlType::Custom(_) => Value::Blob(bytes.to_vec()),
            CqlType::Boolean => Value::Boolean(bytes[0] != 0),
            CqlType::TinyInt => Value::TinyInt(i8::from_be_bytes(array(bytes)?)),
            CqlType::SmallInt => Value::SmallInt(i16::from_be_bytes(array(bytes)?)),
            CqlType::Int => Value::Int(i32::from_be_bytes(array(bytes)?)),
            CqlType::BigInt => Value::BigInt(i64::from_be_bytes(array(bytes)?)),
            CqlType::Counter => Value::Counter(i64::from_be_bytes(array(bytes)?)),
            CqlType::Varint => Value::Varint(BigInt::from_signed_bytes_be(bytes)),
            CqlType::Decimal => Value::Decimal(Decimal::decode(bytes)?),
            CqlType::Float => Value::Float(f32::from_be_bytes(array(bytes)?)),
            CqlType::Double => Value::Double(f64::from_be_bytes(array(bytes)?)),
            CqlType::Date => Value::Date(u32::from_be_bytes(array(bytes)?)),
            CqlType::Time => Value::Time(i64::from_be_bytes(array(bytes)?)),
            CqlType::Timestamp => Value::Timestamp(i64::from_be_bytes(array(bytes)?)),
            CqlType::Uuid => Value::Uuid(Uuid::from_bytes(array(bytes)?)),
            CqlType::TimeUuid => Value::TimeUuid(Uuid::from_bytes(array(bytes)?)),
            CqlType::Inet => Value::Inet(decode_inet(bytes)?),
            CqlType::Duration => Value::Duration(Duration::decode(bytes)?),
            CqlType::Empty => Value::Empty,
            _ => return Ok(None),
        }))
    }

    fn decode_compound(ty: &CqlType, bytes: &[u8]) -> Result<Value, Error> {
        match ty {
            CqlType::List { element, .. } => {
                decode_all(collection_elements(bytes)?, element).map(Value::List)
            }
            CqlType::Set { element, .. } => decode_all(collection_elements(bytes)?, element).map(Value::Set),
            CqlType::Map { key, value, .. } => {
                let decode = |entry: Result<(&[u8], &[u8]), Error>| {
                    let (key_bytes, value_bytes) = entry?;
                    Ok((Value::decode(key, key_bytes)?, Value::decode(value, value_bytes)?))
                };
                map_entries(bytes)?
                    .map(decode)
                    .collect::<Result<_, _>>()
                    .map(Value::Map)
            }
            CqlType::Tuple(types) => decode_components(types.iter(), bytes).map(Value::Tuple),
            CqlType::Udt { definition, .. } => {
                decode_components(definition.fields.iter().map(|(_, ty)| ty), bytes).map(Value::Udt)
            }
            CqlType::Vector { element, dimension } => {
                decode_all(vector_elements(bytes, element, *dimension), element).map(Value::Vector)
            }
            _ => Err(Error::bytes(format!("no value of type {ty}"))),
        }
    }

    /// Appends the serialized form. Sets and maps are sorted; of equal elements or keys, the last one is kept.
    ///
    /// # Errors
    /// The value is null, or not of this type.
    pub fn encode(&self, ty: &CqlType, out: &mut Vec<u8>) -> Result<(), Error> {
        match (self, ty) {
            (Value::Empty, _) => {}
            (Value::Text(text), CqlType::Ascii | CqlType::Text) => out.extend_from_slice(text.as_bytes()),
            (Value::Blob(bytes), CqlType::Blob | CqlType::Custom(_)) => out.extend_from_slice(bytes),
            (Value::Boolean(value), CqlType::Boolean) => out.push(u8::from(*value)),
            (Value::TinyInt(value), CqlType::TinyInt) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::SmallInt(value), CqlType::SmallInt) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::Int(value), CqlType::Int) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::BigInt(value), CqlType::BigInt)
            | (Value::Counter(value), CqlType::Counter)
            | (Value::Time(value), CqlType::Time)
            | (Value::Timestamp(value), CqlType::Timestamp) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::Varint(value), CqlType::Varint) => out.extend_from_slice(&value.to_signed_bytes_be()),
            (Value::Decimal(value), CqlType::Decimal) => value.encode(out),
            (Value::Float(value), CqlType::Float) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::Double(value), CqlType::Double) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::Date(value), CqlType::Date) => out.extend_from_slice(&value.to_be_bytes()),
            (Value::Uuid(uuid), CqlType::Uuid) | (Value::TimeUuid(uuid), CqlType::TimeUuid) => {
                out.extend_from_slice(uuid.as_bytes());
            }
            (Value::Inet(address), CqlType::Inet) => encode_inet(*address, out),
            (Value::Duration(value), CqlType::Duration) => value.encode(out),
            _ => return self.encode_compound(ty, out),
        }
        Ok(())
    }

    fn encode_compound(&self, ty: &CqlType, out: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = match (self, ty) {
            (Value::List(values), CqlType::List { element, .. }) => {
                encode_list(slices(&encode_all(values, element)?))
            }
            (Value::Set(values), CqlType::Set { element, .. }) => {
                let mut elements = encode_all(values, element)?;
                elements.sort_by(|a, b| element.compare(a, b));
                elements.dedup_by(|a, b| element.compare(a, b).is_eq());
                encode_list(slices(&elements))
            }
            (Value::Map(entries), CqlType::Map { key, value, .. }) => encode_entries(entries, key, value)?,
            (Value::Tuple(values), CqlType::Tuple(types)) => encode_components(values, types.iter(), ty)?,
            (Value::Udt(values), CqlType::Udt { definition, .. }) => {
                encode_components(values, definition.fields.iter().map(|(_, ty)| ty), ty)?
            }
            (Value::Vector(values), CqlType::Vector { element, dimension })
                if values.len() == *dimension as usize =>
            {
                encode_vector(slices(&encode_all(values, element)?), element)
            }
            _ => return Err(Error::bytes(format!("{self:?} is not a value of type {ty}"))),
        };
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// The serialized form.
    ///
    /// # Errors
    /// As [`Value::encode`].
    pub fn to_bytes(&self, ty: &CqlType) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.encode(ty, &mut out)?;
        Ok(out)
    }
}

fn decode_all<'a>(
    parts: impl Iterator<Item = Result<&'a [u8], Error>>,
    element: &CqlType,
) -> Result<Vec<Value>, Error> {
    parts.map(|part| Value::decode(element, part?)).collect()
}

fn decode_components<'t>(
    types: impl Iterator<Item = &'t CqlType>,
    bytes: &[u8],
) -> Result<Vec<Value>, Error> {
    let mut components = tuple_components(bytes);
    types
        .map(|ty| match components.next().transpose()?.flatten() {
            Some(component) => Value::decode(ty, component),
            None => Ok(Value::Null),
        })
        .collect()
}

fn encode_all(values: &[Value], element: &CqlType) -> Result<Vec<Vec<u8>>, Error> {
    values.iter().map(|value| value.to_bytes(element)).collect()
}

fn slices(parts: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    parts.iter().map(Vec::as_slice)
}

fn encode_entries(entries: &[(Value, Value)], key: &CqlType, value: &CqlType) -> Result<Vec<u8>, Error> {
    let mut parts = Vec::with_capacity(entries.len());
    // In reverse, so that the stable sort puts the last of equal keys first.
    for (k, v) in entries.iter().rev() {
        parts.push((k.to_bytes(key)?, v.to_bytes(value)?));
    }
    parts.sort_by(|a, b| key.compare(&a.0, &b.0));
    parts.dedup_by(|later, kept| key.compare(&later.0, &kept.0).is_eq());
    Ok(encode_map(
        parts.iter().map(|(k, v)| (k.as_slice(), v.as_slice())),
    ))
}

fn encode_components<'t>(
    values: &[Value],
    types: impl ExactSizeIterator<Item = &'t CqlType>,
    ty: &CqlType,
) -> Result<Vec<u8>, Error> {
    if values.len() > types.len() {
        return Err(Error::bytes(format!("too many components for {ty}")));
    }
    let mut parts = Vec::with_capacity(values.len());
    for (value, component) in values.iter().zip(types) {
        parts.push(match value {
            Value::Null => None,
            value => Some(value.to_bytes(component)?),
        });
    }
    Ok(encode_tuple(parts.iter().map(Option::as_deref)))
}

/// The address of 4 or 16 bytes.
pub(crate) fn decode_inet(bytes: &[u8]) -> Result<IpAddr, Error> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ok(v4.into());
    }
    Ok(array::<16>(bytes)?.into())
}

/// Appends the 4 or 16 bytes of an address.
pub(crate) fn encode_inet(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
    }
}
