//! A partition key with its token.

use bytes::Bytes;
use ilion_types::{Partitioner, Token};

/// Token and key; ordered by token, then by the key's unsigned bytes (`DecoratedKey.compareTo`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecoratedKey {
    /// Position on the ring.
    pub token: Token,
    /// The serialized partition key.
    pub key: Bytes,
}

impl DecoratedKey {
    /// Computes the token of `key`.
    pub fn new(partitioner: Partitioner, key: Bytes) -> Self {
        Self {
            token: partitioner.token(&key),
            key,
        }
    }
}
