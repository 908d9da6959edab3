//! A partition key in a memtable. It begins with its place on the ring, so that a search mostly compares numbers that are stored in
//! the nodes of the tree. A short key needs no memory of its own.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::Token;

/// Longest key, in bytes, that is stored inline.
const SHORT_MAX: usize = 22;
/// Bytes of the two counters of an `Arc`.
const SHARED_BYTES: usize = 16;

/// A partition key, ordered as [`DecoratedKey`].
#[derive(Clone)]
pub(crate) struct PlacedKey {
    /// The code of the token; a Murmur3 token can be computed from it.
    place: u64,
    key: Key,
}

#[derive(Clone)]
enum Key {
    /// A short key with a Murmur3 token: the first `length` bytes.
    Short {
        length: u8,
        bytes: [u8; SHORT_MAX],
    },
    /// A long key with a Murmur3 token.
    Long(Arc<[u8]>),
    /// As `Short`; `LongOrdered` is as `Long`. Their token is the key itself (`ByteOrderedPartitioner`).
    ShortOrdered {
        length: u8,
        bytes: [u8; SHORT_MAX],
    },
    LongOrdered(Arc<[u8]>),
    /// A key with any other token, which cannot be computed from its code.
    WithToken(Arc<DecoratedKey>),
}

impl PlacedKey {
    /// A copy of a key.
    pub(crate) fn of(token: &Token, key: &[u8]) -> Self {
        let short = u8::try_from(key.len())
            .ok()
            .filter(|length| usize::from(*length) <= SHORT_MAX)
            .map(|length| {
                let mut bytes = [0; SHORT_MAX];
                bytes[..key.len()].copy_from_slice(key);
                (length, bytes)
            });
        let placed = match (token, short) {
            (Token::Murmur3(_), Some((length, bytes))) => Key::Short { length, bytes },
            (Token::Murmur3(_), None) => Key::Long(key.into()),
            (Token::Bytes(token), Some((length, bytes))) if **token == *key => {
                Key::ShortOrdered { length, bytes }
            }
            (Token::Bytes(token), None) if **token == *key => Key::LongOrdered(token.clone()),
            _ => Key::WithToken(Arc::new(DecoratedKey {
                token: token.clone(),
                key: Bytes::copy_from_slice(key),
            })),
        };
        Self {
            place: token.code(),
            key: placed,
        }
    }

    /// The code of the token. Keys are ordered by it first.
    #[inline]
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// The serialized partition key.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.key {
            Key::Short { length, bytes } | Key::ShortOrdered { length, bytes } => {
                &bytes[..usize::from(*length)]
            }
            Key::Long(bytes) | Key::LongOrdered(bytes) => bytes,
            Key::WithToken(key) => &key.key,
        }
    }

    #[inline]
    pub(crate) fn token(&self) -> Token {
        match &self.key {
            Key::WithToken(key) => key.token.clone(),
            Key::ShortOrdered { .. } => Token::Bytes(self.bytes().into()),
            Key::LongOrdered(bytes) => Token::Bytes(bytes.clone()),
            Key::Short { .. } | Key::Long(_) => Token::of_murmur3_code(self.place),
        }
    }

    /// The key with its token.
    pub(crate) fn decorated(&self) -> DecoratedKey {
        match &self.key {
            Key::WithToken(key) => DecoratedKey::clone(key),
            _ => DecoratedKey {
                token: self.token(),
                key: Bytes::copy_from_slice(self.bytes()),
            },
        }
    }

    /// Memory of the key in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let beside = match &self.key {
            Key::Short { .. } | Key::ShortOrdered { .. } => 0,
            Key::Long(bytes) | Key::LongOrdered(bytes) => SHARED_BYTES + bytes.len(),
            Key::WithToken(key) => SHARED_BYTES + key.size_bytes(),
        };
        size_of::<Self>() + beside
    }

    #[inline]
    fn compare_token(&self, token: &Token) -> Ordering {
        self.place.cmp(&token.code()).then_with(|| match &self.key {
            Key::WithToken(key) => key.token.cmp(token),
            Key::ShortOrdered { .. } | Key::LongOrdered(_) => Some(self.bytes()).cmp(&token.key_bytes()),
            Key::Short { .. } | Key::Long(_) => Ordering::Equal,
        })
    }

    /// Orders this key relative to another key.
    #[inline]
    pub(crate) fn compare(&self, other: &DecoratedKey) -> Ordering {
        self.compare_token(&other.token)
            .then_with(|| self.bytes().cmp(&other.key[..]))
    }

    /// Compares the key with a bound, which is never equal to a key.
    #[inline]
    pub(crate) fn against(&self, bound: &KeyBound) -> Ordering {
        let ordering = bound.compare_by(
            |token| self.compare_token(token).reverse(),
            |key| self.compare(key).reverse(),
        );
        ordering.reverse()
    }
}

impl From<&DecoratedKey> for PlacedKey {
    fn from(key: &DecoratedKey) -> Self {
        Self::of(&key.token, &key.key)
    }
}

impl Ord for PlacedKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.place
            .cmp(&other.place)
            .then_with(|| match (&self.key, &other.key) {
                (Key::WithToken(key), Key::WithToken(other)) => key.cmp(other),
                // `other` is made from a bound: a token without a key.
                (_, Key::WithToken(other)) => self.compare(other),
                (Key::WithToken(key), _) => other.compare(key).reverse(),
                _ => self.bytes().cmp(other.bytes()),
            })
    }
}

impl PartialOrd for PlacedKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PlacedKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PlacedKey {}

impl fmt::Debug for PlacedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.decorated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use ilion_types::Partitioner;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_key_is_in_one_piece() {
        assert_eq!(size_of::<PlacedKey>(), 32);
        let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(&[7; SHORT_MAX]));
        assert_eq!(PlacedKey::from(&key).size_bytes(), 32);
        let key = DecoratedKey::new(Partitioner::ByteOrdered, key.key);
        assert_eq!(PlacedKey::from(&key).size_bytes(), 32);
    }

    fn partitioners() -> impl Strategy<Value = Partitioner> {
        prop_oneof![
            Just(Partitioner::Murmur3),
            Just(Partitioner::Random),
            Just(Partitioner::ByteOrdered),
        ]
    }

    /// Keys of all lengths around the limits of short keys and of places, many with equal beginnings.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![9 => 0..2_u8, 1 => any::<u8>()], 0..30)
    }

    proptest! {
        #[test]
        fn it_is_ordered_as_the_key_that_it_stands_for(
            partitioner in partitioners(),
            keys in (keys(), keys()),
            same_token in any::<bool>(),
        ) {
            let mut first = DecoratedKey::new(partitioner, keys.0.into());
            let second = DecoratedKey::new(partitioner, keys.1.into());
            if same_token && partitioner != Partitioner::ByteOrdered {
                first.token = second.token.clone();
            }
            let placed = [PlacedKey::from(&first), PlacedKey::from(&second)];
            let order = first.cmp(&second);
            prop_assert_eq!(placed[0].cmp(&placed[1]), order);
            prop_assert_eq!(placed[0].compare(&second), order);
            prop_assert_eq!(placed[0].decorated(), first.clone());
            let bound = DecoratedKey { token: second.token.clone(), key: Bytes::new() };
            let placed_bound = PlacedKey::of(&bound.token, &[]);
            prop_assert_eq!(placed[0].cmp(&placed_bound), first.cmp(&bound));
            prop_assert_eq!(placed_bound.cmp(&placed[0]), bound.cmp(&first));
            for bound in [
                KeyBound::Start,
                KeyBound::End,
                KeyBound::Before(second.clone()),
                KeyBound::After(second.clone()),
                KeyBound::BeforeToken(second.token.clone()),
                KeyBound::AfterToken(second.token),
            ] {
                prop_assert_eq!(placed[0].against(&bound), bound.compare(&first).reverse());
            }
        }
    }
}
