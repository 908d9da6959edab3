//! Statistics of tables: `nodetool tablestats` and `nodetool tablehistograms`.

use std::fmt;

use ilion_engine::TableDetails;
use serde::{Deserialize, Serialize};

use ilion_node::costs::{Histogram, TableCosts};

/// Statistics of tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatsReport {
    /// Sorted by keyspace and name.
    pub tables: Vec<TableStats>,
}

/// Statistics of one table. Statements are counted since the start, or since the last reset of their costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStats {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Number of SSTables.
    pub sstables: u64,
    /// SSTables per level; empty without levels.
    pub sstables_in_levels: Vec<u64>,
    /// Bytes of all files of its SSTables.
    pub sstable_bytes: u64,
    /// Bytes of the largest SSTable.
    #[serde(default)]
    pub sstable_bytes_max: u64,
    /// Bytes that only its snapshots have.
    #[serde(default)]
    pub snapshots_bytes: u64,
    /// Uncompressed bytes of its Data.db files.
    pub data_bytes: u64,
    /// Compressed bytes for each uncompressed byte; `None` if no SSTable is compressed.
    pub compression_ratio: Option<f64>,
    /// Estimated partitions; a partition in several SSTables counts once for each.
    pub estimated_partitions: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Partitions in its memtables.
    pub memtable_partitions: u64,
    /// Estimated number of compactions that are due.
    pub pending_compactions: u64,
    /// Share of the cells in SSTables that are tombstones past gc grace.
    pub droppable_tombstones: f64,
    /// Reading statements.
    pub reads: u64,
    /// Reading statements that failed.
    pub reads_failed: u64,
    /// Writing statements.
    pub writes: u64,
    /// Writing statements that failed.
    pub writes_failed: u64,
    /// Latency of a read.
    pub read_micros: Percentiles,
    /// Latency of a write, including the wait for the commit log.
    pub write_micros: Percentiles,
    /// SSTables that a read touched.
    pub sstables_per_read: Percentiles,
    /// Rows that a read processed.
    pub rows_per_read: Percentiles,
    /// Tombstones that a read processed.
    pub tombstones_per_read: Percentiles,
    /// Bytes of a partition in one SSTable.
    pub partition_bytes: Percentiles,
    /// Cells of a partition in one SSTable.
    pub cells: Percentiles,
}

/// Percentiles of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 98th percentile.
    pub p98: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The minimum.
    #[serde(default)]
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The mean; 0 without values.
    #[serde(default)]
    pub mean: f64,
}

impl Percentiles {
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    pub(super) fn of(values: &Histogram, unit: f64) -> Self {
        let at = |percent| values.percentile(percent) as f64 / unit;
        Self {
            p50: at(50),
            p75: at(75),
            p95: at(95),
            p98: at(98),
            p99: at(99),
            min: values.min() as f64 / unit,
            max: values.summary().max as f64 / unit,
            mean: match values.count() {
                0 => 0.0,
                count => values.summary().sum as f64 / count as f64 / unit,
            },
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    fn estimated(values: &ilion_engine::EstimatedHistogram) -> Self {
        let at = |share| values.percentile(share).map_or(f64::NAN, |value| value as f64);
        Self {
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p98: at(0.98),
            p99: at(0.99),
            min: at(0.0),
            max: at(1.0),
            mean: match values.count() {
                0 => 0.0,
                _ => values.mean(),
            },
        }
    }

    /// Names and values, as nodetool lists them.
    pub fn all(&self) -> [(&'static str, f64); 7] {
        [
            ("50%", self.p50),
            ("75%", self.p75),
            ("95%", self.p95),
            ("98%", self.p98),
            ("99%", self.p99),
            ("Min", self.min),
            ("Max", self.max),
        ]
    }
}

impl TableStats {
    pub(super) fn of(details: &TableDetails, costs: &TableCosts) -> Self {
        let facts = &details.facts;
        let (reads, writes) = (costs.all_reads(), &costs.writes);
        Self {
            keyspace: facts.keyspace.clone(),
            table: facts.table.clone(),
            sstables: facts.sstables,
            sstables_in_levels: details.levels.clone(),
            sstable_bytes: facts.sstable_bytes,
            sstable_bytes_max: details.sstable_bytes_max,
            snapshots_bytes: 0,
            data_bytes: details.data_bytes,
            compression_ratio: details.compression_ratio,
            estimated_partitions: facts.estimated_partitions,
            memtable_bytes: facts.memtable_bytes,
            memtable_partitions: details.memtable_partitions,
            pending_compactions: facts.pending_compactions,
            droppable_tombstones: details.droppable_tombstones,
            reads: reads.calls,
            reads_failed: reads.errors,
            writes: writes.calls,
            writes_failed: writes.errors,
            read_micros: Percentiles::of(&reads.local_latency, 1000.0),
            write_micros: Percentiles::of(&writes.local_latency, 1000.0),
            sstables_per_read: Percentiles::of(&reads.sstables, 1.0),
            rows_per_read: Percentiles::of(&reads.rows, 1.0),
            tombstones_per_read: Percentiles::of(&reads.tombstones, 1.0),
            partition_bytes: Percentiles::estimated(&details.partition_bytes),
            cells: Percentiles::estimated(&details.cells),
        }
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "\t\t{name}: {value}");
        line("SSTable count", self.sstables.to_string())?;
        if !self.sstables_in_levels.is_empty() {
            line("SSTables in each level", format!("{:?}", self.sstables_in_levels))?;
        }
        line("Space used (live)", self.sstable_bytes.to_string())?;
        line(
            "Space used by snapshots (total)",
            self.snapshots_bytes.to_string(),
        )?;
        let ratio = self.compression_ratio.map_or(-1.0, |ratio| ratio);
        line("SSTable Compression Ratio", format!("{ratio:.5}"))?;
        line(
            "Number of partitions (estimate)",
            self.estimated_partitions.to_string(),
        )?;
        line("Memtable partitions", self.memtable_partitions.to_string())?;
        line("Memtable data size", self.memtable_bytes.to_string())?;
        line("Pending compactions", self.pending_compactions.to_string())?;
        line("Local read count", self.reads.to_string())?;
        line(
            "Local read latency",
            format!("{:.3} ms at the median", self.read_micros.p50 / 1000.0),
        )?;
        line("Local write count", self.writes.to_string())?;
        line(
            "Local write latency",
            format!("{:.3} ms at the median", self.write_micros.p50 / 1000.0),
        )?;
        line(
            "Failed reads, writes",
            format!("{}, {}", self.reads_failed, self.writes_failed),
        )?;
        line(
            "Compacted partition median bytes",
            format!("{:.0}", self.partition_bytes.p50),
        )?;
        line(
            "Compacted partition maximum bytes",
            format!("{:.0}", self.partition_bytes.max),
        )?;
        line("SSTables per read", half_and_most(&self.sstables_per_read))?;
        line("Live rows per read", half_and_most(&self.rows_per_read))?;
        line("Tombstones per read", half_and_most(&self.tombstones_per_read))?;
        line(
            "Droppable tombstone ratio",
            format!("{:.5}", self.droppable_tombstones),
        )
    }
}

fn half_and_most(percentiles: &Percentiles) -> String {
    format!(
        "{:.0} at the median, {:.0} at most",
        percentiles.p50, percentiles.max
    )
}

impl fmt::Display for TableStatsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Total number of tables: {}", self.tables.len())?;
        let mut keyspace = None;
        for table in &self.tables {
            if keyspace != Some(&table.keyspace) {
                keyspace = Some(&table.keyspace);
                writeln!(f, "----------------\nKeyspace : {}", table.keyspace)?;
            }
            writeln!(f, "\t\tTable: {}", table.table)?;
            table.tell(f)?;
            writeln!(f)?;
        }
        write!(f, "----------------")
    }
}

/// The same data, printed as tables of percentiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableHistogramsReport(pub TableStatsReport);

impl fmt::Display for TableHistogramsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, table) in self.0.tables.iter().enumerate() {
            if index > 0 {
                write!(f, "\n\n")?;
            }
            writeln!(f, "{}/{} histograms", table.keyspace, table.table)?;
            writeln!(
                f,
                "{:<10}{:>10}{:>18}{:>18}{:>18}{:>18}",
                "Percentile", "SSTables", "Write Latency", "Read Latency", "Partition Size", "Cell Count"
            )?;
            write!(
                f,
                "{:<10}{:>10}{:>18}{:>18}{:>18}{:>18}",
                "", "", "(micros)", "(micros)", "(bytes)", ""
            )?;
            let columns = [
                &table.sstables_per_read,
                &table.write_micros,
                &table.read_micros,
                &table.partition_bytes,
                &table.cells,
            ];
            let columns = columns.map(Percentiles::all);
            for row in 0..7 {
                let [sstables, writes, reads, bytes, cells] = columns.map(|column| column[row].1);
                let name = columns[0][row].0;
                write!(
                    f,
                    "\n{name:<10}{sstables:>10.2}{writes:>18.2}{reads:>18.2}{bytes:>18.0}{cells:>18.0}"
                )?;
            }
        }
        Ok(())
    }
}
