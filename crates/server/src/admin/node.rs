//! The node as nodetool shows it: `status`, `ring`, `info`, `describecluster`, `gossipinfo`, `proxyhistograms`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_cluster::{ClusterView, MemberView, Node, Phase, Strategy};
use ilion_node::LocalNode;
use ilion_node::costs::{Histogram, StatementCosts};
use ilion_query::ClusterSource as _;
use ilion_schema::{Keyspace, Schema, TableKind};
use serde::{Deserialize, Serialize};

use super::table_stats::Percentiles;
use super::{CacheReport, TableReport};
use crate::cluster_probe::MemberStanding;

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
    /// All members of its cluster, this node included; empty for a single node.
    #[serde(default)]
    pub members: Vec<MemberReport>,
    /// For each keyspace that is spread over nodes, the share of its data on each member (0 to 1), by host id; empty for a single node.
    #[serde(default)]
    pub shares: BTreeMap<String, BTreeMap<String, f64>>,
    /// For each keyspace, the end of each range of tokens and its replicas, as indexes into `members`; empty for a single node.
    #[serde(default)]
    pub ranges: BTreeMap<String, Vec<(String, Vec<usize>)>>,
    /// Bytes of all SSTables.
    pub load_bytes: u64,
    /// Uncompressed bytes of all SSTables.
    pub data_bytes: u64,
    /// When the node was started, in seconds since 1970.
    pub started_secs: i64,
    /// Seconds since the start.
    pub uptime_secs: u64,
    /// Resident memory of the process, in bytes; `None` if the system does not report it.
    pub resident_bytes: Option<u64>,
    /// Memory of the machine, in bytes.
    pub machine_bytes: u64,
    /// Whether clients may connect.
    pub is_open: bool,
    /// Why writes are refused; `None` while they are accepted.
    pub failure: Option<String>,
    /// The caches.
    pub caches: Vec<CacheReport>,
    /// Seconds between two savings of a cache's keys, by the cache's name; 0 means that they are never saved.
    pub save_periods: BTreeMap<String, u64>,
    /// Replication of each keyspace.
    pub keyspaces: BTreeMap<String, BTreeMap<String, String>>,
    /// All tables, those of the system and the hidden ones of indexes included.
    pub tables: Vec<TableReport>,
    /// Latency of requests in microseconds.
    pub latencies: Latencies,
    /// Compactions that may run at the same time.
    pub compaction_threads: u64,
    /// Compactions since the start.
    pub compactions: u64,
    /// Bytes that compactions read from SSTables.
    pub compacted_bytes: u64,
    /// Compactions that failed or were stopped.
    pub compactions_failed: u64,
}

/// A member of a cluster, as the reporting node sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Its host id.
    pub host_id: String,
    /// Its address.
    pub address: String,
    /// Port of CQL clients.
    pub native_port: u16,
    /// Port of other nodes.
    pub storage_port: u16,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its tokens, ascending.
    pub tokens: Vec<String>,
    /// Its state.
    pub state: MemberState,
    /// Whether the reporting node considers it up.
    pub is_up: bool,
    /// How long it was silent, as a share of the time after which it is considered down; `None` for the reporting node.
    #[serde(default)]
    pub silence: Option<f64>,
    /// Version of its schema.
    pub schema_version: String,
    /// Bytes of its SSTables; `None` if it is down or does not report them.
    pub load_bytes: Option<u64>,
    /// Records that it has not applied yet, as far as it knows; `None` if it is down or does not report them.
    #[serde(default)]
    pub lag_records: Option<u64>,
    /// Tablets that it copies, or may not answer for yet; `None` if it is down or does not report them.
    #[serde(default)]
    pub tablets_behind: Option<u64>,
    /// The release of Cassandra that its clients see; `None` if the cluster does not know it, and the member is down or does not report it.
    #[serde(default)]
    pub release_version: Option<String>,
}

/// The state of a member in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It answers reads.
    #[default]
    Normal,
    /// Others copy its data.
    Leaving,
    /// It copies data.
    Joining,
}

impl MemberReport {
    fn of(member: &MemberView, standing: Option<&MemberStanding>, silence: Option<f64>) -> Self {
        Self {
            host_id: member.host.to_string(),
            address: member.endpoint.ip.to_string(),
            native_port: member.endpoint.native_port,
            storage_port: member.endpoint.storage_port,
            data_center: member.location.datacenter.clone(),
            rack: member.location.rack.clone(),
            tokens: member.tokens.iter().map(i64::to_string).collect(),
            state: match member.phase {
                Phase::Joining => MemberState::Joining,
                Phase::Normal => MemberState::Normal,
                Phase::Leaving => MemberState::Leaving,
            },
            is_up: member.is_up,
            silence,
            schema_version: member.schema_version.to_string(),
            load_bytes: standing.map(|standing| standing.load_bytes),
            lag_records: standing.map(|standing| standing.lag_records),
            tablets_behind: standing.map(|standing| standing.tablets_behind),
            release_version: standing
                .and_then(|standing| standing.release.clone())
                .or_else(|| member.release.clone()),
        }
    }
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
        let (facts, standing) = (local.facts(), local.standing());
        Self {
            release_version: local.release_version().to_owned(),
            schema_version: standing.schema_version.to_string(),
            cluster_name: facts.cluster_name.clone(),
            snitch: local.cluster(None).snitch,
            listen_address: facts.listen_address.to_string(),
            host_id: local.host_id().to_string(),
            data_center: standing.data_center,
            rack: standing.rack,
            tokens: standing.tokens,
            ..Self::default()
        }
    }

    /// Adds the members of the cluster, their answers (`standings`), the silence of each, and the shares and ranges of these keyspaces.
    /// Requires: `load_bytes` of this node is set.
    pub(super) fn add_members(
        &mut self,
        view: &ClusterView,
        strategies: &BTreeMap<String, Strategy>,
        standings: &BTreeMap<Node, MemberStanding>,
        silences: &BTreeMap<Node, f64>,
    ) {
        let members = view.members.iter();
        let members = members.map(|member| {
            let silence = silences.get(&member.node).copied();
            MemberReport::of(member, standings.get(&member.node), silence)
        });
        self.members = members.collect();
        for member in &mut self.members {
            if member.host_id == self.host_id {
                member.load_bytes = Some(self.load_bytes);
                member.release_version = Some(self.release_version.clone());
            }
        }
        let host_of = |node| view.member(node).map(|member| member.host.to_string());
        let spread = strategies
            .iter()
            .filter(|(_, strategy)| **strategy != Strategy::Local);
        for (keyspace, strategy) in spread {
            let shares = view.shares(strategy).into_iter();
            let shares = shares.filter_map(|(node, share)| Some((host_of(node)?, share)));
            self.shares.insert(keyspace.clone(), shares.collect());
            let ranges = view.ranges(strategy).into_iter().map(|(end, replicas)| {
                let place = |member: &&MemberView| view.members.iter().position(|known| known == *member);
                (end.to_string(), replicas.iter().filter_map(place).collect())
            });
            self.ranges.insert(keyspace.clone(), ranges.collect());
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
