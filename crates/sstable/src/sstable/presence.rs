//! Whether an SSTable has a key, and where the partitions of a range begin, as far as memory tells: by its first and last key, its token
//! map, or its Bloom filter. No I/O on Data.db or the index.

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
pub struct Begin {
    /// There, or before.
    pub(crate) bound: DecoratedKey,
    /// How many partitions the token map has before it.
    pub(crate) rank: Option<u64>,
    /// The token map that numbers them, if it is not to be that of the SSTable at that time.
    pub(crate) map: Option<Arc<TokenMap>>,
}

impl Begin {
    /// The map and the number of the first partition, if that is exactly where the range begins.
    pub(crate) fn exactly(&self) -> Option<(&TokenMap, u64)> {
        Some((self.map.as_deref()?, self.rank?))
    }

    /// A key that none of the partitions is before.
    pub fn bound(&self) -> &DecoratedKey {
        &self.bound
    }
}

/// Whether an SSTable has a key, as far as it is known from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is before the first key or after the last.
    Outside,
    /// The token map or the Bloom filter does not have it.
    Absent,
    /// It may be there.
    Possible(Whereabouts),
}

/// Where a key may be: which partitions look like it, if the token map was asked and there are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts(pub(super) Option<Range<u64>>);

impl Whereabouts {
    /// It has to be looked up.
    pub(super) const UNKNOWN: Self = Self(None);

    /// Among the partitions with these numbers, in order.
    pub fn among(partitions: Range<u64>) -> Self {
        Self(Some(partitions))
    }
}

/// The least key with a token.
fn least_key(token: Token) -> DecoratedKey {
    DecoratedKey {
        token,
        key: Bytes::new(),
    }
}

impl SSTable {
    /// False if it does not have the key: by the token map, else by the Bloom filter. No I/O on Data.db or the index.
    pub fn may_have(&self, key: &DecoratedKey) -> bool {
        if self.is_outside(key) {
            return false;
        }
        let by_map = self.ask_token_map(|map| map.candidates(&key.token));
        self.whereabouts(by_map, || KeyHash::of(&key.key)).is_some()
    }

    /// What is known of a key from memory; the hash is that of the key.
    #[inline]
    pub fn presence(&self, key: &DecoratedKey, hash: &KeyHash) -> Presence {
        if self.is_outside(key) {
            return Presence::Outside;
        }
        self.whereabouts(self.seen_by_map(hash), || *hash)
            .map_or(Presence::Absent, Presence::Possible)
    }

    /// False if its token map or Bloom filter knows that it does not have the key.
    #[inline]
    pub fn may_contain(&self, hash: &KeyHash) -> bool {
        self.whereabouts(self.seen_by_map(hash), || *hash).is_some()
    }

    /// Where a key may be, if anywhere: by what its token map said, else by the Bloom filter, which asks for the hash of the key.
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

    /// What the token map knows of a hash, if there is one and partitions are ordered by it.
    #[inline]
    fn seen_by_map(&self, hash: &KeyHash) -> Option<Candidates> {
        let token = hash.token().filter(|_| self.is_hashed())?;
        self.ask_token_map(|map| map.candidates(&token))
    }

    /// A filter that cannot be read lets everything pass.
    fn passes_filter(&self, hash: &KeyHash) -> bool {
        match self.parts.filter() {
            Ok(filter) => filter.is_none_or(|filter| filter.may_contain(*hash)),
            Err(_) => true,
        }
    }

    pub(crate) fn is_outside(&self, key: &DecoratedKey) -> bool {
        key < self.first_key() || key > self.last_key()
    }

    /// Where the partitions of a range begin, or before: nothing if it has none there. With a token map that is the token of
    /// the next partition (as far as the map has it); no I/O on Data.db or the index.
    pub fn lower_bound(&self, range: &KeyRange) -> Option<DecoratedKey> {
        self.begin_of(range).map(|begin| begin.bound)
    }

    /// The same, with the place in the token map.
    pub fn begin_of(&self, range: &KeyRange) -> Option<Begin> {
        if range.misses(self.first_key(), self.last_key()) {
            return None;
        }
        let start = match &range.start {
            KeyBound::Start | KeyBound::End => self.first_key().clone(),
            KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => least_key(token.clone()),
            KeyBound::Before(key) | KeyBound::After(key) => key.clone(),
        };
        let (rank, mut bound) = match self.ask_token_map(|map| map.next_above(&range.start)) {
            None => (None, start),
            Some((_, None)) => return None,
            Some((rank, Some(floor))) => (Some(rank), start.max(least_key(floor))),
        };
        if bound < *self.first_key() {
            bound = self.first_key().clone();
        }
        // The end may be this very token, of a greater key.
        let is_beyond = range.end.token().is_some_and(|end| *end < bound.token);
        (!is_beyond).then_some(Begin {
            bound,
            rank,
            map: None,
        })
    }

    /// About how many partitions it has in a range, from memory; exactly but for those whose tokens look like a bound's.
    /// Without a token map, all if the range meets them.
    pub fn partition_count_in(&self, range: &KeyRange) -> u64 {
        if range.misses(self.first_key(), self.last_key()) {
            return 0;
        }
        let count =
            self.ask_token_map(|map| Ok(map.rank(&range.end)?.saturating_sub(map.rank(&range.start)?)));
        count.unwrap_or(self.estimated_keys())
    }
}
