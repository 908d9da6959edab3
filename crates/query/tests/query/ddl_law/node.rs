//! A node on a disk in memory, which can be restarted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions, SSTableVersion};
use ilion_env::MemEnv;
use ilion_query::{ClientState, EngineStore, Error, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};
use ilion_rows::{Clustering, DecoratedKey, Liveness, Mutation, PartitionUpdate, Row};
use ilion_schema::describe::{Internals, describe_keyspace_elements};
use ilion_schema::{Schema, TableId, TableKind, TableSchema, is_system_keyspace};
use ilion_types::{CqlType, encode_composite};

use crate::store::cluster_facts;

/// Longer keys are refused.
const KEY_LEN_MAX: usize = 65_535;

/// The node and its disk.
pub(super) struct Node {
    env: MemEnv,
    options: EngineOptions,
    engine: Option<Arc<Engine>>,
    processor: Option<QueryProcessor>,
}

impl Node {
    pub(super) fn new(seed: u64) -> Self {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 1;
        options.is_compacting = false;
        options.commit_log.segment_bytes = 32 << 20;
        options.sstable_version =
            [SSTableVersion::NB, SSTableVersion::DA, SSTableVersion::OA][usize::try_from(seed % 3).unwrap()];
        let mut node = Self {
            env: MemEnv::new(seed),
            options,
            engine: None,
            processor: None,
        };
        node.open().unwrap();
        node
    }

    fn open(&mut self) -> Result<(), String> {
        let opened = Engine::open(self.env.shared(), self.options.clone());
        let engine = Arc::new(opened.map_err(|error| format!("the start failed: {error}"))?);
        let set_aside = engine.set_aside();
        if !set_aside.is_empty() {
            return Err(format!("a start could not open all of it: {set_aside:?}"));
        }
        let store = Arc::new(EngineStore::new(engine.clone(), cluster_facts()));
        self.processor = Some(QueryProcessor::new(store, QueryOptions::default()));
        self.engine = Some(engine);
        Ok(())
    }

    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.processor = None;
        self.engine = None;
        self.open()
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    pub(super) fn schema(&self) -> Arc<Schema> {
        self.engine().schema()
    }

    /// The reason for which the node has stopped writes for good, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        self.engine().failure()
    }

    pub(super) fn execute(&self, cql: &str) -> Result<Outcome, Error> {
        let processor = self.processor.as_ref().unwrap();
        let executed = processor.query(&mut ClientState::default(), cql, &ExecuteOptions::default());
        processor.wait_for_views();
        executed.map(|executed| executed.outcome)
    }

    /// Writes a row to each of these tables, so that they have data to flush.
    pub(super) fn fill(&self, wanted: &BTreeSet<TableId>) {
        let engine = self.engine();
        for keyspace in engine.schema().keyspaces.values() {
            let tables = keyspace.tables.values();
            for table in tables.filter(|table| table.kind == TableKind::Regular) {
                if !wanted.contains(&table.id) {
                    continue;
                }
                let Some(key) = key_of(table) else {
                    continue;
                };
                let absent = table.clustering().map(|_| Bytes::new()).collect::<Vec<_>>();
                let row = Row {
                    liveness: Liveness::live(1),
                    ..Row::empty(Clustering::of(absent))
                };
                let update = PartitionUpdate {
                    rows: vec![row],
                    ..PartitionUpdate::default()
                };
                let key = DecoratedKey::new(engine.partitioner(), key);
                let table = table.clone();
                engine.apply(&[Mutation { key, table, update }]).unwrap();
            }
        }
    }

    pub(super) fn flush(&self) -> Result<(), String> {
        let flushed = self.engine().flush_all();
        flushed.map_err(|error| format!("a flush failed: {error}"))
    }
}

/// A partition key that a client could write; `None` for types without an example here.
fn key_of(table: &TableSchema) -> Option<Bytes> {
    let values: Vec<Vec<u8>> = table
        .partition_key()
        .map(|column| a_value(&column.ty))
        .collect::<Option<_>>()?;
    let key = match values.as_slice() {
        [only] => only.clone(),
        several => {
            let mut key = Vec::new();
            encode_composite(several.iter().map(Vec::as_slice), &mut key).ok()?;
            key
        }
    };
    (1..=KEY_LEN_MAX).contains(&key.len()).then(|| key.into())
}

fn a_value(ty: &CqlType) -> Option<Vec<u8>> {
    let lengths = [ty.fixed_len().unwrap_or(1), 1, 2, 4, 8, 16];
    let zeros = lengths.map(|len| vec![0; len.min(1 << 20)]);
    zeros.into_iter().find(|value| ty.validate(value).is_ok())
}

/// Everything that a client can read about the schema.
pub(super) fn description(schema: &Schema) -> Vec<String> {
    let users = schema
        .keyspaces
        .values()
        .filter(|keyspace| !is_system_keyspace(&keyspace.name));
    let described = users.flat_map(|keyspace| describe_keyspace_elements(keyspace, Internals::Shown));
    described.map(|element| element.create_statement).collect()
}

pub(super) fn stored(schema: &Schema) -> (ilion_types::Uuid, Vec<String>) {
    (schema.version, description(schema))
}
