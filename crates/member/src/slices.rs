//! Which slices of the ring change their owner when a node leaves, and when they are spread evenly. Pure. `taking` has those of a new node,
//! and says why a node should own slices of few sequences.

use std::collections::{BTreeMap, BTreeSet};

use ilion_cluster::{ClusterState, Moment, Node, Phase, Strategy};

/// The slices of each member that is neither joining nor leaving, ascending.
pub(crate) fn owned_by(state: &ClusterState) -> BTreeMap<Node, Vec<u32>> {
    let normal = state
        .members
        .iter()
        .filter(|(_, member)| member.phase == Phase::Normal);
    let mut owned: BTreeMap<Node, Vec<u32>> = normal.map(|(node, _)| (*node, Vec::new())).collect();
    for slice in 0..state.tablets.count() {
        let owner = state.owner(slice, Moment::Now);
        if let Some(slices) = owner.and_then(|owner| owned.get_mut(&owner)) {
            slices.push(slice);
        }
    }
    owned
}

fn data_center(state: &ClusterState, node: Node) -> Option<&str> {
    let member = state.members.get(&node)?;
    Some(&member.location.datacenter)
}

/// The new owner of each slice of a node that leaves: each goes to a node that owns slices of its sequence, or else to the node that has fewest
/// then; no node gets more than a tenth above the average for the sake of a sequence. Nodes of the same data center that are up are
/// preferred, so that the data of a data center stays there. `None`: there is no other node.
pub(crate) fn moves_of_leaver(
    state: &ClusterState,
    leaver: Node,
    sequence_of: impl Fn(u32) -> u32,
    is_up: impl Fn(Node) -> bool,
) -> Option<Vec<(u32, Node)>> {
    let mut others = owned_by(state);
    let slices = others.remove(&leaver)?;
    let rank = |node: Node| {
        let is_near = data_center(state, node) == data_center(state, leaver);
        (!is_near, !is_up(node))
    };
    let best = others.keys().map(|node| rank(*node)).min()?;
    others.retain(|node, _| rank(*node) == best);
    let all = others.values().map(Vec::len).sum::<usize>() + slices.len();
    let many = (all * 11).div_ceil(10 * others.len());
    let moves = slices.into_iter().map(|slice| {
        let sequence = sequence_of(slice);
        let score = |owned: &Vec<u32>| {
            let has_some = owned.len() < many && owned.iter().any(|slice| sequence_of(*slice) == sequence);
            (!has_some, owned.len())
        };
        let (node, owned) = others.iter_mut().min_by_key(|(_, owned)| score(owned))?;
        owned.push(slice);
        Some((slice, *node))
    });
    moves.collect()
}

/// Moves after which the nodes of each data center have equal numbers of slices, give or take one. As few as possible, ascending. A node gets
/// slices of sequences that it owns slices of already, if there are such.
pub(crate) fn balancing_moves(state: &ClusterState, sequence_of: impl Fn(u32) -> u32) -> Vec<(u32, Node)> {
    let mut centers: BTreeMap<&str, BTreeMap<Node, Vec<u32>>> = BTreeMap::new();
    for (node, slices) in owned_by(state) {
        let center = data_center(state, node).unwrap_or_default();
        centers.entry(center).or_default().insert(node, slices);
    }
    let mut moves = Vec::new();
    for mut owned in centers.into_values() {
        loop {
            let counts = || owned.iter().map(|(node, slices)| (slices.len(), *node));
            let (Some((fewest, poorest)), Some((most, richest))) = (counts().min(), counts().max()) else {
                break;
            };
            if most <= fewest + 1 {
                break;
            }
            let known: BTreeSet<u32> = owned[&poorest].iter().map(|slice| sequence_of(*slice)).collect();
            let is_known = |slice: u32| known.contains(&sequence_of(slice));
            let slice = owned.get_mut(&richest).and_then(|slices| {
                let of_known = take_spread(slices, moves.len(), is_known);
                of_known.or_else(|| take_spread(slices, moves.len(), |_| true))
            });
            let Some(slice) = slice else {
                break;
            };
            moves.push((slice, poorest));
            owned.entry(poorest).or_default().push(slice);
        }
    }
    moves.sort_unstable();
    moves
}

/// Removes and returns one of the slices for which `is_such` returns true. `taken`: how many were removed before.
pub(crate) fn take_spread(slices: &mut Vec<u32>, taken: usize, is_such: impl Fn(u32) -> bool) -> Option<u32> {
    let such: Vec<usize> = (0..slices.len()).filter(|at| is_such(slices[*at])).collect();
    such.get(spread(taken, such.len())).map(|at| slices.remove(*at))
}

/// A place among `count`. Steps of the golden ratio spread what is taken one after another.
pub(crate) fn spread(taken: usize, count: usize) -> usize {
    (taken * 618) % 1000 * count / 1000
}

/// The first keyspace that has as many replicas as there are nodes that can have them, so that it would lose one when this node leaves: its
/// name, its replicas, and the nodes.
pub(crate) fn losing_keyspace(state: &ClusterState, leaver: Node) -> Option<(&str, u32, usize)> {
    let nodes_in = |center: Option<&str>| {
        let is_in = |node: &&Node| center.is_none() || data_center(state, **node) == center;
        state.members.keys().filter(is_in).count()
    };
    let own = data_center(state, leaver)?;
    let mut losing = state.schema.keyspaces.iter().map(|(name, strategy)| {
        let (replicas, nodes) = match strategy {
            Strategy::Local => (0, usize::MAX),
            Strategy::Simple(replicas) => (*replicas, nodes_in(None)),
            Strategy::Network(replicas) => (
                replicas.get(own).copied().unwrap_or_default(),
                nodes_in(Some(own)),
            ),
        };
        (name.as_str(), replicas, nodes)
    });
    losing.find(|(_, replicas, nodes)| *nodes <= *replicas as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::{empty, joined};

    /// Nodes of 6, 3, 1 and 2 slices; the last one is in another data center.
    fn uneven() -> ClusterState {
        let state = joined(&empty(12), "dc", (0..12).collect());
        let state = joined(&state, "dc", vec![0, 1, 2]);
        let state = joined(&state, "dc", vec![3]);
        joined(&state, "far", vec![4, 5])
    }

    /// A sequence for each log.
    fn one_each(log: u32) -> u32 {
        log
    }

    #[test]
    fn slices_of_a_leaver_go_to_those_who_have_least_and_stay_in_the_data_center() {
        let state = uneven();
        let moves = moves_of_leaver(&state, 2, one_each, |_| true).unwrap();
        assert_eq!(moves, [(0, 3), (1, 3), (2, 3)]);
        let moves = moves_of_leaver(&state, 2, one_each, |node| node != 3).unwrap();
        assert_eq!(moves, [(0, 1), (1, 1), (2, 1)]);
        let moves = moves_of_leaver(&state, 4, one_each, |_| true).unwrap();
        assert_eq!(moves, [(4, 3), (5, 3)], "there is no other node near");
    }

    #[test]
    fn slices_of_a_leaver_go_to_those_who_own_some_of_their_sequence_unless_these_have_many() {
        // Slices 0, 3, 6 and 9 are in a sequence, and so on.
        let in_three = |slice: u32| slice % 3;
        let state = joined(&empty(12), "dc", (0..12).collect());
        let state = joined(&state, "dc", vec![1, 4, 7]);
        let state = joined(&state, "dc", vec![2, 5, 8, 10]);
        // Node 1 keeps 0, 3, 6, 9 and 11.
        let moves = moves_of_leaver(&state, 2, in_three, |_| true).unwrap();
        assert_eq!(moves, [(1, 3), (4, 3), (7, 3)], "node 3 has slice 10");
        let moves = moves_of_leaver(&state, 3, in_three, |_| true).unwrap();
        assert_eq!(
            moves,
            [(2, 1), (5, 1), (8, 2), (10, 2)],
            "node 1 has slice 11, and soon many"
        );
    }

    #[test]
    fn a_ring_is_balanced_by_few_moves_of_sequences_that_are_known() {
        let state = uneven();
        assert_eq!(
            balancing_moves(&state, one_each).len(),
            2,
            "6, 3 and 1 become 4, 3 and 3"
        );
        // Node 3 owns slice 3, node 1 owns 6 to 11.
        assert_eq!(balancing_moves(&state, |slice| slice % 4), [(7, 3), (11, 3)]);
    }
}
