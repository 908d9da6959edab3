//! The read path: a cursor per source that may have what is wanted, merged.

use std::sync::Arc;

use ilion_rows::{
    ClusteringFilter, Cursor, DecoratedKey, Direction, KeyRange, MergeCursor, PartitionHead, ReadError,
    Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{KeyHash, Scan};

use crate::table_store::TableStore;
use crate::view::LiveSSTable;

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

impl TableStore {
    /// One partition of all sources.
    pub(crate) fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, ReadError> {
        let filter = Arc::new(filter.clone());
        let view = self.view();
        let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
        for memtable in &view.memtables {
            if let Some(cursor) = memtable.partition(key, &filter) {
                sources.push(Box::new(cursor));
            }
        }
        if !view.sstables.is_empty() {
            let hash = KeyHash::of(&key.key);
            for live in &view.sstables {
                let sstable = &live.sstable;
                if sstable.first_key() > key || sstable.last_key() < key || !sstable.may_contain(&hash) {
                    continue;
                }
                if let Some(cursor) = sstable.partition(table, key, &filter)? {
                    sources.push(Box::new(Held {
                        cursor,
                        _sstable: live.clone(),
                    }));
                }
            }
        }
        Ok(merged(sources, table, Direction::of(filter.reversed)))
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
