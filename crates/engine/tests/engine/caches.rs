//! The row cache, and caches over restarts.

use std::time::Duration;

use ilion_engine::{CacheFacts, EngineOptions, Finding, SSTableVersion};
use ilion_env::{Env, MemEnv, account};
use ilion_rows::{ClusteringFilter, Flow, PlainRow, PlainVisitor};

use crate::support::{Store, add_column, decorated, delete_row, new_store, open, small_options};

fn with_row_cache() -> EngineOptions {
    let mut options = small_options();
    options.row_cache.bytes_max = 1 << 20;
    options
}

fn cache(store: &Store, name: &str) -> CacheFacts {
    let caches = store.engine.facts().caches;
    caches.into_iter().find(|facts| facts.name == name).unwrap()
}

fn rows_of(values: &[(i32, &str)]) -> Vec<(i32, String)> {
    values
        .iter()
        .map(|(row, value)| (*row, (*value).to_owned()))
        .collect()
}

#[test]
fn the_head_of_a_partition_is_read_from_memory_until_it_is_written() {
    let store = new_store(41, with_row_cache());
    for clustering in 0..4 {
        store.put("a", clustering, "v", 10);
    }
    store.flush();
    store.partition("a", false);
    let hits = cache(&store, "rows").hits;
    store.engine.invalidate_cache("chunks").unwrap();
    let io = account::begin();
    assert_eq!(store.row("a", 2).as_deref(), Some("v"));
    assert_eq!(store.partition("a", true).len(), 4);
    assert_eq!(io.finish().reads, 0);
    assert_eq!(cache(&store, "rows").hits, hits + 2);
    store.put("a", 2, "w", 11);
    assert_eq!(store.row("a", 2).as_deref(), Some("w"));
    store.write(delete_row(&store.table(), "a", 0, 12));
    assert_eq!(
        store.partition("a", false),
        rows_of(&[(1, "v"), (2, "w"), (3, "v")])
    );
    store.engine.truncate(store.table().id).unwrap();
    assert_eq!(store.partition("a", false), []);
}

#[test]
fn what_follows_on_the_cached_head_is_read_from_the_table() {
    let store = new_store(42, with_row_cache());
    for clustering in 0..10 {
        store.put("a", clustering, "v", 10);
    }
    for _ in 0..2 {
        assert_eq!(store.partition("a", false).len(), 10);
        assert_eq!(store.partition("a", true).len(), 10);
        assert_eq!(store.row("a", 9).as_deref(), Some("v"));
    }
    assert!(cache(&store, "rows").hits > 0);
}

/// Takes every row.
struct Taken(usize);

impl PlainVisitor for Taken {
    fn row(&mut self, _: &PlainRow<'_>) -> Flow {
        self.0 += 1;
        Flow::Next
    }
}

#[test]
fn plain_rows_behind_the_cached_head_are_passed_on_whole() {
    let store = new_store(45, with_row_cache());
    for clustering in 0..10 {
        store.put("a", clustering, "v", 10);
    }
    store.flush();
    store.partition("a", false);
    let (table, key) = (store.table(), decorated("a"));
    let read = store
        .engine
        .read_partition(&table, &key, &ClusteringFilter::all());
    let mut cursor = read.unwrap();
    cursor.next_partition().unwrap().unwrap();
    let (mut decoded, mut taken) = (0, Taken(0));
    while cursor.next_unfiltered().unwrap().is_some() {
        decoded += 1;
        cursor.plain_rows(&key, None, &mut taken).unwrap();
    }
    assert_eq!(
        (decoded, taken.0),
        (5, 5),
        "4 rows are cached; the next one opens the rest"
    );
}

#[test]
fn the_keys_of_the_row_cache_come_back_after_a_restart() {
    let mut options = with_row_cache();
    options.row_cache.save_period = Some(Duration::from_secs(3600));
    let store = new_store(43, options.clone());
    for key in ["a", "b", "c"] {
        store.put(key, 1, "v", 10);
        store.partition(key, false);
    }
    store.put("c", 1, "w", 11);
    let store = store.restart(options.clone());
    store.engine.wait_caches_loaded();
    assert_eq!(
        cache(&store, "rows").entries,
        2,
        "c was written after it was read"
    );
    assert_eq!(store.row("a", 1).as_deref(), Some("v"));
    assert_eq!(cache(&store, "rows").hits, 1);

    let env = store.close();
    let path = options.saved_caches_dir.join("RowCache-g.db");
    env.corrupt_byte(&path, 20, 0xFF).unwrap();
    let store = open(&env, options).unwrap();
    store.engine.wait_caches_loaded();
    assert_eq!(cache(&store, "rows").entries, 0);
    assert_eq!(store.row("a", 1).as_deref(), Some("v"));
}

fn with_key_cache() -> EngineOptions {
    let mut options = small_options();
    options.finding = Finding::Summary;
    options.key_cache.save_period = Some(Duration::from_secs(3600));
    options
}

/// Many rows below `wide`, one below other keys.
fn wide_and_narrow(options: EngineOptions) -> Store {
    let store = new_store(44, options);
    for clustering in 0..3000 {
        store.write_without_waiting("wide", clustering, &format!("{clustering:0100}"), 10);
    }
    for key in ["a", "b", "c"] {
        store.put(key, 1, "v", 10);
    }
    store.flush();
    store
}

fn read_all(store: &Store) -> [Option<String>; 3] {
    [store.row("wide", 2500), store.row("a", 1), store.row("c", 1)]
}

#[test]
fn the_key_cache_comes_back_after_a_restart_without_a_look_into_data() {
    for version in [SSTableVersion::NB, SSTableVersion::OA] {
        let mut options = with_key_cache();
        options.sstable_version = version;
        let store = wide_and_narrow(options.clone());
        let expected = read_all(&store);
        assert!(expected.iter().all(Option::is_some));
        assert_eq!(cache(&store, "keys").entries, 3);
        let store = store.restart(options.clone());
        store.engine.wait_caches_loaded();
        assert_eq!(cache(&store, "keys").entries, 3);
        let by_index = store.engine.facts().lookups.by_index;
        assert_eq!(read_all(&store), expected);
        assert_eq!(store.engine.facts().lookups.by_index, by_index);
        assert_eq!(cache(&store, "keys").hits, 3);

        // A changed schema does not matter: the files are the same.
        store.alter(&add_column("w"));
        store.engine.set_cache_keys_to_save("keys", 1).unwrap();
        let store = store.restart(options.clone());
        store.engine.wait_caches_loaded();
        assert_eq!(cache(&store, "keys").entries, 1);
        // Token maps know all of it, so that nothing is loaded, and nothing to be saved.
        options.finding = Finding::TokenMap;
        let store = store.restart(options.clone());
        store.engine.wait_caches_loaded();
        store.engine.wait_idle();
        assert_eq!(read_all(&store), expected);
    }
}

#[test]
fn a_saved_key_cache_of_other_files_or_damaged_is_left_alone() {
    let options = with_key_cache();
    let file = |end: &str| options.saved_caches_dir.join(format!("KeyCache-g.{end}"));
    let store = wide_and_narrow(options.clone());
    let expected = read_all(&store);
    let store = store.restart(options.clone());
    let saved =
        ["db", "crc", "metadata"].map(|end| (file(end), store.env.read_all(&file(end), 1 << 20).unwrap()));
    let put_back = |env: &MemEnv| {
        for (path, bytes) in &saved {
            env.write_atomically(path, bytes).unwrap();
        }
    };
    // Its SSTable goes, and another one takes its place.
    store.put("a", 2, "v", 11);
    store.flush();
    store.engine.compact(store.table().id).unwrap();
    let reopen = |store: Store, change: &dyn Fn(&MemEnv)| {
        let env = store.close();
        put_back(&env);
        change(&env);
        let store = open(&env, options.clone()).unwrap();
        store.engine.wait_caches_loaded();
        assert_eq!(cache(&store, "keys").entries, 0);
        assert_eq!(read_all(&store), expected);
        store
    };
    let mut store = reopen(store, &|_| {});
    assert_eq!(store.sstables(), 1);
    for (path, _) in &saved {
        store = reopen(store, &|env| env.corrupt_byte(path, 5, 0xFF).unwrap());
        store = reopen(store, &|env| env.remove_file(path).unwrap());
    }
}

#[test]
fn what_a_cache_may_take_is_changed_while_it_runs() {
    let store = wide_and_narrow(with_key_cache());
    read_all(&store);
    store.engine.set_cache_capacity("keys", 0).unwrap();
    assert_eq!(
        (cache(&store, "keys").entries, cache(&store, "keys").bytes_max),
        (0, 0)
    );
    store.engine.set_cache_capacity("rows", 1 << 20).unwrap();
    store.partition("a", false);
    store.partition("a", false);
    assert_eq!(cache(&store, "rows").hits, 1);
    assert!(store.engine.set_cache_capacity("columns", 1).is_err());
    assert!(store.engine.set_cache_keys_to_save("chunks", 1).is_err());
}
