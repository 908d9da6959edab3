//! A store in memory: one memtable per table, `system_schema` in the engine's form, a clock that only the test moves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::OpenIndex;
use ilion_index::{Candidates, Definition, Estimate, IndexClasses, Predicate, Ranked, SecondaryIndex};
use ilion_memtable::Memtable;
use ilion_query::{ClusterFacts, LogPosition, PartitionGuard, Store, StoreError};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, Direction,
    KeyRange, Liveness, MergeCursor, Mutation, PartitionUpdate, Row,
};
use ilion_schema::{Applied, RowChange, Schema, SchemaChange, SchemaRow, TableId, TableSchema, row_changes};
use ilion_types::{Partitioner, Uuid};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::indexes;

/// A store with the test's clock.
pub trait TestStore: Store {
    fn clock(&self) -> &Clock;

    /// Blocks until no index is being built.
    fn wait_built(&self) {}
}

pub struct MemoryStore {
    schema: Mutex<Arc<Schema>>,
    tables: Mutex<HashMap<TableId, Arc<Memtable>>>,
    clock: Clock,
    turn: Mutex<()>,
    /// Indexes that are not built yet.
    building: Mutex<HashSet<String>>,
}

impl MemoryStore {
    pub fn new() -> Self {
        let store = Self {
            schema: Mutex::new(Arc::new(Schema::with_system())),
            ..Self::empty()
        };
        store.write_schema(&Schema::default(), &store.schema());
        store
    }

    /// Without keyspaces, even the server's.
    pub fn empty() -> Self {
        Self {
            schema: Mutex::default(),
            tables: Mutex::default(),
            clock: Clock::new(),
            turn: Mutex::new(()),
            building: Mutex::default(),
        }
    }

    /// Sets whether an index is built.
    pub fn set_built(&self, index: &str, is_built: bool) {
        let mut building = self.building.lock();
        match is_built {
            true => building.remove(index),
            false => building.insert(index.to_owned()),
        };
    }

    fn index(&self, table: &TableSchema, name: &str) -> Arc<dyn SecondaryIndex> {
        let mut open = self.indexes_of(table.id).into_iter().map(|open| open.index);
        open.find(|index| index.definition().schema.name == name).unwrap()
    }

    fn scan(&self, table: &Arc<TableSchema>) -> Box<dyn Cursor> {
        self.read_range(table, &KeyRange::all(), &ClusteringFilter::all())
            .unwrap()
    }

    fn memtable(&self, table: &Arc<TableSchema>) -> Arc<Memtable> {
        let mut tables = self.tables.lock();
        let memtable = tables.entry(table.id);
        memtable
            .or_insert_with(|| Arc::new(Memtable::new(table.clone(), 4)))
            .clone()
    }

    fn write_schema(&self, old: &Schema, new: &Schema) {
        let timestamp = self.unique_micros();
        for change in row_changes(old, new) {
            let mutation = schema_mutation(new, &change, timestamp);
            self.memtable(&mutation.table).apply(&mutation);
        }
    }
}

fn schema_mutation(schema: &Schema, change: &RowChange, timestamp: i64) -> Mutation {
    let secs = u32::try_from(timestamp / 1_000_000).unwrap();
    let deletion = DeletionTime::new(timestamp, secs);
    let (table, keyspace) = match change {
        RowChange::Put(row) => (row.table, &row.keyspace),
        RowChange::Delete { table, keyspace, .. } | RowChange::DeletePartition { table, keyspace } => {
            (*table, keyspace)
        }
    };
    let table = schema.table("system_schema", table).unwrap().clone();
    let mut update = PartitionUpdate::default();
    match change {
        RowChange::Put(row) => update.rows.push(schema_row(&table, row, deletion)),
        RowChange::Delete { clustering, .. } => update.rows.push(Row {
            deletion,
            ..Row::empty(Clustering::of(clustering.iter().cloned()))
        }),
        RowChange::DeletePartition { .. } => update.deletion = Some(deletion),
    }
    let key = DecoratedKey::new(
        table.partitioner(Partitioner::Murmur3),
        Bytes::from(keyspace.clone().into_bytes()),
    );
    Mutation { table, key, update }
}

fn schema_row(table: &TableSchema, row: &SchemaRow, deletion: DeletionTime) -> Row {
    let timestamp = deletion.marked_at_micros;
    let cells = row.cells.iter().map(|(name, value)| ColumnData {
        column: table.column_named(name).unwrap().id,
        data: Data::Simple(match value {
            Some(value) => Cell::live(timestamp, value.clone()),
            None => Cell::tombstone(timestamp, deletion.local_secs),
        }),
    });
    let mut columns: Vec<ColumnData> = cells.collect();
    columns.sort_by_key(|entry| entry.column);
    Row {
        liveness: Liveness::live(timestamp),
        columns,
        ..Row::empty(Clustering::of(row.clustering.iter().cloned()))
    }
}

fn merged(
    sources: Vec<Box<dyn Cursor>>,
    table: &Arc<TableSchema>,
    filter: &ClusteringFilter,
) -> Box<dyn Cursor> {
    let direction = Direction::of(filter.reversed);
    Box::new(MergeCursor::new(sources, table.clone(), direction))
}

impl Store for MemoryStore {
    fn schema(&self) -> Arc<Schema> {
        self.schema.lock().clone()
    }

    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<LogPosition>, StoreError> {
        for mutation in &mutations {
            for open in self.indexes_of(mutation.table.id) {
                let checked = open.index.check(mutation);
                checked.map_err(|refused| StoreError::Invalid(refused.to_string()))?;
            }
        }
        for mutation in &mutations {
            self.memtable(&mutation.table).apply(mutation);
        }
        Ok(None)
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        let partition = self.memtable(table).partition(key, &Arc::new(filter.clone()));
        let sources = partition.map(|cursor| Box::new(cursor) as Box<dyn Cursor>);
        Ok(merged(sources.into_iter().collect(), table, filter))
    }

    fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        let cursor = self
            .memtable(table)
            .cursor(range.clone(), Arc::new(filter.clone()));
        Ok(merged(vec![Box::new(cursor)], table, filter))
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        self.tables.lock().remove(&table);
        Ok(())
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        let old = self.schema();
        let applied = old.apply(change, self.unique_micros())?;
        if applied.diffs.is_empty() {
            return Ok(None);
        }
        self.write_schema(&old, &applied.schema);
        *self.schema.lock() = Arc::new(applied.schema.clone());
        Ok(Some(applied))
    }

    fn lock_partitions(&self, _partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        Box::new(self.turn.lock())
    }

    fn partitioner(&self) -> Partitioner {
        Partitioner::Murmur3
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

    fn cluster(&self) -> ClusterFacts {
        cluster_facts()
    }

    fn index_classes(&self) -> IndexClasses {
        IndexClasses::own()
    }

    fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        let schema = self.schema();
        let mut open = Vec::new();
        for keyspace in schema.keyspaces.values() {
            let Some(table) = keyspace.tables.values().find(|known| known.id == table) else {
                continue;
            };
            for index in keyspace.indexes_of(&table.name) {
                let definition = Definition::of(index, table).unwrap();
                let class = self.index_classes().of(index).unwrap().clone();
                open.push(OpenIndex {
                    index: class.open(definition).unwrap(),
                    sstables: u64::MAX,
                    is_built: !self.building.lock().contains(&index.name),
                });
            }
        }
        open
    }

    fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>, StoreError> {
        let index = self.index(table, index);
        Ok(indexes::search(&*index, predicate, &mut *self.scan(table)))
    }

    fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate, StoreError> {
        let index = self.index(table, index);
        Ok(indexes::estimate(&*index, predicate, &mut *self.scan(table)))
    }

    fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>, StoreError> {
        let index = self.index(table, index);
        Ok(indexes::nearest(&*index, vector, &mut *self.scan(table)))
    }
}

impl TestStore for MemoryStore {
    fn clock(&self) -> &Clock {
        &self.clock
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
