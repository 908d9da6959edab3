//! A graph in memory that is searched while vectors are inserted.
//!
//! A node is never moved or removed, so readers only lock its links, while they copy them. A node whose links are not complete
//! is *pending*. Searches also start at pending nodes, so a vector is found as soon as [`MemoryGraph::insert`] returns, even if
//! another thread is inserting it.

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
    /// Dimension of the first vector; 0 before it.
    dimension: AtomicU32,
    nodes: Slots<Node>,
    entry: Entry,
    /// The greatest squared length of a vector so far, as bits (dot product only).
    reach: AtomicU32,
    /// Nodes by their vectors. Held to find or add a node, never while it is linked.
    by_vector: [Mutex<HashTable<u32>>; SHARDS],
    /// Nodes whose links are not complete.
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

    /// Inserts a vector with an ordinal, the caller's number of its row. Every search that starts after this returned finds it.
    /// Returns the growth of memory in bytes.
    ///
    /// # Errors
    /// [`Error::Refused`] if the vector cannot be indexed ([`Similarity::check`]), or its dimension differs from the first
    /// one's.
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
        // A thread that finds the node in the table must find it pending, or linked.
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

    /// Removes the ordinals of a vector for which `is_gone` is true. The vector stays, as a step on paths to others. Returns
    /// the number of removed ordinals.
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

    /// Number of ordinals.
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
            // The bits of numbers that are not negative sort like the numbers.
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

    /// Prefetches vectors into the cache: their cache misses overlap.
    #[inline]
    fn touch(&self, nodes: &[u32]) {
        let first = |id: &u32| self.nodes.get(*id)?.vector.first().map(|value| value.to_bits());
        std::hint::black_box(nodes.iter().filter_map(first).fold(0, |all, bits| all ^ bits));
    }

    /// An empty graph with the same measure of distances.
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

    /// Adds a node to the table of vectors.
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

/// Compares bits: 0 and -0 are different vectors here, which does no harm.
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
