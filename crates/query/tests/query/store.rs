//! The engine on a disk in memory, with a clock that only the test moves.

use std::collections::HashSet;
use std::sync::Arc;

use ilion_engine::{Engine, OpenIndex};
use ilion_env::MemEnv;
use ilion_query::{ClusterFacts, EngineStore, Store, StoreError};
use ilion_schema::{Applied, SchemaChange, TableId};
use ilion_types::Uuid;
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

    ilion_query::store_methods!(forward [engine]: schema apply apply_decided read_partition read_range truncate is_clearable is_settable set_virtual lock_partitions partitioner counter_id counter_cache survey_partition survey_range cluster index_classes index_search index_estimate index_nearest);
}

/// The cluster of DESCRIBE CLUSTER in tests.
pub fn cluster_facts() -> ClusterFacts {
    ClusterFacts {
        name: "Test Cluster".to_owned(),
        snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
        ranges: vec![("0".to_owned(), vec!["127.0.0.1:7000".to_owned()])],
    }
}
