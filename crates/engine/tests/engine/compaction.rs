//! Compactions as operators see them: what they make, what they may be asked, how they are held back.

use std::path::PathBuf;

use ilion_engine::{CompactionRequest, EngineOptions, Error, MajorOutput, TaskChoice};
use ilion_types::Token;

use crate::support::{Store, compact_with, decorated, delete_row, new_store, small_options};

fn compacting() -> EngineOptions {
    EngineOptions {
        is_compacting: true,
        ..small_options()
    }
}

/// Flushes so often, each time with the same partitions.
fn flush_often(store: &Store, flushes: i32) {
    for flush in 0..flushes {
        for key in 0..20 {
            store.put(&format!("k{key}"), flush, "v", 10 + i64::from(flush));
        }
        store.flush();
    }
}

fn rows(store: &Store) -> usize {
    store.contents().values().map(|rows| rows.len()).sum()
}

const SHARDED: [(&str, &str); 3] = [
    ("class", "UnifiedCompactionStrategy"),
    ("base_shard_count", "4"),
    ("min_sstable_size", "0B"),
];

#[test]
fn a_sharded_compaction_makes_an_sstable_for_each_part_of_the_ring() {
    let store = new_store(1, compacting());
    store.alter(&compact_with(&SHARDED));
    flush_often(&store, 4);
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 4);
    assert_eq!(rows(&store), 80);
    let contents = store.contents();
    let store = store.restart(compacting());
    assert_eq!((store.sstables(), store.contents()), (4, contents));
}

#[test]
fn a_major_compaction_of_shards_leaves_them_apart() {
    let store = new_store(2, small_options());
    store.alter(&compact_with(&SHARDED));
    flush_often(&store, 3);
    let table = store.table().id;
    let major = CompactionRequest::Major(MajorOutput::AsUsual);
    assert_eq!(store.engine.compact_as(table, &major).unwrap(), 1);
    assert_eq!(store.engine.compact_as(table, &major).unwrap(), 4);
    assert_eq!((store.sstables(), rows(&store)), (4, 60));
}

#[test]
fn leveled_compaction_keeps_the_size_of_its_sstables() {
    let store = new_store(3, compacting());
    store.alter(&compact_with(&[
        ("class", "LeveledCompactionStrategy"),
        ("sstable_size_in_mb", "1"),
    ]));
    let mut random = ilion_env::Seeded::new(3);
    for flush in 0..4_i32 {
        for key in 0..300 {
            let value: String = (0..2500)
                .map(|_| char::from(b'!' + random.below(90) as u8))
                .collect();
            store.put(&format!("k{key}"), flush, &value, 10);
        }
        store.flush();
    }
    store.engine.wait_idle();
    assert!(store.sstables() > 1, "{:?}", store.facts());
    let largest = store.facts().sstable_bytes / store.sstables();
    assert!(largest < 2 << 20, "{:?}", store.facts());
    assert_eq!(rows(&store), 1200);
}

#[test]
fn options_hold_as_soon_as_they_are_altered() {
    let store = new_store(4, compacting());
    flush_often(&store, 3);
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 3);
    let class = ("class", "SizeTieredCompactionStrategy");
    store.alter(&compact_with(&[
        class,
        ("min_threshold", "2"),
        ("enabled", "false"),
    ]));
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 3);
    store.alter(&compact_with(&[class, ("min_threshold", "2")]));
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 1);
}

#[test]
fn automatic_compaction_is_switched_off_and_on() {
    let store = new_store(5, compacting());
    let table = store.table().id;
    store.engine.set_auto_compaction(table, false).unwrap();
    flush_often(&store, 5);
    store.engine.wait_idle();
    assert_eq!((store.sstables(), store.facts().pending_compactions), (5, 1));
    store.engine.set_auto_compaction(table, true).unwrap();
    store.engine.wait_idle();
    assert_eq!((store.sstables(), store.facts().pending_compactions), (1, 0));
}

#[test]
fn only_the_files_that_were_named_are_compacted() {
    let store = new_store(6, small_options());
    flush_often(&store, 4);
    let table = store.table().id;
    let names: Vec<PathBuf> = store.files().into_iter().take(2).map(PathBuf::from).collect();
    assert_eq!(store.engine.table_with_file(&names[0]).unwrap(), table);
    let request = CompactionRequest::Files(names.clone());
    assert_eq!(store.engine.compact_as(table, &request).unwrap(), 1);
    assert_eq!((store.sstables(), rows(&store)), (3, 80));
    let gone = store.engine.compact_as(table, &request);
    assert!(matches!(gone, Err(Error::Refused(_))), "{gone:?}");
    assert!(store.engine.table_with_file(&names[0]).is_err());
}

#[test]
fn only_files_with_tokens_of_the_range_are_compacted() {
    let store = new_store(7, small_options());
    for key in ["a", "a", "b", "b"] {
        store.put(key, 1, "v", 10);
        store.flush();
    }
    let token = decorated("a").token;
    let Token::Murmur3(hash) = token else {
        panic!("{token}");
    };
    let request = CompactionRequest::Range(Token::Murmur3(hash - 1), token);
    store.engine.compact_as(store.table().id, &request).unwrap();
    assert_eq!(store.sstables(), 3);
    // The end of the ring lies between these two.
    let around = CompactionRequest::Range(Token::Murmur3(hash), Token::Murmur3(hash - 1));
    store.engine.compact_as(store.table().id, &around).unwrap();
    assert_eq!(store.sstables(), 2);
}

/// Compactions that pause at their first look at the clock.
fn halted(seed: u64) -> Store {
    let store = new_store(seed, small_options());
    for row in 0..6000 {
        store.write_without_waiting("k", row, "v", 10);
    }
    store.flush();
    store.put("k", 1, "v", 11);
    store.flush();
    store.engine.set_compaction_throughput(Some(1));
    store
}

#[test]
fn a_compaction_that_is_stopped_leaves_everything_as_it_was() {
    let store = halted(8);
    let table = store.table().id;
    let files = store.files();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| store.engine.compact(table));
        while store.engine.compactions().is_empty() {
            std::thread::yield_now();
        }
        let running = &store.engine.compactions()[0];
        assert_eq!((running.table.as_str(), running.sstables), ("t", 2));
        assert_eq!(store.engine.stop_compactions(TaskChoice::WithId(running.id)), 1);
        let outcome = compaction.join().unwrap();
        assert!(
            matches!(&outcome, Err(Error::Refused(reason)) if reason.contains("stopped")),
            "{outcome:?}"
        );
    });
    assert_eq!(store.files(), files);
    assert_eq!(store.engine.facts().compactions_failed, 0);
    store.engine.set_compaction_throughput(None);
    store.engine.compact(table).unwrap();
    assert_eq!((store.sstables(), rows(&store)), (1, 6000));
}

#[test]
fn asking_for_a_compaction_takes_the_place_of_one_that_goes_on() {
    let store = halted(9);
    let table = store.table().id;
    store.alter(&compact_with(&[
        ("class", "SizeTieredCompactionStrategy"),
        ("min_threshold", "2"),
    ]));
    let store = store.restart(EngineOptions {
        compaction_bytes_per_sec: Some(1),
        ..compacting()
    });
    store.flush();
    while store.engine.compactions().is_empty() {
        std::thread::yield_now();
    }
    store.engine.set_compaction_throughput(None);
    store.engine.compact(table).unwrap();
    assert_eq!((store.sstables(), rows(&store)), (1, 6000));
}

#[test]
fn a_compaction_that_would_fill_the_disk_is_put_off() {
    let store = new_store(10, compacting());
    let free = |store: &Store| ilion_env::Env::free_space_bytes(&store.env, "/".as_ref()).unwrap();
    let capacity = free(&store);
    store.env.set_capacity_bytes(20 << 20);
    flush_often(&store, 4);
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 4, "less than what is kept free is free");
    store.env.set_capacity_bytes(capacity);
    store.env.advance_micros(61_000_000);
    store.put("k", 1, "v", 10);
    store.flush();
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 1);
}

#[test]
fn expired_files_go_without_being_read() {
    let store = new_store(11, compacting());
    store.alter(&compact_with(&[("class", "TimeWindowCompactionStrategy")]));
    store.write(delete_row(&store.table(), "dead", 1, 5));
    store.flush();
    store.engine.wait_idle();
    store.env.advance_micros(11 * 86_400 * 1_000_000);
    let read = store.engine.facts().compacted_bytes_in;
    store.put("k", 1, "v", 10);
    store.flush();
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 1);
    assert_eq!(store.engine.facts().compacted_bytes_in, read);
    assert_eq!(rows(&store), 1);
}

#[test]
fn a_file_full_of_tombstones_is_compacted_alone() {
    let store = new_store(12, compacting());
    let class = ("class", "SizeTieredCompactionStrategy");
    store.alter(&compact_with(&[class, ("tombstone_compaction_interval", "0")]));
    store.put("k", 1, "v", 10);
    for row in 2..10 {
        store.write(delete_row(&store.table(), "k", row, 5));
    }
    store.flush();
    store.engine.wait_idle();
    let before = store.facts().sstable_bytes;
    store.env.advance_micros(11 * 86_400 * 1_000_000);
    store.alter(&compact_with(&[class, ("tombstone_compaction_interval", "1")]));
    store.engine.wait_idle();
    assert!(store.facts().sstable_bytes < before);
    assert_eq!((store.sstables(), rows(&store)), (1, 1));
}

#[test]
fn a_restart_does_not_replay_deletions_that_were_purged() {
    let mut store = new_store(14, small_options());
    store.write(delete_row(&store.table(), "k", 1, 20));
    store.flush();
    store.env.advance_micros(11 * 86_400 * 1_000_000);
    let major = CompactionRequest::Major(MajorOutput::AsUsual);
    store.engine.compact_as(store.table().id, &major).unwrap();
    assert_eq!(store.sstables(), 0);
    store.put("k", 1, "older than the deletion", 10);
    for _ in 0..2 {
        assert_eq!(rows(&store), 1);
        store = store.restart(small_options());
    }
}

#[test]
fn sstables_that_a_read_may_touch_stay_few_during_a_burst() {
    let options = EngineOptions {
        // Each flush is tiny, so that there are hundreds.
        memtable_bytes_max: 32 << 10,
        compaction_threads: 1,
        ..compacting()
    };
    let store = new_store(13, options);
    store.alter(&compact_with(&[("class", "UnifiedCompactionStrategy")]));
    let most = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (store, most) = (&store, &most);
            scope.spawn(move || {
                for row in 0..1500 {
                    let key = format!("k{}", row % 50);
                    store.write_without_waiting(&key, writer * 10_000 + row, &"v".repeat(200), 10);
                    if row % 10 == 0 {
                        let facts = store.facts();
                        most.fetch_max(facts.sstables, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let most = most.into_inner();
    let flushes = store.engine.facts().flushes;
    assert!(flushes > 60, "{flushes} flushes are no burst");
    assert!(most < 48, "{most} SSTables of {flushes} flushes");
    store.engine.wait_idle();
    assert_eq!(rows(&store), 6000);
    assert_eq!(store.facts().compaction_debt, 0);
}
