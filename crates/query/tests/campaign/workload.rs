//! Random statements and operations, on a table with indexes and a view and on a table of counters.

use crate::random::Random;

#[derive(Clone, Debug)]
pub enum Step {
    Statement(String),
    /// Flushes all memtables.
    Flush,
    /// Compacts the SSTables of each table to one.
    Compact,
    /// Flushes and stops writes, as before an orderly stop.
    Drain,
    /// An orderly stop and a start.
    Restart,
}

/// The start of each run.
const SETUP: [&str; 6] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int, c int, v text, w int, l list<int>, m map<text, int>, s text static, PRIMARY KEY (k, c))",
    "CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)",
    "CREATE INDEX by_w ON ks.t (w)",
    "CREATE INDEX by_v ON ks.t (v) USING 'sai'",
    "CREATE MATERIALIZED VIEW ks.t_by_w AS SELECT * FROM ks.t WHERE w IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (w, k, c)",
];

/// Schema changes; some are refused, which is an answer as well.
const SCHEMA: [&str; 14] = [
    "CREATE INDEX by_w ON ks.t (w)",
    "DROP INDEX ks.by_w",
    "CREATE INDEX by_v ON ks.t (v) USING 'sai'",
    "DROP INDEX ks.by_v",
    "CREATE INDEX by_m ON ks.t (keys(m))",
    "DROP INDEX ks.by_m",
    "CREATE MATERIALIZED VIEW ks.t_by_w AS SELECT * FROM ks.t WHERE w IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (w, k, c)",
    "DROP MATERIALIZED VIEW ks.t_by_w",
    "ALTER TABLE ks.t ADD x int",
    "CREATE TABLE ks.other (k int PRIMARY KEY, v text)",
    "DROP TABLE ks.other",
    "CREATE TYPE ks.pair (a int, b text)",
    "DROP TYPE ks.pair",
    "ALTER TABLE ks.t WITH comment = 'changed' AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
];

/// The queries that show the state of a node.
pub const QUERIES: [&str; 12] = [
    "SELECT keyspace_name, table_name, comment FROM system_schema.tables WHERE keyspace_name = 'ks'",
    "SELECT table_name, column_name, kind, type FROM system_schema.columns WHERE keyspace_name = 'ks'",
    "SELECT table_name, index_name, kind FROM system_schema.indexes WHERE keyspace_name = 'ks'",
    "SELECT view_name, base_table_name FROM system_schema.views WHERE keyspace_name = 'ks'",
    "SELECT type_name, field_names FROM system_schema.types WHERE keyspace_name = 'ks'",
    "SELECT * FROM ks.t",
    "SELECT * FROM ks.t_by_w",
    "SELECT k, c, w FROM ks.t WHERE w = 1",
    "SELECT k, c, v FROM ks.t WHERE v = 'b'",
    "SELECT k, c, m FROM ks.t WHERE m CONTAINS KEY 'x'",
    "SELECT * FROM ks.counts",
    "SELECT * FROM ks.other",
];

/// The steps of a seed.
pub fn steps(seed: u64, count: u64) -> Vec<Step> {
    let mut random = Random::new(seed);
    let setup = SETUP
        .iter()
        .map(|statement| Step::Statement((*statement).to_owned()));
    let rest = (0..count).map(|_| step(&mut random));
    setup.chain(rest).collect()
}

fn step(random: &mut Random) -> Step {
    match random.below(40) {
        0 | 1 => Step::Flush,
        2 => Step::Compact,
        3 => Step::Drain,
        4 => Step::Restart,
        5..=8 => Step::Statement(random.one_of(&SCHEMA).to_owned()),
        9 => Step::Statement("TRUNCATE ks.t".to_owned()),
        10 | 11 => Step::Statement(counter(random)),
        12 | 13 => Step::Statement(conditional(random)),
        14..=17 => Step::Statement(batch(random)),
        18 => Step::Statement(format!(
            "INSERT INTO ks.other (k, v) VALUES ({}, 'o')",
            random.below(3)
        )),
        _ => Step::Statement(change(random)),
    }
}

fn row(random: &mut Random) -> String {
    format!("k = {} AND c = {}", random.below(3), random.below(4))
}

fn text(random: &mut Random) -> &'static str {
    random.one_of(&["a", "b", "c", "", "a longer text that is not held in place"])
}

fn change(random: &mut Random) -> String {
    let (k, c, w) = (random.below(3), random.below(4), random.below(3));
    match random.below(12) {
        0 => format!("DELETE FROM ks.t WHERE {}", row(random)),
        1 => format!("DELETE FROM ks.t WHERE k = {k} AND c >= {c}"),
        2 => format!("DELETE FROM ks.t WHERE k = {k}"),
        3 => format!("DELETE w FROM ks.t WHERE {}", row(random)),
        4 => format!(
            "UPDATE ks.t SET l = l + [{w}], m['x'] = {w} WHERE {}",
            row(random)
        ),
        5 => format!("UPDATE ks.t SET m = {{'x': {w}, 'y': 1}} WHERE {}", row(random)),
        6 => format!("UPDATE ks.t SET s = '{}' WHERE k = {k}", text(random)),
        7 => format!("UPDATE ks.t SET w = {w} WHERE {}", row(random)),
        8 => format!("UPDATE ks.t SET x = {w} WHERE {}", row(random)),
        _ => format!(
            "INSERT INTO ks.t (k, c, v, w) VALUES ({k}, {c}, '{}', {w})",
            text(random)
        ),
    }
}

fn counter(random: &mut Random) -> String {
    format!(
        "UPDATE ks.counts SET n = n + {} WHERE k = {}",
        random.below(5),
        random.below(3)
    )
}

fn conditional(random: &mut Random) -> String {
    let (k, c, w) = (random.below(3), random.below(4), random.below(3));
    match random.below(3) {
        0 => format!(
            "INSERT INTO ks.t (k, c, v, w) VALUES ({k}, {c}, '{}', {w}) IF NOT EXISTS",
            text(random)
        ),
        1 => format!(
            "UPDATE ks.t SET w = {w} WHERE {} IF w = {}",
            row(random),
            random.below(3)
        ),
        _ => format!("DELETE FROM ks.t WHERE {} IF EXISTS", row(random)),
    }
}

fn batch(random: &mut Random) -> String {
    let count = 2 + random.below(4);
    let members: Vec<String> = (0..count).map(|_| change(random)).collect();
    format!("BEGIN BATCH {}; APPLY BATCH", members.join("; "))
}
