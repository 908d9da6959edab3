//! Reports of the administration: as JSON, and as text.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// State and sizes of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Why writes are refused; `None` while they are accepted.
    pub failure: Option<String>,
    /// Objects of the schema that the start could not open, each with the reason.
    #[serde(default)]
    pub set_aside: Vec<String>,
    /// Why memtables cannot be flushed for now; flushes are retried.
    #[serde(default)]
    pub stalled: Option<String>,
    /// Connected clients.
    pub clients: u64,
    /// Requests answered since the start.
    pub requests: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Limit of these bytes.
    pub memtable_bytes_max: u64,
    /// Flushes since the start.
    pub flushes: u64,
    /// Compactions since the start.
    pub compactions: u64,
    /// Compactions that failed since the start.
    pub compactions_failed: u64,
    /// Bytes read from files since the start.
    pub disk_read_bytes: u64,
    /// Seconds by which the clock is behind the newest timestamp that the node gave.
    #[serde(default)]
    pub clock_behind_secs: u64,
    /// Parts of the commit log that the start could not read; `None` if it read everything.
    #[serde(default)]
    pub log_losses: Option<LogLossReport>,
    /// Whether it is a node of a cluster: its members are in the `NodeReport`.
    #[serde(default)]
    pub is_of_cluster: bool,
    /// All tables but those of the system.
    pub tables: Vec<TableReport>,
}

/// Parts of the commit log that the start could not read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogLossReport {
    /// Number of damaged places, and of ends in the middle of a record.
    pub places: u64,
    /// Bytes of these places, as far as known.
    pub bytes: u64,
    /// Whole records that were not replayed, since they depend on lost ones.
    pub records_given_up: u64,
    /// Number of places where segments are missing in the sequence.
    pub gaps: u64,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableReport {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Number of SSTables.
    pub sstables: u64,
    /// Number of SSTables in each level; a strategy without levels has all in the first.
    #[serde(default)]
    pub levels: Vec<u64>,
    /// Bytes of its SSTables.
    pub sstable_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Estimated number of partitions.
    pub estimated_partitions: u64,
    /// Whether automatic compaction is on.
    #[serde(default)]
    pub is_auto_compacting: bool,
}

/// Identity, versions and directories of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InfoReport {
    /// Version of Ilion.
    pub version: String,
    /// Version of Cassandra that clients see.
    pub release_version: String,
    /// Id of the process.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_secs: u64,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Id of the node.
    pub host_id: String,
    /// Address for CQL clients.
    pub cql_address: String,
    /// Directory of the tables.
    pub data_directory: String,
    /// Directory of the commit log.
    pub commitlog_directory: String,
    /// Class of the partitioner.
    pub partitioner: String,
    /// Version of the schema.
    pub schema_version: String,
    /// The caches.
    #[serde(default)]
    pub caches: Vec<CacheReport>,
}

/// A cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Name as in `system_views.caches`.
    pub name: String,
    /// Bytes in use.
    pub bytes: u64,
    /// Limit of these bytes.
    pub bytes_max: u64,
    /// Entries in it.
    pub entries: u64,
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that found no entry.
    pub misses: u64,
}

impl fmt::Display for CacheReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, bytes_max) = (Bytes(self.bytes), Bytes(self.bytes_max));
        write!(
            f,
            "{:<12} {bytes} of {bytes_max}, {} entries, {} hits, {} misses",
            self.name, self.entries, self.hits, self.misses
        )?;
        match self.hits + self.misses {
            0 => Ok(()),
            lookups => write!(f, ", hit rate {:.3}", self.hits as f64 / lookups as f64),
        }
    }
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportReport {
    /// Path of each exported Data.db.
    pub exported: Vec<PathBuf>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportReport {
    /// SSTables that were added to the table.
    pub imported: Vec<ImportedFile>,
    /// SSTables that were refused; they stay where they are.
    pub refused: Vec<LeftFile>,
    /// SSTables that were imported, but could not be removed from the directory.
    pub left: Vec<LeftFile>,
}

/// Data.db of an SSTable that was imported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Path in the directory.
    pub from: PathBuf,
    /// Path in the table.
    pub to: PathBuf,
}

/// An SSTable that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FinishedLoad {
    /// Path of Data.db in the table; `None` in a cluster, whose nodes have got the rows.
    pub to: Option<PathBuf>,
}

/// Data.db of an SSTable that is still in the directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftFile {
    /// Its path.
    pub file: PathBuf,
    /// Why it is still there.
    pub reason: String,
}

/// Prints bytes with a unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let bytes = self.0 as f64;
        match self.0 {
            0..1_024 => write!(f, "{} B", self.0),
            1_024..1_048_576 => write!(f, "{:.1} KiB", bytes / 1_024.0),
            1_048_576..1_073_741_824 => write!(f, "{:.1} MiB", bytes / 1_048_576.0),
            _ => write!(f, "{:.1} GiB", bytes / 1_073_741_824.0),
        }
    }
}

impl fmt::Display for StatusReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failure, &self.stalled) {
            (None, None) => writeln!(f, "state        serving")?,
            (None, Some(reason)) => {
                writeln!(
                    f,
                    "state        serving, but FLUSHES FAIL and are tried again: {reason}"
                )?;
            }
            (Some(reason), _) => writeln!(f, "state        WRITES ARE REFUSED: {reason}")?,
        }
        for object in &self.set_aside {
            writeln!(f, "SET ASIDE    {object}")?;
        }
        writeln!(f, "clients      {}", self.clients)?;
        writeln!(f, "requests     {}", self.requests)?;
        writeln!(
            f,
            "memtables    {} of {}",
            Bytes(self.memtable_bytes),
            Bytes(self.memtable_bytes_max)
        )?;
        writeln!(f, "flushes      {}", self.flushes)?;
        writeln!(
            f,
            "compactions  {}, {} failed",
            self.compactions, self.compactions_failed
        )?;
        write!(f, "files        {} read", Bytes(self.disk_read_bytes))?;
        if let Some(lost) = &self.log_losses {
            write!(
                f,
                "\ncommit log   LOST AT THE START: {} places of {}, {} records given up, missing segments in {} places; the log tells where",
                lost.places,
                Bytes(lost.bytes),
                lost.records_given_up,
                lost.gaps
            )?;
        }
        if self.clock_behind_secs > 0 {
            write!(
                f,
                "\nclock        {} s BEFORE THE NEWEST TIMESTAMP THAT THIS NODE GAVE: mend it if it is wrong",
                self.clock_behind_secs
            )?;
        }
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}: {} in {} SSTables, {} in memory, about {} partitions",
            self.keyspace,
            self.table,
            Bytes(self.sstable_bytes),
            self.sstables,
            Bytes(self.memtable_bytes),
            self.estimated_partitions,
        )
    }
}

impl fmt::Display for InfoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "version      Ilion {} (as Cassandra {})",
            self.version, self.release_version
        )?;
        writeln!(f, "process      {}, up {} s", self.pid, self.uptime_secs)?;
        writeln!(f, "cluster      {}", self.cluster_name)?;
        writeln!(f, "host id      {}", self.host_id)?;
        writeln!(f, "CQL          {}", self.cql_address)?;
        writeln!(f, "data         {}", self.data_directory)?;
        writeln!(f, "commit log   {}", self.commitlog_directory)?;
        writeln!(f, "partitioner  {}", self.partitioner)?;
        write!(f, "schema       {}", self.schema_version)?;
        for cache in self.caches.iter().filter(|cache| cache.bytes_max > 0) {
            write!(f, "\ncache of {cache}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ExportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.exported {
            writeln!(f, "{}", file.display())?;
        }
        write!(f, "export: {} SSTables", self.exported.len())
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.imported {
            writeln!(f, "{} is now {}", file.from.display(), file.to.display())?;
        }
        for file in &self.refused {
            writeln!(f, "{} was left alone: {}", file.file.display(), file.reason)?;
        }
        for file in &self.left {
            writeln!(
                f,
                "{} was imported, but could not be removed: {}",
                file.file.display(),
                file.reason
            )?;
        }
        write!(
            f,
            "import: {} SSTables, {} left alone",
            self.imported.len(),
            self.refused.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn bytes_are_shown_with_one_decimal() {
        let shown = [0, 1023, 1024, 1 << 20, 3 << 29].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.5 GiB"]);
    }
}
