//! A walk with a beam of fixed breadth, for the upper levels of a search and all levels of an insert.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Near;
use crate::near::Best;
use crate::node_set::NodeSet;

/// Number of nodes that a search takes from one upper level to the next. With one node, it would get stuck in the first
/// cluster.
pub(crate) const UPPER_BREADTH: usize = 8;

/// The nearest nodes that a walk from `starts` reaches, nearest first. `expand` appends those neighbours of a node, with their
/// distances, that it adds to the set.
pub(crate) fn beam<E>(
    starts: &[Near],
    breadth: usize,
    mut expand: impl FnMut(u32, &mut NodeSet, &mut Vec<Near>) -> Result<(), E>,
) -> Result<Vec<Near>, E> {
    let mut known: NodeSet = starts.iter().map(|near| near.id).collect();
    let mut best = Best::of(breadth, starts);
    let mut frontier: BinaryHeap<Reverse<Near>> = starts.iter().copied().map(Reverse).collect();
    let mut measured = Vec::new();
    while let Some(Reverse(next)) = frontier.pop() {
        if best.limit().is_some_and(|limit| next.distance > limit) {
            break;
        }
        expand(next.id, &mut known, &mut measured)?;
        for near in measured.drain(..) {
            if best.limit().is_none_or(|limit| near.distance < limit) {
                best.show(near);
                frontier.push(Reverse(near));
            }
        }
    }
    Ok(best.into_sorted())
}
