//! The inputs of a statement: values, consistency, paging, time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use ilion_rows::TombstoneLimits;

use crate::access::{AccessOptions, Identity};
use crate::{BatchSizes, Consistency, DiskUsage, FunctionResults, Guardrails};

/// The value of a bind marker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Value {
    /// Null: deletes the value when written.
    #[default]
    Null,
    /// Unset: leaves the stored value as it is.
    Unset,
    /// A serialized value.
    Bytes(Bytes),
}

/// The values of the bind markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Values {
    /// No values.
    #[default]
    None,
    /// By position.
    Positional(Vec<Value>),
    /// By the names of the markers.
    Named(Vec<(String, Value)>),
}

/// The options of one execution.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Values of the bind markers. Ignored for a batch, whose members have their own.
    pub values: Values,
    /// Consistency of the read or write.
    pub consistency: Consistency,
    /// Consistency of the condition; `None` means `SERIAL`.
    pub serial_consistency: Option<Consistency>,
    /// Rows per page; `None` means no paging.
    pub page_size: Option<u32>,
    /// The paging state of the previous page; `None` for the first page.
    pub paging_state: Option<Bytes>,
    /// Timestamp of the write, unless the statement has its own.
    pub timestamp_micros: Option<i64>,
    /// The current time for TTLs in seconds, instead of the node's clock.
    pub now_secs: Option<i32>,
    /// Keyspace of unqualified names, instead of the client's.
    pub keyspace: Option<String>,
    /// The results of user-defined functions, which are then not called. `None`: the functions are called.
    pub function_results: Option<Arc<FunctionResults>>,
    /// Timeout of a SELECT. It counts only if it is shorter than that of the settings.
    pub timeout: Option<Duration>,
    /// Whether the request may be parked while it waits for the outcome of a command ([`crate::Decided`]).
    pub may_park: bool,
}

/// State of a connection between statements.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    /// Set by `USE`.
    pub keyspace: Option<String>,
    /// The client or program that sends the statements.
    pub identity: Identity,
    /// True once the client has got the warning about prepared statements with unqualified names, which it gets only once.
    pub is_told_of_use: bool,
}

/// Limits and settings of the query layer.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// True if writes to tables with `cdc = true` are kept for consumers of changes.
    pub has_capture: bool,
    /// Largest number of prepared statements in memory; the oldest are evicted.
    pub prepared_count_max: usize,
    /// Largest memory of all prepared statements together, in bytes; approximate.
    pub prepared_bytes_max: u64,
    /// Largest number of partitions that the INs of one statement may select.
    pub in_partitions_max: usize,
    /// Largest number of clustering ranges per partition that the INs of one statement may select.
    pub in_slices_max: usize,
    /// A page ends after this many bytes, whatever the client asked for; 0 means never.
    pub page_bytes_max: usize,
    /// A batch above this many bytes gets a warning; 0 means never.
    pub batch_size_warn_bytes: usize,
    /// A batch above this many bytes is refused; 0 means never.
    pub batch_size_fail_bytes: usize,
    /// Latest expiry, in seconds since 1970, that the file format in use can store. In a cluster it is not later than that of format nb.
    pub expiry_secs_max: u32,
    /// Compaction (class and options) of new tables that do not give one; `None` means Cassandra's default.
    pub default_compaction: Option<BTreeMap<String, String>>,
    /// The data center of this node, the only one that keyspaces may be replicated to.
    pub data_center: String,
    /// Whether `ALLOW FILTERING` is allowed.
    pub allow_filtering: bool,
    /// The other limits of the operator.
    pub guardrails: Guardrails,
    /// How full the disk is.
    pub disk_usage: Arc<DiskUsage>,
    /// How many partitions batches have changed.
    pub batch_sizes: Arc<BatchSizes>,
    /// Whether materialized views may be created.
    pub materialized_views_enabled: bool,
    /// Whether CREATE INDEX may omit the class of the index.
    pub default_secondary_index_enabled: bool,
    /// The class of an index whose CREATE INDEX omits it.
    pub default_secondary_index: String,
    /// Whether SASI indexes may be created.
    pub sasi_indexes_enabled: bool,
    /// Whether user-defined functions and aggregates may be created and called.
    pub user_functions_enabled: bool,
    /// Whether columns may be masked, and whether existing masks apply.
    pub dynamic_data_masking_enabled: bool,
    /// How long one call of a user-defined function may run.
    pub user_function_time_max: Duration,
    /// Numbers of tombstones above which a query gets a warning or fails.
    pub tombstone_limits: TombstoneLimits,
    /// Timeout of a SELECT by partition key; `None` means no timeout.
    pub read_timeout: Option<Duration>,
    /// Timeout of any other SELECT; `None` means no timeout.
    pub range_timeout: Option<Duration>,
    /// Logins and permissions.
    pub access: AccessOptions,
    /// Set when the node stops: long reads then end at once.
    pub is_stopping: Arc<AtomicBool>,
}

/// Latest expiry of cells in SSTables of format nb, in seconds since 1970. Compat: `Cell.MAX_DELETION_TIME`.
const EXPIRY_SECS_MAX_OF_NB: u32 = i32::MAX.unsigned_abs() - 1;

impl QueryOptions {
    /// These options for a coordinator of a cluster. Each node chooses the format of its SSTables, and nb cannot store a later expiry. So
    /// the limit of nb applies to all nodes; otherwise a row would expire at different times on two replicas.
    pub(crate) fn of_cluster(self) -> Self {
        Self {
            expiry_secs_max: self.expiry_secs_max.min(EXPIRY_SECS_MAX_OF_NB),
            ..self
        }
    }
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            has_capture: false,
            prepared_count_max: 10_000,
            prepared_bytes_max: 32 << 20,
            in_partitions_max: 10_000,
            in_slices_max: 10_000,
            page_bytes_max: 8 << 20,
            batch_size_warn_bytes: 5 * 1024,
            batch_size_fail_bytes: 50 * 1024,
            expiry_secs_max: EXPIRY_SECS_MAX_OF_NB,
            default_compaction: None,
            data_center: "datacenter1".to_owned(),
            allow_filtering: true,
            guardrails: Guardrails::default(),
            disk_usage: Arc::default(),
            batch_sizes: Arc::default(),
            materialized_views_enabled: true,
            default_secondary_index_enabled: true,
            default_secondary_index: "legacy_local_table".to_owned(),
            sasi_indexes_enabled: true,
            user_functions_enabled: true,
            dynamic_data_masking_enabled: false,
            user_function_time_max: Duration::from_millis(1500),
            tombstone_limits: TombstoneLimits {
                warn: 1000,
                fail: 100_000,
            },
            read_timeout: None,
            range_timeout: None,
            access: AccessOptions::default(),
            is_stopping: Arc::default(),
        }
    }
}
