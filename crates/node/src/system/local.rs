//! `system.local`: identity and addresses of the node. As in Cassandra, it is a stored row, so that it moves with the data.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ilion_cluster::{ClusterView, Phase, Strategy};
use ilion_engine::VirtualRow;
use ilion_query::{ClusterFacts, ClusterSource, Store, StoreError};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime,
    Liveness, Mutation, PartitionUpdate, Row, Unfiltered,
};
use ilion_schema::{Release, SchemaEvent, TableSchema};
use ilion_types::{Partitioner, Token};
use uuid::Uuid;

use super::SchemaListener;
use super::peers::status_of;
use crate::peers::{Peers, PeersListener};
use crate::values::{cell, inet, int, text, uuid};

/// Compat: the version of Cassandra that clients see; drivers choose their queries by it.
pub const RELEASE_VERSION: &str = "5.0.9";
/// The version of CQL.
pub const CQL_VERSION: &str = "3.4.7";
/// The default of the setting `cluster_name`.
const DEFAULT_CLUSTER_NAME: &str = "Ilion";
const NATIVE_PROTOCOL_VERSION: &str = "5";
const KEY: &[u8] = b"local";

/// The settings of this node that `system.local` depends on.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// The cluster's name.
    pub cluster_name: String,
    /// The data center.
    pub data_center: String,
    /// The rack.
    pub rack: String,
    /// The id of the node if `system.local` has none.
    pub host_id: Uuid,
    /// The token of the node if `system.local` has none; `None` chooses a random one.
    pub initial_token: Option<String>,
    /// Address for clients.
    pub rpc_address: SocketAddr,
    /// Address for other nodes.
    pub listen_address: IpAddr,
}

/// Compat: Cassandra's port for other nodes, which clients of a single node see. A single node does not listen there.
pub const STORAGE_PORT: i32 = 7000;

/// Why a data directory cannot be used with these settings.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The data belongs to another cluster or partitioner; the operator must change the settings or the directory.
    #[error(
        "the data directory is of {what} {stored:?}, but the settings say {wanted:?}; change {setting}, or take another directory"
    )]
    Foreign {
        /// What differs.
        what: &'static str,
        /// The stored value.
        stored: String,
        /// The value in the settings.
        wanted: String,
        /// The setting.
        setting: &'static str,
    },
    /// `initial_token` is not a token of the partitioner.
    #[error("initial_token {0:?} is no token of this partitioner")]
    Token(String),
    /// The row cannot be read or written.
    #[error("system.local: {0}")]
    Store(#[from] StoreError),
    /// The table is missing; a bug.
    #[error("system.local is not in the schema; report this")]
    NoTable,
}

/// Identity and addresses of this node, as stored in `system.local`.
pub struct LocalNode {
    store: Arc<dyn Store>,
    facts: NodeFacts,
    tokens: Vec<String>,
    host_id: Uuid,
    /// In the directory of an older Cassandra, the version of that Cassandra; else [`RELEASE_VERSION`].
    release_version: String,
    is_of_another_version: bool,
    /// Set once, if the node is a member of a cluster.
    peers: OnceLock<Arc<Peers>>,
}

/// Facts about this node that its cluster decides. A single node decides them itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// In ascending order.
    pub tokens: Vec<String>,
    pub schema_version: Uuid,
    pub data_center: String,
    pub rack: String,
    pub storage_port: i32,
    bootstrapped: &'static str,
    /// State and first token, as in `gossip_info`.
    pub status: String,
}

/// The row of an earlier start.
#[derive(Debug, Default)]
struct Stored {
    cells: Vec<(String, Bytes)>,
    tokens: Vec<String>,
}

impl LocalNode {
    /// Reads the stored row, completes it, and stores it again.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub fn open(store: Arc<dyn Store>, mut facts: NodeFacts) -> Result<Self, LocalError> {
        let stored = read(&*store)?;
        let partitioner = store.partitioner();
        facts.take_cluster_of(&stored);
        check("cluster", &stored, "cluster_name", &facts.cluster_name)?;
        check("partitioner", &stored, "partitioner", partitioner.class_name())?;
        let host_id = match stored.cell("host_id").map(|bytes| Uuid::from_slice(bytes)) {
            Some(Ok(id)) => id,
            _ => facts.host_id,
        };
        let tokens = choose_tokens(&*store, &stored, &facts)?;
        let stored_version = stored
            .cell("release_version")
            .map(|version| String::from_utf8_lossy(version).into_owned());
        let release_version = match &stored_version {
            Some(version) if store.schema().release < Release::V5_0 => version.clone(),
            _ => RELEASE_VERSION.to_owned(),
        };
        let node = Self {
            is_of_another_version: stored_version.is_some_and(|stored| stored != release_version),
            release_version,
            store,
            facts,
            tokens,
            host_id,
            peers: OnceLock::new(),
        };
        match node.write() {
            // Goes on although the stored row is outdated: serving the data matters more.
            Err(LocalError::Store(StoreError::WriteRefused(reason))) if stored.cell("host_id").is_some() => {
                tracing::warn!(
                    reason,
                    "system.local cannot be written: it tells what the last start has stored"
                );
            }
            written => written?,
        }
        Ok(node)
    }

    /// The facts that `system.local` depends on, from the settings and the data directory.
    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    /// The version of Cassandra that clients see.
    pub fn release_version(&self) -> &str {
        &self.release_version
    }

    /// The id of the node.
    pub fn host_id(&self) -> Uuid {
        self.host_id
    }

    /// True if the data directory had another release version before this start.
    pub(crate) fn is_of_another_version(&self) -> bool {
        self.is_of_another_version
    }

    /// Makes the node a member of a cluster. From now on, the cluster's decisions are stored in `system.local`. Only the first call counts.
    ///
    /// # Errors
    /// The row cannot be written.
    pub(crate) fn follow(self: &Arc<Self>, peers: &Arc<Peers>) -> Result<(), LocalError> {
        if self.peers.set(peers.clone()).is_ok() {
            let own: Arc<dyn PeersListener> = self.clone();
            peers.listen(Arc::downgrade(&own));
            self.write()?;
        }
        Ok(())
    }

    /// The members of the node's cluster; `None` for a single node.
    pub fn peers(&self) -> Option<&Arc<Peers>> {
        self.peers.get()
    }

    /// The tokens of the node, as in `system.local`.
    pub fn tokens(&self) -> Vec<String> {
        self.standing().tokens
    }

    pub fn standing(&self) -> Standing {
        let of_cluster = self
            .peers
            .get()
            .and_then(|peers| Standing::in_view(&peers.view()));
        of_cluster.unwrap_or_else(|| Standing {
            tokens: self.tokens.clone(),
            schema_version: self.store.schema().version,
            data_center: self.facts.data_center.clone(),
            rack: self.facts.rack.clone(),
            storage_port: STORAGE_PORT,
            bootstrapped: "COMPLETED",
            status: format!("NORMAL,{}", self.tokens.first().map_or("", String::as_str)),
        })
    }

    /// How a keyspace is replicated. If this version does not know its strategy, the keyspace counts as local.
    pub fn strategy(&self, keyspace: &str) -> Strategy {
        let schema = self.store.schema();
        let keyspace = schema.keyspace(keyspace);
        let strategy = keyspace.and_then(|keyspace| Strategy::of(&keyspace.replication).ok());
        strategy.unwrap_or(Strategy::Local)
    }

    /// The row of this node in `gossip_info`. `load_bytes` is the size of its data on disk.
    pub(super) fn gossip(&self, load_bytes: u64) -> VirtualRow {
        let facts = &self.facts;
        let address = facts.rpc_address.ip();
        let standing = self.standing();
        let cells = [
            ("dc", standing.data_center),
            ("host_id", self.host_id.to_string()),
            ("hostname", facts.listen_address.to_string()),
            ("load", format!("{load_bytes}.0")),
            ("native_address_and_port", facts.rpc_address.to_string()),
            ("rack", standing.rack),
            ("release_version", self.release_version.clone()),
            ("rpc_address", address.to_string()),
            ("rpc_ready", "true".to_owned()),
            ("schema", standing.schema_version.to_string()),
            ("status", standing.status.clone()),
            ("status_with_port", standing.status),
        ];
        VirtualRow {
            partition_key: vec![inet(facts.listen_address)],
            clustering: vec![int(standing.storage_port)],
            cells: cells.map(|(name, value)| cell(name, text(&value))).into(),
        }
    }

    /// Stores the port on which the server listens, if the settings have port 0.
    pub fn listens_on(&self, port: u16) {
        if port == self.facts.rpc_address.port() {
            return;
        }
        if let Err(error) = self.apply(&[("rpc_port", int(i32::from(port)))], None) {
            tracing::error!(%error, "the port could not be stored");
        }
    }

    fn write(&self) -> Result<(), LocalError> {
        let facts = &self.facts;
        let address = facts.rpc_address.ip();
        let standing = self.standing();
        let generation = i32::try_from(self.store.now_micros() / 1_000_000).unwrap_or(i32::MAX);
        let cells = [
            ("bootstrapped", text(standing.bootstrapped)),
            ("broadcast_address", inet(facts.listen_address)),
            ("broadcast_port", int(standing.storage_port)),
            ("cluster_name", text(&facts.cluster_name)),
            ("cql_version", text(CQL_VERSION)),
            ("data_center", text(&standing.data_center)),
            ("gossip_generation", int(generation)),
            ("host_id", uuid(self.host_id)),
            ("listen_address", inet(facts.listen_address)),
            ("listen_port", int(standing.storage_port)),
            ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
            ("partitioner", text(self.store.partitioner().class_name())),
            ("rack", text(&standing.rack)),
            ("release_version", text(&self.release_version)),
            ("rpc_address", inet(address)),
            ("rpc_port", int(i32::from(facts.rpc_address.port()))),
            ("schema_version", uuid(standing.schema_version)),
        ];
        self.apply(&cells, Some(&standing.tokens))
    }

    fn apply(&self, cells: &[(&str, Bytes)], tokens: Option<&[String]>) -> Result<(), LocalError> {
        let table = table(&*self.store)?;
        let now = self.store.unique_micros();
        let mut columns: Vec<ColumnData> = cells
            .iter()
            .filter_map(|(name, value)| {
                Some(ColumnData {
                    column: table.column_named(name)?.id,
                    data: Data::Simple(Cell::live(now, value.clone())),
                })
            })
            .collect();
        if let (Some(tokens), Some(column)) = (tokens, table.column_named("tokens")) {
            columns.push(ColumnData {
                column: column.id,
                data: Data::Complex(Box::new(set_of(tokens, now, self.store.now_micros()))),
            });
        }
        columns.sort_by_key(|data| data.column);
        let key = key(&*self.store);
        let row = Row {
            liveness: Liveness::live(now),
            columns,
            ..Row::empty(Clustering::empty())
        };
        let mutation = Mutation {
            key,
            table,
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        };
        self.store.apply(vec![mutation])?;
        Ok(())
    }
}

impl SchemaListener for LocalNode {
    /// Stores the new version of the schema. Drivers compare the versions of all nodes to wait for agreement.
    fn schema_changed(&self) {
        let version = uuid(self.standing().schema_version);
        if let Err(error) = self.apply(&[("schema_version", version)], None) {
            tracing::error!(%error, "the version of the schema could not be stored");
        }
    }

    fn is_announced_by_log(&self) -> bool {
        self.peers.get().is_some()
    }
}

impl Standing {
    /// The facts about this node in the view; `None` if the view does not have this node.
    fn in_view(view: &ClusterView) -> Option<Self> {
        let own = view.own_member()?;
        Some(Self {
            tokens: own.tokens.iter().map(i64::to_string).collect(),
            schema_version: own.schema_version,
            data_center: own.location.datacenter.clone(),
            rack: own.location.rack.clone(),
            storage_port: i32::from(own.endpoint.storage_port),
            // Compat: `SystemKeyspace.BootstrapState`.
            bootstrapped: match own.phase {
                Phase::Joining => "IN_PROGRESS",
                Phase::Normal | Phase::Leaving => "COMPLETED",
            },
            status: status_of(own),
        })
    }
}

impl PeersListener for LocalNode {
    fn view_changed(&self, before: &ClusterView, view: &ClusterView) {
        if Standing::in_view(before) == Standing::in_view(view) {
            return;
        }
        if let Err(error) = self.write() {
            tracing::error!(%error, "the place of this node in the cluster could not be stored");
        }
    }

    fn schema_changed(&self, _events: &[SchemaEvent]) {}
}

impl ClusterSource for LocalNode {
    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts {
        let name = self.facts.cluster_name.clone();
        let Some(peers) = self.peers.get() else {
            let address = self.facts.rpc_address.ip().to_string();
            let tokens = self.tokens.iter();
            return ClusterFacts {
                name,
                snitch: "SimpleSnitch".to_owned(),
                ranges: tokens
                    .map(|token| (token.clone(), vec![address.clone()]))
                    .collect(),
            };
        };
        let view = peers.view();
        let ranges = view.ranges(&keyspace.map_or(Strategy::Local, |keyspace| self.strategy(keyspace)));
        let address = |endpoint: &ilion_cluster::Endpoint| {
            SocketAddr::new(endpoint.ip, endpoint.storage_port).to_string()
        };
        ClusterFacts {
            name,
            // Cassandra's snitch for nodes whose own settings name data center and rack.
            snitch: "GossipingPropertyFileSnitch".to_owned(),
            ranges: ranges
                .into_iter()
                .map(|(end, replicas)| {
                    let replicas = replicas.iter().map(|member| address(&member.endpoint));
                    (end.to_string(), replicas.collect())
                })
                .collect(),
        }
    }
}

/// A write of a whole set, which also deletes the old elements.
fn set_of(elements: &[String], timestamp_micros: i64, now_micros: i64) -> ComplexColumn {
    let mut paths: Vec<Bytes> = elements.iter().map(|element| text(element)).collect();
    paths.sort_unstable();
    let secs = u32::try_from(now_micros / 1_000_000).unwrap_or(0);
    ComplexColumn {
        deletion: DeletionTime::new(timestamp_micros - 1, secs),
        cells: paths
            .into_iter()
            .map(|path| (path, Cell::live(timestamp_micros, Bytes::new())))
            .collect(),
    }
}

fn table(store: &dyn Store) -> Result<Arc<TableSchema>, LocalError> {
    let schema = store.schema();
    schema
        .table("system", "local")
        .cloned()
        .ok_or(LocalError::NoTable)
}

impl NodeFacts {
    /// Adopts the stored name of the cluster if the settings have the default name.
    fn take_cluster_of(&mut self, stored: &Stored) {
        if self.cluster_name == DEFAULT_CLUSTER_NAME
            && let Some(name) = stored.cell("cluster_name")
        {
            self.cluster_name = String::from_utf8_lossy(name).into_owned();
        }
    }
}

fn key(store: &dyn Store) -> DecoratedKey {
    DecoratedKey::new(store.partitioner(), Bytes::from_static(KEY))
}

fn read(store: &dyn Store) -> Result<Stored, LocalError> {
    let table = table(store)?;
    let mut stored = Stored::default();
    let mut cursor = store.read_partition(&table, &key(store), &ClusteringFilter::all())?;
    if cursor.next_partition().map_err(StoreError::from)?.is_none() {
        return Ok(stored);
    }
    let now_secs = u32::try_from(store.now_micros() / 1_000_000).unwrap_or(u32::MAX);
    while let Some(unfiltered) = cursor.next_unfiltered().map_err(StoreError::from)? {
        if let Unfiltered::Row(row) = unfiltered {
            stored.take(&table, row, now_secs);
        }
    }
    Ok(stored)
}

impl Stored {
    fn take(&mut self, table: &TableSchema, row: Row, now_secs: u32) {
        for data in row.columns {
            let Some(column) = table.column(data.column) else {
                continue;
            };
            match data.data {
                Data::Simple(cell) if cell.is_live(now_secs) => {
                    self.cells.push((column.name.clone(), cell.value));
                }
                Data::Complex(complex) if column.name == "tokens" => {
                    let live = complex.cells.iter().filter(|(_, cell)| cell.is_live(now_secs));
                    self.tokens
                        .extend(live.map(|(path, _)| String::from_utf8_lossy(path).into_owned()));
                }
                Data::Simple(_) | Data::Complex(_) => {}
            }
        }
    }

    fn cell(&self, name: &str) -> Option<&Bytes> {
        self.cells
            .iter()
            .find(|(column, _)| column == name)
            .map(|(_, value)| value)
    }
}

fn check(what: &'static str, stored: &Stored, setting: &'static str, wanted: &str) -> Result<(), LocalError> {
    match stored.cell(setting) {
        Some(value) if value[..] != *wanted.as_bytes() => Err(LocalError::Foreign {
            what,
            stored: String::from_utf8_lossy(value).into_owned(),
            wanted: wanted.to_owned(),
            setting,
        }),
        _ => Ok(()),
    }
}

/// The stored tokens, since a node must not change its tokens. Without stored tokens, the token of the settings or a random one.
fn choose_tokens(store: &dyn Store, stored: &Stored, facts: &NodeFacts) -> Result<Vec<String>, LocalError> {
    let partitioner = store.partitioner();
    match &facts.initial_token {
        _ if !stored.tokens.is_empty() => Ok(stored.tokens.clone()),
        Some(token) => match partitioner.parse_token(token) {
            Ok(_) => Ok(vec![token.clone()]),
            Err(_) => Err(LocalError::Token(token.clone())),
        },
        None => Ok(vec![chance_token(partitioner, store.random_uuid()).to_string()]),
    }
}

/// The token of a random key.
fn chance_token(partitioner: Partitioner, key: Uuid) -> Token {
    partitioner.token(key.as_bytes())
}
