//! [`CaptureStore`]: a node's storage whose writes become records of logs.
//!
//! A coordinator executes a statement on it. It writes nothing: [`CaptureStore::take`] returns the writes, and the caller sends them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ilion_cluster::Tablets;
use ilion_commitlog::Kind;
use ilion_engine::Engine;
use ilion_query::{
    Awaited, ClusterFacts, Command, Commands, EngineStore, Error, Executed, Outcome, PartitionGuard, Reason,
    Store, StoreError,
};
use ilion_rows::{DecoratedKey, Mutation, encode_mutation};
use ilion_schema::{Applied, SchemaChange, TableId};
use ilion_types::Token;
use parking_lot::Mutex;

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
    /// A change of the schema that is possible.
    altering: Mutex<Option<SchemaChange>>,
    /// True while there is no cluster yet: changes of the schema are made here.
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
            altering: Mutex::default(),
            is_alone: AtomicBool::new(true),
        }
    }

    /// The records that were captured since the last call.
    pub fn take(&self) -> Vec<Captured> {
        std::mem::take(&mut self.captured.lock())
    }

    /// From now on, the schema is changed by the meta log.
    pub fn begin_cluster(&self) {
        self.is_alone.store(false, Relaxed);
    }

    /// A change of the schema that was found possible since the last call.
    pub fn take_alteration(&self) -> Option<SchemaChange> {
        self.altering.lock().take()
    }

    pub fn tablet_of_token(&self, token: &Token) -> u32 {
        token.murmur3().map_or(0, |token| self.tablets.of(token))
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
        let kind = Kind::from(reason);
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
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.capture(&mutations);
        Ok(None)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.apply(mutations)
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        if self.is_alone.load(Relaxed) {
            return self.inner.alter_schema(change);
        }
        let applied = self.schema().apply(change, self.now_micros())?;
        let mut change = change.clone();
        change.give_id(|| TableId(self.time_uuid()));
        *self.altering.lock() = (!applied.diffs.is_empty()).then_some(change);
        Ok(None)
    }

    fn lock_partitions(&self, _partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        Box::new(())
    }

    fn commands(&self) -> Option<&dyn Commands> {
        Some(self)
    }

    ilion_query::store_methods!(forward [inner]: schema read_partition read_range truncate is_clearable is_settable set_virtual partitioner now_micros unique_micros monotonic_nanos time_uuid random_uuid counter_id counter_cache survey_partition survey_range cluster index_classes indexes_of index_search index_estimate index_nearest);
}
