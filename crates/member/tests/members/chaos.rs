//! Clients write and read at the same time, while members lose their power, acknowledgements get lost, and the schema changes. Then the
//! laws are checked.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use ilion_env::{CrashRule, Seeded};
use ilion_histories::{
    Action, Add, CounterRead, Operation, Outcome, Read, Verdict, Write, check_counter, check_fresh,
    check_registers,
};
use ilion_member::LogFaults;
use ilion_query::{Consistency, Error};

use crate::world::{DOWN_MAX, PATIENCE, Running, World, is_passing, run};

const CLIENTS: u32 = 5;
/// Most requests of a client; it stops earlier when all crashes are over.
const REQUESTS_MAX: u32 = 2000;
/// Requests of all clients between two crashes.
const REQUESTS_BETWEEN: u64 = 150;
const MEMBERS: usize = 3;
const CRASHES: u32 = 5;
const COUNTER: i64 = 1;
const BATCH_ROWS: i64 = 6;

#[derive(Default)]
struct History {
    operations: Vec<Operation>,
    adds: Vec<Add>,
    counter_reads: Vec<CounterRead>,
    writes: Vec<Write>,
    reads: Vec<Read>,
    /// The number of each batch, and whether it was acknowledged.
    batches: Vec<(u64, bool)>,
    answered: u32,
}

struct Chaos {
    world: World,
    /// Counts events: a clock that all clients share.
    time: AtomicU64,
    next_value: AtomicU64,
    history: Mutex<History>,
    is_over: AtomicBool,
}

impl Chaos {
    fn now(&self) -> u64 {
        self.time.fetch_add(1, SeqCst)
    }

    fn value(&self) -> u64 {
        self.next_value.fetch_add(1, SeqCst)
    }

    fn someone(&self, random: &mut Seeded) -> std::sync::Arc<Running> {
        loop {
            if let Some(running) = self.world.at(random.below(MEMBERS as u64) as usize) {
                return running;
            }
            thread::yield_now();
        }
    }

    fn client(&self, number: u32) {
        let mut random = Seeded::new(u64::from(number) + 77);
        for _ in 0..REQUESTS_MAX {
            if self.is_over.load(SeqCst) {
                return;
            }
            // Else all requests would be between two crashes.
            thread::sleep(Duration::from_millis(2));
            let node = self.someone(&mut random);
            let key = random.below(3);
            match random.below(9) {
                0 | 1 => self.set(&node, number, key, random.one_in(2)),
                2 | 3 => self.look(&node, number, key),
                4 => self.add(&node, random.below(9) as i64 + 1),
                5 => self.count(&node),
                6 => self.write(&node, key),
                7 => self.batch(&node),
                _ => self.read(&node, number, key),
            }
        }
    }

    fn asked<T>(&self, answer: Result<T, Error>) -> Option<(u64, T)> {
        let returned = self.now();
        match answer {
            Ok(answer) => {
                self.history.lock().unwrap().answered += 1;
                Some((returned, answer))
            }
            Err(error) if is_passing(&error) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// A conditional write: one that always applies, or one that compares.
    fn set(&self, node: &Running, client: u32, key: u64, compares: bool) {
        let value = self.value();
        let (called, signed) = (self.now(), key.cast_signed());
        let text = match compares {
            true => "UPDATE ks.registers SET v = ? WHERE k = ? IF v = null",
            false => "UPDATE ks.registers SET v = ? WHERE k = ? IF v != -1",
        };
        let answer = run(
            &node.processor,
            text,
            &[value.cast_signed(), signed],
            Consistency::QUORUM,
        );
        let action = match compares {
            true => Action::CompareAndSet(None, value),
            false => Action::Write(value),
        };
        let outcome = self.asked(answer).map_or(Outcome::Unknown, |(returned, rows)| {
            let row = &rows[0];
            let is_applied = row[0] == Some(1);
            let found = (!is_applied).then(|| row.last().copied().flatten().map(i64::cast_unsigned));
            Outcome::Done { returned, found }
        });
        self.history.lock().unwrap().operations.push(Operation {
            client,
            key,
            called,
            action,
            outcome,
        });
    }

    fn look(&self, node: &Running, client: u32, key: u64) {
        let called = self.now();
        let text = "SELECT v FROM ks.registers WHERE k = ?";
        let answer = run(&node.processor, text, &[key.cast_signed()], Consistency::SERIAL);
        let outcome = self
            .asked(answer)
            .map_or(Outcome::Unknown, |(returned, rows)| Outcome::Done {
                returned,
                found: Some(rows.first().and_then(|row| row[0]).map(i64::cast_unsigned)),
            });
        self.history.lock().unwrap().operations.push(Operation {
            client,
            key,
            called,
            action: Action::Read,
            outcome,
        });
    }

    fn add(&self, node: &Running, amount: i64) {
        let called = self.now();
        let text = "UPDATE ks.counters SET n = n + ? WHERE k = ?";
        let answer = run(&node.processor, text, &[amount, COUNTER], Consistency::ONE);
        let acknowledged = self.asked(answer).map(|(returned, _)| returned);
        self.history.lock().unwrap().adds.push(Add {
            key: 1,
            amount,
            called,
            acknowledged,
        });
    }

    fn count(&self, node: &Running) {
        let called = self.now();
        let text = "SELECT n FROM ks.counters WHERE k = ?";
        let answer = run(&node.processor, text, &[COUNTER], Consistency::QUORUM);
        if let Some((returned, rows)) = self.asked(answer) {
            let value = rows.first().and_then(|row| row[0]).unwrap_or(0);
            self.history.lock().unwrap().counter_reads.push(CounterRead {
                key: 1,
                called,
                returned,
                value,
            });
        }
    }

    /// A plain write, whose timestamp is its version.
    fn write(&self, node: &Running, key: u64) {
        let version = self.value();
        let signed = [version, key, version].map(u64::cast_signed);
        let text = "UPDATE ks.cells USING TIMESTAMP ? SET v = ? WHERE k = 0 AND c = ?";
        let answer = run(
            &node.processor,
            text,
            &[signed[0], signed[2], signed[1]],
            Consistency::ONE,
        );
        let acknowledged = self.asked(answer).map(|(returned, _)| returned);
        self.history.lock().unwrap().writes.push(Write {
            key,
            version,
            acknowledged,
        });
    }

    /// A logged batch over several partitions. Its rows have a number of their own.
    fn batch(&self, node: &Running) {
        let number = self.value();
        let row = |key| format!("INSERT INTO ks.batches (k, n) VALUES ({key}, {number});");
        let rows: String = (0..BATCH_ROWS).map(row).collect();
        let answer = run(
            &node.processor,
            &format!("BEGIN BATCH {rows} APPLY BATCH"),
            &[],
            Consistency::ONE,
        );
        let is_acknowledged = self.asked(answer).is_some();
        self.history
            .lock()
            .unwrap()
            .batches
            .push((number, is_acknowledged));
    }

    fn read(&self, node: &Running, client: u32, key: u64) {
        let called = self.now();
        let text = "SELECT v FROM ks.cells WHERE k = 0 AND c = ?";
        let answer = run(&node.processor, text, &[key.cast_signed()], Consistency::QUORUM);
        if let Some((returned, rows)) = self.asked(answer) {
            let version = rows.first().and_then(|row| row[0]).map_or(0, i64::cast_unsigned);
            self.history.lock().unwrap().reads.push(Read {
                reader: client,
                key,
                called,
                returned,
                version,
            });
        }
    }

    /// Members lose their power one after the other, and the schema changes. Goes on when clients have sent enough.
    fn disturb(&self) {
        let mut random = Seeded::new(5);
        for round in 0..CRASHES {
            let due = self.time.load(SeqCst) + 2 * REQUESTS_BETWEEN;
            while self.time.load(SeqCst) < due {
                thread::sleep(Duration::from_millis(1));
            }
            let node = self.someone(&mut random);
            let altered = run(
                &node.processor,
                &format!("ALTER TABLE ks.registers ADD more{round} bigint"),
                &[],
                Consistency::ONE,
            );
            drop(self.asked(altered));
            let rule = match random.below(3) {
                0 => CrashRule::KeepAll,
                1 => CrashRule::LoseUnsynced,
                _ => CrashRule::Seeded(random.next_u64()),
            };
            let place = random.below(MEMBERS as u64) as usize;
            let Some(disk) = self.world.lose(place, rule) else {
                continue;
            };
            if round % 2 == 1 {
                // It is away until the others have trimmed what it lacks.
                thread::sleep(DOWN_MAX * 2);
            }
            self.world.start(place, disk);
        }
        self.is_over.store(true, SeqCst);
    }
}

/// All rows of a table, as a node has them.
fn content(node: &Running, table: &str) -> Vec<Vec<Option<i64>>> {
    run(
        &node.local,
        &format!("SELECT * FROM ks.{table}"),
        &[],
        Consistency::ONE,
    )
    .unwrap()
}

/// Waits until each batch is there as a whole or not at all. One that was acknowledged is there.
fn check_batches(node: &Running, batches: &[(u64, bool)]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = run(
            &node.processor,
            "SELECT n FROM ks.batches",
            &[],
            Consistency::QUORUM,
        )
        .unwrap();
        let mut rows: BTreeMap<u64, i64> = BTreeMap::new();
        for number in found.iter().filter_map(|row| row[0]) {
            *rows.entry(number.cast_unsigned()).or_default() += 1;
        }
        for (number, _) in batches.iter().filter(|(_, is_acknowledged)| *is_acknowledged) {
            assert_eq!(
                rows.get(number),
                Some(&BATCH_ROWS),
                "batch {number} was acknowledged"
            );
        }
        if rows.values().all(|count| *count == BATCH_ROWS) {
            return;
        }
        assert!(Instant::now() < deadline, "batches are there in part: {rows:?}");
        thread::yield_now();
    }
}

#[test]
fn clients_see_one_database_while_members_crash_and_acknowledgements_are_lost() {
    let chaos = Chaos {
        world: World::new(MEMBERS, 4),
        time: AtomicU64::new(1),
        next_value: AtomicU64::new(1),
        history: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let first = chaos.world.at(0).unwrap();
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE ks.registers (k bigint PRIMARY KEY, v bigint)",
        "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter)",
        "CREATE TABLE ks.cells (k bigint, c bigint, v bigint, PRIMARY KEY (k, c))",
        "CREATE TABLE ks.batches (k bigint, n bigint, PRIMARY KEY (k, n))",
    ] {
        run(&first.processor, statement, &[], Consistency::ONE).unwrap();
    }
    drop(first);
    let faults = LogFaults {
        lost_request: 20,
        lost_answer: 20,
        duplicate: 20,
    };
    chaos.world.logs.go_wrong(faults, 3);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let chaos = &chaos;
            scope.spawn(move || chaos.client(number));
        }
        scope.spawn(|| chaos.disturb());
    });
    chaos.world.logs.go_right();
    chaos.world.check_states(&[0, 1, 2]);
    let history = chaos.history.lock().unwrap();
    assert!(
        history.answered > CRASHES * REQUESTS_BETWEEN as u32 / 2,
        "{} answers",
        history.answered
    );
    check_fresh(&history.writes, &history.reads).unwrap_or_else(|violation| panic!("{violation}"));
    check_counter(&history.adds, &history.counter_reads).unwrap_or_else(|violation| panic!("{violation}"));
    let verdict = check_registers(&history.operations, 1_000_000);
    assert!(!matches!(verdict, Verdict::Wrong(_)), "{verdict:?}");
    check_batches(&chaos.world.at(0).unwrap(), &history.batches);
    let mut contents = BTreeMap::new();
    for place in 0..MEMBERS {
        let node = chaos.world.at(place).unwrap();
        assert_eq!(node.member.halted(), None);
        for table in ["registers", "counters", "cells", "batches"] {
            // A read with barriers: afterwards this node has everything.
            run(
                &node.processor,
                &format!("SELECT * FROM ks.{table}"),
                &[],
                Consistency::QUORUM,
            )
            .unwrap();
            let content = content(&node, table);
            let first = contents.entry(table).or_insert_with(|| content.clone());
            assert_eq!(*first, content, "{table} of member {place}");
        }
    }
}
