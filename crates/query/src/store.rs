//! What query needs of the store below it: one trait, so that tests run on a map and the server on the engine.

use std::sync::Arc;

use ilion_engine::{CounterCache, IndexBuildFacts, OpenIndex, ReadSurvey};
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation, ReadError};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::{Consistency, Error, FailureReason, WriteType};

/// A place in the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Which segment.
    pub segment: u64,
    /// Where in it.
    pub offset: u32,
}

/// What DESCRIBE CLUSTER tells.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFacts {
    /// Name of the cluster.
    pub name: String,
    /// Short or full class name of the snitch.
    pub snitch: String,
    /// Tokens of the node and its address.
    pub ranges: Vec<(String, Vec<String>)>,
}

/// The store. Every call may come from any thread.
pub trait Store: Send + Sync {
    /// The schema as it is now; cheap.
    fn schema(&self) -> Arc<Schema>;

    /// Applies all mutations at once as one log record. They are visible when it returns, and durable when the log is
    /// up to the position (nothing: there is no log to wait for).
    ///
    /// # Errors
    /// Nothing was applied.
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError>;

    /// As [`Store::apply`], of what was decided by what was read before: after a loss it is not to be there without that.
    ///
    /// # Errors
    /// As there.
    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError> {
        self.apply(mutations)
    }

    /// One partition: merged, deletions applied to what they cover, tombstones and expired data still there.
    ///
    /// # Errors
    /// A source cannot be read.
    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError>;

    /// Many partitions, as [`Store::read_partition`].
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

    /// Whether [`Store::truncate`] makes a table forget that is computed when it is read.
    fn is_clearable(&self, _table: TableId) -> bool {
        false
    }

    /// Changes the schema: checks it, stores it, and makes or drops the tables. Nothing means that nothing changed, by
    /// the statement's `IF`.
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the rules do not allow it; then nothing was changed.
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError>;

    /// Waits until nobody else holds these partitions, and holds them until the guard is dropped. What reads and then
    /// writes by what it read (conditions, counters, list positions) does so under it; other writers do not wait.
    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_>;

    /// How keys become tokens.
    fn partitioner(&self) -> Partitioner;

    /// The clock.
    fn now_micros(&self) -> i64;

    /// The clock, but greater than every time given before.
    fn unique_micros(&self) -> i64;

    /// A clock that never steps back, for how long something took.
    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.now_micros()).unwrap_or(0).saturating_mul(1000)
    }

    /// A new version 1 UUID, greater in time than every one given before.
    fn time_uuid(&self) -> Uuid;

    /// A new version 4 UUID.
    fn random_uuid(&self) -> Uuid;

    /// Under which id this node counts. A store of one node may keep the one given here.
    fn counter_id(&self) -> CounterId {
        *b"ilion's counters"
    }

    /// What this node has counted lately, if that is remembered. To be used while the partition is locked.
    fn counter_cache(&self) -> Option<&CounterCache> {
        None
    }

    /// What reading a partition would ask, if that is known.
    fn survey_partition(
        &self,
        _table: &Arc<TableSchema>,
        _key: &DecoratedKey,
        _filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        None
    }

    /// What reading partitions of a range may ask, if that is known.
    fn survey_range(&self, _table: &Arc<TableSchema>, _range: &KeyRange) -> Option<ReadSurvey> {
        None
    }

    /// Name and tokens.
    fn cluster(&self) -> ClusterFacts;

    /// The kinds of indexes that there are.
    fn index_classes(&self) -> IndexClasses {
        IndexClasses::default()
    }

    /// The indexes of a table, and whether they may be asked yet. A store without indexes says that there are none.
    fn indexes_of(&self, _table: TableId) -> Vec<OpenIndex> {
        Vec::new()
    }

    /// Rows of the table that may match, of all its sources at one moment. What is told by [`Candidates::met`] of stale entries is
    /// removed when the search is dropped.
    ///
    /// # Errors
    /// The index is not there, not built or does not serve the predicate, or a source cannot be read.
    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        Err(StoreError::no_index(table, index))
    }

    /// How many rows [`Store::index_search`] may give.
    ///
    /// # Errors
    /// As for [`Store::index_search`].
    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        Err(StoreError::no_index(table, index))
    }

    /// Rows of the table by nearness of their vectors, about the nearest first. The same row may come several times.
    ///
    /// # Errors
    /// As for [`Store::index_search`]; the index does not rank.
    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        _vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        Err(StoreError::no_index(table, index))
    }

    /// Makes an index anew from its table, and returns when it is built.
    ///
    /// # Errors
    /// The index is not there, writes are refused, or the table cannot be read.
    fn rebuild_index(&self, table: &Arc<TableSchema>, index: &str) -> Result<(), StoreError> {
        Err(StoreError::no_index(table, index))
    }

    /// The builds of indexes that go on or wait.
    fn index_builds(&self) -> Vec<IndexBuildFacts> {
        Vec::new()
    }
}

/// Holds partitions until it is dropped.
pub trait PartitionGuard {}

impl<T> PartitionGuard for T {}

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A source could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Writes are refused: poisoned, or the disk is full. The operator must act.
    #[error("{0}")]
    WriteRefused(String),
    /// Too much at once. Retry later.
    #[error("{0}")]
    Overloaded(String),
    /// The request is not possible for this table.
    #[error("{0}")]
    Invalid(String),
    /// The schema's rules do not allow the change.
    #[error(transparent)]
    Schema(#[from] ilion_schema::Error),
    /// Neither the client's fault nor that of the request: a table that was set aside, or a fault of ours. The message says
    /// who must act.
    #[error("{0}")]
    Internal(String),
}

impl StoreError {
    fn no_index(table: &TableSchema, index: &str) -> Self {
        Self::Invalid(format!(
            "table {}.{} has no index {index}",
            table.keyspace, table.name
        ))
    }

    /// What the client of a read is told.
    pub(crate) fn of_read(self, consistency: Consistency) -> Error {
        match self {
            Self::Read(ReadError::Aborted(message)) => Error::ReadTimeout {
                consistency,
                message: message.to_owned(),
            },
            Self::Read(error) => Error::ReadFailure {
                consistency,
                reason: match error {
                    ReadError::TooManyTombstones { .. } => FailureReason::ReadTooManyTombstones,
                    _ => FailureReason::Unknown,
                },
                message: error.to_string(),
            },
            other => other.of_statement(),
        }
    }

    /// What the client of a write is told.
    pub(crate) fn of_write(self, consistency: Consistency, write_type: WriteType) -> Error {
        match self {
            Self::Read(error) => Self::Read(error).of_read(consistency),
            Self::WriteRefused(message) => Error::WriteFailure {
                consistency,
                write_type,
                reason: FailureReason::Unknown,
                message,
            },
            other => other.of_statement(),
        }
    }

    /// What the client of any other statement is told.
    pub(crate) fn of_statement(self) -> Error {
        match self {
            Self::Schema(error) => error.into(),
            Self::Overloaded(message) => Error::Overloaded(message),
            Self::Invalid(message) => Error::Invalid(message),
            Self::Read(error) => Error::ServerError(error.to_string()),
            Self::WriteRefused(message) | Self::Internal(message) => Error::ServerError(message),
        }
    }
}
