//! An engine over a disk in memory, with a table `ks.t (k text, c int, s text static, v text, primary key (k, c))`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions, Result};
use ilion_env::{Env, FaultEnv, MemEnv};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey,
    DeletionTime, KeyRange, Liveness, Mutation, PartitionUpdate, RangeTombstone, ReadLaw, ReadPurge, Row,
    Slice, Unfiltered, Values,
};
use ilion_schema::{
    CreateTable, DropObject, NewColumn, Properties, PropertyValue, SchemaChange, TableAlteration, TableSchema,
};
use ilion_types::CqlType;

/// Clustering and value of each row of each partition.
pub type Contents = BTreeMap<String, BTreeMap<i32, String>>;

pub struct Store {
    pub env: MemEnv,
    pub engine: Engine,
}

pub fn small_options() -> EngineOptions {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.memtable_shards = 2;
    options.is_compacting = false;
    options.compaction_bytes_per_sec = None;
    options.commit_log.segment_bytes = 256 << 10;
    options
}

pub fn open(env: &MemEnv, options: EngineOptions) -> Result<Store> {
    let engine = Engine::open(env.shared(), options)?;
    Ok(Store {
        env: env.clone(),
        engine,
    })
}

/// A store whose disk can be made to fail.
fn open_faulty(env: &MemEnv, options: EngineOptions) -> (Store, Arc<FaultEnv>) {
    let faults = FaultEnv::new(env.shared());
    let engine = Engine::open(faults.clone(), options).unwrap();
    let env = env.clone();
    (Store { env, engine }, faults)
}

/// A new one with the table.
pub fn new_faulty_store(seed: u64, options: EngineOptions) -> (Store, Arc<FaultEnv>) {
    let (store, faults) = open_faulty(&MemEnv::new(seed), options);
    store.alter(&create_keyspace("ks"));
    store.alter(&create_table("ks", "t"));
    (store, faults)
}

/// A new store with the table.
pub fn new_store(seed: u64, options: EngineOptions) -> Store {
    let store = open(&MemEnv::new(seed), options).unwrap();
    store.alter(&create_keyspace("ks"));
    store.alter(&create_table("ks", "t"));
    store
}

pub fn create_keyspace(name: &str) -> SchemaChange {
    let replication = [("class", "SimpleStrategy"), ("replication_factor", "1")];
    SchemaChange::CreateKeyspace {
        name: name.to_owned(),
        properties: [("replication", PropertyValue::from(replication))]
            .into_iter()
            .collect(),
        if_not_exists: false,
    }
}

pub fn create_table(keyspace: &str, name: &str) -> SchemaChange {
    let column = |name: &str, ty, is_static| NewColumn {
        name: name.to_owned(),
        ty,
        is_static,
        mask: None,
    };
    SchemaChange::CreateTable(Box::new(CreateTable {
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        columns: vec![
            column("k", CqlType::Text, false),
            column("c", CqlType::Int, false),
            column("s", CqlType::Text, true),
            column("v", CqlType::Text, false),
        ],
        partition_key: vec!["k".to_owned()],
        clustering: vec!["c".to_owned()],
        properties: Properties::from_iter([(
            "caching",
            PropertyValue::from([("keys", "ALL"), ("rows_per_partition", "4")]),
        )]),
        ..CreateTable::default()
    }))
}

/// Gives the table other compaction options, class first.
pub fn compact_with(options: &[(&str, &str)]) -> SchemaChange {
    alter_with("compaction", options)
}

/// Gives the table another value of an option that is a map.
pub fn alter_with(option: &'static str, options: &[(&str, &str)]) -> SchemaChange {
    SchemaChange::AlterTable {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        if_exists: false,
        alteration: TableAlteration::Options(
            [(
                option,
                PropertyValue::Map(
                    options
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                        .collect(),
                ),
            )]
            .into_iter()
            .collect(),
        ),
    }
}

pub fn drop_table(keyspace: &str, name: &str) -> SchemaChange {
    SchemaChange::DropTable(DropObject {
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        if_exists: false,
    })
}

pub fn add_column(name: &str) -> SchemaChange {
    let column = NewColumn {
        name: name.to_owned(),
        ty: CqlType::Text,
        is_static: false,
        mask: None,
    };
    SchemaChange::AlterTable {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        if_exists: false,
        alteration: TableAlteration::AddColumns {
            columns: vec![column],
            if_not_exists: false,
        },
    }
}

impl Store {
    pub fn alter(&self, change: &SchemaChange) {
        self.engine.alter_schema(change).unwrap().unwrap();
    }

    pub fn table(&self) -> Arc<TableSchema> {
        self.table_named("t")
    }

    pub fn table_named(&self, name: &str) -> Arc<TableSchema> {
        self.engine.schema().table("ks", name).unwrap().clone()
    }

    pub fn has_table(&self, name: &str) -> bool {
        self.engine.schema().table("ks", name).is_some()
    }

    /// Another table like `ks.t`.
    pub fn add_table(&self, name: &str) -> Arc<TableSchema> {
        self.alter(&create_table("ks", name));
        self.table_named(name)
    }

    /// Where the files of the table are.
    pub fn directory(&self) -> PathBuf {
        let id = self.table().id;
        let stores = self.engine.tables();
        let store = stores.iter().find(|store| store.schema().id == id).unwrap();
        store.directory().to_path_buf()
    }

    /// The disk that a process leaves that ends in order.
    pub fn close(self) -> MemEnv {
        let Self { env, engine } = self;
        drop(engine);
        env
    }

    /// Opened anew with everything in SSTables, and with empty caches.
    pub fn cold(self) -> Store {
        self.engine.drain().unwrap();
        self.restart(small_options())
    }

    /// A disk with everything that the process had written, opened anew.
    pub fn restart(self, options: EngineOptions) -> Store {
        open(&self.close(), options).unwrap()
    }

    pub fn put(&self, key: &str, clustering: i32, value: &str, timestamp_micros: i64) {
        let mutation = put(&self.table(), key, clustering, value, timestamp_micros);
        self.write(mutation);
    }

    /// Applies without waiting for the log.
    pub fn write_without_waiting(&self, key: &str, clustering: i32, value: &str, timestamp_micros: i64) {
        let mutation = put(&self.table(), key, clustering, value, timestamp_micros);
        self.engine.apply(&[mutation]).unwrap();
    }

    /// Applies and waits as an answer to a client would.
    pub fn write(&self, mutation: Mutation) {
        let position = self.engine.apply(&[mutation]).unwrap();
        self.engine.wait_durable(position.unwrap()).unwrap();
    }

    pub fn flush(&self) {
        self.engine.flush(self.table().id).unwrap();
    }

    pub fn facts(&self) -> ilion_engine::TableFacts {
        let facts = self.engine.table_facts().into_iter();
        let mut of_table = facts.filter(|facts| facts.keyspace == "ks" && facts.table == "t");
        of_table.next().unwrap()
    }

    /// Names of the Data.db files of the table.
    pub fn files(&self) -> Vec<String> {
        let entries = self.env.list(&self.directory()).unwrap();
        let names = entries.into_iter().map(|entry| entry.name);
        names.filter(|name| name.ends_with("Data.db")).collect()
    }

    pub fn sstables(&self) -> u64 {
        self.facts().sstables
    }

    /// One partition by key.
    pub fn partition(&self, key: &str, reversed: bool) -> Vec<(i32, String)> {
        let filter = ClusteringFilter {
            reversed,
            ..ClusteringFilter::all()
        };
        self.rows(key, &filter)
    }

    /// The value of one row by its whole key.
    pub fn row(&self, key: &str, clustering: i32) -> Option<String> {
        let filter = ClusteringFilter {
            slices: vec![Slice::exactly(&clustering_of(clustering))],
            columns: Some([self.table().column_named("v").unwrap().id].into()),
            ..ClusteringFilter::all()
        };
        let rows = self.rows(key, &filter);
        assert!(rows.len() <= 1, "{rows:?}");
        rows.into_iter().next().map(|(_, value)| value)
    }

    /// What a filter leaves of one partition.
    pub fn rows(&self, key: &str, filter: &ClusteringFilter) -> Vec<(i32, String)> {
        self.filtered(&self.table(), key, filter)
    }

    /// All rows of one partition of a table.
    pub fn rows_of(&self, table: &Arc<TableSchema>, key: &str) -> Vec<(i32, String)> {
        self.filtered(table, key, &ClusteringFilter::all())
    }

    fn filtered(&self, table: &Arc<TableSchema>, key: &str, filter: &ClusteringFilter) -> Vec<(i32, String)> {
        let cursor = self
            .engine
            .read_partition(table, &decorated(key), filter)
            .unwrap();
        let mut purged = ReadPurge::new(cursor, table.clone(), self.law());
        let mut rows = Vec::new();
        if purged.next_partition().unwrap().is_some() {
            while let Some(unfiltered) = purged.next_unfiltered().unwrap() {
                rows.extend(row_of(table, unfiltered));
            }
            assert!(purged.next_partition().unwrap().is_none());
        }
        rows
    }

    /// The whole table by a scan.
    pub fn contents(&self) -> Contents {
        let table = self.table();
        let cursor = self
            .engine
            .read_range(&table, &KeyRange::all(), &ClusteringFilter::all())
            .unwrap();
        let mut purged = ReadPurge::new(cursor, table.clone(), self.law());
        let mut contents = Contents::new();
        while let Some(head) = purged.next_partition().unwrap() {
            let key = String::from_utf8(head.key.key.to_vec()).unwrap();
            let mut rows = BTreeMap::new();
            while let Some(unfiltered) = purged.next_unfiltered().unwrap() {
                rows.extend(row_of(&table, unfiltered));
            }
            if !rows.is_empty() {
                contents.insert(key, rows);
            }
        }
        contents
    }

    fn law(&self) -> ReadLaw {
        ReadLaw::without_limits(u32::try_from(self.env.now_secs()).unwrap())
    }
}

fn row_of(table: &TableSchema, unfiltered: Unfiltered) -> Option<(i32, String)> {
    let Unfiltered::Row(row) = unfiltered else {
        return None;
    };
    let clustering = row.clustering.values()[0].clone().unwrap();
    let clustering = i32::from_be_bytes(clustering[..].try_into().unwrap());
    let value = match row.column(table.column_named("v").unwrap().id) {
        Some(Data::Simple(cell)) => String::from_utf8(cell.value.to_vec()).unwrap(),
        _ => "null".to_owned(),
    };
    Some((clustering, value))
}

pub fn decorated(key: &str) -> DecoratedKey {
    DecoratedKey::new(ilion_types::Partitioner::Murmur3, Bytes::from(key.to_owned()))
}

pub fn clustering_of(clustering: i32) -> Clustering {
    Clustering::of([Bytes::copy_from_slice(&clustering.to_be_bytes())])
}

fn mutation(table: &Arc<TableSchema>, key: &str, update: PartitionUpdate) -> Mutation {
    Mutation {
        table: table.clone(),
        key: decorated(key),
        update,
    }
}

pub fn put(
    table: &Arc<TableSchema>,
    key: &str,
    clustering: i32,
    value: &str,
    timestamp_micros: i64,
) -> Mutation {
    let row = Row {
        liveness: Liveness::live(timestamp_micros),
        columns: vec![ColumnData {
            column: table.column_named("v").unwrap().id,
            data: Data::Simple(Cell::live(timestamp_micros, Bytes::from(value.to_owned()))),
        }],
        ..Row::empty(clustering_of(clustering))
    };
    mutation(
        table,
        key,
        PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    )
}

pub fn deletion(timestamp_micros: i64) -> DeletionTime {
    DeletionTime::new(timestamp_micros, 1_700_000_000)
}

pub fn delete_row(table: &Arc<TableSchema>, key: &str, clustering: i32, timestamp_micros: i64) -> Mutation {
    let row = Row {
        deletion: deletion(timestamp_micros),
        ..Row::empty(clustering_of(clustering))
    };
    mutation(
        table,
        key,
        PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    )
}

pub fn delete_partition(table: &Arc<TableSchema>, key: &str, timestamp_micros: i64) -> Mutation {
    mutation(
        table,
        key,
        PartitionUpdate {
            deletion: Some(deletion(timestamp_micros)),
            ..PartitionUpdate::default()
        },
    )
}

/// Deletes the rows from `start` to `end`, both included.
pub fn delete_range(
    table: &Arc<TableSchema>,
    key: &str,
    start: i32,
    end: i32,
    timestamp_micros: i64,
) -> Mutation {
    let bound = |kind, clustering: i32| {
        Bound::new(
            kind,
            Values::from_iter(clustering_of(clustering).values().clone()),
        )
    };
    let range = RangeTombstone {
        start: bound(BoundKind::InclStart, start),
        end: bound(BoundKind::InclEnd, end),
        deletion: deletion(timestamp_micros),
    };
    mutation(
        table,
        key,
        PartitionUpdate {
            ranges: vec![range],
            ..PartitionUpdate::default()
        },
    )
}
