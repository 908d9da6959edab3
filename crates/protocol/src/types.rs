//! Encoded types.
//!
//! ```text
//! option := id: u16, then
//!     0x00 custom: class: string        0x20 list, 0x22 set: option       0x21 map: option, option
//!     0x30 user type: keyspace, name: string, n: u16, n x (field: string, option)
//!     0x31 tuple: n: u16, n x option    all others: nothing
//! ```
//!
//! A type that the version does not have is encoded as a custom type with its class, and a vector always is.
//! Not here: class strings themselves (`ilion-types`).

use std::sync::Arc;

use ilion_codec::Reader;
use ilion_types::{CqlType, UserType};

use crate::error::Error;
use crate::notation::{put_count, put_string, put_u16};
use crate::version::Version;

const CUSTOM: u16 = 0x00;
const LIST: u16 = 0x20;
const MAP: u16 = 0x21;
const SET: u16 = 0x22;
const UDT: u16 = 0x30;
const TUPLE: u16 = 0x31;

/// Deepest nesting of types, the same as in CQL.
const DEPTH_MAX: usize = 32;

/// The id of a type without parameters; `None` if the type has parameters, or if the version does not have the type.
fn simple_id(version: Version, cql_type: &CqlType) -> Option<u16> {
    let (id, since) = match cql_type {
        CqlType::Ascii => (0x01, Version::V3),
        CqlType::BigInt => (0x02, Version::V3),
        CqlType::Blob => (0x03, Version::V3),
        CqlType::Boolean => (0x04, Version::V3),
        CqlType::Counter => (0x05, Version::V3),
        CqlType::Decimal => (0x06, Version::V3),
        CqlType::Double => (0x07, Version::V3),
        CqlType::Float => (0x08, Version::V3),
        CqlType::Int => (0x09, Version::V3),
        CqlType::Timestamp => (0x0b, Version::V3),
        CqlType::Uuid => (0x0c, Version::V3),
        CqlType::Text => (0x0d, Version::V3),
        CqlType::Varint => (0x0e, Version::V3),
        CqlType::TimeUuid => (0x0f, Version::V3),
        CqlType::Inet => (0x10, Version::V3),
        CqlType::Date => (0x11, Version::V4),
        CqlType::Time => (0x12, Version::V4),
        CqlType::SmallInt => (0x13, Version::V4),
        CqlType::TinyInt => (0x14, Version::V4),
        CqlType::Duration => (0x15, Version::V5),
        _ => return None,
    };
    (version >= since).then_some(id)
}

/// Appends a type.
pub fn encode_type(out: &mut Vec<u8>, version: Version, cql_type: &CqlType) {
    if let Some(id) = simple_id(version, cql_type) {
        return put_u16(out, id);
    }
    match cql_type {
        CqlType::List { element, .. } => {
            put_u16(out, LIST);
            encode_type(out, version, element);
        }
        CqlType::Set { element, .. } => {
            put_u16(out, SET);
            encode_type(out, version, element);
        }
        CqlType::Map { key, value, .. } => {
            put_u16(out, MAP);
            encode_type(out, version, key);
            encode_type(out, version, value);
        }
        CqlType::Tuple(types) => {
            put_u16(out, TUPLE);
            let count = put_count(out, types.len());
            for component in &types[..count] {
                encode_type(out, version, component);
            }
        }
        CqlType::Udt { definition, .. } => encode_user_type(out, version, definition),
        other => {
            put_u16(out, CUSTOM);
            put_string(out, &other.to_class());
        }
    }
}

fn encode_user_type(out: &mut Vec<u8>, version: Version, definition: &UserType) {
    put_u16(out, UDT);
    put_string(out, &definition.keyspace);
    put_string(out, &definition.name);
    let count = put_count(out, definition.fields.len());
    for (name, cql_type) in &definition.fields[..count] {
        put_string(out, name);
        encode_type(out, version, cql_type);
    }
}

/// Reads a type. The encoding has no `frozen`: the outermost type is returned unfrozen, and all types inside it frozen.
///
/// # Errors
/// If the type breaks the format, is unknown, or is nested too deeply. Types of newer versions are accepted, too.
pub fn decode_type(input: &mut Reader<'_>) -> Result<CqlType, Error> {
    decode_nested(input, false, DEPTH_MAX)
}

fn decode_nested(input: &mut Reader<'_>, frozen: bool, depth: usize) -> Result<CqlType, Error> {
    let at = input.offset();
    let depth = depth
        .checked_sub(1)
        .ok_or_else(|| Error::refused(format!("types are nested deeper than {DEPTH_MAX}")))?;
    let mut inner = |input: &mut Reader<'_>| decode_nested(input, true, depth);
    Ok(match input.u16()? {
        CUSTOM => custom_type(input.string16()?),
        LIST => CqlType::List {
            element: Arc::new(inner(input)?),
            frozen,
        },
        SET => CqlType::Set {
            element: Arc::new(inner(input)?),
            frozen,
        },
        MAP => CqlType::Map {
            key: Arc::new(inner(input)?),
            value: Arc::new(inner(input)?),
            frozen,
        },
        TUPLE => {
            let count = usize::from(input.u16()?);
            let mut types = Vec::with_capacity(input.capacity_for(count, 2));
            for _ in 0..count {
                types.push(inner(input)?);
            }
            CqlType::Tuple(types.into())
        }
        UDT => CqlType::Udt {
            definition: Arc::new(decode_user_type(input, &mut inner)?),
            frozen,
        },
        id => simple_type(id).ok_or(Error::Malformed {
            offset: at,
            expected: "the id of a type",
        })?,
    })
}

/// The type of a class; custom if the class is unknown.
fn custom_type(class: &str) -> CqlType {
    match CqlType::from_class(class) {
        Ok((cql_type, _)) => cql_type,
        Err(_) => CqlType::Custom(class.into()),
    }
}

fn simple_type(id: u16) -> Option<CqlType> {
    Some(match id {
        0x01 => CqlType::Ascii,
        0x02 => CqlType::BigInt,
        0x03 => CqlType::Blob,
        0x04 => CqlType::Boolean,
        0x05 => CqlType::Counter,
        0x06 => CqlType::Decimal,
        0x07 => CqlType::Double,
        0x08 => CqlType::Float,
        0x09 => CqlType::Int,
        0x0b => CqlType::Timestamp,
        0x0c => CqlType::Uuid,
        0x0d => CqlType::Text,
        0x0e => CqlType::Varint,
        0x0f => CqlType::TimeUuid,
        0x10 => CqlType::Inet,
        0x11 => CqlType::Date,
        0x12 => CqlType::Time,
        0x13 => CqlType::SmallInt,
        0x14 => CqlType::TinyInt,
        0x15 => CqlType::Duration,
        _ => return None,
    })
}

fn decode_user_type(
    input: &mut Reader<'_>,
    inner: &mut impl FnMut(&mut Reader<'_>) -> Result<CqlType, Error>,
) -> Result<UserType, Error> {
    let keyspace = input.string16()?.to_owned();
    let name = input.string16()?.to_owned();
    let count = usize::from(input.u16()?);
    let mut fields = Vec::with_capacity(input.capacity_for(count, 4));
    for _ in 0..count {
        let field = input.string16()?.to_owned();
        fields.push((field, inner(input)?));
    }
    Ok(UserType {
        keyspace,
        name,
        fields,
    })
}
