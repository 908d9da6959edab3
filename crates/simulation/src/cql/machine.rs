//! [`Machine`]: a node with a real engine and replica, on a disk in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use ilion_cluster::Tablets;
use ilion_commitlog::{Envelope, Kind, Origin, Position};
use ilion_engine::{Engine, EngineOptions, TabletPosition};
use ilion_env::{CrashRule, MemEnv, Seeded};
use ilion_histories::{Value as Register, Violation};
use ilion_query::{
    ClientState, Error, ExecuteOptions, Executed, Outcome, QueryOptions, QueryProcessor, Value, Values,
};
use ilion_replica::{Applied, FencedChange, NotApplied, Replica, ReplicaOptions};
use parking_lot::Mutex;

use super::capture::{CaptureStore, Captured};
use super::meta::{CLUSTER, Meta};
use super::shown::{cells, number, raw, schema_text};
use crate::engine::{CELLS, COUNTER, Command, REGISTERS};
use crate::log::{Answer, Side, SimLog, Ticket};
use crate::member::{Member, Reply, Request, Tailed};

/// All nodes make the same tables, with the same ids.
const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.registers (k bigint PRIMARY KEY, v bigint) WITH id = 00000000-0000-4000-8000-000000000001",
    "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter) WITH id = 00000000-0000-4000-8000-000000000002",
    "CREATE TABLE ks.cells (k bigint, c bigint, v bigint, PRIMARY KEY (k, c)) \
     WITH id = 00000000-0000-4000-8000-000000000003",
];
const TABLES: [&str; 3] = ["registers", "counters", "cells"];

struct Pending {
    request: Request,
    record: Captured,
    /// The schema that the record was made with; it stays when the record is sent again.
    schema_epoch: u64,
    origin: Origin,
    ticket: Ticket,
    sends_left: u32,
    /// There is an answer once this node has applied the log up to here.
    awaited: Option<Position>,
}

/// A record that needs the schema of an epoch.
struct Fence {
    origin: Origin,
    ticket: Ticket,
    is_acknowledged: bool,
}

/// The running part of a node: gone after a crash.
struct Process {
    replica: Replica,
    store: Arc<CaptureStore>,
    /// Executes the statements of clients.
    processor: QueryProcessor,
}

/// A node.
pub struct Machine {
    env: MemEnv,
    random: Seeded,
    /// The disk, if the power was lost in the middle of a step.
    lost_power: Arc<Mutex<Option<MemEnv>>>,
    process: Process,
    number: u32,
    tablets: Tablets,
    starts: u32,
    meta: Meta,
    /// Records that end a schema in the log of each tablet, as far as this process has sent them.
    fences: BTreeMap<u32, Fence>,
    /// Tablets whose next record needs the next schema.
    blocked: BTreeSet<u32>,
    /// True once the data that must be saved before the next schema is adopted was taken.
    is_taken: bool,
    /// The number of the next record of each log.
    next_seq: BTreeMap<u32, u64>,
    side: Side,
    /// Outcomes of the commands of this process, by tablet and number.
    outcomes: BTreeMap<(u32, u64), Result<Executed, Error>>,
    pending: BTreeMap<u64, Pending>,
}

fn rule(random: &mut Seeded) -> CrashRule {
    match random.below(3) {
        0 => CrashRule::LoseUnsynced,
        1 => CrashRule::KeepAll,
        _ => CrashRule::Seeded(random.next_u64()),
    }
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
        let store = Arc::new(CaptureStore::new(engine.clone(), tablets));
        let processor = QueryProcessor::new(store.clone(), QueryOptions::default());
        // The processor's own writes at the start are local: drop them.
        store.take();
        if engine.schema().keyspace("ks").is_some() {
            store.begin_cluster();
        }
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
        Request::Alter(_) => return 0,
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
        process.store.begin_cluster();
        Self {
            random: Seeded::new(seed ^ u64::from(number) << 40),
            lost_power: Arc::default(),
            env,
            process,
            number,
            starts: 1,
            meta: Meta::new(number, 1),
            fences: BTreeMap::new(),
            blocked: BTreeSet::new(),
            is_taken: false,
            tablets,
            next_seq: BTreeMap::new(),
            side: Side::Majority,
            outcomes: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// The column of a table that comes and goes. It has a new name each time: cells of a dropped column that are newer than its drop may
    /// come back on some replicas if its name is used again, as in Cassandra.
    fn more(&self, table: &str) -> Option<String> {
        let schema = self.process.replica.engine().schema();
        let table = schema.table("ks", table)?;
        let columns = table.every_column();
        let more = columns.iter().find(|column| column.name.starts_with("more"));
        more.map(|column| column.name.to_string())
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
            Command::CompareAndSet(key, Some(expected), value) => match self.more("registers") {
                None => process.query(
                    "UPDATE ks.registers SET v = ? WHERE k = ? IF v = ?",
                    &[value, key, expected].map(signed),
                ),
                Some(more) => process.query(
                    &format!("UPDATE ks.registers SET v = ?, {more} = ? WHERE k = ? IF v = ?"),
                    &[value, value, key, expected].map(signed),
                ),
            },
            Command::Add(key, amount) => process.query(
                "UPDATE ks.counters SET n = n + ? WHERE k = ?",
                &[amount, signed(key)],
            ),
            Command::Batch(cells, version) => {
                let more = self.more("cells");
                let columns = more.as_ref().map_or("v".to_owned(), |more| format!("v, {more}"));
                let markers = more.as_ref().map_or("?", |_| "?, ?");
                let insert = format!("INSERT INTO ks.cells (k, c, {columns}) VALUES (0, ?, {markers})");
                let mut values = vec![signed(version)];
                for cell in cells {
                    values.extend([cell, version].map(signed));
                    values.extend(more.as_ref().map(|_| signed(version)));
                }
                let text = format!("BEGIN BATCH USING TIMESTAMP ? {insert} {insert} APPLY BATCH");
                process.query(&text, &values)
            }
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

    /// The origin of the next record of a log. Requires: this process may send.
    fn next_origin(&mut self, log: u32) -> Origin {
        // The record with the number 1 was the one by which the member became ready.
        let next = self.next_seq.entry(log).or_insert(2);
        let seq = *next;
        *next += 1;
        Origin {
            node: self.number,
            incarnation: self.meta.incarnation().unwrap_or(0),
            seq,
        }
    }

    /// The number of the meta log.
    fn meta_log(&self) -> u32 {
        self.tablets.count()
    }

    fn send(&self, record: &Captured, schema_epoch: u64, origin: Origin, logs: &mut [SimLog]) -> Ticket {
        match record.tablet == self.meta_log() {
            true => self.send_alteration(record, origin, logs),
            false => self.send_with(record, schema_epoch, origin, logs),
        }
    }

    fn send_with(&self, record: &Captured, schema_epoch: u64, origin: Origin, logs: &mut [SimLog]) -> Ticket {
        let envelope = Envelope {
            kind: record.kind,
            tablet: record.tablet,
            schema_epoch,
            origin,
            time_micros: 0,
            is_captured: false,
            body: &record.body,
        };
        logs[record.tablet as usize].send(&envelope, self.side)
    }

    /// Sends a change of the schema. `None`: the schema does not allow it, or this node has not the newest one.
    fn alter(&mut self, kind: u64, logs: &mut [SimLog]) -> Option<(Captured, Origin, Ticket)> {
        if self.meta.schema_epoch() != self.process.replica.schema_epoch() {
            return None;
        }
        let altered = |table: &str| match self.more(table) {
            Some(more) => format!("ALTER TABLE ks.{table} DROP {more}"),
            None => format!(
                "ALTER TABLE ks.{table} ADD more{} bigint",
                self.meta.schema_epoch()
            ),
        };
        let text = match kind {
            0 => altered("cells"),
            1 => altered("registers"),
            2 => "CREATE TABLE ks.other (k bigint PRIMARY KEY, v bigint)".to_owned(),
            _ => "DROP TABLE ks.other".to_owned(),
        };
        self.process.query(&text, &[]).ok()?;
        let change = FencedChange::Schema(self.process.store.take_alteration()?);
        let log = self.meta_log();
        let origin = self.next_origin(log);
        let record = Captured {
            tablet: log,
            kind: Kind::Schema,
            body: self.meta.record_of(change.encode().into()),
        };
        let ticket = self.send_alteration(&record, origin, logs);
        Some((record, origin, ticket))
    }

    fn send_alteration(&self, record: &Captured, origin: Origin, logs: &mut [SimLog]) -> Ticket {
        let log = &mut logs[self.tablets.count() as usize];
        self.meta.ask(origin, &record.body, log, self.side)
    }

    /// Goes on with the next change of the schema: sends a fence to each log, and adopts it once all are reached.
    fn go_on_with_schema(&mut self, logs: &mut [SimLog]) -> Result<bool, Violation> {
        let Some(next) = self.meta.unadopted.front().cloned() else {
            return Ok(false);
        };
        let epoch = next.epoch;
        if self.meta.incarnation().is_none() {
            return Ok(false);
        }
        let mut is_moving = false;
        for tablet in 0..self.tablets.count() {
            is_moving |= self.fence(tablet, epoch, logs);
        }
        if self.blocked.len() < self.tablets.count() as usize {
            return Ok(is_moving);
        }
        let replica = &mut self.process.replica;
        if !std::mem::replace(&mut self.is_taken, true) {
            replica.take();
        }
        match replica.save() {
            Ok(true) => {}
            Ok(false) => {
                // Do the flush that `save` waits for.
                replica.engine().step();
                return Ok(true);
            }
            Err(error) => return Err(Violation(format!("save: {error}"))),
        }
        let change = FencedChange::decode(&next.change);
        let change = change.map_err(|error| Violation(format!("schema {epoch}: {error}")))?;
        self.endanger(3);
        let adopted = self.process.replica.adopt(&change, next.time_micros);
        adopted.map_err(|error| Violation(format!("schema {epoch} at node {}: {error}", self.number)))?;
        self.meta.unadopted.pop_front();
        self.fences.clear();
        self.blocked.clear();
        self.is_taken = false;
        Ok(true)
    }

    /// Makes sure that a log has a record that needs the schema of this epoch.
    fn fence(&mut self, tablet: u32, epoch: u64, logs: &mut [SimLog]) -> bool {
        let record = Captured {
            tablet,
            kind: Kind::Noop,
            body: Vec::new(),
        };
        let origin = match self.fences.get_mut(&tablet) {
            Some(fence) if fence.is_acknowledged => return false,
            Some(fence) => match logs[tablet as usize].take_answer(fence.ticket) {
                None => return false,
                Some(Answer::Acknowledged(_)) => {
                    fence.is_acknowledged = true;
                    return false;
                }
                Some(Answer::Unknown) => fence.origin,
            },
            None => self.next_origin(tablet),
        };
        let ticket = self.send_with(&record, epoch, origin, logs);
        let is_acknowledged = false;
        self.fences.insert(
            tablet,
            Fence {
                origin,
                ticket,
                is_acknowledged,
            },
        );
        true
    }

    fn has_applied(&self, tablet: u32, position: Position) -> bool {
        self.process.replica.end(tablet) > position.segment.0
    }

    fn reply(&self, pending: &Pending, position: Position) -> Option<Reply> {
        let tablet = pending.record.tablet;
        match pending.request {
            Request::Alter(_) => {
                return match self.meta.outcomes.get(&pending.origin.seq)? {
                    None => Some(Reply::Unknown),
                    Some(epoch) if *epoch > self.process.replica.schema_epoch() => None,
                    Some(_) => Some(Reply::Done(None)),
                };
            }
            // The data of the batch is in the log.
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
            // The schema changed before the command. A coordinator would try again.
            Some(Err(Error::Overtaken)) => Some(Reply::Refused),
            other => panic!("the outcome of {:?} is {other:?}", pending.request),
        }
    }

    /// Goes on with what a power loss has left.
    fn restart(&mut self, env: MemEnv) -> Vec<u64> {
        self.env = env;
        self.process = Process::start(&self.env, self.tablets);
        self.starts += 1;
        self.meta = Meta::new(self.number, self.starts);
        self.fences.clear();
        self.blocked.clear();
        self.is_taken = false;
        self.next_seq.clear();
        self.outcomes.clear();
        std::mem::take(&mut self.pending).into_keys().collect()
    }
    /// Now and then, the power goes at one of the next syncs, in the middle of a step.
    fn endanger(&mut self, one_in: u64) {
        if !self.random.one_in(one_in) {
            return;
        }
        let (left, rule) = (AtomicU64::new(self.random.below(12)), rule(&mut self.random));
        let lost_power = self.lost_power.clone();
        self.env.on_sync(move |env, _| {
            if left.fetch_sub(1, Relaxed) == 0 {
                *lost_power.lock() = Some(env.crash(rule));
            }
        });
    }

    /// One step of the background work.
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
    const HAS_SCHEMA: bool = true;

    fn begin(&mut self, client: u64, request: Request, logs: &mut [SimLog]) -> Option<Reply> {
        if self.meta.incarnation().is_none() {
            return Some(Reply::Refused);
        }
        let schema_epoch = self.process.replica.schema_epoch();
        let (record, origin, ticket) = match request {
            Request::Alter(kind) => match self.alter(kind, logs) {
                Some(sent) => sent,
                None => return Some(Reply::Refused),
            },
            _ => {
                let record = self.record_of(request);
                let origin = self.next_origin(record.tablet);
                let ticket = self.send(&record, schema_epoch, origin, logs);
                (record, origin, ticket)
            }
        };
        let pending = Pending {
            request,
            record,
            schema_epoch,
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
                    pending.ticket = self.send(&pending.record, pending.schema_epoch, pending.origin, logs);
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

    fn tail(&mut self, tablet: usize, logs: &mut [SimLog]) -> Result<Tailed, Violation> {
        let number = tablet as u32;
        if number == self.meta_log() {
            let adopted = self.process.replica.schema_epoch();
            let has_read = self.meta.follow(adopted, &mut logs[tablet], self.side)?;
            let is_moving = self.go_on_with_schema(logs)?;
            let epoch = self.process.replica.schema_epoch();
            return Ok(match has_read || is_moving {
                true if epoch > adopted => Tailed::Applied(
                    Position::new(epoch, 0),
                    schema_text(&self.process.replica.engine().schema()),
                ),
                true => Tailed::Passed,
                false => Tailed::Nothing,
            });
        }
        let log = &logs[tablet];
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
                if origin.node == self.number && Some(origin.incarnation) == self.meta.incarnation() {
                    self.outcomes.insert((number, origin.seq), outcome);
                }
            }
            Ok(Applied::Done | Applied::Repeated) => {}
            // Its tables have records that are applied later, so data cannot be compared at this position.
            Ok(Applied::Forgotten) => return Ok(Tailed::Passed),
            Err(NotApplied::Later(_)) => return Ok(Tailed::Nothing),
            Err(NotApplied::Schema(_)) => {
                self.blocked.insert(number);
                return Ok(Tailed::Nothing);
            }
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
        self.endanger(6);
        // Several steps, since a toy saves all of its data in one.
        (0..4).for_each(|_| self.work(random));
    }

    fn crash(&mut self, random: &mut Seeded) -> Vec<u64> {
        let after = self.env.crash(rule(random));
        self.restart(after)
    }

    fn recover(&mut self) -> Vec<u64> {
        self.env.on_sync(|_, _| {});
        let after = self.lost_power.lock().take();
        after.map_or_else(Vec::new, |after| self.restart(after))
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

    fn is_busy(&self) -> bool {
        self.meta.incarnation().is_none() || !self.meta.unadopted.is_empty()
    }

    fn counter(&self, key: u64) -> i64 {
        let value = self
            .process
            .value("SELECT n FROM ks.counters WHERE k = ?", &[signed(key)]);
        value.unwrap_or(0)
    }
}
