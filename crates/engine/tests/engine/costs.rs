//! What a read is charged: what the disk served, and which SSTables were asked and why others were not.

use ilion_env::cost::{self, Cost, Count};
use ilion_env::trace;

use crate::support::{Store, delete_partition, new_store, open, small_options};

/// What `read` costs; the disk must say the same.
fn cost_of<T>(store: &Store, read: impl FnOnce() -> T) -> Cost {
    store.engine.wait_idle();
    let (reads, bytes) = store.env.served();
    let scope = cost::begin();
    read();
    let cost = scope.so_far();
    let (reads_after, bytes_after) = store.env.served();
    assert_eq!(
        (cost.io.reads, cost.io.bytes_read),
        (reads_after - reads, bytes_after - bytes),
        "the account is what the disk served"
    );
    cost
}

/// The same, opened anew, so that no chunk is cached.
fn cold(store: Store) -> Store {
    let Store { env, engine } = store;
    engine.drain().unwrap();
    drop(engine);
    open(&env, small_options()).unwrap()
}

/// Considered, skipped by each reason, touched.
fn sstables_of(cost: &Cost) -> [u64; 7] {
    [
        Count::SSTablesConsidered,
        Count::SkippedByKeyRange,
        Count::SkippedByFilter,
        Count::SkippedByClustering,
        Count::SkippedByTimestamp,
        Count::SkippedByDeletion,
        Count::SSTablesTouched,
    ]
    .map(|count| cost.of(count))
}

#[test]
fn a_read_is_charged_what_the_disk_served_once() {
    let store = new_store(71, small_options());
    for clustering in 0..2000 {
        store.write_without_waiting("a", clustering, &format!("value of row {clustering}"), 10);
    }
    store.flush();
    let store = cold(store);
    let first = cost_of(&store, || store.partition("a", false));
    assert!(first.io.reads > 0 && first.io.bytes_read > 10_000, "{first:?}");
    let again = cost_of(&store, || store.partition("a", false));
    assert_eq!(again.io.reads, 0, "the chunks are cached: {again:?}");
    assert!(again.of(Count::CachedBytes) > 40_000, "{again:?}");
    cost_of(&store, || store.contents());
    cost_of(&store, || store.partition("a", true));
}

#[test]
fn newer_rows_make_older_sstables_needless() {
    let store = new_store(72, small_options());
    for timestamp in [10, 20, 30] {
        store.put("a", 1, "v", timestamp);
        store.flush();
    }
    let store = cold(store);
    let cost = cost_of(&store, || store.row("a", 1));
    assert_eq!(sstables_of(&cost), [3, 0, 0, 0, 2, 0, 1]);
    assert_eq!(cost.of(Count::Memtables), 0);
}

#[test]
fn each_sstable_that_is_left_alone_says_why() {
    let store = new_store(73, small_options());
    store.put("a", 1, "elsewhere in the partition", 10);
    store.put("c", 1, "v", 10);
    store.put("e", 1, "v", 10);
    store.flush();
    store.put("b", 1, "v", 20);
    store.flush();
    store.put("a", 7, "wanted", 30);
    store.flush();
    let store = cold(store);
    let cost = cost_of(&store, || {
        assert_eq!(store.row("a", 7).as_deref(), Some("wanted"))
    });
    let [
        considered,
        by_key,
        by_filter,
        by_clustering,
        by_timestamp,
        by_deletion,
        touched,
    ] = sstables_of(&cost);
    assert_eq!((considered, touched, by_deletion), (3, 1, 0));
    assert_eq!(by_timestamp, 2, "the newest has all that is wanted");
    assert_eq!(by_key + by_filter + by_clustering, 0);

    let cost = cost_of(&store, || assert_eq!(store.row("a", 8), None));
    let [_, by_key, by_filter, by_clustering, by_timestamp, _, touched] = sstables_of(&cost);
    assert_eq!(by_clustering, 2, "no row of theirs is there");
    assert_eq!(by_key + by_filter, 1, "one does not have the partition");
    assert_eq!((by_timestamp, touched), (0, 0));

    let cost = cost_of(&store, || store.partition("d", false));
    let [considered, by_key, by_filter, .., touched] = sstables_of(&cost);
    assert_eq!((considered, by_key + by_filter, touched), (3, 3, 0));
}

#[test]
fn a_deleted_partition_makes_what_is_older_needless() {
    let store = new_store(74, small_options());
    for timestamp in [10, 20] {
        store.put("a", 1, "old", timestamp);
        store.flush();
    }
    store.write(delete_partition(&store.table(), "a", 25));
    store.put("a", 2, "new", 30);
    let cost = cost_of(&store, || store.partition("a", false));
    assert_eq!(sstables_of(&cost), [2, 0, 0, 0, 0, 2, 0]);
    assert_eq!(cost.of(Count::Memtables), 1);
    let cost = cost_of(&store, || store.row("a", 1));
    assert_eq!(sstables_of(&cost), [2, 0, 0, 0, 0, 2, 0]);
}

#[test]
fn a_range_read_touches_only_the_sstables_it_comes_to() {
    let store = new_store(75, small_options());
    for file in 0..10 {
        store.put(&format!("key {file}"), 1, "v", 10);
        store.flush();
    }
    let store = cold(store);
    let cost = cost_of(&store, || store.contents());
    let [considered, by_key, .., touched] = sstables_of(&cost);
    assert_eq!((considered, by_key, touched), (10, 0, 10));
}

#[test]
fn a_traced_read_tells_its_steps() {
    let store = new_store(76, small_options());
    store.put("a", 1, "old", 10);
    store.flush();
    store.put("a", 1, "new", 20);
    store.flush();
    let store = cold(store);
    trace::begin();
    store.row("a", 1);
    let told: Vec<String> = trace::finish().into_iter().map(|event| event.activity).collect();
    let has = |what: &str| told.iter().any(|activity| activity.contains(what));
    assert!(has("Reading sstable nb-2-big"), "{told:#?}");
    assert!(has("bytes of nb-2-big-Data.db at 0 in"), "{told:#?}");
    assert!(has("Newer data makes sstable nb-1-big needless"), "{told:#?}");
    assert!(has("Merged data from memtables and 1 sstables"), "{told:#?}");
}
