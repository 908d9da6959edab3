//! [`run`]: one run of toy replicas of one tablet. Clients, nodes and the log take steps in an order that the seed chooses; then the laws are
//! checked.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `data` | what a toy keeps, and how it changes |
//! | `node` | a toy, step by step; [`Mutant`]: its defects |

mod data;
mod node;

use std::collections::BTreeMap;

use ilion_commitlog::Position;
use ilion_env::Seeded;
use ilion_histories::Violation;

use crate::command::{CELLS, COUNTER, Command, REGISTERS};
use crate::history::{History, Ran};
use crate::log::{LogFaults, Side, SimLog};
use crate::request::{Reply, Request};
pub use crate::toys::node::Mutant;
use crate::toys::node::Node;

const NODES: u64 = 3;
const CLIENTS: usize = 4;
const STEPS: u64 = 1500;

struct World {
    random: Seeded,
    log: SimLog,
    nodes: Vec<Node>,
    next_value: u64,
    digests: BTreeMap<Position, String>,
    history: History,
}

/// Runs toy replicas, with a defect if one is given.
///
/// # Errors
/// The law that does not hold.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<Ran, Violation> {
    let nodes = (1..=NODES).map(|number| Node::new(number as u32, mutant));
    World::new(seed, nodes.collect()).run()
}

impl World {
    fn new(seed: u64, nodes: Vec<Node>) -> Self {
        let faults = LogFaults {
            lost_request: 12,
            lost_answer: 12,
            duplicate: 12,
            duplicate_micros_max: 0,
            keeps_order: false,
        };
        Self {
            random: Seeded::new(seed),
            log: SimLog::new(seed, faults),
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
        match self.random.below(200) {
            0..30 => self.ask(node),
            30..70 => drop(self.log.step()),
            70..130 => drop(self.tail(node)?),
            130..180 => self.poll(node),
            180..190 => self.nodes[node].flush(),
            190 => self.crash(node),
            191 => {
                self.log.isolate();
                self.history.ran.isolations += 1;
            }
            192 | 193 => self.nodes[node].talk_to(Side::Isolated),
            194..197 => self.heal(),
            _ => self.trim(node),
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.log.heal();
        self.nodes
            .iter_mut()
            .for_each(|node| node.talk_to(Side::Majority));
    }

    fn crash(&mut self, node: usize) {
        self.history.ran.crashes += 1;
        for client in self.nodes[node].crash() {
            self.history.answer(client, Reply::Unknown);
        }
    }

    /// Deletes the records that all nodes but `left_out` have saved. If that one is behind, it must copy.
    fn trim(&mut self, left_out: usize) {
        let nodes = self.nodes.iter().enumerate();
        let others = nodes.filter(|(node, _)| *node != left_out);
        if let Some(position) = others.map(|(_, node)| node.saved()).min() {
            self.log.trim(position);
        }
    }

    /// Has a node apply the next record. Returns false if there is none.
    fn tail(&mut self, node: usize) -> Result<bool, Violation> {
        let number = node + 1;
        let first = match self.nodes[node].tail(&self.log) {
            Ok(false) => return Ok(false),
            Ok(true) => {
                let (position, digest) = (self.nodes[node].position(), self.nodes[node].data().digest());
                let other = self.digests.entry(position).or_insert_with(|| digest.clone());
                return match *other == digest {
                    true => Ok(true),
                    false => Err(Violation(format!(
                        "replicas: node {number} at {position} has {digest}, another {other}"
                    ))),
                };
            }
            Err(deleted) => deleted.first,
        };
        self.history.ran.copies += 1;
        let others = (0..self.nodes.len()).filter(|other| *other != node);
        let source = others.max_by_key(|other| self.nodes[*other].saved());
        let Some(source) = source.filter(|source| self.nodes[*source].saved() >= before(first)) else {
            return Err(Violation(format!(
                "deleted: nobody has the records before {first}"
            )));
        };
        if let Ok([behind, source]) = self.nodes.get_disjoint_mut([node, source]) {
            behind.copy_from(source);
        }
        Ok(true)
    }

    fn ask(&mut self, node: usize) {
        if self.history.waiting() >= CLIENTS {
            return;
        }
        let request = self.choose();
        let client = self.history.ask(request, node);
        if let Some(reply) = self.nodes[node].begin(client, request, &mut self.log) {
            self.history.answer(client, reply);
        }
    }

    fn choose(&mut self) -> Request {
        let key = self.random.below(REGISTERS);
        self.next_value += 1;
        let value = self.next_value;
        match self.random.below(10) {
            0 | 1 => Request::Change(Command::Write(key, value)),
            2 | 3 => {
                let node = self.random.below(NODES) as usize;
                let expected = self.nodes[node].data().register(key);
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
            if let Some(reply) = self.nodes[node].poll(client, &mut self.log) {
                self.history.answer(client, reply);
            }
        }
    }

    /// Everything heals, all requests are answered, and all nodes catch up.
    fn settle(&mut self) -> Result<(), Violation> {
        self.heal();
        loop {
            let mut is_busy = self.log.step();
            for node in 0..self.nodes.len() {
                is_busy |= self.tail(node)?;
            }
            (0..self.nodes.len()).for_each(|node| self.poll(node));
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
                    Request::Register(key) => Reply::Register(self.nodes[node].data().register(key)),
                    _ => Reply::Counter(self.nodes[node].data().counter(COUNTER)),
                };
                let client = self.history.ask(key, node);
                self.history.answer(client, reply);
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Ran, Violation> {
        let last =
            |node: &Node| BTreeMap::from(CELLS.map(|cell| (cell, node.data().register(cell).unwrap_or(0))));
        let last: Vec<_> = self.nodes.iter().map(last).collect();
        self.history.check(&last)?;
        Ok(self.history.ran)
    }
}

/// The position before this one.
fn before(position: Position) -> Position {
    Position::new(position.segment.0.saturating_sub(1), 0)
}
