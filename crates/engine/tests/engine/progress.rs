//! What operators see of the flushes and snapshots that they wait for.

use std::sync::{Arc, Weak};

use ilion_engine::{AwaitedFacts, Engine, SnapshotMemtables, SnapshotOrder};
use ilion_env::Moment;
use parking_lot::Mutex;

use crate::support::{Store, new_store, put, small_options};

/// Runs `work`, and returns what operators see at each sync of a file whose path has `mark`.
fn seen(store: Store, mark: &'static str, work: impl FnOnce(&Engine)) -> Vec<AwaitedFacts> {
    let engine = Arc::new(store.engine);
    let (found, asked): (Arc<Mutex<Vec<AwaitedFacts>>>, Weak<Engine>) =
        (Arc::default(), Arc::downgrade(&engine));
    let noted = found.clone();
    store.env.on_sync(move |_, event| {
        if event.moment == Moment::BeforeSync
            && event.path.to_string_lossy().contains(mark)
            && let Some(engine) = asked.upgrade()
        {
            noted.lock().extend(engine.awaited());
        }
    });
    work(&engine);
    assert_eq!(engine.awaited(), [], "it is done");
    std::mem::take(&mut *found.lock())
}

#[test]
fn a_flush_shows_how_much_of_all_memtables_is_written() {
    let store = new_store(31, small_options());
    store.engine.flush_all().unwrap();
    let other = store.add_table("other");
    store.engine.flush_all().unwrap();
    store.write(put(&other, "a", 1, "v", 10));
    store.put("a", 1, "a longer value", 10);
    store.put("b", 1, "a longer value", 10);
    let tables = [store.table().id, other.id];
    let seen = seen(store, "-Data.db", |engine| engine.flush_tables(&tables).unwrap());
    let [first, second] = &seen[..] else {
        panic!("two SSTables: {seen:?}")
    };
    assert!(
        0 < first.done_bytes && first.done_bytes < first.total_bytes,
        "{first:?}"
    );
    assert_eq!(second.done_bytes, second.total_bytes);
    assert_eq!((first.kind, first.total_bytes), ("Flush", second.total_bytes));
}

#[test]
fn a_snapshot_shows_how_many_sstables_of_all_tables_are_linked() {
    let store = new_store(32, small_options());
    let other = store.add_table("other");
    store.write(put(&other, "a", 1, "v", 10));
    store.put("a", 1, "v", 10);
    store.engine.flush_all().unwrap();
    store.put("b", 1, "v", 10);
    let order = SnapshotOrder {
        tag: "s".to_owned(),
        tables: vec![store.table().id, other.id],
        memtables: SnapshotMemtables::LeftOut,
        ..SnapshotOrder::default()
    };
    let seen = seen(store, "schema.cql", |engine| engine.snapshot(&order).unwrap());
    let shares: Vec<u64> = seen
        .iter()
        .map(|facts| facts.done_bytes * 100 / facts.total_bytes)
        .collect();
    assert_eq!(shares, [50, 100], "{seen:?}");
    assert!(seen.iter().all(|facts| facts.kind == "Snapshot"));
}
