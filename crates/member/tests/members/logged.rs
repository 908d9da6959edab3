//! A logged batch over several tablets is made as a whole or not at all, whatever becomes of its coordinator.

use std::time::Duration;

use ilion_env::CrashRule;
use ilion_query::{Consistency, Error, QueryOptions, QueryProcessor};

use crate::world::{Running, World, run, wait};

const TABLETS: u32 = 8;
const KEYS: i64 = 40;

fn create(node: &Running) {
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE ks.a (k bigint, n bigint, PRIMARY KEY (k, n))",
        "CREATE TABLE ks.b (k bigint, n bigint, PRIMARY KEY (k, n))",
    ] {
        run(&node.processor, statement, &[], Consistency::ONE).unwrap();
    }
}

/// A row in each of many partitions of two tables, so that every tablet has some.
fn batch(node: &Running, kind: &str, number: i64) -> Result<(), Error> {
    let insert = |table: &str| {
        let row = |key: i64| format!("INSERT INTO ks.{table} (k, n) VALUES ({key}, {number});");
        (0..KEYS).map(row).collect::<String>()
    };
    let text = format!("BEGIN {kind} BATCH {}{} APPLY BATCH", insert("a"), insert("b"));
    run(&node.processor, &text, &[], Consistency::QUORUM).map(drop)
}

/// How many rows of a batch a table has.
fn rows(node: &Running, table: &str, number: i64) -> i64 {
    let found = run(
        &node.processor,
        &format!("SELECT n FROM ks.{table}"),
        &[],
        Consistency::QUORUM,
    );
    let rows = found.unwrap();
    rows.iter().filter(|row| row[0] == Some(number)).count() as i64
}

fn wait_for(node: &Running, table: &str, number: i64) {
    wait(&format!("batch {number} is not finished"), || {
        rows(node, table, number) >= KEYS
    });
}

#[test]
fn what_a_coordinator_leaves_undone_is_done_by_others() {
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first);
    // The first tablet is the home; its log alone can be written to.
    world.logs.cut_off(1..TABLETS);
    let kinds = ["UNLOGGED", ""];
    for (number, kind) in (1..).zip(kinds) {
        let failed = batch(&first, kind, number).unwrap_err();
        assert!(matches!(failed, Error::WriteTimeout { .. }), "{failed:?}");
    }
    drop(first);
    world.lose(0, CrashRule::LoseUnsynced);
    world.logs.cut_off([]);
    let second = world.at(1).unwrap();
    wait_for(&second, "a", 2);
    wait_for(&second, "b", 2);
    let unlogged = rows(&second, "a", 1);
    assert!(
        (1..KEYS).contains(&unlogged),
        "an unlogged batch is not finished: {unlogged} rows"
    );
    // One that cannot even be begun changes nothing.
    world.logs.cut_off(0..TABLETS);
    batch(&second, "", 3).unwrap_err();
    world.logs.cut_off([]);
    batch(&second, "", 4).unwrap();
    assert_eq!([rows(&second, "a", 3), rows(&second, "a", 4)], [0, KEYS]);
}

/// Three members that do not finish the batches of others.
fn with_unfinished_batches(seed: u64) -> World {
    let mut world = World::with_room(0, 3, TABLETS);
    world.finish_after = Duration::from_secs(10_000);
    for place in 0..3 {
        world.start(place, ilion_env::MemEnv::new(seed + place as u64));
    }
    world
}

/// Stops the members and starts them again. Now they finish batches.
fn start_again_to_finish(world: &mut World) {
    let disks = [0, 1, 2].map(|place| world.stop(place));
    world.finish_after = Duration::from_millis(100);
    for (place, disk) in disks.into_iter().enumerate() {
        world.start(place, disk);
    }
}

#[test]
fn unfinished_batches_outlive_stops_and_leave_out_tables_that_were_emptied() {
    let mut world = with_unfinished_batches(80);
    let first = world.at(0).unwrap();
    create(&first);
    world.logs.cut_off(1..TABLETS);
    batch(&first, "", 1).unwrap_err();
    world.logs.cut_off([]);
    run(&first.processor, "TRUNCATE ks.a", &[], Consistency::QUORUM).unwrap();
    batch(&first, "", 2).unwrap();
    drop(first);
    // A clean stop saves: the record of the batch is not read again.
    start_again_to_finish(&mut world);
    let first = world.at(0).unwrap();
    wait_for(&first, "b", 1);
    assert_eq!(rows(&first, "a", 1), 0, "it was emptied after the batch");
    assert_eq!([rows(&first, "a", 2), rows(&first, "b", 2)], [KEYS, KEYS]);
}

#[test]
fn a_batch_is_made_as_a_whole_though_a_newer_index_cannot_hold_one_of_its_values() {
    let mut world = with_unfinished_batches(90);
    let first = world.at(0).unwrap();
    create(&first);
    first.processor.change_options(&QueryOptions {
        batch_size_fail_bytes: 0,
        ..QueryOptions::default()
    });
    let create_table = "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint, v text)";
    run(&first.processor, create_table, &[], Consistency::ONE).unwrap();
    // The keys of both long values are in tablets whose logs cannot be written to, so their parts come after the index.
    world.logs.cut_off(1..TABLETS);
    let long = "x".repeat(70_000);
    let value = |key: i64| if key < 2 { long.as_str() } else { "short" };
    let insert = |key: i64| format!("INSERT INTO ks.t (k, n, v) VALUES ({key}, 1, '{}');", value(key));
    let inserts: String = (0..KEYS).map(insert).collect();
    let text = format!("BEGIN BATCH {inserts} APPLY BATCH");
    let failed = run(&first.processor, &text, &[], Consistency::QUORUM).unwrap_err();
    assert!(matches!(failed, Error::WriteTimeout { .. }), "{failed:?}");
    world.logs.cut_off([]);
    run(
        &first.processor,
        "CREATE INDEX by_v ON ks.t (v)",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    let select = |node: &QueryProcessor, rest: &str| {
        run(
            node,
            &format!("SELECT k, n FROM ks.t{rest}"),
            &[],
            Consistency::QUORUM,
        )
        .unwrap()
    };
    let begun = select(&first.processor, "").len() as i64;
    assert!(
        (1..KEYS).contains(&begun),
        "only the home has its part: {begun} rows"
    );
    // From now on the index refuses such values before they are logged.
    let refused = run(&first.processor, &insert(0), &[], Consistency::ONE).unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    drop(first);
    start_again_to_finish(&mut world);
    for place in 0..3 {
        let node = world.at(place).unwrap();
        wait("the batch is not finished everywhere", || {
            select(&node.local, "").len() as i64 == KEYS
        });
    }
    let second = world.at(1).unwrap();
    wait("the index is not built", || {
        let text = "SELECT k, n FROM ks.t WHERE v = 'short'";
        let found = run(&second.processor, text, &[], Consistency::QUORUM);
        found.is_ok_and(|rows| rows.len() as i64 == KEYS - 2)
    });
}
