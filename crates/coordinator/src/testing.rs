//! A cluster in one process, for tests: several stores, a ring from records of the meta log, and a log of writes that replicas apply at
//! once or late.
//!
//! Writes are applied to every replica by its own schema, through the bytes of mutations. A late replica applies what it has missed
//! when a barrier makes it, or with a later write. So a read without a barrier may see an older state of a late replica, and one with a
//! barrier must not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::{
    Change, ClusterState, Effect, Endpoint, Entry, Join, Location, Node, Record, SchemaRecord, Strategy,
    Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use ilion_engine::TabletPosition;
use ilion_query::{Awaited, Commands, PartitionGuard, Store, StoreError};
use ilion_rows::counter::CounterId;
use ilion_rows::random::Dice;
use ilion_rows::{Decoded, DecoratedKey, Mutation, MutationReader, encode_mutation};
use ilion_schema::{Applied, SchemaChange, TableId, is_system_keyspace};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    BarrierError, Barriers, ClusterStore, InProcess, Membership, ReadOptions, ReplicaClient, ReplicaReader,
    Topology, Writes,
};

/// The identity of every cluster here.
const CLUSTER: Uuid = Uuid::from_u128(7);

/// How a cluster is built.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of tablets.
    pub tablets: u32,
    /// Replicas of every keyspace, whatever its schema says.
    pub factor: u32,
    /// The slices that the second node takes when it joins, and those that the third takes; and so on.
    pub slices: Vec<Vec<u32>>,
    /// `Some(seed)`: replicas apply late, at random.
    pub lateness: Option<u64>,
}

impl Shape {
    /// A ring of `nodes` whose tokens are spread at random.
    pub fn random(dice: &mut Dice, nodes: u32, factor: u32) -> Self {
        let tablets = 8 + dice.below(25) as u32;
        let mut owners: Vec<u32> = (0..tablets).map(|_| dice.below(nodes as usize) as u32).collect();
        // Each node has a slice.
        for node in 0..nodes {
            owners[node as usize] = node;
        }
        let slices = (1..nodes).map(|node| {
            let of_node = |tablet: &u32| owners[*tablet as usize] == node;
            (0..tablets).filter(of_node).collect()
        });
        Self {
            tablets,
            factor,
            slices: slices.collect(),
            lateness: None,
        }
    }
}

/// The state of the cluster, and the writes that replicas have not applied yet.
struct Log {
    stores: Vec<Arc<dyn Store>>,
    factor: u32,
    meta: Mutex<Meta>,
    writes: Mutex<WriteLog>,
}

struct Meta {
    state: ClusterState,
    topology: Arc<Topology>,
    seq: u64,
    down: BTreeSet<Node>,
    unready: BTreeSet<Node>,
}

struct WriteLog {
    lateness: Option<Dice>,
    appended: u64,
    /// What each node has not applied yet, in the order of the log.
    late: Vec<VecDeque<(u64, Bytes)>>,
    barriers: u64,
    /// Why the log takes no records, if it does not.
    broken: Option<BarrierError>,
    /// Nodes that do not follow any tablet any more, which no coordinator knows yet.
    gone: BTreeSet<Node>,
}

/// See the module.
#[derive(Clone)]
pub struct TestCluster {
    log: Arc<Log>,
    replicas: BTreeMap<Node, Arc<ReplicaReader>>,
}

impl TestCluster {
    /// A cluster of these stores, numbered from 1. Requires: nothing was written yet.
    #[expect(clippy::expect_used, reason = "a test fails where its cluster cannot be made")]
    pub fn new(stores: Vec<Arc<dyn Store>>, shape: &Shape) -> Self {
        let first = Entry {
            position: Position::new(1, 0),
            time_micros: 0,
            origin: Origin {
                node: 0,
                incarnation: 0,
                seq: 0,
            },
            record: Record {
                cluster: CLUSTER,
                change: Change::Create {
                    tablets: shape.tablets,
                    level: 1,
                    down_max_micros: i64::MAX,
                },
            },
        };
        let (state, _) = apply(None, &first).expect("a cluster");
        let late = vec![VecDeque::new(); stores.len()];
        let log = Arc::new(Log {
            factor: shape.factor,
            meta: Mutex::new(Meta {
                topology: Arc::new(Topology::of(&state)),
                state,
                seq: 0,
                down: BTreeSet::new(),
                unready: BTreeSet::new(),
            }),
            writes: Mutex::new(WriteLog {
                lateness: shape.lateness.map(Dice::new),
                appended: 0,
                late,
                barriers: 0,
                broken: None,
                gone: BTreeSet::new(),
            }),
            stores,
        });
        let mut replicas = BTreeMap::new();
        for (node, store) in (1..).zip(&log.stores) {
            let slices = match node {
                1 => (0..shape.tablets).collect(),
                _ => shape.slices.get(node as usize - 2).cloned().unwrap_or_default(),
            };
            log.meta.lock().join(node, slices);
            let member = Arc::new(Member {
                node,
                log: log.clone(),
            });
            replicas.insert(
                node,
                Arc::new(ReplicaReader {
                    store: store.clone(),
                    membership: member.clone(),
                    barriers: member,
                }),
            );
        }
        Self { log, replicas }
    }

    /// The way to the nodes of this cluster.
    pub fn client(&self) -> InProcess {
        InProcess::new(self.replicas.clone())
    }

    /// The storage of a node as a coordinator.
    #[expect(clippy::expect_used, reason = "a test fails where it names no node")]
    pub fn coordinator(
        &self,
        node: Node,
        client: Arc<dyn ReplicaClient>,
        options: ReadOptions,
    ) -> ClusterStore {
        let replica = self.replicas.get(&node).expect("a node of the cluster");
        let replica = ReplicaReader {
            store: replica.store.clone(),
            membership: replica.membership.clone(),
            barriers: replica.barriers.clone(),
        };
        let writes = Arc::new(Member {
            node,
            log: self.log.clone(),
        });
        ClusterStore::new(replica, client, writes, options)
    }

    /// The ring as it is now.
    pub fn topology(&self) -> Arc<Topology> {
        self.log.meta.lock().topology.clone()
    }

    /// Sets whether a node is thought to answer.
    pub fn set_alive(&self, node: Node, is_alive: bool) {
        let mut meta = self.log.meta.lock();
        match is_alive {
            true => meta.down.remove(&node),
            false => meta.down.insert(node),
        };
    }

    /// Sets whether a node's copies of its tablets are complete.
    pub fn set_ready(&self, node: Node, is_ready: bool) {
        let mut meta = self.log.meta.lock();
        match is_ready {
            true => meta.unready.remove(&node),
            false => meta.unready.insert(node),
        };
    }

    /// Number of no-ops in the log.
    pub fn barriers(&self) -> u64 {
        self.log.writes.lock().barriers
    }

    /// Makes a node follow no tablet any more, before any coordinator learns of it.
    pub fn leave_tablets(&self, node: Node) {
        self.log.writes.lock().gone.insert(node);
    }

    /// Sets why the log takes no barriers; `None`: it takes them.
    pub fn break_log(&self, error: Option<BarrierError>) {
        self.log.writes.lock().broken = error;
    }

    /// A node as a replica.
    pub fn replica(&self, node: Node) -> Option<&Arc<ReplicaReader>> {
        self.replicas.get(&node)
    }

    /// Gives slices to other nodes, without moving data: to show that a read follows the ring.
    pub fn move_slices(&self, moves: Vec<(u32, Node)>) {
        let mut meta = self.log.meta.lock();
        meta.change(1, Change::Move { moves });
        meta.finish();
    }
}

impl Meta {
    #[expect(
        clippy::expect_used,
        reason = "a test fails where its cluster cannot be changed"
    )]
    fn change(&mut self, sender: Node, change: Change) -> Vec<Effect> {
        self.seq += 1;
        let entry = Entry {
            position: Position::new(1, u32::try_from(self.seq).expect("few records")),
            time_micros: 0,
            origin: Origin {
                node: sender,
                incarnation: 1,
                seq: self.seq,
            },
            record: Record {
                cluster: CLUSTER,
                change,
            },
        };
        let (state, effects) = apply(Some(&self.state), &entry).expect("a record that applies");
        let refused = effects
            .iter()
            .find(|effect| matches!(effect, Effect::Refused { .. }));
        assert!(refused.is_none(), "{refused:?}");
        self.state = state;
        self.topology = Arc::new(Topology::of(&self.state));
        effects
    }

    fn join(&mut self, node: Node, slices: Vec<u32>) {
        let id = Uuid::from_u128(u128::from(node));
        self.change(
            0,
            Change::Join(Join {
                host: id,
                session: id,
                endpoint: Endpoint {
                    ip: [127, 0, 0, 1].into(),
                    native_port: 9042,
                    storage_port: 7000,
                },
                location: Location {
                    datacenter: "datacenter1".to_owned(),
                    rack: format!("r{node}"),
                },
                understands: 1,
                takes: Takes::Slices(slices),
            }),
        );
        self.finish();
    }

    /// Ends a transition: every node that gains says that it is ready.
    fn finish(&mut self) {
        while let Some(transition) = self.state.transition.clone() {
            let gaining: Vec<Node> = self.state.members.keys().copied().collect();
            let waits = |node: &Node| !transition.ready.contains(node);
            let number = transition.number;
            let gains = self.state.gains();
            let is_joining = |node: &Node| {
                self.state
                    .members
                    .get(node)
                    .is_some_and(|member| member.phase == ilion_cluster::Phase::Joining)
            };
            let next = gaining
                .into_iter()
                .find(|node| waits(node) && (gains.contains_key(node) || is_joining(node)));
            let Some(node) = next else {
                return;
            };
            let schema_epoch = self.state.schema.epoch;
            self.change(
                node,
                Change::Ready {
                    transition: number,
                    schema_epoch,
                },
            );
        }
    }
}

/// A node: implements `Membership`, `Barriers` and `Writes`.
struct Member {
    node: Node,
    log: Arc<Log>,
}

impl Member {
    fn store(&self) -> &dyn Store {
        &*self.log.stores[self.node as usize - 1]
    }
}

impl Log {
    fn nodes(&self) -> std::ops::RangeInclusive<Node> {
        1..=self.stores.len() as Node
    }

    /// Applies what a node has missed up to a position.
    fn catch_up(
        &self,
        writes: &mut WriteLog,
        node: Node,
        position: u64,
    ) -> Result<Option<Awaited>, StoreError> {
        let late = &mut writes.late[node as usize - 1];
        let mut applied = None;
        while let Some((_, record)) = late.pop_front_if(|(at, _)| *at <= position) {
            applied = self.apply_at(node, record)?.or(applied);
        }
        Ok(applied)
    }

    /// Applies a record at a node, by the schema of that node.
    fn apply_at(&self, node: Node, record: Bytes) -> Result<Option<Awaited>, StoreError> {
        let store = &self.stores[node as usize - 1];
        let schema = store.schema();
        let mut reader = MutationReader::new(record);
        let mut mutations = Vec::new();
        let resolve = |id: TableId| schema.table_by_id(id).cloned();
        let damaged = |error: ilion_codec::Error| StoreError::Internal(error.to_string());
        while let Some(decoded) = reader.next_mutation(&resolve).map_err(damaged)? {
            if let Decoded::Mutation(mutation) = decoded {
                mutations.push(mutation);
            }
        }
        store.apply(mutations)
    }

    fn append(&self, coordinator: Node, mutations: &[Mutation]) -> Result<Option<Awaited>, StoreError> {
        let topology = self.meta.lock().topology.clone();
        let mut records: BTreeMap<Node, Vec<u8>> = BTreeMap::new();
        for mutation in mutations {
            let token = mutation.key.token.murmur3().unwrap_or_default();
            let tablet = topology.tablets().of(token);
            let replicas = topology.replicas(&mutation.table.keyspace, tablet);
            let Some(replicas) = replicas else {
                return Err(StoreError::Internal(format!(
                    "keyspace {} is in no ring",
                    mutation.table.keyspace
                )));
            };
            for node in replicas {
                encode_mutation(mutation, records.entry(*node).or_default());
            }
        }
        let mut writes = self.writes.lock();
        writes.appended += 1;
        let position = writes.appended;
        let mut awaited = None;
        for (node, record) in records {
            writes.late[node as usize - 1].push_back((position, record.into()));
            let is_late = writes.lateness.as_mut().is_some_and(|dice| !dice.one_in(3));
            if !is_late {
                let applied = self.catch_up(&mut writes, node, position)?;
                awaited = applied.filter(|_| node == coordinator).or(awaited);
            }
        }
        Ok(awaited)
    }

    /// Changes the replication of keyspaces that came or went with a change of the schema. Counts the change.
    fn follow_schema(&self) {
        let schema = self.stores[0].schema();
        let mut meta = self.meta.lock();
        let known: BTreeSet<String> = meta.state.schema.keyspaces.keys().cloned().collect();
        let is_users = |name: &&String| !is_system_keyspace(name);
        let now: BTreeSet<String> = schema.keyspaces.keys().filter(is_users).cloned().collect();
        let dropped = known.difference(&now).map(|name| (name.clone(), None));
        let created = now
            .difference(&known)
            .map(|name| (name.clone(), Some(Strategy::Simple(self.factor))));
        let keyspaces = dropped.chain(created).collect();
        let checked_at = meta.state.schema.epoch;
        meta.change(
            1,
            Change::Schema(SchemaRecord {
                checked_at,
                keyspaces,
                body: Bytes::new(),
            }),
        );
        meta.finish();
    }
}

impl Membership for Member {
    fn node(&self) -> Node {
        self.node
    }

    fn topology(&self) -> Arc<Topology> {
        self.log.meta.lock().topology.clone()
    }

    fn topology_at(&self, _ring: u64, _schema: u64, _deadline_nanos: u64) -> Arc<Topology> {
        self.topology()
    }

    fn is_alive(&self, node: Node) -> bool {
        !self.log.meta.lock().down.contains(&node)
    }

    fn is_ready(&self, _tablet: u32) -> bool {
        !self.log.meta.lock().unready.contains(&self.node)
    }
}

impl Barriers for Member {
    fn raise(&self, tablets: &[u32], _deadline_nanos: u64) -> Result<Vec<TabletPosition>, BarrierError> {
        let mut writes = self.log.writes.lock();
        if let Some(error) = &writes.broken {
            return Err(error.clone());
        }
        writes.barriers += tablets.len() as u64;
        let offset = writes.appended;
        let position = |tablet: &u32| TabletPosition {
            tablet: *tablet,
            offset,
        };
        Ok(tablets.iter().map(position).collect())
    }

    fn wait_applied(&self, reached: &[TabletPosition], _deadline_nanos: u64) -> Result<(), BarrierError> {
        let Some(position) = reached.iter().map(|position| position.offset).max() else {
            return Ok(());
        };
        let mut writes = self.log.writes.lock();
        if writes.gone.contains(&self.node) {
            return Err(BarrierError::Unavailable(
                "it does not follow the tablet".to_owned(),
            ));
        }
        let applied = self.log.catch_up(&mut writes, self.node, position);
        applied.map_err(|error| BarrierError::Unavailable(error.to_string()))?;
        Ok(())
    }
}

impl Writes for Member {
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.log.append(self.node, &mutations)
    }

    fn apply_logged(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.log.append(self.node, &mutations)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.log.append(self.node, &mutations)
    }

    fn roles_version(&self) -> u64 {
        0
    }

    fn change_roles(&self, mutations: &[Mutation], _version: Option<u64>) -> Result<(), StoreError> {
        for store in &self.log.stores {
            store.apply(mutations.to_vec())?;
        }
        Ok(())
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        let mut writes = self.log.writes.lock();
        for (node, store) in (1..).zip(&self.log.stores) {
            self.log.catch_up(&mut writes, node, u64::MAX)?;
            store.truncate(table)?;
        }
        Ok(())
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        let mut change = change.clone();
        change.give_id(|| TableId(self.time_uuid()));
        let mut writes = self.log.writes.lock();
        for node in self.log.nodes() {
            self.log.catch_up(&mut writes, node, u64::MAX)?;
        }
        let applied = self.store().alter_schema(&change)?;
        for (node, store) in (1..).zip(&self.log.stores) {
            if node != self.node {
                store.alter_schema(&change)?;
            }
        }
        if applied.is_some() {
            self.log.follow_schema();
        }
        Ok(applied)
    }

    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        self.log.stores[0].lock_partitions(partitions)
    }

    /// Conditions are decided by the coordinator, under locks that all nodes of the process share.
    fn commands(&self) -> Option<&dyn Commands> {
        None
    }

    fn now_micros(&self) -> i64 {
        self.store().now_micros()
    }

    fn unique_micros(&self) -> i64 {
        self.store().unique_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.store().monotonic_nanos()
    }

    /// All nodes share one clock of ids: elements of lists are ordered by them.
    fn time_uuid(&self) -> Uuid {
        self.log.stores[0].time_uuid()
    }

    fn random_uuid(&self) -> Uuid {
        self.store().random_uuid()
    }

    fn counter_id(&self) -> CounterId {
        self.store().counter_id()
    }
}
