//! Byte-comparable keys: values as bytes whose unsigned order is the order of the values (version OSS50), as in the tries of
//! the BTI format.
//!
//! ```text
//! partition key := 40 token 40 escaped(key) 38
//! clustering    := (separator value)* terminator     separator := 40 | 3E (null) | 3F, 41 (empty, ASC, DESC)
//! sequence      := (40 value | 3E)* 38               (inside collections, tuples, user types, vectors)
//! ```
//!
//! Together with the separator or terminator after it, no encoding is a prefix of another. In a DESC column the bytes of the value
//! are complemented, but not the separator. Not here: decoding, which readers of tries do not need; cutting keys to their
//! distinguishing prefixes.

use ilion_codec::Writer;
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use crate::elements::{collection_elements, map_entries, tuple_components, vector_elements};
use crate::time_uuid::time_first;
use crate::{CqlType, Decimal, Partitioner, Token, decode_varint};

pub(crate) const SEPARATOR: u8 = 0x40;
const SEPARATOR_NULL: u8 = 0x3E;
const SEPARATOR_EMPTY: u8 = 0x3F;
const SEPARATOR_EMPTY_REVERSED: u8 = 0x41;
const SEQUENCE_END: u8 = 0x38;
/// The sign bit of a number, in its first byte.
const SIGN: u8 = 0x80;

/// The byte that ends the clustering of a row.
pub const TERMINATOR_ROW: u8 = SEQUENCE_END;
/// The byte that ends a bound that sorts before every row with its prefix.
pub const TERMINATOR_BEFORE: u8 = 0x20;
/// The byte that ends a bound that sorts after every row with its prefix.
pub const TERMINATOR_AFTER: u8 = 0x60;
/// The whole clustering of a static row.
pub const STATIC_CLUSTERING: u8 = 0x18;

/// Appends the byte-comparable form of a partition key.
pub fn encode_comparable_key(token: &Token, key: &[u8], out: &mut Vec<u8>) {
    if let Token::Comparable(bytes) = token {
        out.extend_from_slice(bytes);
    } else {
        out.push(SEPARATOR);
    }
    match token {
        Token::Comparable(_) => {}
        Token::Murmur3(_) => out.extend_from_slice(&token.code().to_be_bytes()),
        Token::Bytes(bytes) => encode_escaped(bytes, out),
        Token::Random(value) => match value.value() {
            None => encode_varint(&BigInt::from(-1), out),
            Some(value) => encode_varint(&BigInt::from(value), out),
        },
    }
    out.push(SEPARATOR);
    encode_escaped(key, out);
    out.push(SEQUENCE_END);
}

impl CqlType {
    /// Appends one component of a clustering with its separator. `None` is null; `reversed` is a DESC column.
    pub fn encode_comparable_component(&self, value: Option<&[u8]>, reversed: bool, out: &mut Vec<u8>) {
        let Some(value) = value else {
            out.push(SEPARATOR_NULL);
            return;
        };
        let start = out.len();
        out.push(SEPARATOR);
        if !self.encode_comparable(value, out) {
            out[start] = if reversed {
                SEPARATOR_EMPTY_REVERSED
            } else {
                SEPARATOR_EMPTY
            };
        } else if reversed {
            for byte in &mut out[start + 1..] {
                *byte = !*byte;
            }
        }
    }

    /// How values of fixed length are encoded; `None` if the encoding does more than flip bits.
    pub(crate) fn fixed_form(&self) -> Option<FixedForm> {
        let (value_len, turned) = match self {
            Self::TinyInt => (1, SIGN),
            Self::SmallInt => (2, SIGN),
            Self::Int => (4, SIGN),
            Self::Timestamp => (8, SIGN),
            Self::Boolean => (1, 0),
            Self::Date => (4, 0),
            Self::Time => (8, 0),
            _ => return None,
        };
        Some(FixedForm { value_len, turned })
    }

    /// Appends a value. Returns false, without appending, if it has no encoding: it is empty, or too short for its type.
    fn encode_comparable(&self, value: &[u8], out: &mut Vec<u8>) -> bool {
        match self {
            Self::Text | Self::Ascii | Self::Blob | Self::Inet | Self::Duration => encode_escaped(value, out),
            Self::Custom(class) => match Partitioner::of_keys(class) {
                Some(_) if value.is_empty() => return false,
                Some(partitioner) => encode_comparable_key(&partitioner.token(value), value, out),
                None => encode_escaped(value, out),
            },
            Self::Empty | Self::Counter => return false,
            _ if value.is_empty() => return false,
            Self::Int | Self::Float | Self::Date => return fixed::<4>(self, value, out),
            Self::Timestamp | Self::Double | Self::Time => return fixed::<8>(self, value, out),
            Self::SmallInt => return fixed::<2>(self, value, out),
            Self::TinyInt | Self::Boolean => return fixed::<1>(self, value, out),
            Self::Uuid | Self::TimeUuid => return encode_uuid(self, value, out),
            Self::BigInt => match value.first_chunk::<8>() {
                Some(bytes) => encode_variable(i64::from_be_bytes(*bytes), out),
                None => return false,
            },
            Self::Varint => encode_varint(&decode_varint(value), out),
            Self::Decimal => match Decimal::decode(value) {
                Ok(decimal) => encode_decimal(&decimal, out),
                Err(_) => return false,
            },
            _ => self.encode_sequence(value, out),
        }
        true
    }

    fn encode_sequence(&self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::List { element, .. } | Self::Set { element, .. } => {
                for part in collection_elements(value)
                    .into_iter()
                    .flatten()
                    .map_while(Result::ok)
                {
                    element.encode_element(Some(part), out);
                }
            }
            Self::Map {
                key, value: element, ..
            } => {
                for (k, v) in map_entries(value).into_iter().flatten().map_while(Result::ok) {
                    key.encode_element(Some(k), out);
                    element.encode_element(Some(v), out);
                }
            }
            Self::Vector { element, dimension } => {
                for part in vector_elements(value, element, *dimension).map_while(Result::ok) {
                    element.encode_element(Some(part), out);
                }
            }
            _ => self.encode_components(value, out),
        }
        out.push(SEQUENCE_END);
    }

    /// The components of a tuple or user type, without trailing nulls.
    fn encode_components(&self, value: &[u8], out: &mut Vec<u8>) {
        let mut end = out.len();
        let components = tuple_components(value).map_while(Result::ok);
        for ((_, ty), component) in self.components().zip(components) {
            ty.encode_element(component, out);
            if component.is_some() {
                end = out.len();
            }
        }
        out.truncate(end);
    }

    fn encode_element(&self, value: Option<&[u8]>, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(SEPARATOR);
        if !value.is_some_and(|value| self.encode_comparable(value, out)) {
            out.truncate(start);
            out.push(SEPARATOR_NULL);
        }
    }
}

/// The encoding of a type with values of fixed length: some bits of the first byte are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedForm {
    value_len: usize,
    turned: u8,
}

impl FixedForm {
    /// Like [`CqlType::encode_comparable_component`]. Returns false, without appending, if the value has another length.
    #[inline]
    pub(crate) fn encode_component(self, value: &[u8], out: &mut Vec<u8>) -> bool {
        if value.len() != self.value_len {
            return false;
        }
        match *value {
            [a] => out.extend_from_slice(&[SEPARATOR, a ^ self.turned]),
            [a, b] => out.extend_from_slice(&[SEPARATOR, a ^ self.turned, b]),
            [a, b, c, d] => out.extend_from_slice(&[SEPARATOR, a ^ self.turned, b, c, d]),
            [a, b, c, d, e, f, g, h] => {
                out.extend_from_slice(&[SEPARATOR, a ^ self.turned, b, c, d, e, f, g, h]);
            }
            _ => return false,
        }
        true
    }
}

/// Appends a value of `N` bytes: integers with the sign bit flipped, floats so that negative ones sort in reverse. Returns false if the
/// value is too short.
fn fixed<const N: usize>(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(bytes) = value.first_chunk::<N>() else {
        return false;
    };
    let mut bytes = *bytes;
    match ty {
        CqlType::Date | CqlType::Time | CqlType::Boolean => {}
        CqlType::Float | CqlType::Double if bytes[0] >= 0x80 => bytes = bytes.map(|byte| !byte),
        _ => bytes[0] ^= SIGN,
    }
    out.extend_from_slice(&bytes);
    true
}

fn encode_uuid(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(bytes) = value.first_chunk::<16>() else {
        return false;
    };
    let (msb, lsb) = uuid::Uuid::from_bytes(*bytes).as_u64_pair();
    let is_time = *ty == CqlType::TimeUuid;
    let version = (msb >> 12) & 0xF;
    let high = if is_time || version == 1 {
        time_first(u128::from(msb) << 64)
    } else {
        (version << 60) | ((msb >> 4) & 0x0FFF_FFFF_FFFF_F000) | (msb & 0xFFF)
    };
    let low = if is_time { lsb ^ 0x8080_8080_8080_8080 } else { lsb };
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
    true
}

/// Appends bytes; after each run of zeros, a byte shows whether the input continues.
fn encode_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    if !bytes.contains(&0) {
        out.extend_from_slice(bytes);
        out.push(0);
        return;
    }
    let mut in_zeros = false;
    for byte in bytes {
        match (in_zeros, *byte) {
            (false, byte) => out.push(byte),
            (true, 0) => out.push(0xFE),
            (true, byte) => out.extend_from_slice(&[0xFF, byte]),
        }
        in_zeros = *byte == 0;
    }
    out.push(if in_zeros { 0xFE } else { 0 });
}

/// Appends a signed integer in 1 to 9 bytes. The number of leading bits that equal the first one gives the length.
fn encode_variable(value: i64, out: &mut Vec<u8>) {
    let start = out.len();
    let magnitude = (if value < 0 { !value } else { value }).cast_unsigned();
    let bits = 64 - magnitude.leading_zeros() as usize;
    // 7n - 1 value bits fit n bytes; nine bytes have room for 63.
    let len = (bits + 1).div_ceil(7).clamp(1, 9);
    if len == 9 {
        let marked = magnitude | (1 << 63);
        out.push(0xFF);
        out.extend_from_slice(&marked.to_be_bytes());
    } else {
        // `len` ones, then a zero, from the top of the `8 * len` bits.
        let ones = !(u64::MAX >> len);
        let marked = (ones >> (64 - 8 * len)) | magnitude;
        out.extend_from_slice(&marked.to_be_bytes()[8 - len..]);
    }
    if value < 0 {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Appends an integer of any size: up to 48 bits like [`encode_variable`], longer ones with their length in front.
fn encode_varint(value: &BigInt, out: &mut Vec<u8>) {
    const LIMIT: i64 = 1 << 48;
    if let Some(small) = value.to_i64().filter(|small| (-LIMIT..LIMIT).contains(small)) {
        return encode_variable(small, out);
    }
    let negative = value.sign() == Sign::Minus;
    let bytes = value.to_signed_bytes_be();
    let sign_byte = if negative { 0xFF } else { 0 };
    let zeros = bytes.iter().take_while(|byte| **byte == sign_byte).count();
    let digits = &bytes[zeros..];
    // At least seven bytes, also of a negative power of 256: after its sign bytes, it has only zeros, which are kept.
    let mut len = Writer::new();
    len.uvint((digits.len() - 7) as u64);
    out.push(!sign_byte);
    out.extend(len.as_slice().iter().map(|byte| byte ^ sign_byte));
    out.extend_from_slice(digits);
}

/// Appends sign and exponent, then base-100 digits, each plus 0x80, then 0.
fn encode_decimal(decimal: &Decimal, out: &mut Vec<u8>) {
    let text = decimal.unscaled.magnitude().to_string();
    let digits = text.trim_end_matches('0');
    if digits.is_empty() {
        out.push(0x80);
        return;
    }
    // The value is 0.digits * 10^exponent; with an odd exponent, a zero in front makes it even.
    let exponent = i64::try_from(text.len()).unwrap_or(i64::MAX / 2) - i64::from(decimal.scale);
    let negative = decimal.unscaled.sign() == Sign::Minus;
    let exponent100 = (exponent + 1).div_euclid(2);
    encode_exponent(exponent100, negative, out);
    let padded = format!("{}{digits}", if exponent.rem_euclid(2) == 1 { "0" } else { "" });
    let groups: Vec<u8> = padded.as_bytes().chunks(2).map(base100).collect();
    let last = groups.len() - 1;
    for (index, group) in groups.iter().enumerate() {
        out.push(match (negative, index) {
            (false, _) => 0x80 + group,
            // Only the first digit of a negative number is negative; the others are complements.
            (true, 0) => 0x80 - group - u8::from(last > 0),
            (true, _) => 0x80 + 99 - group + u8::from(index == last),
        });
    }
    out.push(0);
}

fn base100(digits: &[u8]) -> u8 {
    let digit = |index: usize| digits.get(index).map_or(0, |byte| byte - b'0');
    digit(0) * 10 + digit(1)
}

fn encode_exponent(exponent: i64, negative: bool, out: &mut Vec<u8>) {
    let modulated = if negative { -exponent } else { exponent };
    let len = 8 - modulated.unsigned_abs().leading_zeros() as usize / 8;
    let base: u8 = if negative { 0x40 } else { 0xC0 };
    #[expect(clippy::cast_possible_truncation, reason = "at most 8")]
    let len8 = len as u8;
    out.push(if modulated < 0 { base - len8 } else { base + len8 });
    out.extend_from_slice(&modulated.to_be_bytes()[8 - len..]);
}

#[cfg(test)]
mod tests;
