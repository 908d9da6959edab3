//! The terms of one memtable: entries in sorted runs, in shards by term.
//!
//! A search keeps the runs of the moment when it began and holds no lock: it gives what was there then.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use ilion_rows::{CellRef, Clustering, DecoratedKey, Row};
use ilion_runs::{Coming, Kind, Record, Run, SharedRuns, Stretch, head_of};
use ilion_schema::ColumnId;
use ilion_types::{Partitioner, Token};

use super::entry::{Entry, KeptEntry, Layout, PlaceHeader, TermOrder};
use super::indexed::Indexed;
use super::lookup::TermRange;
use super::memtable_search::{ByPasses, ByTerm};
use super::term::cut;
use crate::{Candidates, Estimate, MemtableIndex, NoCandidates, Predicate, Ranked, RowChange};

/// Shards; terms are spread over them.
const SHARDS: usize = 16;

/// The entries.
pub(super) struct Shards {
    shards: [SharedRuns; SHARDS],
    pub(super) layout: Layout,
    /// That of the keys, known with the first one.
    partitioner: OnceLock<Partitioner>,
}

impl Shards {
    fn new(layout: Layout) -> Self {
        Self {
            shards: std::array::from_fn(|_| SharedRuns::default()),
            layout,
            partitioner: OnceLock::new(),
        }
    }

    pub(super) fn partitioner(&self) -> Partitioner {
        self.partitioner.get().copied().unwrap_or_default()
    }

    /// The shard of a term, whose head is given.
    #[inline]
    fn of(&self, term: &[u8], head: u64) -> &SharedRuns {
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut hash = mix(0, head);
        if let Some(tail) = term.get(size_of::<u64>()..) {
            let (chunks, rest) = tail.as_chunks::<8>();
            let words = chunks.iter().map(|chunk| u64::from_be_bytes(*chunk));
            hash = mix(words.fold(hash, mix), head_of(rest));
        }
        &self.shards[usize::try_from(hash >> 60).unwrap_or(0) % SHARDS]
    }

    /// Runs that have the entries of a range, whose ends are given.
    pub(super) fn runs(&self, range: &TermRange, ends: &Ends) -> Vec<Arc<Run>> {
        match range.only() {
            Some(term) => self.of(term, head_of(term)).snapshot(&TermOrder, ends),
            None => {
                let shards = self.shards.iter();
                shards
                    .flat_map(|shard| shard.snapshot(&TermOrder, ends))
                    .collect()
            }
        }
    }

    /// Puts in that a place has a term, or has it no more.
    #[inline]
    fn put(&self, term: &[u8], header: PlaceHeader, place: &[u8], is_there: bool) -> isize {
        let coming = Coming {
            head: head_of(term),
            kind: if is_there { Kind::First } else { Kind::Again },
            len: PlaceHeader::entry_len(term, place),
        };
        let shard = self.of(term, coming.head);
        shard.push(
            &TermOrder,
            coming,
            |()| {},
            |room| {
                header.encode(term, place, is_there, |bytes| room.bytes(bytes));
            },
        )
    }
}

/// The ends of a range of terms as entries.
pub(super) struct Ends {
    from: KeptEntry,
    /// Nothing: all that follow.
    to: Option<KeptEntry>,
}

impl Ends {
    pub(super) fn of(range: &TermRange) -> Self {
        // An empty range ends where it begins.
        let to = match range.is_empty() {
            true => Some(&range.from),
            false => range.to.as_ref(),
        };
        Self {
            from: Layout::before_term(&range.from),
            to: to.map(|to| Layout::before_term(to)),
        }
    }

    /// The records of a run between them.
    pub(super) fn stretch(&self, run: &Run) -> std::ops::Range<usize> {
        let from = run.find(0, run.len(), |record| self.is_before_start(record));
        from..run.find(from, run.len(), |record| self.is_before_end(record))
    }
}

impl Stretch for Ends {
    fn heads(&self) -> RangeInclusive<u64> {
        let to = self.to.as_ref();
        self.from.as_entry().head()..=to.map_or(u64::MAX, |to| to.as_entry().head())
    }

    fn is_before_start(&self, record: Record<'_>) -> bool {
        Entry::from(record).compare(&self.from.as_entry()).is_lt()
    }

    fn is_before_end(&self, record: Record<'_>) -> bool {
        let to = self.to.as_ref();
        to.is_none_or(|to| Entry::from(record).compare(&to.as_entry()).is_lt())
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

    /// Appends where the entries of a row say that it is.
    #[inline]
    fn encode_place(&self, key: &DecoratedKey, row: &Row, out: &mut Vec<u8>) -> PlaceHeader {
        let is_whole = self.indexed.is_of_partitions() || self.is_static(row);
        let clustering: Option<&Clustering> = (!is_whole).then_some(&row.clustering);
        self.shards.layout.encode_place(key, clustering, out)
    }

    /// Puts in every term of a row.
    fn put_all(&self, key: &DecoratedKey, row: &Row, is_there: bool, scratch: &mut Vec<u8>) -> isize {
        let (mut grown, mut place) = (0, Vec::new());
        let header = self.encode_place(key, row, &mut place);
        let Ok(()) = self
            .indexed
            .each_term(key, row, self.is_static(row), scratch, &mut |term| {
                grown += self.shards.put(term, header, &place, is_there);
                Ok::<(), Infallible>(())
            });
        grown
    }

    fn terms(&self, key: &DecoratedKey, row: &Row, scratch: &mut Vec<u8>) -> BTreeSet<Vec<u8>> {
        let mut terms = BTreeSet::new();
        let Ok(()) = self
            .indexed
            .each_term(key, row, self.is_static(row), scratch, &mut |term| {
                terms.insert(term.to_vec());
                Ok::<(), Infallible>(())
            });
        terms
    }

    /// As a row of several terms, or of one that is not a cell.
    fn apply_changed(&self, key: &DecoratedKey, before: &Row, after: &Row, scratch: &mut Vec<u8>) -> isize {
        if self.indexed.has_one_term() {
            return self.put_all(key, before, false, scratch) + self.put_all(key, after, true, scratch);
        }
        let mut place = Vec::new();
        let header = self.encode_place(key, after, &mut place);
        let (old, new) = (self.terms(key, before, scratch), self.terms(key, after, scratch));
        let added = new
            .difference(&old)
            .map(|term| self.shards.put(term, header, &place, true));
        let removed = old
            .difference(&new)
            .map(|term| self.shards.put(term, header, &place, false));
        added.chain(removed).sum()
    }

    /// As a row whose only term is of a cell.
    #[inline]
    fn apply_cell(
        &self,
        column: ColumnId,
        key: &DecoratedKey,
        change: RowChange<'_>,
        scratch: &mut Vec<u8>,
    ) -> isize {
        let after = change.after;
        let old = change.cell_before(column).and_then(value_of);
        let new = after.cell(column).and_then(value_of);
        if old == new || self.is_static(after) != self.indexed.is_of_static() {
            return 0;
        }
        scratch.clear();
        let header = self.encode_place(key, after, scratch);
        let place_len = scratch.len();
        let mut grown = 0;
        for (value, is_there) in [(old, false), (new, true)] {
            if let Some(value) = value {
                self.indexed.encode_term(value, scratch);
                let (place, term) = scratch.split_at(place_len);
                grown += self.shards.put(cut(term), header, place, is_there);
                scratch.truncate(place_len);
            }
        }
        grown
    }

    /// Entries in a range; those that changed are perhaps counted more than once.
    fn count(&self, range: &TermRange) -> u64 {
        let ends = Ends::of(range);
        let runs = self.shards.runs(range, &ends);
        runs.iter().map(|run| ends.stretch(run).len() as u64).sum()
    }
}

impl MemtableIndex for MemtableTerms {
    fn apply(&self, key: &DecoratedKey, change: RowChange<'_>, scratch: &mut Vec<u8>) -> isize {
        if self.shards.partitioner.get().is_none() {
            self.shards.partitioner.get_or_init(|| partitioner_of(&key.token));
        }
        if let Some(column) = self.indexed.only_cell() {
            return self.apply_cell(column, key, change, scratch);
        }
        let after = change.after;
        match change.row_before() {
            None => self.put_all(key, after, true, scratch),
            Some(before) if self.indexed.is_same(&before, after) => 0,
            Some(before) => self.apply_changed(key, &before, after, scratch),
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
            [range] if range.only().is_some() => Box::new(ByTerm::new(self.shards.clone(), range)),
            _ => Box::new(ByPasses::new(self.shards.clone(), &ranges)),
        }
    }

    fn nearest(&self, _vector: &[f32]) -> Option<Box<dyn Ranked>> {
        None
    }
}

/// The value of a cell, if it has one.
#[inline]
fn value_of(cell: CellRef<'_>) -> Option<&[u8]> {
    (!cell.is_tombstone()).then_some(cell.value)
}

fn partitioner_of(token: &Token) -> Partitioner {
    match token {
        Token::Murmur3(_) => Partitioner::Murmur3,
        // Hidden tables, whose tokens are comparable, have no indexes.
        Token::Bytes(_) | Token::Comparable(_) => Partitioner::ByteOrdered,
        Token::Random(_) => Partitioner::Random,
    }
}
