//! Compactions: inputs are chosen and merged into new SSTables, and the view is swapped.
//!
//! A compaction registers its inputs: no other compaction takes them. It writes under a transaction log, and removes the inputs
//! from the view while it holds the table's files (`maintenance`). If the table was emptied meanwhile, or the compaction
//! was stopped, its output is removed and the view stays as it is.

mod choice;
mod history;
mod joined;
mod manual;
mod outputs;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_commitlog::Position;
use ilion_compaction::{Choice, Output, Watched, merge_into};
use ilion_env::spectrogram::{Doing, Purpose};
use ilion_rows::{
    ClusteringFilter, CompactionPurge, Cursor, DecoratedKey, Direction, GarbageSkip, Granularity, KeyRange,
    MergeCursor, ReadError, Shadows,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    Descriptor, EncodingStats, Finding, KeyHash, Presence, Scan, Transaction, TransactionKind, WriterOptions,
    union_intervals,
};

use crate::intervals::intervals_of;
use crate::live_sstable::LiveSSTable;
use crate::over_ranges::OverRanges;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::source::scan;
use crate::table_store::{TableIndexes, TableStore};
use crate::tasks::{Registered, Task};
use crate::work::Work;
use crate::{Error, Result};

use joined::{Counted, Joined};
pub use manual::CompactionRequest;
use outputs::Outputs;

/// SSTables that are registered as inputs of a compaction until this is dropped.
pub(crate) struct Inputs<'a> {
    store: &'a Arc<TableStore>,
    merged: Vec<Arc<LiveSSTable>>,
    /// SSTables that are dropped without being read, since all their data has expired.
    expired: Vec<Arc<LiveSSTable>>,
}

impl<'a> Inputs<'a> {
    /// The SSTables of a choice; `None` if one is no longer in the view, or in another compaction.
    pub(crate) fn acquire(store: &'a Arc<TableStore>, choice: &Choice) -> Option<Self> {
        let view = store.view();
        let find = |paths: &[PathBuf]| -> Option<Vec<_>> {
            let find_one = |path: &PathBuf| {
                view.sstables
                    .iter()
                    .find(|live| live.data_path() == *path)
                    .cloned()
            };
            paths.iter().map(find_one).collect()
        };
        let (merged, expired) = (find(&choice.inputs)?, find(&choice.expired)?);
        let mut compacting = store.compacting.lock();
        let mut paths = choice.inputs.iter().chain(&choice.expired);
        if paths.clone().any(|path| compacting.contains(path)) {
            return None;
        }
        compacting.extend(paths.by_ref().cloned());
        Some(Self {
            store,
            merged,
            expired,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<LiveSSTable>> {
        self.merged.iter().chain(&self.expired)
    }

    fn has(&self, live: &Arc<LiveSSTable>) -> bool {
        self.all().any(|input| Arc::ptr_eq(input, live))
    }

    /// About how many SSTables the result has.
    fn pieces(&self, output: Output, bytes_in: u64) -> u64 {
        let first = self.merged.iter().map(|live| live.sstable.first_key()).min();
        let last = self.merged.iter().map(|live| live.sstable.last_key()).max();
        match (first, last) {
            (Some(first), Some(last)) => outputs::pieces(output, bytes_in, &first.token, &last.token),
            _ => 1,
        }
    }

    fn merged_bytes(&self) -> u64 {
        self.merged.iter().map(|live| live.sstable.size_bytes()).sum()
    }
}

impl Drop for Inputs<'_> {
    fn drop(&mut self) {
        let mut compacting = self.store.compacting.lock();
        for live in self.all() {
            compacting.remove(&live.data_path());
        }
    }
}

/// A compaction whose inputs are registered.
pub(crate) struct Compaction<'a> {
    inputs: Inputs<'a>,
    registered: Registered<'a>,
    output: Output,
    level: u32,
    rules: Rules,
}

/// Which data a compaction drops.
#[derive(Clone, Debug, Default)]
pub(crate) enum Rules {
    /// Tombstones past gc grace that cover no data outside of the compaction.
    #[default]
    Usual,
    /// As `Usual`, and tombstones of these partitions also within gc grace.
    WithoutGrace(Arc<BTreeSet<DecoratedKey>>),
    /// As `Usual`, and data that other SSTables of the table have deleted.
    Garbage(Granularity),
    /// As `Usual`, and all partitions that are not in these ranges, which ascend.
    Within(Arc<Vec<KeyRange>>),
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionEnd {
    /// The results are in the view.
    Done,
    /// The table was emptied or dropped meanwhile.
    Emptied,
    /// The compaction was stopped, or the engine is closing.
    Stopped,
}

impl Shared {
    /// Runs a compaction of the table if one is due, and requests a look for the next one. A failure is logged, and the old files
    /// stay in use.
    pub(crate) fn compact_if_due(&self, store: &Arc<TableStore>) {
        let Some(compaction) = self.begin_due(store) else {
            return;
        };
        self.background.send(Work::Compact(store.clone()));
        match self.run_compaction(&compaction) {
            Ok(CompactionEnd::Done) => {
                drop(compaction);
                self.background.send(Work::Compact(store.clone()));
            }
            Ok(CompactionEnd::Emptied) => {}
            Ok(CompactionEnd::Stopped) => {
                tracing::info!(?store, "a compaction was stopped; its inputs stay in use")
            }
            // The files of the table were removed while the compaction ran.
            Err(error) if store.is_dropped.load(Ordering::Acquire) => {
                tracing::info!(?store, %error, "a compaction ended, since its table was dropped");
            }
            Err(error) => {
                self.counters.compaction_failed();
                tracing::error!(?store, %error, "a compaction failed; its inputs stay in use");
                let (paths, is_for_good) = suspects(&compaction.inputs, &error);
                self.suspect(store, paths, is_for_good);
            }
        }
    }

    /// Merges the inputs and swaps the view.
    pub(crate) fn run_compaction(&self, compaction: &Compaction<'_>) -> Result<CompactionEnd> {
        let inputs = &compaction.inputs;
        let _doing = Doing::begin(Purpose::Compaction);
        let started_nanos = self.env.monotonic_nanos();
        self.snapshot_before_compaction(inputs.store)?;
        let mut transaction = Transaction::begin(
            self.env.clone(),
            &inputs.store.directory,
            TransactionKind::Compaction,
        )?;
        let indexes = inputs.store.indexes();
        let joined = Joined::of_inputs(inputs.merged.len());
        let written = match self.merge(compaction, &mut transaction, &indexes, &joined) {
            Ok(written) => written,
            Err(error) => {
                self.abort(transaction);
                let is_stopped = matches!(error, Error::Read(ReadError::Aborted(_)));
                return if is_stopped {
                    Ok(CompactionEnd::Stopped)
                } else {
                    Err(error)
                };
            }
        };
        if written.is_empty()
            && let Err(error) = self.remember_purged(inputs)
        {
            self.abort(transaction);
            return Err(error);
        }
        let Some(bytes) = self.swap(inputs, transaction, &written, &indexes)? else {
            return Ok(CompactionEnd::Emptied);
        };
        let bytes_in = inputs.merged_bytes();
        self.counters.compacted(bytes_in, bytes);
        self.remember_compaction(compaction, bytes_in, bytes, &joined);
        self.note_debt(inputs.store);
        let millis = self.env.monotonic_nanos().saturating_sub(started_nanos) / 1_000_000;
        let table = inputs.store.schema();
        tracing::info!(
            table = %format_args!("{}.{}", table.keyspace, table.name),
            sstables = inputs.merged.len(),
            expired = inputs.expired.len(),
            results = written.len(),
            bytes_in,
            bytes,
            millis,
            "compacted"
        );
        Ok(CompactionEnd::Done)
    }

    /// Remembers the stretches of the log that only the inputs cover, since no SSTable will be left to name them.
    fn remember_purged(&self, inputs: &Inputs<'_>) -> Result<()> {
        let covered = inputs.all().flat_map(|live| intervals_of(&live.sstable, self.id));
        let first = self.log()?.stretch(Position::START).from;
        let purged = &mut *self.purged.lock();
        if purged.add(inputs.store.id, covered, first) {
            purged.write(&*self.env, &self.options.data_dir, self.id)?;
        }
        Ok(())
    }

    /// Replaces the inputs by the new SSTables; returns the bytes of these. `None` if the inputs are not in the view any more.
    pub(crate) fn swap(
        &self,
        inputs: &Inputs<'_>,
        mut transaction: Transaction,
        written: &[Descriptor],
        indexes: &TableIndexes,
    ) -> Result<Option<u64>> {
        let store = inputs.store;
        let _files = store.maintenance.files();
        // A table that was dropped or emptied meanwhile has none of the inputs.
        let view = store.view();
        let is_there = |input: &Arc<LiveSSTable>| view.sstables.iter().any(|live| Arc::ptr_eq(live, input));
        if !inputs.all().all(is_there) {
            self.abort(transaction);
            return Ok(None);
        }
        let table = store.schema();
        let opened: Result<Vec<_>> = written
            .iter()
            .map(|descriptor| {
                let live = self.open_sstable(&table, descriptor)?;
                self.attach(store, indexes, &live)?;
                Ok(live)
            })
            .collect();
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.abort(transaction);
                return Err(error);
            }
        };
        let mut removed = inputs.all();
        if let Err(error) = removed.try_for_each(|input| transaction.remove(input.descriptor())) {
            self.abort(transaction);
            return Err(error.into());
        }
        let committed = Arc::new(self.commit(transaction)?);
        let bytes = opened.iter().map(|live| live.sstable.size_bytes()).sum();
        store.change_view(|view| {
            let kept = view.sstables.iter().filter(|live| !inputs.has(live)).cloned();
            view.with_sstables(kept.chain(opened).collect())
        });
        for input in inputs.all() {
            input.retire(committed.clone());
        }
        Ok(Some(bytes))
    }

    /// Merges the inputs; returns the new SSTables, without empty ones.
    fn merge(
        &self,
        compaction: &Compaction<'_>,
        transaction: &mut Transaction,
        indexes: &Arc<TableIndexes>,
        joined: &Joined,
    ) -> Result<Vec<Descriptor>> {
        let inputs = &compaction.inputs;
        if inputs.merged.is_empty() {
            return Ok(Vec::new());
        }
        let store = inputs.store;
        let table = store.schema();
        let task = &compaction.registered.task;
        let within = match &compaction.rules {
            Rules::Within(ranges) => ranges.clone(),
            _ => Arc::new(vec![KeyRange::all()]),
        };
        let sources = inputs
            .merged
            .iter()
            .map(|live| self.source(live, store, task, &within))
            .collect();
        let merged = Counted {
            merge: MergeCursor::new(sources, table.clone(), Direction::Forward),
            joined: joined.clone(),
        };
        let (merged, without_grace): (Box<dyn Cursor>, _) = match &compaction.rules {
            Rules::Usual | Rules::Within(_) => (Box::new(merged), Arc::default()),
            Rules::WithoutGrace(keys) => (Box::new(merged), keys.clone()),
            Rules::Garbage(granularity) => {
                let shadows = shadows_of(inputs, &table);
                let clean = GarbageSkip::new(merged, shadows, *granularity, table.clone());
                (Box::new(clean), Arc::default())
            }
        };
        let now_secs = self.purge_secs();
        let gc_before_secs = self.purge_before_secs(inputs);
        let mut purged = CompactionPurge::new(merged, now_secs, gc_before_secs, purgeable_below(inputs))
            .of_table(&table)
            .without_grace_of(without_grace);
        let bytes_in = inputs.merged_bytes();
        let mut options = self.options_for(inputs);
        options.level = compaction.level;
        options.estimated_partitions = options
            .estimated_partitions
            .div_ceil(inputs.pieces(compaction.output, bytes_in));
        let mut outputs = Outputs::new(
            self,
            store,
            table,
            transaction,
            options,
            compaction.output,
            bytes_in,
        )
        .with_indexes(indexes.clone());
        match merge_into(&mut purged, &mut outputs) {
            Ok(_) => outputs.finish(),
            Err(error) => {
                outputs.abandon();
                Err(error)
            }
        }
    }

    /// A cursor over an input, restricted to these ranges.
    fn source(
        &self,
        live: &Arc<LiveSSTable>,
        store: &TableStore,
        task: &Arc<Task>,
        within: &[KeyRange],
    ) -> Box<dyn Cursor> {
        let sstable = &live.sstable;
        let cursor: Box<dyn Cursor> = match within {
            [range] => {
                let filter = Arc::new(ClusteringFilter::all());
                scan(live, &store.schema(), range, &filter, Scan::Sequential)
            }
            ranges => Box::new(OverRanges::of(ranges, vec![live.clone()], &store.schema())),
        };
        let items = sstable.stats().total_rows + sstable.estimated_keys();
        let pace = Pace::of(&self.pacer, task);
        let watched = Watched::new(cursor, pace, sstable.size_bytes(), items);
        Box::new(watched)
    }

    /// Tombstones from before this second may be purged. Compat: with `only_purge_repaired_tombstones` only repaired ones.
    fn purge_before_secs(&self, inputs: &Inputs<'_>) -> u32 {
        let gc_before_secs = self.gc_before_secs(inputs.store);
        if !inputs.store.strategy().common.only_purge_repaired_tombstones {
            return gc_before_secs;
        }
        let stats = inputs.merged.iter().map(|live| live.sstable.stats());
        let unrepaired = stats.filter(|stats| stats.repaired_at_millis == 0);
        let oldest = unrepaired.map(|stats| stats.min_local_deletion_secs).min();
        oldest.map_or(gc_before_secs, |oldest| oldest.min(gc_before_secs))
    }

    fn options_for(&self, inputs: &Inputs<'_>) -> WriterOptions {
        let sstables = inputs.merged.iter().map(|live| &live.sstable);
        let stats = sstables.clone().map(|sstable| sstable.header().stats);
        // The result also covers the log stretches of inputs that are dropped without being read.
        let covered = inputs.all().flat_map(|live| intervals_of(&live.sstable, self.id));
        WriterOptions {
            partitioner: inputs.store.schema().partitioner(self.options.partitioner),
            has_static_rows: sstables
                .clone()
                .any(|sstable| !sstable.header().statics.is_empty()),
            estimated_partitions: sstables.map(|sstable| sstable.estimated_keys()).sum(),
            commit_log_intervals: union_intervals(covered.collect()),
            originating_host: Some(self.id),
            encoding_stats: stats.fold(EncodingStats::NONE, EncodingStats::merge),
            writes_token_map: self.options.finding == Finding::TokenMap,
            ..WriterOptions::default()
        }
    }
}

/// The inputs to exclude after an error: the damaged one (then also `true`: exclude it for good), else all of them.
fn suspects(inputs: &Inputs<'_>, error: &Error) -> (Vec<PathBuf>, bool) {
    let damaged = match error {
        Error::Read(ReadError::Corrupt { file, .. }) => file.file_name().and_then(|name| name.to_str()),
        _ => None,
    };
    let is_damaged = |live: &&Arc<LiveSSTable>| {
        damaged.is_some_and(|name| name.starts_with(&format!("{}-", live.descriptor().base_name())))
    };
    match inputs.merged.iter().find(is_damaged) {
        Some(live) => (vec![live.data_path()], true),
        None => (inputs.all().map(|live| live.data_path()).collect(), false),
    }
}

/// The partitions of the table's SSTables outside of the compaction, for [`GarbageSkip`]. Memtables are left out, since a crash may
/// lose their data.
fn shadows_of(inputs: &Inputs<'_>, table: &Arc<TableSchema>) -> Shadows {
    let store = inputs.store.clone();
    let own: Vec<_> = inputs.all().cloned().collect();
    let table = table.clone();
    let filter = Arc::new(ClusteringFilter::all());
    Box::new(move |key: &DecoratedKey| {
        let hash = KeyHash::of(&key.key);
        let view = store.view();
        let others = view
            .sstables
            .iter()
            .filter(|live| !own.iter().any(|input| Arc::ptr_eq(input, live)))
            .filter(|live| matches!(live.sstable.presence(key, &hash), Presence::Possible(_)));
        let range = KeyRange::exactly(key);
        let cursors: Vec<Box<dyn Cursor>> = others
            .map(|live| Box::new(scan(live, &table, &range, &filter, Scan::Point)) as Box<dyn Cursor>)
            .collect();
        Ok((!cursors.is_empty()).then(|| {
            Box::new(MergeCursor::new(cursors, table.clone(), Direction::Forward)) as Box<dyn Cursor>
        }))
    })
}

/// The lowest timestamp that a source outside of the compaction may have for a key. Compat: a write with an older timestamp that
/// arrives at this moment may be missed.
fn purgeable_below(inputs: &Inputs<'_>) -> ilion_rows::PurgeableBelow {
    let store = inputs.store.clone();
    let own: Vec<_> = inputs.all().cloned().collect();
    let filter = Arc::new(ClusteringFilter::all());
    Box::new(move |key: &DecoratedKey| {
        let view = store.view();
        let hash = KeyHash::of(&key.key);
        let memtables = view
            .memtables
            .iter()
            .filter(|memtable| memtable.partition(key, &filter).is_some())
            .map(|memtable| memtable.statistics().min_timestamp_micros);
        let others = view
            .sstables
            .iter()
            .filter(|live| !own.iter().any(|input| Arc::ptr_eq(input, live)))
            .map(|live| &live.sstable)
            .filter(|other| other.first_key() <= key && key <= other.last_key() && other.may_contain(&hash))
            .map(|other| other.stats().min_timestamp_micros);
        memtables.chain(others).min().unwrap_or(i64::MAX)
    })
}
