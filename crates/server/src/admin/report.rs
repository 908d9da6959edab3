//! What operators are told, as JSON and as lines for people.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the node is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Why writes are refused, if they are.
    pub failure: Option<String>,
    /// What the start could not open, and why.
    #[serde(default)]
    pub set_aside: Vec<String>,
    /// Why memtables cannot be flushed for now, if they cannot; it is tried again.
    #[serde(default)]
    pub stalled: Option<String>,
    /// Connected clients.
    pub clients: u64,
    /// Requests answered since the start.
    pub requests: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// What they may come to.
    pub memtable_bytes_max: u64,
    /// Flushes since the start.
    pub flushes: u64,
    /// Compactions since the start.
    pub compactions: u64,
    /// Those that failed.
    pub compactions_failed: u64,
    /// Bytes read from files since the start.
    pub disk_read_bytes: u64,
    /// How far the clock stands before the newest timestamp that the node gave, in seconds.
    #[serde(default)]
    pub clock_behind_secs: u64,
    /// What the start could not read of the commit log, if anything.
    #[serde(default)]
    pub log_losses: Option<LogLossReport>,
    /// Tables of users.
    pub tables: Vec<TableReport>,
}

/// What the start could not read of the commit log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogLossReport {
    /// Damaged places, and an end in the middle of a record.
    pub places: u64,
    /// Their bytes, as far as that is known.
    pub bytes: u64,
    /// Whole records that were given up, since they had been decided by what was lost.
    pub records_given_up: u64,
    /// Times that segments are missing between others or at an end.
    pub gaps: u64,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableReport {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// SSTables.
    pub sstables: u64,
    /// SSTables of each level: all in the first one if the table is not compacted by levels.
    #[serde(default)]
    pub levels: Vec<u64>,
    /// Bytes of their files.
    pub sstable_bytes: u64,
    /// Bytes of its memtables.
    pub memtable_bytes: u64,
    /// Partitions, about.
    pub estimated_partitions: u64,
}

/// Who and what the node is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InfoReport {
    /// Version of Ilion.
    pub version: String,
    /// Version of Cassandra that it behaves like.
    pub release_version: String,
    /// Process.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_secs: u64,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Id of the node.
    pub host_id: String,
    /// Where CQL clients connect.
    pub cql_address: String,
    /// Where the tables are.
    pub data_directory: String,
    /// Where the commit log is.
    pub commitlog_directory: String,
    /// How keys become tokens.
    pub partitioner: String,
    /// Version of the schema.
    pub schema_version: String,
    /// What is kept in memory of what is on disk.
    #[serde(default)]
    pub caches: Vec<CacheReport>,
}

/// A cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheReport {
    /// What it holds.
    pub name: String,
    /// Memory that it takes.
    pub bytes: u64,
    /// What it may take.
    pub bytes_max: u64,
    /// Entries in it.
    pub entries: u64,
    /// Look-ups that it answered.
    pub hits: u64,
    /// Look-ups that it did not.
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

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportReport {
    /// Data.db of each SSTable, where it is now.
    pub exported: Vec<PathBuf>,
}

/// What was imported, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportReport {
    /// SSTables that are in the table now.
    pub imported: Vec<ImportedFile>,
    /// SSTables that were left alone.
    pub refused: Vec<LeftFile>,
    /// SSTables that were imported and are still where they were, against the wish.
    pub left: Vec<LeftFile>,
}

/// Data.db of an SSTable that was imported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// What it was called.
    pub from: PathBuf,
    /// What it is called now.
    pub to: PathBuf,
}

/// Data.db of an SSTable that stays where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftFile {
    /// Where it is.
    pub file: PathBuf,
    /// Why.
    pub reason: String,
}

/// A number of bytes for people.
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
