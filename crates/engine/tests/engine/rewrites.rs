//! SSTables that are written anew on request, and what operators change of compactions while the engine runs.

use bytes::Bytes;
use ilion_engine::{EngineOptions, Granularity, Rewrite};

use crate::support::{
    Store, alter_with, compact_with, delete_partition, delete_range, delete_row, new_store, put,
    small_options,
};

/// Rows, and in newer SSTables what deletes or overwrites most of them. The deletions are within gc grace.
fn littered(seed: u64) -> Store {
    let store = new_store(seed, small_options());
    // Deletions are of 2023.
    store.env.set_micros(1_700_000_100_000_000);
    let table = store.table();
    let value = "v".repeat(500);
    for key in ["a", "b", "c", "d"] {
        for row in 0..20 {
            store.put(key, row, &value, 10);
        }
    }
    store.flush();
    store.write(delete_partition(&table, "a", 20));
    store.write(delete_range(&table, "b", 0, 18, 20));
    store.write(delete_row(&table, "c", 3, 20));
    store.flush();
    for row in 0..20 {
        store.write(put(&table, "d", row, "new", 30));
    }
    store.flush();
    store
}

/// Uncompressed bytes of its rows.
fn bytes(store: &Store) -> u64 {
    store.engine.table_details(store.table().id).unwrap().data_bytes
}

#[test]
fn garbage_goes_by_granularity_and_no_row_changes() {
    let store = littered(41);
    let (table, contents) = (store.table().id, store.contents());
    assert_eq!(store.sstables(), 3);
    // What covers it is in other SSTables, so that rewriting alone finds nothing.
    let mut before = bytes(&store);
    store.engine.rewrite(table, Rewrite::All).unwrap();
    assert!(bytes(&store) * 10 > before * 9);
    for (granularity, at_least) in [(Granularity::Row, 19_000), (Granularity::Cell, 9_000)] {
        before = bytes(&store);
        assert_eq!(store.engine.collect_garbage(table, granularity).unwrap(), 3);
        let freed = before.saturating_sub(bytes(&store));
        assert!(
            freed > at_least,
            "{granularity:?} freed {freed} of {before} bytes"
        );
        assert_eq!((store.contents(), store.sstables()), (contents.clone(), 3));
    }
    assert_eq!(store.restart(small_options()).contents(), contents);
}

#[test]
fn tombstones_of_given_partitions_go_within_gc_grace() {
    let store = littered(42);
    let (table, contents) = (store.table().id, store.contents());
    let tombstones = |store: &Store| {
        let checked = store.engine.table_details(store.table().id).unwrap();
        checked.cells.count() + checked.facts.estimated_partitions
    };
    let before = tombstones(&store);
    let key = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert_eq!(store.engine.compact_keys(table, &[key("nobody")]).unwrap(), 0);
    assert_eq!(
        store.engine.compact_keys(table, &[key("a"), key("b")]).unwrap(),
        1
    );
    assert_eq!(store.sstables(), 2, "the third one has neither");
    assert!(tombstones(&store) < before);
    assert_eq!(store.contents(), contents);
    // Of the deletions, only that of the row in c is left: older writes appear again.
    for (key, row) in [("a", 1), ("b", 1), ("c", 3)] {
        store.put(key, row, "late", 15);
    }
    assert_eq!(store.row("a", 1).as_deref(), Some("late"));
    assert_eq!(store.row("b", 1).as_deref(), Some("late"));
    assert_eq!(store.row("c", 3), None);
}

#[test]
fn only_sstables_of_another_compression_are_written_anew() {
    let store = littered(43);
    let table = store.table().id;
    let recompress = || store.engine.rewrite(table, Rewrite::OtherCompression).unwrap();
    // Flushes have shorter chunks than the table asks for.
    assert_eq!((recompress(), recompress()), (3, 0));
    let zstd = [("class", "ZstdCompressor"), ("chunk_length_in_kb", "4")];
    store.alter(&alter_with("compression", &zstd));
    let contents = store.contents();
    assert_eq!((recompress(), recompress()), (3, 0));
    assert_eq!((store.contents(), store.sstables()), (contents, 3));
}

#[test]
fn thresholds_hold_until_the_next_start() {
    let options = || EngineOptions {
        is_compacting: true,
        ..small_options()
    };
    let store = new_store(44, options());
    let size_tiered = compact_with(&[("class", "SizeTieredCompactionStrategy"), ("max_threshold", "16")]);
    store.alter(&size_tiered);
    let table = store.table().id;
    assert_eq!(store.engine.compaction_thresholds(table).unwrap(), (4, 16));
    store.engine.set_compaction_thresholds(table, 2, 3).unwrap();
    assert_eq!(store.engine.compaction_thresholds(table).unwrap(), (2, 3));
    for round in 0..2 {
        store.put("a", round, "v", 10);
        store.flush();
    }
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 1);
    for (min, max) in [(1, 4), (4, 3), (0, 0)] {
        let error = store
            .engine
            .set_compaction_thresholds(table, min, max)
            .unwrap_err();
        assert!(error.to_string().contains("must be at least 2"), "{error}");
    }
    let store = store.restart(options());
    assert_eq!(store.engine.compaction_thresholds(table).unwrap(), (4, 16));
    store.alter(&compact_with(&[("class", "LeveledCompactionStrategy")]));
    let error = store.engine.set_compaction_thresholds(table, 2, 3).unwrap_err();
    assert!(error.to_string().contains("has no thresholds"), "{error}");
}

#[test]
fn compactions_get_more_and_fewer_threads() {
    let store = new_store(
        45,
        EngineOptions {
            is_compacting: true,
            ..small_options()
        },
    );
    for threads in [5, 1, 3] {
        store.engine.set_compaction_threads(threads).unwrap();
        assert_eq!(store.engine.facts().compaction_threads, threads as u64);
        for round in 0..8 {
            store.put("a", round, "v", 10);
            store.flush();
        }
        store.engine.wait_idle();
        assert!(store.sstables() < 8);
    }
    // It ends with them.
    let contents = store.contents();
    assert_eq!(store.restart(small_options()).contents(), contents);
}
