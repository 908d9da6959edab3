//! Whether an SSTable has a key, and where the partitions of a range start, from memory only: first and last key, token map,
//! Bloom filter. No I/O on Data.db or the index.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{DecoratedKey, KeyBound, KeyRange};
use ilion_types::{Partitioner, Token};

use super::SSTable;
use crate::KeyHash;
use crate::tokens::{Candidates, TokenMap};

/// Where the partitions of a range begin.
#[derive(Debug)]
pub(crate) enum Begin {
    /// No partition of the range is before `bound`. `rank` is the number of partitions before it, by the token map.
    NotBefore { bound: DecoratedKey, rank: Option<u64> },
    /// The range begins with the partition that has this rank in the token map.
    Exactly { map: Arc<TokenMap>, rank: u64 },
}

impl Begin {
    /// A lower bound of the keys of these partitions, if it is known.
    pub(crate) fn bound(&self) -> Option<&DecoratedKey> {
        match self {
            Self::NotBefore { bound, .. } => Some(bound),
            Self::Exactly { .. } => None,
        }
    }
}

/// Whether an SSTable may have a key, from memory only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// No: the key is before the first or after the last key.
    Outside,
    /// No: the token map or the Bloom filter excludes the key.
    Absent,
    /// Perhaps: the key must be looked up.
    Possible(Whereabouts),
}

/// The ranks of the partitions that may have a key; known if the token map was used and they are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts(pub(super) Option<Range<u64>>);

impl Whereabouts {
    /// Any partition may have the key: it must be looked up.
    pub(super) const UNKNOWN: Self = Self(None);

    /// The key may be among the partitions with these ranks.
    pub fn among(partitions: Range<u64>) -> Self {
        Self(Some(partitions))
    }
}

/// The lowest key with a token.
fn least_key(token: Token) -> DecoratedKey {
    DecoratedKey {
        token,
        key: Bytes::new(),
    }
}

impl SSTable {
    /// False if the token map, or else the Bloom filter, excludes the key. No I/O on Data.db or the index.
    pub fn may_have(&self, key: &DecoratedKey) -> bool {
        if self.is_outside(key) {
            return false;
        }
        let by_map = self.with_token_map(|map| map.candidates(&key.token));
        self.whereabouts(by_map, || KeyHash::of(&key.key)).is_some()
    }

    /// Whether the SSTable may have a key; `hash` is the hash of the key.
    #[inline]
    pub fn presence(&self, key: &DecoratedKey, hash: &KeyHash) -> Presence {
        if self.is_outside(key) {
            return Presence::Outside;
        }
        self.whereabouts(self.seen_by_map(hash), || *hash)
            .map_or(Presence::Absent, Presence::Possible)
    }

    /// False if the token map or the Bloom filter excludes the key.
    #[inline]
    pub fn may_contain(&self, hash: &KeyHash) -> bool {
        self.whereabouts(self.seen_by_map(hash), || *hash).is_some()
    }

    /// The partitions that may have a key: by the result of the token map, else by the Bloom filter, which needs the hash of
    /// the key.
    #[inline]
    fn whereabouts(&self, by_map: Option<Candidates>, hash: impl FnOnce() -> KeyHash) -> Option<Whereabouts> {
        match by_map {
            Some(Candidates::These(range)) => (!range.is_empty()).then_some(Whereabouts(Some(range))),
            Some(Candidates::TooMany) => Some(Whereabouts::UNKNOWN),
            None => self.passes_filter(&hash()).then_some(Whereabouts::UNKNOWN),
        }
    }

    fn is_hashed(&self) -> bool {
        self.parts.options.partitioner == Partitioner::Murmur3
    }

    /// The partitions that may have a hash, by the token map. `None` without a map, or if partitions are not ordered by the hash.
    #[inline]
    fn seen_by_map(&self, hash: &KeyHash) -> Option<Candidates> {
        let token = hash.token().filter(|_| self.is_hashed())?;
        self.with_token_map(|map| map.candidates(&token))
    }

    /// True if the Bloom filter does not exclude the key. A filter that cannot be read excludes no key.
    fn passes_filter(&self, hash: &KeyHash) -> bool {
        match self.parts.filter() {
            Ok(filter) => filter.is_none_or(|filter| filter.may_contain(*hash)),
            Err(_) => true,
        }
    }

    pub(crate) fn is_outside(&self, key: &DecoratedKey) -> bool {
        key < self.first_key() || key > self.last_key()
    }

    /// A lower bound of the partitions of a range; `None` if the range has none. With a token map, this is the token of the next
    /// partition (as far as the map has its bits). No I/O on Data.db or the index.
    pub fn lower_bound(&self, range: &KeyRange) -> Option<DecoratedKey> {
        self.begin_of(range)?.bound().cloned()
    }

    /// As [`Self::lower_bound`], with the rank in the token map.
    pub(crate) fn begin_of(&self, range: &KeyRange) -> Option<Begin> {
        if range.misses(self.first_key(), self.last_key()) {
            return None;
        }
        let start = match &range.start {
            KeyBound::Start | KeyBound::End => self.first_key().clone(),
            KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => least_key(token.clone()),
            KeyBound::Before(key) | KeyBound::After(key) => key.clone(),
        };
        let (rank, mut bound) = match self.with_token_map(|map| map.next_above(&range.start)) {
            None => (None, start),
            Some((_, None)) => return None,
            Some((rank, Some(floor))) => (Some(rank), start.max(least_key(floor))),
        };
        if bound < *self.first_key() {
            bound = self.first_key().clone();
        }
        // Not beyond if the tokens are equal: the end may have a higher key.
        let is_beyond = range.end.token().is_some_and(|end| *end < bound.token);
        (!is_beyond).then_some(Begin::NotBefore { bound, rank })
    }
}
