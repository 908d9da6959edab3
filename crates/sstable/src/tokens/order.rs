//! Tokens as codes of eight bytes that keep their order.
//!
//! Under Murmur3 the code is the token, under Random its first 64 bits: both are spread evenly, so few bits of a code distinguish
//! partitions. Under ByteOrderedPartitioner the code is the eight bytes of the key behind the common prefix of the block's keys:
//! keys that differ only behind these bytes have equal codes.

use std::sync::Arc;

use ilion_types::{Partitioner, Token};

/// What the partitions are ordered by: a hash, or the bytes of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Murmur3,
    Random,
    Bytes,
}

/// A token in the form in which it is compared with codes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ComparableToken<'t> {
    Code(u64),
    Bytes(&'t [u8]),
}

const SIGN: u64 = 1 << 63;
/// Number of low bits that are cut from a token of `RandomPartitioner` (up to 2^127).
const RANDOM_CUT_BITS: u32 = 63;

impl Order {
    pub(super) fn of(partitioner: Partitioner) -> Self {
        match partitioner {
            Partitioner::Murmur3 => Self::Murmur3,
            Partitioner::Random => Self::Random,
            Partitioner::ByteOrdered | Partitioner::Local | Partitioner::Ordered(_) => Self::Bytes,
        }
    }

    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Murmur3 => 1,
            Self::Random => 2,
            Self::Bytes => 3,
        }
    }

    /// The greatest token that is not above any token with that code.
    pub(super) fn floor_of_code(self, code: u64) -> Token {
        match self {
            Self::Murmur3 => Token::Murmur3(hash_of_code(code)),
            Self::Random => {
                let value = (u128::from(code) << RANDOM_CUT_BITS).checked_sub(1);
                // With a leading zero byte, so that the number is not negative.
                let bytes = value.map(|value| [&[0], &value.to_be_bytes()[..]].concat());
                let token = bytes.map(|bytes| Partitioner::Random.token_from_bytes(&bytes));
                token
                    .and_then(Result::ok)
                    .unwrap_or_else(|| Partitioner::Random.minimum_token())
            }
            Self::Bytes => Token::Bytes(Arc::from(trimmed(&code.to_be_bytes()))),
        }
    }
}

/// The code of a Murmur3 token.
#[inline]
fn code_of_hash(hash: i64) -> u64 {
    Token::Murmur3(hash).code()
}

/// The Murmur3 token with that code.
#[inline]
fn hash_of_code(code: u64) -> i64 {
    (code ^ SIGN).cast_signed()
}

/// The bytes without the zeros at their end: the code of a short key is padded with zeros.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    &bytes[..bytes.len() - zeros]
}

impl<'t> ComparableToken<'t> {
    #[inline]
    pub(super) fn of(token: &'t Token) -> Self {
        match token {
            Token::Murmur3(hash) => Self::Code(code_of_hash(*hash)),
            _ => Self::of_any(token),
        }
    }

    /// This is its own function, since nearly all tokens are Murmur3 hashes.
    #[inline(never)]
    fn of_any(token: &'t Token) -> Self {
        match token {
            Token::Murmur3(_) | Token::Random(_) => Self::Code(token.code()),
            Token::Bytes(bytes) | Token::Comparable(bytes) => Self::Bytes(bytes),
        }
    }
}

/// The first eight bytes; missing ones count as zeros.
#[inline]
pub(super) fn code_of_bytes(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk() {
        return u64::from_be_bytes(*chunk);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

/// Length of the common prefix of two keys.
pub(super) fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_not_above_the_tokens_of_its_code() {
        for partitioner in [Partitioner::Murmur3, Partitioner::Random] {
            for key in [&b"a"[..], b"b", b"key", b"", &[0xFF; 40]] {
                let token = partitioner.token(key);
                let ComparableToken::Code(code) = ComparableToken::of(&token) else {
                    panic!("a hash has a code");
                };
                let floor = Order::of(partitioner).floor_of_code(code);
                assert!(floor <= token, "{floor} {token}");
                assert!(matches!(ComparableToken::of(&floor), ComparableToken::Code(same) if same <= code));
                if let Some(next) = code.checked_add(1) {
                    assert!(Order::of(partitioner).floor_of_code(next) > token);
                }
            }
        }
        assert_eq!(trimmed(&code_of_bytes(b"ab").to_be_bytes()), b"ab");
    }
}
