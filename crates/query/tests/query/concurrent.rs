//! Statements that read before they write, from many threads at once.

use std::thread;

use ilion_query::{ClientState, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};

use crate::store::TestStore;

const THREADS: i32 = 4;
const ROUNDS: i32 = 25;

fn processor() -> QueryProcessor {
    let processor = QueryProcessor::new(TestStore::in_memory(), QueryOptions::default());
    for cql in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)",
        "CREATE TABLE ks.owners (k int PRIMARY KEY, owner int)",
        "CREATE TABLE ks.lists (k int PRIMARY KEY, l list<int>)",
    ] {
        cells(&processor, cql);
    }
    processor
}

/// Rows in the form of the protocol; empty for other answers.
fn cells(processor: &QueryProcessor, cql: &str) -> Vec<u8> {
    let options = ExecuteOptions::default();
    let executed = processor.query(&mut ClientState::default(), cql, &options);
    match executed.unwrap().outcome {
        Outcome::Rows(rows) => rows.cells.into_vec(),
        _ => Vec::new(),
    }
}

fn in_threads<T: Send>(work: impl Fn(i32) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let work = &work;
                scope.spawn(move || work(thread))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn no_increment_is_lost() {
    let processor = processor();
    in_threads(|_| {
        for _ in 0..ROUNDS {
            cells(&processor, "UPDATE ks.counts SET n = n + 1 WHERE k = 1");
        }
    });
    let total = i64::from(THREADS * ROUNDS).to_be_bytes();
    assert_eq!(
        cells(&processor, "SELECT n FROM ks.counts WHERE k = 1")[4..],
        total
    );
}

#[test]
fn one_of_many_wins_a_condition() {
    const APPLIED: [u8; 5] = [0, 0, 0, 1, 1];
    let processor = processor();
    let wins = in_threads(|thread| {
        (0..ROUNDS)
            .filter(|round| {
                let cql =
                    format!("INSERT INTO ks.owners (k, owner) VALUES ({round}, {thread}) IF NOT EXISTS");
                cells(&processor, &cql) == APPLIED
            })
            .count()
    });
    assert_eq!(wins.iter().sum::<usize>(), usize::try_from(ROUNDS).unwrap());
}

#[test]
fn positions_of_lists_are_found_and_changed_in_one_step() {
    let processor = processor();
    let all: Vec<String> = (0..THREADS * ROUNDS).map(|value| value.to_string()).collect();
    cells(
        &processor,
        &format!("INSERT INTO ks.lists (k, l) VALUES (1, [{}])", all.join(", ")),
    );
    in_threads(|_| {
        for _ in 0..ROUNDS {
            cells(&processor, "DELETE l[0] FROM ks.lists WHERE k = 1");
        }
    });
    let null = (-1i32).to_be_bytes();
    assert_eq!(cells(&processor, "SELECT l FROM ks.lists WHERE k = 1"), null);
}
