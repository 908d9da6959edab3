//! A clock that was set back while the process was down: later writes are still newer than the data that they change.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::sync::Arc;

use ilion::{Database, Settings, Value};
use ilion_env::{CrashRule, Env, MemEnv};

const DAY_MICROS: i64 = 86_400_000_000;

fn open(env: &MemEnv) -> Database {
    let settings = Settings {
        directory: "/ilion".into(),
        ..Settings::default()
    };
    Database::open_on(Arc::new(env.clone()), &settings).unwrap()
}

fn run(database: &Database, cql: &str) {
    database
        .execute(cql, ())
        .unwrap_or_else(|error| panic!("{cql}: {error}"));
}

fn rows(database: &Database, cql: &str) -> Vec<Vec<Value>> {
    let rows = database
        .execute(cql, ())
        .unwrap_or_else(|error| panic!("{cql}: {error}"));
    rows.map(|row| row.unwrap().values().unwrap()).collect()
}

fn is_applied(database: &Database, cql: &str) -> bool {
    rows(database, cql)[0][0] == Value::Boolean(true)
}

fn writetime(database: &Database, table: &str, key: i32) -> i64 {
    let found = rows(
        database,
        &format!("SELECT writetime(v) FROM ks.{table} WHERE k = {key}"),
    );
    let [Value::BigInt(micros)] = found[0][..] else {
        panic!("{found:?}");
    };
    micros
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// kill -9.
    Killed,
    /// kill -9 after everything was flushed, so the segments of the log were deleted or reused.
    KilledAfterFlush,
    /// A drain, which leaves an empty log.
    Drained,
}

const ENDS: [End; 3] = [End::Killed, End::KilledAfterFlush, End::Drained];

/// The next process, with the clock at another time.
fn restart(env: &MemEnv, database: Database, end: End, step_micros: i64) -> (MemEnv, Database) {
    if end == End::KilledAfterFlush {
        database.flush().unwrap();
    }
    if end == End::Drained {
        database.node().engine().drain().unwrap();
    }
    let after = match end {
        End::Killed | End::KilledAfterFlush => {
            let after = env.crash(CrashRule::KeepAll);
            drop(database);
            after
        }
        End::Drained => {
            drop(database);
            env.crash(CrashRule::KeepAll)
        }
    };
    after.step_clock(step_micros);
    let database = open(&after);
    // An index that the process before did not build is built in the background.
    database.node().processor().wait_for_views();
    (after, database)
}

fn with_data() -> (MemEnv, Database) {
    let env = MemEnv::new(1);
    let database = open(&env);
    run(
        &database,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    for table in ["t", "doomed"] {
        run(
            &database,
            &format!("CREATE TABLE ks.{table} (k int PRIMARY KEY, v text, w text, x text, l list<int>)"),
        );
        run(&database, &format!("CREATE INDEX {table}_by_w ON ks.{table} (w)"));
        for key in 0..4 {
            let values = format!("({key}, 'old', 'w', 'x', [1])");
            run(
                &database,
                &format!("INSERT INTO ks.{table} (k, v, w, x, l) VALUES {values}"),
            );
        }
    }
    (env, database)
}

#[test]
fn what_was_applied_is_there_after_the_clock_was_set_back() {
    for end in ENDS {
        let (env, database) = with_data();
        let before = writetime(&database, "t", 3);
        let (_, database) = restart(&env, database, end, -DAY_MICROS);
        assert!(is_applied(
            &database,
            "UPDATE ks.t SET v = 'new' WHERE k = 0 IF v = 'old'"
        ));
        assert!(is_applied(&database, "DELETE FROM ks.t WHERE k = 1 IF EXISTS"));
        assert!(is_applied(
            &database,
            "INSERT INTO ks.t (k, v) VALUES (1, 'again') IF NOT EXISTS"
        ));
        run(&database, "UPDATE ks.t SET v = 'new', l = l + [2] WHERE k = 2");
        run(&database, "DELETE v FROM ks.t WHERE k = 3");
        let text = |text: &str| Value::Text(text.to_owned());
        let mut found = rows(&database, "SELECT k, v FROM ks.t");
        found.sort_by_key(|row| format!("{row:?}"));
        let expected = [
            vec![Value::Int(0), text("new")],
            vec![Value::Int(1), text("again")],
            vec![Value::Int(2), text("new")],
            vec![Value::Int(3), Value::Null],
        ];
        assert_eq!(found, expected, "{end:?}");
        let list = rows(&database, "SELECT l FROM ks.t WHERE k = 2");
        assert_eq!(
            list[0][0],
            Value::List(vec![Value::Int(1), Value::Int(2)]),
            "{end:?}"
        );
        assert!(writetime(&database, "t", 0) > before, "{end:?}");
    }
}

#[test]
fn what_was_dropped_stays_dropped_after_the_clock_was_set_back() {
    for end in ENDS {
        let (env, database) = with_data();
        let (env, database) = restart(&env, database, end, -DAY_MICROS);
        run(&database, "ALTER TABLE ks.t DROP x");
        run(&database, "DROP INDEX ks.t_by_w");
        run(&database, "DROP TABLE ks.doomed");
        let (env, database) = restart(&env, database, end, 0);
        let schema = database.node().engine().schema();
        assert!(schema.table("ks", "doomed").is_none(), "{end:?}");
        let keyspace = schema.keyspace("ks").unwrap();
        assert!(keyspace.indexes.is_empty(), "{end:?}");
        assert!(keyspace.tables["t"].column_named("x").is_none(), "{end:?}");
        // A new column with the old name has no old values, a new table with the old name no old rows.
        run(&database, "ALTER TABLE ks.t ADD x text");
        run(&database, "CREATE TABLE ks.doomed (k int PRIMARY KEY, v text)");
        let (_, database) = restart(&env, database, end, 0);
        assert!(
            rows(&database, "SELECT x FROM ks.t")
                .iter()
                .all(|row| row[0] == Value::Null),
            "{end:?}"
        );
        assert!(rows(&database, "SELECT * FROM ks.doomed").is_empty(), "{end:?}");
    }
}

#[test]
fn a_clock_that_was_set_back_is_told_and_one_that_was_not_moves_nothing_ahead() {
    for end in ENDS {
        let (env, database) = with_data();
        let (env, database) = restart(&env, database, end, -DAY_MICROS);
        let behind_micros = database.node().engine().facts().clock_behind_micros;
        assert!(
            behind_micros.abs_diff(DAY_MICROS.unsigned_abs()) < 60_000_000,
            "{end:?} {behind_micros}"
        );
        run(
            &database,
            "INSERT INTO ks.t (k, v) VALUES (7, 'ahead of the clock')",
        );
        let before = writetime(&database, "t", 7);
        assert!(before > env.now_micros() + DAY_MICROS / 2, "{end:?}");
        // Corrected, except for a minute: still above all timestamps given before.
        let (env, database) = restart(&env, database, end, DAY_MICROS - 60_000_000);
        run(&database, "INSERT INTO ks.t (k, v) VALUES (8, 'later')");
        assert!(writetime(&database, "t", 8) > before, "{end:?}");
        let (env, database) = restart(&env, database, end, DAY_MICROS);
        assert_eq!(database.node().engine().facts().clock_behind_micros, 0, "{end:?}");
        run(&database, "INSERT INTO ks.t (k, v) VALUES (9, 'by the clock')");
        let ahead_micros = writetime(&database, "t", 9) - env.now_micros();
        assert!(ahead_micros < 1_000_000, "{end:?} {ahead_micros}");
    }
}

#[test]
fn what_a_client_wrote_in_the_future_is_changed_by_a_conditional_write_and_moves_no_clock() {
    let (env, database) = with_data();
    let future = env.now_micros() + 365 * DAY_MICROS;
    run(
        &database,
        &format!("UPDATE ks.t USING TIMESTAMP {future} SET v = 'future' WHERE k = 0"),
    );
    assert!(is_applied(
        &database,
        "UPDATE ks.t SET v = 'present' WHERE k = 0 IF v = 'future'"
    ));
    assert_eq!(
        rows(&database, "SELECT v FROM ks.t WHERE k = 0")[0][0],
        Value::Text("present".to_owned())
    );
    assert!(is_applied(&database, "DELETE FROM ks.t WHERE k = 0 IF EXISTS"));
    assert!(rows(&database, "SELECT v FROM ks.t WHERE k = 0").is_empty());
    // The row and its partition, deleted in the future.
    run(
        &database,
        &format!("DELETE FROM ks.t USING TIMESTAMP {future} WHERE k = 1"),
    );
    assert!(is_applied(
        &database,
        "INSERT INTO ks.t (k, v) VALUES (1, 'present') IF NOT EXISTS"
    ));
    assert_eq!(rows(&database, "SELECT v FROM ks.t WHERE k = 1").len(), 1);
    run(
        &database,
        "CREATE TABLE ks.p (k int, c int, s text static, v text, PRIMARY KEY (k, c))",
    );
    run(
        &database,
        &format!("DELETE FROM ks.p USING TIMESTAMP {future} WHERE k = 1 AND c > 1 AND c < 5"),
    );
    run(
        &database,
        &format!("INSERT INTO ks.p (k, c, v) VALUES (1, 7, 'future') USING TIMESTAMP {future}"),
    );
    // The second row has no condition of its own.
    assert!(is_applied(
        &database,
        "BEGIN BATCH INSERT INTO ks.p (k, c, v) VALUES (1, 3, 'present') IF NOT EXISTS; UPDATE ks.p SET v = 'present' WHERE k = 1 AND c = 7; APPLY BATCH"
    ));
    let present = Value::Text("present".to_owned());
    assert_eq!(
        rows(&database, "SELECT v FROM ks.p WHERE k = 1"),
        [[present.clone()], [present]]
    );
    let (env, database) = restart(&env, database, End::Drained, 0);
    run(&database, "INSERT INTO ks.t (k, v) VALUES (5, 'now')");
    assert!(writetime(&database, "t", 5) < env.now_micros() + DAY_MICROS);
    assert_eq!(database.node().engine().facts().clock_behind_micros, 0);
}

#[test]
fn a_conditional_write_on_a_row_of_the_last_timestamp_is_refused_and_changes_nothing() {
    let (env, database) = with_data();
    run(
        &database,
        &format!(
            "UPDATE ks.t USING TIMESTAMP {} SET v = 'last' WHERE k = 0",
            i64::MAX
        ),
    );
    let Err(error) = database.execute("UPDATE ks.t SET v = 'later' WHERE k = 0 IF v = 'last'", ()) else {
        panic!("it was accepted");
    };
    let expected = "The row has a value or deletion of the timestamp 9223372036854775807, and no conditional write can be newer";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(!is_applied(
        &database,
        "UPDATE ks.t SET v = 'later' WHERE k = 0 IF v = 'other'"
    ));
    assert_eq!(
        rows(&database, "SELECT v FROM ks.t WHERE k = 0")[0][0],
        Value::Text("last".to_owned())
    );
    let (env, database) = restart(&env, database, End::Drained, -DAY_MICROS);
    run(&database, "ALTER TABLE ks.t DROP x");
    assert!(is_applied(
        &database,
        "UPDATE ks.t SET v = 'new' WHERE k = 2 IF v = 'old'"
    ));
    assert!(writetime(&database, "t", 2) < env.now_micros() + 2 * DAY_MICROS);
}

/// SSTables name segments by number to say which records they contain: if a number were used twice, records would be skipped.
#[test]
fn a_log_that_was_emptied_numbers_on_though_the_clock_was_set_back() {
    let (env, database) = with_data();
    let (env, database) = restart(&env, database, End::Drained, 0);
    drop(database);
    let directory = std::path::Path::new("/ilion/commitlog");
    let newest = |env: &MemEnv| env.list(directory).unwrap().last().unwrap().name.clone();
    let before = newest(&env);
    for entry in env.list(directory).unwrap() {
        env.remove_file(&directory.join(entry.name)).unwrap();
    }
    let env = env.crash(CrashRule::KeepAll);
    env.step_clock(-DAY_MICROS);
    let database = open(&env);
    assert!(newest(&env) > before);
    run(&database, "INSERT INTO ks.t (k, v) VALUES (77, 'logged')");
    let (_, database) = restart(&env, database, End::Killed, 0);
    assert_eq!(rows(&database, "SELECT v FROM ks.t WHERE k = 77").len(), 1);
}

#[test]
fn truncations_counts_and_views_hold_after_the_clock_was_set_back() {
    for end in ENDS {
        let (env, database) = with_data();
        run(&database, "CREATE TABLE ks.counts (k int PRIMARY KEY, c counter)");
        run(&database, "UPDATE ks.counts SET c = c + 5 WHERE k = 1");
        run(
            &database,
            "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
        );
        let (env, database) = restart(&env, database, end, -DAY_MICROS);
        run(&database, "UPDATE ks.counts SET c = c + 2 WHERE k = 1");
        run(&database, "UPDATE ks.t SET v = 'new' WHERE k = 0");
        run(&database, "DELETE FROM ks.t WHERE k = 1");
        run(&database, "TRUNCATE ks.doomed");
        run(&database, "INSERT INTO ks.doomed (k, v) VALUES (9, 'after')");
        let (_, database) = restart(&env, database, end, 0);
        assert_eq!(
            rows(&database, "SELECT c FROM ks.counts"),
            [[Value::Counter(7)]],
            "{end:?}"
        );
        let mut viewed = rows(&database, "SELECT k FROM ks.by_v WHERE v = 'old'");
        viewed.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(viewed, [[Value::Int(2)], [Value::Int(3)]], "{end:?}");
        assert_eq!(
            rows(&database, "SELECT k FROM ks.by_v WHERE v = 'new'"),
            [[Value::Int(0)]],
            "{end:?}"
        );
        assert_eq!(
            rows(&database, "SELECT k FROM ks.doomed"),
            [[Value::Int(9)]],
            "{end:?}"
        );
    }
}
