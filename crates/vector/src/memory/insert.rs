//! Links new nodes.

use std::convert::Infallible;

use super::MemoryGraph;
use super::node::{Node, overgrown};
use crate::Near;
use crate::beam::{UPPER_BREADTH, beam};
use crate::probe::{Probe, Space};
use crate::select::select;

/// Links a node with its neighbours in both directions, level by level from the top.
pub(super) fn link(graph: &MemoryGraph, id: u32, level: u8) {
    let Some(node) = graph.node(id) else {
        return;
    };
    // Read before the walk: a node that is no longer pending is linked, so the walk finds it.
    let pending: Vec<u32> = graph.pending.read().clone();
    let space = graph.space();
    let probe = Probe::member(space, &node.vector, node.weight);
    let breadth = usize::from(graph.options.construction_beam_width);
    let mut nearest = descend(graph, &probe, level);
    for level in (0..=level).rev() {
        nearest = walk(graph, &probe, level, &nearest, breadth);
        let candidates = candidates(graph, &probe, level, id, &nearest, &pending);
        let kept = selected(
            graph,
            space,
            &candidates,
            usize::from(graph.options.maximum_node_connections),
        );
        connect(graph, space, id, level, &kept);
    }
    graph.entry.raise(id, level);
}

/// Candidates for links in a level, nearest first: the result of the walk, and the nodes that are pending now, to which no
/// links lead yet.
fn candidates(
    graph: &MemoryGraph,
    probe: &Probe,
    level: u8,
    id: u32,
    nearest: &[Near],
    pending: &[u32],
) -> Vec<Near> {
    let is_of_level = |node: &Node| node.links.len() > usize::from(level);
    let mut candidates = nearest.to_vec();
    for other in pending {
        if let Some(node) = graph.node(*other)
            && !nearest.iter().any(|near| near.id == *other)
        {
            candidates.push(node.measured(*other, probe));
        }
    }
    candidates.retain(|near| near.id != id && graph.node(near.id).is_some_and(is_of_level));
    candidates.sort_unstable();
    candidates
}

/// The nodes at which a walk in `level` starts: those nearest to the probe in the level above, or the entry.
pub(super) fn descend(graph: &MemoryGraph, probe: &Probe, level: u8) -> Vec<Near> {
    let Some((entry, top)) = graph.top() else {
        return Vec::new();
    };
    let mut nearest: Vec<Near> = graph
        .node(entry)
        .map(|node| node.measured(entry, probe))
        .into_iter()
        .collect();
    for upper in (level + 1..=top).rev() {
        nearest = walk(graph, probe, upper, &nearest, UPPER_BREADTH);
    }
    nearest
}

/// The nodes of a level that are nearest to the probe, nearest first.
fn walk(graph: &MemoryGraph, probe: &Probe, level: u8, starts: &[Near], breadth: usize) -> Vec<Near> {
    let mut links = Vec::new();
    let nearest = beam(starts, breadth, |id, known, measured| {
        links.clear();
        if let Some(list) = graph.node(id).and_then(|node| node.links.get(usize::from(level))) {
            links.extend_from_slice(&list.read());
        }
        links.retain(|id| known.insert(*id));
        graph.touch(&links);
        for id in links.iter().copied() {
            measured.extend(graph.node(id).map(|node| node.measured(id, probe)));
        }
        Ok::<_, Infallible>(())
    });
    match nearest {
        Ok(nearest) => nearest,
    }
}

/// Chooses links among candidates, which come nearest first.
pub(super) fn selected(graph: &MemoryGraph, space: Space, candidates: &[Near], most: usize) -> Vec<Near> {
    let squared = |distance| match space.similarity {
        crate::Similarity::Cosine => 2.0 + 2.0 * distance,
        crate::Similarity::DotProduct => 2.0 * (space.reach + distance),
        crate::Similarity::Euclidean => distance,
    };
    select(candidates, most, squared, |a, b| {
        match (graph.node(a), graph.node(b)) {
            (Some(a), Some(b)) => space.squared_between((&a.vector, a.weight), (&b.vector, b.weight)),
            _ => f32::INFINITY,
        }
    })
}

/// Links a node with others in both directions.
fn connect(graph: &MemoryGraph, space: Space, id: u32, level: u8, kept: &[Near]) {
    let list = usize::from(level);
    if let Some(own) = graph.node(id).and_then(|node| node.links.get(list)) {
        let mut own = own.write();
        // Concurrent inserts may have added their links already.
        for near in kept {
            if !own.contains(&near.id) {
                own.push(near.id);
            }
        }
    }
    let most = graph.options.links_max(level);
    for near in kept {
        let Some(node) = graph.node(near.id) else {
            continue;
        };
        let Some(links) = node.links.get(list) else {
            continue;
        };
        let mut links = links.write();
        if !links.contains(&id) {
            links.push(id);
            if links.len() > overgrown(most) {
                *links = pruned(graph, space, node, &links, most);
            }
        }
    }
}

/// The links that a node keeps.
fn pruned(graph: &MemoryGraph, space: Space, node: &Node, links: &[u32], most: usize) -> Vec<u32> {
    let probe = Probe::member(space, &node.vector, node.weight);
    let mut candidates: Vec<Near> = links
        .iter()
        .filter_map(|id| graph.node(*id).map(|node| node.measured(*id, &probe)))
        .collect();
    candidates.sort_unstable();
    let kept = selected(graph, space, &candidates, most);
    kept.into_iter().map(|near| near.id).collect()
}
