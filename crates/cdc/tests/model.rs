//! The stream of changes of a random workload, applied to an empty table, makes the same rows.

#![expect(clippy::unwrap_used, reason = "a failing step is to stop the test")]

use std::path::Path;
use std::sync::Arc;

use ilion_cdc::{Change, Changed, changes_of, print_json};
use ilion_commitlog::{Capture, Position, WhenFull};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::MemEnv;
use ilion_rows::notation::print_cursor;
use ilion_rows::random::{Dice, random_mutation, random_table};
use ilion_rows::{ClusteringFilter, Cursor, KeyRange, Mutation, PartitionUpdate, ReadLaw, ReadPurge};
use ilion_schema::{
    ColumnKind, CreateTable, NewColumn, Properties, PropertyValue, SchemaChange, TableSchema,
};
use ilion_types::CqlType;

fn open(env: &MemEnv, is_capturing: bool) -> Engine {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.memtable_shards = 2;
    options.is_compacting = false;
    options.commit_log.segment_bytes = 64 << 10;
    options.commit_log.capture = is_capturing.then(|| Capture {
        dir: "/ilion/cdc_raw".into(),
        bytes_max: 1 << 30,
        excess_bytes: 0,
        when_full: WhenFull::Block,
        check_interval_millis: 250,
    });
    Engine::open(env.shared(), options).unwrap()
}

/// Creates the table in an engine.
fn create(engine: &Engine, table: &TableSchema) -> Arc<TableSchema> {
    let replication = [("class", "SimpleStrategy"), ("replication_factor", "1")];
    let keyspace = SchemaChange::CreateKeyspace {
        name: "ks".to_owned(),
        properties: Properties::from_iter([("replication", PropertyValue::from(replication))]),
        if_not_exists: false,
    };
    engine.alter_schema(&keyspace).unwrap();
    for column in table.every_column() {
        if let CqlType::Udt { definition, .. } = &column.ty {
            let change = SchemaChange::CreateType {
                keyspace: "ks".to_owned(),
                name: definition.name.clone(),
                fields: definition.fields.clone(),
                if_not_exists: true,
            };
            engine.alter_schema(&change).unwrap();
        }
    }
    let names = |columns: &mut dyn Iterator<Item = &ilion_schema::Column>| {
        columns.map(|column| column.name.clone()).collect::<Vec<_>>()
    };
    let columns = table.every_column().into_iter().map(|column| NewColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        is_static: column.kind == ColumnKind::Static,
        mask: None,
    });
    let create = CreateTable {
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns: columns.collect(),
        partition_key: names(&mut table.partition_key()),
        clustering: names(&mut table.clustering()),
        properties: Properties::from_iter([("cdc", PropertyValue::from("true"))]),
        ..CreateTable::default()
    };
    engine
        .alter_schema(&SchemaChange::CreateTable(Box::new(create)))
        .unwrap();
    engine.schema().table("ks", "t").unwrap().clone()
}

/// The changes from a position on.
fn changes(engine: &Engine, from: Position) -> Vec<Change> {
    engine.sync_log().unwrap();
    let table = engine.schema().table("ks", "t").unwrap().clone();
    let records = engine.changes(from).unwrap().map(Result::unwrap);
    let of_record = |(position, record, next)| changes_of(&table, position, &record, next).unwrap();
    records.flat_map(of_record).collect()
}

/// Applies one change by itself.
fn apply(engine: &Engine, table: &Arc<TableSchema>, change: &Change) {
    let mut update = PartitionUpdate::default();
    match change.changed.clone() {
        Changed::Table => return engine.truncate(table.id).unwrap(),
        Changed::Partition(deletion) => update.deletion = Some(deletion),
        Changed::Range(range) => update.ranges.push(range),
        Changed::Static(row) => update.static_row = Some(row),
        Changed::DeletedRow(row) | Changed::Row(row) => update.rows.push(row),
    }
    let key = change.key.clone().unwrap();
    let table = table.clone();
    engine.apply(&[Mutation { table, key, update }]).unwrap();
}

/// What a client sees.
fn contents(engine: &Engine, table: &Arc<TableSchema>) -> String {
    let cursor = engine
        .read_range(table, &KeyRange::all(), &ClusteringFilter::all())
        .unwrap();
    let law = ReadLaw::without_limits(0);
    let mut purged: Box<dyn Cursor> = Box::new(ReadPurge::new(cursor, table.clone(), law));
    print_cursor(&mut *purged, table).unwrap()
}

fn run(seed: u64) {
    let dice = &mut Dice::new(seed);
    let shape = random_table(dice);
    let env = MemEnv::new(seed);
    let mut engine = open(&env, true);
    let mut table = create(&engine, &shape);
    for _ in 0..100 {
        let count = 1 + dice.below(3);
        let mutations: Vec<Mutation> = (0..count).map(|_| random_mutation(&table, dice)).collect();
        match dice.below(40) {
            0 => engine.truncate(table.id).unwrap(),
            1 => engine.flush(table.id).unwrap(),
            2 => {
                drop(engine);
                engine = open(&env, true);
                table = engine.schema().table("ks", "t").unwrap().clone();
            }
            3..20 => drop(engine.apply_decided(&mutations).unwrap()),
            _ => drop(engine.apply(&mutations).unwrap()),
        }
    }
    let all = changes(&engine, Position::START);
    // A consumer that stopped anywhere goes on with what follows, or repeats what its record began with.
    for change in all.iter().step_by(17) {
        let rest = changes(&engine, change.resume);
        let known = &all[all.len() - rest.len()..];
        let places = |changes: &[Change]| changes.iter().map(|c| (c.position, c.number)).collect::<Vec<_>>();
        assert_eq!(places(&rest), places(known));
        let is_next = known.first().is_none_or(|first| {
            (first.position, first.number) <= (change.position, change.number + 1)
                || first.position >= change.resume
        });
        assert!(is_next);
    }
    let replica = open(&MemEnv::new(seed), false);
    let copied = create(&replica, &shape);
    for change in &all {
        let mut line = String::new();
        print_json(change, &mut line).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(parsed["source"]["resume"], change.resume.to_string());
        apply(&replica, &copied, change);
    }
    assert_eq!(contents(&replica, &copied), contents(&engine, &table));
}

#[test]
fn the_stream_makes_the_same_rows_in_an_empty_table() {
    for seed in 0..12 {
        println!("seed {seed}");
        run(seed);
    }
}
