//! The row cache, and caches over restarts.

use std::time::Duration;

use ilion_engine::{CacheFacts, EngineOptions};
use ilion_env::account;

use crate::support::{Store, delete_row, new_store, open, small_options};

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

    let Store { env, engine } = store;
    drop(engine);
    let path = options.saved_caches_dir.join("RowCache-g.db");
    env.corrupt_byte(&path, 20, 0xFF).unwrap();
    let store = open(&env, options).unwrap();
    store.engine.wait_caches_loaded();
    assert_eq!(cache(&store, "rows").entries, 0);
    assert_eq!(store.row("a", 1).as_deref(), Some("v"));
}
