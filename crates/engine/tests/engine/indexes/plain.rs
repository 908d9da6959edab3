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

/// Sets the indexed value of a row.
fn set(engine: &Engine, number: usize, value: i32, timestamp: i64) {
    let table = engine.schema().table("ks", "plain").unwrap().clone();
    let row = Row {
        liveness: Liveness::live(timestamp),
        columns: vec![ColumnData {
            column: table.column_named("v").unwrap().id,
            data: Data::Simple(Cell::live(timestamp, int(value))),
        }],
        ..Row::empty(Clustering::empty())
    };
    let mutation = Mutation {
        table,
        key: key(number),
        update: PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
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
    set(&engine, 7, 1, 10);
    engine.flush(table.id).unwrap();
    set(&engine, 7, 1, 20);
    set(&engine, 7, 2, 30);
    engine.flush(table.id).unwrap();
    assert_eq!(candidates(&engine, &table, "by_v", 1), BTreeSet::new());
    assert_eq!(
        candidates(&engine, &table, "by_v", 2),
        BTreeSet::from([key(7).key])
    );
}

/// A table of jobs: a flush writes no entry for a value that a row had and lost since the flush before, unless an SSTable has the row.
#[test]
fn what_came_and_went_in_one_memtable_leaves_no_entries() {
    let engine = open(1);
    let table = engine.schema().table("ks", "plain").unwrap().clone();
    let (new, done) = (1, 2);
    // Partitions of the hidden table are values.
    let values = || {
        let facts = engine.table_facts().into_iter();
        let mut hidden = facts.filter(|facts| facts.table == "plain.by_v");
        hidden.next().unwrap().estimated_partitions
    };
    let pass_through = |jobs: std::ops::Range<usize>, timestamp: i64| {
        for job in jobs {
            set(&engine, job, new, timestamp);
            set(&engine, job, done, timestamp + 1);
        }
        engine.flush(table.id).unwrap();
    };
    pass_through(0..50, 10);
    assert_eq!(values(), 1, "only entries of `done` are written");
    pass_through(50..60, 20);
    assert_eq!(values(), 2, "the same for other rows");
    pass_through(0..10, 30);
    assert_eq!(
        values(),
        4,
        "an SSTable may have older entries of `new` for these rows"
    );
    for index in INDEXES {
        assert_eq!(candidates(&engine, &table, index, new), BTreeSet::new());
        assert_eq!(candidates(&engine, &table, index, done).len(), 60);
    }
}
