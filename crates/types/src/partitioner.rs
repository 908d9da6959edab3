//! Partitioners, which compute the token of a partition key.

use std::sync::Arc;

use ilion_codec::{md5, murmur3};

use crate::cql_type;
use crate::token::{RandomToken, Token};
use crate::{CqlType, Error, KeyOrder};

/// How partition keys are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Partitioner {
    /// By the hash of the key: Cassandra's default.
    #[default]
    Murmur3,
    /// By the bytes of the key.
    ByteOrdered,
    /// By the MD5 of the key.
    Random,
    /// By the bytes of the key, for virtual tables. Compat: Cassandra's `LocalPartitioner` orders by the type of the key. For text,
    /// blobs and addresses, both orders are the same.
    Local,
    /// By the values of the keys, for hidden tables of indexes.
    Ordered(KeyOrder),
}

const PACKAGE: &str = "org.apache.cassandra.dht.";

/// Start of the class of partition keys in a partitioner's order: `PartitionerDefinedOrder(partitioner)`, or with
/// `partitioner:class` in the parentheses.
pub(crate) const KEY_ORDER: &str = "PartitionerDefinedOrder(";

impl Partitioner {
    /// The partitioner of a class name, simple or qualified.
    ///
    /// # Errors
    /// Ilion does not have the class.
    pub fn from_class(class: &str) -> Result<Self, Error> {
        match class.strip_prefix(PACKAGE).unwrap_or(class) {
            "Murmur3Partitioner" => Ok(Self::Murmur3),
            "ByteOrderedPartitioner" => Ok(Self::ByteOrdered),
            "RandomPartitioner" => Ok(Self::Random),
            "LocalPartitioner" => Ok(Self::Local),
            _ => Err(Error::InvalidType(format!(
                "Unable to find partitioner class '{class}'"
            ))),
        }
    }

    /// The qualified class name, as in `system.local` and Statistics.db.
    pub fn class_name(self) -> &'static str {
        match self {
            Self::Murmur3 => "org.apache.cassandra.dht.Murmur3Partitioner",
            Self::ByteOrdered => "org.apache.cassandra.dht.ByteOrderedPartitioner",
            Self::Random => "org.apache.cassandra.dht.RandomPartitioner",
            Self::Local | Self::Ordered(_) => "org.apache.cassandra.dht.LocalPartitioner",
        }
    }

    /// The class string of partition keys in this order.
    pub(crate) fn class_of_keys(self) -> String {
        format!("{}{KEY_ORDER}{})", cql_type::PACKAGE, self.class_name())
    }

    /// The partitioner in whose order keys of this class are; `None` for other classes.
    pub(crate) fn of_keys(class: &str) -> Option<Self> {
        let rest = class.strip_prefix(cql_type::PACKAGE)?.strip_prefix(KEY_ORDER)?;
        let end = rest.find([':', ')'])?;
        Self::from_class(&rest[..end]).ok()
    }

    /// The token of a partition key; an empty key has the minimum token.
    #[inline]
    pub fn token(self, key: &[u8]) -> Token {
        match self {
            Self::Ordered(order) => order.token(key),
            _ if key.is_empty() => self.minimum_token(),
            Self::Murmur3 => {
                let (hash, _) = murmur3::hash128(key, 0);
                Token::Murmur3(if hash == i64::MIN { i64::MAX } else { hash })
            }
            Self::ByteOrdered | Self::Local => Token::Bytes(Arc::from(key)),
            Self::Random => {
                let digest = i128::from_be_bytes(md5(key));
                Token::Random(RandomToken::from_value(digest.unsigned_abs()))
            }
        }
    }

    /// The token before every key. As the end of a range it means the end of the ring.
    #[inline]
    pub fn minimum_token(self) -> Token {
        match self {
            Self::Murmur3 => Token::Murmur3(i64::MIN),
            Self::ByteOrdered | Self::Local => Token::Bytes(Arc::from([])),
            Self::Ordered(_) => Token::Comparable(Arc::from([])),
            Self::Random => Token::Random(RandomToken::MINIMUM),
        }
    }

    /// The type of CQL's `token()`.
    pub fn token_type(self) -> CqlType {
        match self {
            Self::Murmur3 => CqlType::BigInt,
            Self::ByteOrdered | Self::Local | Self::Ordered(_) => CqlType::Blob,
            Self::Random => CqlType::Varint,
        }
    }

    /// Parses a token in the form of [`Token`]'s `Display`.
    ///
    /// # Errors
    /// The text is not a token of this partitioner.
    pub fn parse_token(self, text: &str) -> Result<Token, Error> {
        let refused = || Error::literal(format!("Invalid token '{text}' for {}", self.class_name()));
        match self {
            Self::Murmur3 => text.parse().map(Token::Murmur3).map_err(|_| refused()),
            Self::ByteOrdered | Self::Local => crate::hex::parse(text)
                .map(|bytes| Token::Bytes(bytes.into()))
                .ok_or_else(refused),
            Self::Ordered(_) => crate::hex::parse(text)
                .map(|bytes| Token::Comparable(bytes.into()))
                .ok_or_else(refused),
            Self::Random if text == "-1" => Ok(self.minimum_token()),
            Self::Random => match text.parse::<u128>() {
                Ok(value) if value <= 1 << 127 => Ok(Token::Random(RandomToken::from_value(value))),
                _ => Err(refused()),
            },
        }
    }

    /// Decodes a token from a CQL value of [`Partitioner::token_type`].
    ///
    /// # Errors
    /// The bytes are not a token of this partitioner.
    pub fn token_from_bytes(self, bytes: &[u8]) -> Result<Token, Error> {
        let refused = || Error::bytes("Invalid token bytes");
        match self {
            Self::Murmur3 => bytes
                .try_into()
                .map(|bytes| Token::Murmur3(i64::from_be_bytes(bytes)))
                .map_err(|_| refused()),
            Self::ByteOrdered | Self::Local => Ok(Token::Bytes(bytes.into())),
            Self::Ordered(_) => Ok(Token::Comparable(bytes.into())),
            Self::Random => {
                let value = num_bigint::BigInt::from_signed_bytes_be(bytes);
                self.parse_token(&value.to_string()).map_err(|_| refused())
            }
        }
    }
}
