//! Reads by indexes while rows are written, deleted, flushed and compacted. A row that lives throughout is returned exactly
//! once, with pages of any size; no row is returned twice or with a value that was not searched.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ilion_engine::{Engine, EngineOptions};
use ilion_env::{MemEnv, Seeded};
use ilion_query::{ClientState, EngineStore, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};

use crate::store::cluster_facts;

const PARTITIONS: u64 = 30;
/// Rows of a partition that stay; those after them are inserted and deleted.
const STAYING: u64 = 12;
const COMING: u64 = 6;
const VALUES: u64 = 5;
const WRITERS: u64 = 2;
const WRITES: u64 = 1200;
const READERS: u64 = 2;

/// Key, clustering, the value that stays and the one that changes.
type Found = (u64, u64, u64, u64);

struct Stressed {
    engine: Arc<Engine>,
    processor: QueryProcessor,
    writers_left: AtomicUsize,
}

/// Counts a writer until it has ended or failed.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The value of a row that never changes.
fn kept(k: u64, c: u64) -> u64 {
    (k * 7 + c) % VALUES
}

fn tag(k: u64) -> u64 {
    k % 3
}

impl Stressed {
    fn open(using: &str) -> Self {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 4;
        let engine = Arc::new(Engine::open(MemEnv::new(11).shared(), options).unwrap());
        let store = Arc::new(EngineStore::new(engine.clone(), cluster_facts()));
        let stressed = Self {
            engine,
            processor: QueryProcessor::new(store, QueryOptions::default()),
            writers_left: AtomicUsize::new(usize::try_from(WRITERS).unwrap()),
        };
        for text in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
                .to_owned(),
            "CREATE TABLE ks.t (k int, c int, kept int, moved int, tag int, PRIMARY KEY (k, c))".to_owned(),
            format!("CREATE INDEX ON ks.t (kept){using}"),
            format!("CREATE INDEX ON ks.t (moved){using}"),
            format!("CREATE INDEX ON ks.t (tag){using}"),
        ] {
            stressed.run(&text);
        }
        stressed.engine.wait_idle();
        for k in 0..PARTITIONS {
            (0..STAYING).for_each(|c| stressed.put(k, c, 0, 1));
        }
        stressed
    }

    fn run(&self, text: &str) {
        let options = ExecuteOptions::default();
        let executed = self.processor.query(&mut ClientState::default(), text, &options);
        executed.unwrap_or_else(|refused| panic!("{text}: {refused}"));
    }

    fn put(&self, k: u64, c: u64, moved: u64, micros: u64) {
        let (kept, tag) = (kept(k, c), tag(k));
        self.run(&format!(
            "INSERT INTO ks.t (k, c, kept, moved, tag) VALUES ({k}, {c}, {kept}, {moved}, {tag}) USING TIMESTAMP {micros}"
        ));
    }

    /// Changes rows in the partitions of this writer.
    fn write(&self, writer: u64) {
        let _left = Leaving(&self.writers_left);
        let mut random = Seeded::new(writer);
        for round in 0..WRITES {
            let micros = 10 + round;
            let k = random.below(PARTITIONS / WRITERS) * WRITERS + writer;
            let (c, coming) = (random.below(STAYING), STAYING + random.below(COMING));
            match random.below(8) {
                0..=2 => self.put(k, c, random.below(VALUES), micros),
                3 => self.run(&format!(
                    "UPDATE ks.t USING TIMESTAMP {micros} SET moved = {} WHERE k = {k} AND c = {c}",
                    random.below(VALUES)
                )),
                4 | 5 => self.put(k, coming, random.below(VALUES), micros),
                6 => self.run(&format!(
                    "DELETE FROM ks.t USING TIMESTAMP {micros} WHERE k = {k} AND c >= {STAYING}"
                )),
                _ => self.run(&format!(
                    "DELETE FROM ks.t USING TIMESTAMP {micros} WHERE k = {k} AND c = {coming}"
                )),
            }
        }
    }

    /// Flushes and compacts.
    fn move_data(&self) {
        let schema = self.engine.schema();
        let table = schema.table("ks", "t").unwrap().id;
        for round in 0.. {
            if self.writers_left.load(Ordering::Relaxed) == 0 {
                return;
            }
            self.engine.flush(table).unwrap();
            if round % 4 == 3 {
                self.engine.compact(table).unwrap();
            }
        }
    }

    /// All pages.
    fn ask(&self, clause: &str, page_size: Option<u32>) -> Vec<Found> {
        let text = format!("SELECT k, c, kept, moved FROM ks.t WHERE {clause}");
        let mut options = ExecuteOptions {
            page_size,
            ..ExecuteOptions::default()
        };
        let mut found = Vec::new();
        loop {
            let executed = self.processor.query(&mut ClientState::default(), &text, &options);
            let executed = executed.unwrap_or_else(|refused| panic!("{text}: {refused}"));
            let Outcome::Rows(rows) = executed.outcome else {
                panic!("{text} gives rows");
            };
            let cells = rows.cells.into_vec();
            found.extend(cells.chunks_exact(32).map(row_of));
            match rows.paging_state {
                None => return found,
                Some(state) => options.paging_state = Some(state.into()),
            }
        }
    }

    fn read(&self, reader: u64) {
        let mut random = Seeded::new(100 + reader);
        let mut asked = 0;
        while asked < 20 || self.writers_left.load(Ordering::Relaxed) > 0 {
            asked += 1;
            let page_size = (!random.one_in(4)).then(|| u32::try_from(1 + random.below(40)).unwrap());
            let (value, other) = (random.below(VALUES), random.below(3));
            let is_kept = |k, c| kept(k, c) == value;
            match random.below(6) {
                0 => self.check(&format!("kept = {value}"), page_size, is_kept),
                1 => {
                    let clause = format!("kept = {value} AND moved >= 0 ALLOW FILTERING");
                    self.check(&clause, page_size, is_kept);
                }
                2 => {
                    let clause = format!("kept = {value} AND tag = {other} ALLOW FILTERING");
                    self.check(&clause, page_size, |k, c| is_kept(k, c) && tag(k) == other);
                }
                3 => {
                    let clause = format!("kept = {value} OR tag = {other}");
                    self.check(&clause, page_size, |k, c| is_kept(k, c) || tag(k) == other);
                }
                4 => {
                    let found = self.ask(&format!("moved = {value}"), page_size);
                    once_each(&found);
                    assert!(
                        found.iter().all(|row| row.3 == value),
                        "moved = {value}: {found:?}"
                    );
                }
                _ => {
                    let limit = 1 + usize::try_from(random.below(60)).unwrap();
                    let found = self.ask(&format!("kept = {value} LIMIT {limit}"), page_size);
                    let staying = rows_that_stay(is_kept).len();
                    once_each(&found);
                    assert!(found.len() <= limit && found.len() >= limit.min(staying));
                }
            }
        }
    }

    /// Queries rows, and checks those that must be there.
    fn check(&self, clause: &str, page_size: Option<u32>, is_wanted: impl Fn(u64, u64) -> bool) {
        let found = self.ask(clause, page_size);
        let places = once_each(&found);
        let wrong: Vec<_> = places.iter().filter(|(k, c)| !is_wanted(*k, *c)).collect();
        assert!(wrong.is_empty(), "{clause}, pages of {page_size:?}: {wrong:?}");
        let missing: Vec<_> = rows_that_stay(is_wanted).difference(&places).copied().collect();
        assert!(
            missing.is_empty(),
            "{clause}, pages of {page_size:?}: {missing:?}"
        );
    }
}

fn rows_that_stay(is_wanted: impl Fn(u64, u64) -> bool) -> BTreeSet<(u64, u64)> {
    let all = (0..PARTITIONS).flat_map(|k| (0..STAYING).map(move |c| (k, c)));
    all.filter(|(k, c)| is_wanted(*k, *c)).collect()
}

/// The keys of rows, after checking that none came twice.
fn once_each(found: &[Found]) -> BTreeSet<(u64, u64)> {
    let places: BTreeSet<_> = found.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(places.len(), found.len(), "a row came twice: {found:?}");
    places
}

/// Four cells, each with its length.
fn row_of(cells: &[u8]) -> Found {
    let number = |index: usize| {
        let cell = &cells[index * 8 + 4..index * 8 + 8];
        u64::from(u32::from_be_bytes(cell.try_into().unwrap()))
    };
    (number(0), number(1), number(2), number(3))
}

fn stress(using: &str) {
    let stressed = Stressed::open(using);
    thread::scope(|scope| {
        let stressed = &stressed;
        for writer in 0..WRITERS {
            scope.spawn(move || stressed.write(writer));
        }
        for reader in 0..READERS {
            scope.spawn(move || stressed.read(reader));
        }
        scope.spawn(move || stressed.move_data());
    });
}

#[test]
fn table_indexes_give_what_stays_exactly_once_while_rows_are_written() {
    stress("");
}

#[test]
fn attached_indexes_give_what_stays_exactly_once_while_rows_are_written() {
    stress(" USING 'sai'");
}
