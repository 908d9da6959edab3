//! Which types a receiver accepts (`AssignmentTestable`).

use ilion_types::CqlType;

/// How well a term fits a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assignment {
    /// The term does not fit.
    No,
    /// The term can be read as the receiver's type.
    Weak,
    /// The term has the receiver's type.
    Exact,
}

impl Assignment {
    /// The worst fit of several terms.
    pub(crate) fn all(each: impl IntoIterator<Item = Self>) -> Self {
        // A loop takes less stack than iterator adapters, and literals nest deeply.
        let mut worst = Self::Exact;
        for one in each {
            worst = worst.min(one);
        }
        worst
    }
}

/// How well a value of type `from` fits a receiver of type `to`.
pub(crate) fn test_type_assignment(to: &CqlType, from: &CqlType) -> Assignment {
    if to.freeze() == from.freeze() {
        Assignment::Exact
    } else if takes_values_of(to, from) {
        Assignment::Weak
    } else {
        Assignment::No
    }
}

/// True if the bytes of every value of `from` are a value of `to` with the same meaning
/// (`AbstractType.isValueCompatibleWith`).
pub(crate) fn takes_values_of(to: &CqlType, from: &CqlType) -> bool {
    use CqlType as T;
    match (to, from) {
        (T::Blob, _) => true,
        (T::Text, T::Ascii)
        | (T::Varint, T::Int | T::BigInt | T::Timestamp)
        | (T::BigInt, T::Timestamp)
        | (T::Timestamp | T::Time, T::BigInt)
        | (T::Date, T::Int)
        | (T::Uuid, T::TimeUuid) => true,
        (T::List { element: to, .. }, T::List { element: from, .. })
        | (T::Set { element: to, .. }, T::Set { element: from, .. }) => takes_values_of(to, from),
        (
            T::Map { key, value, .. },
            T::Map {
                key: from_key,
                value: from_value,
                ..
            },
        ) => takes_values_of(key, from_key) && takes_values_of(value, from_value),
        (T::Tuple(to), T::Tuple(from)) => {
            to.len() >= from.len()
                && to
                    .iter()
                    .zip(from.iter())
                    .all(|(to, from)| takes_values_of(to, from))
        }
        (
            T::Vector { element, dimension },
            T::Vector {
                element: from,
                dimension: from_dimension,
            },
        ) => dimension == from_dimension && takes_values_of(element, from),
        _ => to.freeze() == from.freeze(),
    }
}
