//! Which files a read touches: seen by the reads that are charged to it.

use std::collections::BTreeSet;

use ilion_env::account;

use crate::support::{Store, delete_partition, new_store, open, small_options};

/// Names of the Data.db files that `read` reads.
fn data_files_of<T>(read: impl FnOnce() -> T) -> BTreeSet<String> {
    account::begin_trace();
    read();
    let events = account::finish_trace();
    let names = events.iter().filter_map(|event| event.path.file_name()?.to_str());
    names
        .filter(|name| name.ends_with("Data.db"))
        .map(str::to_owned)
        .collect()
}

/// The same, opened anew, so that no chunk is cached.
fn cold(store: Store) -> Store {
    let Store { env, engine } = store;
    engine.drain().unwrap();
    drop(engine);
    open(&env, small_options()).unwrap()
}

#[test]
fn a_row_by_its_key_is_read_from_the_newest_file_that_has_all_of_it() {
    let store = new_store(31, small_options());
    for timestamp in [10, 20, 30] {
        store.put("a", 1, &format!("written at {timestamp}"), timestamp);
        store.put("a", 2, "x", timestamp);
        store.flush();
    }
    let store = cold(store);
    let files = data_files_of(|| assert_eq!(store.row("a", 1).as_deref(), Some("written at 30")));
    assert_eq!(files.len(), 1, "{files:?}");
    let others = data_files_of(|| store.partition("a", false));
    assert_eq!(others.len(), 2, "the first is cached: {others:?}");
}

#[test]
fn files_older_than_a_deletion_of_the_partition_are_left_alone() {
    let store = new_store(32, small_options());
    for timestamp in [10, 20] {
        store.put("a", 1, "old", timestamp);
        store.flush();
    }
    store.write(delete_partition(&store.table(), "a", 25));
    store.put("a", 2, "new", 30);
    store.flush();
    let store = cold(store);
    let files = data_files_of(|| assert_eq!(store.partition("a", false), [(2, "new".to_owned())]));
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn files_whose_rows_lie_elsewhere_in_the_partition_are_left_alone() {
    let store = new_store(33, small_options());
    for clustering in 0..4 {
        store.put("a", clustering * 10, "v", 10);
        store.put("a", clustering * 10 + 5, "v", 10);
        store.flush();
    }
    let store = cold(store);
    let files = data_files_of(|| assert_eq!(store.row("a", 25).as_deref(), Some("v")));
    assert_eq!(files.len(), 1, "{files:?}");
    let files = data_files_of(|| assert_eq!(store.row("a", 27), None));
    assert!(files.len() <= 1, "{files:?}");
}
