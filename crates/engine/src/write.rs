//! The write path: encode; then append and apply under the shared locks of the tables that change.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::{ENVELOPE_BYTES, Envelope, Kind, Position};
use ilion_env::trace;
use ilion_memtable::LogPosition;
use ilion_rows::{ColumnData, Mutation, encode_mutation};
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::Version;
use parking_lot::RwLockReadGuard;
use smallvec::SmallVec;

use crate::backlog::SLOWED_FROM;
use crate::counter_cache::deletes_counters;
use crate::shared::Shared;
use crate::table_store::{Active, TableStore};
use crate::work::Work;
use crate::{Engine, EngineOptions, Error, Result};

/// A larger buffer is freed after the write.
const BUFFER_BYTES_KEPT: usize = 1 << 20;
/// A record may have this many mutations of the largest size, since a row and its changes of views are in one record.
const RECORD_MUTATIONS_MAX: u32 = 16;
/// Any copy of a record of a shared log fits into the local log: records have at most 16 MiB there, whatever the size of a segment here.
const COPY_BYTES_MAX: u32 = 64 << 20;
/// Leaves room for the framing of the log.
const RECORD_BYTES_MAX: u32 = (1 << 30) - 4096;

/// A larger buffer for terms of indexes is freed after the write.
const SCRATCH_BYTES_KEPT: usize = 64 << 10;

thread_local! {
    /// Buffer for the record of a write.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Buffer for the index terms of a write.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Engine {
    /// Applies all mutations as one log record. They are visible when this returns, and durable when the log is durable
    /// up to the returned position; `None` if none of their tables is logged.
    ///
    /// # Errors
    /// A table is dropped or virtual, the record is too large, or writes are refused. Then none is applied.
    pub fn apply(&self, mutations: &[Mutation]) -> Result<Option<Position>> {
        let kind = match mutations {
            [] => return Ok(None),
            [_] => Kind::Mutation,
            _ => Kind::Batch,
        };
        self.apply_as(kind, mutations)
    }

    /// Like [`Self::apply`], for mutations that depend on a read (a conditional write, a write of a table with views). A replay gives
    /// the record up if records before it are lost.
    ///
    /// # Errors
    /// Those of [`Self::apply`].
    pub fn apply_decided(&self, mutations: &[Mutation]) -> Result<Option<Position>> {
        match mutations {
            [] => Ok(None),
            _ => self.apply_as(Kind::Cas, mutations),
        }
    }

    fn apply_as(&self, kind: Kind, mutations: &[Mutation]) -> Result<Option<Position>> {
        self.admit_write(mutations)?;
        self.shared.write(kind, mutations)
    }

    /// Slows the caller if memtables are too full or compactions are behind.
    pub(crate) fn admit_write(&self, mutations: &[Mutation]) -> Result<()> {
        if self.shared.budget.is_flush_due() {
            self.shared.ask_for_flush();
            if !self.admit()
                && let Some(reason) = self.shared.stalled()
            {
                return Err(Error::Stalled(reason));
            }
        }
        if self.shared.backlog.is_behind() && !self.shared.options.is_stepped {
            self.shared.pay_backlog(mutations);
        }
        self.shared.sampling.write(mutations);
        Ok(())
    }

    /// Slows the caller if memtables are too full; returns false if there is no memory and flushes fail for now. Without threads
    /// the caller does the work that frees memory.
    fn admit(&self) -> bool {
        let budget = &self.shared.budget;
        if !self.shared.options.is_stepped {
            return budget.admit();
        }
        while budget.used() >= budget.limit() && self.step() {}
        budget.has_room()
    }
}

/// Whether only SSTables of format `nb` can store the mutation. Compat: from `oa` on the first bit of a partition deletion is a flag.
pub(crate) fn deletes_before_1970(mutation: &Mutation) -> bool {
    let deletion = mutation.update.deletion;
    deletion.is_some_and(|deletion| deletion.marked_at_micros < 0)
}

impl Shared {
    /// Appends one record of this kind and applies it.
    pub(crate) fn write(&self, kind: Kind, mutations: &[Mutation]) -> Result<Option<Position>> {
        let stores = self.stores_to_write(mutations)?;
        let is_logged = |store: &TableStore| store.is_logged.load(Ordering::Relaxed);
        let is_captured = self.admit_captured(mutations, &stores)?;
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let mut large = None;
            for (mutation, store) in mutations.iter().zip(&stores) {
                if is_logged(store) {
                    let start = buffer.len();
                    encode_mutation(mutation, buffer);
                    self.check_size(mutation, buffer.len() - start)?;
                }
                if large.is_none() && buffer.len() > self.mutation_bytes_max() {
                    large = Some(self.large_write.lock());
                }
            }
            self.check_record_size(buffer.len())?;
            let written = self.append_and_apply(kind, mutations, &stores, buffer, is_captured);
            if buffer.capacity() > BUFFER_BYTES_KEPT {
                *buffer = Vec::new();
            }
            written
        })
    }

    /// The table of each mutation. Checks that each can be written.
    pub(crate) fn stores_to_write(&self, mutations: &[Mutation]) -> Result<SmallVec<[Arc<TableStore>; 2]>> {
        self.check_writable()?;
        mutations
            .iter()
            .try_for_each(|mutation| self.check_storable(mutation))?;
        let stores = self.stores_of(mutations)?;
        for (mutation, store) in mutations.iter().zip(&stores) {
            store.check_indexable(mutation)?;
        }
        Ok(stores)
    }

    /// The table of each mutation of a record, which was checked before it was logged.
    pub(crate) fn stores_to_apply(&self, mutations: &[Mutation]) -> Result<SmallVec<[Arc<TableStore>; 2]>> {
        self.check_writable()?;
        self.stores_of(mutations)
    }

    /// Compat: `max_mutation_size`, half of a segment.
    fn mutation_bytes_max(&self) -> usize {
        (self.options.commit_log.segment_bytes / 2) as usize
    }

    /// Refuses a mutation that is too large. Compat: the limit holds for each mutation by itself.
    fn check_size(&self, mutation: &Mutation, bytes: usize) -> Result<()> {
        let bytes_max = self.mutation_bytes_max();
        if bytes <= bytes_max {
            return Ok(());
        }
        let (keyspace, table) = (&mutation.table.keyspace, &mutation.table.name);
        Err(Error::Refused(format!(
            "Mutation of {bytes} bytes is too large for the maximum size of {bytes_max}: a write to one partition of {keyspace}.{table} may \
             have half of commitlog_segment_size; split the write, or raise that setting"
        )))
    }

    /// Refuses mutations that together are too large for a record.
    fn check_record_size(&self, bytes: usize) -> Result<()> {
        let bytes_max = record_bytes_max(&self.options) as usize - ENVELOPE_BYTES;
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "Write of {bytes} bytes is too large for the maximum size of {bytes_max}: all partitions of a write, those of \
             materialized views included, are written together; write fewer rows at once"
        )))
    }

    /// Refuses a mutation that the format of our SSTables cannot store, since it could never be flushed.
    fn check_storable(&self, mutation: &Mutation) -> Result<()> {
        if self.options.sstable_version != Version::NB && deletes_before_1970(mutation) {
            return Err(Error::Refused(format!(
                "SSTables of format {} cannot hold a partition deletion with a negative timestamp",
                self.options.sstable_version
            )));
        }
        Ok(())
    }

    /// Slows a write to a table whose compactions are behind.
    fn pay_backlog(&self, mutations: &[Mutation]) {
        let tables = self.tables.load();
        let mut worst: Option<(usize, Arc<TableStore>)> = None;
        let mut consider = |store: &Arc<TableStore>| {
            let debt = store.debt.now();
            if debt >= SLOWED_FROM && worst.as_ref().is_none_or(|(most, _)| debt > *most) {
                worst = Some((debt, store.clone()));
            }
        };
        for mutation in mutations {
            let Some(store) = tables.get(&mutation.table.id) else {
                continue;
            };
            consider(store);
            // A write of a table also writes to its hidden tables.
            if store.has_indexes() {
                store.indexes_now().hidden().for_each(&mut consider);
            }
        }
        if let Some((_, worst)) = worst {
            self.backlog.pay(&worst.debt);
        }
    }

    fn stores_of(&self, mutations: &[Mutation]) -> Result<SmallVec<[Arc<TableStore>; 2]>> {
        let tables = self.tables.load();
        mutations
            .iter()
            .map(|mutation| {
                let table = &mutation.table;
                let store = tables.get(&table.id).cloned().ok_or_else(|| {
                    Error::Refused(format!("table {}.{} does not exist", table.keyspace, table.name))
                })?;
                store.check_usable()?;
                Ok(store)
            })
            .collect()
    }

    fn append_and_apply(
        &self,
        kind: Kind,
        mutations: &[Mutation],
        stores: &[Arc<TableStore>],
        body: &[u8],
        is_captured: bool,
    ) -> Result<Option<Position>> {
        let locked = Locked::acquire(stores);
        let position = if body.is_empty() {
            None
        } else {
            trace::note(|| "Appending to commitlog");
            let envelope = Envelope {
                kind,
                schema_epoch: self.schema.load().epoch,
                time_micros: self.log_time_micros(),
                is_captured,
                ..Envelope::mutation(body)
            };
            let log = self.log()?;
            Some(match kind {
                // Written first: if the disk is full, a schema change must not take effect.
                Kind::Schema => log.append_written(&envelope)?,
                _ => {
                    let appended = log.append(&envelope);
                    appended.map_err(|error| self.capture_error(error, &mutations[0].table.keyspace))?
                }
            })
        };
        for (mutation, store) in mutations.iter().zip(stores) {
            let position = position.filter(|_| store.is_logged.load(Ordering::Relaxed));
            self.apply_one(locked.active(store.id), mutation, position.map(memtable_position));
        }
        Ok(position)
    }

    /// Applies a mutation to the memtable of its table, and drops cached data of its partition.
    ///
    /// Requires: `active` is held.
    pub(crate) fn apply_one(&self, active: &Active, mutation: &Mutation, position: Option<LogPosition>) {
        let mutation = &*fitted(mutation, active.memtable.table());
        trace::note(|| format!("Adding to {} memtable", mutation.table.name));
        let grown = self.apply_to_memtable(active, mutation, position);
        self.budget.grow(grown);
        self.forget_cached(mutation);
    }

    /// Merges a mutation into the memtable, and its changed rows into the memtable's indexes; returns by how many bytes
    /// memory grew.
    ///
    /// Requires: `active` is held.
    pub(crate) fn apply_to_memtable(
        &self,
        active: &Active,
        mutation: &Mutation,
        position: Option<LogPosition>,
    ) -> isize {
        let memtable = &active.memtable;
        let Some(indexes) = &active.indexes else {
            return match position {
                Some(position) => memtable.apply_logged(mutation, position),
                None => memtable.apply(mutation),
            };
        };
        SCRATCH.with_borrow_mut(|scratch| {
            let mut grown = 0;
            let own = memtable.apply_observed(mutation, position, indexes.observed(), &mut |change| {
                grown += indexes.take_in(&*self.env, &mutation.key, change, scratch);
            });
            if scratch.capacity() > SCRATCH_BYTES_KEPT {
                *scratch = Vec::new();
            }
            own + grown
        })
    }

    /// Drops cached data of the mutation's partition, after the mutation is visible.
    fn forget_cached(&self, mutation: &Mutation) {
        let (table, key) = (&mutation.table, &mutation.key.key);
        if self.row_cache.is_enabled() {
            self.row_cache.invalidate(table.id, key);
        }
        if table.is_counter() && deletes_counters(&mutation.update) {
            self.counter_cache.forget(table.id, key);
        }
    }

    /// Drops cached data of a table.
    pub(crate) fn forget_cached_table(&self, table: TableId) {
        self.row_cache.forget_table(table);
        self.counter_cache.clear(Some(table));
    }

    /// Requests a flush of the largest memtable, unless such a flush is running: its end requests the next one. While flushes fail, the
    /// tick thread requests them.
    pub(crate) fn ask_for_flush(&self) {
        if self.budget.is_stalled() {
            return;
        }
        let is_relieving = &self.background.is_relieving;
        // Mostly true, and every writer reads it: a swap would take the cache line from all others.
        if is_relieving.load(Ordering::Acquire) || is_relieving.swap(true, Ordering::AcqRel) {
            return;
        }
        let tables = self.tables.load();
        let largest = tables
            .values()
            .max_by_key(|store| (store.active.read_recursive().size_bytes(), store.id));
        if let Some(store) = largest {
            self.background.send(Work::Relieve(store.clone()));
        }
    }

    /// Requests a flush of the table in the background, unless one is requested.
    pub(crate) fn ask_to_flush(&self, store: &Arc<TableStore>) {
        if !store.is_flush_asked.swap(true, Ordering::AcqRel) {
            self.background.send(Work::Flush(store.clone()));
        }
    }
}

/// The largest record of the log.
pub(crate) fn record_bytes_max(options: &EngineOptions) -> u32 {
    let mutation_bytes_max = options.commit_log.segment_bytes / 2;
    let wanted = mutation_bytes_max.saturating_mul(RECORD_MUTATIONS_MAX);
    let copied = options.commit_log.capture.as_ref().map_or(0, |_| COPY_BYTES_MAX);
    wanted.max(copied).min(RECORD_BYTES_MAX)
}

/// The mutation without dropped columns: it may have been bound just before a column was dropped.
fn fitted<'m>(mutation: &'m Mutation, table: &Arc<TableSchema>) -> Cow<'m, Mutation> {
    if Arc::ptr_eq(&mutation.table, table) {
        return Cow::Borrowed(mutation);
    }
    let is_known = |data: &ColumnData| table.column(data.column).is_some();
    let update = &mutation.update;
    if update
        .rows
        .iter()
        .chain(&update.static_row)
        .flat_map(|row| &row.columns)
        .all(is_known)
    {
        return Cow::Borrowed(mutation);
    }
    let mut fitted = mutation.clone();
    let update = &mut fitted.update;
    for row in update.rows.iter_mut().chain(&mut update.static_row) {
        row.columns.retain(is_known);
    }
    Cow::Owned(fitted)
}

pub(crate) fn memtable_position(position: Position) -> LogPosition {
    LogPosition {
        segment: position.segment.0,
        offset: u64::from(position.offset),
    }
}

/// The `active` locks of the tables of a write, each held shared once, by ascending id.
pub(crate) struct Locked<'a>(SmallVec<[(TableId, RwLockReadGuard<'a, Active>); 2]>);

impl<'a> Locked<'a> {
    pub(crate) fn acquire(stores: &'a [Arc<TableStore>]) -> Self {
        let mut ordered: SmallVec<[&Arc<TableStore>; 2]> = stores.iter().collect();
        ordered.sort_by_key(|store| store.id);
        ordered.dedup_by_key(|store| store.id);
        Self(
            ordered
                .iter()
                .map(|store| (store.id, store.active.read()))
                .collect(),
        )
    }

    /// The active memtable of a table. Requires: the lock of the table was acquired.
    pub(crate) fn active(&self, table: TableId) -> &Active {
        let place = self.0.partition_point(|(id, _)| *id < table);
        &self.0[place].1
    }
}
