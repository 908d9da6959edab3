//! The order of values: for clusterings, sets and maps.
//!
//! Invariant: a total order on any bytes, valid or not, without panics. An empty value sorts before all others. Short and
//! malformed values are ordered by their bytes, or by the parts that can be decoded. Not here: clustering direction and null,
//! which the caller handles.

use std::cmp::Ordering;

use crate::custom::KnownClass;
use crate::elements::{collection_elements, map_entries, tuple_components, vector_elements};
use crate::time_uuid::time_first;
use crate::{CqlType, Error, decimal, varint};

impl CqlType {
    /// Cassandra's order of two serialized values of this type (`AbstractType.compare`).
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Int => fixed(a, b, i32::from_be_bytes),
            Self::BigInt | Self::Timestamp => fixed(a, b, i64::from_be_bytes),
            Self::Ascii | Self::Text | Self::Blob | Self::Date | Self::Time | Self::Inet => a.cmp(b),
            Self::TimeUuid => fixed(a, b, time_uuid_key),
            _ => self.compare_others(a, b),
        }
    }

    fn compare_others(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::SmallInt => fixed(a, b, i16::from_be_bytes),
            Self::TinyInt => fixed(a, b, i8::from_be_bytes),
            Self::Float => fixed(a, b, float_key),
            Self::Double => fixed(a, b, double_key),
            Self::Uuid => fixed(a, b, uuid_key),
            Self::Boolean => boolean_key(a).cmp(&boolean_key(b)),
            Self::Varint => varint::compare(a, b),
            Self::Decimal => decimal::compare(a, b),
            Self::Empty => Ordering::Equal,
            _ if a.is_empty() || b.is_empty() => b.is_empty().cmp(&a.is_empty()),
            Self::List { element, .. } | Self::Set { element, .. } => {
                let left = collection_elements(a).into_iter().flatten();
                let right = collection_elements(b).into_iter().flatten();
                compare_parts(left, right, &[element, element])
            }
            Self::Map { key, value, .. } => {
                let left = map_entries(a).into_iter().flat_map(|entries| entries.0);
                let right = map_entries(b).into_iter().flat_map(|entries| entries.0);
                compare_parts(left, right, &[key, value])
            }
            Self::Tuple(types) => compare_components(types.iter(), a, b),
            Self::Udt { definition, .. } => compare_components(definition.fields.iter().map(|f| &f.1), a, b),
            Self::Vector { element, dimension } => {
                let left = vector_elements(a, element, *dimension);
                let right = vector_elements(b, element, *dimension);
                compare_parts(left, right, &[element, element])
            }
            Self::Custom(class) => match KnownClass::of(class) {
                Some(known) => known.compare(a, b),
                None => a.cmp(b),
            },
            _ => a.cmp(b),
        }
    }
}

/// Compares values of `N` bytes by `key`; shorter values sort first, by their bytes.
#[inline(always)]
fn fixed<const N: usize, K: Ord>(a: &[u8], b: &[u8], key: impl Fn([u8; N]) -> K) -> Ordering {
    match (a.first_chunk::<N>(), b.first_chunk::<N>()) {
        (Some(a), Some(b)) => key(*a).cmp(&key(*b)),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => a.cmp(b),
    }
}

fn boolean_key(bytes: &[u8]) -> Option<bool> {
    bytes.first().map(|byte| *byte != 0)
}

/// A key in the order of Java's `Float.compare`: -0.0 is below 0.0; all NaNs are equal and above infinity.
fn float_key(bytes: [u8; 4]) -> i32 {
    let value = f32::from_be_bytes(bytes);
    if value.is_nan() {
        return i32::MAX;
    }
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

fn double_key(bytes: [u8; 8]) -> i64 {
    let value = f64::from_be_bytes(bytes);
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 63) & i64::MAX)
}

/// A key in the order of timeuuids: the time, then the other bytes as signed bytes.
#[inline(always)]
fn time_uuid_key(bytes: [u8; 16]) -> (u64, u64) {
    let bits = u128::from_be_bytes(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    let lsb = bits as u64;
    (time_first(bits), lsb ^ 0x8080_8080_8080_8080)
}

/// A key in the order of UUIDs: the version; for version 1 the time; then the unsigned bytes.
fn uuid_key(bytes: [u8; 16]) -> (u8, u64, u128) {
    let bits = u128::from_be_bytes(bytes);
    let version = bytes[6] >> 4;
    let time = if version == 1 { time_first(bits) } else { 0 };
    (version, time, bits)
}

/// Compares element by element, with the two types in turn; a prefix sorts first.
fn compare_parts<'a>(
    left: impl Iterator<Item = Result<&'a [u8], Error>>,
    right: impl Iterator<Item = Result<&'a [u8], Error>>,
    types: &[&CqlType; 2],
) -> Ordering {
    let mut left = left.map_while(Result::ok);
    let mut right = right.map_while(Result::ok);
    for ty in types.iter().cycle() {
        match (left.next(), right.next()) {
            (Some(left), Some(right)) => match ty.compare(left, right) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
            (None, None) => break,
        }
    }
    Ordering::Equal
}

/// Compares component by component; null and missing trailing components sort before any value.
fn compare_components<'t>(types: impl Iterator<Item = &'t CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    let mut left = tuple_components(a).map_while(Result::ok);
    let mut right = tuple_components(b).map_while(Result::ok);
    for ty in types {
        let order = match (left.next().flatten(), right.next().flatten()) {
            (Some(left), Some(right)) => ty.compare(left, right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
