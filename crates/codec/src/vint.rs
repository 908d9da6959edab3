//! Cassandra's variable-length integers (`org.apache.cassandra.utils.vint.VIntCoding`).
//!
//! The number of leading one bits of the first byte is the number of extra bytes (0 to 8). The remaining low bits of the first
//! byte are the most significant bits of the value; the extra bytes follow big-endian. Signed values are zigzag-coded first.
//! Writers use the shortest form; readers accept any.

/// Length of the shortest form of `value`: 1 to 9 bytes.
#[inline]
pub fn unsigned_vint_len(value: u64) -> usize {
    let magnitude_bits = 64 - (value | 1).leading_zeros() as usize;
    // Seven bits per byte, up to 56 bits; nine bytes above.
    (9 * magnitude_bits + 63) >> 6
}

/// Reads a vint at the start of `bytes`. Returns its value and length; `None` if there are too few bytes.
#[inline]
pub(crate) fn read_unsigned(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let extra = first.leading_ones() as usize;
    let high = u64::from(first) & (0x7F >> extra);
    if let Some([_, tail @ ..]) = bytes.first_chunk::<9>() {
        // The usual case, not at the end of the input: no loop over the tail. Two shifts, since `extra` may be 8, and a shift by
        // 64 is not defined.
        let low = u64::from_be_bytes(*tail) >> (64 - 8 * extra);
        return Some(((high << (8 * extra - 8) << 8) | low, extra + 1));
    }
    let tail = bytes.get(1..=extra)?;
    let value = tail
        .iter()
        .fold(high, |value, byte| (value << 8) | u64::from(*byte));
    Some((value, extra + 1))
}

/// Appends `value` in its shortest form.
#[inline]
pub(crate) fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    match only_byte(value) {
        Some(byte) => out.push(byte),
        None => write_long(out, value),
    }
}

/// The encoding of a value that fits one byte; else `None`.
#[inline]
pub(crate) fn only_byte(value: u64) -> Option<u8> {
    let [.., low] = value.to_be_bytes();
    (value < 0x80).then_some(low)
}

/// Appends a value of two bytes or more. This is its own function, so that short values stay cheap.
fn write_long(out: &mut Vec<u8>, value: u64) {
    let (encoded, len) = encode_unsigned(value);
    // Appends all nine bytes, then truncates: a copy of a fixed length is faster than a copy of `len` bytes.
    let end = out.len() + len;
    out.extend_from_slice(&encoded);
    out.truncate(end);
}

/// The shortest form of `value`, at the start of an array, and the number of its bytes.
#[inline]
pub(crate) fn encode_unsigned(value: u64) -> ([u8; 9], usize) {
    let len = unsigned_vint_len(value);
    let mut encoded = [0xFF; 9];
    if len > 8 {
        encoded[1..].copy_from_slice(&value.to_be_bytes());
    } else {
        let unused_bits = 8 * (8 - len);
        let ones = !(u64::MAX >> (len - 1));
        encoded[..8].copy_from_slice(&((value << unused_bits) | ones).to_be_bytes());
    }
    (encoded, len)
}

/// Maps small magnitudes of either sign to small unsigned numbers.
#[inline]
pub(crate) fn zigzag_encode(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag_encode`].
#[inline]
pub(crate) fn zigzag_decode(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_the_shortest_that_holds_the_value() {
        for bits in 0..64 {
            for value in [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                let mut out = vec![0xAA];
                write_unsigned(&mut out, value);
                assert_eq!(out.len() - 1, unsigned_vint_len(value));
                assert_eq!(read_unsigned(&out[1..]), Some((value, out.len() - 1)));
                let shorter_end = 1_u128 << (7 * (out.len() - 2));
                assert!(out.len() == 2 || u128::from(value) >= shorter_end, "{value}");
            }
        }
    }

    #[test]
    fn the_vectors_of_the_format_notes_hold() {
        let cases: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (127, &[0x7F]),
            (128, &[0x80, 0x80]),
            (16383, &[0xBF, 0xFF]),
            (16384, &[0xC0, 0x40, 0]),
            ((1 << 56) - 1, &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            (1 << 56, &[0xFF, 1, 0, 0, 0, 0, 0, 0, 0]),
            (u64::MAX, &[0xFF; 9]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            write_unsigned(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(unsigned_vint_len(value), bytes.len(), "{value}");
            out.push(0xAA);
            assert_eq!(read_unsigned(&out), Some((value, bytes.len())));
            assert_eq!(read_unsigned(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn every_length_boundary_round_trips() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let mut out = Vec::new();
                write_unsigned(&mut out, value);
                assert_eq!(out.len(), unsigned_vint_len(value));
                assert_eq!(read_unsigned(&out), Some((value, out.len())));
                assert_eq!(
                    zigzag_decode(zigzag_encode(value.cast_signed())),
                    value.cast_signed()
                );
            }
        }
    }
}
