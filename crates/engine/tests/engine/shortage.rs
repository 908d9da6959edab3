//! A full disk, too few file descriptors, too little memory: nothing is lost, and it goes on by itself.

use ilion_engine::{Engine, EngineOptions, Error};
use ilion_env::{CrashRule, Env, FaultEnv};

use crate::support::{Store, create_table, drop_table, new_faulty_store, open, put, small_options};

/// Far more calls than a flush makes.
const CALLS_MAX: u32 = 500;

/// Everything in the directory of the table.
fn files(store: &Store) -> Vec<String> {
    let entries = store.env.list(&store.directory()).unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn whatever_call_of_a_flush_lacks_something_nothing_is_lost_and_the_next_flush_succeeds() {
    for what in [
        "no_descriptors any",
        "no_space write",
        "no_space create",
        "no_memory open",
    ] {
        let (store, faults) = new_faulty_store(1, small_options());
        let mut failures = 0;
        for call in 1..CALLS_MAX {
            let clustering = i32::try_from(call).unwrap();
            store.put("a", clustering, "acknowledged", 10);
            faults.add(&format!("{what} \"*\" at {call}")).unwrap();
            let flushed = store.engine.flush(store.table().id);
            faults.clear();
            assert_eq!(store.engine.failure(), None, "{what} at {call}: {flushed:?}");
            assert_eq!(store.partition("a", false).len(), call as usize);
            store.put("b", clustering, "taken meanwhile", 10);
            let Err(error) = flushed else {
                // A failure while it tidies up is none of the flush.
                if call > failures + 20 {
                    break;
                }
                continue;
            };
            failures = call;
            assert!(error.is_shortage(), "{what} at {call}: {error}");
            if call.is_multiple_of(5) {
                let after = store.env.crash(CrashRule::KeepAll);
                let after = open(&after, small_options()).unwrap();
                assert_eq!(after.partition("a", false).len(), call as usize);
            }
            store.flush();
            assert_eq!(store.engine.stalled(), None);
            let logs = files(&store).into_iter().filter(|name| name.contains("_txn_"));
            assert!(logs.count() <= 1, "{what} at {call}: what failed is cleaned up");
        }
        assert!(failures >= 3, "{what}: {failures}");
        let contents = store.contents();
        assert_eq!(store.restart(small_options()).contents(), contents);
    }
}

#[test]
fn a_flush_that_failed_is_tried_again_by_itself() {
    let (store, faults) = new_faulty_store(2, small_options());
    store.put("a", 1, "acknowledged", 10);
    faults.add("no_descriptors create \"*-Data.db\"").unwrap();
    assert!(store.engine.flush(store.table().id).is_err());
    assert!(store.engine.stalled().unwrap().contains("Too many open files"));
    let written = files(&store);
    assert!(written.is_empty(), "{written:?}");
    faults.clear();
    while store.engine.stalled().is_some() {
        std::thread::yield_now();
    }
    assert_eq!(store.sstables(), 1);
}

#[test]
fn writes_are_refused_when_memtables_are_full_and_taken_when_there_is_room() {
    let options = EngineOptions {
        memtable_bytes_max: 1 << 20,
        ..small_options()
    };
    let (store, faults) = new_faulty_store(3, options.clone());
    faults.add("no_space write \"*-Data.db\"").unwrap();
    let value = "v".repeat(10_000);
    let put = |clustering| put(&store.table(), "a", clustering, &value, 10);
    let mut taken = 0;
    let refused = loop {
        match store.engine.apply(&[put(taken)]) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1000, "memory has a limit");
    };
    assert!(matches!(&refused, Error::Stalled(_)), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("No space left on device") && text.contains("tried again"),
        "{text}"
    );
    assert_eq!(store.partition("a", false).len(), taken as usize);
    faults.clear();
    while store.engine.stalled().is_some() {
        std::thread::yield_now();
    }
    store.write(put(taken));
    let contents = store.contents();
    assert_eq!(contents["a"].len(), taken as usize + 1);
    assert_eq!(store.restart(options).contents(), contents);
}

#[test]
fn a_node_starts_on_a_full_disk_reads_and_goes_on_when_there_is_room() {
    // The second does not fit its memtables into memory.
    for memtable_bytes_max in [small_options().memtable_bytes_max, 100 << 10] {
        let (store, _) = new_faulty_store(4, small_options());
        let value = "v".repeat(1000);
        (0..300).for_each(|clustering| store.put("a", clustering, &value, 10));
        let contents = store.contents();
        let env = store.close();
        let used = u64::MAX - 1 - {
            env.set_capacity_bytes(u64::MAX - 1);
            env.free_space_bytes("/ilion".as_ref()).unwrap()
        };
        env.set_capacity_bytes(used);
        let options = EngineOptions {
            memtable_bytes_max,
            ..small_options()
        };
        let store = open(&env, options.clone()).unwrap();
        assert_eq!(store.contents(), contents);
        let late = put(&store.table(), "a", 1000, &value, 10);
        let refused = loop {
            // What a sealed segment of the log gave back may take some.
            match store.engine.apply(std::slice::from_ref(&late)) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(refused.is_shortage(), "{refused}");
        env.set_capacity_bytes(u64::MAX);
        while store.engine.stalled().is_some() {
            std::thread::yield_now();
        }
        store.write(late);
        let contents = store.contents();
        assert_eq!(contents["a"].len(), 301);
        assert_eq!(store.restart(options).contents(), contents);
    }
}

#[test]
fn a_table_whose_directory_cannot_be_made_is_refused_and_can_be_made_later() {
    let (store, faults) = new_faulty_store(7, small_options());
    faults.add("no_space create \"other-*\"").unwrap();
    assert!(store.engine.alter_schema(&create_table("ks", "other")).is_err());
    assert!(!store.has_table("other"));
    faults.clear();
    let other = store.add_table("other");
    store.write(put(&other, "a", 1, "x", 10));
    store.engine.flush(other.id).unwrap();
    let store = store.restart(small_options());
    assert!(store.has_table("other"));
}

/// Options of a node that takes no snapshots by itself.
fn without_snapshots() -> EngineOptions {
    let mut options = small_options();
    options.snapshots.is_automatic = false;
    options
}

#[test]
fn truncating_and_dropping_make_room_on_a_full_disk() {
    let (store, faults) = new_faulty_store(8, without_snapshots());
    let other = store.add_table("other");
    store.write(put(&other, "a", 1, "x", 10));
    store.engine.flush(other.id).unwrap();
    for round in 0..3 {
        store.put("a", round, "v", 10);
        store.flush();
    }
    let all = ilion_rows::ClusteringFilter::all();
    let reader = store
        .engine
        .read_range(&other, &ilion_rows::KeyRange::all(), &all);
    let stores = store.engine.tables();
    let of_other = stores.iter().find(|store| store.schema().id == other.id).unwrap();
    let directory = of_other.directory().to_path_buf();
    drop(stores);
    faults.add("no_space write \"*_txn_*\"").unwrap();
    faults.add("no_space create \"*_txn_*\"").unwrap();
    store.engine.truncate(store.table().id).unwrap();
    assert!(files(&store).is_empty(), "{:?}", files(&store));
    store.alter(&drop_table("ks", "other"));
    assert!(!store.has_table("other"));
    drop(reader);
    // What somebody read is removed later.
    let is_there = || store.env.list(&directory).is_ok_and(|files| !files.is_empty());
    while is_there() {
        std::thread::yield_now();
    }
    let store = store.restart(small_options());
    assert!(store.contents().is_empty());
    assert!(!store.has_table("other"));
}

#[test]
fn a_failed_sync_is_final_whatever_its_reason() {
    for rule in [
        "fail sync \"*-Data.db\"",
        "no_space sync \"*-Index.db\"",
        "no_space sync \"*_txn_*\" at 2",
    ] {
        let (store, faults) = new_faulty_store(5, small_options());
        store.put("a", 1, "acknowledged", 10);
        faults.add(rule).unwrap();
        assert!(store.engine.flush(store.table().id).is_err(), "{rule}");
        faults.clear();
        let refused = store.engine.apply(&[put(&store.table(), "a", 2, "late", 11)]);
        assert!(matches!(refused, Err(Error::Stopped(_))), "{rule}: {refused:?}");
        let after = open(&store.env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
        assert_eq!(after.partition("a", false), [(1, "acknowledged".to_owned())]);
    }
}

#[test]
fn a_compaction_without_room_leaves_its_inputs_and_no_files() {
    let (store, faults) = new_faulty_store(6, small_options());
    for round in 0..3 {
        store.put("a", round, "v", 10);
        store.flush();
    }
    let before = files(&store);
    for call in 1..60 {
        faults.add(&format!("no_space write \"*\" at {call}")).unwrap();
        let compacted = store.engine.compact(store.table().id);
        faults.clear();
        assert_eq!(store.engine.failure(), None, "at {call}: {compacted:?}");
        if compacted.is_ok() {
            assert_eq!(store.sstables(), 1);
            assert!(call > 3);
            return;
        }
        assert_eq!(store.partition("a", false).len(), 3);
        assert_eq!(files(&store), before, "at {call}");
    }
    panic!("no compaction succeeded");
}

#[test]
fn a_log_without_room_for_a_record_refuses_writes_and_has_everything_when_there_is_room_again() {
    for rule in [
        "no_space write \"ilion-1-*\"",
        "full_midway write \"ilion-1-*\"",
        "no_memory write \"ilion-1-*\"",
    ] {
        let (store, faults) = new_faulty_store(9, small_options());
        store.put("a", 1, "acknowledged", 10);
        faults.add(rule).unwrap();
        let other = store.engine.alter_schema(&create_table("ks", "other"));
        assert!(other.is_err_and(|error| error.is_shortage()), "{rule}");
        assert!(!store.has_table("other"), "{rule}");
        let emptied = store.engine.truncate(store.table().id);
        assert!(emptied.is_err_and(|error| error.is_shortage()), "{rule}");
        assert_eq!(store.partition("a", false).len(), 1, "{rule}");
        faults.clear();
        store.put("a", 2, "acknowledged", 10);

        faults.add(rule).unwrap();
        let position = store
            .engine
            .apply(&[put(&store.table(), "a", 3, "told to have failed", 10)]);
        let position = position.unwrap().unwrap();
        let failed = store.engine.wait_durable(position).unwrap_err();
        assert!(failed.is_shortage(), "{rule}: {failed}");
        let refused = store.engine.apply(&[put(&store.table(), "a", 4, "refused", 10)]);
        assert!(refused.is_err_and(|error| error.is_shortage()), "{rule}");
        let after = open(&store.env.crash(CrashRule::KeepAll), small_options()).unwrap();
        assert_eq!(after.partition("a", false).len(), 2, "{rule}");
        drop(after);
        faults.clear();

        store.put("a", 5, "acknowledged", 10);
        store.engine.wait_durable(position).unwrap();
        assert_eq!(store.engine.failure(), None, "{rule}");
        store.alter(&create_table("ks", "other"));
        let contents = store.contents();
        assert_eq!(contents["a"].len(), 4, "{rule}");
        let store = store.restart(small_options());
        assert_eq!(store.contents(), contents, "{rule}");
        assert!(store.has_table("other"), "{rule}");
    }
}

#[test]
fn a_start_without_enough_descriptors_ends_and_sets_no_table_aside() {
    let (store, _) = new_faulty_store(10, small_options());
    store.put("a", 1, "acknowledged", 10);
    store.flush();
    let contents = store.contents();
    let env = store.close();
    for rule in [
        "no_descriptors list \"t-*\"",
        "no_descriptors open \"nb-1-big-*\"",
        "no_memory open \"nb-1-big-*\"",
    ] {
        let faults = FaultEnv::new(env.shared());
        faults.add(rule).unwrap();
        let refused = Engine::open(faults, small_options()).map(drop);
        let message = refused.unwrap_err().to_string();
        let is_told = message.contains("Too many open files") || message.contains("Cannot allocate memory");
        assert!(is_told, "{rule}: {message}");
    }
    let store = open(&env, small_options()).unwrap();
    assert_eq!(
        (store.engine.set_aside(), store.contents()),
        (Vec::new(), contents)
    );
}

#[test]
fn what_was_truncated_stays_away_though_its_files_could_not_be_removed_before_a_restart() {
    let (store, faults) = new_faulty_store(11, small_options());
    store.put("a", 1, "to be emptied", 10);
    store.flush();
    for rule in [
        "no_descriptors create \"*_txn_compaction_*\"",
        "fail remove \"nb-1-big-*\"",
    ] {
        faults.add(rule).unwrap();
    }
    store.engine.truncate(store.table().id).unwrap();
    assert!(files(&store).iter().any(|name| name == "nb-1-big-Data.db"));
    store.put("b", 1, "after it", 11);
    store.engine.drain().unwrap();
    let contents = store.contents();
    let after = store.env.crash(CrashRule::KeepAll);
    assert_eq!(open(&after, small_options()).unwrap().contents(), contents);
    assert_eq!(store.restart(small_options()).contents(), contents);
}
