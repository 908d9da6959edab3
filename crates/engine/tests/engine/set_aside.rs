//! One table that cannot be opened does not cost the node: it is set aside, with all that it has, and the rest is served.

use std::path::Path;

use bytes::Bytes;
use ilion_engine::Error;
use ilion_env::{Env, MemEnv};
use ilion_rows::{Cell, Clustering, ColumnData, Data, Liveness, Mutation, PartitionUpdate, Row};
use ilion_schema::{SchemaChange, TableId};

use crate::support::{Store, create_table, drop_table, new_store, open, put, small_options};

/// `ks.t` with an SSTable and a record of the log behind it, and `ks.u` beside it.
fn two_tables(seed: u64) -> Store {
    let store = new_store(seed, small_options());
    store.alter(&create_table("ks", "u"));
    store.put("a", 1, "flushed", 10);
    store.flush();
    store.put("a", 2, "in the log", 11);
    let other = store.table_named("u");
    store.write(put(&other, "b", 1, "of the other", 10));
    store
}

fn overwrite(env: &MemEnv, path: &Path, content: &[u8]) {
    let mut file = env.create_or_truncate(path).unwrap();
    file.append(content).unwrap();
    file.sync().unwrap();
}

/// What the node says to a write and a flush of the other table: it serves.
fn check_other_is_served(store: &Store) {
    let other = store.table_named("u");
    store.write(put(&other, "c", 1, "new", 12));
    store.engine.flush(other.id).unwrap();
    assert_eq!(store.engine.failure(), None);
}

#[test]
fn a_table_with_a_damaged_file_is_set_aside_until_the_file_is_restored() {
    let store = two_tables(1);
    let statistics = store.directory().join("nb-1-big-Statistics.db");
    let env = store.close();
    let sound = env.read_all(&statistics, 1 << 20).unwrap();
    overwrite(&env, &statistics, &sound[..sound.len() / 2]);

    let store = open(&env, small_options()).unwrap();
    let told = store.engine.set_aside();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].kind, &*told[0].keyspace, &*told[0].name),
        ("table", "ks", "t")
    );
    assert!(told[0].reason.contains("nb-1-big-Statistics.db"), "{}", told[0]);
    let table = store.table();
    let refused = store.engine.apply(&[put(&table, "a", 3, "x", 12)]).unwrap_err();
    assert!(matches!(refused, Error::SetAside { .. }), "{refused}");
    let read = store.engine.read_range(
        &table,
        &ilion_rows::KeyRange::all(),
        &ilion_rows::ClusteringFilter::all(),
    );
    assert!(matches!(read.err(), Some(Error::SetAside { .. })));
    assert!(store.engine.truncate(table.id).is_err());
    assert!(store.engine.compact(table.id).is_err());
    check_other_is_served(&store);
    // What the log had of it goes to a file, so that the log can be let go.
    store.engine.drain().unwrap();

    let env = store.close();
    overwrite(&env, &statistics, &sound);
    let store = open(&env, small_options()).unwrap();
    assert_eq!(store.engine.set_aside(), []);
    assert_eq!(
        store.partition("a", false),
        [(1, "flushed".to_owned()), (2, "in the log".to_owned())]
    );
}

#[test]
fn a_table_that_is_set_aside_can_be_dropped_and_made_again() {
    let store = two_tables(2);
    let directory = store.directory();
    let env = store.close();
    overwrite(&env, &directory.join("nb-1-big-Statistics.db"), b"?");
    let store = open(&env, small_options()).unwrap();
    store.alter(&drop_table("ks", "t"));
    assert_eq!(store.engine.set_aside(), []);
    // Its files are in the automatic snapshot.
    let left: Vec<_> = env
        .list(&directory)
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(left, ["snapshots"]);
    store.alter(&create_table("ks", "t"));
    store.put("z", 1, "new", 20);
    let store = store.restart(small_options());
    assert_eq!(store.partition("a", false), []);
    assert_eq!(store.partition("z", false), [(1, "new".to_owned())]);
}

/// Gives `ks.t.v` a type that nobody knows, as a row of `system_schema` that an older Ilion might have logged.
fn spoil_schema(store: &Store) {
    let schema = store.engine.schema();
    let table = schema.keyspaces["system_schema"].tables["columns"].clone();
    let now_micros = store.engine.env().unique_micros();
    let row = Row {
        liveness: Liveness::live(now_micros),
        columns: vec![ColumnData {
            column: table.column_named("type").unwrap().id,
            data: Data::Simple(Cell::live(now_micros, Bytes::from("hologram"))),
        }],
        ..Row::empty(Clustering::of([Bytes::from("t"), Bytes::from("v")]))
    };
    let key = ilion_rows::DecoratedKey::new(ilion_types::Partitioner::Murmur3, Bytes::from("ks"));
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    store.write(Mutation { key, table, update });
}

fn check_schema_is_set_aside(store: &Store, directory: &Path) {
    let told = store.engine.set_aside();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].kind, &*told[0].name), ("table", "t"));
    assert!(told[0].reason.contains("hologram"), "{}", told[0]);
    assert!(!store.has_table("t"));
    check_other_is_served(store);
    assert!(store.env.exists(&directory.join("nb-1-big-Data.db")));
    let refused = store.engine.alter_schema(&create_table("ks", "t")).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("is that of a table which is set aside"),
        "{refused}"
    );
}

#[test]
fn a_table_whose_schema_does_not_decode_is_set_aside_and_its_name_is_kept() {
    let store = two_tables(3);
    let directory = store.directory();
    spoil_schema(&store);
    let columns = TableId::of_system_table("system_schema", "columns");
    store.engine.flush(columns).unwrap();
    // Twice: the first start of them has records of the log, too.
    let store = store.restart(small_options());
    check_schema_is_set_aside(&store, &directory);
    let store = store.restart(small_options());
    check_schema_is_set_aside(&store, &directory);

    store.alter(&drop_table("ks", "t"));
    assert_eq!(store.engine.set_aside(), []);
    assert!(!store.env.exists(&directory));
    let store = store.restart(small_options());
    assert_eq!(store.engine.set_aside(), []);
    store.alter(&create_table("ks", "t"));
    store.put("z", 1, "new", 20);
    let store = store.restart(small_options());
    assert_eq!(store.partition("z", false), [(1, "new".to_owned())]);
}

#[test]
fn files_of_a_table_outlive_a_change_that_only_the_log_has_and_that_does_not_decode() {
    let store = two_tables(4);
    let directory = store.directory();
    spoil_schema(&store);
    let store = store.restart(small_options());
    check_schema_is_set_aside(&store, &directory);
}

#[test]
fn a_change_whose_directory_cannot_be_made_is_refused_and_not_logged() {
    let store = new_store(5, small_options());
    // A file stands where the directory of the keyspace would be.
    store.alter(&crate::support::create_keyspace("other"));
    overwrite(&store.env, Path::new("/ilion/data/other"), b"a file");
    let change: SchemaChange = create_table("other", "t");
    let before = store.engine.schema().version;
    assert!(store.engine.alter_schema(&change).is_err());
    assert_eq!(store.engine.schema().version, before);
    let store = store.restart(small_options());
    assert!(store.engine.schema().table("other", "t").is_none());
    assert_eq!(store.engine.failure(), None);
}
