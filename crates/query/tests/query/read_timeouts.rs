//! A SELECT that takes too long ends; a short one does not, even if the clock says so.

use std::time::Duration;

use crate::engine::EngineDisk;
use crate::session::Session;

const ROWS: usize = 6000;

/// Many rows in one partition, many partitions of one row, and a dead row beside each live one; on disk or in memory.
fn filled(disk: &mut EngineDisk, is_flushed: bool) -> Session {
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         CREATE TABLE ks.wide (k int, c int, v int, w int, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 0;
         CREATE TABLE ks.many (k int PRIMARY KEY, v int, w int);
         CREATE TABLE ks.dead (k int, c int, v int, w text, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 0;
         CREATE TABLE ks.few (k int, c int, v int, PRIMARY KEY (k, c));
         CREATE INDEX ON ks.many (w)",
    );
    for chunk in 0..ROWS / 100 {
        let of = |table: &str, row: usize| match table {
            "many" => format!("INSERT INTO ks.many (k, v, w) VALUES ({row}, {row}, 1) USING TIMESTAMP 5;"),
            "dead" => format!(
                "INSERT INTO ks.dead (k, c, v, w) VALUES (1, {row}, {row}, '{row:0100}') USING TIMESTAMP 5;"
            ),
            table => {
                format!("INSERT INTO ks.{table} (k, c, v, w) VALUES (1, {row}, {row}, 1) USING TIMESTAMP 5;")
            }
        };
        for table in ["wide", "many", "dead"] {
            let rows: String = (chunk * 100..(chunk + 1) * 100)
                .map(|row| of(table, row))
                .collect();
            session.script(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"));
        }
    }
    if is_flushed {
        disk.flush();
    }
    session.script("DELETE FROM ks.dead USING TIMESTAMP 6 WHERE k = 1 AND c >= 0");
    for c in 0..10 {
        session.script(&format!("INSERT INTO ks.few (k, c, v) VALUES (1, {c}, 1)"));
    }
    if is_flushed {
        disk.flush();
    }
    session
}

const OF_RANGES: [&str; 6] = [
    "SELECT * FROM ks.wide WHERE v = -1 ALLOW FILTERING",
    "SELECT count(*) FROM ks.many WHERE v = -1 ALLOW FILTERING",
    "SELECT max(v) FROM ks.wide",
    "SELECT count(*) FROM ks.many",
    "SELECT k, sum(v) FROM ks.many GROUP BY k",
    "SELECT k FROM ks.many WHERE w = 1 AND v = -1 ALLOW FILTERING",
];

const OF_PARTITIONS: [&str; 2] = [
    "SELECT count(*) FROM ks.wide WHERE k = 1 AND v = -1 ALLOW FILTERING",
    "SELECT sum(v) FROM ks.wide WHERE k IN (1, 2)",
];

/// Returns no rows, and reads much if they are on disk.
const OF_DEAD_ROWS: [&str; 1] = ["SELECT * FROM ks.dead WHERE k = 1"];

const SHORT: [&str; 4] = [
    "SELECT * FROM ks.wide WHERE k = 1 AND c = 77",
    "SELECT * FROM ks.wide WHERE k = 1 AND c > 77 LIMIT 10",
    "SELECT * FROM ks.many LIMIT 10",
    "SELECT count(*) FROM ks.few",
];

fn assert_timeouts(session: &mut Session, statements: &[&str], are_ended: bool) {
    for statement in statements {
        let answer = session.query(statement);
        let is_ended = answer.starts_with("error ReadTimeout: Operation timed out - ");
        assert_eq!(is_ended, are_ended, "{statement}: {:.200}", answer);
        assert!(
            is_ended || !answer.starts_with("error"),
            "{statement}: {:.200}",
            answer
        );
    }
}

#[test]
fn a_select_ends_when_its_time_is_over() {
    for is_flushed in [true, false] {
        let mut disk = EngineDisk::new();
        let mut session = filled(&mut disk, is_flushed);
        let at_once = Some(Duration::ZERO);
        session.limit_time(None, at_once);
        assert_timeouts(&mut session, &OF_RANGES, true);
        assert_timeouts(&mut session, &OF_PARTITIONS, false);
        assert_timeouts(&mut session, &SHORT, false);
        session.limit_time(at_once, None);
        assert_timeouts(&mut session, &OF_RANGES, false);
        assert_timeouts(&mut session, &OF_PARTITIONS, true);
        assert_timeouts(&mut session, &OF_DEAD_ROWS, is_flushed);
        assert_timeouts(&mut session, &SHORT, false);
        // With more time the rows are there.
        session.limit_time(Some(Duration::from_secs(1000)), Some(Duration::from_secs(1000)));
        assert_timeouts(&mut session, &OF_RANGES, false);
        assert_timeouts(&mut session, &OF_PARTITIONS, false);
        assert_timeouts(&mut session, &OF_DEAD_ROWS, false);
        assert!(session.query("SELECT count(*) FROM ks.many").contains("6000"));
    }
}

#[test]
fn a_node_that_stops_ends_what_takes_long() {
    let mut disk = EngineDisk::new();
    let mut session = filled(&mut disk, true);
    assert_timeouts(&mut session, &OF_RANGES, false);
    session.end_long_reads();
    assert_timeouts(&mut session, &OF_RANGES, true);
    assert_timeouts(&mut session, &OF_PARTITIONS, true);
    assert_timeouts(&mut session, &SHORT, false);
}
