//! A search in a hidden table.

use std::cmp::Ordering;
use std::sync::Arc;

use ilion_index::{
    Candidate, Candidates, EntryMark, Estimate, HiddenTable, NoCandidates, Place, Predicate, RowPart,
    Storage, Union,
};
use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, KeyRange, ReadError, ReadPurge, Row,
    Slice, Unfiltered,
};
use ilion_schema::TableSchema;

use super::beside::Beside;
use crate::shared::Shared;
use crate::table_store::{LiveIndex, TableStore};
use crate::{Error, Result};

/// Number of candidates that are skipped one by one; after that, a cursor is opened at the place to skip to.
const STEPS_MAX: usize = 16;
/// Number of collected stale entries from which on they are removed.
const STALE_MAX: usize = 1024;

impl Shared {
    /// Rows that may match, from a hidden table.
    pub(crate) fn search_hidden(
        self: &Arc<Self>,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>> {
        let (index, hidden) = hidden_of(live)?;
        let comparator = ClusteringComparator::of(&live.index.definition().table);
        let since = store.import_mark();
        let mut inputs: Vec<Box<dyn Candidates>> = Vec::new();
        for key in keys_of(index, hidden, predicate)? {
            let search = HiddenSearch {
                shared: self.clone(),
                store: store.clone(),
                live: live.clone(),
                hidden: hidden.clone(),
                table: hidden.schema(),
                comparator: comparator.clone(),
                key,
                cursor: None,
                given: None,
                waiting: None,
                since,
                stale: Vec::new(),
            };
            inputs.push(Box::new(search));
        }
        Ok(match inputs.len() {
            0 => Box::new(NoCandidates),
            1 => inputs.remove(0),
            _ => Box::new(Union::of(inputs, comparator)),
        })
    }

    /// About how many rows a search in a hidden table returns.
    pub(crate) fn estimate_hidden(&self, live: &LiveIndex, predicate: &Predicate) -> Result<Estimate> {
        let (index, hidden) = hidden_of(live)?;
        let mut estimate = Estimate::default();
        let view = hidden.view();
        for range in ranges_of(index, predicate)? {
            for memtable in &view.memtables {
                estimate.rows += memtable.entry_count(&range).unwrap_or(0) as u64;
            }
            for sstable in view.sstables.iter().map(|live| &live.sstable) {
                if sstable
                    .lower_bound(&range)
                    .is_some_and(|key| may_have(sstable, &range, &key))
                {
                    estimate.rows += sstable
                        .stats()
                        .total_rows
                        .div_ceil(sstable.estimated_keys().max(1));
                    estimate.files += 1;
                }
            }
        }
        Ok(estimate)
    }

    /// Removes stale entries, unless the index was dropped meanwhile, writes are refused for good, or the rows of the entries may be in a
    /// running import: then a later search finds the entries again.
    fn remove_entries(&self, store: &TableStore, live: &LiveIndex, since: u64, stale: &mut Vec<EntryMark>) {
        let Ok((index, hidden)) = hidden_of(live) else {
            return;
        };
        if live.is_dropped() || self.failure().is_some() {
            return stale.clear();
        }
        let beside = Beside {
            shared: self,
            store,
            hidden,
            since,
        };
        beside.remove(index, stale);
        stale.clear();
    }
}

fn may_have(sstable: &ilion_sstable::SSTable, range: &KeyRange, first: &DecoratedKey) -> bool {
    match range == &KeyRange::exactly(first) {
        true => sstable.may_have(first),
        false => !range.misses(sstable.first_key(), sstable.last_key()),
    }
}

fn heads_only() -> ClusteringFilter {
    ClusteringFilter {
        slices: Vec::new(),
        ..ClusteringFilter::all()
    }
}

fn hidden_of(live: &LiveIndex) -> Result<(&dyn HiddenTable, &Arc<TableStore>)> {
    match (live.index.storage(), &live.hidden) {
        (Storage::HiddenTable(index), Some(hidden)) => Ok((index, hidden)),
        _ => Err(Error::Refused(format!(
            "index {} has no hidden table",
            live.name()
        ))),
    }
}

fn ranges_of(index: &dyn HiddenTable, predicate: &Predicate) -> Result<Vec<KeyRange>> {
    index
        .lookup(predicate)
        .ok_or_else(|| Error::Refused("the index does not serve the restriction".to_owned()))
}

/// The partitions of the hidden table to read. A range has only few partitions: equal values with different bytes.
fn keys_of(index: &dyn HiddenTable, hidden: &TableStore, predicate: &Predicate) -> Result<Vec<DecoratedKey>> {
    let mut keys = Vec::new();
    for range in ranges_of(index, predicate)? {
        match &range.start {
            ilion_rows::KeyBound::Before(key) if range == KeyRange::exactly(key) => keys.push(key.clone()),
            _ => {
                let mut heads = hidden.read_range(&hidden.schema(), &range, &heads_only());
                while let Some(head) = heads.next_partition()? {
                    keys.push(head.key);
                }
            }
        }
    }
    Ok(keys)
}

/// The entries of one value.
struct HiddenSearch {
    shared: Arc<Shared>,
    /// The table of the index.
    store: Arc<TableStore>,
    live: Arc<LiveIndex>,
    hidden: Arc<TableStore>,
    table: Arc<TableSchema>,
    /// Comparator of the clusterings of `store`.
    comparator: ClusteringComparator,
    key: DecoratedKey,
    /// `None` until the first entry is read.
    cursor: Option<ReadPurge<Box<dyn Cursor>>>,
    /// The last place that was returned, to skip repetitions: several entries may lead to one row.
    given: Option<Place>,
    /// A candidate that was read, but not returned yet.
    waiting: Option<Candidate>,
    /// [`TableStore::import_mark`] of the table when the search began.
    since: u64,
    stale: Vec<EntryMark>,
}

impl HiddenSearch {
    fn index(&self) -> std::result::Result<&dyn HiddenTable, ReadError> {
        match self.live.index.storage() {
            Storage::HiddenTable(index) => Ok(index),
            Storage::Attached(_) => Err(ReadError::Aborted("the index has no hidden table")),
        }
    }

    /// Opens a cursor at a bound.
    fn open(&mut self, start: Bound) -> std::result::Result<(), ReadError> {
        let slice = Slice {
            start,
            end: Bound::top(),
        };
        let filter = ClusteringFilter {
            slices: vec![slice],
            ..ClusteringFilter::all()
        };
        let law = self.shared.own_read_law();
        let source = self
            .hidden
            .read_partition(&self.table, &self.key, &filter, law.now_secs)?;
        let mut cursor = ReadPurge::new(source, self.table.clone(), law);
        cursor.next_partition()?;
        self.cursor = Some(cursor);
        Ok(())
    }

    /// The next entry, which may lead to the same row as the last one.
    fn read(&mut self) -> std::result::Result<Option<Candidate>, ReadError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        if self.cursor.is_none() {
            self.open(Bound::bottom())?;
        }
        while let Some(unfiltered) = match &mut self.cursor {
            Some(cursor) => cursor.next_unfiltered()?,
            None => None,
        } {
            if let Unfiltered::Row(row) = unfiltered {
                return self.index()?.candidate(&self.key, &row).map(Some);
            }
        }
        Ok(None)
    }

    /// True if the row of this place, or the static row of its partition, was already returned.
    fn is_given(&self, place: &Place) -> bool {
        self.given.as_ref().is_some_and(|given| {
            given.key == place.key
                && (given.row == RowPart::Static || given.compare(place, &self.comparator) == Ordering::Equal)
        })
    }
}

impl Candidates for HiddenSearch {
    fn next(&mut self) -> std::result::Result<Option<Candidate>, ReadError> {
        while let Some(candidate) = self.read()? {
            if !self.is_given(&candidate.place) {
                self.given = Some(candidate.place.clone());
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    fn seek(&mut self, place: &Place) -> std::result::Result<(), ReadError> {
        if self.cursor.is_some() {
            for _ in 0..STEPS_MAX {
                let Some(candidate) = self.read()? else {
                    return Ok(());
                };
                if candidate.place.compare(place, &self.comparator) != Ordering::Less {
                    self.waiting = Some(candidate);
                    return Ok(());
                }
            }
        }
        let start = self.index()?.seek(place);
        self.open(start)
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        let (Some(entry), Ok(index)) = (&candidate.entry, self.index()) else {
            return;
        };
        if !entry.is_expiring && index.is_stale(entry, row) {
            self.stale.push(entry.clone());
        }
        if self.stale.len() >= STALE_MAX {
            self.shared
                .remove_entries(&self.store, &self.live, self.since, &mut self.stale);
        }
    }
}

impl Drop for HiddenSearch {
    fn drop(&mut self) {
        if !self.stale.is_empty() {
            self.shared
                .remove_entries(&self.store, &self.live, self.since, &mut self.stale);
        }
    }
}
