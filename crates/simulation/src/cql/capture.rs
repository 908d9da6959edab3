//! [`CaptureStore`]: a node's storage whose writes become records of logs.
//!
//! A coordinator executes a statement on it. Nothing is written: what would be is taken by [`CaptureStore::take`] and sent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ilion_cluster::Tablets;
use ilion_commitlog::Kind;
use ilion_engine::{CounterCache, Engine, OpenIndex, ReadSurvey};
use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked};
use ilion_query::{
    ClusterFacts, Command, Commands, EngineStore, Error, Executed, LogPosition, Outcome, PartitionGuard,
    Reason, Store, StoreError,
};
use ilion_rows::counter::CounterId;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation, encode_mutation};
use ilion_schema::{Applied, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::{Partitioner, Token};
use parking_lot::Mutex;
use uuid::Uuid;

/// A record to send.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    pub tablet: u32,
    pub kind: Kind,
    pub body: Vec<u8>,
}

/// Storage for a coordinator.
pub(super) struct CaptureStore {
    inner: EngineStore,
    tablets: Tablets,
    captured: Mutex<Vec<Captured>>,
    /// A change of the schema was checked.
    is_altering: AtomicBool,
    /// Changes of the schema are made here, since there is no cluster yet.
    is_alone: AtomicBool,
}

impl CaptureStore {
    pub fn new(engine: Arc<Engine>, tablets: Tablets) -> Self {
        let facts = ClusterFacts {
            name: "simulated".to_owned(),
            snitch: "SimpleSnitch".to_owned(),
            ranges: Vec::new(),
        };
        Self {
            inner: EngineStore::new(engine, facts),
            tablets,
            captured: Mutex::default(),
            is_altering: AtomicBool::new(false),
            is_alone: AtomicBool::new(true),
        }
    }

    /// What was captured since the last call.
    pub fn take(&self) -> Vec<Captured> {
        std::mem::take(&mut self.captured.lock())
    }

    /// From now on, the schema is changed by the meta log.
    pub fn begin_cluster(&self) {
        self.is_alone.store(false, Relaxed);
    }

    /// Whether a change of the schema was found possible since the last call.
    pub fn take_alteration(&self) -> bool {
        self.is_altering.swap(false, Relaxed)
    }

    pub fn tablet_of_token(&self, token: &Token) -> u32 {
        match token {
            Token::Murmur3(token) => self.tablets.of(*token),
            _ => 0,
        }
    }

    fn tablet_of(&self, key: &DecoratedKey) -> u32 {
        self.tablet_of_token(&key.token)
    }

    fn capture(&self, mutations: &[Mutation]) {
        let mut captured = self.captured.lock();
        for tablet in 0..self.tablets.count() {
            let of_tablet = mutations
                .iter()
                .filter(|mutation| self.tablet_of(&mutation.key) == tablet);
            let (mut body, mut count) = (Vec::new(), 0);
            for mutation in of_tablet {
                encode_mutation(mutation, &mut body);
                count += 1;
            }
            let kind = match count {
                0 => continue,
                1 => Kind::Mutation,
                _ => Kind::Batch,
            };
            captured.push(Captured { tablet, kind, body });
        }
    }
}

impl Commands for CaptureStore {
    fn execute(
        &self,
        command: &Command,
        reason: Reason,
        partitions: &[DecoratedKey],
    ) -> Result<Executed, Error> {
        let mut tablets: Vec<u32> = partitions.iter().map(|key| self.tablet_of(key)).collect();
        tablets.sort_unstable();
        tablets.dedup();
        let kind = match reason {
            Reason::Decides => Kind::Cas,
            Reason::Counts => Kind::Counter,
        };
        let body = command.encode();
        let captured = tablets.into_iter().map(|tablet| Captured {
            tablet,
            kind,
            body: body.clone(),
        });
        self.captured.lock().extend(captured);
        Ok(Executed::of(Outcome::Void))
    }
}

impl Store for CaptureStore {
    fn schema(&self) -> Arc<Schema> {
        self.inner.schema()
    }

    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError> {
        self.capture(&mutations);
        Ok(None)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError> {
        self.apply(mutations)
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        self.inner.read_partition(table, key, filter)
    }

    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        self.inner.read_range(table, range, filter)
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        self.inner.truncate(table)
    }

    fn is_clearable(&self, table: TableId) -> bool {
        self.inner.is_clearable(table)
    }

    fn is_settable(&self, table: TableId) -> bool {
        self.inner.is_settable(table)
    }

    fn set_virtual(&self, mutation: &Mutation) -> Result<(), StoreError> {
        self.inner.set_virtual(mutation)
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        if self.is_alone.load(Relaxed) {
            return self.inner.alter_schema(change);
        }
        let applied = self.schema().apply(change, self.now_micros())?;
        self.is_altering.store(!applied.diffs.is_empty(), Relaxed);
        Ok(None)
    }

    fn lock_partitions(&self, _partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        Box::new(())
    }

    fn commands(&self) -> Option<&dyn Commands> {
        Some(self)
    }

    fn partitioner(&self) -> Partitioner {
        self.inner.partitioner()
    }

    fn now_micros(&self) -> i64 {
        self.inner.now_micros()
    }

    fn unique_micros(&self) -> i64 {
        self.inner.unique_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.inner.monotonic_nanos()
    }

    fn time_uuid(&self) -> Uuid {
        self.inner.time_uuid()
    }

    fn random_uuid(&self) -> Uuid {
        self.inner.random_uuid()
    }

    fn counter_id(&self) -> CounterId {
        self.inner.counter_id()
    }

    fn counter_cache(&self) -> Option<&CounterCache> {
        self.inner.counter_cache()
    }

    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        self.inner.survey_partition(table, key, filter)
    }

    fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Option<ReadSurvey> {
        self.inner.survey_range(table, range)
    }

    fn cluster(&self) -> ClusterFacts {
        self.inner.cluster()
    }

    fn index_classes(&self) -> IndexClasses {
        self.inner.index_classes()
    }

    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        self.inner.indexes_of(table)
    }

    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
        range: &KeyRange,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        self.inner.index_search(table, index, predicate, range)
    }

    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        self.inner.index_estimate(table, index, predicate)
    }

    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        self.inner.index_nearest(table, index, vector)
    }
}
