//! Table indexes that a Cassandra 5.0.9 wrote (`testdata/cassandra-table-index`), opened in place beside their table.

use std::path::{Path, PathBuf};

use ilion_engine::{Engine, IndexRepair};
use ilion_env::{Env, MemEnv};
use ilion_schema::{PropertyValue, SchemaChange};

use super::table::{INDEXES, Reader, create_index, create_table, table};
use crate::support::{create_keyspace, small_options};

const ID: &str = "5bc1fe60-0000-11f0-8000-000000000001";
/// Table indexes; the others are ours alone.
const THEIRS: usize = 9;

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/cassandra-table-index")
}

fn copy(env: &MemEnv, from: &Path, to: &Path) {
    env.create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let mut file = env.create(&to.join(path.file_name().unwrap())).unwrap();
        file.append(&std::fs::read(&path).unwrap()).unwrap();
        file.sync().unwrap();
    }
    env.sync_dir(to).unwrap();
}

/// A node with the table and its indexes, all empty, stopped.
fn made(env: &MemEnv) -> PathBuf {
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    let SchemaChange::CreateTable(mut create) = create_table() else {
        unreachable!("it creates a table");
    };
    let id = [("id", PropertyValue::from(ID))];
    create.properties = id.into_iter().collect();
    engine.alter_schema(&SchemaChange::CreateTable(create)).unwrap();
    for index in &INDEXES[..THEIRS] {
        engine.alter_schema(&create_index(*index)).unwrap();
    }
    engine.drain().unwrap();
    let id = table(&engine).id;
    let stores = engine.tables();
    let store = stores.iter().find(|store| store.schema().id == id).unwrap();
    store.directory().to_owned()
}

#[test]
fn table_indexes_of_cassandra_are_searched_in_place_and_go_on() {
    let env = MemEnv::new(1);
    env.set_micros(1_800_000_000_000_000);
    let directory = made(&env);
    copy(&env, &files().join("base"), &directory);
    for (_, _, name) in &INDEXES[..THEIRS] {
        copy(&env, &files().join(name), &directory.join(format!(".{name}")));
    }
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    let table = table(&engine);
    assert_eq!(engine.index_builds(), []);
    for (_, _, name) in &INDEXES[..THEIRS] {
        let found = engine.verify_index(&table, name, IndexRepair::None).unwrap();
        assert!(found.rows > 20 && found.entries > 3, "{name}: {found:?}");
        assert_eq!(found.missing, 0, "{name}");
    }
    let reader = Reader {
        engine: &engine,
        env: &env,
    };
    reader.check("Cassandra's", &INDEXES[..THEIRS], 7);
    engine.flush(table.id).unwrap();
    engine.compact(table.id).unwrap();
    reader.check("with ours", &INDEXES[..THEIRS], 7);
}
