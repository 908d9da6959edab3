//! [`World`]: the machines of a cluster, and what is due on them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ilion_env::Seeded;

use super::costs::Costs;
use super::machine::{Machine, Nanos};
use super::ring::{Layout, Shape};
use super::state::{Batch, Copier, Event, Log, Node, Request};

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Writes.
    Writes,
    /// Reads at QUORUM.
    QuorumReads,
    /// Reads at ONE.
    ReadsOfOne,
    /// Writes and reads at QUORUM, in equal parts.
    Mixed,
}

/// How a cluster is used, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// What clients ask for.
    pub load: Load,
    /// Requests under way, for each node.
    pub in_flight: u32,
    /// Cores of a node's machine. Brokers have as many cores together as nodes have.
    pub cores: usize,
    /// All nodes, brokers and clients are on one machine, and one node gets all requests (`in_flight` in all).
    pub is_one_machine: bool,
    /// Simulated time in milliseconds: before the measurement, and of it.
    pub warm_millis: u64,
    /// See `warm_millis`.
    pub millis: u64,
}

pub(crate) struct Due {
    pub at: Nanos,
    pub number: u64,
    pub event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A cluster under load.
pub(crate) struct World {
    pub shape: Shape,
    pub setting: Setting,
    pub costs: Costs,
    pub layout: Layout,
    pub nodes: Vec<Node>,
    pub logs: Vec<Log>,
    /// Copiers by their leader: the two next brokers copy what it appends.
    pub copiers: Vec<[Copier; 2]>,
    /// Batches that are not copied yet, and places of this list that are free.
    pub batches: Vec<Option<(Batch, u8)>>,
    pub free: Vec<usize>,
    pub to_brokers: [u64; 3],
    pub machines: Vec<Machine>,
    pub due: BinaryHeap<Reverse<Due>>,
    count: u64,
    pub now: Nanos,
    random: Seeded,
    pub waits: Vec<Nanos>,
}

impl World {
    pub fn new(shape: Shape, setting: Setting, costs: Costs, layout: Layout, seed: u64) -> Self {
        let (nodes, brokers) = (shape.nodes as usize, shape.brokers as usize);
        let mut machines = vec![Machine::new(setting.cores)];
        if !setting.is_one_machine {
            let of_broker = (setting.cores * nodes).div_ceil(brokers);
            machines.resize(nodes, Machine::new(setting.cores));
            machines.resize(nodes + brokers, Machine::new(of_broker));
        }
        let mut world = Self {
            nodes: (0..nodes).map(|_| Node::new(shape)).collect(),
            logs: vec![Log::default(); shape.partitions as usize],
            copiers: vec![<[Copier; 2]>::default(); brokers],
            batches: Vec::new(),
            free: Vec::new(),
            to_brokers: [0; 3],
            machines,
            due: BinaryHeap::new(),
            count: 0,
            now: 0,
            random: Seeded::new(seed),
            waits: Vec::new(),
            shape,
            setting,
            costs,
            layout,
        };
        world.follow();
        world
    }

    /// Each node reads the partitions that have a tablet of it.
    fn follow(&mut self) {
        let mut tablets_in = vec![0_u32; self.logs.len()];
        for (tablet, replicas) in (0..).zip(&self.layout.replicas) {
            let partition = self.shape.partition_of(tablet);
            tablets_in[partition] += 1;
            for node in replicas {
                self.nodes[*node].progress[partition].held += 1.0;
            }
        }
        for (number, node) in self.nodes.iter_mut().enumerate() {
            for (partition, progress) in node.progress.iter_mut().enumerate() {
                if progress.held > 0.0 {
                    progress.held /= f64::from(tablets_in[partition]);
                    self.logs[partition].readers.push(number);
                    node.tails[self.shape.brokers_of(partition)[0]]
                        .followed
                        .push(partition);
                }
            }
        }
    }

    pub fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            for broker in 0..self.nodes[node].tails.len() {
                if !self.nodes[node].tails[broker].followed.is_empty() {
                    self.poll(node, broker);
                }
            }
        }
        let nodes = if self.setting.is_one_machine {
            1
        } else {
            self.shape.nodes
        };
        for _ in 0..nodes * self.setting.in_flight {
            self.ask();
        }
    }

    /// A client sends its next request, to a replica of a token.
    pub fn ask(&mut self) {
        let tablet = self.random.below(u64::from(self.shape.tablets)) as u32;
        let replicas = &self.layout.replicas[tablet as usize];
        let chosen = self.random.below(replicas.len() as u64) as usize;
        let is_write = match self.setting.load {
            Load::Writes => true,
            Load::QuorumReads | Load::ReadsOfOne => false,
            Load::Mixed => self.random.one_in(2),
        };
        let node = if self.setting.is_one_machine {
            0
        } else {
            replicas[chosen]
        };
        let mut left_at = self.now;
        if self.setting.is_one_machine {
            left_at = self.machines[0].work(self.now, self.costs.client);
        }
        let request = Request {
            node,
            tablet,
            is_write,
            sent_at: self.now,
        };
        self.later(left_at + self.costs.network, Event::Arrives(request));
    }

    pub fn later(&mut self, at: Nanos, event: Event) {
        self.count += 1;
        self.due.push(Reverse(Due {
            at,
            number: self.count,
            event,
        }));
    }

    /// Work of a node. Returns when it is done.
    pub fn work_of_node(&mut self, node: usize, nanos: u64) -> Nanos {
        let machine = if self.setting.is_one_machine { 0 } else { node };
        self.machines[machine].work(self.now, nanos)
    }

    /// Work of a broker. Returns when it is done.
    pub fn work_of_broker(&mut self, broker: usize, nanos: u64) -> Nanos {
        let machine = if self.setting.is_one_machine {
            0
        } else {
            self.nodes.len() + broker
        };
        self.machines[machine].work(self.now, nanos)
    }

    /// The answer of a request leaves its node.
    pub fn answer(&mut self, request: Request) {
        self.later(self.now + self.costs.network, Event::IsAnswered(request));
    }
}
