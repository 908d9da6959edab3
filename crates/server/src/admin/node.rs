//! The node as nodetool shows it: `status`, `ring`, `info`, `describecluster`, `gossipinfo`, `proxyhistograms`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_schema::{Keyspace, Schema, TableKind};
use serde::{Deserialize, Serialize};

use super::table_stats::Percentiles;
use super::{CacheReport, TableReport};
use crate::costs::{Histogram, StatementCosts};
use crate::system::LocalNode;

/// Facts of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Version of Cassandra that clients see.
    pub release_version: String,
    /// Version of the schema.
    pub schema_version: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Class of the snitch.
    pub snitch: String,
    /// Class of the partitioner.
    pub partitioner: String,
    /// Address for other nodes.
    pub listen_address: String,
    /// Address and port of CQL clients.
    pub native_address: String,
    /// Id of the node.
    pub host_id: String,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Bytes of all SSTables.
    pub load_bytes: u64,
    /// Uncompressed bytes of all SSTables.
    pub data_bytes: u64,
    /// Seconds since 1970 when it was started.
    pub started_secs: i64,
    /// Seconds since the start.
    pub uptime_secs: u64,
    /// Resident memory of the process; `None` if the system does not report it.
    pub resident_bytes: Option<u64>,
    /// Memory of the machine.
    pub machine_bytes: u64,
    /// Whether clients may connect.
    pub is_open: bool,
    /// Why writes are refused; `None` while they are accepted.
    pub failure: Option<String>,
    /// The caches.
    pub caches: Vec<CacheReport>,
    /// Seconds between two savings of a cache's keys, by the cache's name; 0 is never.
    pub save_periods: BTreeMap<String, u64>,
    /// Replication of each keyspace.
    pub keyspaces: BTreeMap<String, BTreeMap<String, String>>,
    /// All tables, those of the system and the hidden ones of indexes included.
    pub tables: Vec<TableReport>,
    /// Latency of requests in microseconds, by kind: read, write, range, and those of conditional statements.
    pub latencies: Latencies,
    /// Compactions that may run at the same time.
    pub compaction_threads: u64,
    /// Compactions since the start.
    pub compactions: u64,
    /// Bytes that they read from SSTables.
    pub compacted_bytes: u64,
    /// Compactions that failed or were stopped.
    pub compactions_failed: u64,
}

/// Latencies of requests since the start, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// SELECT of given partitions.
    pub reads: Percentiles,
    /// Writes.
    pub writes: Percentiles,
    /// Other SELECTs.
    pub scans: Percentiles,
}

impl Latencies {
    pub(super) fn of(costs: &StatementCosts) -> Self {
        let (mut reads, mut writes, mut scans) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for table in costs.by_table().values() {
            reads.merge(&table.reads.latency);
            writes.merge(&table.writes.latency);
            scans.merge(&table.scans.latency);
        }
        Self {
            reads: Percentiles::of(&reads, 1000.0),
            writes: Percentiles::of(&writes, 1000.0),
            scans: Percentiles::of(&scans, 1000.0),
        }
    }
}

impl NodeReport {
    /// The facts of `system.local`.
    pub(super) fn of_local(local: &LocalNode) -> Self {
        let facts = local.facts();
        Self {
            release_version: local.release_version().to_owned(),
            cluster_name: facts.cluster_name.clone(),
            snitch: local.cluster().snitch,
            listen_address: facts.listen_address.to_string(),
            host_id: local.host_id().to_string(),
            data_center: facts.data_center.clone(),
            rack: facts.rack.clone(),
            tokens: local.tokens().to_vec(),
            ..Self::default()
        }
    }
}

/// The replication of each keyspace with stored tables.
pub(super) fn replication(schema: &Schema) -> BTreeMap<String, BTreeMap<String, String>> {
    let is_stored = |keyspace: &&Arc<Keyspace>| {
        let mut tables = keyspace.tables.values();
        !tables.any(|table| table.kind == TableKind::Virtual)
    };
    schema
        .keyspaces
        .values()
        .filter(is_stored)
        .map(|keyspace| (keyspace.name.clone(), keyspace.replication.options.clone()))
        .collect()
}
