//! The cost of small reads while there are many SSTables: `small_reads DIR ROWS SSTABLES READS`.
//!
//! Writes small rows (a key of ten bytes, a value of forty) into SSTables, then reads rows by their keys (`read_points`) and two rows
//! behind a token (`read_ranges`). Count instructions with `valgrind --tool=callgrind --toggle-collect='*read_ranges*'`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::RealEnv;
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, KeyBound, KeyRange, Liveness,
    Mutation, PartitionUpdate, Row,
};
use ilion_schema::{CreateTable, NewColumn, Properties, PropertyValue, SchemaChange, TableSchema};
use ilion_types::{CqlType, Partitioner};

fn create(engine: &Engine) -> Arc<TableSchema> {
    let replication = [("class", "SimpleStrategy"), ("replication_factor", "1")];
    let keyspace = SchemaChange::CreateKeyspace {
        name: "ks".to_owned(),
        properties: [("replication", PropertyValue::from(replication))]
            .into_iter()
            .collect(),
        if_not_exists: true,
    };
    engine.alter_schema(&keyspace).unwrap();
    let column = |name: &str| NewColumn {
        name: name.to_owned(),
        ty: CqlType::Blob,
        is_static: false,
        mask: None,
    };
    let table = CreateTable {
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns: vec![column("k"), column("v")],
        partition_key: vec!["k".to_owned()],
        properties: Properties::default(),
        ..CreateTable::default()
    };
    engine
        .alter_schema(&SchemaChange::CreateTable(Box::new(table)))
        .unwrap();
    engine.schema().table("ks", "t").unwrap().clone()
}

fn key(row: u64) -> DecoratedKey {
    let text = format!("{:010x}", row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24);
    DecoratedKey::new(Partitioner::Murmur3, Bytes::from(text))
}

fn mutation(table: &Arc<TableSchema>, row: u64) -> Mutation {
    let value = Bytes::from(row.to_be_bytes().repeat(5));
    let columns = table.regulars().map(|column| ColumnData {
        column: column.id,
        data: Data::Simple(Cell::live(10, value.clone())),
    });
    let row_data = Row {
        liveness: Liveness::live(10),
        columns: columns.collect(),
        ..Row::empty(Clustering::empty())
    };
    Mutation {
        key: key(row),
        table: table.clone(),
        update: PartitionUpdate {
            rows: vec![row_data],
            ..PartitionUpdate::default()
        },
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap());
    let mut number = || arguments.next().unwrap().parse::<u64>().unwrap();
    let (rows, sstables, reads) = (number(), number(), number());
    let options = EngineOptions {
        is_compacting: false,
        ..EngineOptions::below(&directory)
    };
    let engine = Engine::open(RealEnv::new(), options).unwrap();
    let table = create(&engine);
    for part in 0..sstables {
        for row in (0..rows).filter(|row| row % sstables == part) {
            engine.apply(&[mutation(&table, row)]).unwrap();
        }
        engine.flush(table.id).unwrap();
    }
    let keys: Vec<DecoratedKey> = (0..reads)
        .map(|read| key(read.wrapping_mul(0x2545_F491) % rows))
        .collect();
    for _ in 0..2 {
        let started = Instant::now();
        read_points(&engine, &table, &keys);
        let points = started.elapsed().as_nanos() / u128::from(reads);
        let started = Instant::now();
        read_ranges(&engine, &table, &keys);
        let ranges = started.elapsed().as_nanos() / u128::from(reads);
        println!("{sstables} SSTables: {points} ns a point read, {ranges} ns a range read");
    }
}

#[inline(never)]
fn read_points(engine: &Engine, table: &Arc<TableSchema>, keys: &[DecoratedKey]) {
    let filter = ClusteringFilter::all();
    for key in keys {
        let mut cursor = engine.read_partition(table, key, &filter).unwrap();
        assert!(cursor.next_partition().unwrap().is_some());
        assert!(cursor.next_unfiltered().unwrap().is_some());
    }
}

#[inline(never)]
fn read_ranges(engine: &Engine, table: &Arc<TableSchema>, keys: &[DecoratedKey]) {
    let filter = ClusteringFilter::all();
    for key in keys {
        let range = KeyRange {
            start: KeyBound::AfterToken(key.token.clone()),
            end: KeyBound::End,
        };
        let mut cursor = engine.read_range(table, &range, &filter).unwrap();
        for _ in 0..2 {
            if cursor.next_partition().unwrap().is_some() {
                assert!(cursor.next_unfiltered().unwrap().is_some());
            }
        }
    }
}
