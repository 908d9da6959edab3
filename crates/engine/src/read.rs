//! The read path: a cursor per source that may have what is wanted, merged.
//!
//! A read of rows by their whole key asks source after source and ends early (`settle`); any other read of a partition
//! leaves out what a deletion of the whole partition covers, and SSTables whose clusterings lie elsewhere.

use std::sync::Arc;

use ilion_rows::{
    ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, Direction, KeyRange,
    MergeCursor, NO_DELETION_TIME, PartitionHead, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{KeyHash, SSTable, Scan};

use crate::settle::{Settling, Wanted};
use crate::table_store::TableStore;
use crate::view::{LiveSSTable, View};

/// A cursor over an SSTable that keeps its files from being removed.
struct Held<C> {
    cursor: C,
    _sstable: Arc<LiveSSTable>,
}

impl<C: Cursor> Cursor for Held<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.cursor.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.cursor.next_unfiltered()
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.cursor.lower_bound()
    }
}

/// No partition at all.
struct Nothing;

impl Cursor for Nothing {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }
}

/// A cursor whose partition was begun before anyone asked for it.
struct Begun<C> {
    head: Option<PartitionHead>,
    cursor: C,
}

impl<C: Cursor> Begun<C> {
    fn of(mut cursor: C) -> Result<Self, ReadError> {
        let head = cursor.next_partition()?;
        Ok(Self { head, cursor })
    }

    fn deletion(&self) -> DeletionTime {
        self.head
            .as_ref()
            .map_or(DeletionTime::LIVE, |head| head.deletion)
    }
}

impl<C: Cursor> Cursor for Begun<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self.head.take() {
            None => self.cursor.next_partition(),
            head => Ok(head),
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.cursor.next_unfiltered()
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        match &self.head {
            None => self.cursor.lower_bound(),
            Some(head) => Some(head.key.clone()),
        }
    }
}

/// A read of one partition.
struct PointRead<'r> {
    table: &'r Arc<TableSchema>,
    key: &'r DecoratedKey,
    filter: Arc<ClusteringFilter>,
    comparator: &'r ClusteringComparator,
}

impl TableStore {
    /// One partition of all sources that may have something of it. `now_secs` is not before the reader's clock.
    pub(crate) fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
        now_secs: u32,
    ) -> Result<Box<dyn Cursor>, ReadError> {
        let view = self.view();
        let filter = Arc::new(filter.clone());
        let Some(active) = view.memtables.first() else {
            return Ok(Box::new(Nothing));
        };
        if view.sstables.is_empty() {
            let cursors = view.memtables.iter().filter_map(|memtable| {
                let cursor = memtable.partition(key, &filter)?;
                Some(Box::new(cursor) as Box<dyn Cursor>)
            });
            return Ok(merged(cursors.collect(), table, Direction::of(filter.reversed)));
        }
        let read = PointRead {
            table,
            key,
            filter,
            comparator: active.comparator(),
        };
        match Wanted::of(table, &read.filter, read.comparator) {
            Some(wanted) => read.settle(&view, wanted, now_secs),
            None => read.merge(&view),
        }
    }

    /// The partitions of a range, of all sources.
    pub(crate) fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Box<dyn Cursor> {
        let filter = Arc::new(filter.clone());
        let view = self.view();
        let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
        for memtable in &view.memtables {
            sources.push(Box::new(memtable.cursor(range.clone(), filter.clone())));
        }
        for live in &view.sstables {
            if !range.misses(live.sstable.first_key(), live.sstable.last_key()) {
                sources.push(scan(live, table, range, &filter, Scan::Point));
            }
        }
        merged(sources, table, Direction::of(filter.reversed))
    }
}

impl PointRead<'_> {
    /// Asks one source after another until nothing older can be seen.
    fn settle(&self, view: &View, wanted: Wanted, now_secs: u32) -> Result<Box<dyn Cursor>, ReadError> {
        let mut settling = Settling::new(
            self.table,
            self.comparator.clone(),
            &self.filter,
            wanted,
            now_secs,
        );
        for memtable in &view.memtables {
            if let Some(mut cursor) = memtable.partition(self.key, settling.filter()) {
                settling.absorb(&mut cursor)?;
            }
        }
        let hash = KeyHash::of(&self.key.key);
        for live in &view.sstables {
            let sstable = &live.sstable;
            if settling.is_settled(sstable.stats().max_timestamp_micros) {
                break;
            }
            if !self.may_have_key(sstable, &hash)
                || self.has_nothing_of(sstable, settling.filter(), settling.wants_static())
            {
                continue;
            }
            if let Some(mut cursor) = sstable.partition(self.table, self.key, settling.filter())? {
                settling.absorb(&mut cursor)?;
            }
        }
        Ok(match settling.finish() {
            Some(cursor) => Box::new(cursor),
            None => Box::new(Nothing),
        })
    }

    /// Merges all sources, but those that a deletion of the whole partition covers.
    fn merge(&self, view: &View) -> Result<Box<dyn Cursor>, ReadError> {
        let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
        let mut deletion = DeletionTime::LIVE;
        for memtable in &view.memtables {
            if let Some(cursor) = memtable.partition(self.key, &self.filter) {
                let begun = Begun::of(cursor)?;
                deletion = deletion.max(begun.deletion());
                sources.push(Box::new(begun));
            }
        }
        let hash = KeyHash::of(&self.key.key);
        // Whether a partition has a static row matters even if no column of it is wanted.
        let wants_static = self.table.has_statics();
        for live in &view.sstables {
            let sstable = &live.sstable;
            if deletion.deletes(sstable.stats().max_timestamp_micros) {
                break;
            }
            if !self.may_have_key(sstable, &hash) || self.has_nothing_of(sstable, &self.filter, wants_static)
            {
                continue;
            }
            let Some(cursor) = sstable.partition(self.table, self.key, &self.filter)? else {
                continue;
            };
            let held = Held {
                cursor,
                _sstable: live.clone(),
            };
            if may_delete_partitions(sstable) {
                let begun = Begun::of(held)?;
                deletion = deletion.max(begun.deletion());
                sources.push(Box::new(begun));
            } else {
                sources.push(Box::new(held));
            }
        }
        Ok(merged(sources, self.table, Direction::of(self.filter.reversed)))
    }

    #[inline]
    fn may_have_key(&self, sstable: &SSTable, hash: &KeyHash) -> bool {
        sstable.first_key() <= self.key && sstable.last_key() >= self.key && sstable.may_contain(hash)
    }

    /// True if its statistics say that it has nothing that `filter` wants, nor deletes any of it.
    fn has_nothing_of(&self, sstable: &SSTable, filter: &ClusteringFilter, wants_static: bool) -> bool {
        if may_delete_partitions(sstable) || (wants_static && !sstable.header().statics.is_empty()) {
            return false;
        }
        let covered = &sstable.stats().covered_clusterings;
        filter
            .slices
            .iter()
            .all(|slice| slice.misses(covered, self.comparator))
    }
}

/// False if no partition is deleted as a whole in it, or nothing at all.
fn may_delete_partitions(sstable: &SSTable) -> bool {
    let stats = sstable.stats();
    stats.has_partition_deletions && stats.min_local_deletion_secs != NO_DELETION_TIME
}

/// A cursor over a range of one SSTable.
pub(crate) fn scan(
    live: &Arc<LiveSSTable>,
    table: &Arc<TableSchema>,
    range: &KeyRange,
    filter: &Arc<ClusteringFilter>,
    scan: Scan,
) -> Box<dyn Cursor> {
    Box::new(Held {
        cursor: live.sstable.cursor(table, range.clone(), filter.clone(), scan),
        _sstable: live.clone(),
    })
}

fn merged(
    mut sources: Vec<Box<dyn Cursor>>,
    table: &Arc<TableSchema>,
    direction: Direction,
) -> Box<dyn Cursor> {
    match sources.len() {
        0 => Box::new(Nothing),
        1 => sources.remove(0),
        _ => Box::new(MergeCursor::new(sources, table.clone(), direction)),
    }
}

#[cfg(test)]
mod tests;
