//! Tables over their life: written, flushed, compacted, altered, truncated, dropped, opened again.

use ilion_commitlog::CommitLog;
use ilion_engine::{Engine, Error};
use ilion_env::CrashRule;

use crate::support::{
    Store, add_column, create_keyspace, create_table, delete_partition, delete_row, drop_table,
    new_faulty_store, new_store, open, put, small_options,
};

#[test]
fn what_is_written_is_read_before_and_after_a_flush() {
    let store = new_store(1, small_options());
    store.put("a", 1, "x", 10);
    store.put("a", 2, "y", 10);
    assert_eq!(
        store.partition("a", false),
        [(1, "x".to_owned()), (2, "y".to_owned())]
    );
    store.flush();
    store.put("a", 1, "z", 11);
    assert_eq!(store.sstables(), 1);
    assert_eq!(
        store.partition("a", false),
        [(1, "z".to_owned()), (2, "y".to_owned())]
    );
    assert_eq!(
        store.partition("a", true),
        [(2, "y".to_owned()), (1, "z".to_owned())]
    );
    assert_eq!(store.partition("b", false), []);
}

#[test]
fn a_restart_replays_what_was_not_flushed() {
    let store = new_store(2, small_options());
    store.put("a", 1, "flushed", 10);
    store.flush();
    store.put("a", 2, "logged", 10);
    let contents = store.contents();
    let store = store.restart(small_options());
    assert_eq!(store.contents(), contents);
    assert_eq!(store.sstables(), 1);
    let again = store.restart(small_options());
    assert_eq!(again.contents(), contents);
}

fn rows_in(store: &Store, table: &std::sync::Arc<ilion_schema::TableSchema>) -> usize {
    let all = ilion_rows::ClusteringFilter::all();
    let key = crate::support::decorated("a");
    let mut cursor = store.engine.read_partition(table, &key, &all).unwrap();
    let mut rows = 0;
    if cursor.next_partition().unwrap().is_some() {
        while cursor.next_unfiltered().unwrap().is_some() {
            rows += 1;
        }
    }
    rows
}

/// A node with many tables of one row each.
fn with_tables(store: &Store, count: usize) {
    for number in 0..count {
        let name = format!("t{number}");
        let table = store.add_table(&name);
        store.write(put(&table, "a", 1, "x", 10));
    }
}

fn assert_all_have_their_row(store: &Store, count: usize) {
    let schema = store.engine.schema();
    for number in 0..count {
        let table = schema.table("ks", &format!("t{number}")).unwrap();
        assert_eq!(rows_in(store, table), 1, "t{number}");
    }
}

#[test]
fn many_tables_are_drained_together_and_the_next_start_replays_nothing() {
    let store = new_store(14, small_options());
    with_tables(&store, 150);
    store.engine.drain().unwrap();
    let facts = store.engine.table_facts();
    let flushed = facts
        .iter()
        .filter(|facts| facts.keyspace == "ks" && facts.sstables == 1);
    assert_eq!(flushed.count(), 150);
    let store = store.restart(small_options());
    let facts = store.engine.table_facts();
    let replayed = facts
        .iter()
        .filter(|facts| facts.keyspace == "ks" && facts.memtable_bytes > 0);
    assert_eq!(replayed.count(), 0);
    assert_all_have_their_row(&store, 150);
}

#[test]
fn a_flush_of_many_tables_that_fails_says_so_and_loses_nothing() {
    let (store, faults) = new_faulty_store(15, small_options());
    let env = store.env.clone();
    with_tables(&store, 150);
    faults.add("fail write \"*-Data.db\" at 70").unwrap();
    assert!(store.engine.flush_all().is_err());
    assert!(store.engine.failure().is_some());
    assert_all_have_their_row(&store, 150);
    drop(store);
    let after = open(&env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
    assert_all_have_their_row(&after, 150);
}

#[test]
fn a_change_of_the_schema_leaves_the_tables_that_it_does_not_touch_as_they_are() {
    let store = new_store(16, small_options());
    with_tables(&store, 3);
    let before = store.engine.schema();
    store.alter(&create_table("ks", "other"));
    let after = store.engine.schema();
    for name in ["t", "t0", "t1", "t2"] {
        let (before, after) = (before.table("ks", name), after.table("ks", name));
        assert!(std::sync::Arc::ptr_eq(before.unwrap(), after.unwrap()), "{name}");
    }
    store.alter(&drop_table("ks", "t1"));
    assert!(
        store
            .engine
            .tables()
            .iter()
            .all(|table| table.schema().name != "t1")
    );
    let version = store.engine.schema().version;
    let store = store.restart(small_options());
    assert_eq!(store.engine.schema().version, version);
}

#[test]
fn a_start_after_many_changes_of_the_schema_reads_it_a_few_times() {
    let store = new_store(8, small_options());
    with_tables(&store, 60);
    store.alter(&drop_table("ks", "t7"));
    let store = store.restart(small_options());
    let readings = store.engine.facts().schema_readings;
    assert!(readings <= 3, "the schema was read {readings} times");
    let schema = store.engine.schema();
    for name in (0..60).map(|number| format!("t{number}")) {
        let table = schema.table("ks", &name);
        assert_eq!(table.is_none(), name == "t7", "{name}");
        assert!(table.is_none_or(|table| rows_in(&store, table) == 1), "{name}");
    }
}

#[test]
fn a_replay_that_meets_schema_changes_truncations_and_data_is_what_was() {
    let store = new_store(9, small_options());
    store.put("a", 1, "gone", 10);
    store.alter(&add_column("more"));
    store.put("a", 2, "gone too", 10);
    store.engine.truncate(store.table().id).unwrap();
    store.put("a", 3, "kept", 10);
    let other = store.add_table("other");
    store.write(put(&other, "a", 1, "x", 10));
    store.alter(&drop_table("ks", "other"));
    store.alter(&create_table("ks", "other"));
    store.put("a", 4, "kept", 10);
    let contents = store.contents();
    assert_eq!(contents["a"].len(), 2);
    let store = store.restart(small_options());
    assert_eq!(store.contents(), contents);
    let other = store.table_named("other");
    assert_eq!(rows_in(&store, &other), 0, "it is another table of the same name");
    assert_eq!(store.restart(small_options()).contents(), contents);
}

#[test]
fn a_replay_applies_records_of_several_tables_whatever_became_of_the_first_one() {
    let store = new_store(17, small_options());
    let names = ["first", "second", "third"];
    let tables = names.map(|name| store.add_table(name));
    // In all 54 MB, more than a batch of the replay has.
    let large = "y".repeat(8 << 10);
    for number in 0..20_000 {
        let key = format!("k{number}");
        let of = |table| put(table, &key, 1, "x", 10);
        let record = match number % 3 {
            0 => vec![of(&tables[0]), of(&tables[1])],
            1 => vec![of(&tables[1]), of(&tables[2]), of(&tables[0])],
            _ => vec![put(&tables[2], &key, 1, &large, 10)],
        };
        store.engine.apply(&record).unwrap();
    }
    store.alter(&drop_table("ks", "first"));
    let store = store.restart(small_options());
    assert!(!store.has_table("first"));
    let row = |value: &str| vec![(1, value.to_owned())];
    for number in 0..20_000 {
        let rows =
            ["second", "third"].map(|name| store.rows_of(&store.table_named(name), &format!("k{number}")));
        let expected = match number % 3 {
            0 => [row("x"), vec![]],
            1 => [row("x"), row("x")],
            _ => [vec![], row(&large)],
        };
        assert!(rows == expected, "k{number}");
    }
}

#[test]
fn a_start_after_a_drain_has_nothing_to_replay() {
    let store = new_store(10, small_options());
    store.put("a", 1, "x", 10);
    let contents = store.contents();
    store.engine.drain().unwrap();
    let env = store.close();
    let mut records = 0;
    let options = small_options();
    let directory = options.commitlog_dir.clone();
    let log = CommitLog::open(env.shared(), &directory, options.commit_log, &mut |_, _| {
        records += 1;
        Ok(())
    });
    log.unwrap();
    assert_eq!(records, 0);
    assert_eq!(open(&env, small_options()).unwrap().contents(), contents);
}

#[test]
fn a_flushed_table_lets_go_of_its_log() {
    let store = new_store(3, small_options());
    let value = "v".repeat(2000);
    for round in 0..500 {
        store.put("a", round, &value, 10);
    }
    let before = store.engine.facts().commit_log.segments;
    store.engine.flush_all().unwrap();
    let after = store.engine.facts().commit_log.segments;
    assert!(before > 3 && after <= 2, "{before} segments, then {after}");
}

#[test]
fn a_table_of_few_rows_does_not_keep_the_log_of_others() {
    let store = new_store(4, small_options());
    let other = store.add_table("other");
    store.write(put(&other, "a", 1, "x", 10));
    let value = "v".repeat(2000);
    let segments = || store.engine.facts().commit_log.segments;
    for round in 0..2000 {
        store.put("a", round, &value, 10);
    }
    let before = segments();
    store.flush();
    // What it has is flushed in the background.
    store.engine.wait_idle();
    assert!(before > 9, "{before} segments");
    assert!(segments() <= 2, "{} segments", segments());
}

#[test]
fn compaction_merges_files_and_drops_what_is_dead() {
    let store = new_store(4, small_options());
    for round in 0..3 {
        store.put("a", round, "v", 10 + i64::from(round));
        store.put("gone", round, "v", 10);
        store.flush();
    }
    store.write(delete_partition(&store.table(), "gone", 20));
    let contents = store.contents();
    store.env.advance_micros(11 * 86_400 * 1_000_000);
    store.engine.compact(store.table().id).unwrap();
    assert_eq!(store.sstables(), 1);
    assert_eq!(store.contents(), contents);
    assert_eq!(store.partition("gone", false), []);
    assert_eq!(store.files().len(), 1, "{:?}", store.files());
    assert_eq!(store.restart(small_options()).contents(), contents);
}

#[test]
fn files_are_compacted_when_enough_of_a_size_are_there() {
    let mut options = small_options();
    options.is_compacting = true;
    let store = new_store(5, options);
    for round in 0..4 {
        store.put("a", round, "v", 10);
        store.flush();
    }
    store.engine.wait_idle();
    assert_eq!(store.sstables(), 1);
    assert_eq!(store.partition("a", false).len(), 4);
}

#[test]
fn a_reader_keeps_the_files_that_a_compaction_replaces() {
    let store = new_store(6, small_options());
    for round in 0..3 {
        store.put("a", round, "v", 10);
        store.flush();
    }
    let table = store.table();
    let all = ilion_rows::ClusteringFilter::all();
    let mut cursor = store
        .engine
        .read_range(&table, &ilion_rows::KeyRange::all(), &all)
        .unwrap();
    store.engine.compact(table.id).unwrap();
    cursor.next_partition().unwrap().unwrap();
    let mut rows = 0;
    while cursor.next_unfiltered().unwrap().is_some() {
        rows += 1;
    }
    assert_eq!(rows, 3);
}

#[test]
fn truncation_removes_everything_before_it_for_good() {
    let store = new_store(7, small_options());
    store.put("a", 1, "flushed", 10);
    store.flush();
    store.put("a", 2, "in memory", 10);
    store.engine.truncate(store.table().id).unwrap();
    assert!(store.contents().is_empty());
    store.put("a", 3, "after", 5);
    let contents = store.contents();
    assert_eq!(contents["a"].len(), 1);
    let store = store.restart(small_options());
    assert_eq!(store.contents(), contents);
    store.flush();
    assert_eq!(store.restart(small_options()).contents(), contents);
}

#[test]
fn schema_changes_survive_and_replay_in_their_order() {
    let store = new_store(8, small_options());
    store.put("a", 1, "old", 10);
    store.alter(&add_column("w"));
    store.put("a", 2, "new", 10);
    store.alter(&create_table("ks", "other"));
    store.alter(&drop_table("ks", "other"));
    store.alter(&create_keyspace("second"));
    let (schema, contents) = (store.engine.schema(), store.contents());
    let store = store.restart(small_options());
    assert_eq!(store.engine.schema().version, schema.version);
    assert!(store.table().column_named("w").is_some());
    assert!(!store.has_table("other"));
    assert_eq!(store.contents(), contents);
    store.engine.drain().unwrap();
    let store = store.restart(small_options());
    assert_eq!(store.engine.schema().version, schema.version);
    assert_eq!(store.contents(), contents);
}

#[test]
fn a_refused_schema_change_changes_nothing() {
    let store = new_store(9, small_options());
    let version = store.engine.schema().version;
    assert!(matches!(
        store.engine.alter_schema(&create_table("ks", "t")),
        Err(Error::Schema(_))
    ));
    assert_eq!(store.engine.schema().version, version);
}

#[test]
fn a_data_directory_has_one_owner() {
    let store = new_store(10, small_options());
    assert!(matches!(
        Engine::open(store.env.shared(), small_options()),
        Err(Error::InUse(_))
    ));
}

#[test]
fn a_broken_disk_stops_writes_and_loses_nothing() {
    let (store, faults) = new_faulty_store(11, small_options());
    let env = store.env.clone();
    store.put("a", 1, "acknowledged", 10);
    faults.add("fail write \"*-Data.db\"").unwrap();
    assert!(store.engine.flush(store.table().id).is_err());
    let refused = store.engine.apply(&[put(&store.table(), "a", 2, "late", 11)]);
    assert!(matches!(refused, Err(Error::Stopped(_))));
    assert_eq!(store.partition("a", false).len(), 1);
    drop(store);
    let after = open(&env.crash(CrashRule::LoseUnsynced), small_options()).unwrap();
    assert_eq!(after.partition("a", false), [(1, "acknowledged".to_owned())]);
}

#[test]
fn a_batch_over_tables_is_one_record() {
    let store = new_store(12, small_options());
    let other = store.add_table("u");
    let batch = [
        put(&store.table(), "a", 1, "x", 10),
        put(&other, "a", 1, "y", 10),
        delete_row(&store.table(), "a", 1, 11),
    ];
    let appends = store.engine.facts().commit_log.appends;
    store.engine.apply(&batch).unwrap();
    assert_eq!(store.engine.facts().commit_log.appends, appends + 1);
    assert_eq!(store.partition("a", false), []);
}

#[test]
fn memtables_are_flushed_when_they_fill_the_budget() {
    let mut options = small_options();
    options.memtable_bytes_max = 2 << 20;
    let store = new_store(13, options.clone());
    let value = "v".repeat(1000);
    for round in 0..4000 {
        store.put(&format!("k{}", round % 50), round, &value, 10);
    }
    assert!(store.engine.facts().flushes > 0);
    assert!(store.engine.facts().memtable_bytes <= 2 << 20);
    let contents = store.contents();
    assert_eq!(contents.values().map(|rows| rows.len()).sum::<usize>(), 4000);
    assert_eq!(store.restart(options).contents(), contents);
}

#[test]
fn what_a_replay_freezes_at_a_change_of_the_schema_outlives_a_truncation_before_it() {
    let store = new_store(3, small_options());
    store.put("a", 1, "gone", 1);
    store.engine.truncate(store.table().id).unwrap();
    store.put("a", 1, "kept", 2);
    store.alter(&add_column("w"));
    let store = store.restart(small_options());
    store.put("a", 2, "later", 3);
    store.flush();
    let store = store.restart(small_options());
    let rows = [(1, "kept".to_owned()), (2, "later".to_owned())];
    assert_eq!(store.partition("a", false), rows);
}
