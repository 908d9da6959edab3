//! [`Store`]: the interface to the storage below. A trait, so that tests can run without an engine.

use std::sync::Arc;

use ilion_engine::{CounterCache, OpenIndex, ReadSurvey};
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::{Awaited, Commands, Consistency, StoreError};

/// The facts that DESCRIBE CLUSTER shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFacts {
    /// Name of the cluster.
    pub name: String,
    /// Short or full class name of the snitch.
    pub snitch: String,
    /// The end of each token range, with the addresses of its replicas.
    pub ranges: Vec<(String, Vec<String>)>,
}

/// A source of [`ClusterFacts`].
pub trait ClusterSource: Send + Sync {
    /// The current facts, with the replicas of this keyspace.
    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts;
}

impl<T: ClusterSource + ?Sized> ClusterSource for Arc<T> {
    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts {
        T::cluster(self, keyspace)
    }
}

/// The facts of a single node: they do not change, and each keyspace has the same replica.
impl ClusterSource for ClusterFacts {
    fn cluster(&self, _keyspace: Option<&str>) -> ClusterFacts {
        self.clone()
    }
}

/// The largest number of rows that the reader can use. Only live rows count. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Rows in all.
    pub rows: Option<u32>,
    /// Rows of each partition.
    pub rows_per_partition: Option<u32>,
}

/// The storage. Any thread may call it.
pub trait Store: Send + Sync {
    /// The current schema; cheap.
    fn schema(&self) -> Arc<Schema>;

    /// The same storage for a statement that reads at this consistency level. `None`: use this storage. A single node returns `None`,
    /// since its reads are the same at every level.
    fn at_level(&self, _level: Consistency) -> Option<Box<dyn Store>> {
        None
    }

    /// The same storage for a statement that wants no more rows than this, so that reads may leave out the rest. `None`: use this
    /// storage. A single node returns `None`, since it reads nothing ahead.
    fn wanting(&self, _wanted: Wanted) -> Option<Box<dyn Store>> {
        None
    }

    /// The version of schema and roles in a cluster: it grows with each change that this node adopts. A single node returns 0.
    fn roles_version(&self) -> u64 {
        0
    }

    /// The same storage, but a write to `system_auth` fails with [`StoreError::Overtaken`] if schema or roles have changed since this
    /// version. `None`: use this storage. A single node returns `None`, since only the caller changes roles.
    fn at_roles_version(&self, _version: u64) -> Option<Box<dyn Store>> {
        None
    }

    /// Applies all mutations at once as one log record. When it returns, they are visible. They are durable once the returned
    /// [`Awaited`] has happened; `None` if there is no log.
    ///
    /// # Errors
    /// If it fails, nothing was applied.
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// Like [`Store::apply`], for a logged batch: whatever fails, in the end either all of it is applied or nothing. A store whose every
    /// write has this property needs no method of its own.
    ///
    /// # Errors
    /// As [`Store::apply`].
    fn apply_logged(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.apply(mutations)
    }

    /// Like [`Store::apply`], for mutations that depend on data that was read: a crash that loses that data also loses the mutations.
    ///
    /// # Errors
    /// As [`Store::apply`].
    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// Reads one partition. Its sources are merged and deletions are applied to the data that they cover, but tombstones and expired
    /// data are not purged.
    ///
    /// # Errors
    /// A source cannot be read.
    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError>;

    /// Reads a range of partitions, each as [`Store::read_partition`] does.
    ///
    /// # Errors
    /// A source cannot be read.
    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError>;

    /// Removes all data of a table.
    ///
    /// # Errors
    /// The table cannot be truncated.
    fn truncate(&self, table: TableId) -> Result<(), StoreError>;

    /// True if this is a virtual table that [`Store::truncate`] can clear.
    fn is_clearable(&self, table: TableId) -> bool;

    /// True if this is a virtual table that [`Store::set_virtual`] can update.
    fn is_settable(&self, table: TableId) -> bool;

    /// Updates a row of a virtual table.
    ///
    /// # Errors
    /// The row cannot have these values.
    fn set_virtual(&self, mutation: &Mutation) -> Result<(), StoreError>;

    /// Changes the schema: checks the change, stores it, and makes or drops the tables. `None` if the statement's `IF` left
    /// nothing to change.
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the rules do not allow it; the schema is then unchanged.
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError>;

    /// Locks these partitions until the guard is dropped; blocks while another thread has locked one of them. Statements whose writes
    /// depend on a read (conditions, counters, list positions) take the lock; other writers do not.
    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_>;

    /// In a cluster, the executor of statements that read before they write. `None`: this node executes them, under
    /// [`Store::lock_partitions`].
    fn commands(&self) -> Option<&dyn Commands> {
        None
    }

    /// The partitioner of the node.
    fn partitioner(&self) -> Partitioner;

    /// The wall clock.
    fn now_micros(&self) -> i64;

    /// The wall clock in microseconds, raised if necessary: always later than every time it returned before.
    fn unique_micros(&self) -> i64;

    /// A monotonic clock, for durations.
    fn monotonic_nanos(&self) -> u64;

    /// A new version 1 UUID, later than every one it returned before.
    fn time_uuid(&self) -> Uuid;

    /// A new version 4 UUID.
    fn random_uuid(&self) -> Uuid;

    /// The id of this node's shards of counters.
    fn counter_id(&self) -> CounterId;

    /// The cache of recent counts of this node, if it has one. Requires: the partition of the counter is locked.
    fn counter_cache(&self) -> Option<&CounterCache>;

    /// The sources that a read of a partition would use; `None` if the store does not know.
    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey>;

    /// The sources that a read of a range may use; `None` if the store does not know.
    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey>;

    /// The name and snitch of the cluster, and the replicas of this keyspace.
    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts;

    /// The known classes of indexes.
    fn index_classes(&self) -> IndexClasses;

    /// The indexes of a table, with their state.
    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex>;

    /// Candidates for the rows that match in a range of partitions, from all sources at one moment. Some candidates may be of other
    /// partitions. Stale entries that [`Candidates::met`] finds are removed when the search is dropped.
    ///
    /// # Errors
    /// The index does not exist, is not built or does not serve the predicate, or a source cannot be read.
    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
        range: &KeyRange,
    ) -> Result<Box<dyn Candidates>, StoreError>;

    /// An estimate of how many rows [`Store::index_search`] returns.
    ///
    /// # Errors
    /// As for [`Store::index_search`].
    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError>;

    /// Rows ranked by the nearness of their vectors, approximately. The same row may appear several times.
    ///
    /// # Errors
    /// As for [`Store::index_search`]; also if the index does not rank.
    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError>;
}

/// Keeps partitions locked until it is dropped.
pub trait PartitionGuard {}

impl<T> PartitionGuard for T {}
