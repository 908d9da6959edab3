//! The engine on a disk in memory, with a clock that only the test moves.

use std::collections::HashSet;
use std::sync::Arc;

use ilion_engine::{CounterCache, Engine, OpenIndex, ReadSurvey};
use ilion_env::MemEnv;
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_query::{ClusterFacts, EngineStore, LogPosition, PartitionGuard, Store, StoreError};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::{Partitioner, Uuid};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::engine::EngineDisk;

/// More timestamps than a schema change takes; also one millisecond, the precision of drop times.
const CHANGE_MICROS: i64 = 1000;

pub struct TestStore {
    engine: EngineStore,
    env: MemEnv,
    clock: Arc<Clock>,
    /// Indexes that are to look as if they were not built yet.
    unbuilt: Mutex<HashSet<String>>,
}

impl TestStore {
    pub fn over(engine: Arc<Engine>, env: MemEnv, clock: Arc<Clock>) -> Self {
        Self {
            engine: EngineStore::new(engine, cluster_facts()),
            env,
            clock,
            unbuilt: Mutex::default(),
        }
    }

    /// A store with all data in memtables.
    pub fn in_memory() -> Arc<Self> {
        EngineDisk::new().open()
    }

    /// Moves the clocks of the test and of the engine.
    pub fn advance_secs(&self, secs: u64) {
        self.clock.advance(i64::try_from(secs).unwrap() * 1_000_000);
        self.env.set_micros(self.clock.now_micros());
    }

    /// Blocks until no index is being built.
    pub fn wait_built(&self) {
        self.engine.engine().wait_idle();
    }

    /// Sets whether an index looks as if it were built.
    pub fn set_built(&self, index: &str, is_built: bool) {
        let mut unbuilt = self.unbuilt.lock();
        match is_built {
            true => unbuilt.remove(index),
            false => unbuilt.insert(index.to_owned()),
        };
    }
}

/// Methods of [`Store`] as the engine has them.
macro_rules! as_in_the_engine {
    ($(fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $ty),*) -> $result {
            self.engine.$name($($argument),*)
        })*
    };
}

impl Store for TestStore {
    /// The engine takes timestamps of its own; they must be after all earlier writes and before later ones.
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        self.clock.skip(CHANGE_MICROS);
        self.env.set_micros(self.clock.unique_micros());
        let applied = self.engine.alter_schema(change);
        self.clock.skip(CHANGE_MICROS);
        self.env.set_micros(self.clock.now_micros());
        applied
    }

    fn now_micros(&self) -> i64 {
        self.clock.now_micros()
    }

    fn unique_micros(&self) -> i64 {
        self.clock.unique_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.now_micros()).unwrap() * 1000
    }

    fn time_uuid(&self) -> Uuid {
        self.clock.time_uuid()
    }

    fn random_uuid(&self) -> Uuid {
        self.clock.random_uuid()
    }

    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        let mut indexes = self.engine.indexes_of(table);
        let unbuilt = self.unbuilt.lock();
        for open in &mut indexes {
            open.is_built &= !unbuilt.contains(&open.index.definition().schema.name);
        }
        indexes
    }

    as_in_the_engine! {
        fn schema() -> Arc<Schema>;
        fn apply(mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError>;
        fn apply_decided(mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError>;
        fn read_partition(
            table: &Arc<TableSchema>, key: &DecoratedKey, filter: &ClusteringFilter
        ) -> Result<Box<dyn Cursor>, StoreError>;
        fn read_range(
            table: &Arc<TableSchema>, range: &KeyRange, filter: &ClusteringFilter
        ) -> Result<Box<dyn Cursor>, StoreError>;
        fn truncate(table: TableId) -> Result<(), StoreError>;
        fn is_clearable(table: TableId) -> bool;
        fn is_settable(table: TableId) -> bool;
        fn set_virtual(mutation: &Mutation) -> Result<(), StoreError>;
        fn lock_partitions(partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_>;
        fn partitioner() -> Partitioner;
        fn counter_id() -> CounterId;
        fn counter_cache() -> Option<&CounterCache>;
        fn survey_partition(
            table: &Arc<TableSchema>, key: &DecoratedKey, filter: &ClusteringFilter
        ) -> Option<ReadSurvey>;
        fn survey_range(table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey>;
        fn cluster() -> ClusterFacts;
        fn index_classes() -> IndexClasses;
        fn index_search(
            table: &Arc<TableSchema>, index: &str, predicate: &Predicate, range: &KeyRange
        ) -> Result<Box<dyn Candidates>, StoreError>;
        fn index_estimate(
            table: &Arc<TableSchema>, index: &str, predicate: &Predicate
        ) -> Result<Estimate, StoreError>;
        fn index_nearest(
            table: &Arc<TableSchema>, index: &str, vector: &[f32]
        ) -> Result<Box<dyn Ranked>, StoreError>;
    }
}

/// The cluster of DESCRIBE CLUSTER in tests.
pub fn cluster_facts() -> ClusterFacts {
    ClusterFacts {
        name: "Test Cluster".to_owned(),
        snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
        ranges: vec![("0".to_owned(), vec!["127.0.0.1:7000".to_owned()])],
    }
}
