//! The memtables and SSTables that a read uses: immutable, behind one `Arc`.

use std::sync::Arc;

use ilion_commitlog::Position;
use ilion_memtable::Memtable;

use crate::live_sstable::LiveSSTable;
use crate::memtable_indexes::MemtableIndexes;
use crate::sorted::Sorted;
use crate::tablet_ends::{FirstOfTablets, TabletEnds};

/// The sources of a table at one moment.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// Newest first; the first takes the writes.
    pub memtables: Vec<Arc<Memtable>>,
    /// Frozen memtables with the stretches of the log that they cover, oldest first; they are in `memtables` as well.
    pub frozen: Vec<Arc<Frozen>>,
    /// Ordered by their newest data, newest first.
    pub sstables: Vec<Arc<LiveSSTable>>,
    /// The sorted view of the SSTables; `None` before the first was made.
    pub sorted: Option<Arc<Sorted>>,
    /// The attached indexes of the memtables.
    pub memtable_indexes: Vec<(Arc<Memtable>, Arc<MemtableIndexes>)>,
}

/// A memtable that takes no more writes.
pub(crate) struct Frozen {
    pub memtable: Arc<Memtable>,
    /// The indexes that were updated with its rows.
    pub indexes: Option<Arc<MemtableIndexes>>,
    /// Position in the log from which on the memtable has all records of its table.
    pub since: Position,
    /// Position, exclusive, up to which the memtable has these records.
    pub upto: Position,
    /// Offsets, exclusive, up to which it has the records of the logs of tablets.
    pub tablets_upto: TabletEnds,
    /// The first records of tablets that the memtable has.
    pub tablets: Arc<FirstOfTablets>,
}

impl Frozen {
    /// Bytes of memory that its flush frees: its own, and those of attached indexes. Hidden tables have memtables of their own.
    pub(crate) fn size_bytes(&self) -> usize {
        let attached = self
            .indexes
            .as_ref()
            .map_or(0, |indexes| indexes.attached_bytes());
        self.memtable.size_bytes() + attached
    }
}

impl View {
    /// Memory of its memtables.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables
            .iter()
            .map(|memtable| memtable.size_bytes() as u64)
            .sum()
    }

    /// The sorted view of its SSTables; `None` if there is none or it is broken.
    #[inline]
    pub(crate) fn sorted(&self) -> Option<&Arc<Sorted>> {
        self.sorted.as_ref().filter(|sorted| sorted.order.is_usable())
    }

    /// The same view with these SSTables, which are ordered here.
    pub(crate) fn with_sstables(&self, mut sstables: Vec<Arc<LiveSSTable>>) -> Self {
        sstables.sort_by_key(|live| std::cmp::Reverse(live.sstable.stats().max_timestamp_micros));
        let order = self.sorted().map(|sorted| sorted.order.clone());
        Self {
            sorted: order.and_then(|order| Sorted::of(order, &sstables)),
            sstables,
            ..self.clone()
        }
    }

    /// The same view without a frozen memtable.
    pub(crate) fn without_frozen(&self, gone: &Arc<Frozen>) -> Self {
        let is_gone = |memtable: &Arc<Memtable>| Arc::ptr_eq(memtable, &gone.memtable);
        Self {
            memtables: self.memtables.iter().filter(|m| !is_gone(m)).cloned().collect(),
            frozen: self
                .frozen
                .iter()
                .filter(|f| !Arc::ptr_eq(f, gone))
                .cloned()
                .collect(),
            sstables: self.sstables.clone(),
            sorted: self.sorted.clone(),
            memtable_indexes: self
                .memtable_indexes
                .iter()
                .filter(|(memtable, _)| !is_gone(memtable))
                .cloned()
                .collect(),
        }
    }

    /// Adds a new memtable as the first one.
    pub(crate) fn push_memtable(&mut self, memtable: Arc<Memtable>, indexes: Option<&Arc<MemtableIndexes>>) {
        if let Some(indexes) = indexes.filter(|indexes| indexes.has_attached()) {
            self.memtable_indexes.push((memtable.clone(), indexes.clone()));
        }
        self.memtables.insert(0, memtable);
    }
}
