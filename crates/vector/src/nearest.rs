//! The search: it walks to the nearest vectors, then to the next ones.
//!
//! The *frontier* has nodes that are measured but not visited. The search repeatedly visits the nearest of these: its accepted
//! ordinals are results, and its neighbours are added to the frontier. When the nearest node of the frontier is too far
//! ([`Reach`]), the requested number of results counts as the nearest. To find more, the walk continues with the same frontier.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;

use crate::near::Best;
use crate::node_set::NodeSet;
use crate::plan::{farther, gives_up};
use crate::{Error, Graph, Near, Probe, Reach, Way, choose};

/// Number of nodes that a scan measures at once.
const SCAN_NODES: usize = 64;

/// Number of nodes that are measured to estimate a typical distance.
const SAMPLED: u32 = 16;

/// True for ordinals that may be results.
type Accept<'a> = &'a dyn Fn(u32) -> bool;

/// The ordinals of the `limit` nearest accepted vectors and their scores, best first.
///
/// # Errors
/// The query is invalid, or the file cannot be read.
pub fn search<G: Graph>(
    graph: &G,
    query: &[f32],
    limit: usize,
    accept: Accept<'_>,
    reach: Reach,
) -> Result<Vec<(u32, f32)>, Error> {
    let mut nearest = Nearest::of(graph, query, limit, None, reach)?;
    let mut found = Vec::new();
    while found.len() < limit {
        match nearest.next(accept)? {
            Some(scored) => found.push(scored),
            None => break,
        }
    }
    Ok(found)
}

/// Returns ordinals roughly in order of nearness, each once, until none are left.
pub struct Nearest<R> {
    graph: R,
    probe: Probe,
    reach: Reach,
    /// Typical distance of vectors from the query, in space.
    typical: f32,
    way: Way,
    /// Measured nodes. Each is in `frontier`, `set_aside` or `seen`.
    known: NodeSet,
    known_count: usize,
    frontier: BinaryHeap<Reverse<Near>>,
    /// Measured nodes that are too far for the number of results requested so far.
    set_aside: Vec<Near>,
    /// Visited nodes.
    seen: Vec<Near>,
    /// All results, including those that were returned.
    found: Vec<Near>,
    /// Results that were not returned yet.
    ready: BinaryHeap<Reverse<Near>>,
    given: usize,
    /// Number of results for which the walk has gone far enough.
    settled: usize,
    /// Number of results that the next walk aims for.
    wanted: usize,
    is_complete: bool,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    nodes: Vec<u32>,
    measured: Vec<Near>,
    ordinals: Vec<u32>,
}

impl<R: Deref<Target: Graph>> Nearest<R> {
    /// Starts a search. `wanted` is the probable number of results; when they are used up, the walk continues for twice as
    /// many. `accepted` is the number of accepted ordinals, if it is known.
    ///
    /// # Errors
    /// The query is invalid or has another dimension than the graph, or the file cannot be read.
    pub fn of(
        graph: R,
        query: &[f32],
        wanted: usize,
        accepted: Option<u32>,
        reach: Reach,
    ) -> Result<Self, Error> {
        graph.options().similarity.check(query)?;
        let dimension = graph.dimension();
        if dimension != 0 && query.len() != dimension as usize {
            return Err(Error::Refused(format!(
                "the query has {} dimensions, the index has vectors of {dimension}",
                query.len()
            )));
        }
        let probe = graph.probe(query);
        let mut nearest = Self {
            way: choose(graph.node_count(), accepted, wanted, reach),
            graph,
            probe,
            reach,
            typical: 0.0,
            known: NodeSet::default(),
            known_count: 0,
            frontier: BinaryHeap::new(),
            set_aside: Vec::new(),
            seen: Vec::new(),
            found: Vec::new(),
            ready: BinaryHeap::new(),
            given: 0,
            settled: 0,
            wanted: wanted.max(1),
            is_complete: false,
            scratch: Scratch::default(),
        };
        if nearest.way == Way::Walk {
            nearest.typical = nearest.sample()?;
            for near in nearest.graph.enter(&nearest.probe)? {
                if nearest.known.insert(near.id) {
                    nearest.known_count += 1;
                    nearest.frontier.push(Reverse(near));
                }
            }
        }
        Ok(nearest)
    }

    /// The next best accepted ordinal and its score.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self, accept: Accept<'_>) -> Result<Option<(u32, f32)>, Error> {
        while self.given >= self.settled && !self.is_complete {
            self.settle(accept)?;
        }
        let Some(Reverse(result)) = self.ready.pop() else {
            return Ok(None);
        };
        self.given += 1;
        Ok(Some((result.id, self.probe.score(result.distance))))
    }

    /// Number of vectors measured so far.
    pub fn measured(&self) -> usize {
        self.known_count
    }

    /// Walks far enough for `wanted` results.
    fn settle(&mut self, accept: Accept<'_>) -> Result<(), Error> {
        if self.way == Way::Scan {
            return self.scan(accept);
        }
        let wanted = self.wanted;
        let mut results = Best::of(wanted, &self.found);
        let mut beam = Best::of(wanted.max(self.reach.breadth), &self.seen);
        self.frontier.extend(self.set_aside.drain(..).map(Reverse));
        loop {
            let bound = self.bound(&results, &beam);
            let Some(Reverse(next)) = self.frontier.pop() else {
                if self.found.len() < wanted {
                    return self.scan(accept);
                }
                break;
            };
            if next.distance >= bound {
                self.frontier.push(Reverse(next));
                break;
            }
            if gives_up(self.known_count, self.graph.node_count()) {
                self.frontier.push(Reverse(next));
                return self.scan(accept);
            }
            beam.show(next);
            self.take(next, accept, &mut results)?;
            self.follow(next.id, bound)?;
        }
        self.settled = wanted;
        self.wanted = wanted.saturating_mul(2);
        Ok(())
    }

    /// The distance from which on no wanted result is expected: a node at exactly this distance is not visited.
    fn bound(&self, results: &Best, beam: &Best) -> f32 {
        match (results.limit(), beam.limit()) {
            (Some(last), Some(beam)) => beam.max(self.farther(last)),
            _ => f32::INFINITY,
        }
    }

    /// The maximum distance of a node to visit, if a result is at this distance.
    fn farther(&self, result: f32) -> f32 {
        let distance = self.probe.squared(result).max(0.0).sqrt();
        let far = farther(distance, self.typical, self.reach);
        self.probe.of_square(far * far)
    }

    /// The root of the mean squared distance of some nodes.
    fn sample(&mut self) -> Result<f32, Error> {
        let Scratch { nodes, measured, .. } = &mut self.scratch;
        let step = (self.graph.node_count() / SAMPLED).max(1) as usize;
        nodes.extend((0..self.graph.node_count()).step_by(step));
        self.graph.measure(&self.probe, nodes, measured)?;
        let squares = measured.iter().map(|near| self.probe.squared(near.distance));
        Ok((squares.sum::<f32>() / measured.len().max(1) as f32)
            .max(0.0)
            .sqrt())
    }

    /// Visits a node: its accepted ordinals are results.
    fn take(&mut self, node: Near, accept: Accept<'_>, results: &mut Best) -> Result<(), Error> {
        self.seen.push(node);
        self.scratch.ordinals.clear();
        self.graph.ordinals(node.id, &mut self.scratch.ordinals)?;
        for id in self.scratch.ordinals.iter().copied().filter(|id| accept(*id)) {
            let result = Near {
                distance: node.distance,
                id,
            };
            results.show(result);
            self.found.push(result);
            self.ready.push(Reverse(result));
        }
        Ok(())
    }

    /// Measures the neighbours of a node.
    fn follow(&mut self, node: u32, bound: f32) -> Result<(), Error> {
        let Scratch { nodes, measured, .. } = &mut self.scratch;
        nodes.clear();
        measured.clear();
        self.graph.links(node, nodes)?;
        nodes.retain(|node| self.known.insert(*node));
        self.known_count += nodes.len();
        self.graph.measure(&self.probe, nodes, measured)?;
        for near in measured {
            if near.distance < bound {
                self.frontier.push(Reverse(*near));
            } else {
                self.set_aside.push(*near);
            }
        }
        Ok(())
    }

    /// Measures all accepted vectors that were not visited; then the search is complete.
    fn scan(&mut self, accept: Accept<'_>) -> Result<(), Error> {
        let seen: NodeSet = self.seen.iter().map(|near| near.id).collect();
        let count = self.graph.node_count();
        let mut batch: Vec<(u32, Vec<u32>)> = Vec::with_capacity(SCAN_NODES);
        for node in (0..count).filter(|node| !seen.contains(*node)) {
            let mut ordinals = std::mem::take(&mut self.scratch.ordinals);
            ordinals.clear();
            self.graph.ordinals(node, &mut ordinals)?;
            ordinals.retain(|ordinal| accept(*ordinal));
            if ordinals.is_empty() {
                self.scratch.ordinals = ordinals;
            } else {
                batch.push((node, ordinals));
            }
            if batch.len() == SCAN_NODES {
                self.take_batch(&mut batch)?;
            }
        }
        self.take_batch(&mut batch)?;
        self.frontier.clear();
        self.set_aside.clear();
        self.is_complete = true;
        Ok(())
    }

    fn take_batch(&mut self, batch: &mut Vec<(u32, Vec<u32>)>) -> Result<(), Error> {
        let Scratch { nodes, measured, .. } = &mut self.scratch;
        nodes.clear();
        measured.clear();
        nodes.extend(batch.iter().map(|(node, _)| *node));
        self.known_count += nodes.len();
        self.graph.measure(&self.probe, nodes, measured)?;
        // Nodes keep their order, and nodes without a vector have no ordinals.
        for (near, (_, ordinals)) in measured.iter().zip(batch.drain(..)) {
            for id in ordinals {
                let result = Near {
                    distance: near.distance,
                    id,
                };
                self.found.push(result);
                self.ready.push(Reverse(result));
            }
        }
        Ok(())
    }
}
