//! The engine as a [`Store`].

use std::sync::Arc;

use ilion_commitlog::{Error as LogError, Position};
use ilion_engine::{CounterCache, Engine, Error as EngineError, OpenIndex, ReadSurvey};
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::Partitioner;
use uuid::Uuid;

use crate::{Awaited, ClusterFacts, ClusterSource, LogPosition, PartitionGuard, Store, StoreError};

/// An engine, and the facts about its cluster.
pub struct EngineStore {
    engine: Arc<Engine>,
    cluster: Box<dyn ClusterSource>,
}

impl EngineStore {
    pub fn new(engine: Arc<Engine>, cluster: impl ClusterSource + 'static) -> Self {
        Self {
            engine,
            cluster: Box::new(cluster),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl From<Position> for LogPosition {
    fn from(position: Position) -> Self {
        Self {
            segment: position.segment.0,
            offset: position.offset,
        }
    }
}

impl From<LogPosition> for Position {
    fn from(position: LogPosition) -> Self {
        Self::new(position.segment, position.offset)
    }
}

impl From<EngineError> for StoreError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Read(error) => Self::Read(error),
            EngineError::Schema(error) => Self::Schema(error),
            EngineError::SSTable(error) => Self::Read(error.into()),
            EngineError::Refused(reason) | EngineError::Log(LogError::Refused { rule: reason }) => {
                Self::Invalid(reason)
            }
            EngineError::CaptureFull(reason) => Self::CaptureFull(reason),
            EngineError::SetAside { .. } => Self::Internal(error.to_string()),
            EngineError::Stalled(_)
            | EngineError::Stopped(_)
            | EngineError::Log(_)
            | EngineError::Io(_)
            | EngineError::InUse(_) => Self::WriteRefused(error.to_string()),
        }
    }
}

impl Store for EngineStore {
    fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        Ok(self
            .engine
            .apply(&mutations)?
            .map(|position| Awaited::Log(position.into())))
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        Ok(self
            .engine
            .apply_decided(&mutations)?
            .map(|position| Awaited::Log(position.into())))
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        Ok(self.engine.read_partition(table, key, filter)?)
    }

    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        Ok(self.engine.read_range(table, range, filter)?)
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        Ok(self.engine.truncate(table)?)
    }

    fn is_clearable(&self, table: TableId) -> bool {
        self.engine.is_clearable(table)
    }

    fn is_settable(&self, table: TableId) -> bool {
        self.engine.is_settable(table)
    }

    fn set_virtual(&self, mutation: &Mutation) -> Result<(), StoreError> {
        Ok(self.engine.set_virtual(mutation)?)
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        Ok(self.engine.alter_schema(change)?)
    }

    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        let mut partitions = partitions.iter().map(|(table, key)| (*table, key));
        Box::new(self.engine.lock_partitions(&mut partitions))
    }

    fn partitioner(&self) -> Partitioner {
        self.engine.partitioner()
    }

    fn now_micros(&self) -> i64 {
        self.engine.env().now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.engine.env().monotonic_nanos()
    }

    fn unique_micros(&self) -> i64 {
        self.engine.env().unique_micros()
    }

    fn time_uuid(&self) -> Uuid {
        self.engine.env().time_uuid()
    }

    fn random_uuid(&self) -> Uuid {
        self.engine.env().random_uuid()
    }

    fn counter_id(&self) -> CounterId {
        self.engine.id().into_bytes()
    }

    fn counter_cache(&self) -> Option<&CounterCache> {
        Some(self.engine.counter_cache()).filter(|cache| cache.is_enabled())
    }

    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        self.engine.survey_partition(table, key, filter).ok().flatten()
    }

    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey> {
        self.engine.survey_range(table, range).ok().flatten()
    }

    fn cluster(&self, keyspace: Option<&str>) -> ClusterFacts {
        self.cluster.cluster(keyspace)
    }

    fn index_classes(&self) -> IndexClasses {
        self.engine.index_classes().clone()
    }

    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        self.engine.indexes_of(table)
    }

    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
        _range: &KeyRange,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        Ok(self.engine.index_search(table, index, predicate)?)
    }

    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        Ok(self.engine.index_estimate(table, index, predicate)?)
    }

    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        Ok(self.engine.index_nearest(table, index, vector)?)
    }
}
