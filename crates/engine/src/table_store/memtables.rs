//! The memtables of a table: frozen, replaced, dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::Position;
use ilion_env::Env;
use ilion_memtable::Memtable;
use ilion_schema::TableSchema;

use super::{Active, TableIndexes, TableStore};
use crate::live_sstable::LiveSSTable;
use crate::view::{Frozen, View};

impl TableStore {
    /// Gives the table another schema. Freezes the memtable, since its rows belong to the old schema.
    pub(crate) fn alter(&self, env: &dyn Env, schema: Arc<TableSchema>, barrier: impl FnOnce() -> Position) {
        let mut active = self.active.write();
        self.schema.store(schema);
        self.freeze_locked(env, &mut active, barrier());
    }

    /// Gives the table other indexes. Freezes the memtable, so that each index has all rows of a memtable or none.
    pub(crate) fn set_indexes(
        &self,
        env: &dyn Env,
        indexes: TableIndexes,
        barrier: impl FnOnce() -> Position,
    ) {
        let mut active = self.active.write();
        self.has_indexes.store(!indexes.0.is_empty(), Ordering::Relaxed);
        let is_refusing = indexes.0.iter().any(|live| live.index.refuses());
        self.has_refusing_indexes.store(is_refusing, Ordering::Relaxed);
        self.indexes.store(Arc::new(indexes));
        self.freeze_locked(env, &mut active, barrier());
    }

    /// Freezes the active memtable, unless it is empty.
    pub(crate) fn freeze(&self, env: &dyn Env, barrier: impl FnOnce() -> Position) {
        self.freeze_held(env, &mut self.active.write(), barrier);
    }

    /// Like [`Self::freeze`]. Requires: `active` is this table's and held exclusively.
    pub(crate) fn freeze_held(&self, env: &dyn Env, active: &mut Active, barrier: impl FnOnce() -> Position) {
        self.is_flush_asked.store(false, Ordering::Release);
        if !active.is_empty() {
            self.freeze_locked(env, active, barrier());
        }
    }

    /// Freezes the memtable. Requires: `active` is this table's and held exclusively, so that every record below `upto` is applied.
    pub(super) fn freeze_locked(&self, env: &dyn Env, active: &mut Active, upto: Position) {
        let next = Arc::new(Memtable::new(self.schema(), self.shards));
        let next_indexes = self.indexes.load().begin_memtable();
        let indexes = std::mem::replace(&mut active.indexes, next_indexes.clone());
        for hidden in indexes.iter().flat_map(|indexes| indexes.hidden()) {
            hidden.freeze_beside(env, upto);
        }
        let frozen = Arc::new(Frozen {
            memtable: std::mem::replace(&mut active.memtable, next.clone()),
            indexes,
            since: std::mem::replace(&mut active.since, upto),
            upto,
            tablets_upto: self.tablets.ends(),
            tablets: std::mem::take(&mut active.tablets),
        });
        active.made_nanos = env.monotonic_nanos();
        self.change_view(|view| {
            let mut view = match frozen.memtable.is_empty() {
                true => view.without_frozen(&frozen),
                false => view.clone(),
            };
            if !frozen.memtable.is_empty() {
                view.frozen.push(frozen);
            }
            view.push_memtable(next, next_indexes.as_ref());
            view
        });
    }

    /// The lowest log position whose record is only in memory; `None` if all records are on disk.
    /// Waits for writers between log and memtable, so that it includes all records from before the call.
    pub(crate) fn first_unflushed(&self) -> Option<Position> {
        drop(self.active.write());
        let view = self.view();
        let first = |memtable: &Arc<Memtable>| memtable.statistics().log.map(|(first, _)| first);
        let lowest = view.memtables.iter().filter_map(first).min()?;
        // Offsets of the log have 32 bits.
        let offset = u32::try_from(lowest.offset).unwrap_or(u32::MAX);
        Some(Position::new(lowest.segment, offset))
    }

    /// Drops every memtable; returns the bytes that they took.
    pub(crate) fn forget_memtables(&self, env: &dyn Env) -> usize {
        let mut active = self.active.write();
        let since = active.since;
        let sstables = self.view().sstables.clone();
        let (bytes, _) = self.clear_locked(env, &mut active, since);
        self.add_sstables(sstables);
        bytes
    }

    /// Drops every memtable and SSTable; returns the bytes that memtables took.
    /// Requires: `active` is this table's and held exclusively.
    pub(crate) fn clear_locked(
        &self,
        env: &dyn Env,
        active: &mut Active,
        since: Position,
    ) -> (usize, Vec<Arc<LiveSSTable>>) {
        let next = Arc::new(Memtable::new(self.schema(), self.shards));
        active.memtable = next.clone();
        active.indexes = self.indexes.load().begin_memtable();
        let indexes = active.indexes.clone();
        active.since = since;
        active.tablets = Arc::default();
        active.made_nanos = env.monotonic_nanos();
        let mut gone = Vec::new();
        let mut bytes = 0;
        self.change_view(|view| {
            gone.clone_from(&view.sstables);
            let attached = view
                .memtable_indexes
                .iter()
                .map(|(_, indexes)| indexes.attached_bytes());
            bytes = view
                .memtables
                .iter()
                .map(|memtable| memtable.size_bytes())
                .chain(attached)
                .sum();
            let mut empty = View::default();
            empty.push_memtable(next, indexes.as_ref());
            empty
        });
        (bytes, gone)
    }
}
