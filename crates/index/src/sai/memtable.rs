//! The terms of one memtable: sorted sets of entries, in shards by partition.
//!
//! A search takes what it gives from the shards bit by bit and holds no lock meanwhile: it gives what was there when it began
//! and lasts, and perhaps what comes later.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use ilion_rows::{DecoratedKey, Row};
use ilion_types::{Partitioner, Token};
use parking_lot::RwLock;

use super::entry::{Entry, Layout};
use super::indexed::Indexed;
use super::lookup::TermRange;
use super::memtable_search::{ByPasses, ByTerm};
use crate::{Candidates, Estimate, MemtableIndex, NoCandidates, Predicate, Ranked, RowChange};

/// Shards; partitions are spread over them by token.
const SHARDS: usize = 16;
/// What an entry weighs beside its own bytes: its share of a node, and the allocator's.
const ENTRY_BYTES: usize = 60;
/// So many entries of a shard are counted for an estimate.
const COUNTED_MAX: usize = 512;

/// Entries of some partitions.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) set: BTreeSet<Entry>,
    /// Memory for a term being made,
    term: Vec<u8>,
    /// and for an entry.
    scratch: Vec<u8>,
}

/// The entries.
pub(super) struct Shards {
    shards: [RwLock<Shard>; SHARDS],
    pub(super) layout: Layout,
    /// That of the keys, known with the first one.
    partitioner: OnceLock<Partitioner>,
}

impl Shards {
    fn new(layout: Layout) -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            layout,
            partitioner: OnceLock::new(),
        }
    }

    pub(super) fn partitioner(&self) -> Partitioner {
        self.partitioner.get().copied().unwrap_or_default()
    }

    pub(super) fn all(&self) -> &[RwLock<Shard>] {
        &self.shards
    }

    fn of(&self, key: &DecoratedKey) -> &RwLock<Shard> {
        let code = crate::row_numbers::code_of(&key.token);
        // High bits of a hash are as good as any; those of bytes are the same too often.
        let mixed = code.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        &self.shards[usize::try_from(mixed).unwrap_or(0) % SHARDS]
    }
}

/// The terms of one memtable.
pub(super) struct MemtableTerms {
    indexed: Arc<Indexed>,
    shards: Arc<Shards>,
}

impl MemtableTerms {
    pub(super) fn new(indexed: Arc<Indexed>, layout: Layout) -> Self {
        Self {
            indexed,
            shards: Arc::new(Shards::new(layout)),
        }
    }

    fn is_static(&self, row: &Row) -> bool {
        row.clustering.is_empty() && self.shards.layout.has_clusterings()
    }

    fn entry(&self, term: &[u8], key: &DecoratedKey, row: &Row, scratch: &mut Vec<u8>) -> Entry {
        let is_whole = self.indexed.is_of_partitions() || self.is_static(row);
        let clustering = (!is_whole).then_some(&row.clustering);
        self.shards.layout.entry(term, key, clustering, scratch)
    }

    fn terms(&self, key: &DecoratedKey, row: &Row, buffer: &mut Vec<u8>) -> BTreeSet<Vec<u8>> {
        let mut terms = BTreeSet::new();
        let Ok(()) = self
            .indexed
            .each_term(key, row, self.is_static(row), buffer, &mut |term| {
                terms.insert(term.to_vec());
                Ok::<(), Infallible>(())
            });
        terms
    }

    /// Takes in a row that was not there.
    fn apply_new(&self, key: &DecoratedKey, row: &Row, shard: &mut Shard) -> isize {
        let Shard { set, term, scratch } = shard;
        let mut grown = 0;
        let Ok(()) = self
            .indexed
            .each_term(key, row, self.is_static(row), term, &mut |term| {
                grown += insert(set, self.entry(term, key, row, scratch));
                Ok::<(), Infallible>(())
            });
        grown
    }

    fn apply_changed(&self, key: &DecoratedKey, before: &Row, after: &Row, shard: &mut Shard) -> isize {
        let Shard { set, term, scratch } = shard;
        let (old, new) = (self.terms(key, before, term), self.terms(key, after, term));
        let mut grown = 0;
        for term in new.difference(&old) {
            grown += insert(set, self.entry(term, key, after, scratch));
        }
        for term in old.difference(&new) {
            let entry = self.entry(term, key, before, scratch);
            if set.remove(&entry) {
                grown -= weight_of(&entry);
            }
        }
        grown
    }

    /// About how many entries lie in a range, from what some shards have.
    fn count(&self, range: &TermRange) -> u64 {
        let mut counted = 0;
        for (index, shard) in self.shards.all().iter().enumerate() {
            let shard = shard.read();
            let entries = entries_of(&shard.set, range).take(COUNTED_MAX).count();
            if entries == COUNTED_MAX {
                // There may be as many as there are entries.
                return (shard.set.len() * SHARDS) as u64;
            }
            counted += entries;
            if counted > COUNTED_MAX {
                return (counted * SHARDS / (index + 1)) as u64;
            }
        }
        counted as u64
    }
}

fn insert(set: &mut BTreeSet<Entry>, entry: Entry) -> isize {
    let weight = weight_of(&entry);
    if set.insert(entry) { weight } else { 0 }
}

fn weight_of(entry: &Entry) -> isize {
    isize::try_from(entry.rest_len() + ENTRY_BYTES).unwrap_or(isize::MAX)
}

/// The entries of a set with terms in a range.
pub(super) fn entries_of<'s>(
    set: &'s BTreeSet<Entry>,
    range: &TermRange,
) -> impl Iterator<Item = &'s Entry> + use<'s> {
    use std::ops::Bound;
    let from = Bound::Included(Layout::before_term(&range.from));
    let to = match &range.to {
        Some(to) => Bound::Excluded(Layout::before_term(to)),
        None => Bound::Unbounded,
    };
    let is_empty = range.is_empty();
    (!is_empty).then(|| set.range((from, to))).into_iter().flatten()
}

impl MemtableIndex for MemtableTerms {
    fn apply(&self, key: &DecoratedKey, change: RowChange<'_>) -> isize {
        if self.shards.partitioner.get().is_none() {
            self.shards.partitioner.get_or_init(|| partitioner_of(&key.token));
        }
        let after = change.after;
        match change.before {
            None => self.apply_new(key, after, &mut self.shards.of(key).write()),
            Some(before) if self.indexed.is_same(before, after) => 0,
            Some(before) => self.apply_changed(key, before, after, &mut self.shards.of(key).write()),
        }
    }

    fn estimate(&self, predicate: &Predicate) -> Estimate {
        let ranges = self.indexed.lookup(predicate).unwrap_or_default();
        Estimate {
            rows: ranges.iter().map(|range| self.count(range)).sum(),
            files: 0,
        }
    }

    fn search(&self, predicate: &Predicate) -> Box<dyn Candidates> {
        let ranges = self.indexed.lookup(predicate).unwrap_or_default();
        match &ranges[..] {
            [] => Box::new(NoCandidates),
            [range] if range.only().is_some() => Box::new(ByTerm::new(self.shards.clone(), range.clone())),
            _ => Box::new(ByPasses::new(self.shards.clone(), ranges)),
        }
    }

    fn nearest(&self, _vector: &[f32]) -> Option<Box<dyn Ranked>> {
        None
    }
}

fn partitioner_of(token: &Token) -> Partitioner {
    match token {
        Token::Murmur3(_) => Partitioner::Murmur3,
        // Hidden tables, whose tokens are comparable, have no indexes.
        Token::Bytes(_) | Token::Comparable(_) => Partitioner::ByteOrdered,
        Token::Random(_) => Partitioner::Random,
    }
}
