//! [`run`]: one run of a seed. Clients, nodes and the log take steps in an order that the seed chooses; then the laws are checked.

use std::collections::BTreeMap;

use ilion_commitlog::Position;
use ilion_env::Seeded;
use ilion_histories::{
    Action, Add, Batch, CounterRead, Operation, Outcome, Read, Verdict, Violation, Write, check_batches,
    check_counter, check_fresh, check_monotonic, check_registers,
};

use crate::engine::{Command, Engine, ToyEngine};
use crate::log::{LogFaults, Side, SimLog};
use crate::node::{Mutant, Node, Reply, Request};

const NODES: u64 = 3;
const CLIENTS: u64 = 4;
const STEPS: u64 = 1500;
/// Registers that are checked for linearizability.
const REGISTERS: u64 = 2;
const COUNTER: u64 = 5;
/// Cells that batches write.
const CELLS: [u64; 2] = [10, 11];
const CONFIGURATIONS_MAX: usize = 50_000;

/// What happened in a run, so that one in which nothing happened is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Requests that were answered.
    pub answered: u32,
    /// Requests without an answer.
    pub unknown: u32,
    /// Nodes that crashed.
    pub crashes: u32,
    /// Nodes that copied another's data, since records were deleted.
    pub copies: u32,
    /// Times that the log's leader was cut off.
    pub isolations: u32,
}

struct Asked {
    request: Request,
    node: usize,
    called: u64,
}

struct World {
    random: Seeded,
    log: SimLog,
    nodes: Vec<Node<ToyEngine>>,
    /// Who waits for an answer, and for what.
    asked: BTreeMap<u64, Asked>,
    now: u64,
    next_client: u64,
    next_value: u64,
    digests: BTreeMap<Position, String>,
    operations: Vec<Operation>,
    writes: Vec<Write>,
    reads: Vec<Read>,
    adds: Vec<Add>,
    counter_reads: Vec<CounterRead>,
    batches: Vec<Batch>,
    ran: Ran,
}

/// Runs a seed, with a defect if one is given.
///
/// # Errors
/// The law that does not hold.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<Ran, Violation> {
    let faults = LogFaults {
        lost_request: 12,
        lost_answer: 12,
        duplicate: 12,
    };
    let mut world = World {
        random: Seeded::new(seed),
        log: SimLog::new(seed, faults),
        nodes: (1..=NODES)
            .map(|number| Node::new(number as u32, mutant))
            .collect(),
        asked: BTreeMap::new(),
        now: 0,
        next_client: 0,
        next_value: 1,
        digests: BTreeMap::new(),
        operations: Vec::new(),
        writes: Vec::new(),
        reads: Vec::new(),
        adds: Vec::new(),
        counter_reads: Vec::new(),
        batches: Vec::new(),
        ran: Ran::default(),
    };
    for _ in 0..STEPS {
        world.step()?;
    }
    world.settle()?;
    world.check()
}

impl World {
    fn step(&mut self) -> Result<(), Violation> {
        self.now += 1;
        let node = self.random.below(NODES) as usize;
        match self.random.below(200) {
            0..30 => self.ask(node),
            30..70 => drop(self.log.step()),
            70..130 => drop(self.tail(node)?),
            130..180 => self.poll(node),
            180..190 => self.nodes[node].flush(),
            190 => self.crash(node),
            191 => {
                self.log.isolate();
                self.ran.isolations += 1;
            }
            192 | 193 => self.nodes[node].side = Side::Isolated,
            194..197 => self.heal(),
            _ => self.trim(node),
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.log.heal();
        self.nodes.iter_mut().for_each(|node| node.side = Side::Majority);
    }

    fn crash(&mut self, node: usize) {
        self.ran.crashes += 1;
        for client in self.nodes[node].crash() {
            self.answer(client, Reply::Unknown);
        }
    }

    /// Deletes what all but one node have flushed: retention passes over that one, if it is behind.
    fn trim(&mut self, but: usize) {
        let others = (0..self.nodes.len()).filter(|node| *node != but);
        let flushed = others.map(|node| self.nodes[node].flushed()).min();
        if let Some(position) = flushed {
            self.log.trim(position);
        }
    }

    fn tail(&mut self, node: usize) -> Result<bool, Violation> {
        match self.nodes[node].tail(&self.log) {
            Ok(false) => Ok(false),
            Ok(true) => {
                let (position, digest) = (self.nodes[node].position(), self.nodes[node].engine().digest());
                let other = self.digests.entry(position).or_insert_with(|| digest.clone());
                if *other != digest {
                    let number = node + 1;
                    return Err(Violation(format!(
                        "replicas: node {number} at {position} has {digest}, another {other}"
                    )));
                }
                Ok(true)
            }
            Err(deleted) => {
                self.ran.copies += 1;
                let others = (0..self.nodes.len()).filter(|other| *other != node);
                let source = others.max_by_key(|other| self.nodes[*other].flushed());
                if let Some(source) =
                    source.filter(|source| self.nodes[*source].flushed() >= before(deleted.first))
                {
                    let copied = self.nodes[source].saved_copy();
                    self.nodes[node].restore_from(copied);
                    return Ok(true);
                }
                Err(Violation(format!(
                    "deleted: nobody has the records before {}",
                    deleted.first
                )))
            }
        }
    }

    fn ask(&mut self, node: usize) {
        if self.asked.len() as u64 >= CLIENTS {
            return;
        }
        let request = self.choose();
        let client = self.note_asked(request, node);
        if let Some(reply) = self.nodes[node].begin(client, request, &mut self.log) {
            self.answer(client, reply);
        }
    }

    /// Notes that a new client asks a node; returns the client.
    fn note_asked(&mut self, request: Request, node: usize) -> u64 {
        let client = self.next_client;
        self.next_client += 1;
        let called = self.now;
        self.asked.insert(
            client,
            Asked {
                request,
                node,
                called,
            },
        );
        client
    }

    fn choose(&mut self) -> Request {
        let key = self.random.below(REGISTERS);
        self.next_value += 1;
        let value = self.next_value;
        match self.random.below(10) {
            0 | 1 => Request::Change(Command::Write(key, value)),
            2 | 3 => {
                let node = self.random.below(NODES) as usize;
                let expected = self.nodes[node].engine().register(key);
                Request::Change(Command::CompareAndSet(key, expected, value))
            }
            4 => Request::Change(Command::Add(COUNTER, 1 + self.random.below(100) as i64)),
            5 => Request::Change(Command::Batch(CELLS, value)),
            6 => Request::Counter(COUNTER),
            7 => Request::Register(CELLS[self.random.below(2) as usize]),
            _ => Request::Register(key),
        }
    }

    fn poll(&mut self, node: usize) {
        let waiting: Vec<u64> = self.nodes[node].waiting().collect();
        for client in waiting {
            if let Some(reply) = self.nodes[node].poll(client, &mut self.log) {
                self.answer(client, reply);
            }
        }
    }

    /// Writes down what a client was told.
    fn answer(&mut self, client: u64, reply: Reply) {
        let Some(Asked {
            request,
            node,
            called,
        }) = self.asked.remove(&client)
        else {
            return;
        };
        self.now += 1;
        let returned = self.now;
        let acknowledged = (reply != Reply::Unknown).then_some(returned);
        if acknowledged.is_some() {
            self.ran.answered += 1;
        } else {
            self.ran.unknown += 1;
        }
        let mut operation = |key, action, found| {
            let outcome = match reply {
                Reply::Unknown => Outcome::Unknown,
                _ => Outcome::Done { returned, found },
            };
            let client = client as u32;
            self.operations.push(Operation {
                client,
                key,
                called,
                action,
                outcome,
            });
        };
        match (request, reply) {
            (Request::Change(Command::Write(key, value)), _) => operation(key, Action::Write(value), None),
            (Request::Change(Command::CompareAndSet(key, expected, value)), _) => {
                let found = if let Reply::Done(found) = reply {
                    found
                } else {
                    None
                };
                operation(key, Action::CompareAndSet(expected, value), found);
            }
            (Request::Change(Command::Add(key, amount)), _) => self.adds.push(Add {
                key,
                amount,
                called,
                acknowledged,
            }),
            (Request::Change(Command::Batch(keys, version)), _) => {
                let is_acknowledged = acknowledged.is_some();
                self.writes.extend(keys.map(|key| Write {
                    key,
                    version,
                    acknowledged,
                }));
                self.batches.push(Batch {
                    version,
                    keys: keys.to_vec(),
                    is_acknowledged,
                });
            }
            (Request::Register(key), Reply::Register(value)) if CELLS.contains(&key) => {
                self.reads.push(Read {
                    reader: node as u32,
                    key,
                    called,
                    returned,
                    version: value.unwrap_or(0),
                })
            }
            (Request::Register(key), Reply::Register(value)) => operation(key, Action::Read, Some(value)),
            (Request::Counter(key), Reply::Counter(value)) => self.counter_reads.push(CounterRead {
                key,
                called,
                returned,
                value,
            }),
            _ => {}
        }
    }

    /// Everything heals, all requests are answered, and all nodes catch up.
    fn settle(&mut self) -> Result<(), Violation> {
        self.heal();
        loop {
            let mut is_busy = self.log.step();
            for node in 0..self.nodes.len() {
                is_busy |= self.tail(node)?;
                self.poll(node);
            }
            if !is_busy && self.asked.is_empty() {
                break;
            }
        }
        // What every node says at last is one more read of everything.
        self.now += 1;
        for node in 0..self.nodes.len() {
            for key in (0..REGISTERS)
                .chain(CELLS)
                .map(Request::Register)
                .chain([Request::Counter(COUNTER)])
            {
                let reply = match key {
                    Request::Register(key) => Reply::Register(self.nodes[node].engine().register(key)),
                    _ => Reply::Counter(self.nodes[node].engine().counter(COUNTER)),
                };
                let client = self.note_asked(key, node);
                self.answer(client, reply);
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Ran, Violation> {
        check_fresh(&self.writes, &self.reads)?;
        check_monotonic(&self.reads)?;
        check_counter(&self.adds, &self.counter_reads)?;
        for node in &self.nodes {
            let last = CELLS.map(|cell| (cell, node.engine().register(cell).unwrap_or(0)));
            check_batches(&self.batches, &last.into())?;
        }
        match check_registers(&self.operations, CONFIGURATIONS_MAX) {
            Verdict::Linearizable => Ok(self.ran),
            verdict => Err(Violation(verdict.to_string())),
        }
    }
}

/// The position before one.
fn before(position: Position) -> Position {
    Position::new(position.segment.0.saturating_sub(1), 0)
}
