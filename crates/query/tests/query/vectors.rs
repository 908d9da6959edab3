//! `ORDER BY .. ANN OF` compared with a look at every row, on the engine: with writes, overwrites and deletions, in memtables
//! and files, and after a restart.

use std::fmt::Write as _;

use ilion_env::Seeded;

use crate::engine::EngineDisk;
use crate::session::Session;

const KEYS: u64 = 400;
const DIMENSIONS: usize = 8;

/// The random choices of a seed.
struct Random(Seeded);

impl Random {
    fn vector(&mut self) -> String {
        let mut text = "[".to_owned();
        for _ in 0..DIMENSIONS {
            let part = (self.0.next_u64() % 2001) as f64 / 1000.0 - 1.0;
            let _ = write!(text, "{part}, ");
        }
        text.truncate(text.len() - 2);
        text + "]"
    }

    fn key(&mut self) -> (u64, u64) {
        let number = self.0.next_u64() % KEYS;
        (number / 4, number % 4)
    }
}

/// The rows of an answer.
fn rows(answer: &str) -> Vec<&str> {
    let lines = answer.lines().skip(1);
    lines.take_while(|line| !line.starts_with('(')).collect()
}

/// Waits for an index that was created, or is rebuilt after a restart.
fn wait_for_index(session: &mut Session, query: &str) {
    while session.query(query).contains("not yet available") {
        std::thread::yield_now();
    }
}

/// The number of the ten nearest rows that the index finds.
fn hits(session: &mut Session, function: &str, table: &str, query: &str) -> usize {
    let by_index = session.query(&format!(
        "SELECT k, c FROM {table} ORDER BY v ANN OF {query} LIMIT 10"
    ));
    let all = session.query(&format!(
        "SELECT k, c, similarity_{function}(v, {query}) FROM {table}"
    ));
    let mut scored: Vec<(f64, String)> = rows(&all)
        .into_iter()
        .filter_map(|row| {
            let (place, score) = row.rsplit_once(" | ")?;
            Some((score.parse().ok()?, place.to_owned()))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let found = rows(&by_index);
    assert_eq!(found.len(), 10, "{by_index}");
    let nearest = &scored[..10];
    found
        .iter()
        .filter(|row| nearest.iter().any(|(_, place)| place == *row))
        .count()
}

#[test]
fn the_nearest_rows_are_found_wherever_the_data_is() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         USE ks;",
    );
    let functions = ["cosine", "dot_product", "euclidean"];
    for function in functions {
        session.query(&format!(
            "CREATE TABLE {function} (k int, c int, v vector<float, {DIMENSIONS}>, PRIMARY KEY (k, c))"
        ));
        session.query(&format!(
            "CREATE INDEX ON {function} (v) USING 'sai' WITH OPTIONS = {{'similarity_function': '{function}'}}"
        ));
    }
    let mut random = Random(Seeded::new(1));
    let (mut found, mut asked) = (0, 0);
    for step in 0..16 {
        for function in functions {
            for _ in 0..50 {
                let (k, c) = random.key();
                let vector = random.vector();
                session.query(&format!(
                    "INSERT INTO {function} (k, c, v) VALUES ({k}, {c}, {vector})"
                ));
            }
            for _ in 0..5 {
                let (k, c) = random.key();
                session.query(&format!("DELETE FROM {function} WHERE k = {k} AND c = {c}"));
                session.query(&format!(
                    "DELETE v FROM {function} WHERE k = {k} AND c = {}",
                    c ^ 1
                ));
            }
        }
        disk.move_data(&mut session);
        for function in functions {
            let query = random.vector();
            wait_for_index(
                &mut session,
                &format!("SELECT k FROM {function} ORDER BY v ANN OF {query} LIMIT 1"),
            );
            found += hits(&mut session, function, function, &query);
            asked += 10;
        }
        assert!(found * 100 >= asked * 97, "step {step}: {found} of {asked}");
    }
    disk.flush();
    disk.verify_indexes();
}

#[test]
fn a_vector_that_cannot_be_indexed_is_refused() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         USE ks;",
    );
    session.query("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>, w vector<float, 2>)");
    session.query("CREATE INDEX ON t (v) USING 'sai'");
    let answer = session.query("INSERT INTO t (k, v) VALUES (1, [0, 0])");
    assert!(answer.contains("Zero vectors cannot be indexed"), "{answer}");
    let answer = session.query("CREATE CUSTOM INDEX ON t (w) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'x'}");
    assert!(
        answer.contains("Similarity function X was not recognized"),
        "{answer}"
    );
}
