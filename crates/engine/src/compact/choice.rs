//! Makes the input of a strategy for a table, and registers its choice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_compaction::{Candidate, Choice, Situation, Strategy};
use ilion_schema::TableId;
use ilion_sstable::SSTable;
use parking_lot::MutexGuard;

use super::{Compaction, Inputs, Rules};
use crate::backlog::SLOWED_FROM;
use crate::choosing::Choosing;
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::tasks::{Job, Registered};
use crate::work::Work;
use crate::{Engine, Error, Result};

const MIN_THRESHOLD: &str = "min_threshold";
const MAX_THRESHOLD: &str = "max_threshold";
/// Compat: minimum and maximum threshold of a table that sets none.
const THRESHOLDS_DEFAULT: (u32, u32) = (4, 32);

/// Compat: `min_free_space_per_drive`.
const FREE_BYTES_MIN: u64 = 50 << 20;

/// Share of the cells that are tombstones from before `gc_before_secs`. Compat: `getEstimatedDroppableTombstoneRatio`.
fn droppable_ratio(sstable: &SSTable, gc_before_secs: u32) -> f64 {
    let stats = sstable.stats();
    let cells = stats.cells_per_partition.mean() * stats.cells_per_partition.count() as f64;
    if cells > 0.0 {
        stats.tombstone_drop_times.sum_until(u64::from(gc_before_secs)) / cells
    } else {
        0.0
    }
}

fn candidate(live: &LiveSSTable, gc_before_secs: u32, is_compacting: bool) -> Candidate {
    let sstable = &live.sstable;
    let stats = sstable.stats();
    Candidate {
        id: live.data_path(),
        size_bytes: sstable.size_bytes(),
        partitions: sstable.estimated_keys(),
        first: sstable.first_key().clone(),
        last: sstable.last_key().clone(),
        level: stats.level,
        min_timestamp: stats.min_timestamp_micros,
        max_timestamp: stats.max_timestamp_micros,
        max_local_deletion_secs: stats.max_local_deletion_secs,
        droppable_ratio: droppable_ratio(sstable, gc_before_secs),
        created_secs: live.created_secs(),
        is_compacting,
    }
}

impl TableStore {
    /// How the table is compacted, as it is now.
    pub(crate) fn strategy(&self) -> Strategy {
        Strategy::of_options(&self.compaction_options())
    }

    /// The table option `compaction`, with thresholds that an operator has set until the next start.
    fn compaction_options(&self) -> BTreeMap<String, String> {
        let mut options = self.schema().options.compaction.clone();
        if let Some((min, max)) = *self.thresholds.lock() {
            options.insert(MIN_THRESHOLD.to_owned(), min.to_string());
            options.insert(MAX_THRESHOLD.to_owned(), max.to_string());
        }
        options
    }
}

impl Shared {
    pub(crate) fn gc_before_secs(&self, store: &TableStore) -> u32 {
        let now_secs = self.purge_secs();
        now_secs.saturating_sub(store.schema().options.gc_grace_secs)
    }

    /// The input of the strategy: the state of the table.
    pub(crate) fn situation(&self, store: &TableStore) -> Situation {
        let gc_before_secs = self.gc_before_secs(store);
        let compacting = store.compacting.lock().clone();
        let view = store.view();
        let memtables = view.memtables.iter();
        Situation {
            candidates: view
                .sstables
                .iter()
                .map(|live| candidate(live, gc_before_secs, compacting.contains(&live.data_path())))
                .collect(),
            memtable_min_timestamp: memtables
                .map(|memtable| memtable.statistics().min_timestamp_micros)
                .min()
                .unwrap_or(i64::MAX),
            now_secs: self.env.now_secs(),
            gc_before_secs,
            flush_bytes: store.flush_bytes(),
            random: self.env.random_u64(),
        }
    }

    /// Chooses the next background compaction of the table and registers its inputs.
    pub(crate) fn begin_due<'a>(&'a self, store: &'a Arc<TableStore>) -> Option<Compaction<'a>> {
        let strategy = store.strategy();
        let mut choosing = store.choosing.lock();
        let is_allowed = self.options.is_compacting
            && strategy.common.is_enabled
            && store.is_auto_compacting()
            && store.set_aside_reason().is_none()
            && choosing.pauses == 0
            && self.failure().is_none()
            && !self.pacer.is_stopping();
        if !is_allowed {
            return None;
        }
        let now_nanos = self.env.monotonic_nanos();
        choosing.expire_suspects(now_nanos);
        let mut situation = self.situation(store);
        for candidate in &mut situation.candidates {
            candidate.is_compacting |= choosing.is_suspect(&candidate.id);
        }
        let choice = strategy.choose(&situation, &mut choosing.memory)?;
        let free = self.free_bytes(store);
        let Some(choice) = strategy.within(&situation, &choice, free) else {
            tracing::warn!(
                ?store,
                free,
                sstables = choice.inputs.len(),
                "there is not enough space on the disk for a compaction; it is put off"
            );
            choosing.suspect(choice.inputs, now_nanos);
            return None;
        };
        self.register(store, &choosing, choice)
    }

    /// Registers the inputs of a choice; `None` if one is gone or being compacted.
    pub(crate) fn register<'a>(
        &'a self,
        store: &'a Arc<TableStore>,
        _choosing: &MutexGuard<'_, Choosing>,
        choice: Choice,
    ) -> Option<Compaction<'a>> {
        let inputs = Inputs::acquire(store, &choice)?;
        let registered = self.begin_task(store, &inputs);
        Some(Compaction {
            inputs,
            registered,
            output: choice.output,
            level: choice.level,
            rules: Rules::Usual,
        })
    }

    fn begin_task(&self, store: &TableStore, inputs: &Inputs<'_>) -> Registered<'_> {
        let table = store.schema();
        let job = Job {
            table_id: store.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            kind: match inputs.merged.len() {
                1 => "tombstone compaction",
                _ => "compaction",
            },
            directory: store.directory.clone(),
            sstables: inputs.merged.len() + inputs.expired.len(),
            total_bytes: inputs.merged_bytes(),
        };
        self.tasks.begin(self.env.time_uuid(), job)
    }

    /// Space that a compaction may use: not the whole disk, and not what running compactions may still write.
    pub(crate) fn free_bytes(&self, store: &TableStore) -> u64 {
        // If the free space is unknown, the write itself fails on a full disk.
        let free = self.env.free_space_bytes(&store.directory).unwrap_or(u64::MAX);
        let usable = free - free / 20;
        usable.saturating_sub(FREE_BYTES_MIN.max(self.tasks.reserved_bytes()))
    }

    /// Excludes the files of a failed compaction from choices: a damaged file for good, others for a while.
    pub(crate) fn suspect(&self, store: &TableStore, paths: Vec<PathBuf>, is_for_good: bool) {
        let mut choosing = store.choosing.lock();
        match is_for_good {
            true => choosing.suspect_for_good(paths),
            false => choosing.suspect(paths, self.env.monotonic_nanos()),
        }
    }

    /// Computes the table's debt again.
    pub(crate) fn note_debt(&self, store: &TableStore) {
        store.debt.note(self.debt_of(store));
        self.note_worst_debt();
    }

    /// Computes the debt of a table that was just opened.
    pub(crate) fn found_debt(&self, store: &TableStore) {
        store.debt.found(self.debt_of(store));
    }

    fn debt_of(&self, store: &TableStore) -> usize {
        let strategy = store.strategy();
        // Without compactions, writers must not wait for one.
        if !self.options.is_compacting || !strategy.common.is_enabled || !store.is_auto_compacting() {
            return 0;
        }
        if store.view().sstables.len() < 4 {
            return 0;
        }
        let memory = store.choosing.lock().memory.clone();
        strategy.debt(&self.situation(store), &memory)
    }

    fn note_worst_debt(&self) {
        let worst = self.stores().iter().map(|store| store.debt.now()).max();
        let worst = worst.unwrap_or(0);
        self.backlog.note(worst);
        self.pacer.press(worst as f64 / SLOWED_FROM as f64);
    }

    /// About how many compactions of the table are due.
    pub(crate) fn pending_compactions(&self, store: &TableStore) -> usize {
        let memory = store.choosing.lock().memory.clone();
        store.strategy().pending(&self.situation(store), &memory)
    }
}

impl Engine {
    /// Fewest and most SSTables that a compaction of the table merges. Compat: strategies without thresholds have them, too.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn compaction_thresholds(&self, table: TableId) -> Result<(u32, u32)> {
        let (store, _) = self.any_store(table)?;
        let options = store.compaction_options();
        let option = |name: &str| options.get(name).and_then(|text| text.parse().ok());
        let (min, max) = THRESHOLDS_DEFAULT;
        Ok((
            option(MIN_THRESHOLD).unwrap_or(min),
            option(MAX_THRESHOLD).unwrap_or(max),
        ))
    }

    /// Sets the thresholds until the next start, or until the table is altered.
    ///
    /// # Errors
    /// The table does not exist, its strategy has no thresholds, or the values are not valid.
    pub fn set_compaction_thresholds(&self, table: TableId, min: u32, max: u32) -> Result<()> {
        let (store, _) = self.any_store(table)?;
        if min < 2 || max < min {
            return Err(Error::Refused(format!(
                "thresholds of compactions must be at least 2, the first one not above the second: not {min} and {max}"
            )));
        }
        if !store.strategy().has_thresholds() {
            return Err(Error::Refused(
                "the strategy of the table's compaction has no thresholds: SizeTieredCompactionStrategy and \
                 TimeWindowCompactionStrategy have"
                    .to_owned(),
            ));
        }
        *store.thresholds.lock() = Some((min, max));
        self.shared.note_debt(&store);
        self.shared.background.send(Work::Compact(store));
        Ok(())
    }
}
