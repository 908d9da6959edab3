//! Flushes: a memtable becomes an SSTable.
//!
//! The order makes a crash harmless at every point: the SSTable's components are synced under a transaction log, the
//! COMMIT of that log is made durable, the view replaces the memtable by the SSTable, and only then are segments of the commit log
//! trimmed. The SSTable stores the stretch of the commit log that it covers, so that a replay skips it.
//! All steps that can fail come before the COMMIT, and can be undone: the files are removed, the memtable stays, and the flush is
//! retried (`retry`). A failure that is final (a failed sync) stops writes for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ilion_commitlog::Position;
use ilion_compaction::{Sink, Stretches, Watch, Watched, merge_into};
use ilion_env::Env;
use ilion_env::spectrogram::{Doing, Purpose};
use ilion_memtable::EntriesInOrder;
use ilion_rows::{DecoratedKey, DeletionTime, PartitionHead};
use ilion_schema::TableSchema;
use ilion_sstable::{
    Descriptor, EncodingStats, Finding, ListedSSTable, OpenOptions, SSTable, Transaction, TransactionKind,
    WriterOptions,
};
use parking_lot::Mutex;

use crate::flush_pace::{FlushPace, Haste};
use crate::indexes::{IndexedWriter, OlderRows};
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::{TableIndexes, TableStore};
use crate::view::Frozen;
use crate::work::Work;
use crate::{Error, Result, tablet_ends};

impl Shared {
    /// Freezes the table's memtable and writes all frozen ones. Failures go to [`Self::flush_failed`].
    pub(crate) fn flush_table(&self, store: &Arc<TableStore>) -> Result<()> {
        self.flush_upto(store, || self.barrier(), Haste::Now)?;
        self.trim_log()
    }

    /// Flushes each table like [`Self::flush_table`], several at a time if there are many, since a flush mostly waits for the disk.
    /// Returns the first failure, and starts no flush after it.
    pub(crate) fn flush_tables(&self, stores: &[Arc<TableStore>]) -> Result<()> {
        let is_due = |store: &&Arc<TableStore>| !store.are_memtables_empty();
        let threads = (stores.iter().filter(is_due).count() / FLUSHES_A_THREAD).min(FLUSH_THREADS_MAX);
        if threads < 2 || self.options.is_stepped {
            return stores.iter().try_for_each(|store| self.flush_table(store));
        }
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let flush_on = || {
            while failure.lock().is_none()
                && let Some(store) = stores.get(next.fetch_add(1, Ordering::Relaxed))
            {
                if let Err(error) = self.flush_upto(store, || self.barrier(), Haste::Now) {
                    failure.lock().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(flush_on);
            }
            flush_on();
        });
        // Once for all tables, since a trim checks every table.
        self.trim_log()?;
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Like [`Self::flush_table`], to free memory before it is needed. The flush pauses while it is ahead of writers.
    pub(crate) fn relieve(&self, store: &Arc<TableStore>) -> Result<()> {
        self.flush_upto(store, || self.barrier(), Haste::WithRests)?;
        self.trim_log()
    }

    /// Like [`Self::flush_table`], with a given end of the log stretch that the memtable covers, and without trimming.
    pub(crate) fn flush_upto(
        &self,
        store: &Arc<TableStore>,
        upto: impl FnOnce() -> Position,
        haste: Haste,
    ) -> Result<()> {
        let _turn = store.maintenance.flush();
        self.flush_in_turn(store, upto, haste)
    }

    /// Like [`Self::flush_upto`]. Requires: it is the turn of this flush (`maintenance`).
    pub(crate) fn flush_in_turn(
        &self,
        store: &Arc<TableStore>,
        upto: impl FnOnce() -> Position,
        haste: Haste,
    ) -> Result<()> {
        if store.is_dropped.load(Ordering::Acquire) {
            self.flush_succeeded(store);
            return Ok(());
        }
        store.freeze(&*self.env, upto);
        self.flush_frozen_while(store, |_| true, haste)
    }

    /// Writes the frozen memtables of a table, the oldest first, up to the first one that is not wanted. Requires: it is the turn of this flush
    /// (`maintenance`).
    pub(crate) fn flush_frozen_while(
        &self,
        store: &Arc<TableStore>,
        is_wanted: impl Fn(&Arc<Frozen>) -> bool,
        haste: Haste,
    ) -> Result<()> {
        loop {
            let frozen = store.view().frozen.first().cloned().filter(&is_wanted);
            // Hidden tables are written before the table: a replay makes index entries again only for rows that are not in an SSTable
            // of the table. And the frozen memtable is looked up before they are written, so that its entries are frozen, too.
            let indexes = store.indexes();
            indexes
                .hidden()
                .try_for_each(|hidden| self.flush_hidden(store, hidden, haste))?;
            let Some(frozen) = frozen else {
                break;
            };
            self.flush_at_pace(store, store, &frozen, haste)?;
        }
        self.flush_succeeded(store);
        self.note_debt(store);
        self.background.send(Work::Compact(store.clone()));
        Ok(())
    }

    /// Writes all frozen memtables of a hidden table.
    fn flush_hidden(&self, store: &Arc<TableStore>, hidden: &Arc<TableStore>, haste: Haste) -> Result<()> {
        let _turn = hidden.maintenance.flush();
        if hidden.is_dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        while let Some(frozen) = hidden.view().frozen.first().cloned() {
            self.flush_at_pace(store, hidden, &frozen, haste)?;
        }
        self.note_debt(hidden);
        self.background.send(Work::Compact(hidden.clone()));
        Ok(())
    }

    /// Writes a memtable of `store` as part of a flush of `asked`.
    ///
    /// Requires: it is the turn of this flush (`maintenance`).
    fn flush_at_pace(
        &self,
        asked: &Arc<TableStore>,
        store: &Arc<TableStore>,
        frozen: &Arc<Frozen>,
        haste: Haste,
    ) -> Result<()> {
        let tables = [&asked.maintenance, &store.maintenance];
        let pace = FlushPace::begin(self, tables, haste, frozen.memtable.size_bytes());
        self.flush_frozen(asked, store, frozen, pace)
            .inspect_err(|error| self.flush_failed(asked, error))
    }

    /// Writes a memtable of `store`, as part of a flush of `asked`. Requires: it is the turn of this flush (`maintenance`).
    pub(crate) fn flush_frozen(
        &self,
        asked: &Arc<TableStore>,
        store: &Arc<TableStore>,
        frozen: &Arc<Frozen>,
        pace: FlushPace<'_>,
    ) -> Result<()> {
        let _doing = Doing::begin(Purpose::Flush);
        let _running = self.counters.begin_flush();
        let started_nanos = self.env.monotonic_nanos();
        self.env.create_dir_all(&store.directory)?;
        let mut transaction = Transaction::begin(self.env.clone(), &store.directory, TransactionKind::Flush)?;
        let descriptor = store.next_descriptor(&*self.env, self.options.sstable_version);
        let indexes = store.indexes();
        // The table itself has no index entries.
        let older = match Arc::ptr_eq(asked, store) {
            true => OlderRows::ANY,
            false => OlderRows::of(asked),
        };
        let written = transaction
            .add(&descriptor)
            .map_err(Error::from)
            .and_then(|()| self.write_frozen(&descriptor, frozen, &indexes, &older, pace))
            .and_then(|has_rows| self.sync_copies().map(|()| has_rows));
        let _files = store.maintenance.files();
        let opened = match written {
            Ok(true) => self.open_flushed(store, frozen, &descriptor, &indexes).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        let live = match opened {
            Ok(Some(live)) => live,
            Ok(None) => {
                self.abort(transaction);
                store.change_view(|view| view.without_frozen(frozen));
                self.releaser.release(frozen);
                self.budget.free(frozen.size_bytes());
                return Ok(());
            }
            Err(error) => {
                self.abort(transaction);
                return Err(error);
            }
        };
        if !store.is_logged.load(Ordering::Relaxed)
            && let Some(log) = self.log.get()
        {
            self.save_reached(log, Position::START);
        }
        self.back_up(asked, &descriptor);
        let committed = self.commit(transaction)?;
        let bytes = live.sstable.size_bytes();
        store.change_view(|view| {
            let view = view.without_frozen(frozen);
            let all = view.sstables.iter().cloned().chain([live.clone()]).collect();
            view.with_sstables(all)
        });
        drop(committed);
        self.releaser.release(frozen);
        self.budget.free(frozen.size_bytes());
        store.note_flush(bytes);
        self.counters.flushed(bytes);
        let millis = self.env.monotonic_nanos().saturating_sub(started_nanos) / 1_000_000;
        let partitions = live.sstable.stats().partition_sizes.count();
        let memtable_bytes = frozen.size_bytes();
        let table = store.schema();
        tracing::info!(table = %format_args!("{}.{}", table.keyspace, table.name), sstable = %descriptor, partitions, memtable_bytes, bytes, millis, "flushed");
        Ok(())
    }

    /// Opens the SSTable that a flush has written, before the COMMIT. Requires: the table's files are held (`maintenance`).
    fn open_flushed(
        &self,
        store: &Arc<TableStore>,
        frozen: &Frozen,
        descriptor: &Descriptor,
        indexes: &TableIndexes,
    ) -> Result<Arc<LiveSSTable>> {
        let live = self.open_sstable(frozen.memtable.table(), descriptor)?;
        self.attach(store, indexes, &live)?;
        Ok(live)
    }

    /// Writes a memtable as an SSTable. A removed entry of a hidden table is written only if `older` may have its row. Returns false if there
    /// is nothing to write.
    pub(crate) fn write_frozen(
        &self,
        descriptor: &Descriptor,
        frozen: &Frozen,
        indexes: &TableIndexes,
        older: &OlderRows,
        pace: FlushPace<'_>,
    ) -> Result<bool> {
        let memtable = &frozen.memtable;
        let statistics = memtable.statistics();
        let interval = (
            (frozen.since.segment.0, frozen.since.offset),
            (frozen.upto.segment.0, frozen.upto.offset),
        );
        let of_tablets = frozen.tablets_upto.iter();
        let of_tablets = of_tablets.map(|(tablet, end)| tablet_ends::interval(*tablet, *end));
        let options = WriterOptions {
            partitioner: memtable.table().partitioner(self.options.partitioner),
            estimated_partitions: statistics.partitions as u64,
            commit_log_intervals: [interval].into_iter().chain(of_tablets).collect(),
            encoding_stats: EncodingStats {
                min_timestamp_micros: statistics.min_timestamp_micros,
                ..EncodingStats::NONE
            },
            has_static_rows: statistics.has_static_rows,
            originating_host: Some(self.id),
            kind: TransactionKind::Flush,
            writes_token_map: self.options.finding == Finding::TokenMap,
            ..WriterOptions::default()
        };
        let mut writer = IndexedWriter::new(self, indexes, descriptor, memtable.table(), options)?;
        let bytes = statistics.size_bytes as u64;
        let items = statistics.operations + statistics.partitions as u64;
        let filled = match memtable.entries_in_order(|key| older.may_have(key)) {
            Some(entries) => {
                let stretches = Stretches::new(pace, bytes, items);
                write_entries(entries, stretches, &mut writer)
            }
            None => {
                let mut source = Watched::new(memtable.flush_cursor(), pace, bytes, items);
                merge_into(&mut source, &mut writer).map(drop)
            }
        };
        if let Err(error) = filled {
            writer.abandon();
            return Err(error);
        }
        if writer.partitions() == 0 {
            writer.abandon();
            return Ok(false);
        }
        writer.finish()?;
        Ok(true)
    }

    /// Opens an SSTable for reads.
    pub(crate) fn open_sstable(
        &self,
        table: &TableSchema,
        descriptor: &Descriptor,
    ) -> Result<Arc<LiveSSTable>> {
        self.open_in(&self.env, table, descriptor)
    }

    /// Like [`Self::open_sstable`], on a given disk.
    pub(crate) fn open_in(
        &self,
        env: &Arc<dyn Env>,
        table: &TableSchema,
        descriptor: &Descriptor,
    ) -> Result<Arc<LiveSSTable>> {
        let options = self.open_options(table);
        let sstable = SSTable::open(env, descriptor, &options).map_err(Error::from)?;
        Ok(LiveSSTable::new(env.clone(), self.remover.clone(), sstable))
    }

    /// Opens an SSTable whose files were just listed.
    pub(crate) fn open_found_sstable(
        &self,
        table: &TableSchema,
        found: &ListedSSTable,
    ) -> Result<Arc<LiveSSTable>> {
        let options = self.open_options(table);
        let sstable = SSTable::open_found(&self.env, found, &options).map_err(Error::from)?;
        Ok(LiveSSTable::new(self.env.clone(), self.remover.clone(), sstable))
    }

    fn open_options(&self, table: &TableSchema) -> OpenOptions {
        OpenOptions {
            partitioner: table.partitioner(self.options.partitioner),
            chunk_cache: Some(self.chunk_cache.clone()),
            finding: self.options.finding,
            key_cache: table
                .options
                .caching
                .keys
                .then(|| (table.id, self.key_cache.clone())),
            lookups: self.lookups.clone(),
            ..OpenOptions::default()
        }
    }

    /// Trims the log segments whose records are all in SSTables, and requests flushes of tables that keep too many segments.
    pub(crate) fn trim_log(&self) -> Result<()> {
        let Some(log) = self.log.get() else {
            return Ok(());
        };
        // Taken first, so that no later record is below it.
        let barrier = log.barrier();
        let tables = self.tables.load();
        let unflushed = tables
            .values()
            .filter_map(|store| Some((store.first_unflushed()?, store)));
        let unflushed: Vec<_> = unflushed.collect();
        let lowest = unflushed.iter().map(|(first, _)| *first).min();
        let below = lowest.map_or(barrier, |lowest| lowest.min(barrier));
        let below = self.stall.log_held_from().map_or(below, |from| from.min(below));
        let below = self
            .snapshots
            .log_held_from()
            .map_or(below, |from| from.min(below));
        if log.has_to_trim(below) {
            self.save_reached(log, below);
            log.trim(below)?;
        }
        let segments = log.stats().segments as u64;
        for (first, store) in unflushed {
            // The numbers of segments have a gap at each restart.
            let kept = (barrier.segment.0.saturating_sub(first.segment.0)).min(segments);
            let kept_bytes = kept * u64::from(self.options.commit_log.segment_bytes);
            if keeps_too_much(kept, kept_bytes, store.view().memtable_bytes()) {
                self.ask_to_flush(store);
            }
        }
        Ok(())
    }
}

/// Writes the entries of a hidden table without making rows of them.
fn write_entries<W: Watch>(
    mut entries: EntriesInOrder<impl Fn(&DecoratedKey) -> bool>,
    mut stretches: Stretches<W>,
    sink: &mut impl Sink<Error = Error>,
) -> Result<()> {
    while let Some(key) = entries.next_partition() {
        sink.begin_partition(&PartitionHead {
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
        })?;
        while let Some(entry) = entries.next_entry() {
            sink.entry(&entry)?;
            stretches.count(1)?;
        }
        sink.end_partition()?;
        stretches.count(1)?;
    }
    Ok(())
}

/// Each thread gets at least this many flushes.
const FLUSHES_A_THREAD: usize = 32;
/// Maximum number of threads: more would only wait for the same disk.
const FLUSH_THREADS_MAX: usize = 8;

/// Segments of the log that any table may keep from being trimmed.
const SEGMENTS_KEPT_MAX: u64 = 8;
/// If the log has more bytes than this per byte of the table's memtables, most of the log belongs to other tables.
const LOG_TO_MEMORY_MAX: u64 = 16;

/// Whether a table prevents the trimming of a log that mostly belongs to other tables. A start would read all of it. Pure.
fn keeps_too_much(segments: u64, log_bytes: u64, memory_bytes: u64) -> bool {
    segments > SEGMENTS_KEPT_MAX && log_bytes > memory_bytes.saturating_mul(LOG_TO_MEMORY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_the_log_for_as_long_as_much_of_it_is_its_own() {
        assert!(!keeps_too_much(8, 8 << 20, 100));
        assert!(keeps_too_much(9, 9 << 20, 100));
        assert!(!keeps_too_much(100, 100 << 20, 50 << 20));
        assert!(!keeps_too_much(100, 100 << 20, 7 << 20));
        assert!(keeps_too_much(100, 100 << 20, 6 << 20));
    }
}
