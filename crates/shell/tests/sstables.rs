//! `ilion cql --sstables`: SSTables of Cassandra and of Ilion are read with a schema, and stay as they are.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, MemEnv, RealEnv};
use ilion_node::Node;
use ilion_query::{ClientState, ExecuteOptions};
use ilion_settings::Settings;
use ilion_shell::{Format, How, Output, SSTables, Session, Shell, ShellSettings, open_sstables};
use serde_json::Value;

/// Cases in `crates/sstable/testdata` with rows that never expire, one for each format at least.
const CASES: [&str; 7] = [
    "all_scalars-nb",
    "collections_udt-nb",
    "counters-nb",
    "simple_kv-da",
    "static_columns-nb",
    "static_columns-da",
    "wide_range_tombstones-da",
];

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sstable/testdata")
        .join(name)
}

/// The names and contents of all files below a directory.
fn contents(env: &dyn Env, directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in env.list(directory).unwrap() {
        let path = directory.join(&entry.name);
        match entry.is_dir {
            true => found.extend(contents(env, &path)),
            false => drop(found.insert(path.clone(), env.read_all(&path, 1 << 30).unwrap())),
        }
    }
    found
}

/// What the shell prints: results and errors.
fn run(session: Box<dyn Session>, env: &Arc<dyn Env>, script: &str) -> (String, String) {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let settings = ShellSettings {
        how: How::default(),
        format: Format::Json,
        is_interactive: false,
    };
    let output = Output::new(&mut out, &mut errors);
    let mut shell = Shell::new(session, env.clone(), output, settings);
    shell.run_script("<stdin>", &mut script.as_bytes()).unwrap();
    drop(shell);
    (
        String::from_utf8(out).unwrap(),
        String::from_utf8(errors).unwrap(),
    )
}

fn open(env: &Arc<dyn Env>, folder: &Path, schema: &Path) -> SSTables {
    open_sstables(env, folder, schema, &Settings::default()).unwrap()
}

fn refusal(env: &Arc<dyn Env>, folder: &Path, schema: &Path) -> String {
    let opened = open_sstables(env, folder, schema, &Settings::default());
    match opened {
        Ok(_) => panic!("{} was opened", folder.display()),
        Err(error) => format!("{error:#}"),
    }
}

/// Rows of Cassandra's answer; only columns that JSON writes in one way.
fn expected_rows(case: &Path) -> Option<(Vec<String>, Vec<Vec<Value>>)> {
    let text = std::fs::read_to_string(case.join("select.json")).ok()?;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let columns = answer["columns"].as_array().unwrap();
    let simple: Vec<usize> = (0..columns.len())
        .filter(|index| ["text", "int"].contains(&columns[*index][1].as_str().unwrap()))
        .collect();
    let names = simple
        .iter()
        .map(|index| columns[*index][0].as_str().unwrap().to_owned());
    let rows = answer["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| simple.iter().map(|index| row[*index].clone()).collect());
    Some((names.collect(), rows.collect()))
}

#[test]
fn tables_that_cassandra_wrote_are_read_and_stay_as_they_are() {
    let env: Arc<dyn Env> = RealEnv::new();
    let mut compared = 0;
    for name in CASES {
        let case = case(name);
        let table = name.split_once('-').unwrap().0;
        let before = contents(&*env, &case);
        // The directory of the table, its keyspace's, and that of the case; both forms of the schema.
        let folders = [case.join("fx").join(table), case.join("fx"), case.clone()];
        for (folder, schema) in folders.iter().zip(["schema.cql", "describe.cql", "schema.cql"]) {
            let schema = case.join(schema);
            // What DESCRIBE prints of one table lacks the types of its keyspace.
            let schema = match table == "collections_udt" {
                true => case.join("schema.cql"),
                false => schema,
            };
            let opened = open(&env, folder, &schema);
            assert_eq!(opened.notes, Vec::<String>::new(), "{name}");
            let (out, errors) = run(
                Box::new(opened.session),
                &env,
                &format!("SELECT * FROM fx.{table};"),
            );
            assert_eq!(errors, "", "{name}");
            assert!(out.lines().count() > 3, "{name}: {out}");
            let Some((columns, rows)) = expected_rows(&case) else {
                continue;
            };
            let found: Vec<Vec<Value>> = out
                .lines()
                .map(|line| {
                    let row: Value = serde_json::from_str(line).unwrap();
                    columns.iter().map(|column| row[column].clone()).collect()
                })
                .collect();
            assert_eq!(found, rows, "{name}");
            compared += 1;
        }
        assert!(contents(&*env, &case) == before, "{name} has changed");
    }
    assert!(compared >= 9, "{compared}");
}

/// A data directory of Ilion with two tables, an index, and rows in several SSTables; the schema, as DESCRIBE prints it.
fn own_directory() -> (Arc<dyn Env>, String) {
    let env = MemEnv::new(1).shared();
    let settings = Settings {
        directory: "/ilion".into(),
        ..Settings::default()
    };
    let node = Node::open(env.clone(), &settings).unwrap();
    let mut client = ClientState::default();
    let mut execute = |statement: &str| {
        let executed = node
            .processor()
            .query(&mut client, statement, &ExecuteOptions::default());
        executed
            .map_err(|error| format!("{statement}: {}", error.message()))
            .unwrap();
    };
    execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    execute("CREATE TABLE shop.orders (id int PRIMARY KEY, total int)");
    execute("CREATE TABLE shop.customers (id int PRIMARY KEY, name text)");
    execute("CREATE TABLE shop.unused (id int PRIMARY KEY)");
    execute("CREATE INDEX names ON shop.customers (name)");
    for id in 0..3 {
        execute(&format!("INSERT INTO shop.orders (id, total) VALUES ({id}, 10)"));
        execute(&format!(
            "INSERT INTO shop.customers (id, name) VALUES ({id}, 'Tush')"
        ));
        node.engine().flush_all().unwrap();
    }
    execute("DELETE FROM shop.orders WHERE id = 1");
    node.engine().flush_all().unwrap();
    drop(node);
    let session = ilion_shell::Embedded::open(env.clone(), &settings).unwrap();
    let (schema, errors) = run(Box::new(session), &env, "DESCRIBE KEYSPACE shop");
    assert_eq!(errors, "");
    write(&*env, "/schema.cql", &schema);
    (env, schema)
}

fn write(env: &dyn Env, path: &str, text: &str) {
    env.write_atomically(Path::new(path), text.as_bytes()).unwrap();
}

#[test]
fn several_tables_of_a_data_directory_are_read_together() {
    let (env, _) = own_directory();
    let before = contents(&*env, Path::new("/ilion"));
    let opened = open(&env, Path::new("/ilion"), Path::new("/schema.cql"));
    let notes = opened.notes.join("\n");
    assert!(notes.contains("left out: CREATE INDEX names"), "{notes}");
    assert!(notes.contains("no SSTables: shop.unused"), "{notes}");
    assert!(notes.contains("the commit log is not read"), "{notes}");
    assert!(
        notes.contains("not of a table of the schema: /ilion/data/system"),
        "{notes}"
    );
    let script =
        "USE shop; SELECT * FROM orders; SELECT id FROM customers WHERE name = 'Tush' ALLOW FILTERING;";
    let (out, errors) = run(Box::new(opened.session), &env, script);
    assert_eq!(errors, "");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            r#"{"id": 0, "total": 10}"#,
            r#"{"id": 0}"#,
            r#"{"id": 1}"#,
            r#"{"id": 2, "total": 10}"#,
            r#"{"id": 2}"#
        ]
    );
    assert!(contents(&*env, Path::new("/ilion")) == before);
}

#[test]
fn statements_that_write_are_refused() {
    let (env, _) = own_directory();
    write(&*env, "/rows.csv", "7,70\n");
    let writes = [
        "INSERT INTO shop.orders (id) VALUES (7)",
        "UPDATE shop.orders SET total = 1 WHERE id = 0",
        "DELETE FROM shop.orders WHERE id = 0",
        "BEGIN BATCH INSERT INTO shop.orders (id) VALUES (7); APPLY BATCH",
        "TRUNCATE shop.orders",
        "DROP TABLE shop.orders",
        "ALTER TABLE shop.orders ADD x int",
        "CREATE TABLE shop.more (a int PRIMARY KEY)",
        "CREATE ROLE anna",
        "COPY shop.orders FROM '/rows.csv'",
    ];
    for statement in writes {
        let opened = open(&env, Path::new("/ilion"), Path::new("/schema.cql"));
        let script = format!("{statement}; SELECT count(*) AS n FROM shop.orders;");
        let (out, errors) = run(Box::new(opened.session), &env, &script);
        assert!(
            errors.contains("SSTables are opened for reading only"),
            "{statement}: {errors}"
        );
        assert_eq!(out.lines().last(), Some(r#"{"n": 2}"#), "{statement}");
    }
}

#[test]
fn a_folder_that_does_not_fit_the_schema_is_refused_with_the_reason() {
    let (env, schema) = own_directory();
    let folder = Path::new("/ilion");
    write(&*env, "/other.cql", &schema.replace("total int", "amount int"));
    let error = refusal(&env, folder, Path::new("/other.cql"));
    assert!(error.contains("is not of shop.orders of the schema"), "{error}");
    assert!(error.contains("the table has no column total"), "{error}");

    write(
        &*env,
        "/other.cql",
        "CREATE TABLE shop.invoices (id int PRIMARY KEY);",
    );
    let error = refusal(&env, folder, Path::new("/other.cql"));
    assert!(
        error.contains("no table of /other.cql has SSTables in /ilion: there are /ilion/data/"),
        "{error}"
    );

    env.create_dir_all(Path::new("/empty")).unwrap();
    let error = refusal(&env, Path::new("/empty"), Path::new("/schema.cql"));
    assert_eq!(error, "there are no SSTables in /empty");

    write(&*env, "/other.cql", "SELECT * FROM shop.orders;");
    let error = refusal(&env, folder, Path::new("/other.cql"));
    assert_eq!(
        error,
        "/other.cql: this is no statement of a schema: SELECT * FROM shop.orders"
    );
    assert!(refusal(&env, folder, Path::new("/nowhere.cql")).contains("/nowhere.cql"));
}
