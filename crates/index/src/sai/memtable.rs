//! The terms of one memtable.
//!
//! A search keeps the runs that exist when it starts, and holds no lock: it returns the entries of that moment.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use ilion_rows::{CellRef, Clustering, DecoratedKey, Row};
use ilion_schema::ColumnId;
use ilion_types::{Partitioner, Token};

use super::entry::{Layout, PlaceHeader};
use super::indexed::Indexed;
use super::lookup::TermRange;
use super::memtable_runs::{Ends, Shards};
use super::memtable_search::{ByPasses, ByTerm};
use super::term::cut;
use crate::{Candidates, Estimate, MemtableIndex, NoCandidates, Predicate, Ranked, RowChange, Union};

/// Maximum number of terms whose places are read in order and united. More are read in passes.
const UNITED_MAX: usize = 16;

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

    /// Appends the place of a row as its entries encode it.
    #[inline]
    fn encode_place(&self, key: &DecoratedKey, row: &Row, out: &mut Vec<u8>) -> PlaceHeader {
        let is_whole = self.indexed.is_of_partitions() || self.is_static(row);
        let clustering: Option<&Clustering> = (!is_whole).then_some(&row.clustering);
        self.shards.layout.encode_place(key, clustering, out)
    }

    /// Adds an entry for every term of a row.
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

    /// Applies a change of a row with several terms, or whose term does not come from a cell.
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

    /// Applies a change of a row whose only term comes from a cell.
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

    fn by_term(&self, range: &TermRange) -> Box<dyn Candidates> {
        Box::new(ByTerm::new(self.shards.clone(), range))
    }

    /// Number of entries in a range; changed entries may count more than once.
    fn count(&self, range: &TermRange) -> u64 {
        let ends = Ends::of(range);
        let runs = self.shards.runs(range, &ends);
        runs.iter()
            .map(|run| run.count_living(ends.stretch(run)) as u64)
            .sum()
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
            [range] if range.only().is_some() => self.by_term(range),
            few if few.len() <= UNITED_MAX && few.iter().all(|range| range.only().is_some()) => {
                let inputs = few.iter().map(|range| self.by_term(range)).collect();
                Box::new(Union::of(inputs, self.shards.layout.comparator.clone()))
            }
            _ => Box::new(ByPasses::new(self.shards.clone(), &ranges)),
        }
    }

    fn nearest(&self, _vector: &[f32]) -> Option<Box<dyn Ranked>> {
        None
    }
}

/// The value of a cell; `None` for a tombstone.
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
