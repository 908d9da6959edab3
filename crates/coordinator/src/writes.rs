//! [`Writes`]: what a coordinator needs of the write path: changes, locks, clocks and ids.

use ilion_query::{Awaited, Commands, PartitionGuard, StoreError};
use ilion_rows::counter::CounterId;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{Applied, SchemaChange, TableId};
use uuid::Uuid;

/// The write path of a cluster. Its methods are those of [`ilion_query::Store`], for tables whose data is spread over nodes;
/// tables that each node has for itself never get here.
pub trait Writes: Send + Sync {
    /// See [`ilion_query::Store::apply`].
    ///
    /// # Errors
    /// Nothing was applied, or the outcome is unknown and the error says so.
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// See [`ilion_query::Store::apply_logged`].
    ///
    /// # Errors
    /// Like [`Self::apply`].
    fn apply_logged(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// See [`ilion_query::Store::apply_decided`].
    ///
    /// # Errors
    /// Like [`Self::apply`].
    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError>;

    /// See [`ilion_query::Store::roles_version`].
    fn roles_version(&self) -> u64;

    /// Writes rows of roles and permissions on every node of the cluster, if their version is `version` or that is `None`. Returns when all
    /// nodes that are up have the rows.
    ///
    /// # Errors
    /// The rows are not written, or the outcome is unknown and the error says so.
    fn change_roles(&self, mutations: &[Mutation], version: Option<u64>) -> Result<(), StoreError>;

    /// See [`ilion_query::Store::truncate`].
    ///
    /// # Errors
    /// The table cannot be truncated.
    fn truncate(&self, table: TableId) -> Result<(), StoreError>;

    /// See [`ilion_query::Store::alter_schema`]. Changes that a cluster does not have yet are refused before.
    ///
    /// # Errors
    /// The schema is unchanged.
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError>;

    /// See [`ilion_query::Store::lock_partitions`].
    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_>;

    /// See [`ilion_query::Store::commands`].
    fn commands(&self) -> Option<&dyn Commands>;

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
}
