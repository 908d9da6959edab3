//! An index of an application, used by CQL.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

#[path = "../../examples/custom_index/short_texts.rs"]
mod short_texts;

use std::path::Path;
use std::sync::Arc;

use ilion::index::IndexClasses;
use ilion::{Database, Settings};

use self::short_texts::ShortTexts;

const INDEX: &str = "CREATE CUSTOM INDEX by_name ON ks.t (name) USING 'com.example.ShortTexts'";

fn open(directory: &Path, classes: IndexClasses) -> Database {
    let settings = Settings {
        directory: directory.to_owned(),
        ..Settings::default()
    };
    Database::open_with_indexes(&settings, classes).unwrap()
}

fn with_class(directory: &Path) -> Database {
    open(directory, IndexClasses::own().with(Arc::new(ShortTexts)))
}

/// Makes the schema.
fn prepare(database: &Database) {
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (id int PRIMARY KEY, name text, n int)",
        &format!("{INDEX} WITH OPTIONS = {{'bytes_max': '3'}}"),
    ] {
        database.execute(statement, ()).unwrap();
    }
}

fn insert(database: &Database, id: i32, name: &str) -> Result<(), ilion::Error> {
    let cql = "INSERT INTO ks.t (id, name) VALUES (?, ?)";
    database.execute(cql, (id, name)).map(drop)
}

fn refusal(database: &Database, cql: &str) -> String {
    database.execute(cql, ()).map(drop).unwrap_err().to_string()
}

fn named(database: &Database, name: &str) -> Vec<i32> {
    let cql = "SELECT id FROM ks.t WHERE name = ?";
    // A new index is built in the background.
    let rows = loop {
        match database.execute(cql, (name,)) {
            Err(error) if error.to_string().contains("not yet available") => std::thread::yield_now(),
            rows => break rows.unwrap(),
        }
    };
    let mut ids: Vec<i32> = rows.map(|row| row.unwrap().get("id").unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn an_index_of_ones_own_checks_finds_and_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_class(directory.path());
    prepare(&database);
    insert(&database, 1, "Ada").unwrap();
    insert(&database, 2, "Ada").unwrap();
    insert(&database, 2, "Bob").unwrap();
    let refused = insert(&database, 3, "Barbara").unwrap_err();
    assert!(
        refused.to_string().contains("name may have 3 bytes, not 7"),
        "{refused}"
    );
    assert_eq!(named(&database, "Ada"), [1]);
    assert_eq!(named(&database, "Bob"), [2]);

    let refused = refusal(&database, &INDEX.replace("by_name", "other"));
    assert!(refused.contains("bytes_max"), "{refused}");
    let on_int = INDEX.replace("by_name", "by_n").replace("(name)", "(n)");
    let refused = refusal(
        &database,
        &format!("{on_int} WITH OPTIONS = {{'bytes_max': '3'}}"),
    );
    assert!(refused.contains("n is not a column of text"), "{refused}");
}

#[test]
fn a_table_whose_index_has_no_class_here_is_read_and_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_class(directory.path());
    prepare(&database);
    insert(&database, 1, "Ada").unwrap();
    assert_eq!(named(&database, "Ada"), [1]);
    drop(database);

    let database = open(directory.path(), IndexClasses::own());
    let refused = insert(&database, 2, "Ada").unwrap_err().to_string();
    assert!(refused.contains("its index by_name would go stale"), "{refused}");
    let rows = database.execute("SELECT id FROM ks.t", ()).unwrap();
    assert_eq!(rows.count(), 1);
    drop(database);

    let database = with_class(directory.path());
    insert(&database, 2, "Ada").unwrap();
    assert_eq!(named(&database, "Ada"), [1, 2]);
}
