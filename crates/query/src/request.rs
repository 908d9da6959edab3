//! What comes with a statement: values, consistency, paging, time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use ilion_rows::TombstoneLimits;

use crate::BatchSizes;
use crate::{DiskUsage, Guardrails};

/// A consistency level by its code in the protocol. One node stores everything, so levels are checked and reported, not
/// waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Consistency(pub u16);

impl Consistency {
    /// `ANY`
    pub const ANY: Self = Self(0);
    /// `ONE`
    pub const ONE: Self = Self(1);
    /// `QUORUM`
    pub const QUORUM: Self = Self(4);
    /// `ALL`
    pub const ALL: Self = Self(5);
    /// `LOCAL_QUORUM`
    pub const LOCAL_QUORUM: Self = Self(6);
    /// `SERIAL`
    pub const SERIAL: Self = Self(8);
    /// `LOCAL_SERIAL`
    pub const LOCAL_SERIAL: Self = Self(9);
    /// `LOCAL_ONE`
    pub const LOCAL_ONE: Self = Self(10);

    /// True for `SERIAL` and `LOCAL_SERIAL`.
    pub fn is_serial(self) -> bool {
        self == Self::SERIAL || self == Self::LOCAL_SERIAL
    }
}

impl Default for Consistency {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 12] = [
            "ANY",
            "ONE",
            "TWO",
            "THREE",
            "QUORUM",
            "ALL",
            "LOCAL_QUORUM",
            "EACH_QUORUM",
            "SERIAL",
            "LOCAL_SERIAL",
            "LOCAL_ONE",
            "NODE_LOCAL",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "consistency {}", self.0),
        }
    }
}

/// The value of a bind marker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Value {
    /// Null: deletes where it is written.
    #[default]
    Null,
    /// Leaves what is there as it is.
    Unset,
    /// A serialized value.
    Bytes(Bytes),
}

/// The values of the bind markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Values {
    /// There are none.
    #[default]
    None,
    /// By position.
    Positional(Vec<Value>),
    /// By the names of the markers.
    Named(Vec<(String, Value)>),
}

/// How a statement is to be executed.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Values of the bind markers. Ignored by a batch, whose statements have their own.
    pub values: Values,
    /// Consistency of the read or write.
    pub consistency: Consistency,
    /// Consistency of the condition; nothing is `SERIAL`.
    pub serial_consistency: Option<Consistency>,
    /// Rows a page; `None`: everything at once.
    pub page_size: Option<u32>,
    /// Where to go on, as an earlier page gave it.
    pub paging_state: Option<Bytes>,
    /// Time of the write, if the statement says none.
    pub timestamp_micros: Option<i64>,
    /// The clock that TTLs are measured by, if not ours.
    pub now_secs: Option<i32>,
    /// Keyspace of unqualified names, instead of the client's.
    pub keyspace: Option<String>,
}

/// What the server remembers of a connection between statements.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    /// Set by `USE`.
    pub keyspace: Option<String>,
    /// Who is logged in.
    pub user: Option<String>,
    /// It was told that names without keyspaces and prepared statements do not go together; once is enough.
    pub is_told_of_use: bool,
}

/// Limits and settings of the query layer.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Prepared statements that are remembered; the oldest go first.
    pub prepared_count_max: usize,
    /// About how many bytes they may take together.
    pub prepared_bytes_max: u64,
    /// Largest number of partitions that INs of one statement may name.
    pub in_partitions_max: usize,
    /// Largest number of clustering ranges that INs of one statement may make of each partition.
    pub in_slices_max: usize,
    /// A page ends when its rows take so many bytes, whatever the client asked for; 0 is never.
    pub page_bytes_max: usize,
    /// A batch above this many bytes gets a warning; 0 is never.
    pub batch_size_warn_bytes: usize,
    /// A batch above this many bytes is refused; 0 is never.
    pub batch_size_fail_bytes: usize,
    /// Last second at which data may expire: what the file format in use can hold.
    pub expiry_secs_max: u32,
    /// Compaction of new tables that do not say: class and options; nothing is Cassandra's own default.
    pub default_compaction: Option<BTreeMap<String, String>>,
    /// The data center of this node, the only one that keyspaces may be replicated to.
    pub data_center: String,
    /// Whether `ALLOW FILTERING` is allowed.
    pub allow_filtering: bool,
    /// What else the operator limits.
    pub guardrails: Guardrails,
    /// How full the disk is, as whoever watches it says.
    pub disk_usage: Arc<DiskUsage>,
    /// How many partitions batches have changed.
    pub batch_sizes: Arc<BatchSizes>,
    /// Whether materialized views may be created.
    pub materialized_views_enabled: bool,
    /// Whether CREATE INDEX may leave out what kind of index it wants.
    pub default_secondary_index_enabled: bool,
    /// The class of an index that does not say.
    pub default_secondary_index: String,
    /// Whether SASI indexes may be created.
    pub sasi_indexes_enabled: bool,
    /// Whether functions and aggregates of users are made and run.
    pub user_functions_enabled: bool,
    /// How long a call of such a function may run.
    pub user_function_time_max: Duration,
    /// When a query is warned or ended for the tombstones that it met.
    pub tombstone_limits: TombstoneLimits,
    /// How long a SELECT of given partitions may take; nothing is as long as it does.
    pub read_timeout: Option<Duration>,
    /// The same for any other SELECT.
    pub range_timeout: Option<Duration>,
    /// Reads that take long are to end at once.
    pub is_stopping: Arc<AtomicBool>,
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            prepared_count_max: 10_000,
            prepared_bytes_max: 32 << 20,
            in_partitions_max: 10_000,
            in_slices_max: 10_000,
            page_bytes_max: 8 << 20,
            batch_size_warn_bytes: 5 * 1024,
            batch_size_fail_bytes: 50 * 1024,
            // Compat: `Cell.MAX_DELETION_TIME` of format nb.
            expiry_secs_max: i32::MAX.unsigned_abs() - 1,
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
            user_function_time_max: Duration::from_millis(1500),
            tombstone_limits: TombstoneLimits {
                warn: 1000,
                fail: 100_000,
            },
            read_timeout: None,
            range_timeout: None,
            is_stopping: Arc::default(),
        }
    }
}

/// The kinds of batches.
pub use ilion_cql::ast::BatchKind;
