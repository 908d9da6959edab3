//! [`MemtableIndexes`]: the indexes of one memtable, which see each row that changes.
//!
//! Entries of a hidden table are written to its memtable while the table's `active` lock is held. An attached index has
//! memory of its own for each memtable.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use ilion_commitlog::Position;
use ilion_env::Env;
use ilion_index::{MemtableIndex, SecondaryIndex, Storage, When};
use ilion_memtable::{Memtable, Observed};
use ilion_rows::{DecoratedKey, RowChange};
use parking_lot::MappedRwLockReadGuard;

use crate::clock::now_secs;

/// A hidden table, as the writer of its entries uses it.
pub(crate) trait EntryTable: Send + Sync {
    /// The memtable that receives writes. It is not frozen while the guard is held.
    fn memtable(&self) -> MappedRwLockReadGuard<'_, Arc<Memtable>>;

    /// The same as [`Self::memtable`], for a thread that may already hold the lock.
    fn memtable_again(&self) -> MappedRwLockReadGuard<'_, Arc<Memtable>>;

    /// A timestamp above those of all entries.
    fn entry_micros(&self, env: &dyn Env) -> i64;

    /// Freezes the memtable, unless it is empty, together with that of its table.
    fn freeze_beside(&self, env: &dyn Env, upto: Position);
}

/// The times that new entries get.
pub(crate) struct Writing<'w> {
    pub hidden: &'w dyn EntryTable,
    pub env: &'w dyn Env,
}

impl When for Writing<'_> {
    fn now_secs(&self) -> u32 {
        now_secs(self.env)
    }

    fn entry_micros(&self) -> i64 {
        self.hidden.entry_micros(self.env)
    }
}

/// The indexes of one memtable.
#[derive(Default)]
pub(crate) struct MemtableIndexes {
    /// Indexes with their hidden tables.
    hidden: Vec<(Arc<dyn SecondaryIndex>, Arc<dyn EntryTable>)>,
    attached: Vec<(Arc<dyn SecondaryIndex>, Arc<dyn MemtableIndex>)>,
    attached_bytes: AtomicIsize,
    observed: Observed,
}

impl MemtableIndexes {
    pub(crate) fn observing(observed: Observed) -> Self {
        Self {
            observed,
            ..Self::default()
        }
    }

    pub(crate) fn add_hidden(&mut self, index: Arc<dyn SecondaryIndex>, table: Arc<dyn EntryTable>) {
        self.hidden.push((index, table));
    }

    pub(crate) fn attach(&mut self, index: Arc<dyn SecondaryIndex>, memtable: Arc<dyn MemtableIndex>) {
        self.attached.push((index, memtable));
    }

    /// The hidden tables, whose memtables are frozen together with this one.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Arc<dyn EntryTable>> {
        self.hidden.iter().map(|(_, table)| table)
    }

    /// The columns of the row before a change that the indexes need.
    pub(crate) fn observed(&self) -> &Observed {
        &self.observed
    }

    pub(crate) fn has_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    /// The memory of an attached index; `None` if there is no such index.
    pub(crate) fn attached(&self, index: &str) -> Option<&Arc<dyn MemtableIndex>> {
        let (_, found) = self
            .attached
            .iter()
            .find(|(known, _)| known.definition().schema.name == index)?;
        Some(found)
    }

    /// Bytes of attached indexes.
    pub(crate) fn attached_bytes(&self) -> usize {
        usize::try_from(self.attached_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes of all indexes, attached and hidden.
    pub(crate) fn size_bytes(&self) -> usize {
        let of_hidden = self.hidden().map(|hidden| hidden.memtable_again().size_bytes());
        of_hidden.sum::<usize>() + self.attached_bytes()
    }

    /// True if the hidden tables have no entries to flush.
    pub(crate) fn is_empty(&self) -> bool {
        self.hidden().all(|hidden| hidden.memtable_again().is_empty())
    }

    /// Updates the indexes for a changed row; returns by how many bytes memory grew. `scratch` is a buffer to reuse.
    ///
    /// Requires: the memtable's `active` lock is held.
    pub(crate) fn take_in(
        &self,
        env: &dyn Env,
        key: &DecoratedKey,
        change: RowChange<'_>,
        scratch: &mut Vec<u8>,
    ) -> isize {
        let mut grown = 0;
        for (index, hidden) in &self.hidden {
            if let Storage::HiddenTable(index) = index.storage() {
                let memtable = hidden.memtable();
                let when = Writing {
                    hidden: &**hidden,
                    env,
                };
                index.each_entry(key, change, &when, &mut |place, entries| {
                    grown += memtable.apply_entries(place, entries, scratch);
                });
            }
        }
        for (_, index) in &self.attached {
            let bytes = index.apply(key, change, scratch);
            self.attached_bytes.fetch_add(bytes, Ordering::Relaxed);
            grown += bytes;
        }
        grown
    }
}
