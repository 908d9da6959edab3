//! The door for operators: HTTP, on the loopback address or with a token.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | counters, for Prometheus |
//! | `GET /admin/status` | JSON: [`StatusReport`] |
//! | `GET /admin/info` | JSON: [`InfoReport`] |
//! | `POST /admin/flush` | `?keyspace=k&table=t`, both optional: which tables; answered when done |
//! | `POST /admin/compact` | the same, or less of them: [`CompactionOrder`] |
//! | `GET /admin/compactions` | JSON: [`CompactionReport`] |
//! | `POST /admin/stop` | `?id=i`, optional: compactions end, their inputs stay |
//! | `POST /admin/autocompaction` | `?on=true` or `false`, `&keyspace=k&table=t`: until the next start |
//! | `POST /admin/compaction-throughput` | `?bytes_per_sec=n`; 0 is no limit; until the next start |
//! | `POST /admin/invalidate-caches` | `?cache=rows`, optional: forgets what caches hold |
//! | `POST /admin/cache` | `?cache=rows&bytes_max=n&keys_to_save=n`, either: what a cache may take, and how many of its keys are saved (without: all); until the next start |
//! | `GET /admin/statements` | JSON: [`StatementsReport`] |
//! | `POST /admin/statements/reset` | what statements have cost is forgotten |
//! | `GET`, `POST /admin/trace-probability` | `?probability=p`: how many requests are traced that do not ask; JSON: [`TraceProbabilityReport`] |
//! | `GET /admin/table-stats` | `?keyspace=k&table=t`, both optional; JSON: [`TableStatsReport`] |
//! | `POST /admin/top-partitions` | `?millis=n&top=n`, and optional `keyspace=k&table=t`; answered after that time; JSON: [`TopPartitionsReport`] |
//! | `POST /admin/drain` | everything to disk; answered when done |
//! | `POST /admin/export` | `?keyspace=k&table=t&directory=d`: the table's SSTables as files there; JSON: [`ExportReport`] |
//! | `POST /admin/import` | the same, and `&source=moved` or `copied`: SSTables from there; JSON: [`ImportReport`] |
//!
//! The dashboard (`crate::dashboard`) is here, too. Errors are `{"error": ".."}` with status 400 (asked wrongly), 500 (failed), 401
//! or 403 (not for you, see [`Access`]).

mod access;
mod client;
mod compaction;
mod door;
mod engine_metrics;
mod indexes;
mod listen;
mod of_engine;
mod report;
mod statements;
mod table_stats;
mod table_times;
mod top_partitions;

pub use access::{Access, AccessError, read_token};
pub use client::{AdminClient, ClientError};
pub use compaction::{
    AutoCompactionOrder, CompactionOrder, CompactionReport, PendingCompactions, RunningCompaction, StopOrder,
    ThroughputOrder,
};
pub use door::AdminDoor;
pub use indexes::{IndexOrder, IndexReport};
pub use of_engine::EngineAdmin;
pub use report::{
    CacheReport, ExportReport, ImportReport, ImportedFile, InfoReport, LeftFile, LogLossReport, StatusReport,
    TableReport,
};

pub use statements::{StatementReport, StatementsReport, TraceProbabilityReport};
pub use table_stats::{Percentiles, TableHistogramsReport, TableStats, TableStatsReport};
pub use top_partitions::{TopPartitionReport, TopPartitionsOrder, TopPartitionsReport};

use std::path::PathBuf;

use crate::dashboard::{QueryOrder, QueryReport, SlowestOrder, SlowestReport};

/// What an operator can ask for.
pub trait Admin: Send + Sync {
    /// How it goes.
    fn status(&self) -> StatusReport;
    /// Who and what it is.
    fn info(&self) -> InfoReport;
    /// Writes memtables to disk.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn flush(&self, tables: &TableChoice) -> Result<u64, AdminError>;
    /// Merges SSTables; returns of how many tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn compact(&self, order: &CompactionOrder) -> Result<u64, AdminError>;
    /// The compactions that go on.
    fn compactions(&self) -> CompactionReport;
    /// Asks compactions to end; returns how many were asked.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn stop(&self, order: &StopOrder) -> Result<u64, AdminError>;
    /// Switches compactions that nobody asks for on or off; returns for how many tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_auto_compaction(&self, order: &AutoCompactionOrder) -> Result<u64, AdminError>;
    /// Limits how fast compactions read.
    fn set_compaction_throughput(&self, order: &ThroughputOrder);
    /// Makes an index anew from its table.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn rebuild_index(&self, order: &IndexOrder) -> Result<(), AdminError>;
    /// Compares an index with its table, and puts right what is wrong if that is asked for.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn verify_index(&self, order: &IndexOrder) -> Result<IndexReport, AdminError>;
    /// Brings everything to disk, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn drain(&self) -> Result<(), AdminError>;
    /// Puts the SSTables of a table into a directory.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn export(&self, place: &TablePlace) -> Result<ExportReport, AdminError>;
    /// Takes the SSTables of a directory into a table.
    ///
    /// # Errors
    /// See [`AdminError`]; files that cannot be taken are no error.
    fn import(&self, place: &TablePlace) -> Result<ImportReport, AdminError>;
    /// Forgets what a cache holds, or all of them.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn invalidate_caches(&self, cache: Option<&str>) -> Result<u64, AdminError>;
    /// Changes what a cache may take, and how many of its keys are saved.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn change_cache(&self, order: &CacheOrder) -> Result<(), AdminError>;
    /// What statements have cost.
    fn statements(&self) -> StatementsReport;
    /// Forgets what statements have cost.
    fn reset_statements(&self);
    /// How many of the requests are traced that do not ask for it.
    fn trace_probability(&self) -> f64;
    /// Sets how many they are, until the next start.
    ///
    /// # Errors
    /// It is no probability.
    fn set_trace_probability(&self, probability: f64) -> Result<(), AdminError>;
    /// Tables in detail.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn table_stats(&self, tables: &TableChoice) -> Result<TableStatsReport, AdminError>;
    /// The partitions that are used most for a while; returns when it is over.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn top_partitions(&self, order: &TopPartitionsOrder) -> Result<TopPartitionsReport, AdminError>;
    /// Counters in the text format of Prometheus.
    fn metrics(&self) -> String;
    /// The slowest reads of a rectangle of the spectrogram.
    fn slowest(&self, order: SlowestOrder) -> SlowestReport;
    /// Carries out a statement.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn query(&self, order: &QueryOrder) -> Result<QueryReport, AdminError>;
}

/// Which cache is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct CacheChoice {
    /// As `system_views.caches` names it; `None`: all.
    pub cache: Option<String>,
}

/// What is to change of a cache, until the next start.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct CacheOrder {
    /// As `system_views.caches` names it.
    pub cache: String,
    /// What it may take.
    pub bytes_max: Option<u64>,
    /// How many of its keys are saved; `-1` is all.
    pub keys_to_save: Option<i64>,
}

/// Which tables are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct TableChoice {
    /// Only of this keyspace.
    pub keyspace: Option<String>,
    /// Only this one; needs the keyspace.
    pub table: Option<String>,
}

/// A table, and a directory for its SSTables.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct TablePlace {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Absolute path of the directory.
    pub directory: PathBuf,
    /// What becomes of files that are imported.
    #[serde(default)]
    pub source: ImportedFrom,
}

/// What becomes of files that are imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportedFrom {
    /// They are removed once they are in the table.
    #[default]
    Moved,
    /// They stay.
    Copied,
}

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request makes no sense; ask for something else.
    #[error("{0}")]
    Refused(String),
    /// It failed; the log has more.
    #[error("{0}")]
    Failed(String),
}
