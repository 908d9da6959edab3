//! A graph in memory, which takes vectors in while it is searched.
//!
//! A node is never moved nor taken out, so what reads it takes no lock but that of its links, for as long as it copies them. A node
//! whose links are being made is *pending*: searches begin at pending nodes too, so a vector is found as soon as
//! [`MemoryGraph::insert`] returns, whoever else is inserting it.

mod adopt;
mod entry;
mod insert;
mod node;
mod slots;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};

use self::entry::Entry;
use self::node::Node;
use self::slots::Slots;
use crate::kernel::Kernel;
use crate::probe::{Space, weight_of};
use crate::{Error, Graph, Near, Options, Probe, Similarity};

const SHARDS: usize = 16;

/// A graph in memory.
pub struct MemoryGraph {
    options: Options,
    kernel: Kernel,
    /// Of the first vector; 0 before it.
    dimension: AtomicU32,
    nodes: Slots<Node>,
    entry: Entry,
    /// The greatest square of a vector's length so far, as bits (dot product only).
    reach: AtomicU32,
    /// Nodes by their vectors. Held to look up or make a node, never while it is linked.
    by_vector: [Mutex<HashTable<u32>>; SHARDS],
    /// Nodes that are being linked.
    pending: RwLock<Vec<u32>>,
    hasher: FixedState,
}

impl MemoryGraph {
    /// A graph without vectors.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            kernel: Kernel::new(),
            dimension: AtomicU32::new(0),
            nodes: Slots::new(),
            entry: Entry::none(),
            reach: AtomicU32::new(0),
            by_vector: std::array::from_fn(|_| Mutex::default()),
            pending: RwLock::default(),
            hasher: FixedState::default(),
        }
    }

    /// Takes a vector in under the caller's number for its row. It is found by every search that begins when this has returned.
    /// Returns by how many bytes the graph grew.
    ///
    /// # Errors
    /// [`Error::Refused`] if the vector cannot be indexed ([`Similarity::check`]) or is of another dimension than the first one.
    pub fn insert(&self, ordinal: u32, vector: &[f32]) -> Result<usize, Error> {
        self.options.similarity.check(vector)?;
        self.check_dimension(vector)?;
        let hash = self.hash(vector);
        let mut shard = self.shard_of(hash).lock();
        let known = shard.find(hash, |node| self.has(*node, vector));
        if let Some(node) = known.and_then(|node| self.nodes.get(*node)) {
            node.ordinals.write().push(ordinal);
            return Ok(size_of::<u32>());
        }
        let weight = weight_of(self.options.similarity, vector);
        self.raise_reach(weight);
        // Whoever finds the node in the table must find it pending, or linked.
        let mut pending = self.pending.write();
        let (node, level) = self.make(ordinal, vector, weight)?;
        pending.push(node);
        drop(pending);
        self.remember(hash, node, &mut shard);
        drop(shard);
        insert::link(self, node, level);
        self.pending.write().retain(|other| *other != node);
        Ok(Node::size_bytes(&self.options, vector.len(), level))
    }

    /// Takes ordinals from a vector: those that `is_gone` says. The vector stays, for others to be found by. Returns how many went.
    pub fn remove(&self, vector: &[f32], is_gone: impl Fn(u32) -> bool) -> usize {
        let hash = self.hash(vector);
        let shard = self.shard_of(hash).lock();
        let known = shard.find(hash, |node| self.has(*node, vector));
        let Some(node) = known.and_then(|node| self.nodes.get(*node)) else {
            return 0;
        };
        let mut ordinals = node.ordinals.write();
        let before = ordinals.len();
        ordinals.retain(|ordinal| !is_gone(*ordinal));
        before - ordinals.len()
    }

    /// How many ordinals it has.
    pub fn ordinal_count(&self) -> usize {
        let nodes = (0..self.nodes.len()).filter_map(|node| self.nodes.get(node));
        nodes.map(|node| node.ordinals.read().len()).sum()
    }

    fn make(&self, ordinal: u32, vector: &[f32], weight: f32) -> Result<(u32, u8), Error> {
        let make = |node| Node::new(ordinal, vector, weight, node, &self.options);
        let node = self.nodes.push(make);
        let node =
            node.ok_or_else(|| Error::Refused("a vector graph has at most 2^32 - 1 nodes".to_owned()))?;
        Ok((node, node::level_of(node, &self.options)))
    }

    fn check_dimension(&self, vector: &[f32]) -> Result<(), Error> {
        let given = vector.len() as u32;
        let known = self.dimension.compare_exchange(0, given, Relaxed, Relaxed);
        match known {
            Err(known) if known != given => Err(Error::Refused(format!(
                "the vector has {given} dimensions, others of the index have {known}"
            ))),
            _ => Ok(()),
        }
    }

    fn raise_reach(&self, weight: f32) {
        if self.options.similarity == Similarity::DotProduct {
            // Bits of numbers that are not negative sort as the numbers do.
            self.reach.fetch_max(weight.to_bits(), Relaxed);
        }
    }

    pub(crate) fn space(&self) -> Space {
        Space {
            similarity: self.options.similarity,
            kernel: self.kernel,
            reach: f32::from_bits(self.reach.load(Relaxed)),
        }
    }

    /// Begins to bring vectors from memory. One after another, each would be waited for.
    #[inline]
    fn touch(&self, nodes: &[u32]) {
        let first = |id: &u32| self.nodes.get(*id)?.vector.first().map(|value| value.to_bits());
        std::hint::black_box(nodes.iter().filter_map(first).fold(0, |all, bits| all ^ bits));
    }

    /// A graph without vectors that measures as this one does.
    fn empty(&self) -> Self {
        let mut graph = Self::new(self.options);
        graph.dimension = self.dimension.load(Relaxed).into();
        graph.reach = self.reach.load(Relaxed).into();
        graph
    }

    fn shard_of(&self, hash: u64) -> &Mutex<HashTable<u32>> {
        &self.by_vector[hash as usize % SHARDS]
    }

    fn has(&self, node: u32, vector: &[f32]) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|node| same(&node.vector, vector))
    }

    /// Makes a node known by its vector.
    fn remember(&self, hash: u64, node: u32, shard: &mut HashTable<u32>) {
        let hash_of = |node: &u32| self.nodes.get(*node).map_or(0, |node| self.hash(&node.vector));
        shard.insert_unique(hash, node, hash_of);
    }

    fn hash(&self, vector: &[f32]) -> u64 {
        use std::hash::Hasher as _;
        let mut hasher = self.hasher.build_hasher();
        for value in vector {
            hasher.write_u32(value.to_bits());
        }
        hasher.finish()
    }

    pub(crate) fn node(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node)
    }

    pub(crate) fn top(&self) -> Option<(u32, u8)> {
        self.entry.top()
    }
}

/// Equal bits: 0 and -0 are different vectors here, which does no harm.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

impl Graph for MemoryGraph {
    fn options(&self) -> &Options {
        &self.options
    }

    fn dimension(&self) -> u32 {
        self.dimension.load(Relaxed)
    }

    fn node_count(&self) -> u32 {
        self.nodes.len()
    }

    fn probe(&self, query: &[f32]) -> Probe {
        Probe::query(self.space(), query)
    }

    fn enter(&self, probe: &Probe) -> Result<Vec<Near>, Error> {
        let mut starts = insert::descend(self, probe, 0);
        self.measure(probe, &self.pending.read(), &mut starts)?;
        Ok(starts)
    }

    fn links(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error> {
        if let Some(links) = self.node(node).and_then(|node| node.links.first()) {
            into.extend_from_slice(&links.read());
        }
        Ok(())
    }

    fn measure(&self, probe: &Probe, nodes: &[u32], into: &mut Vec<Near>) -> Result<(), Error> {
        self.touch(nodes);
        for id in nodes {
            into.extend(self.node(*id).map(|node| node.measured(*id, probe)));
        }
        Ok(())
    }

    fn ordinals(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error> {
        if let Some(node) = self.node(node) {
            into.extend_from_slice(&node.ordinals.read());
        }
        Ok(())
    }
}

impl std::fmt::Debug for MemoryGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryGraph({} nodes)", self.nodes.len())
    }
}
