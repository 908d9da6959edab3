//! Tokens: the order of partitions.

use std::fmt;
use std::sync::Arc;

/// The token of a partition. Only tokens of the same partitioner are compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// Hash of `Murmur3Partitioner`.
    Murmur3(i64),
    /// Key bytes of `ByteOrderedPartitioner`, compared unsigned.
    Bytes(Arc<[u8]>),
    /// Hash of `RandomPartitioner`.
    Random(RandomToken),
    /// The byte-comparable form of a key that is ordered by its value, with a separator before it.
    Comparable(Arc<[u8]>),
}

/// A token of `RandomPartitioner`: -1 (the minimum) to 2^127.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RandomToken {
    // Both halves of the value plus one: their unsigned order is the token's, and a `Token` does not need 16-byte alignment.
    high: u64,
    low: u64,
}

/// Flipping this bit of a signed number gives an unsigned one in the same order.
const SIGN: u64 = 1 << 63;

impl RandomToken {
    /// Number of low bits that the code omits.
    const CUT_BITS: u32 = 63;

    /// The minimum token, -1.
    pub(crate) const MINIMUM: Self = Self { high: 0, low: 0 };

    pub(crate) fn from_value(value: u128) -> Self {
        let shifted = value + 1;
        #[expect(clippy::cast_possible_truncation, reason = "splits into halves")]
        Self {
            high: (shifted >> 64) as u64,
            low: shifted as u64,
        }
    }

    /// The token's number; `None` for the minimum.
    pub fn value(self) -> Option<u128> {
        ((u128::from(self.high) << 64) | u128::from(self.low)).checked_sub(1)
    }
}

impl Token {
    /// True for the token before all keys.
    #[inline]
    pub fn is_minimum(&self) -> bool {
        match self {
            Self::Murmur3(value) => *value == i64::MIN,
            Self::Bytes(bytes) | Self::Comparable(bytes) => bytes.is_empty(),
            Self::Random(value) => *value == RandomToken::MINIMUM,
        }
    }

    /// The hash, for a token of `Murmur3Partitioner`.
    #[inline]
    pub fn murmur3(&self) -> Option<i64> {
        match self {
            Self::Murmur3(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of the key, for a token of `ByteOrderedPartitioner`.
    #[inline]
    pub fn key_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A number that ascends with the token and is spread as evenly as tokens. The code of a Murmur3 token identifies it; other
    /// tokens may share a code. Codes are stored in files, so they must not change.
    #[inline]
    pub fn code(&self) -> u64 {
        match self {
            Self::Murmur3(hash) => hash.cast_unsigned() ^ SIGN,
            Self::Random(random) => {
                // From -1 to 2^127: the value plus one, without its low 63 bits.
                let plus_one = random.value().map_or(0, |value| value + 1);
                u64::try_from(plus_one >> RandomToken::CUT_BITS).unwrap_or(u64::MAX)
            }
            Self::Bytes(bytes) | Self::Comparable(bytes) => {
                let mut padded = [0; 8];
                let len = bytes.len().min(8);
                padded[..len].copy_from_slice(&bytes[..len]);
                u64::from_be_bytes(padded)
            }
        }
    }

    /// The Murmur3 token with this code.
    #[inline]
    pub fn of_murmur3_code(code: u64) -> Self {
        Self::Murmur3((code ^ SIGN).cast_signed())
    }

    /// The value of CQL's `token()`, of the type `Partitioner::token_type`.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Murmur3(value) => value.to_be_bytes().to_vec(),
            Self::Bytes(bytes) | Self::Comparable(bytes) => bytes.to_vec(),
            Self::Random(value) => match value.value() {
                None => vec![0xFF],
                Some(value) => num_bigint::BigInt::from(value).to_signed_bytes_be(),
            },
        }
    }
}

/// Prints as Cassandra does: decimal, or lower-case hex in byte order.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Murmur3(value) => write!(f, "{value}"),
            Self::Bytes(bytes) | Self::Comparable(bytes) => f.write_str(&crate::hex::print(bytes)),
            Self::Random(value) => match value.value() {
                None => f.write_str("-1"),
                Some(value) => write!(f, "{value}"),
            },
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Partitioner, Token};

    /// 2^127, the greatest token of `RandomPartitioner`.
    const GREATEST: &str = "170141183460469231731687303715884105728";

    #[test]
    fn tokens_print_and_parse_as_cassandra_does() {
        let cases = [
            (Partitioner::Murmur3, "-6847573755651342660"),
            (Partitioner::ByteOrdered, "6b6579"),
            (Partitioner::Random, "80325066489831061459460196859901989661"),
        ];
        for (partitioner, text) in cases {
            let token = partitioner.token(b"key");
            assert_eq!(token.to_string(), text);
            assert_eq!(partitioner.parse_token(text), Ok(token.clone()));
            assert_eq!(partitioner.token_from_bytes(&token.to_bytes()), Ok(token));
            assert_eq!(Partitioner::from_class(partitioner.class_name()), Ok(partitioner));
        }
    }

    #[test]
    fn codes_ascend_with_tokens_and_stay_as_files_have_them() {
        let known: [(Token, u64); 7] = [
            (Token::Murmur3(i64::MIN), 0),
            (Token::Murmur3(-1), 0x7FFF_FFFF_FFFF_FFFF),
            (Token::Murmur3(5), 0x8000_0000_0000_0005),
            (Partitioner::ByteOrdered.token(b"ab"), 0x6162_0000_0000_0000),
            (
                Partitioner::ByteOrdered.token(b"abcdefghij"),
                0x6162_6364_6566_6768,
            ),
            (Partitioner::Random.minimum_token(), 0),
            (Partitioner::Random.parse_token(GREATEST).unwrap(), u64::MAX),
        ];
        for (token, code) in known {
            assert_eq!(token.code(), code, "{token}");
        }
        for partitioner in [
            Partitioner::Murmur3,
            Partitioner::ByteOrdered,
            Partitioner::Random,
        ] {
            let keys = (0..500_u32).map(|number| number.wrapping_mul(0x9E37_79B9).to_be_bytes());
            let mut tokens: Vec<Token> = keys.map(|key| partitioner.token(&key)).collect();
            tokens.sort();
            assert!(tokens.is_sorted_by_key(Token::code));
            let hashes = tokens.iter().filter(|token| token.murmur3().is_some());
            assert!(
                hashes
                    .clone()
                    .all(|token| Token::of_murmur3_code(token.code()) == *token)
            );
        }
    }

    #[test]
    fn the_minimum_is_below_every_key() {
        for partitioner in [
            Partitioner::Murmur3,
            Partitioner::ByteOrdered,
            Partitioner::Random,
        ] {
            let minimum = partitioner.minimum_token();
            assert!(minimum.is_minimum());
            assert!(minimum < partitioner.token(&[0]));
            assert_eq!(partitioner.token(&[]), minimum);
            assert_eq!(partitioner.parse_token(&minimum.to_string()), Ok(minimum.clone()));
            assert_eq!(partitioner.token_from_bytes(&minimum.to_bytes()), Ok(minimum));
        }
        let greatest = Partitioner::Random.parse_token(GREATEST).unwrap();
        assert_eq!(greatest.to_string(), GREATEST);
    }
}
