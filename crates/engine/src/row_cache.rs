//! The row cache: the heads of partitions, merged, in memory (`caching = {'rows_per_partition': ...}`).
//!
//! An entry has all rows of a partition, or its first ones up to a clustering; a read that needs more continues in the table
//! behind that clustering. A write drops the entry of its partition after the write is visible. A caller that fills an entry takes a
//! ticket before it reads; a write in between makes the ticket invalid. So no entry is older than an acknowledged write.
//! Compat: `RowCacheKey`, `CachedBTreePartition` of Cassandra 5.0, where a write drops the entry, too.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use ilion_rows::{
    Bound, BoundKind, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, Direction,
    FilterCursor, Marker, PartitionHead, PlainVisitor, ReadError, Row, Slice, Unfiltered,
};
use ilion_schema::TableId;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Number of stripes. The partitions of a stripe share a lock and a count of writes.
const STRIPES: usize = 256;
const ENTRY_OVERHEAD_BYTES: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) table: TableId,
    pub(crate) key: Bytes,
}

/// The head of a partition.
#[derive(Debug)]
pub(crate) struct CachedPartition {
    /// `None` if the partition does not exist.
    head: Option<PartitionHead>,
    unfiltereds: Vec<Unfiltered>,
    /// The clustering of the last cached row; `None` if the whole partition is cached.
    upto: Option<Bound>,
    size_bytes: usize,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<RowKey, Arc<CachedPartition>> for ByBytes {
    fn weight(&self, key: &RowKey, partition: &Arc<CachedPartition>) -> u64 {
        (key.key.len() + partition.size_bytes + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// The count of writes of a partition's stripe at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u64);

pub(crate) struct RowCache {
    partitions: Cache<RowKey, Arc<CachedPartition>, ByBytes>,
    /// The count of writes of each stripe. Locked while an entry is inserted or removed.
    stripes: Box<[Mutex<u64>]>,
    hasher: foldhash::fast::FixedState,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
}

impl RowCache {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            partitions: Cache::with_weighter(
                usize::try_from(capacity_bytes / 1024)
                    .unwrap_or(usize::MAX)
                    .max(16),
                capacity_bytes,
                ByBytes,
            ),
            stripes: std::iter::repeat_with(|| Mutex::new(0)).take(STRIPES).collect(),
            hasher: foldhash::fast::FixedState::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.partitions.capacity()
    }

    /// Sets the capacity, and evicts entries that no longer fit.
    pub(crate) fn resize(&self, capacity_bytes: u64) {
        self.partitions.set_capacity(capacity_bytes);
        // Writes were not counted while there was no cache, so all tickets from before become invalid.
        self.stripes.iter().for_each(|writes| *writes.lock() += 1);
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.partitions.weight()
    }

    pub(crate) fn len(&self) -> usize {
        self.partitions.len()
    }

    /// False if the capacity is 0; then writes need not be counted.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.capacity_bytes() > 0
    }

    fn stripe(&self, table: TableId, key: &Bytes) -> &Mutex<u64> {
        &self.stripes[self.hasher.hash_one((table, key)) as usize % STRIPES]
    }

    pub(crate) fn lookup(&self, table: TableId, key: &Bytes) -> Option<Arc<CachedPartition>> {
        let key = RowKey {
            table,
            key: key.clone(),
        };
        let found = self.partitions.get(&key);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        found
    }

    /// Takes a ticket. Requires: the partition is read only after this.
    pub(crate) fn ticket(&self, table: TableId, key: &Bytes) -> Ticket {
        Ticket(*self.stripe(table, key).lock())
    }

    /// Inserts an entry, unless the partition may have been written since the ticket was taken.
    pub(crate) fn insert(&self, table: TableId, key: &Bytes, ticket: Ticket, read: Arc<CachedPartition>) {
        let writes = self.stripe(table, key).lock();
        if *writes == ticket.0 {
            let key = Bytes::copy_from_slice(key);
            self.partitions.insert(RowKey { table, key }, read);
        }
    }

    /// Drops the entry of a partition, since a write to it is visible.
    pub(crate) fn invalidate(&self, table: TableId, key: &Bytes) {
        let mut writes = self.stripe(table, key).lock();
        *writes += 1;
        self.partitions.remove(&RowKey {
            table,
            key: key.clone(),
        });
    }

    /// Drops all entries of a table, since it was altered, truncated, or got SSTables.
    pub(crate) fn forget_table(&self, table: TableId) {
        if !self.is_enabled() {
            return;
        }
        self.stripes.iter().for_each(|writes| *writes.lock() += 1);
        self.partitions.retain(|key, _| key.table != table);
    }

    /// Drops all entries.
    pub(crate) fn clear(&self) {
        self.stripes.iter().for_each(|writes| *writes.lock() += 1);
        self.partitions.clear();
    }

    /// The keys of the cached partitions.
    pub(crate) fn keys(&self) -> Vec<RowKey> {
        self.partitions.iter().map(|(key, _)| key).collect()
    }

    /// The largest size of one entry, in bytes.
    pub(crate) fn entry_bytes_max(&self) -> usize {
        usize::try_from(self.capacity_bytes() / 8).unwrap_or(usize::MAX)
    }
}

/// How an entry answers a read.
pub(crate) enum Served {
    /// The entry answers the whole read.
    Whole(Box<dyn Cursor>),
    /// The entry answers the first rows of the read; these slices must be read from the table.
    Head(Box<dyn Cursor>, Vec<Slice>),
    /// The entry answers no part of the read.
    No,
}

impl CachedPartition {
    /// Reads at most `rows_max` rows of a cursor over one whole partition. `None` if they take more than `bytes_max`.
    pub(crate) fn read(
        cursor: &mut dyn Cursor,
        rows_max: u32,
        bytes_max: usize,
    ) -> Result<Option<Self>, ReadError> {
        let mut read = Self {
            head: cursor.next_partition()?,
            unfiltereds: Vec::new(),
            upto: None,
            size_bytes: 0,
        };
        let Some(head) = &mut read.head else {
            return Ok(Some(read));
        };
        head.key.key = Bytes::copy_from_slice(&head.key.key);
        head.static_row = head.static_row.take().map(|row| row.detached());
        read.size_bytes = head.key.size_bytes() + head.static_row.as_ref().map_or(0, Row::size_bytes);
        let mut open = None;
        let mut rows = 0;
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            if rows == rows_max {
                read.end_behind_last_row(open);
                break;
            }
            let unfiltered = match unfiltered {
                Unfiltered::Row(row) => {
                    rows += 1;
                    Unfiltered::Row(row.detached())
                }
                Unfiltered::Marker(marker) => {
                    open = marker.start;
                    Unfiltered::Marker(marker)
                }
            };
            read.size_bytes += size_of(&unfiltered);
            if read.size_bytes > bytes_max {
                return Ok(None);
            }
            read.unfiltereds.push(unfiltered);
        }
        Ok(Some(read))
    }

    /// Closes a deleted range that is open behind the last row, and leaves out one that opens behind it.
    fn end_behind_last_row(&mut self, open: Option<DeletionTime>) {
        let mut open = open;
        while let Some(Unfiltered::Marker(marker)) = self.unfiltereds.last() {
            open = marker.end;
            self.unfiltereds.pop();
        }
        let Some(Unfiltered::Row(row)) = self.unfiltereds.last() else {
            return;
        };
        let upto = Bound::new(BoundKind::InclEnd, row.clustering.values().clone());
        if open.is_some() {
            let marker = Marker::at(&upto, open, None, Direction::Forward);
            self.unfiltereds.push(Unfiltered::Marker(marker));
        }
        self.upto = Some(upto);
    }

    /// Answers a read as far as the entry goes.
    pub(crate) fn serve(
        self: &Arc<Self>,
        filter: &ClusteringFilter,
        comparator: &ClusteringComparator,
    ) -> Served {
        let Some(upto) = &self.upto else {
            return Served::Whole(self.cursor(filter, comparator));
        };
        let behind = Bound::new(BoundKind::ExclStart, upto.values.clone());
        let left: Vec<Slice> = filter
            .slices
            .iter()
            .filter(|slice| comparator.compare_bounds(&slice.end, upto).is_gt())
            .map(|slice| match comparator.compare_bounds(&slice.start, upto) {
                std::cmp::Ordering::Less => Slice {
                    start: behind.clone(),
                    end: slice.end.clone(),
                },
                _ => slice.clone(),
            })
            .collect();
        if left.is_empty() {
            return Served::Whole(self.cursor(filter, comparator));
        }
        if filter.reversed || self.head.is_none() {
            return Served::No;
        }
        Served::Head(self.cursor(filter, comparator), left)
    }

    fn cursor(
        self: &Arc<Self>,
        filter: &ClusteringFilter,
        comparator: &ClusteringComparator,
    ) -> Box<dyn Cursor> {
        let cursor = CachedCursor {
            partition: self.clone(),
            is_begun: false,
            at: 0,
        };
        if filter.selects_all() && !filter.reversed {
            return Box::new(cursor);
        }
        Box::new(FilterCursor::new(
            cursor,
            Arc::new(filter.clone()),
            comparator.clone(),
        ))
    }
}

fn size_of(unfiltered: &Unfiltered) -> usize {
    match unfiltered {
        Unfiltered::Row(row) => row.size_bytes(),
        Unfiltered::Marker(_) => std::mem::size_of::<Unfiltered>() + 32,
    }
}

/// A cursor over an entry.
struct CachedCursor {
    partition: Arc<CachedPartition>,
    is_begun: bool,
    at: usize,
}

impl Cursor for CachedCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.at = usize::MAX;
            return Ok(None);
        }
        Ok(self.partition.head.clone())
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.partition.unfiltereds.get(self.at).filter(|_| self.is_begun);
        self.at = self.at.saturating_add(1);
        Ok(next.cloned())
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions plain_rows skip_deleted);
}

/// Opens a cursor over the rest of a partition, behind its cached head.
pub(crate) type OpenRest = Box<dyn FnOnce() -> Result<Box<dyn Cursor>, ReadError> + Send>;

/// A cursor over a cached head, and then over the rest of the partition, which is opened when it is needed.
pub(crate) struct HeadThenRest {
    pub(crate) head: Box<dyn Cursor>,
    pub(crate) open_rest: Option<OpenRest>,
    pub(crate) rest: Option<Box<dyn Cursor>>,
}

impl Cursor for HeadThenRest {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let next = self.head.next_partition()?;
        if next.is_none() {
            self.open_rest = None;
            self.rest = None;
        }
        Ok(next)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if let Some(rest) = &mut self.rest {
            return rest.next_unfiltered();
        }
        if let Some(unfiltered) = self.head.next_unfiltered()? {
            return Ok(Some(unfiltered));
        }
        let Some(open_rest) = self.open_rest.take() else {
            return Ok(None);
        };
        let mut rest = open_rest()?;
        if rest.next_partition()?.is_none() {
            return Ok(None);
        }
        self.rest.insert(rest).next_unfiltered()
    }

    /// The cached head has no plain rows; the rest may have some, once it is open.
    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match &mut self.rest {
            Some(rest) => rest.plain_rows(key, before, visitor),
            None => Ok(0),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match &mut self.rest {
            Some(rest) => rest.skip_deleted(before),
            None => Ok(()),
        }
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions);
}

/// True if the read begins at the head of the partition, so that it may fill an entry.
pub(crate) fn is_head_read(filter: &ClusteringFilter) -> bool {
    let first = filter.slices.first();
    !filter.reversed && first.is_some_and(|slice| slice.start.values.is_empty())
}
