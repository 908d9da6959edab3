//! The interface of query to the storage below. A trait, so that tests can run without an engine.

use std::sync::Arc;

use ilion_engine::{CounterCache, OpenIndex, ReadSurvey};
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation, ReadError};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::{Awaited, Command, Commands, Consistency, Error, FailureReason, Reason, WriteType};

/// The facts that DESCRIBE CLUSTER shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFacts {
    /// Name of the cluster.
    pub name: String,
    /// Short or full class name of the snitch.
    pub snitch: String,
    /// The end of each range of tokens, with the addresses of its replicas.
    pub ranges: Vec<(String, Vec<String>)>,
}

/// Who knows these facts.
pub trait ClusterSource: Send + Sync {
    /// The facts as they are now, with the replicas of this keyspace.
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

/// The storage. Any thread may call it.
pub trait Store: Send + Sync {
    /// The current schema; cheap.
    fn schema(&self) -> Arc<Schema>;

    /// The same storage for a statement that reads at this consistency level. `None`: reads are the same at every level, as on a
    /// single node.
    fn at_level(&self, _level: Consistency) -> Option<Box<dyn Store>> {
        None
    }

    /// Applies all mutations at once as one log record. They are visible when it returns, and durable when the log is durable
    /// up to the position; `None` if there is no log.
    ///
    /// # Errors
    /// Nothing was applied.
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// Like [`Store::apply`], for mutations that depend on what was read: a crash that loses what was read loses them, too.
    ///
    /// # Errors
    /// As [`Store::apply`].
    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// Reads one partition: merged, with deletions applied to the data they cover; tombstones and expired data are still there.
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

    /// Whether [`Store::truncate`] clears a table that is computed when it is read.
    fn is_clearable(&self, table: TableId) -> bool;

    /// Whether [`Store::set_virtual`] updates a table that is computed when it is read.
    fn is_settable(&self, table: TableId) -> bool;

    /// Updates a row of such a table.
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

    /// Locks these partitions until the guard is dropped; blocks while others hold them. Statements that write what depends on
    /// a read (conditions, counters, list positions) hold it; other writers do not.
    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_>;

    /// In a cluster, what executes statements that read before they write. `None`: they are executed here, under
    /// [`Store::lock_partitions`].
    fn commands(&self) -> Option<&dyn Commands> {
        None
    }

    /// The partitioner of the node.
    fn partitioner(&self) -> Partitioner;

    /// The wall clock.
    fn now_micros(&self) -> i64;

    /// The wall clock, but later than every time returned before.
    fn unique_micros(&self) -> i64;

    /// A monotonic clock, for durations.
    fn monotonic_nanos(&self) -> u64;

    /// A new version 1 UUID, later than every one returned before.
    fn time_uuid(&self) -> Uuid;

    /// A new version 4 UUID.
    fn random_uuid(&self) -> Uuid;

    /// The id under which this node counts.
    fn counter_id(&self) -> CounterId;

    /// The recent counts of this node, if they are cached. Requires: the partition is locked.
    fn counter_cache(&self) -> Option<&CounterCache>;

    /// The sources that a read of a partition would use, if known.
    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey>;

    /// The sources that a read of a range may use, if known.
    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey>;

    /// The name and snitch of the cluster, and the replicas of this keyspace.
    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts;

    /// The classes of indexes.
    fn index_classes(&self) -> IndexClasses;

    /// The indexes of a table, and whether they are ready.
    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex>;

    /// Candidates for the rows that match in a range of partitions, from all sources at one moment; there may be some of other
    /// partitions, too. Stale entries that [`Candidates::met`] finds are removed when the search is dropped.
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

    /// How many rows [`Store::index_search`] may give.
    ///
    /// # Errors
    /// As for [`Store::index_search`].
    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError>;

    /// Rows ranked by the nearness of their vectors, approximately. A row may come several times.
    ///
    /// # Errors
    /// As for [`Store::index_search`]; the index does not rank.
    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError>;
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
    /// Writes are refused: after a failure that stops writes, or since the disk is full. The operator must act.
    #[error("{0}")]
    WriteRefused(String),
    /// The log did not acknowledge a write in time; it may still be applied. The client may try again. Only in clusters.
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout {
        /// Acknowledgements that came.
        received: u32,
        /// Acknowledgements that the write needs.
        block_for: u32,
    },
    /// Too few replicas or brokers are alive; nothing was written. The client may try again. Only in clusters.
    #[error("Cannot achieve consistency level: {required} replicas are required, {alive} are alive")]
    Unavailable {
        /// How many must be alive.
        required: u32,
        /// How many are.
        alive: u32,
    },
    /// The space for captured changes is used up: consumers of changes must act.
    #[error("{0}")]
    CaptureFull(String),
    /// The request is not possible for this table.
    #[error("{0}")]
    Invalid(String),
    /// The schema's rules do not allow the change.
    #[error(transparent)]
    Schema(#[from] ilion_schema::Error),
    /// Neither the client nor the request is wrong: a table was set aside, or there is a bug. The message says who must act.
    #[error("{0}")]
    Internal(String),
}

impl StoreError {
    /// The error for the client of a read.
    pub(crate) fn of_read(self, consistency: Consistency) -> Error {
        match self {
            // One replica answers a read at every level.
            Self::Read(ReadError::Aborted(message)) => Error::ReadTimeout {
                consistency,
                received: 0,
                block_for: 1,
                message: message.to_owned(),
            },
            Self::Read(ReadError::Unavailable { required, alive }) => {
                unavailable(consistency, required, alive)
            }
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

    /// The error for the client of a write.
    pub(crate) fn of_write(self, consistency: Consistency, write_type: WriteType) -> Error {
        match self {
            Self::Read(error) => Self::Read(error).of_read(consistency),
            Self::CaptureFull(message) => Error::CdcWriteFailure(message),
            Self::WriteRefused(message) => Error::WriteFailure {
                consistency,
                write_type,
                reason: FailureReason::Unknown,
                message,
            },
            Self::Unavailable { required, alive } => unavailable(consistency, required, alive),
            Self::WriteTimeout { received, block_for } => {
                let message = self.to_string();
                let (received, block_for) = (number(received), number(block_for));
                match write_type {
                    // Compat: the outcome is unknown. Versions of the protocol before v5 get WRITE_TIMEOUT with CAS.
                    WriteType::Cas => Error::CasWriteUnknown {
                        consistency,
                        received,
                        block_for,
                        message,
                    },
                    write_type => Error::WriteTimeout {
                        consistency,
                        write_type,
                        received,
                        block_for,
                        message,
                    },
                }
            }
            other => other.of_statement(),
        }
    }

    /// The error for the client of a command (see [`Command`]).
    pub fn of_command(self, command: &Command, reason: Reason) -> Error {
        match reason {
            // Compat: conditional statements fail with their serial level.
            Reason::Decides => {
                let level = command.serial_consistency.unwrap_or(Consistency::SERIAL);
                self.of_write(level, WriteType::Cas)
            }
            Reason::Counts => self.of_write(command.consistency, WriteType::Counter),
        }
    }

    /// The error for the client of any other statement.
    pub(crate) fn of_statement(self) -> Error {
        match self {
            Self::Schema(error) => error.into(),
            Self::Invalid(message) => Error::Invalid(message),
            Self::Read(error) => Error::ServerError(error.to_string()),
            // Statements without a level of their own, such as changes of the schema, are in the log as writes at QUORUM.
            Self::Unavailable { .. } | Self::WriteTimeout { .. } => {
                self.of_write(Consistency::QUORUM, WriteType::Simple)
            }
            Self::CaptureFull(message) => Error::CdcWriteFailure(message),
            Self::WriteRefused(message) | Self::Internal(message) => Error::ServerError(message),
        }
    }
}

fn unavailable(consistency: Consistency, required: u32, alive: u32) -> Error {
    Error::Unavailable {
        consistency,
        required: number(required),
        alive: number(alive),
    }
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
