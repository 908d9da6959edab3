//! [`ClusterStore`]: a cluster as the storage of a coordinator's query layer.

use std::sync::Arc;

use ilion_engine::{CounterCache, ReadSurvey};
use ilion_index::{Candidates, Estimate, Predicate, Ranked};
use ilion_query::{Awaited, Commands, Consistency, PartitionGuard, Store, StoreError, Wanted};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation, ReadError};
use ilion_schema::{AUTH_KEYSPACE, Applied, SchemaChange, TableId, TableSchema};
use parking_lot::Mutex;

use crate::candidates::ClusterCandidates;
use crate::client::ReplicaClient;
use crate::cursor::ClusterCursor;
use crate::fan_out::estimate;
use crate::level::Level;
use crate::nearest::ClusterRanked;
use crate::open::Span;
use crate::reads::{ReadOptions, Reads, Shared};
use crate::route::Failures;
use crate::serve::ReplicaReader;
use crate::tablets::tablet_of;
use crate::target::Target;
use crate::writes::Writes;

/// The storage of a node of a cluster, which has a part of the data, or none.
#[derive(Clone)]
pub struct ClusterStore {
    reads: Reads,
    writes: Arc<dyn Writes>,
    /// The version of the roles that writes to them depend on; `None` if they depend on none.
    roles_version: Option<u64>,
}

/// Where the data of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Each node has its own data.
    ThisNode,
    /// All nodes have the same data: roles and permissions.
    AllNodes,
    /// The replicas of a partition have it.
    Replicas,
}

impl ClusterStore {
    /// A store that reads at ONE until it is asked for another level. `replica` is this node itself.
    pub fn new(
        replica: ReplicaReader,
        client: Arc<dyn ReplicaClient>,
        writes: Arc<dyn Writes>,
        options: ReadOptions,
    ) -> Self {
        let shared = Arc::new(Shared {
            replica,
            client,
            options,
            latencies: Mutex::default(),
        });
        let level = Level::of(Consistency::ONE);
        let reads = Reads {
            shared,
            level,
            wanted: Wanted::default(),
        };
        Self {
            reads,
            writes,
            roles_version: None,
        }
    }

    fn with(&self, reads: Reads) -> Box<dyn Store> {
        Box::new(Self {
            reads,
            writes: self.writes.clone(),
            roles_version: self.roles_version,
        })
    }

    fn change_roles(&self, mutations: &[Mutation]) -> Result<Option<Awaited>, StoreError> {
        self.writes.change_roles(mutations, self.roles_version)?;
        Ok(None)
    }

    fn local(&self) -> &dyn Store {
        self.reads.shared.local()
    }

    /// Whether the data of a table is spread over nodes.
    fn is_spread(&self, table: &TableSchema) -> Result<bool, StoreError> {
        Ok(self.reads.shared.spread(table)?.is_some())
    }

    fn is_spread_id(&self, table: TableId) -> Result<bool, StoreError> {
        let schema = self.schema();
        schema
            .table_by_id(table)
            .map_or(Ok(false), |table| self.is_spread(table))
    }

    /// Where the data of a table is.
    fn home(&self, table: &TableSchema) -> Result<Home, StoreError> {
        Ok(match self.is_spread(table)? {
            true => Home::Replicas,
            false if table.keyspace == AUTH_KEYSPACE => Home::AllNodes,
            false => Home::ThisNode,
        })
    }

    /// Where the data of the tables is that these mutations change.
    fn home_of(&self, mutations: &[Mutation]) -> Result<Home, StoreError> {
        let mut homes = mutations.iter().map(|mutation| self.home(&mutation.table));
        let first = homes.next().unwrap_or(Ok(Home::ThisNode))?;
        for home in homes {
            if home? != first {
                return Err(StoreError::Invalid(
                    "one write cannot change tables of the node, roles, and tables of the cluster".to_owned(),
                ));
            }
        }
        Ok(first)
    }

    /// True if this node is the nearest replica of a partition.
    fn is_nearest(&self, table: &TableSchema, key: &DecoratedKey) -> Result<bool, ReadError> {
        let node = self.reads.choose(table, &Failures::new(), |chooser| {
            let tablet = tablet_of(key, chooser.topology.tablets());
            tablet.map(|tablet| chooser.nearest(tablet)).transpose()
        })?;
        Ok(node.is_none_or(|node| self.reads.is_here(node)))
    }

    fn cursor(&self, table: &Arc<TableSchema>, span: Span, filter: &ClusteringFilter) -> ClusterCursor {
        let target = Target::of(table, filter);
        ClusterCursor::new(self.reads.clone(), target, span)
    }
}

impl Store for ClusterStore {
    fn at_level(&self, level: Consistency) -> Option<Box<dyn Store>> {
        Some(self.with(Reads {
            level: Level::of(level),
            ..self.reads.clone()
        }))
    }

    fn wanting(&self, wanted: Wanted) -> Option<Box<dyn Store>> {
        Some(self.with(Reads {
            wanted,
            ..self.reads.clone()
        }))
    }

    fn roles_version(&self) -> u64 {
        self.writes.roles_version()
    }

    fn at_roles_version(&self, version: u64) -> Option<Box<dyn Store>> {
        Some(Box::new(Self {
            roles_version: Some(version),
            ..self.clone()
        }))
    }

    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        match self.home_of(&mutations)? {
            Home::ThisNode => self.local().apply(mutations),
            Home::AllNodes => self.change_roles(&mutations),
            Home::Replicas => self.writes.apply(mutations),
        }
    }

    fn apply_logged(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        match self.home_of(&mutations)? {
            Home::ThisNode => self.local().apply_logged(mutations),
            Home::AllNodes => self.change_roles(&mutations),
            Home::Replicas => self.writes.apply_logged(mutations),
        }
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        match self.home_of(&mutations)? {
            Home::ThisNode => self.local().apply_decided(mutations),
            Home::AllNodes => self.change_roles(&mutations),
            Home::Replicas => self.writes.apply_decided(mutations),
        }
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        let Some(topology) = self.reads.shared.spread(table)? else {
            return self.local().read_partition(table, key, filter);
        };
        if !self.is_nearest(table, key)? {
            return Ok(Box::new(self.cursor(table, Span::Partition(key.clone()), filter)));
        }
        if let Some(tablet) = tablet_of(key, topology.tablets())
            && let Err(refused) = self.reads.wait_here_parked(table, tablet)?
        {
            let (node, mut failures) = (self.reads.shared.membership().node(), Failures::new());
            self.reads.lose(&mut failures, node, topology.versions(), refused);
            let span = Span::Partition(key.clone());
            return Ok(Box::new(self.cursor(table, span, filter).without(failures)));
        }
        self.local().read_partition(table, key, filter)
    }

    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        match self.is_spread(table)? {
            true => Ok(Box::new(self.cursor(table, Span::Range(range.clone()), filter))),
            false => self.local().read_range(table, range, filter),
        }
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        let schema = self.schema();
        let home = schema.table_by_id(table).map(|table| self.home(table));
        match home.unwrap_or(Ok(Home::ThisNode))? {
            Home::ThisNode => self.local().truncate(table),
            Home::AllNodes | Home::Replicas => self.writes.truncate(table),
        }
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        if let SchemaChange::CreateView(_) = change {
            return Err(StoreError::Invalid(
                "Materialized views are not supported in a cluster yet".to_owned(),
            ));
        }
        self.writes.alter_schema(change)
    }

    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        let mut tables = partitions.iter().map(|(table, _)| *table);
        match tables.all(|table| !self.is_spread_id(table).unwrap_or(true)) {
            true => self.local().lock_partitions(partitions),
            false => self.writes.lock_partitions(partitions),
        }
    }

    fn commands(&self) -> Option<&dyn Commands> {
        self.writes.commands()
    }

    fn counter_cache(&self) -> Option<&CounterCache> {
        None
    }

    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        let is_here = !self.is_spread(table).ok()? || self.is_nearest(table, key).ok()?;
        is_here.then(|| self.local().survey_partition(table, key, filter))?
    }

    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey> {
        let is_here = !self.is_spread(table).ok()? || {
            let parts = self.reads.parts(table, range, &Failures::new()).ok()?;
            parts.iter().all(|part| self.reads.is_here(part.node))
        };
        is_here.then(|| self.local().survey_range(table, range))?
    }

    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
        range: &KeyRange,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        if !self.is_spread(table)? {
            return self.local().index_search(table, index, predicate, range);
        }
        let candidates = ClusterCandidates::new(self.reads.clone(), table, index, predicate, range);
        Ok(Box::new(candidates))
    }

    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        match self.is_spread(table)? {
            true => Ok(estimate(&self.reads, table, index, predicate)?),
            false => self.local().index_estimate(table, index, predicate),
        }
    }

    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        match self.is_spread(table)? {
            true => Ok(Box::new(ClusterRanked::begin(
                self.reads.clone(),
                table,
                index,
                vector,
            )?)),
            false => self.local().index_nearest(table, index, vector),
        }
    }

    ilion_query::store_methods!(forward [local()]: schema is_clearable is_settable set_virtual partitioner cluster index_classes indexes_of);
    ilion_query::store_methods!(forward [writes]: now_micros unique_micros monotonic_nanos time_uuid random_uuid counter_id);
}
