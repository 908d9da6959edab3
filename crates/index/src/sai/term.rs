//! Terms of values: bytes whose unsigned order is the order of the values.
//!
//! Equal values have equal terms. Different values may have equal terms: a term longer than [`TERM_LEN_MAX`] is cut, and values
//! that are invalid for their type all have the empty term, which sorts first. Candidates need not be exact. Terms are never
//! decoded.

use ilion_types::CqlType;

/// Longer terms are cut.
pub(super) const TERM_LEN_MAX: usize = 1024;

/// How values of a type are encoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TermType {
    /// Unchanged, since the bytes are in order: text, blobs, addresses, dates, times.
    Bytes,
    /// Signed integers of 1, 2, 4 or 8 bytes: the first bit is inverted.
    Signed(usize),
    /// Four bytes. The order of negative numbers is reversed, and all NaN values are equal.
    Float,
    /// Eight bytes, like `Float`.
    Double,
    /// One byte, zero or not.
    Boolean,
    /// The byte-comparable encoding of BTI tries.
    Comparable(CqlType),
}

impl TermType {
    pub(super) fn of(ty: &CqlType) -> Self {
        match ty {
            CqlType::Ascii
            | CqlType::Text
            | CqlType::Blob
            | CqlType::Inet
            | CqlType::Date
            | CqlType::Time
            | CqlType::Custom(_) => Self::Bytes,
            CqlType::TinyInt => Self::Signed(1),
            CqlType::SmallInt => Self::Signed(2),
            CqlType::Int => Self::Signed(4),
            CqlType::BigInt | CqlType::Timestamp => Self::Signed(8),
            CqlType::Float => Self::Float,
            CqlType::Double => Self::Double,
            CqlType::Boolean => Self::Boolean,
            other => Self::Comparable(other.clone()),
        }
    }

    /// Appends the whole term of a value.
    #[inline]
    pub(super) fn encode(&self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Bytes => out.extend_from_slice(value),
            Self::Signed(1) => encode_signed::<1>(value, out),
            Self::Signed(2) => encode_signed::<2>(value, out),
            Self::Signed(4) => encode_signed::<4>(value, out),
            Self::Signed(_) => encode_signed::<8>(value, out),
            Self::Float => {
                if let Some(bytes) = value.first_chunk() {
                    let value = f32::from_be_bytes(*bytes);
                    let bits = if value.is_nan() { f32::NAN } else { value }.to_bits();
                    let sign = (bits.cast_signed() >> 31).cast_unsigned();
                    out.extend_from_slice(&(bits ^ (sign | 1 << 31)).to_be_bytes());
                }
            }
            Self::Double => {
                if let Some(bytes) = value.first_chunk() {
                    let value = f64::from_be_bytes(*bytes);
                    let bits = if value.is_nan() { f64::NAN } else { value }.to_bits();
                    let sign = (bits.cast_signed() >> 63).cast_unsigned();
                    out.extend_from_slice(&(bits ^ (sign | 1 << 63)).to_be_bytes());
                }
            }
            Self::Boolean => out.extend(value.first().map(|byte| u8::from(*byte != 0))),
            Self::Comparable(ty) => encode_comparable(ty, value, out),
        }
    }
}

#[inline]
fn encode_signed<const N: usize>(value: &[u8], out: &mut Vec<u8>) {
    if let Some(bytes) = value.first_chunk::<N>() {
        let mut bytes = *bytes;
        bytes[0] ^= 0x80;
        out.extend_from_slice(&bytes);
    }
}

/// The byte-comparable encoding of a value, without its leading separator.
fn encode_comparable(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) {
    const SEPARATOR: u8 = 0x40;
    let start = out.len();
    ty.encode_comparable_component(Some(value), false, out);
    if out.get(start) == Some(&SEPARATOR) {
        out.remove(start);
    } else {
        out.truncate(start);
    }
}

/// Appends the prefix of the terms of all entries with a key. No such prefix is a prefix of another one.
pub(super) fn encode_entry_key(ty: &TermType, key: &[u8], out: &mut Vec<u8>) {
    let mut term = Vec::new();
    ty.encode(key, &mut term);
    for byte in term {
        out.push(byte);
        if byte == 0 {
            out.push(u8::MAX);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Appends the term of an entry of a map.
pub(super) fn encode_entry(key_type: &TermType, key: &[u8], ty: &TermType, value: &[u8], out: &mut Vec<u8>) {
    encode_entry_key(key_type, key, out);
    ty.encode(value, out);
}

/// A term, cut to the maximum length.
#[inline]
pub(super) fn cut(term: &[u8]) -> &[u8] {
    &term[..term.len().min(TERM_LEN_MAX)]
}

#[cfg(test)]
mod tests {
    use ilion_types::{Decimal, Value};
    use proptest::prelude::*;

    use super::*;

    fn value(which: usize, n: i64, shift: u32, text: &str) -> (CqlType, Vec<u8>) {
        let n = n >> shift;
        let (ty, value) = match which {
            0 => (CqlType::TinyInt, Value::TinyInt(n as i8)),
            1 => (CqlType::SmallInt, Value::SmallInt(n as i16)),
            2 => (CqlType::Int, Value::Int(n as i32)),
            3 => (CqlType::BigInt, Value::BigInt(n)),
            4 => (CqlType::Timestamp, Value::Timestamp(n)),
            5 => (CqlType::Float, Value::Float(f32::from_bits(n as u32))),
            6 => (CqlType::Double, Value::Double(f64::from_bits(n as u64))),
            7 => (CqlType::Boolean, Value::Boolean(n % 2 == 0)),
            8 => (CqlType::Text, Value::Text(text.into())),
            9 => (CqlType::Varint, Value::Varint((i128::from(n) * 77).into())),
            10 => (
                CqlType::Decimal,
                Value::Decimal(Decimal {
                    unscaled: n.into(),
                    scale: (shift as i32 - 30) / 9,
                }),
            ),
            11 => (CqlType::Time, Value::Time(n & 0xFFFF)),
            12 => {
                return (
                    CqlType::Inet,
                    n.to_be_bytes()[..if n % 2 == 0 { 4 } else { 8 }].to_vec(),
                );
            }
            13 => (
                CqlType::TimeUuid,
                Value::TimeUuid(ilion_types::min_time_uuid(n >> 20)),
            ),
            14 => (
                CqlType::Uuid,
                Value::Uuid(ilion_types::Uuid::from_u128(
                    (n as u128).wrapping_mul(0x1_0000_0000_1001),
                )),
            ),
            15 => return (CqlType::Date, (n as u32).to_be_bytes().to_vec()),
            _ => return (CqlType::Int, text.as_bytes().to_vec()),
        };
        let bytes = value.to_bytes(&ty).unwrap();
        (ty, bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn terms_compare_as_values_do(
            which in 0_usize..16,
            a in (any::<i64>(), 0_u32..64, "[\\x00\\x01a]{0,4}"),
            b in (any::<i64>(), 0_u32..64, "[\\x00\\x01a]{0,4}"),
        ) {
            let (ty, left) = value(which, a.0, a.1, &a.2);
            let (_, right) = value(which, b.0, b.1, &b.2);
            let (mut x, mut y) = (Vec::new(), Vec::new());
            TermType::of(&ty).encode(&left, &mut x);
            TermType::of(&ty).encode(&right, &mut y);
            prop_assert_eq!(x.cmp(&y), ty.compare(&left, &right), "{} {:x?} {:x?}", ty, left, right);
        }

        #[test]
        fn a_value_that_is_none_does_not_sort_after_one_that_is(which in 0_usize..16, n in any::<i64>(), junk in "[\\x00a]{0,3}") {
            let (ty, good) = value(which, n, 0, "");
            let (mut x, mut y) = (Vec::new(), Vec::new());
            TermType::of(&ty).encode(junk.as_bytes(), &mut x);
            TermType::of(&ty).encode(&good, &mut y);
            let order = ty.compare(junk.as_bytes(), &good);
            prop_assert!(x.cmp(&y) == order || (x.is_empty() && order.is_le()) || ty.validate(junk.as_bytes()).is_ok());
        }

        #[test]
        fn entries_order_by_key_then_value(a in ("[\\x00a]{0,3}", any::<i32>()), b in ("[\\x00a]{0,3}", any::<i32>())) {
            let term = |(key, value): &(String, i32)| {
                let mut out = Vec::new();
                let (key_type, ty) = (TermType::of(&CqlType::Text), TermType::of(&CqlType::Int));
                encode_entry(&key_type, key.as_bytes(), &ty, &value.to_be_bytes(), &mut out);
                out
            };
            prop_assert_eq!(term(&a).cmp(&term(&b)), a.cmp(&b));
        }
    }
}
