//! Batches of statements.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use ilion::{BatchKind, Error, StatementError};

use crate::database::fresh;

#[test]
fn a_batch_makes_all_of_its_writes() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int PRIMARY KEY, v text)", ())
        .unwrap();
    let insert = database.prepare("INSERT INTO t (k, v) VALUES (?, ?)").unwrap();
    let mut batch = database.batch(BatchKind::Logged);
    assert!(batch.is_empty());
    batch
        .add(&insert, (1, "one"))
        .unwrap()
        .add(&insert, (2, "two"))
        .unwrap();
    batch
        .add_cql("INSERT INTO t (k, v) VALUES (3, 'three')", ())
        .unwrap();
    batch
        .add_cql("UPDATE t SET v = ? WHERE k = ?", ("four", 4))
        .unwrap();
    assert_eq!(batch.len(), 4);
    // The table changes while the batch is put together.
    database.execute("ALTER TABLE t ADD w int", ()).unwrap();
    batch.execute().unwrap();
    let rows = database.execute("SELECT k, v FROM t", ()).unwrap();
    let mut rows: Vec<(i32, String)> = rows.read().collect::<Result<_, _>>().unwrap();
    rows.sort_unstable();
    let expected = [(1, "one"), (2, "two"), (3, "three"), (4, "four")];
    assert_eq!(rows, expected.map(|(k, v)| (k, v.to_owned())));
    let counted = database
        .query_one(
            "SELECT calls, statement FROM system_views.statements WHERE keyspace_name = 'ks' AND statement >= 'BEGIN' AND statement < 'C' ALLOW FILTERING",
            (),
        )
        .unwrap();
    assert_eq!(counted.get::<i64>("calls").unwrap(), 1);
}

#[test]
fn a_batch_with_a_condition_says_whether_it_was_applied() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))", ())
        .unwrap();
    let try_once = || {
        let mut batch = database.batch(BatchKind::Unlogged);
        let insert = "INSERT INTO t (k, c, v) VALUES (1, ?, 0) IF NOT EXISTS";
        batch
            .add_cql(insert, (1,))
            .unwrap()
            .add_cql(insert, (2,))
            .unwrap();
        let first = batch.execute().unwrap().next().unwrap().unwrap();
        first.get::<bool>("[applied]").unwrap()
    };
    assert!(try_once());
    assert!(!try_once());
}

#[test]
fn what_does_not_belong_into_a_batch_is_refused() {
    let (_env, database) = fresh();
    let (_other_env, other) = fresh();
    for database in [&database, &other] {
        database
            .execute("CREATE TABLE t (k int PRIMARY KEY)", ())
            .unwrap();
    }
    let insert = other.prepare("INSERT INTO t (k) VALUES (?)").unwrap();
    let mut batch = database.batch(BatchKind::Logged);
    let refused = batch.add(&insert, (1,)).err().unwrap().to_string();
    assert!(refused.contains("prepared by another database"), "{refused}");
    batch.add_cql("SELECT * FROM t", ()).unwrap();
    assert!(matches!(
        batch.execute(),
        Err(Error::Statement(
            StatementError::Invalid(_) | StatementError::Syntax(_)
        ))
    ));
}
