//! The order of cell paths inside a complex column.

use std::cmp::Ordering;

use ilion_types::CqlType;

/// Orders two cell paths of a column of type `ty`: list paths by the time of the UUID, paths of sets and maps by element or
/// key, paths of user types by field index.
#[inline]
pub fn compare_paths(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    match ty {
        CqlType::List { .. } => CqlType::TimeUuid.compare(a, b),
        CqlType::Set { element, .. } => element.compare(a, b),
        CqlType::Map { key, .. } => key.compare(a, b),
        _ => a.cmp(b),
    }
}

/// The type of the value at a path of a column of type `ty`: for a list its element type, for a map its value type, for a user type
/// the type of the field, `None` for a set. A type that is not complex is returned itself.
pub fn value_type<'t>(ty: &'t CqlType, path: &[u8]) -> Option<&'t CqlType> {
    match ty {
        CqlType::List { element, .. } => Some(element),
        CqlType::Set { .. } => None,
        CqlType::Map { value, .. } => Some(value),
        CqlType::Udt { definition, .. } => {
            let index = u16::from_be_bytes(*path.first_chunk::<2>()?);
            definition.fields.get(usize::from(index)).map(|field| &field.1)
        }
        other => Some(other),
    }
}

/// The path of field `index` of a user type.
pub fn field_path(index: u16) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(&index.to_be_bytes())
}
