//! Which types can read values that were written as another type, for columns that are dropped and added again.
//!
//! Compat: `AbstractType.isSerializationCompatibleWith` and `expandUserTypes` of Cassandra 5.0.

use std::sync::Arc;

use ilion_types::CqlType;

/// The type with its user types replaced by tuples, as in `system_schema.dropped_columns`.
pub(crate) fn expand_user_types(ty: &CqlType) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(expand_user_types(ty));
    match ty {
        CqlType::List { element, frozen } => CqlType::List {
            element: inner(element),
            frozen: *frozen,
        },
        CqlType::Set { element, frozen } => CqlType::Set {
            element: inner(element),
            frozen: *frozen,
        },
        CqlType::Map { key, value, frozen } => CqlType::Map {
            key: inner(key),
            value: inner(value),
            frozen: *frozen,
        },
        CqlType::Vector { element, dimension } => CqlType::Vector {
            element: inner(element),
            dimension: *dimension,
        },
        CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(expand_user_types).collect()),
        CqlType::Udt { definition, .. } => CqlType::Tuple(
            definition
                .fields
                .iter()
                .map(|(_, ty)| expand_user_types(ty).freeze())
                .collect(),
        ),
        scalar => scalar.clone(),
    }
}

/// True if cells written as `old` can be read as `new`.
pub fn is_serialization_compatible(new: &CqlType, old: &CqlType) -> bool {
    new.is_multi_cell() == old.is_multi_cell()
        && new.fixed_len() == old.fixed_len()
        && is_value_compatible(&expand_user_types(new), &expand_user_types(old))
}

fn is_value_compatible(new: &CqlType, old: &CqlType) -> bool {
    if new == old {
        return true;
    }
    match (new, old) {
        (CqlType::Blob, old) => !old.is_multi_cell() && *old != CqlType::Counter,
        (CqlType::Text, CqlType::Ascii)
        | (CqlType::Varint, CqlType::Int | CqlType::BigInt | CqlType::Timestamp)
        | (CqlType::BigInt, CqlType::Timestamp)
        | (CqlType::Timestamp, CqlType::BigInt)
        | (CqlType::Uuid, CqlType::TimeUuid) => true,
        (CqlType::List { element: a, .. }, CqlType::List { element: b, .. })
        | (CqlType::Set { element: a, .. }, CqlType::Set { element: b, .. }) => is_value_compatible(a, b),
        (CqlType::Map { key: a, value: c, .. }, CqlType::Map { key: b, value: d, .. }) => {
            a == b && is_value_compatible(c, d)
        }
        // The new tuple may have more components at its end.
        (CqlType::Tuple(a), CqlType::Tuple(b)) => {
            a.len() >= b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_value_compatible(a, b))
        }
        _ => false,
    }
}
