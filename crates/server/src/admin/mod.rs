//! Administration over HTTP. `entry` decides who may use it, before any handler runs.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /metrics` | counters, for Prometheus |
//! | `GET /admin/status` | JSON: [`StatusReport`] |
//! | `GET /admin/info` | JSON: [`InfoReport`] |
//! | `POST /admin/flush` | `?keyspace=k&table=t`, both optional: which tables; answered when done |
//! | `POST /admin/compact` | the same, or some SSTables of them: [`CompactionOrder`] |
//! | `GET /admin/compactions` | JSON: [`CompactionReport`] |
//! | `POST /admin/stop` | `?id=i`, optional: compactions end, their inputs stay |
//! | `POST /admin/autocompaction` | `?on=true` or `false`, `&keyspace=k&table=t`: until the next start |
//! | `POST /admin/compaction-throughput` | `?bytes_per_sec=n`; 0 is no limit; until the next start |
//! | `POST /admin/invalidate-caches` | `?cache=rows`, optional: empties one cache or all |
//! | `POST /admin/cache` | `?cache=rows&bytes_max=n&keys_to_save=n`, either: size of a cache, and how many of its keys are saved (-1: all); until the next start |
//! | `GET /admin/statements` | JSON: [`StatementsReport`] |
//! | `POST /admin/statements/reset` | resets the costs of statements |
//! | `GET`, `POST /admin/trace-probability` | `?probability=p`: share of the requests that are traced although their clients did not request it; JSON: [`TraceProbabilityReport`] |
//! | `GET /admin/table-stats` | `?keyspace=k&table=t`, both optional; JSON: [`TableStatsReport`] |
//! | `POST /admin/top-partitions` | `?millis=n&top=n`, and optional `keyspace=k&table=t`; answered after that time; JSON: [`TopPartitionsReport`] |
//! | `POST /admin/drain` | everything to disk; answered when done |
//! | `POST /admin/snapshot` | `?tag=t`, and optional `keyspaces=` (one per line) or `tables=k.t,..`, `ttl=1h`, `skip_flush=true`: [`SnapshotOrder`] |
//! | `GET /admin/snapshots` | JSON: [`SnapshotsReport`] |
//! | `POST /admin/clear-snapshot` | `?tag=t`, `keyspaces=`, `older_than=1d`, `older_than_timestamp=..`, all optional: [`ClearOrder`] |
//! | `GET`, `POST /admin/backup` | `?on=true` or `false`: incremental backups, until the next start; JSON: [`BackupReport`] |
//! | `POST /admin/backups/..` | requests of `ilion backup`: see `backups` |
//! | `GET`, `POST /admin/audit-log` | `?on=true` or `false`, and optional `logger=` and filters: the audit log, until the next start: [`AuditLogOrder`]; JSON: [`AuditLogReport`] |
//! | `GET /admin/data-paths` | `?tables=`, optional, one `keyspace` or `keyspace.table` per line; JSON: [`DataPathsReport`] |
//! | `GET /admin/sstables` | `?keyspace=k&table=t&key=x`, and optional `hex=true`; JSON: [`SSTablesReport`] |
//! | `GET /admin/key-sample` | JSON: [`KeySampleReport`] |
//! | `GET /admin/compaction-history`, `thread-pools`, `clients`, `concurrency`, `cidr-counts`, `cidr-latencies` | JSON: [`NodeTableReport`] |
//! | `GET /admin/node` | JSON: [`NodeReport`] |
//! | `GET /admin/view-built` | `?keyspace=k&table=v`: whether the view is built |
//! | `GET`, `POST /admin/settings` | `?assignments=`, `name=value` one per line: until the next start; JSON: [`SettingsReport`] |
//! | `POST /admin/reload` | the settings of the file; JSON: [`ReloadReport`] |
//! | `POST /admin/reload-certificates` | reads the files of certificates again |
//! | `GET`, `POST /admin/binary` | `?on=true` or `false`: whether clients may connect; JSON: [`BinaryReport`] |
//! | `GET`, `POST /admin/ring-change` | `?kind=leave`, `remove`, `rebalance` or `cancel`, `&host=id&force=true`: the ring of the cluster: [`RingOrder`]; JSON: [`RingReport`], [`RingStarted`] |
//! | `POST /admin/cleanup` | removes the data of slices of the ring that this node does not hold |
//! | `POST /admin/rewrite` | `?keyspace=k&table=t&all=true` or `compression=true`, all optional: rewrites SSTables: [`RewriteOrder`] |
//! | `POST /admin/garbage` | `?keyspace=k&table=t&cells=true`, all optional: removes from older SSTables what newer ones have deleted: [`GarbageOrder`] |
//! | `POST /admin/compact-keys` | `?keyspace=k&table=t&keys=`, one per line: [`KeysOrder`] |
//! | `GET`, `POST /admin/compaction-thresholds` | `?keyspace=k&table=t`, and `min=n&max=n` to set them until the next start; JSON: [`ThresholdsReport`] |
//! | `GET /admin/cidr-groups` | `?address=a`, optional; JSON: [`CidrGroupsReport`] |
//! | `POST /admin/cidr-group` | `?name=n&cidrs=`, `10.0.0.0/8` one per line: creates or changes the group; without addresses, removes it |
//! | `POST /admin/stop-node` | the node stops as on SIGTERM, after the answer |
//! | `POST /admin/scrub` | `?keyspace=k&table=t&without_snapshot=true&skips_corrupted=true`, all optional; JSON: [`ScrubReport`] |
//! | `POST /admin/verify` | `?keyspace=k&table=t`, both optional; JSON: [`VerifyReport`] |
//! | `GET /admin/changes` | `?keyspace=k&table=t&from=earliest&once=true&progress=true&consumer=c&format=keyed` or `avro`, the last four optional: changes of the table, a line each: [`ChangesOrder`] |
//! | `POST /admin/changes/commit` | `?consumer=c&keyspace=k&table=t&position=p&logged_ms=n`: the consumer has processed all changes before the position: [`CommitOrder`] |
//! | `GET /admin/changes/consumers` | progress of named consumers; JSON: [`ConsumersReport`] |
//! | `POST /admin/changes/release` | `?before=p`, optional: removes segments that all of them have processed; JSON: [`ReleaseReport`] |
//! | `POST /admin/changes/forget` | `?consumer=c`: forgets the consumer |
//! | `GET /healthz`, `/readyz` | 200 while the process answers; while it serves clients and takes writes, else 503 with the reason. While the node starts, every other request gets 503 with what it does. They, and `GET /admin/binary`, need no token |
//! | `POST /admin/export` | `?keyspace=k&table=t&directory=d`: the table's SSTables as files there; JSON: [`ExportReport`] |
//! | `POST /admin/import` | the same, and `&source=moved` or `copied`: SSTables from there; JSON: [`ImportReport`] |
//! | `POST /admin/refresh` | `?keyspace=k&table=t`: SSTables that were placed in the directory of the table; JSON: [`ImportReport`] |
//! | `POST /admin/load/..` | SSTables of another machine: see `loads` |
//!
//! The dashboard (`crate::dashboard`) is served here, too. Errors are `{"error": ".."}` with status 400 (a wrong request), 500
//! (failed), 401 or 403 (no access, see `entry`).

mod audit_log;
mod backups;
mod change_metrics;
mod changes;
mod cidr_groups;
mod client;
mod cluster_metrics;
mod compaction;
mod consumers_report;
mod door;
mod engine_metrics;
mod entry;
mod error;
mod handling;
mod indexes;
mod key_sample;
mod layout;
mod listen;
mod load_rows;
mod loads;
mod maintenance;
mod node;
mod node_tables;
mod of_engine;
mod paths;
mod process_metrics;
mod report;
mod rewrite;
mod ring;
mod settings;
mod snapshots;
pub(crate) mod starting;
mod statements;
mod table_metrics;
mod table_stats;
mod top_partitions;

pub use audit_log::{AuditLogOrder, AuditLogReport};
pub use backups::{ArchiveReport, BackupsOrder, MomentReport, MomentTableReport, TablePlan};
pub use cidr_groups::{CidrGroupOrder, CidrGroupsOrder, CidrGroupsReport};
pub use client::{AdminClient, ClientError};
pub use compaction::{
    AutoCompactionOrder, AwaitedWork, CompactionOrder, CompactionReport, PendingCompactions,
    RunningCompaction, StopOrder, ThroughputOrder,
};
pub use consumers_report::{
    CommitOrder, ConsumerReport, ConsumersReport, ForgetOrder, ReleaseOrder, ReleaseReport,
};
pub use door::{AdminDoor, DoorOptions};
pub use entry::{Access, AccessError, AskedFor, Caller, LoginOrder, RoleLogins, SessionReport, read_token};
pub use error::AdminError;
pub use indexes::{IndexOrder, IndexReport};
pub use key_sample::KeySampleReport;
pub use of_engine::EngineAdmin;
pub use report::{
    CacheReport, ExportReport, FinishedLoad, ImportReport, ImportedFile, InfoReport, LeftFile, LogLossReport,
    StatusReport, TableReport,
};

pub use layout::laid_out;
pub use loads::{LoadOrder, LoadPiece, LoadReport, PIECE_BYTES_MAX};
pub use maintenance::{GarbageOrder, KeysOrder, ThresholdsOrder, ThresholdsReport};
pub use node::{Latencies, MemberReport, MemberState, NodeReport};
pub use node_tables::{NodeTable, NodeTableReport};
pub use paths::{DataPathsOrder, DataPathsReport, SSTablesOrder, SSTablesReport};
pub use rewrite::{DamagedSSTable, RewriteOrder, ScrubOrder, ScrubReport, VerifiedSSTable, VerifyReport};
pub use ring::{
    CopyingReport, RingAdmin, RingChangeReport, RingOrder, RingOrderKind, RingReport, RingStarted,
};
pub use settings::{BinaryReport, SettingsOrder, SettingsReport};
pub use snapshots::{
    BackupOrder, BackupReport, ClearOrder, SnapshotOrder, SnapshotReport, SnapshotsReport, file_size,
};
pub use statements::{StatementReport, StatementsReport, TraceProbabilityReport};
pub use table_stats::{Percentiles, TableHistogramsReport, TableStats, TableStatsReport};
pub use top_partitions::{TopPartitionReport, TopPartitionsOrder, TopPartitionsReport};

use std::path::PathBuf;
use std::sync::Arc;

use ilion_node::ReloadReport;

use crate::auditor::Auditor;
use crate::changes::{ChangeStream, ChangesOrder};
use crate::dashboard::{HistoryOrder, HistoryReport, QueryOrder, QueryReport, SlowestOrder, SlowestReport};

/// The operations of the administration.
pub trait Admin: Send + Sync {
    /// Records orders in the audit log; `None` if the node has no audit log.
    fn auditor(&self) -> Option<Arc<Auditor>> {
        None
    }
    /// State and sizes of the node and its tables.
    fn status(&self) -> StatusReport;
    /// Identity, versions and directories of the node.
    fn info(&self) -> InfoReport;
    /// Writes memtables to disk; returns the number of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn flush(&self, tables: &TableChoice) -> Result<u64, AdminError>;
    /// Merges SSTables; returns the number of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn compact(&self, order: &CompactionOrder) -> Result<u64, AdminError>;
    /// The compactions that run or are due.
    fn compactions(&self) -> CompactionReport;
    /// Requests that compactions end early; returns their number.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn stop(&self, order: &StopOrder) -> Result<u64, AdminError>;
    /// Switches automatic compaction on or off; returns the number of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_auto_compaction(&self, order: &AutoCompactionOrder) -> Result<u64, AdminError>;
    /// Limits how fast compactions read.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_compaction_throughput(&self, order: &ThroughputOrder) -> Result<(), AdminError>;
    /// Rebuilds an index from its table.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn rebuild_index(&self, order: &IndexOrder) -> Result<(), AdminError>;
    /// Compares an index with its table, and repairs the index if the order says so.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn verify_index(&self, order: &IndexOrder) -> Result<IndexReport, AdminError>;
    /// Flushes everything, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn drain(&self) -> Result<(), AdminError>;
    /// Takes snapshots; returns the number of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn snapshot(&self, order: &SnapshotOrder) -> Result<u64, AdminError>;
    /// All snapshots.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn snapshots(&self) -> Result<SnapshotsReport, AdminError>;
    /// Removes snapshots; returns their number, a snapshot of several tables counted for each.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn clear_snapshot(&self, order: &ClearOrder) -> Result<u64, AdminError>;
    /// Whether flushed SSTables are linked into `backups/`.
    fn is_backing_up(&self) -> bool;
    /// Switches incremental backups on or off, until the next start.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_backing_up(&self, is_on: bool) -> Result<(), AdminError>;
    /// Executes a request of `ilion backup`.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn backups(&self, order: &BackupsOrder) -> Result<serde_json::Value, AdminError>;
    /// The state of the audit log.
    fn audit_log(&self) -> AuditLogReport;
    /// Switches the audit log on or off.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_audit_log(&self, order: &AuditLogOrder) -> Result<(), AdminError>;
    /// The directories of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn data_paths(&self, order: &DataPathsOrder) -> Result<DataPathsReport, AdminError>;
    /// The SSTables that may contain a partition.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn sstables_with(&self, order: &SSTablesOrder) -> Result<SSTablesReport, AdminError>;
    /// Tokens of some partitions.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn key_sample(&self) -> Result<KeySampleReport, AdminError>;
    /// The rows of a table about the node.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn node_table(&self, table: NodeTable) -> Result<NodeTableReport, AdminError>;
    /// Facts of the node for nodetool.
    fn node(&self) -> NodeReport;
    /// Whether a materialized view is built.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn is_view_built(&self, view: &TableChoice) -> Result<bool, AdminError>;
    /// The current settings.
    fn settings(&self) -> SettingsReport;
    /// Changes settings until the next start.
    ///
    /// # Errors
    /// See [`AdminError`]; nothing has changed.
    fn change_settings(&self, order: &SettingsOrder) -> Result<(), AdminError>;
    /// Takes over the settings of the file, as far as it can be while the node runs.
    ///
    /// # Errors
    /// See [`AdminError`]; nothing has changed.
    fn reload(&self) -> Result<ReloadReport, AdminError>;
    /// Reads the certificates of client connections and of connections between nodes again.
    ///
    /// # Errors
    /// See [`AdminError`]; the old ones stay in use.
    fn reload_certificates(&self) -> Result<(), AdminError>;
    /// Whether clients may connect.
    fn is_open(&self) -> bool;
    /// Opens or closes the port of clients.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn set_open(&self, is_open: bool) -> Result<(), AdminError>;
    /// The ring of the cluster.
    ///
    /// # Errors
    /// The node is a single one.
    fn ring(&self) -> Result<Arc<dyn RingAdmin>, AdminError>;
    /// Why the node does not accept clients or writes; `None` if it accepts both.
    fn unready(&self) -> Option<String>;
    /// Rewrites SSTables, one by one; returns their number.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn rewrite(&self, order: &RewriteOrder) -> Result<u64, AdminError>;
    /// Removes data from a table's older SSTables that its newer ones have deleted; returns the number of SSTables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn collect_garbage(&self, order: &GarbageOrder) -> Result<u64, AdminError>;
    /// Compacts the SSTables that have some partitions, without gc grace for their tombstones; returns the number of compactions.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn compact_keys(&self, order: &KeysOrder) -> Result<u64, AdminError>;
    /// Sets the thresholds of a table's compaction, if they are given; returns the current ones.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn thresholds(&self, order: &ThresholdsOrder) -> Result<ThresholdsReport, AdminError>;
    /// Groups of addresses.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn cidr_groups(&self, order: &CidrGroupsOrder) -> Result<CidrGroupsReport, AdminError>;
    /// Changes a group of addresses.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn change_cidr_group(&self, order: &CidrGroupOrder) -> Result<(), AdminError>;
    /// Begins to stop the node, as SIGTERM does; does not wait for the end.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn stop_node(&self) -> Result<(), AdminError>;
    /// Replaces damaged SSTables by new ones with their readable rows.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn scrub(&self, order: &ScrubOrder) -> Result<ScrubReport, AdminError>;
    /// Checks the SSTables of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn verify(&self, tables: &TableChoice) -> Result<VerifyReport, AdminError>;
    /// Exports the SSTables of a table to a directory.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn export(&self, place: &TablePlace) -> Result<ExportReport, AdminError>;
    /// Imports the SSTables of a directory into a table.
    ///
    /// # Errors
    /// See [`AdminError`]. Files that cannot be imported are no error: the report lists them.
    fn import(&self, place: &TablePlace) -> Result<ImportReport, AdminError>;
    /// Adds SSTables that were placed in the directory of a table.
    ///
    /// # Errors
    /// See [`AdminError`]. Files that cannot be added are no error: the report lists them.
    fn refresh(&self, table: &TableChoice) -> Result<ImportReport, AdminError>;
    /// Begins the load of an SSTable from another machine.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn begin_load(&self, order: &LoadOrder) -> Result<LoadReport, AdminError>;
    /// Receives a piece of a loaded SSTable.
    ///
    /// # Errors
    /// See [`AdminError`]. Any error ends the load.
    fn receive_load(&self, piece: &LoadPiece, bytes: &[u8]) -> Result<(), AdminError>;
    /// Checks and imports a loaded SSTable. `from` of the result is empty.
    ///
    /// # Errors
    /// See [`AdminError`]. Then no row of the SSTable is in the table.
    fn finish_load(&self, load: &str) -> Result<FinishedLoad, AdminError>;
    /// Removes the received files of a load; without effect if the load has ended.
    fn abandon_load(&self, load: &str);
    /// Ends loads whose senders are silent for too long.
    fn end_silent_loads(&self);
    /// Empties one cache, or all; returns the number of emptied caches.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn invalidate_caches(&self, cache: Option<&str>) -> Result<u64, AdminError>;
    /// Changes the size of a cache, and how many of its keys are saved.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn change_cache(&self, order: &CacheOrder) -> Result<(), AdminError>;
    /// Costs of statements.
    fn statements(&self) -> StatementsReport;
    /// Resets the costs of statements.
    fn reset_statements(&self);
    /// Share of the requests, from 0 to 1, that are traced although their clients did not request it.
    fn trace_probability(&self) -> f64;
    /// Sets the trace probability, until the next start.
    ///
    /// # Errors
    /// The number is no probability.
    fn set_trace_probability(&self, probability: f64) -> Result<(), AdminError>;
    /// Sizes and latencies of tables.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn table_stats(&self, tables: &TableChoice) -> Result<TableStatsReport, AdminError>;
    /// Samples for a while which partitions are used most; returns after that time.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn top_partitions(&self, order: &TopPartitionsOrder) -> Result<TopPartitionsReport, AdminError>;
    /// All metrics, in the text format of Prometheus.
    fn metrics(&self) -> String;
    /// Adds a sample to the history.
    fn take_sample(&self);
    /// Samples of the last minutes.
    fn history(&self, order: HistoryOrder) -> HistoryReport;
    /// The slowest I/O operations of a rectangle of the spectrogram.
    fn slowest(&self, order: &SlowestOrder) -> SlowestReport;
    /// Executes a statement for this caller.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn query(&self, order: &QueryOrder, caller: &Caller) -> Result<QueryReport, AdminError>;
    /// Begins to read the changes of a table for this caller.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn changes(&self, order: &ChangesOrder, caller: &Caller) -> Result<ChangeStream, AdminError>;
    /// Saves how far this caller has processed the changes of a table.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn commit_changes(&self, order: &CommitOrder, caller: &Caller) -> Result<(), AdminError>;
    /// The progress of named consumers of changes.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn change_consumers(&self) -> Result<ConsumersReport, AdminError>;
    /// Removes segments with changes that all named consumers have processed, or those before a given position.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn release_changes(&self, order: &ReleaseOrder) -> Result<ReleaseReport, AdminError>;
    /// Forgets a consumer of changes; returns how many tables it read.
    ///
    /// # Errors
    /// See [`AdminError`].
    fn forget_consumer(&self, order: &ForgetOrder) -> Result<usize, AdminError>;
}

/// Selects one cache, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct CacheChoice {
    /// Name as in `system_views.caches`; `None` is all caches.
    pub cache: Option<String>,
}

/// A change of a cache, until the next start.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct CacheOrder {
    /// Name as in `system_views.caches`.
    pub cache: String,
    /// New size in bytes; `None` leaves it unchanged.
    pub bytes_max: Option<u64>,
    /// How many of its keys are saved, -1 is all; `None` leaves it unchanged.
    pub keys_to_save: Option<i64>,
}

/// Tables: one, those of a keyspace, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct TableChoice {
    /// Only tables of this keyspace.
    pub keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    pub table: Option<String>,
}

/// A table, and a directory with its SSTables.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct TablePlace {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Absolute path of the directory.
    pub directory: PathBuf,
    /// Whether imported files stay in the directory.
    #[serde(default)]
    pub source: ImportedFrom,
}

/// Whether imported files stay in their directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportedFrom {
    /// They are removed from the directory.
    #[default]
    Moved,
    /// They stay.
    Copied,
}
