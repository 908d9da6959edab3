//! [`Machine`]: a node with a real engine and replica, on a disk in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Tablets;
use ilion_commitlog::{Envelope, Kind, Origin, Position};
use ilion_engine::{Engine, EngineOptions, TabletPosition};
use ilion_env::{CrashRule, MemEnv, Seeded};
use ilion_histories::{Value as Register, Violation};
use ilion_query::{
    ClientState, Error, ExecuteOptions, Executed, Outcome, QueryOptions, QueryProcessor, ResultSet, Value,
    Values,
};
use ilion_replica::{Applied, NotApplied, Replica, ReplicaOptions};
use ilion_rows::{ClusteringFilter, DecoratedKey};
use ilion_schema::TableSchema;
use uuid::Uuid;

use super::capture::{CaptureStore, Captured};
use crate::engine::Command;
use crate::log::{Answer, Side, SimLog, Ticket};
use crate::member::{Member, Reply, Request, Tailed};
use crate::world::{CELLS, COUNTER, REGISTERS};

/// All nodes make the same tables, with the same ids.
const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.registers (k bigint PRIMARY KEY, v bigint) WITH id = 00000000-0000-4000-8000-000000000001",
    "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter) WITH id = 00000000-0000-4000-8000-000000000002",
    "CREATE TABLE ks.cells (k bigint, c bigint, v bigint, PRIMARY KEY (k, c)) \
     WITH id = 00000000-0000-4000-8000-000000000003",
];
const TABLES: [&str; 3] = ["registers", "counters", "cells"];
const CLUSTER: Uuid = Uuid::from_u128(7);

struct Pending {
    request: Request,
    record: Captured,
    origin: Origin,
    ticket: Ticket,
    sends_left: u32,
    /// When this node has applied up to here, there is an answer.
    awaited: Option<Position>,
}

/// What runs: gone after a crash.
struct Process {
    replica: Replica,
    store: Arc<CaptureStore>,
    /// Executes the statements of clients.
    processor: QueryProcessor,
}

/// A node.
pub struct Machine {
    env: MemEnv,
    process: Process,
    number: u32,
    incarnation: u32,
    tablets: Tablets,
    /// The number of the next record of each log.
    next_seq: BTreeMap<u32, u64>,
    side: Side,
    /// What commands of this process gave, by tablet and number.
    outcomes: BTreeMap<(u32, u64), Result<Executed, Error>>,
    pending: BTreeMap<u64, Pending>,
}

fn options() -> EngineOptions {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.is_stepped = true;
    options.memtable_shards = 1;
    options.compaction_bytes_per_sec = None;
    options.commit_log.segment_bytes = 64 << 10;
    options
}

impl Process {
    fn start(env: &MemEnv, tablets: Tablets) -> Self {
        let engine = Engine::open(env.shared(), options());
        let engine =
            Arc::new(engine.unwrap_or_else(|error| panic!("a node starts after any crash: {error}")));
        let of_cluster = ReplicaOptions {
            cluster: CLUSTER,
            tablets,
        };
        let replica = Replica::open(engine.clone(), of_cluster);
        let replica = replica.unwrap_or_else(|error| panic!("a replica starts after any crash: {error}"));
        let store = Arc::new(CaptureStore::new(engine, tablets));
        let processor = QueryProcessor::new(store.clone(), QueryOptions::default());
        // What it writes about itself at the start is local.
        store.take();
        Self {
            replica,
            store,
            processor,
        }
    }

    fn query(&self, text: &str, values: &[i64]) -> Result<Executed, Error> {
        let values = values
            .iter()
            .map(|value| Value::Bytes(Bytes::copy_from_slice(&value.to_be_bytes())));
        let options = ExecuteOptions {
            values: Values::Positional(values.collect()),
            ..ExecuteOptions::default()
        };
        self.processor.query(&mut ClientState::default(), text, &options)
    }

    /// The only value of the only row of a local read.
    fn value(&self, text: &str, values: &[i64]) -> Option<i64> {
        match self.query(text, values) {
            Ok(Executed {
                outcome: Outcome::Rows(rows),
                ..
            }) => cells(&rows)
                .into_iter()
                .next()
                .flatten()
                .map(|value| number(&value)),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn tablet_of(&self, key: i64) -> u32 {
        self.store
            .tablet_of_token(&self.replica.engine().partitioner().token(&key.to_be_bytes()))
    }
}

/// The values of all rows, row after row.
fn cells(rows: &ResultSet) -> Vec<Option<Vec<u8>>> {
    let bytes = rows.cells.clone().into_vec();
    let mut reader = ilion_codec::Reader::new(&bytes);
    let mut cells = Vec::new();
    while !reader.is_empty() {
        match reader.bytes32_or_null() {
            Ok(value) => cells.push(value.map(<[u8]>::to_vec)),
            Err(error) => panic!("an answer does not decode: {error}"),
        }
    }
    cells
}

/// A partition with its timestamps and tombstones, as it is stored.
fn raw(engine: &Engine, table: &Arc<TableSchema>, key: i64) -> String {
    let key = Bytes::copy_from_slice(&key.to_be_bytes());
    let key = DecoratedKey::new(engine.partitioner(), key);
    let read = || -> Result<String, Box<dyn std::error::Error>> {
        let mut cursor = engine.read_partition(table, &key, &ClusteringFilter::all())?;
        let mut text = String::new();
        if let Some(head) = cursor.next_partition()? {
            text = format!("{:?} {:?}", head.deletion, head.static_row);
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                text.push_str(&format!(" {unfiltered:?}"));
            }
        }
        Ok(text)
    };
    read().unwrap_or_else(|error| panic!("a node reads what it has: {error}"))
}

fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(0, i64::from_be_bytes)
}

fn signed(value: u64) -> i64 {
    value.cast_signed()
}

/// The key of the partition that has a register, counter or cell.
fn key_of(request: &Request) -> i64 {
    let key = match request {
        Request::Change(command) => match command {
            Command::Write(key, _) | Command::CompareAndSet(key, ..) | Command::Add(key, _) => *key,
            Command::Batch(..) | Command::Barrier => return 0,
        },
        Request::Register(key) if CELLS.contains(key) => return 0,
        Request::Register(key) | Request::Counter(key) => *key,
    };
    signed(key)
}

impl Machine {
    /// An empty node with the tables.
    pub fn new(seed: u64, number: u32, tablets: u32) -> Self {
        let env = MemEnv::new(seed.wrapping_mul(31).wrapping_add(u64::from(number)));
        let Some(tablets) = Tablets::new(tablets) else {
            panic!("a cluster has tablets");
        };
        let process = Process::start(&env, tablets);
        for statement in SCHEMA {
            let made = process.query(statement, &[]);
            made.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        Self {
            env,
            process,
            number,
            incarnation: 1,
            tablets,
            next_seq: BTreeMap::new(),
            side: Side::Majority,
            outcomes: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// The record of a request.
    fn record_of(&self, request: Request) -> Captured {
        let process = &self.process;
        let barrier = || Captured {
            tablet: process.tablet_of(key_of(&request)),
            kind: Kind::Noop,
            body: Vec::new(),
        };
        let Request::Change(command) = request else {
            return barrier();
        };
        let executed = match command {
            Command::Barrier => return barrier(),
            // It always applies, and is a command, since the clocks of nodes do not order writes.
            Command::Write(key, value) => process.query(
                "UPDATE ks.registers SET v = ? WHERE k = ? IF v != -1",
                &[signed(value), signed(key)],
            ),
            Command::CompareAndSet(key, None, value) => process.query(
                "UPDATE ks.registers SET v = ? WHERE k = ? IF v = null",
                &[signed(value), signed(key)],
            ),
            Command::CompareAndSet(key, Some(expected), value) => process.query(
                "UPDATE ks.registers SET v = ? WHERE k = ? IF v = ?",
                &[signed(value), signed(key), signed(expected)],
            ),
            Command::Add(key, amount) => process.query(
                "UPDATE ks.counters SET n = n + ? WHERE k = ?",
                &[amount, signed(key)],
            ),
            Command::Batch([first, second], version) => process.query(
                "BEGIN BATCH USING TIMESTAMP ? \
                 INSERT INTO ks.cells (k, c, v) VALUES (0, ?, ?) INSERT INTO ks.cells (k, c, v) VALUES (0, ?, ?) \
                 APPLY BATCH",
                &[version, first, version, second, version].map(signed),
            ),
        };
        if let Err(error) = executed {
            panic!("{command:?}: {error}");
        }
        let mut captured = process.store.take();
        match captured.pop() {
            Some(record) if captured.is_empty() => record,
            last => panic!("{command:?} is one record: {last:?} and {captured:?}"),
        }
    }

    fn next_origin(&mut self, tablet: u32) -> Origin {
        let next = self.next_seq.entry(tablet).or_insert(1);
        let seq = *next;
        *next += 1;
        Origin {
            node: self.number,
            incarnation: self.incarnation,
            seq,
        }
    }

    fn send(&self, record: &Captured, origin: Origin, logs: &mut [SimLog]) -> Ticket {
        let envelope = Envelope {
            kind: record.kind,
            tablet: record.tablet,
            schema_epoch: 0,
            origin,
            time_micros: 0,
            is_captured: false,
            body: &record.body,
        };
        logs[record.tablet as usize].send(&envelope, self.side)
    }

    fn has_applied(&self, tablet: u32, position: Position) -> bool {
        self.process.replica.end(tablet) > position.segment.0
    }

    fn reply(&self, pending: &Pending, position: Position) -> Option<Reply> {
        let tablet = pending.record.tablet;
        match pending.request {
            // Its data is in the log.
            Request::Change(Command::Batch(..)) => return Some(Reply::Done(None)),
            _ if !self.has_applied(tablet, position) => return None,
            Request::Register(key) => return Some(Reply::Register(self.register(key))),
            Request::Counter(key) => return Some(Reply::Counter(self.counter(key))),
            Request::Change(_) => {}
        }
        match self.outcomes.get(&(tablet, pending.origin.seq)) {
            Some(Ok(Executed {
                outcome: Outcome::Rows(rows),
                ..
            })) => {
                let cells = cells(rows);
                let is_applied = cells.first().is_some_and(|cell| cell.as_deref() == Some(&[1]));
                let found = cells.last().cloned().flatten();
                let found = found.map(|value| number(&value).cast_unsigned());
                Some(Reply::Done((!is_applied).then_some(found)))
            }
            Some(Ok(_)) => Some(Reply::Done(None)),
            other => panic!("the outcome of {:?} is {other:?}", pending.request),
        }
    }

    /// One step of the work of the background.
    fn work(&mut self, random: &mut Seeded) {
        let engine = self.process.replica.engine().clone();
        match random.below(8) {
            0 => self.process.replica.take(),
            1 | 2 => drop(self.process.replica.save()),
            3 => {
                let name = TABLES[random.below(TABLES.len() as u64) as usize];
                if let Some(table) = engine.schema().table("ks", name) {
                    drop(engine.flush(table.id));
                }
            }
            4 => {
                self.env.advance_micros(1_000_000);
                engine.tick();
            }
            _ => drop(engine.step()),
        }
    }

    /// Whether a table has records on disk that the replica reads again.
    fn is_replaying(&self, tablet: u32) -> bool {
        let (replica, engine) = (&self.process.replica, self.process.replica.engine());
        let offset = replica.end(tablet);
        let schema = engine.schema();
        let tables = TABLES.map(|name| schema.table("ks", name).map(|table| table.id));
        tables
            .into_iter()
            .flatten()
            .any(|table| engine.has_on_disk(table, TabletPosition { tablet, offset }))
    }

    /// All data of a tablet.
    fn digest(&self, tablet: u32) -> String {
        let engine = self.process.replica.engine();
        let schema = engine.schema();
        let keys = |name: &str| match name {
            "registers" => (0..REGISTERS).collect(),
            "counters" => vec![COUNTER],
            _ => vec![0],
        };
        let mut digest = String::new();
        for name in TABLES {
            let Some(table) = schema.table("ks", name) else {
                continue;
            };
            for key in keys(name) {
                if self.process.tablet_of(signed(key)) == tablet {
                    digest.push_str(&format!("{name} {key}: {} ", raw(engine, table, signed(key))));
                }
            }
        }
        digest
    }
}

impl Member for Machine {
    const CAN_COPY: bool = false;

    fn begin(&mut self, client: u64, request: Request, logs: &mut [SimLog]) -> Option<Reply> {
        let record = self.record_of(request);
        let origin = self.next_origin(record.tablet);
        let ticket = self.send(&record, origin, logs);
        let pending = Pending {
            request,
            record,
            origin,
            ticket,
            sends_left: 2,
            awaited: None,
        };
        self.pending.insert(client, pending);
        None
    }

    fn poll(&mut self, client: u64, logs: &mut [SimLog]) -> Option<Reply> {
        let mut pending = self.pending.remove(&client)?;
        if pending.awaited.is_none() {
            match logs[pending.record.tablet as usize].take_answer(pending.ticket) {
                Some(Answer::Acknowledged(position)) => pending.awaited = Some(position),
                Some(Answer::Unknown) if pending.sends_left == 0 => return Some(Reply::Unknown),
                Some(Answer::Unknown) => {
                    pending.sends_left -= 1;
                    pending.ticket = self.send(&pending.record, pending.origin, logs);
                }
                None => {}
            }
        }
        let reply = pending
            .awaited
            .and_then(|position| self.reply(&pending, position));
        if reply.is_none() {
            self.pending.insert(client, pending);
        }
        reply
    }

    fn waiting(&self) -> Vec<u64> {
        self.pending.keys().copied().collect()
    }

    fn tail(&mut self, tablet: usize, log: &SimLog) -> Result<Tailed, Violation> {
        let number = tablet as u32;
        let below = self.process.replica.end(number).saturating_sub(1);
        let (position, record) = match log.next_above(Position::new(below, 0), self.side) {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(Tailed::Nothing),
            Err(deleted) => return Ok(Tailed::Deleted(deleted)),
        };
        let place = TabletPosition {
            tablet: number,
            offset: position.segment.0,
        };
        let (origin, time_micros) = (record.origin, record.time_micros);
        match self.process.replica.apply(place, time_micros, record) {
            Ok(Applied::Executed(outcome)) => {
                if (origin.node, origin.incarnation) == (self.number, self.incarnation) {
                    self.outcomes.insert((number, origin.seq), outcome);
                }
            }
            Ok(Applied::Done | Applied::Repeated) => {}
            // Its tables have records that are applied later, so data cannot be compared at this position.
            Ok(Applied::Forgotten) => return Ok(Tailed::Passed),
            Err(NotApplied::Later(_)) => return Ok(Tailed::Nothing),
            Err(error) => {
                let node = self.number;
                return Err(Violation(format!("halted: node {node} at {position}: {error}")));
            }
        }
        match self.is_replaying(number) {
            true => Ok(Tailed::Passed),
            false => Ok(Tailed::Applied(position, self.digest(number))),
        }
    }

    fn save_step(&mut self, random: &mut Seeded) {
        // A few, since a toy saves all of itself in one step.
        (0..4).for_each(|_| self.work(random));
    }

    fn crash(&mut self, random: &mut Seeded) -> Vec<u64> {
        let rule = match random.below(3) {
            0 => CrashRule::LoseUnsynced,
            1 => CrashRule::KeepAll,
            _ => CrashRule::Seeded(random.next_u64()),
        };
        self.env = self.env.crash(rule);
        self.process = Process::start(&self.env, self.tablets);
        self.incarnation += 1;
        self.next_seq.clear();
        self.outcomes.clear();
        std::mem::take(&mut self.pending).into_keys().collect()
    }
    fn saved(&self, tablet: usize) -> Position {
        let end = self.process.replica.saved_end(tablet as u32);
        Position::new(end.saturating_sub(1), 0)
    }

    fn copy_from(&mut self, _other: &Self) {
        panic!("logs keep what a node lacks");
    }

    fn talk_to(&mut self, side: Side) {
        self.side = side;
    }

    fn register(&self, key: u64) -> Register {
        let value = match CELLS.contains(&key) {
            true => self
                .process
                .value("SELECT v FROM ks.cells WHERE k = 0 AND c = ?", &[signed(key)]),
            false => self
                .process
                .value("SELECT v FROM ks.registers WHERE k = ?", &[signed(key)]),
        };
        value.map(i64::cast_unsigned)
    }

    fn counter(&self, key: u64) -> i64 {
        let value = self
            .process
            .value("SELECT n FROM ks.counters WHERE k = ?", &[signed(key)]);
        value.unwrap_or(0)
    }
}
