//! Builds a graph from another one: the same vectors with other ordinals, and the existing links.

use super::MemoryGraph;
use super::insert::{link, selected};
use super::node::Node;
use crate::Near;
use crate::probe::Probe;

/// Marks a node without a counterpart.
const NONE: u32 = u32::MAX;

impl MemoryGraph {
    /// The node of a vector.
    pub fn node_of(&self, vector: &[f32]) -> Option<u32> {
        let hash = self.hash(vector);
        let shard = self.shard_of(hash).lock();
        shard.find(hash, |node| self.has(*node, vector)).copied()
    }

    /// The vector of a node.
    pub fn vector(&self, node: u32) -> Option<&[f32]> {
        self.node(node).map(|node| &*node.vector)
    }

    /// Makes a graph of those nodes of `source` that have ordinals here. This costs a small part of inserting their vectors. Requires:
    /// no more inserts into `source`.
    pub fn adopt(source: &Self, mut ordinals: impl FnMut(u32) -> Vec<u32>) -> Self {
        let graph = source.empty();
        let mut numbers = vec![NONE; source.nodes.len() as usize];
        for id in 0..source.nodes.len() {
            let given = ordinals(id);
            if let Some(node) = source.node(id)
                && !given.is_empty()
                && let Some(number) = graph.nodes.push(|_| node.with(&given))
            {
                numbers[id as usize] = number;
                let hash = graph.hash(&node.vector);
                graph.remember(hash, number, &mut graph.shard_of(hash).lock());
            }
        }
        let kept = Kept {
            source,
            graph: &graph,
            numbers: &numbers,
        };
        let mut lonely = Vec::new();
        for (id, number) in (0..).zip(&numbers) {
            if let (Some(old), Some(new)) = (source.node(id), graph.node(*number)) {
                for (level, links) in new.links.iter().enumerate() {
                    *links.write() = kept.links(*number, old, level);
                }
                graph.entry.raise(*number, new.level());
                if new.links.first().is_some_and(|links| links.read().is_empty()) {
                    lonely.push((*number, new.level()));
                }
            }
        }
        for (number, level) in lonely {
            link(&graph, number, level);
        }
        graph
    }
}

struct Kept<'g> {
    source: &'g MemoryGraph,
    graph: &'g MemoryGraph,
    /// New numbers by old ones.
    numbers: &'g [u32],
}

impl Kept<'_> {
    /// The links of a node in a level. A link to a node that was not kept is replaced by the links of that node.
    fn links(&self, number: u32, old: &Node, level: usize) -> Vec<u32> {
        let old = old.links.get(level).map(|links| links.read().clone());
        let (mut links, mut lost) = (Vec::new(), Vec::new());
        for id in old.unwrap_or_default() {
            match self.numbers.get(id as usize) {
                Some(&NONE) | None => lost.push(id),
                Some(number) => links.push(*number),
            }
        }
        if lost.is_empty() {
            return links;
        }
        for id in lost {
            let theirs = self.source.node(id).and_then(|node| node.links.get(level));
            let theirs = theirs.map(|links| links.read().clone()).unwrap_or_default();
            let theirs = theirs.into_iter().filter_map(|id| self.numbers.get(id as usize));
            links.extend(theirs.filter(|id| **id != NONE && **id != number));
        }
        links.sort_unstable();
        links.dedup();
        self.nearest(number, &links, level)
    }

    fn nearest(&self, number: u32, links: &[u32], level: usize) -> Vec<u32> {
        let Some(node) = self.graph.node(number) else {
            return Vec::new();
        };
        let space = self.graph.space();
        let probe = Probe::member(space, &node.vector, node.weight);
        let measured = |id: &u32| self.graph.node(*id).map(|node| node.measured(*id, &probe));
        let mut candidates: Vec<Near> = links.iter().filter_map(measured).collect();
        candidates.sort_unstable();
        let most = self
            .graph
            .options
            .links_max(u8::try_from(level).unwrap_or(u8::MAX));
        let kept = selected(self.graph, space, &candidates, most);
        kept.into_iter().map(|near| near.id).collect()
    }
}
