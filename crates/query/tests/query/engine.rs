//! The engine on a disk in memory, which flushes, compacts and restarts between statements.

use std::path::Path;
use std::sync::Arc;

use ilion_engine::{CounterCache, Engine, EngineOptions, IndexRepair, OpenIndex, ReadSurvey};
use ilion_env::MemEnv;
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked, Storage};
use ilion_query::{ClusterFacts, EngineStore, LogPosition, PartitionGuard, Store, StoreError};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema, is_system_keyspace};
use ilion_types::{Partitioner, Uuid};

use crate::clock::Clock;
use crate::session::Session;
use crate::store::{TestStore, cluster_facts};

/// More timestamps than a schema change takes; also one millisecond, the precision of drop times.
const CHANGE_MICROS: i64 = 1000;

/// What is left of an engine after it is closed.
pub struct EngineDisk {
    env: MemEnv,
    clock: Arc<Clock>,
    engine: Option<Arc<Engine>>,
    steps: usize,
}

impl EngineDisk {
    pub fn new() -> Self {
        Self {
            env: MemEnv::new(7),
            clock: Arc::new(Clock::new()),
            engine: None,
            steps: 0,
        }
    }

    pub fn open(&mut self) -> Arc<dyn TestStore> {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 2;
        options.is_compacting = false;
        options.commit_log.segment_bytes = 256 << 10;
        let engine = Arc::new(Engine::open(self.env.shared(), options).unwrap());
        self.engine = Some(engine.clone());
        Arc::new(MovedStore {
            engine: EngineStore::new(engine, cluster_facts()),
            env: self.env.clone(),
            clock: self.clock.clone(),
        })
    }

    /// Requires: all users of the engine are gone.
    pub fn reopen(&mut self) -> Arc<dyn TestStore> {
        self.engine = None;
        self.open()
    }

    /// Sets the engine's clock, which it purges by, to that of the test.
    pub fn set_clock(&self) {
        self.env.set_micros(self.clock.now_micros());
    }

    /// Moves the data in a different way at each call.
    pub fn move_data(&mut self, session: &mut Session) {
        self.steps += 1;
        match self.steps % 8 {
            1 | 5 => self.flush(),
            3 => self.compact(),
            7 if !session.has_prepared() => session.reconnect(|| self.reopen()),
            _ => {}
        }
    }

    pub fn flush(&self) {
        for table in self.user_tables() {
            self.engine().flush(table).unwrap();
        }
    }

    /// Bytes that readers got from the disk.
    pub fn bytes_served(&self) -> u64 {
        self.env.served().1
    }

    fn compact(&self) {
        self.flush();
        for table in self.user_tables() {
            self.engine().compact(table).unwrap();
        }
    }

    /// Checks that indexes are complete, and that those beside SSTables have no other entries.
    pub fn verify_indexes(&self) {
        let schema = self.engine().schema();
        for table in self.user_tables() {
            let table = schema.table_by_id(table).unwrap();
            for open in self.engine().indexes_of(table.id) {
                let name = &open.index.definition().schema.name;
                let found = self
                    .engine()
                    .verify_index(table, name, IndexRepair::None)
                    .unwrap();
                assert_eq!(found.missing, 0, "{name}: {found:?}");
                if matches!(open.index.storage(), Storage::Attached(_)) {
                    assert_eq!(found.stale, 0, "{name}: {found:?}");
                }
            }
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("it was opened")
    }

    fn user_tables(&self) -> Vec<TableId> {
        let schema = self.engine().schema();
        let keyspaces = schema.keyspaces.values();
        keyspaces
            .filter(|keyspace| !is_system_keyspace(&keyspace.name))
            .flat_map(|keyspace| keyspace.tables.values().map(|table| table.id))
            .collect()
    }
}

/// The engine with the clock of the test.
struct MovedStore {
    engine: EngineStore,
    env: MemEnv,
    clock: Arc<Clock>,
}

impl TestStore for MovedStore {
    fn wait_built(&self) {
        self.engine.engine().wait_idle();
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Store for MovedStore {
    fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError> {
        self.engine.apply(mutations)
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        self.engine.read_partition(table, key, filter)
    }

    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        self.engine.read_range(table, range, filter)
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        self.engine.truncate(table)
    }

    /// The engine takes timestamps of its own; they must be after all earlier writes and before later ones.
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        self.clock.skip(CHANGE_MICROS);
        self.env.set_micros(self.clock.unique_micros());
        let applied = self.engine.alter_schema(change);
        self.clock.skip(CHANGE_MICROS);
        applied
    }

    fn lock_partitions(&self, partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        self.engine.lock_partitions(partitions)
    }

    fn partitioner(&self) -> Partitioner {
        self.engine.partitioner()
    }

    fn now_micros(&self) -> i64 {
        self.clock.now_micros()
    }

    fn unique_micros(&self) -> i64 {
        self.clock.unique_micros()
    }

    fn time_uuid(&self) -> Uuid {
        self.clock.time_uuid()
    }

    fn random_uuid(&self) -> Uuid {
        self.clock.random_uuid()
    }

    fn counter_cache(&self) -> Option<&CounterCache> {
        self.engine.counter_cache()
    }

    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        self.engine.survey_partition(table, key, filter)
    }

    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey> {
        self.engine.survey_range(table, range)
    }

    fn cluster(&self) -> ClusterFacts {
        self.engine.cluster()
    }

    fn index_classes(&self) -> IndexClasses {
        self.engine.index_classes()
    }

    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        self.engine.indexes_of(table)
    }

    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        self.engine.index_search(table, index, predicate)
    }

    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        self.engine.index_estimate(table, index, predicate)
    }

    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        self.engine.index_nearest(table, index, vector)
    }
}

/// An answer without the parts that differ between runs: timestamps of writes, and UUIDs made of them.
pub fn without_times(answer: &str) -> String {
    let words = answer.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let mut out = String::new();
    let mut is_fraction = false;
    for word in words {
        let is_time = word.starts_with("17000000") && word.len() > 12;
        let is_uuid = word.len() == 37 && word.matches('-').count() == 4;
        let is_millis = is_fraction && word.ends_with("Z'");
        out += if is_time || is_uuid || is_millis {
            "TIME "
        } else {
            word
        };
        is_fraction = word.ends_with('.');
    }
    out
}
