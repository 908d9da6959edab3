//! Statements that are executed by the log: limits are those of the coordinator, outcomes those of all replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use ilion_coordinator::ReadOptions;
use ilion_env::{Env, RealEnv};
use ilion_member::InProcess;
use ilion_query::{Consistency, Error, Guardrails, QueryOptions, QueryProcessor, Threshold, WriteType};

use crate::world::{World, run, wait};

const TABLETS: u32 = 8;
const PLACES: [usize; 3] = [0, 1, 2];

fn create(world: &World, tables: &[&str]) {
    let keyspace =
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}";
    let first = world.at(0).unwrap();
    for statement in std::iter::once(&keyspace).chain(tables) {
        run(&first.processor, statement, &[], Consistency::ONE).unwrap();
    }
}

fn execute(processor: &QueryProcessor, text: &str) -> Result<Vec<Vec<Option<i64>>>, Error> {
    run(processor, text, &[], Consistency::QUORUM)
}

fn refusal(processor: &QueryProcessor, text: &str) -> String {
    match execute(processor, text) {
        Err(Error::Invalid(reason)) => reason,
        other => panic!("{text}: {other:?}"),
    }
}

/// Waits until each member's own data gives this answer.
fn wait_for(world: &World, select: &str, rows: &[&[i64]]) {
    let rows: Vec<Vec<Option<i64>>> = rows
        .iter()
        .map(|row| row.iter().map(|value| Some(*value)).collect())
        .collect();
    for place in PLACES {
        let node = world.at(place).unwrap();
        wait(&format!("{select} at node {place}"), || {
            run(&node.local, select, &[], Consistency::ONE).unwrap() == rows
        });
    }
}

#[test]
fn guardrails_are_those_of_the_coordinator_and_hold_for_what_the_log_executes() {
    let world = World::new(3, TABLETS);
    create(
        &world,
        &[
            "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint, v text, l list<text>, s set<int>)",
            "CREATE TABLE ks.c (k bigint PRIMARY KEY, n counter)",
        ],
    );
    let fail = |limit| Threshold {
        warn: None,
        fail: Some(limit),
    };
    let (strict, lax) = (world.at(0).unwrap(), world.at(1).unwrap());
    strict.processor.change_options(&QueryOptions {
        in_partitions_max: 2,
        guardrails: Guardrails {
            column_value_size: fail(50),
            items_per_collection: fail(3),
            ..Guardrails::default()
        },
        ..QueryOptions::default()
    });
    let long = "x".repeat(51);
    execute(&lax.processor, "INSERT INTO ks.t (k, n, l) VALUES (1, 1, ['a'])").unwrap();
    let insert = format!("INSERT INTO ks.t (k, n, v) VALUES (2, 1, '{long}') IF NOT EXISTS");
    let update = format!("UPDATE ks.t SET n = 2, v = '{long}' WHERE k = 1 IF n = 1");
    let element = format!("UPDATE ks.t SET l[0] = '{long}' WHERE k = 1");
    let batch = format!(
        "BEGIN BATCH DELETE FROM ks.t WHERE k = 1 IF n = 2; \
         INSERT INTO ks.t (k, n, v) VALUES (1, 4, '{long}'); APPLY BATCH"
    );
    let many = "UPDATE ks.t SET n = 5, s = {1, 2, 3, 4} WHERE k = 1 IF n = 4";
    for (guardrail, text) in [
        ("column_value_size", &*insert),
        ("column_value_size", &update),
        ("column_value_size", &element),
        ("column_value_size", &batch),
        ("items_per_collection", many),
    ] {
        let reason = refusal(&strict.processor, text);
        let expected = format!("Guardrail {guardrail} violated");
        assert!(reason.starts_with(&expected), "{text}: {reason}");
    }
    let counts = "UPDATE ks.c SET n = n + 1 WHERE k IN (1, 2, 3)";
    let reason = refusal(&strict.processor, counts);
    assert!(reason.contains("IN"), "{reason}");
    let rows = execute(&lax.processor, "SELECT k, n FROM ks.t").unwrap();
    assert_eq!(rows, [[Some(1), Some(1)]], "nothing of it was written");
    // Another coordinator allows it: then every replica makes it, whatever its own settings say.
    for text in [&*insert, &update, &element, &batch, many, counts] {
        execute(&lax.processor, text).unwrap();
    }
    wait_for(&world, "SELECT k, n FROM ks.t WHERE k = 1", &[&[1, 5]]);
    wait_for(&world, "SELECT k, n FROM ks.t WHERE k = 2", &[&[2, 1]]);
    wait_for(
        &world,
        "SELECT n FROM ks.c WHERE k IN (1, 2, 3)",
        &[&[1], &[1], &[1]],
    );
}

#[test]
fn what_expires_after_2038_is_refused_by_every_coordinator_whatever_its_sstables_can_hold() {
    let world = World::new(3, TABLETS);
    create(
        &world,
        &[
            "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint, l list<bigint>)",
            "CREATE TABLE ks.d (k bigint PRIMARY KEY, n bigint) WITH default_time_to_live = 630720000",
        ],
    );
    let (first, nb) = (world.at(0).unwrap(), world.at(1).unwrap());
    let of_oa = QueryOptions {
        expiry_secs_max: u32::MAX - 2,
        ..QueryOptions::default()
    };
    let store = first
        .member
        .store(Arc::new(InProcess::default().readers), ReadOptions::default());
    let oa = QueryProcessor::new(Arc::new(store), of_oa);
    execute(&oa, "INSERT INTO ks.t (k, l) VALUES (0, [1])").unwrap();
    let long = "USING TTL 630720000";
    let texts = [
        format!("INSERT INTO ks.t (k, n) VALUES (1, 1) {long}"),
        format!("INSERT INTO ks.t (k, n) VALUES (1, 1) IF NOT EXISTS {long}"),
        format!("UPDATE ks.t {long} SET l[0] = 2 WHERE k = 0"),
        format!("BEGIN BATCH INSERT INTO ks.t (k, n) VALUES (1, 1) {long}; APPLY BATCH"),
        "INSERT INTO ks.d (k, n) VALUES (1, 1)".to_owned(),
        "INSERT INTO ks.d (k, n) VALUES (1, 1) IF NOT EXISTS".to_owned(),
    ];
    for text in &texts {
        for processor in [&oa, &nb.processor] {
            let reason = refusal(processor, text);
            assert!(reason.contains("2038-01-19"), "{text}: {reason}");
        }
    }
    assert_eq!(execute(&oa, "SELECT count(*) FROM ks.t").unwrap(), [[Some(1)]]);
    assert_eq!(execute(&oa, "SELECT count(*) FROM ks.d").unwrap(), [[Some(0)]]);
    // What ends before that can be written. The time of conditions is that of the log, which has the real clock.
    let ttl = i64::from(i32::MAX) - 1 - RealEnv::new().now_secs() - 60;
    for (key, condition) in [(2, ""), (3, "IF NOT EXISTS")] {
        let text = format!("INSERT INTO ks.t (k, n) VALUES ({key}, 1) {condition} USING TTL {ttl}");
        execute(&oa, &text).unwrap();
        wait_for(&world, &format!("SELECT n FROM ks.t WHERE k = {key}"), &[&[1]]);
    }
}

#[test]
fn a_batch_with_positions_in_lists_is_made_in_all_tablets_or_in_none() {
    let world = World::new(3, TABLETS);
    create(
        &world,
        &["CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint, l list<bigint>)"],
    );
    let first = world.at(0).unwrap();
    execute(&first.processor, "INSERT INTO ks.t (k, l) VALUES (0, [7])").unwrap();
    let batch = |index: u32| {
        let insert = |key: u32| format!("INSERT INTO ks.t (k, n) VALUES ({key}, 1);");
        let inserts: String = (1..20).map(insert).collect();
        format!("BEGIN BATCH {inserts} UPDATE ks.t SET l[{index}] = 8 WHERE k = 0; APPLY BATCH")
    };
    let reason = refusal(&first.processor, &batch(1));
    assert!(reason.contains("List index 1 out of bound"), "{reason}");
    let count = "SELECT count(*) FROM ks.t";
    assert_eq!(execute(&first.processor, count).unwrap(), [[Some(1)]]);
    execute(&first.processor, &batch(0)).unwrap();
    wait_for(&world, count, &[&[20]]);
    let changed = "SELECT count(*) FROM ks.t WHERE l CONTAINS 8 ALLOW FILTERING";
    wait_for(&world, changed, &[&[1]]);
}

#[test]
fn functions_in_statements_of_the_log_have_one_result_on_all_replicas() {
    let world = World::new(3, TABLETS);
    create(
        &world,
        &[
            "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint, l list<bigint>)",
            "CREATE TABLE ks.c (k bigint PRIMARY KEY, n counter)",
            "CREATE FUNCTION ks.twice(n bigint) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua AS 'return n * 2'",
            // Lua promises nothing about the first key.
            "CREATE FUNCTION ks.any(n bigint) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua \
             AS 'local keys = {} for i = 1, 40 do keys[\"key\" .. i] = i end local _, any = next(keys) return any + n'",
            "CREATE FUNCTION ks.one(id timeuuid) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua AS 'return 1'",
            "CREATE FUNCTION ks.zero(n int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 0'",
            "CREATE FUNCTION ks.fails(n bigint) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua AS 'error(\"no\")'",
        ],
    );
    let first = world.at(0).unwrap();
    let applied = |text: &str| {
        let rows = execute(&first.processor, text).unwrap();
        rows[0][0] == Some(1)
    };
    for key in 0..10 {
        let text = format!("INSERT INTO ks.t (k, n) VALUES ({key}, ks.any(100)) IF NOT EXISTS");
        assert!(applied(&text));
    }
    let any = execute(&first.processor, "SELECT k, n FROM ks.t").unwrap();
    let any: Vec<Vec<i64>> = any
        .iter()
        .map(|row| row.iter().map(|value| value.unwrap()).collect())
        .collect();
    let rows: Vec<&[i64]> = any.iter().map(Vec::as_slice).collect();
    assert_eq!(rows.len(), 10);
    wait_for(&world, "SELECT k, n FROM ks.t", &rows);
    assert!(applied(
        "UPDATE ks.t SET n = ks.twice(3) WHERE k = 1 IF n > ks.twice(1)"
    ));
    assert!(applied(
        "UPDATE ks.t SET n = 7 WHERE k = 1 IF n IN (ks.twice(2), ks.twice(3))"
    ));
    assert!(!applied("UPDATE ks.t SET n = 8 WHERE k = 1 IF n = ks.twice(3)"));
    execute(&first.processor, "INSERT INTO ks.t (k, l) VALUES (20, [1])").unwrap();
    execute(
        &first.processor,
        "UPDATE ks.t SET l[ks.zero(5)] = ks.twice(4) WHERE k = 20",
    )
    .unwrap();
    execute(
        &first.processor,
        "UPDATE ks.c SET n = n + 3 WHERE k = ks.twice(5)",
    )
    .unwrap();
    wait_for(&world, "SELECT n FROM ks.t WHERE k = 1", &[&[7]]);
    wait_for(&world, "SELECT n FROM ks.c WHERE k = 10", &[&[3]]);
    let eight = "SELECT k FROM ks.t WHERE k = 20 AND l CONTAINS 8 ALLOW FILTERING";
    wait_for(&world, eight, &[&[20]]);
    // The statement calls the function as it is by then.
    let replace = "CREATE OR REPLACE FUNCTION ks.twice(n bigint) RETURNS NULL ON NULL INPUT RETURNS bigint LANGUAGE lua \
                   AS 'return n * 2 + 1'";
    execute(&first.processor, replace).unwrap();
    assert!(applied(
        "UPDATE ks.t SET n = ks.twice(4) WHERE k = 1 IF n = ks.twice(3)"
    ));
    wait_for(&world, "SELECT n FROM ks.t WHERE k = 1", &[&[9]]);
    let failed = execute(
        &first.processor,
        "UPDATE ks.t SET n = ks.fails(1) WHERE k = 1 IF EXISTS",
    );
    assert!(matches!(failed, Err(Error::FunctionFailure { .. })), "{failed:?}");
    let reason = refusal(
        &first.processor,
        "UPDATE ks.t SET n = ks.one(now()) WHERE k = 1 IF EXISTS",
    );
    assert!(reason.contains("ks.one") && reason.contains("now()"), "{reason}");
    wait_for(&world, "SELECT n FROM ks.t WHERE k = 1", &[&[9]]);
}

#[test]
fn a_command_has_the_same_partition_on_all_replicas() {
    let world = World::new(3, TABLETS);
    create(
        &world,
        &[
            "CREATE TABLE ks.u (k uuid PRIMARY KEY, n bigint)",
            "CREATE TABLE ks.s (k timestamp PRIMARY KEY, n bigint)",
            "CREATE TABLE ks.c (k timeuuid PRIMARY KEY, n counter)",
        ],
    );
    let first = world.at(0).unwrap();
    for text in [
        "INSERT INTO ks.u (k, n) VALUES (uuid(), 1) IF NOT EXISTS",
        "INSERT INTO ks.s (k, n) VALUES (current_timestamp(), 1) IF NOT EXISTS",
        "INSERT INTO ks.s (k, n) VALUES (to_timestamp(now()), 1) IF NOT EXISTS",
        "UPDATE ks.c SET n = n + 1 WHERE k = now()",
        "BEGIN BATCH INSERT INTO ks.u (k, n) VALUES (uuid(), 1) IF NOT EXISTS APPLY BATCH",
    ] {
        let reason = refusal(&first.processor, text);
        assert!(reason.contains("the partition key"), "{text}: {reason}");
    }
    // The coordinator alone executes these.
    execute(&first.processor, "INSERT INTO ks.u (k, n) VALUES (uuid(), 1)").unwrap();
    wait_for(&world, "SELECT n FROM ks.u", &[&[1]]);
}

/// How many replicas keyspaces have. With one, most commands are handed over to another node.
const ONE_OR_THREE: [u32; 2] = [1, 3];
/// Keys of rows that are counted in.
const KEYS: i64 = 8;

#[test]
fn changes_of_the_schema_do_not_fail_statements_that_they_overtake() {
    for replicas in ONE_OR_THREE {
        overtake(replicas);
    }
}

fn overtake(replicas: u32) {
    let world = World::new(3, TABLETS);
    let (first, second) = (world.at(0).unwrap(), world.at(1).unwrap());
    for text in [
        &*format!(
            "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
        ),
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint)",
        "CREATE TABLE ks.c (k bigint PRIMARY KEY, n counter)",
    ] {
        execute(&first.processor, text).unwrap();
    }
    for key in 0..KEYS {
        let text = format!("INSERT INTO ks.t (k, n) VALUES ({key}, 0) IF NOT EXISTS");
        execute(&first.processor, &text).unwrap();
    }
    let (counted, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let count = || {
            while !is_over.load(Relaxed) {
                let last = counted.load(Relaxed);
                for key in 0..KEYS {
                    let count = format!("UPDATE ks.c SET n = n + 1 WHERE k = {key}");
                    execute(&first.processor, &count).unwrap();
                    let next = last + 1;
                    let text = format!("UPDATE ks.t SET n = {next} WHERE k = {key} IF n = {last}");
                    assert_eq!(execute(&first.processor, &text).unwrap()[0][0], Some(1), "{text}");
                }
                // In several tablets: a change that comes between two of them overtakes one part only.
                execute(
                    &first.processor,
                    "UPDATE ks.c SET n = n + 1 WHERE k IN (0, 1, 2, 3, 4, 5, 6, 7)",
                )
                .unwrap();
                counted.store(last + 1, Relaxed);
            }
        };
        let counting = scope.spawn(count);
        for round in 0..10 {
            let column = format!("ALTER TABLE ks.t ADD c{round} bigint");
            execute(&second.processor, &column).unwrap();
            // So few changes overtake one statement that it is tried often enough.
            let last = counted.load(Relaxed);
            wait("no key is counted any more", || {
                counted.load(Relaxed) > last || counting.is_finished()
            });
        }
        is_over.store(true, Relaxed);
        counting.join().unwrap();
    });
    let counted = counted.into_inner();
    for key in 0..KEYS {
        for (table, expected) in [("t", counted), ("c", 2 * counted)] {
            let select = format!("SELECT n FROM ks.{table} WHERE k = {key}");
            let rows = execute(&second.processor, &select).unwrap();
            assert_eq!(rows, [[Some(expected)]], "{select}");
        }
    }
}

#[test]
fn the_error_of_counters_in_several_tablets_says_whether_some_of_them_were_counted() {
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.c (k bigint PRIMARY KEY, n counter)",
    ] {
        execute(&first.processor, text).unwrap();
    }
    let count = |keys: &[i64]| {
        let keys: Vec<String> = keys.iter().map(i64::to_string).collect();
        let text = format!("UPDATE ks.c SET n = n + 1 WHERE k IN ({})", keys.join(", "));
        execute(&first.processor, &text)
    };
    let value = |key: i64| {
        let select = format!("SELECT n FROM ks.c WHERE k = {key}");
        execute(&first.processor, &select).unwrap()[0][0].unwrap()
    };
    drop(world.stop(2));
    // Some are on the node that is gone.
    let (there, gone): (Vec<i64>, Vec<i64>) = (0..24).partition(|key| count(&[*key]).is_ok());
    let (mut refused, mut made_in_part) = (0, 0);
    for there in &there {
        for gone in &gone {
            let before = value(*there);
            let error = count(&[*there, *gone]).unwrap_err();
            // Drivers send a statement again that was refused since a replica is not there.
            let counted = match &error {
                Error::Unavailable { .. } => {
                    refused += 1;
                    0
                }
                Error::WriteFailure {
                    write_type: WriteType::Counter,
                    message,
                    ..
                } if message.contains("some of its partitions") => {
                    made_in_part += 1;
                    1
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(value(*there), before + counted, "{error:?}");
        }
    }
    assert!(refused > 0 && made_in_part > 0, "{refused}, {made_in_part}");
}
