//! One run of a seed. Clients, nodes and logs take steps in an order that the seed chooses; then the laws are checked.
//!
//! [`run`] runs toy replicas of one tablet, [`run_cql`] real engines and real CQL with several tablets.

use std::collections::BTreeMap;

use ilion_commitlog::Position;
use ilion_env::Seeded;
use ilion_histories::Violation;

use crate::cql::{Machine, begin_cluster};
use crate::engine::{CELLS, COUNTER, Command, REGISTERS, ToyEngine};
use crate::history::{History, Ran};
use crate::log::{LogFaults, Side, SimLog};
use crate::member::{Member, Reply, Request, Tailed};
use crate::node::{Mutant, Node};

const NODES: u64 = 3;
const CLIENTS: usize = 4;
const STEPS: u64 = 1500;
/// Tablets of a run with real engines.
const TABLETS: u32 = 4;

struct World<M> {
    random: Seeded,
    /// A log for each tablet; in a run with real engines, the meta log after them.
    logs: Vec<SimLog>,
    nodes: Vec<M>,
    next_value: u64,
    digests: BTreeMap<(usize, Position), String>,
    history: History,
}

/// Runs toy replicas of one tablet, with a defect if one is given.
///
/// # Errors
/// The law that does not hold.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<Ran, Violation> {
    let nodes = (1..=NODES).map(|number| Node::<ToyEngine>::new(number as u32, mutant));
    World::new(seed, 1, nodes.collect()).run()
}

/// Runs nodes with real engines, whose clients send CQL.
///
/// # Errors
/// The law that does not hold.
pub fn run_cql(seed: u64) -> Result<Ran, Violation> {
    let nodes = (1..=NODES).map(|number| Machine::new(seed, number as u32, TABLETS));
    let mut world = World::new(seed, TABLETS + 1, nodes.collect());
    if let Some(meta) = world.logs.last_mut() {
        begin_cluster(meta, NODES as u32, TABLETS);
    }
    world.run()
}

impl<M: Member> World<M> {
    fn new(seed: u64, logs: u32, nodes: Vec<M>) -> Self {
        let faults = LogFaults {
            lost_request: 12,
            lost_answer: 12,
            duplicate: 12,
            keeps_order: false,
        };
        let log = |number| SimLog::new(seed.wrapping_add(u64::from(number) << 32), faults);
        Self {
            random: Seeded::new(seed),
            logs: (0..logs).map(log).collect(),
            nodes,
            next_value: 1,
            digests: BTreeMap::new(),
            history: History::default(),
        }
    }

    fn run(mut self) -> Result<Ran, Violation> {
        for _ in 0..STEPS {
            self.step()?;
        }
        self.settle()?;
        self.check()
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.history.tick();
        let node = self.random.below(NODES) as usize;
        let tablet = self.random.below(self.logs.len() as u64) as usize;
        match self.random.below(200) {
            0..30 => self.ask(node),
            30..70 => self.logs.iter_mut().for_each(|log| {
                log.step();
            }),
            70..130 => {
                for tablet in 0..self.logs.len() {
                    self.tail(node, tablet)?;
                }
            }
            130..180 => self.poll(node),
            180..190 => {
                self.nodes[node].save_step(&mut self.random);
                self.recover(node);
            }
            190 => self.crash(node),
            191 => {
                self.logs[tablet].isolate();
                self.history.ran.isolations += 1;
            }
            192 | 193 => self.nodes[node].talk_to(Side::Isolated),
            194..197 => self.heal(),
            _ => self.trim(node, tablet),
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.logs.iter_mut().for_each(SimLog::heal);
        self.nodes
            .iter_mut()
            .for_each(|node| node.talk_to(Side::Majority));
    }

    fn crash(&mut self, node: usize) {
        self.history.ran.crashes += 1;
        for client in self.nodes[node].crash(&mut self.random) {
            self.history.answer(client, Reply::Unknown);
        }
    }

    fn recover(&mut self, node: usize) {
        for client in self.nodes[node].recover() {
            self.history.answer(client, Reply::Unknown);
        }
    }

    /// Deletes the records that all nodes have saved. If nodes can copy, `left_out` does not count: if it is behind, it must copy.
    fn trim(&mut self, left_out: usize, tablet: usize) {
        let counts = |node: &usize| !M::CAN_COPY || *node != left_out;
        let saved = (0..self.nodes.len())
            .filter(counts)
            .map(|node| self.nodes[node].saved(tablet))
            .min();
        if let Some(position) = saved {
            self.logs[tablet].trim(position);
        }
    }

    fn tail(&mut self, node: usize, tablet: usize) -> Result<bool, Violation> {
        let tailed = self.nodes[node].tail(tablet, &mut self.logs)?;
        self.recover(node);
        match tailed {
            Tailed::Nothing => Ok(false),
            Tailed::Passed => Ok(true),
            Tailed::Applied(position, digest) => {
                let place = (tablet, position);
                let other = self.digests.entry(place).or_insert_with(|| digest.clone());
                if *other != digest {
                    let number = node + 1;
                    return Err(Violation(format!(
                        "replicas: node {number} at {position} of tablet {tablet} has {digest}, another {other}"
                    )));
                }
                Ok(true)
            }
            Tailed::Deleted(deleted) => {
                self.history.ran.copies += 1;
                let others = (0..self.nodes.len()).filter(|other| *other != node);
                let source = others.max_by_key(|other| self.nodes[*other].saved(tablet));
                let has_all = |source: &usize| self.nodes[*source].saved(tablet) >= before(deleted.first);
                let Some(source) = source.filter(has_all) else {
                    let first = deleted.first;
                    return Err(Violation(format!(
                        "deleted: nobody has the records before {first}"
                    )));
                };
                if let Ok([behind, source]) = self.nodes.get_disjoint_mut([node, source]) {
                    behind.copy_from(source);
                }
                Ok(true)
            }
        }
    }

    fn ask(&mut self, node: usize) {
        if self.history.waiting() >= CLIENTS {
            return;
        }
        let request = self.choose();
        let client = self.history.ask(request, node);
        if let Some(reply) = self.nodes[node].begin(client, request, &mut self.logs) {
            self.history.answer(client, reply);
        }
    }

    fn choose(&mut self) -> Request {
        if M::HAS_SCHEMA && self.random.one_in(12) {
            return Request::Alter(self.random.below(4));
        }
        let key = self.random.below(REGISTERS);
        self.next_value += 1;
        let value = self.next_value;
        match self.random.below(10) {
            0 | 1 => Request::Change(Command::Write(key, value)),
            2 | 3 => {
                let node = self.random.below(NODES) as usize;
                let expected = self.nodes[node].register(key);
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
        for client in self.nodes[node].waiting() {
            if let Some(reply) = self.nodes[node].poll(client, &mut self.logs) {
                self.history.answer(client, reply);
            }
        }
    }

    /// Everything heals, all requests are answered, and all nodes catch up.
    fn settle(&mut self) -> Result<(), Violation> {
        self.heal();
        loop {
            let mut is_busy = false;
            for tablet in 0..self.logs.len() {
                is_busy |= self.logs[tablet].step();
                for node in 0..self.nodes.len() {
                    is_busy |= self.tail(node, tablet)?;
                }
            }
            (0..self.nodes.len()).for_each(|node| self.poll(node));
            is_busy |= self.nodes.iter().any(Member::is_busy);
            if !is_busy && self.history.waiting() == 0 {
                break;
            }
        }
        // What every node says at last is one more read of everything.
        self.history.tick();
        for node in 0..self.nodes.len() {
            for key in (0..REGISTERS)
                .chain(CELLS)
                .map(Request::Register)
                .chain([Request::Counter(COUNTER)])
            {
                let reply = match key {
                    Request::Register(key) => Reply::Register(self.nodes[node].register(key)),
                    _ => Reply::Counter(self.nodes[node].counter(COUNTER)),
                };
                let client = self.history.ask(key, node);
                self.history.answer(client, reply);
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Ran, Violation> {
        let last = |node: &M| CELLS.map(|cell| (cell, node.register(cell).unwrap_or(0)));
        let last: Vec<_> = self.nodes.iter().map(last).collect();
        self.history.check(&last)?;
        Ok(self.history.ran)
    }
}

/// The position before this one.
fn before(position: Position) -> Position {
    Position::new(position.segment.0.saturating_sub(1), 0)
}
