//! The library as programs use it: on a disk in memory, with restarts and power losses.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::sync::Arc;

use ilion::{Database, Error, Settings, Uuid, Value};
use ilion_env::MemEnv;

const KEYSPACE: &str =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn open(env: &Arc<MemEnv>) -> Database {
    let settings = Settings {
        directory: "/ilion".into(),
        ..Settings::default()
    };
    Database::open_on(env.clone(), &settings).unwrap()
}

pub fn fresh() -> (Arc<MemEnv>, Database) {
    let env = Arc::new(MemEnv::new(1));
    let database = open(&env);
    database.execute(KEYSPACE, ()).unwrap();
    database.execute("USE ks", ()).unwrap();
    (env, database)
}

#[test]
fn rows_come_back_as_rust_values() {
    let (_env, database) = fresh();
    database
        .execute(
            "CREATE TABLE t (k int PRIMARY KEY, a text, b blob, c bigint, d double, e uuid, f boolean, g list<int>)",
            (),
        )
        .unwrap();
    let insert = database
        .prepare("INSERT INTO t (k, a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .unwrap();
    let id = Uuid::from_u128(7);
    insert
        .execute((1, "one", vec![1_u8, 2], 1_i64 << 40, 0.5, id, true))
        .unwrap();
    insert
        .execute((2, None::<String>, None::<Vec<u8>>, 5_i32, 0.25, id, false))
        .unwrap();
    let row = database
        .execute("SELECT * FROM t WHERE k = ?", (1,))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(row.get::<String>("a").unwrap(), "one");
    assert_eq!(row.get::<Vec<u8>>("b").unwrap(), [1, 2]);
    assert_eq!(row.get::<i64>("c").unwrap(), 1 << 40);
    assert_eq!(row.get::<f64>("d").unwrap(), 0.5);
    assert_eq!(row.get::<Uuid>("e").unwrap(), id);
    assert!(row.get::<bool>("f").unwrap());
    assert_eq!(row.get::<Option<Vec<Value>>>("g").unwrap(), None);
    let row = database
        .execute("SELECT a, c FROM t WHERE k = 2", ())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(row.values().unwrap(), [Value::Null, Value::BigInt(5)]);
    assert!(
        row.get::<String>("a")
            .unwrap_err()
            .to_string()
            .starts_with("column a: Null")
    );
    assert!(row.get::<i32>("z").is_err());
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k tinyint PRIMARY KEY, v text)", ())
        .unwrap();
    let insert = database.prepare("INSERT INTO t (k, v) VALUES (?, ?)").unwrap();
    let problem = |result: Result<_, Error>| match result {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was taken"),
    };
    assert_eq!(
        problem(insert.execute((300, "x"))),
        "argument 0 (k) is of type tinyint: 300 is out of range of tinyint"
    );
    assert_eq!(
        problem(insert.execute((3, 4))),
        "argument 1 (v) is of type text: the integer 4 is not a value of type text"
    );
    assert_eq!(
        problem(insert.execute([1])),
        "the statement has 2 bind markers, 1 values were given"
    );
}

#[test]
fn large_results_are_read_page_by_page() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))", ())
        .unwrap();
    let insert = database.prepare("INSERT INTO t (k, c) VALUES (?, ?)").unwrap();
    for row in 0..12_000 {
        insert.execute((row % 3, row)).unwrap();
    }
    let mut seen: Vec<i32> = database
        .execute("SELECT c FROM t", ())
        .unwrap()
        .map(|row| row.unwrap().get("c").unwrap())
        .collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..12_000));
    let of_one = database.execute("SELECT c FROM t WHERE k = ?", (1,)).unwrap();
    assert_eq!(of_one.count(), 4000);
}

#[test]
fn what_was_written_survives_a_restart_and_a_power_loss() {
    let (env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY, v text)", ())
        .unwrap();
    database
        .execute("INSERT INTO t (k, v) VALUES (1, 'logged')", ())
        .unwrap();
    let host_id = host_id_of(&database);
    drop(database);
    let database = open(&env);
    database
        .execute("INSERT INTO ks.t (k, v) VALUES (2, 'again')", ())
        .unwrap();
    database.flush().unwrap();
    database
        .execute("INSERT INTO ks.t (k, v) VALUES (3, 'lost?')", ())
        .unwrap();

    let after = Arc::new(env.crash(ilion_env::CrashRule::LoseUnsynced));
    let database = open(&after);
    let mut rows: Vec<(i32, String)> = database
        .execute("SELECT k, v FROM ks.t", ())
        .unwrap()
        .map(|row| row.unwrap())
        .map(|row| (row.get("k").unwrap(), row.get("v").unwrap()))
        .collect();
    rows.sort_unstable();
    let expected = [(1, "logged"), (2, "again"), (3, "lost?")];
    assert_eq!(rows, expected.map(|(k, v)| (k, v.to_owned())));
    assert_eq!(host_id_of(&database), host_id);
}

/// Columns get new numbers when the schema is read; rows that were replayed before have the old numbers.
#[test]
fn rows_written_before_a_column_was_added_or_dropped_are_the_same_after_kill_9() {
    let (env, database) = fresh();
    let run = |database: &Database, cql: &str| drop(database.execute(cql, ()).unwrap());
    let rows = |database: &Database| -> Vec<Vec<Value>> {
        let rows = database
            .execute("SELECT a, v, x FROM ks.t WHERE k = 1", ())
            .unwrap();
        rows.map(|row| row.unwrap().values().unwrap()).collect()
    };
    let kill = |env: &MemEnv, database: Database| {
        let after = Arc::new(env.crash(ilion_env::CrashRule::KeepAll));
        drop(database);
        let database = open(&after);
        (after, database)
    };
    let text = |text: &str| Value::Text(text.to_owned());
    run(&database, "CREATE TABLE t (k int PRIMARY KEY, v text, x text)");
    run(&database, "INSERT INTO t (k, v, x) VALUES (1, 'v', 'x')");
    run(&database, "ALTER TABLE t ADD a text");
    run(&database, "INSERT INTO t (k, v) VALUES (2, 'v')");
    let (env, database) = kill(&env, database);
    assert_eq!(rows(&database), [[Value::Null, text("v"), text("x")]]);
    run(&database, "ALTER TABLE ks.t DROP x");
    run(&database, "INSERT INTO ks.t (k, v) VALUES (2, 'v')");
    let (env, database) = kill(&env, database);
    run(&database, "ALTER TABLE ks.t ADD x text");
    assert_eq!(rows(&database), [[Value::Null, text("v"), Value::Null]]);
    let (_, database) = kill(&env, database);
    assert_eq!(rows(&database), [[Value::Null, text("v"), Value::Null]]);
}

fn host_id_of(database: &Database) -> (Uuid, Vec<Value>) {
    let row = database
        .execute("SELECT host_id, tokens FROM system.local WHERE key = 'local'", ())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    (row.get("host_id").unwrap(), row.get("tokens").unwrap())
}

#[test]
fn the_version_of_the_schema_is_told_and_changes_with_it() {
    let (_env, database) = fresh();
    let version = || -> Uuid {
        let mut rows = database
            .execute("SELECT schema_version FROM system.local", ())
            .unwrap();
        rows.next().unwrap().unwrap().get("schema_version").unwrap()
    };
    let before = version();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY)", ())
        .unwrap();
    assert_ne!(version(), before);
    assert_eq!(version(), database.node().engine().schema().version);
}

#[test]
fn data_of_another_cluster_is_refused() {
    let (env, database) = fresh();
    drop(database);
    let settings = Settings {
        directory: "/ilion".into(),
        cluster_name: "Other".to_owned(),
        ..Settings::default()
    };
    let Err(error) = Database::open_on(env, &settings) else {
        panic!("it was opened");
    };
    assert_eq!(
        error.to_string(),
        "the data directory is of cluster \"Ilion\", but the settings say \"Other\"; \
         change cluster_name, or take another directory"
    );
}

#[test]
fn virtual_tables_tell_of_themselves_and_of_the_settings() {
    let (_env, database) = fresh();
    let mut setting = database
        .execute(
            "SELECT value FROM system_views.settings WHERE name = 'cluster_name'",
            (),
        )
        .unwrap();
    assert_eq!(
        setting.next().unwrap().unwrap().get::<String>("value").unwrap(),
        "Ilion"
    );
    let change = |name: &str, value: &str| {
        database.execute(
            "UPDATE system_views.settings SET value = ? WHERE name = ?",
            (value, name),
        )
    };
    change("tombstone_warn_threshold", "7").unwrap();
    change("native_transport_max_page_size", "64KiB").unwrap();
    for (name, value) in [("log_level", "debug"), ("slow_query_log_timeout", "1s")] {
        let told = change(name, value).err().unwrap().to_string();
        assert!(
            told.contains(&format!("{name} has an effect in a server only")),
            "{told}"
        );
    }
    let tables = database
        .execute(
            "SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'",
            (),
        )
        .unwrap();
    let names: Vec<String> = tables
        .map(|row| row.unwrap().get("table_name").unwrap())
        .collect();
    assert!(names.contains(&"clients".to_owned()), "{names:?}");
    let columns = database
        .execute("SELECT column_name, type FROM system_virtual_schema.columns", ())
        .unwrap();
    assert!(columns.count() > 50);
}

#[test]
fn settings_that_only_a_server_uses_are_refused_by_name() {
    for (name, value) in [
        ("slow_query_log_timeout", "1s"),
        ("slow_query_log_timeout_in_ms", "1000"),
        ("metrics_tables_max", "10"),
        ("trace_type_query_ttl", "1d"),
        ("native_transport_port", "9042"),
    ] {
        // The directory does not matter: the settings are checked first.
        let refused = Database::open_named("nowhere", [(name, value)]).err().unwrap();
        let told = refused.to_string();
        assert!(told.contains(&format!("{name}: it is for a server")), "{told}");
    }
}

#[test]
fn statements_of_the_program_are_counted_with_what_they_cost() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY, v text)", ())
        .unwrap();
    let insert = database.prepare("INSERT INTO t (k, v) VALUES (?, ?)").unwrap();
    for key in 0..3 {
        insert.execute((key, "x")).unwrap();
    }
    database.execute("SELECT v FROM t WHERE k = 1", ()).unwrap();
    database.execute("SELECT v FROM t WHERE k = 7", ()).unwrap();
    assert!(database.execute("SELECT w FROM t WHERE k = 7", ()).is_err());
    let counted = |statement: &str| -> (i64, i64, i64) {
        let mut rows = database
            .execute(
                "SELECT calls, errors, rows_returned_total FROM system_views.statements \
                 WHERE keyspace_name = 'ks' AND statement = ?",
                (statement,),
            )
            .unwrap();
        let row = rows.next().unwrap().unwrap();
        let number = |name| row.get::<i64>(name).unwrap();
        (number("calls"), number("errors"), number("rows_returned_total"))
    };
    assert_eq!(counted("INSERT INTO t(k, v) VALUES (?, ?)"), (3, 0, 0));
    assert_eq!(counted("SELECT v FROM t WHERE k = ?"), (2, 0, 1));
    assert_eq!(counted("SELECT w FROM t WHERE k = ?"), (1, 1, 0));
}

#[test]
fn a_prepared_statement_of_the_program_goes_on_when_its_table_has_changed() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY, v text)", ())
        .unwrap();
    let insert = database.prepare("INSERT INTO t (k, v) VALUES (?, ?)").unwrap();
    let select = database.prepare("SELECT * FROM t").unwrap();
    insert.execute((1, "x")).unwrap();
    database.execute("ALTER TABLE t ADD w int", ()).unwrap();
    insert.execute((2, "y")).unwrap();
    let rows: Vec<_> = select.execute(()).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get::<Option<i32>>("w").unwrap(), None);
    database.execute("DROP TABLE t", ()).unwrap();
    let refused = insert.execute((3, "z")).err().unwrap();
    assert!(
        refused.to_string().contains("table t does not exist"),
        "{refused}"
    );
}
