//! [`Memtable`]: shards by token, writes, counts. Reads are in `cursor`.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use ilion_rows::{
    ClusteringComparator, Data, DecoratedKey, Entry as IndexEntry, EntryPlace, KeyRange, Mutation,
    PartitionUpdate, RowChange,
};
use ilion_schema::TableSchema;
use ilion_types::Token;
use parking_lot::RwLock;

use crate::arena::Arena;
use crate::entries::{Entries, EntriesInOrder};
use crate::observed::{Observed, Observer};
use crate::partition::{Copies, Partition};
use crate::placed_key::PlacedKey;
use crate::statistics::{LogPosition, Statistics};
use crate::tree::Tree;

/// Approximate bytes that the tree takes for a partition, beside its key and its value: the place, and free room in the leaf.
const BESIDE_ENTRY_BYTES: usize = 24;

pub(crate) struct Shard {
    pub(crate) partitions: Tree<Partition>,
    statistics: Statistics,
    arena: Arena,
}

/// Sorted partitions in memory.
pub struct Memtable {
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    /// By ascending token ranges. A lock is held for one write, or while snapshots are taken.
    shards: Box<[RwLock<Shard>]>,
    /// Used instead of shards if the table is the hidden table of an index; else `None`.
    entries: Option<Arc<Entries>>,
    size_bytes: AtomicIsize,
}

impl Memtable {
    /// An empty memtable with `shards` shards (0 counts as 1).
    pub fn new(table: Arc<TableSchema>, shards: usize) -> Self {
        let shard = || {
            RwLock::new(Shard {
                partitions: Tree::new(),
                statistics: Statistics::NONE,
                arena: Arena::default(),
            })
        };
        let entries = Entries::of(&table, shards).map(Arc::new);
        let sharded = if entries.is_some() { 0 } else { shards.max(1) };
        Self {
            comparator: ClusteringComparator::of(&table),
            table,
            shards: std::iter::repeat_with(shard).take(sharded).collect(),
            entries,
            size_bytes: AtomicIsize::new(0),
        }
    }

    /// The table as it was when the memtable was made.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// The clustering order of the table.
    pub fn comparator(&self) -> &ClusteringComparator {
        &self.comparator
    }

    /// Applies a mutation that is not in a commit log; returns by how many bytes the memtable grew, which is negative if a deletion
    /// freed more than it took. Requires for a hidden table: the mutation has only rows, and they are entries.
    pub fn apply(&self, mutation: &Mutation) -> isize {
        self.apply_with(mutation, None, None)
    }

    /// As [`Self::apply`], for entries of one place in a hidden table; `scratch` is a buffer to reuse.
    ///
    /// # Panics
    /// The table is not the hidden table of an index.
    #[inline]
    pub fn apply_entries(
        &self,
        place: &EntryPlace<'_>,
        changed: &[IndexEntry<'_>],
        scratch: &mut Vec<u8>,
    ) -> isize {
        let entries = self.entries.as_ref();
        assert!(entries.is_some(), "only a hidden table has entries");
        self.grow(entries.map_or(0, |entries| entries.apply(place, changed, scratch)))
    }

    fn grow(&self, grown_bytes: isize) -> isize {
        self.size_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
        grown_bytes
    }

    /// As [`Self::apply`], and notes the position in the commit log.
    pub fn apply_logged(&self, mutation: &Mutation, position: LogPosition) -> isize {
        self.apply_with(mutation, Some(position), None)
    }

    /// As [`Self::apply`], and calls `see` for each row that the mutation changed, under the lock of the shard. The old row has at
    /// least its `observed` columns. Rows that a range deletion covers are not shown. The values may be slices of a client's request:
    /// `see` must copy the bytes that it keeps.
    pub fn apply_observed(
        &self,
        mutation: &Mutation,
        position: Option<LogPosition>,
        observed: &Observed,
        see: &mut dyn FnMut(RowChange<'_>),
    ) -> isize {
        self.apply_with(mutation, position, Some(Observer { observed, see }))
    }

    fn apply_with(
        &self,
        mutation: &Mutation,
        position: Option<LogPosition>,
        observer: Option<Observer<'_>>,
    ) -> isize {
        if let Some(entries) = &self.entries {
            return self.grow(entries.apply_mutation(mutation));
        }
        // Copying happens before the lock is taken.
        let copies = Copies::of(&mutation.update);
        let key = PlacedKey::from(&mutation.key);
        let (min, max) = timestamps(&mutation.update);
        let mut guard = self.shards[self.shard_of(&mutation.key.token)].write();
        let shard = &mut *guard;
        let mut grown = 0;
        let size = key.size_bytes() + size_of::<Partition>() + BESIDE_ENTRY_BYTES;
        let (partition, is_new) = shard.partitions.get_or_insert(key, Partition::default);
        if is_new {
            grown += size.cast_signed();
            shard.statistics.partitions += 1;
        }
        grown += partition.apply(
            &mutation.update,
            copies,
            &mutation.table,
            &self.comparator,
            &mut shard.arena,
            observer,
        );
        let statistics = &mut shard.statistics;
        statistics.operations += 1;
        statistics.min_timestamp_micros = statistics.min_timestamp_micros.min(min);
        statistics.max_timestamp_micros = statistics.max_timestamp_micros.max(max);
        statistics.has_static_rows |= mutation.update.static_row.is_some();
        if let Some(position) = position {
            statistics.cover(position);
        }
        // Under the lock, so that a reader that sees the mutation finds it counted.
        self.grow(grown);
        drop(guard);
        grown
    }

    /// True if a read would find no data here; false if that is not known. Takes no lock.
    #[inline]
    pub fn has_nothing_to_read(&self) -> bool {
        self.entries.is_none() && self.size_bytes.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn entries(&self) -> Option<&Arc<Entries>> {
        self.entries.as_ref()
    }

    /// The index of a token's shard. Higher tokens have the same or a higher index.
    #[inline]
    pub(crate) fn shard_of(&self, token: &Token) -> usize {
        let place = token.code();
        let scaled = (u128::from(place) * self.shards.len() as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    pub(crate) fn shards(&self) -> &[RwLock<Shard>] {
        &self.shards
    }

    /// The entries of a hidden table in their order, for a flush; `None` for other tables. Requires: there are no more writes.
    ///
    /// An entry that was added and removed here is left out, unless an older one may be elsewhere: `may_be_older` is asked with the key
    /// of the indexed row.
    pub fn entries_in_order<F: Fn(&DecoratedKey) -> bool>(
        &self,
        may_be_older: F,
    ) -> Option<EntriesInOrder<F>> {
        let entries = self.entries.clone()?;
        Some(EntriesInOrder::new(entries, may_be_older))
    }

    /// Memory taken, in bytes.
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.size_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Counts over all shards.
    pub fn statistics(&self) -> Statistics {
        let mut all = self
            .entries
            .as_ref()
            .map_or(Statistics::NONE, |entries| entries.statistics());
        for shard in &self.shards {
            all.take_in(&shard.read().statistics);
        }
        all.size_bytes = self.size_bytes();
        all
    }

    /// Number of partitions; an estimate if the table is the hidden table of an index.
    pub fn partition_count(&self) -> usize {
        self.statistics().partitions
    }

    /// Approximate number of entries in a range of a hidden table; `None` for other tables.
    pub fn entry_count(&self, range: &KeyRange) -> Option<usize> {
        self.entries.as_ref().map(|entries| entries.count(range))
    }

    /// True if the memtable has no partitions and no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.as_ref().is_none_or(|entries| entries.is_empty())
            && self.shards.iter().all(|shard| shard.read().partitions.is_empty())
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable")
            .field("table", &self.table.name)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

/// Lowest and highest timestamp of an update.
fn timestamps(update: &PartitionUpdate) -> (i64, i64) {
    let mut range = (i64::MAX, i64::MIN);
    let mut see = |timestamp: i64| range = (range.0.min(timestamp), range.1.max(timestamp));
    if let Some(deletion) = update.deletion {
        see(deletion.marked_at_micros);
    }
    for range in &update.ranges {
        see(range.deletion.marked_at_micros);
    }
    for row in update.static_row.iter().chain(&update.rows) {
        if !row.liveness.is_none() {
            see(row.liveness.timestamp_micros);
        }
        if !row.deletion.is_live() {
            see(row.deletion.marked_at_micros);
        }
        for entry in &row.columns {
            match &entry.data {
                Data::Simple(cell) => see(cell.timestamp_micros),
                Data::Complex(complex) => {
                    if !complex.deletion.is_live() {
                        see(complex.deletion.marked_at_micros);
                    }
                    complex
                        .cells
                        .iter()
                        .for_each(|(_, cell)| see(cell.timestamp_micros));
                }
            }
        }
    }
    range
}
