//! SSTables to fewer: picks what to merge, merges it, and swaps the view.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ilion_compaction::{Candidate, Choice, Sink, SizeTiered, Throttle, choose, merge_into};
use ilion_rows::{
    ClusteringFilter, CompactionPurge, DecoratedKey, Direction, KeyRange, MergeCursor, PartitionHead,
    Unfiltered,
};
use ilion_sstable::{
    CommitLogInterval, CommitLogPosition, Descriptor, EncodingStats, Finding, KeyHash, SSTable,
    SSTableWriter, Scan, Transaction, TransactionKind, WriterOptions,
};
use uuid::Uuid;

use crate::engine::Shared;
use crate::read::scan;
use crate::table_store::TableStore;
use crate::view::LiveSSTable;
use crate::{Error, Result};

/// Unregisters the inputs of a compaction however it ends.
struct Inputs<'a> {
    store: &'a Arc<TableStore>,
    sstables: Vec<Arc<LiveSSTable>>,
}

impl<'a> Inputs<'a> {
    /// Those of `wanted` that are still in the view; nothing if some is gone or being compacted.
    fn acquire(store: &'a Arc<TableStore>, wanted: &[PathBuf]) -> Option<Self> {
        let view = store.view();
        let sstables: Vec<_> = view
            .sstables
            .iter()
            .filter(|live| wanted.contains(&live.data_path()))
            .cloned()
            .collect();
        let mut compacting = store.compacting.lock();
        if sstables.len() != wanted.len() || wanted.iter().any(|path| compacting.contains(path)) {
            return None;
        }
        compacting.extend(wanted.iter().cloned());
        Some(Self { store, sstables })
    }

    fn has(&self, live: &Arc<LiveSSTable>) -> bool {
        self.sstables.iter().any(|input| Arc::ptr_eq(input, live))
    }
}

impl Drop for Inputs<'_> {
    fn drop(&mut self) {
        let mut compacting = self.store.compacting.lock();
        for live in &self.sstables {
            compacting.remove(&live.data_path());
        }
    }
}

impl Shared {
    /// Merges as long as the strategy finds something. Failures are told in the log: the old files stay in use.
    pub(crate) fn compact_while_due(&self, store: &Arc<TableStore>) {
        while self.options.is_compacting && self.failure().is_none() {
            let Choice::Merge(wanted) = self.choose(store) else {
                return;
            };
            match Inputs::acquire(store, &wanted).map(|inputs| self.compact_inputs(&inputs)) {
                Some(Ok(true)) => {}
                Some(Ok(false)) | None => return,
                Some(Err(error)) => {
                    self.counters.compaction_failed();
                    tracing::error!(?store, %error, "a compaction failed; its inputs stay in use");
                    return;
                }
            }
        }
    }

    fn choose(&self, store: &TableStore) -> Choice {
        let options = &store.schema().options.compaction;
        if options.get("enabled").is_some_and(|enabled| enabled == "false") {
            return Choice::Nothing;
        }
        let compacting = store.compacting.lock();
        let candidates: Vec<Candidate> = store
            .view()
            .sstables
            .iter()
            .filter(|live| !compacting.contains(&live.data_path()))
            .map(|live| Candidate {
                id: live.data_path(),
                size_bytes: live.sstable.size_bytes(),
                max_timestamp_micros: live.sstable.stats().max_timestamp_micros,
                droppable_ratio: 0.0,
            })
            .collect();
        choose(&candidates, &SizeTiered::of_options(options))
    }

    /// Merges everything into one SSTable.
    pub(crate) fn compact_fully(&self, store: &Arc<TableStore>) -> Result<()> {
        let wanted: Vec<PathBuf> = store
            .view()
            .sstables
            .iter()
            .map(|live| live.data_path())
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let Some(inputs) = Inputs::acquire(store, &wanted) else {
            let table = store.schema();
            return Err(Error::Refused(format!(
                "{}.{} is being compacted; try again later",
                table.keyspace, table.name
            )));
        };
        self.compact_inputs(&inputs).map(|_| ())
    }

    /// Merges the inputs into one SSTable (or none, if nothing is left). False if the table was emptied meanwhile.
    fn compact_inputs(&self, inputs: &Inputs<'_>) -> Result<bool> {
        let store = inputs.store;
        let started_nanos = self.env.monotonic_nanos();
        let mut transaction =
            Transaction::begin(self.env.clone(), &store.directory, TransactionKind::Compaction)?;
        let descriptor = store.next_descriptor(self.options.sstable_version);
        transaction.add(&descriptor)?;
        let partitions = match self.merge(inputs, &descriptor) {
            Ok(partitions) => partitions,
            Err(error) => {
                transaction.abort()?;
                return Err(error);
            }
        };
        let _maintenance = store.maintenance.lock();
        // A table that was dropped or emptied meanwhile has none of the inputs.
        let view = store.view();
        if inputs
            .sstables
            .iter()
            .any(|input| !view.sstables.iter().any(|live| Arc::ptr_eq(live, input)))
        {
            transaction.abort()?;
            return Ok(false);
        }
        for input in &inputs.sstables {
            transaction.remove(input.descriptor())?;
        }
        let committed = Arc::new(transaction.commit()?);
        let merged = match partitions {
            0 => None,
            _ => Some(self.open_sstable(&store.schema(), &descriptor)?),
        };
        let bytes = merged.as_ref().map_or(0, |live| live.sstable.size_bytes());
        store.change_view(|view| {
            let kept = view.sstables.iter().filter(|live| !inputs.has(live)).cloned();
            view.with_sstables(kept.chain(merged).collect())
        });
        for input in &inputs.sstables {
            input.retire(committed.clone());
        }
        let bytes_in: u64 = inputs.sstables.iter().map(|live| live.sstable.size_bytes()).sum();
        self.counters.compacted(bytes_in, bytes);
        let millis = self.env.monotonic_nanos().saturating_sub(started_nanos) / 1_000_000;
        let count = inputs.sstables.len();
        tracing::debug!(sstable = %descriptor, count, bytes_in, bytes, partitions, millis, "compacted");
        Ok(true)
    }

    /// Writes what the inputs come to; returns the number of partitions. With none, no file is left.
    fn merge(&self, inputs: &Inputs<'_>, descriptor: &Descriptor) -> Result<u64> {
        let store = inputs.store;
        let table = store.schema();
        let filter = Arc::new(ClusteringFilter::all());
        let sources = inputs
            .sstables
            .iter()
            .map(|live| scan(live, &table, &KeyRange::all(), &filter, Scan::Sequential))
            .collect();
        let merged = MergeCursor::new(sources, table.clone(), Direction::Forward);
        let now_secs = u32::try_from(self.env.now_secs()).unwrap_or(u32::MAX);
        let gc_before_secs = now_secs.saturating_sub(table.options.gc_grace_secs);
        let mut purged = CompactionPurge::new(merged, now_secs, gc_before_secs, purgeable_below(inputs));
        let mut writer = SSTableWriter::new(&self.env, descriptor, &table, self.options_for(inputs))?;
        let bytes_in: u64 = inputs.sstables.iter().map(|live| live.sstable.size_bytes()).sum();
        let mut pace = Pace::new(self, bytes_in, inputs);
        let outcome = merge_into(&mut purged, &mut WriterSink(&mut writer), &mut pace);
        match outcome {
            Ok(Some(outcome)) if outcome.partitions > 0 => {
                writer.finish()?;
                Ok(outcome.partitions)
            }
            Ok(Some(_)) => {
                writer.abandon();
                Ok(0)
            }
            Ok(None) => {
                writer.abandon();
                Err(Error::Refused("the compaction was stopped".to_owned()))
            }
            Err(error) => {
                writer.abandon();
                Err(error)
            }
        }
    }

    fn options_for(&self, inputs: &Inputs<'_>) -> WriterOptions {
        let sstables = inputs.sstables.iter().map(|live| &live.sstable);
        let stats = sstables.clone().map(|sstable| sstable.header().stats);
        WriterOptions {
            partitioner: inputs.store.schema().partitioner(self.options.partitioner),
            estimated_partitions: sstables.clone().map(|sstable| sstable.estimated_keys()).sum(),
            commit_log_intervals: union(
                sstables
                    .flat_map(|sstable| intervals_of(sstable, self.id))
                    .collect(),
            ),
            originating_host: Some(self.id),
            encoding_stats: stats.fold(EncodingStats::NONE, EncodingStats::merge),
            writes_token_map: self.options.finding == Finding::TokenMap,
            ..WriterOptions::default()
        }
    }
}

/// What of this node's commit log an SSTable holds; nothing of one that another node wrote.
pub(crate) fn intervals_of(sstable: &SSTable, id: Uuid) -> Vec<CommitLogInterval> {
    if sstable.stats().originating_host != Some(id) {
        return Vec::new();
    }
    let place = |position: &CommitLogPosition| {
        let segment = u64::try_from(position.segment).unwrap_or(0);
        (segment, u32::try_from(position.offset).unwrap_or(0))
    };
    let intervals = sstable.stats().commit_log_intervals.iter();
    intervals.map(|(start, end)| (place(start), place(end))).collect()
}

/// Joins intervals that touch or overlap. Pure.
pub(crate) fn union(mut intervals: Vec<CommitLogInterval>) -> Vec<CommitLogInterval> {
    intervals.sort_unstable();
    let mut joined: Vec<CommitLogInterval> = Vec::new();
    for (start, end) in intervals {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The lowest timestamp that a source outside of the compaction may have for a key.
fn purgeable_below(inputs: &Inputs<'_>) -> ilion_rows::PurgeableBelow {
    let store = inputs.store.clone();
    let own: Vec<_> = inputs.sstables.clone();
    Box::new(move |key: &DecoratedKey| {
        let view = store.view();
        let hash = KeyHash::of(&key.key);
        let memtables = view
            .memtables
            .iter()
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

struct WriterSink<'a>(&'a mut SSTableWriter);

impl Sink for WriterSink<'_> {
    type Error = Error;

    fn begin_partition(&mut self, head: &PartitionHead) -> Result<()> {
        Ok(self.0.begin_partition(head)?)
    }

    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<()> {
        Ok(self.0.add(unfiltered)?)
    }

    fn end_partition(&mut self) -> Result<()> {
        Ok(self.0.finish_partition()?)
    }
}

/// Keeps a merge at the rate that the options allow, by the share of its partitions that has passed.
struct Pace<'a> {
    shared: &'a Shared,
    /// Bytes that a look at the throttle stands for.
    bytes_per_look: u64,
    started_nanos: u64,
    looks: u64,
}

/// Looks happen at least once in so many rows or partitions (`ilion_compaction::merge_into`).
const ROWS_PER_LOOK: u64 = 1024;

impl<'a> Pace<'a> {
    fn new(shared: &'a Shared, bytes_in: u64, inputs: &Inputs<'_>) -> Self {
        let rows = inputs.sstables.iter().map(|live| {
            let stats = live.sstable.stats();
            stats.total_rows.max(live.sstable.estimated_keys())
        });
        Self {
            shared,
            bytes_per_look: bytes_in / rows.sum::<u64>().max(1) * ROWS_PER_LOOK,
            started_nanos: shared.env.monotonic_nanos(),
            looks: 0,
        }
    }
}

impl Throttle for Pace<'_> {
    fn go_on(&mut self) -> bool {
        self.looks += 1;
        if let Some(rate) = self.shared.options.compaction_bytes_per_sec {
            let due = self.looks * self.bytes_per_look * 1000 / rate.max(1);
            let passed = self
                .shared
                .env
                .monotonic_nanos()
                .saturating_sub(self.started_nanos)
                / 1_000_000;
            self.shared
                .background
                .pause(Duration::from_millis(due.saturating_sub(passed)));
        }
        !self.shared.background.is_stopping()
    }
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn touching_intervals_become_one() {
        let intervals = vec![((2, 0), (3, 5)), ((1, 0), (2, 0)), ((4, 0), (4, 9))];
        assert_eq!(union(intervals), [((1, 0), (3, 5)), ((4, 0), (4, 9))]);
        assert_eq!(union(vec![]), []);
    }
}
