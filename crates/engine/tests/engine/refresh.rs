//! SSTables that are placed in the directory of a table while the node runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_engine::{Error, ImportReport};
use ilion_env::{CrashRule, Env, MemEnv, Moment};
use parking_lot::Mutex;

use crate::support::{Contents, Store, new_store, open, small_options};
use crate::transfer::{export, filled, neighbour, neighbour_options};

/// A table with an SSTable of its own, what another node has exported to `/out`, and the contents of both together.
fn two_nodes(seed: u64) -> (Store, Contents) {
    let source = filled(seed);
    export(&source, "/out");
    let store = neighbour(&source.env);
    store.put("own", 1, "v", 10);
    store.flush();
    let mut all = source.contents();
    all.extend(store.contents());
    (store, all)
}

/// Copies the SSTables of `/out` under numbers from this one on; returns the paths of their Data.db.
fn place(store: &Store, mut number: u32) -> Vec<PathBuf> {
    let env = &store.env;
    let mut placed = Vec::new();
    for old in [1, 2] {
        for entry in env.list(Path::new("/out")).unwrap() {
            let Some(component) = entry.name.strip_prefix(&format!("nb-{old}-big-")) else {
                continue;
            };
            let to = store.directory().join(format!("nb-{number}-big-{component}"));
            let bytes = env
                .read_all(&Path::new("/out").join(&entry.name), 1 << 20)
                .unwrap();
            let mut file = env.create(&to).unwrap();
            file.append(&bytes).unwrap();
            file.sync().unwrap();
            if component == "Data.db" {
                placed.push(to);
            }
        }
        number += 1;
    }
    env.sync_dir(&store.directory()).unwrap();
    placed
}

fn refresh(store: &Store) -> ImportReport {
    store.engine.refresh(store.table().id).unwrap()
}

#[test]
fn placed_sstables_are_added_once_under_new_names() {
    let (store, all) = two_nodes(1);
    let placed = place(&store, 7);
    let report = refresh(&store);
    assert_eq!(
        (report.imported.len(), report.refused.len()),
        (2, 0),
        "{report:?}"
    );
    assert_eq!(store.contents(), all);
    assert_eq!(store.sstables(), 3);
    assert!(placed.iter().all(|path| !store.env.exists(path)));
    assert_eq!(refresh(&store), ImportReport::default());
    let store = store.restart(neighbour_options());
    assert_eq!((store.contents(), store.sstables()), (all, 3));
}

/// The next number of the table is 2: a flush that took it would fail on the placed files, and writes would be refused for good.
#[test]
fn numbers_of_placed_sstables_are_not_taken_by_flushes() {
    let (store, mut all) = two_nodes(2);
    let placed = place(&store, 2);
    store.put("later", 1, "v", 20);
    store.flush();
    assert_eq!(store.engine.failure(), None);
    all.extend(store.contents());
    assert!(placed.iter().all(|path| store.env.exists(path)));
    assert_eq!(refresh(&store).imported.len(), 2);
    assert_eq!(store.contents(), all);
    assert_eq!(store.restart(neighbour_options()).contents(), all);
}

#[test]
fn a_damaged_or_incomplete_one_is_named_and_stays() {
    let (store, _) = two_nodes(3);
    let own = store.contents();
    let placed = place(&store, 7);
    store.env.corrupt_byte(&placed[0], 20, 1).unwrap();
    let statistics = placed[1].with_file_name("nb-8-big-Statistics.db");
    let bytes = store.env.read_all(&statistics, 1 << 20).unwrap();
    store.env.remove_file(&statistics).unwrap();
    let report = refresh(&store);
    assert_eq!(report.imported, []);
    let [(first, damaged), (second, incomplete)] = &report.refused[..] else {
        panic!("{report:?}");
    };
    assert_eq!([first, second], [&placed[0], &placed[1]]);
    assert!(damaged.contains("corrupt file"), "{damaged}");
    assert!(incomplete.contains("Statistics.db is not there"), "{incomplete}");
    assert_eq!(store.contents(), own);
    // The rest of the copy arrives.
    let mut file = store.env.create(&statistics).unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
    let report = refresh(&store);
    assert_eq!((report.imported.len(), report.refused.len()), (1, 1));
    assert!(store.env.exists(&placed[0]));
}

#[test]
fn files_of_the_table_that_a_reader_still_holds_are_not_placed_ones() {
    let store = filled(4);
    let table = store.table();
    let (range, filter) = (ilion_rows::KeyRange::all(), ilion_rows::ClusteringFilter::all());
    let mut cursor = store.engine.read_range(&table, &range, &filter).unwrap();
    cursor.next_partition().unwrap();
    let held = store.files();
    store.engine.truncate(table.id).unwrap();
    assert!(held.iter().any(|file| store.files().contains(file)), "{held:?}");
    assert_eq!(refresh(&store), ImportReport::default());
    drop(cursor);
    assert!(store.contents().is_empty());
}

#[test]
fn tables_of_the_node_itself_and_those_that_are_set_aside_are_refused() {
    let store = new_store(5, small_options());
    let schema = store.engine.schema();
    let own = schema.table("system", "local").unwrap().id;
    let refused = store.engine.refresh(own).unwrap_err();
    assert_eq!(refused.to_string(), "system keyspace is not user-modifiable");
    store.put("a", 1, "v", 10);
    store.flush();
    let statistics = store.directory().join("nb-1-big-Statistics.db");
    let env = store.close();
    env.corrupt_byte(&statistics, 20, 1).unwrap();
    let store = open(&env, small_options()).unwrap();
    let refused = store.engine.refresh(store.table().id).unwrap_err();
    assert!(matches!(refused, Error::SetAside { .. }), "{refused}");
}

/// The next start opens what is in the directory, under the old name or the new one: no row is missing after any crash.
#[test]
fn a_refresh_survives_a_crash_at_each_sync() {
    for rule in [
        |_| CrashRule::LoseUnsynced,
        |number| CrashRule::Seeded(number * 7919),
    ] {
        let (store, all) = two_nodes(6);
        place(&store, 7);
        let crashes: Arc<Mutex<Vec<MemEnv>>> = Arc::default();
        let seen = crashes.clone();
        store.env.on_sync(move |env, event| {
            if event.moment == Moment::BeforeSync {
                seen.lock().push(env.crash(rule(event.number)));
            }
        });
        refresh(&store);
        store.env.on_sync(|_, _| {});
        crashes.lock().push(store.env.crash(rule(1)));
        let crashes = std::mem::take(&mut *crashes.lock());
        assert!(crashes.len() > 10, "{}", crashes.len());
        for (number, env) in crashes.iter().enumerate() {
            let store = open(env, neighbour_options()).unwrap();
            assert_eq!(
                (store.contents(), store.sstables()),
                (all.clone(), 3),
                "crash {number}"
            );
            assert_eq!(refresh(&store), ImportReport::default(), "crash {number}");
        }
    }
}
