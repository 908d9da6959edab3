//! A commit log that is damaged or incomplete: whole records are replayed, and losses are reported.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion::{Database, Error, Settings, Value};
use ilion_env::{CrashRule, Env, MemEnv};
use ilion_settings::CommitLogSync;

fn try_open(env: &MemEnv, change: impl FnOnce(&mut Settings)) -> Result<Database, Error> {
    let mut settings = Settings {
        directory: "/ilion".into(),
        commitlog_sync: CommitLogSync::Periodic,
        ..Settings::default()
    };
    change(&mut settings);
    Database::open_on(Arc::new(env.clone()), &settings)
}

fn open(env: &MemEnv) -> Database {
    try_open(env, |_| {}).unwrap()
}

fn run(database: &Database, cql: &str) {
    database
        .execute(cql, ())
        .unwrap_or_else(|error| panic!("{cql}: {error}"));
}

fn rows(database: &Database, cql: &str) -> Vec<String> {
    let rows = database
        .execute(cql, ())
        .unwrap_or_else(|error| panic!("{cql}: {error}"));
    let text = |row: Vec<Value>| {
        row.into_iter()
            .map(|value| format!("{value:?}"))
            .collect::<String>()
    };
    let mut rows: Vec<String> = rows.map(|row| text(row.unwrap().values().unwrap())).collect();
    rows.sort_unstable();
    rows
}

/// A directory as kill -9 leaves it: a hundred acknowledged rows that were not synced, in a table and in a table with a view.
fn unsynced() -> MemEnv {
    let env = MemEnv::new(1);
    let database = open(&env);
    run(
        &database,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run(&database, "CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    run(&database, "CREATE TABLE ks.viewed (k int PRIMARY KEY, v text)");
    run(
        &database,
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.viewed WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
    );
    run(&database, "INSERT INTO ks.viewed (k, v) VALUES (1, 'first')");
    // A view that is still built writes records of its own.
    database.node().processor().wait_for_views();
    // The next process need not sync.
    drop(database);
    let env = env.crash(CrashRule::KeepAll);
    let database = open(&env);
    for key in 0..100 {
        run(
            &database,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'value-{key}-')"),
        );
        if key == 50 {
            run(
                &database,
                "INSERT INTO ks.viewed (k, v) VALUES (1, 'value-second-')",
            );
        }
    }
    run(&database, "INSERT INTO ks.viewed (k, v) VALUES (1, 'third')");
    run(
        &database,
        "INSERT INTO ks.t (k, v) VALUES (200, 'conditional') IF NOT EXISTS",
    );
    let after = env.crash(CrashRule::KeepAll);
    drop(database);
    after
}

/// The segments of the log, and the position of the text.
fn find(env: &MemEnv, text: &str) -> (PathBuf, u64) {
    let directory = Path::new("/ilion/commitlog");
    for entry in env.list(directory).unwrap() {
        let path = directory.join(entry.name);
        let bytes = env.read_all(&path, 64 << 20).unwrap();
        if let Some(at) = bytes
            .windows(text.len())
            .position(|window| window == text.as_bytes())
        {
            return (path, at as u64);
        }
    }
    panic!("{text} is not in the log");
}

#[test]
fn a_damaged_record_that_was_not_synced_costs_only_what_depends_on_it() {
    let env = unsynced();
    for lost in ["value-30-", "value-second-"] {
        let (path, at) = find(&env, lost);
        env.corrupt_byte(&path, at, 1).unwrap();
    }
    let database = open(&env);
    let lost = database.node().engine().facts().log_losses;
    // The row of the view, the row of its table and the conditional write follow the lost record.
    assert_eq!(
        (lost.places, lost.records_given_up, lost.gaps),
        (2, 2, 0),
        "{lost:?}"
    );
    assert!(lost.bytes > 100, "{lost:?}");
    let check = |database: &Database| {
        let found = rows(database, "SELECT k FROM ks.t");
        assert_eq!(found.len(), 99);
        assert!(!found.contains(&"Int(30)".to_owned()) && !found.contains(&"Int(200)".to_owned()));
        let expected = ["Int(1)Text(\"first\")"];
        assert_eq!(rows(database, "SELECT k, v FROM ks.viewed"), expected);
        assert_eq!(rows(database, "SELECT k, v FROM ks.by_v"), expected);
    };
    check(&database);
    // Another start reports no losses and has the same rows.
    let env = env.crash(CrashRule::LoseUnsynced);
    drop(database);
    let database = open(&env);
    assert_eq!(database.node().engine().facts().log_losses, Default::default());
    check(&database);
}

#[test]
fn a_damaged_record_that_was_synced_refuses_the_start_unless_the_settings_say_otherwise() {
    let env = unsynced();
    // A process that stops normally syncs everything.
    drop(open(&env));
    let env = env.crash(CrashRule::KeepAll);
    let (path, at) = find(&env, "value-30-");
    env.corrupt_byte(&path, at, 1).unwrap();
    let Err(error) = try_open(&env, |_| {}) else {
        panic!("it was opened");
    };
    let expected = format!("commit log {} is damaged at offset", path.display());
    assert!(error.to_string().contains(&expected), "{error}");
    let database = try_open(&env, |settings| settings.commitlog_ignore_replay_errors = true).unwrap();
    assert_eq!(rows(&database, "SELECT k FROM ks.t").len(), 100);
    assert_eq!(database.node().engine().facts().log_losses.places, 1);
}

#[test]
fn a_log_that_lacks_its_end_is_told() {
    let env = unsynced();
    let database = open(&env);
    run(&database, "INSERT INTO ks.t (k, v) VALUES (300, 'value-synced-')");
    drop(database);
    let env = env.crash(CrashRule::KeepAll);
    let (path, at) = find(&env, "value-synced-");
    env.open_append(&path).unwrap().truncate(at).unwrap();
    let database = open(&env);
    let lost = database.node().engine().facts().log_losses;
    assert_eq!(lost.gaps, 1, "{lost:?}");
    assert_eq!(rows(&database, "SELECT k FROM ks.t").len(), 101);
}
