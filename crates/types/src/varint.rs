//! Integers of any size: two's complement, big-endian, in as few bytes as possible.
//!
//! Compat: longer forms of a number are decoded, too.

use std::cmp::Ordering;

use num_bigint::BigInt;

/// Decodes a number; no bytes mean zero.
pub fn decode_varint(bytes: &[u8]) -> BigInt {
    BigInt::from_signed_bytes_be(bytes)
}

/// The shortest bytes of `value`, at least one.
pub fn encode_varint(value: &BigInt) -> Vec<u8> {
    value.to_signed_bytes_be()
}

/// The shortest bytes of a 64-bit number.
pub fn encode_varint_i64(value: i64) -> Vec<u8> {
    minimal(&value.to_be_bytes()).to_vec()
}

/// The value without repeated sign bytes.
fn minimal(bytes: &[u8]) -> &[u8] {
    let mut bytes = bytes;
    while let [first, second, ..] = bytes {
        let redundant = (*first == 0 && *second < 0x80) || (*first == 0xFF && *second >= 0x80);
        if !redundant {
            break;
        }
        bytes = &bytes[1..];
    }
    bytes
}

/// Compares by number, without building numbers; empty values are first.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (minimal(a), minimal(b));
    let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else {
        return a.len().cmp(&b.len());
    };
    match (*first_a >= 0x80, *first_b >= 0x80) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}
