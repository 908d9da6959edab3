//! Assembles the parts of a literal to one serialized value.

use bytes::Bytes;
use ilion_types::{CqlType, encode_list, encode_map, encode_tuple, encode_vector};

use crate::{Error, Value};

/// The serialized value of evaluated parts.
pub(super) fn assemble(ty: &CqlType, values: Vec<Value>) -> Result<Value, Error> {
    let bytes = match ty {
        CqlType::Tuple(_) | CqlType::Udt { .. } => assemble_components(ty, values)?,
        CqlType::Vector { element, .. } => {
            let parts = present(values, "vectors")?;
            encode_vector(parts.iter().map(Bytes::as_ref), element)
        }
        _ => {
            if values.contains(&Value::Unset) {
                return Ok(Value::Unset);
            }
            assemble_collection(ty, present(values, "collections")?)
        }
    };
    Ok(Value::Bytes(bytes.into()))
}

fn present(values: Vec<Value>, inside: &str) -> Result<Vec<Bytes>, Error> {
    let each = |value| match value {
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Err(Error::Invalid(format!("null is not supported inside {inside}"))),
        Value::Unset => Err(Error::Invalid(format!(
            "unset value is not supported inside {inside}"
        ))),
    };
    values.into_iter().map(each).collect()
}

/// Serializes a collection. Of equal elements or keys, the last one stays.
fn assemble_collection(ty: &CqlType, mut parts: Vec<Bytes>) -> Vec<u8> {
    match ty {
        CqlType::Set { element, .. } => {
            parts.sort_by(|a, b| element.compare(a, b));
            parts.dedup_by(|a, b| element.compare(a, b).is_eq());
        }
        CqlType::Map { key, .. } => {
            let mut entries: Vec<_> = parts
                .chunks_exact(2)
                .rev()
                .map(|entry| (entry[0].clone(), entry[1].clone()))
                .collect();
            entries.sort_by(|a, b| key.compare(&a.0, &b.0));
            entries.dedup_by(|later, kept| key.compare(&later.0, &kept.0).is_eq());
            return encode_map(entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref())));
        }
        _ => {}
    }
    encode_list(parts.iter().map(Bytes::as_ref))
}

fn assemble_components(ty: &CqlType, values: Vec<Value>) -> Result<Vec<u8>, Error> {
    let mut parts = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        parts.push(match value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Null => None,
            Value::Unset => return Err(unset_component(ty, index)),
        });
    }
    Ok(encode_tuple(parts.iter().map(Option::as_deref)))
}

fn unset_component(ty: &CqlType, index: usize) -> Error {
    Error::Invalid(match ty {
        CqlType::Udt { definition, .. } => {
            let field = definition.fields.get(index).map_or("", |(name, _)| name);
            let name = &definition.name;
            format!("Invalid unset value for field '{field}' of user defined type {name}")
        }
        _ => format!("Invalid unset value for tuple field number {index}"),
    })
}
