//! [`TableDetails`]: statistics of a table's data: sizes of partitions, compression, tombstones.

use ilion_schema::TableId;
use ilion_sstable::EstimatedHistogram;

use crate::facts::levels_of;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result, TableFacts};

/// A table at one moment, in detail. A partition in several SSTables counts in each.
#[derive(Clone, Debug)]
pub struct TableDetails {
    /// Counts.
    pub facts: TableFacts,
    /// Uncompressed sizes of partitions, in bytes.
    pub partition_bytes: EstimatedHistogram,
    /// Numbers of cells of partitions.
    pub cells: EstimatedHistogram,
    /// Uncompressed bytes of Data.db.
    pub data_bytes: u64,
    /// Bytes on disk for each uncompressed byte, over all compressed SSTables; `None` if no SSTable is compressed.
    pub compression_ratio: Option<f64>,
    /// Share of the cells that are tombstones past gc grace.
    pub droppable_tombstones: f64,
    /// Bytes of the files of the largest SSTable.
    pub sstable_bytes_max: u64,
    /// The longest time between the oldest and the newest data of an SSTable.
    pub sstable_duration_micros_max: u64,
    /// Partitions in memtables.
    pub memtable_partitions: u64,
    /// SSTables of each level, with leveled compaction.
    pub levels: Vec<u64>,
}

impl Engine {
    /// The details of a table or hidden table.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn table_details(&self, table: TableId) -> Result<TableDetails> {
        let store = self.shared.any_table(table).map(|(store, _)| store);
        let store = store.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        let pending = self.shared.pending_compactions(&store) as u64;
        let now_secs = u64::try_from(self.shared.env.now_secs()).unwrap_or(0);
        let mut details = store.details(now_secs);
        details.facts.pending_compactions = pending;
        Ok(details)
    }
}

impl TableStore {
    #[expect(clippy::cast_precision_loss, reason = "ratios for people")]
    fn details(&self, now_secs: u64) -> TableDetails {
        let schema = self.schema();
        let view = self.view();
        let gc_before = now_secs.saturating_sub(u64::from(schema.options.gc_grace_secs));
        let mut details = TableDetails {
            facts: self.facts(),
            partition_bytes: EstimatedHistogram::of_sizes(),
            cells: EstimatedHistogram::of_cells(),
            data_bytes: 0,
            compression_ratio: None,
            droppable_tombstones: 0.0,
            sstable_bytes_max: 0,
            sstable_duration_micros_max: 0,
            memtable_partitions: view
                .memtables
                .iter()
                .map(|memtable| memtable.partition_count() as u64)
                .sum(),
            levels: levels_of(&view),
        };
        let (mut compressed, mut stored, mut dropped) = (0.0, 0.0, 0.0);
        for live in &view.sstables {
            let (sstable, stats) = (&live.sstable, live.sstable.stats());
            details.partition_bytes.merge(&stats.partition_sizes);
            details.cells.merge(&stats.cells_per_partition);
            details.data_bytes += sstable.data_length();
            details.sstable_bytes_max = details.sstable_bytes_max.max(sstable.size_bytes());
            let duration = stats
                .max_timestamp_micros
                .saturating_sub(stats.min_timestamp_micros);
            let longest = &mut details.sstable_duration_micros_max;
            *longest = (*longest).max(u64::try_from(duration).unwrap_or(0));
            if stats.compression_ratio > 0.0 {
                compressed += sstable.data_length() as f64;
                stored += sstable.data_length() as f64 * stats.compression_ratio;
            }
            dropped += stats.tombstone_drop_times.sum_until(gc_before);
        }
        let cells = details.cells.mean() * details.cells.count() as f64;
        details.compression_ratio = (compressed > 0.0).then(|| stored / compressed);
        details.droppable_tombstones = if cells > 0.0 { dropped / cells } else { 0.0 };
        if details.levels.len() < 2 {
            details.levels.clear();
        }
        details
    }
}
