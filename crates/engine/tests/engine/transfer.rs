//! SSTables that leave a table and come into one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_engine::{Engine, EngineOptions, Error, ImportReport, ImportSource};
use ilion_env::{CrashRule, Env, MemEnv, Moment};
use ilion_schema::{NewColumn, SchemaChange};
use ilion_types::{CqlType, Partitioner};
use parking_lot::Mutex;

use crate::support::{
    Contents, Store, add_column, create_keyspace, create_table, new_store, open, put, small_options,
};

/// A node beside the first one, on the same disk.
pub fn neighbour(env: &MemEnv) -> Store {
    let store = open(env, neighbour_options()).unwrap();
    store.alter(&create_keyspace("ks"));
    store.alter(&create_table("ks", "t"));
    store
}

pub fn neighbour_options() -> EngineOptions {
    let own = EngineOptions::below(Path::new("/neighbour"));
    EngineOptions {
        data_dir: own.data_dir,
        commitlog_dir: own.commitlog_dir,
        ..small_options()
    }
}

/// A store whose table has two SSTables.
pub fn filled(seed: u64) -> Store {
    let store = new_store(seed, small_options());
    for round in 0..2 {
        for row in 0..3 {
            store.put("a", row + round, &format!("round {round}"), 10 + i64::from(round));
            store.put(&format!("k{row}"), row, "v", 10);
        }
        store.flush();
    }
    store
}

pub fn export(store: &Store, directory: &str) -> Vec<PathBuf> {
    store
        .engine
        .export(store.table().id, Path::new(directory))
        .unwrap()
}

fn import(store: &Store, directory: &str, source: ImportSource) -> ImportReport {
    let table = store.table().id;
    store.engine.import(table, Path::new(directory), source).unwrap()
}

fn names(env: &MemEnv, directory: &str) -> Vec<String> {
    let entries = env.list(Path::new(directory)).unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn what_one_node_exports_another_imports() {
    let store = filled(11);
    store.put("a", 9, "in memory", 30);
    let exported = export(&store, "/out");
    assert_eq!(exported.len(), 3);
    let statements = store.env.read_all(Path::new("/out/schema.cql"), 1 << 20).unwrap();
    assert!(
        String::from_utf8(statements)
            .unwrap()
            .starts_with("CREATE TABLE IF NOT EXISTS ks.t (")
    );
    let other = neighbour(&store.env);
    other.put("b", 1, "its own", 10);
    let report = import(&other, "/out", ImportSource::Copied);
    assert_eq!((report.imported.len(), report.refused.len()), (3, 0));
    let mut expected = store.contents();
    expected.insert("b".to_owned(), [(1, "its own".to_owned())].into());
    assert_eq!(other.contents(), expected);
    assert_eq!(other.restart(neighbour_options()).contents(), expected);
    assert!(exported.iter().all(|path| store.env.exists(path)));
}

#[test]
fn files_that_are_moved_are_gone_from_where_they_were() {
    let store = filled(12);
    export(&store, "/out");
    let contents = store.contents();
    let other = neighbour(&store.env);
    let report = import(&other, "/out", ImportSource::Moved);
    assert_eq!((report.imported.len(), report.left.len()), (2, 0));
    assert_eq!(names(&store.env, "/out"), ["schema.cql"]);
    assert_eq!(other.contents(), contents);
    // Those of the first node are others.
    assert_eq!(store.restart(small_options()).contents(), contents);
}

#[test]
fn an_export_goes_to_a_directory_of_its_own() {
    let store = filled(13);
    export(&store, "/out");
    let error = store
        .engine
        .export(store.table().id, Path::new("/out"))
        .unwrap_err();
    assert!(error.to_string().contains("/out is not empty"), "{error}");
}

#[test]
fn damaged_files_are_named_and_left_alone() {
    let store = filled(14);
    let exported = export(&store, "/out");
    let other = neighbour(&store.env);
    store.env.corrupt_byte(&exported[0], 20, 1).unwrap();
    let report = import(&other, "/out", ImportSource::Moved);
    assert_eq!(report.imported.len(), 1);
    let [(path, reason)] = &report.refused[..] else {
        panic!("{report:?}");
    };
    assert_eq!(path, &exported[0]);
    assert!(reason.contains("corrupt file /out/nb-"), "{reason}");
    assert!(store.env.exists(path));
    assert_eq!(other.sstables(), 1);
}

fn refusal(store: &Store, directory: &str) -> String {
    let report = import(store, directory, ImportSource::Moved);
    assert!(report.imported.is_empty(), "{report:?}");
    report.refused.into_iter().next().unwrap().1
}

#[test]
fn files_of_another_table_are_refused() {
    let store = new_store(15, small_options());
    store.alter(&add_column("extra"));
    store.put("a", 1, "v", 10);
    export(&store, "/more");
    let other = neighbour(&store.env);
    assert_eq!(
        refusal(&other, "/more"),
        "the table has no column extra, and has not dropped one"
    );
    other.alter(&add_column("extra"));
    assert_eq!(import(&other, "/more", ImportSource::Copied).imported.len(), 1);
    let mut create = create_table("ks", "narrow");
    let SchemaChange::CreateTable(table) = &mut create else {
        panic!("it creates a table");
    };
    table.columns[1] = NewColumn {
        name: "c".to_owned(),
        ty: CqlType::Text,
        is_static: false,
        mask: None,
    };
    other.alter(&create);
    let narrow = other.engine.schema().table("ks", "narrow").unwrap().id;
    let report = other
        .engine
        .import(narrow, Path::new("/more"), ImportSource::Copied)
        .unwrap();
    assert_eq!(
        report.refused[0].1,
        "its clustering is (int), that of the table (text)"
    );
}

#[test]
fn files_of_another_partitioner_are_refused() {
    let store = filled(16);
    export(&store, "/out");
    let options = EngineOptions {
        partitioner: Partitioner::ByteOrdered,
        ..neighbour_options()
    };
    let other = open(&store.env, options).unwrap();
    other.alter(&create_keyspace("ks"));
    other.alter(&create_table("ks", "t"));
    assert!(refusal(&other, "/out").starts_with("its keys are ordered by org.apache.cassandra.dht.Murmur3"));
}

#[test]
fn directories_of_tables_and_tables_of_the_server_are_refused() {
    let store = filled(17);
    let stores = store.engine.tables();
    let own = stores
        .iter()
        .find(|own| own.schema().id == store.table().id)
        .unwrap();
    let error = |table, directory: &Path| {
        let outcome = store.engine.import(table, directory, ImportSource::Moved);
        assert!(matches!(outcome, Err(Error::Refused(_))), "{outcome:?}");
        outcome.unwrap_err().to_string()
    };
    assert!(error(store.table().id, own.directory()).contains("holds the SSTables of a table"));
    let schema = store.engine.schema();
    let system = schema.table("system_schema", "tables").unwrap();
    assert!(error(system.id, Path::new("/out")).contains("not user-modifiable"));
}

/// Files know which records of their node's log they hold; of another table those would be others.
#[test]
fn records_of_the_log_are_not_taken_for_imported() {
    let store = new_store(18, small_options());
    let other = store.add_table("u");
    store.put("a", 1, "t", 10);
    store.write(put(&other, "a", 2, "u", 10));
    store.put("a", 3, "t", 10);
    export(&store, "/out");
    store
        .engine
        .import(other.id, Path::new("/out"), ImportSource::Copied)
        .unwrap();
    let store = open(&store.env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
    let table = store.table_named("u");
    assert_eq!(rows_of(&store.engine, &table), 3);
}

fn rows_of(engine: &Engine, table: &Arc<ilion_schema::TableSchema>) -> usize {
    let all = (ilion_rows::KeyRange::all(), ilion_rows::ClusteringFilter::all());
    let mut cursor = engine.read_range(table, &all.0, &all.1).unwrap();
    let mut rows = 0;
    while cursor.next_partition().unwrap().is_some() {
        while cursor.next_unfiltered().unwrap().is_some() {
            rows += 1;
        }
    }
    rows
}

#[test]
fn a_truncation_removes_what_was_imported_before_it_and_nothing_else() {
    let store = filled(19);
    export(&store, "/out");
    let contents = store.contents();
    let table = store.table().id;
    store.engine.truncate(table).unwrap();
    import(&store, "/out", ImportSource::Copied);
    let again = open(&store.env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
    assert_eq!(again.contents(), contents);
    again.engine.truncate(table).unwrap();
    let last = open(&again.env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
    assert!(last.contents().is_empty());
}

/// A crash leaves the table with all of the files or with none, and no file is lost: what is not in the table is still where
/// it was.
#[test]
fn an_import_survives_a_crash_at_each_sync() {
    for rule in [
        |_| CrashRule::LoseUnsynced,
        |number| CrashRule::Seeded(number * 7919),
    ] {
        let source = filled(20);
        export(&source, "/out");
        let (before, imported) = (Contents::new(), source.contents());
        let other = neighbour(&source.env);
        let crashes: Arc<Mutex<Vec<MemEnv>>> = Arc::default();
        let seen = crashes.clone();
        source.env.on_sync(move |env, event| {
            if event.moment == Moment::BeforeSync {
                seen.lock().push(env.crash(rule(event.number)));
            }
        });
        import(&other, "/out", ImportSource::Moved);
        source.env.on_sync(|_, _| {});
        crashes.lock().push(source.env.crash(rule(1)));
        let crashes = std::mem::take(&mut *crashes.lock());
        assert!(crashes.len() > 20, "{}", crashes.len());
        for (number, env) in crashes.iter().enumerate() {
            let store = open(env, neighbour_options()).unwrap();
            let contents = store.contents();
            assert!(
                contents == before || contents == imported,
                "crash {number}: {contents:?}"
            );
            let report = import(&store, "/out", ImportSource::Moved);
            assert!(report.refused.is_empty(), "crash {number}: {report:?}");
            assert_eq!(store.contents(), imported, "crash {number}");
        }
    }
}
