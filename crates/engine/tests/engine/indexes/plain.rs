//! Indexes of a table of one row a partition, whose rows and entries are flushed and compacted where they lie.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{Engine, IndexRepair};
use ilion_env::MemEnv;
use ilion_index::Predicate;
use ilion_rows::random::Dice;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, DeletionTime, Liveness, Mutation, PartitionUpdate, Row,
};
use ilion_schema::{
    CreateIndex, CreateTable, IndexPart, IndexTarget, NewColumn, Properties, SchemaChange, TableSchema,
};
use ilion_types::{CqlType, Partitioner};

use super::table::int;
use crate::support::{create_keyspace, small_options};

const KEYS: usize = 60;
const VALUES: i32 = 9;
const INDEXES: [&str; 2] = ["by_v", "sai_v"];

/// `(k int PRIMARY KEY, a int, v int)` with an index of either kind on `v`.
fn open(seed: u64) -> Engine {
    let engine = Engine::open(MemEnv::new(seed).shared(), small_options()).unwrap();
    let column = |name: &str| NewColumn {
        name: name.to_owned(),
        ty: CqlType::Int,
        is_static: false,
        mask: None,
    };
    let create = CreateTable {
        keyspace: "ks".to_owned(),
        name: "plain".to_owned(),
        columns: ["k", "a", "v"].map(column).into(),
        partition_key: vec!["k".to_owned()],
        ..CreateTable::default()
    };
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    engine
        .alter_schema(&SchemaChange::CreateTable(Box::new(create)))
        .unwrap();
    for name in INDEXES {
        let is_attached = name.starts_with("sai_");
        let create = CreateIndex {
            keyspace: "ks".to_owned(),
            table: "plain".to_owned(),
            name: Some(name.to_owned()),
            if_not_exists: false,
            is_custom: is_attached,
            class: is_attached.then(|| "sai".to_owned()),
            targets: vec![IndexTarget {
                column: "v".to_owned(),
                part: IndexPart::Simple,
            }],
            properties: Properties::default(),
        };
        engine
            .alter_schema(&SchemaChange::CreateIndex(Box::new(create)))
            .unwrap();
    }
    engine
}

fn key(number: usize) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, int(number as i32))
}

/// A row with some of its columns, or a deletion.
fn write(
    engine: &Engine,
    table: &Arc<TableSchema>,
    model: &mut [Option<i32>],
    timestamp: i64,
    dice: &mut Dice,
) {
    let number = dice.below(KEYS);
    let mut update = PartitionUpdate::default();
    if dice.one_in(15) {
        update.deletion = Some(DeletionTime::new(timestamp, 1));
        model[number] = None;
    } else {
        let mut row = Row {
            liveness: Liveness::live(timestamp),
            ..Row::empty(Clustering::empty())
        };
        let mut set = |name: &str, value: i32| {
            let column = table.column_named(name).unwrap().id;
            let data = Data::Simple(Cell::live(timestamp, int(value)));
            row.columns.push(ColumnData { column, data });
        };
        set("a", 1);
        if !dice.one_in(4) {
            let value = dice.below(VALUES as usize) as i32;
            set("v", value);
            model[number] = Some(value);
        }
        row.columns.sort_by_key(|entry| entry.column);
        update.rows.push(row);
    }
    let mutation = Mutation {
        table: table.clone(),
        key: key(number),
        update,
    };
    engine.apply(&[mutation]).unwrap();
}

/// The keys that an index gives for a value.
fn candidates(engine: &Engine, table: &Arc<TableSchema>, index: &str, value: i32) -> BTreeSet<Bytes> {
    let equal = Predicate::Equal(int(value));
    let mut candidates = engine.index_search(table, index, &equal).unwrap();
    std::iter::from_fn(|| candidates.next().unwrap())
        .map(|candidate| candidate.place.key.key)
        .collect()
}

#[test]
fn flushed_and_compacted_where_they_lie_they_have_what_the_table_has() {
    for seed in 0..12 {
        let engine = open(seed);
        let table = engine.schema().table("ks", "plain").unwrap().clone();
        let mut dice = Dice::new(seed);
        let mut model = vec![None; KEYS];
        for round in 0..8 {
            for step in 0..dice.below(150) {
                let timestamp = (round * 1000 + step + 1) as i64;
                write(&engine, &table, &mut model, timestamp, &mut dice);
            }
            match dice.below(4) {
                0 => {}
                1 => engine.compact(table.id).unwrap(),
                _ => engine.flush(table.id).unwrap(),
            }
            for index in INDEXES {
                let found = engine.verify_index(&table, index, IndexRepair::None).unwrap();
                assert_eq!(found.missing, 0, "seed {seed}, round {round}: {index}");
                for value in 0..VALUES {
                    let with_value = model
                        .iter()
                        .enumerate()
                        .filter(|(_, known)| **known == Some(value));
                    let expected: BTreeSet<Bytes> = with_value.map(|(number, _)| key(number).key).collect();
                    let given = candidates(&engine, &table, index, value);
                    assert!(
                        given.is_superset(&expected),
                        "seed {seed}, round {round}: {index} = {value}"
                    );
                }
            }
        }
        // What was changed in one memtable leaves nothing behind, and what SSTables have of it is dropped together.
        engine.flush(table.id).unwrap();
        engine.compact(table.id).unwrap();
        let found = engine.verify_index(&table, "sai_v", IndexRepair::None).unwrap();
        assert_eq!(found.stale, 0, "seed {seed}");
    }
}

#[test]
fn a_value_that_was_changed_in_memory_hides_its_entries_in_sstables() {
    let engine = open(1);
    let table = engine.schema().table("ks", "plain").unwrap().clone();
    let column = table.column_named("v").unwrap().id;
    let set = |value: i32, timestamp: i64| {
        let row = Row {
            liveness: Liveness::live(timestamp),
            columns: vec![ColumnData {
                column,
                data: Data::Simple(Cell::live(timestamp, int(value))),
            }],
            ..Row::empty(Clustering::empty())
        };
        let mutation = Mutation {
            table: table.clone(),
            key: key(7),
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        };
        engine.apply(&[mutation]).unwrap();
    };
    set(1, 10);
    engine.flush(table.id).unwrap();
    set(1, 20);
    set(2, 30);
    engine.flush(table.id).unwrap();
    assert_eq!(candidates(&engine, &table, "by_v", 1), BTreeSet::new());
    assert_eq!(
        candidates(&engine, &table, "by_v", 2),
        BTreeSet::from([key(7).key])
    );
}
