//! [`slices_for_newcomer`]: which slices of the ring a new node takes. Pure.
//!
//! 1. The new node owns as many slices as the others, and they come from the nodes that have most.
//! 2. They come from few sequences: a node reads all of each sequence that has one of its tablets, and sends requests to the broker of each.
//!    So that whole sequences can be taken, and not a little of each, an owner gives up to a tenth more than would be fair.
//! 3. Replicas are on the owners of slices that follow each other on the ring. So a node that owns neighbours has fewer replicas than one
//!    that does not: slices are taken far from each other, and next to what their owner keeps.

use std::collections::{BTreeMap, BTreeSet};

use ilion_cluster::{ClusterState, Node};

use crate::slices::{owned_by, spread, take_spread};

/// The neighbours of a slice: two before it, and two behind.
const NEIGHBOURS: usize = 4;

/// The slices that a new node takes: `wanted` of them, or its fair share. Ascending; at least one stays with each owner. `sequence_of`: the
/// sequence that has the log of a slice.
pub fn slices_for_newcomer(
    state: &ClusterState,
    sequence_of: impl Fn(u32) -> u32,
    wanted: Option<u32>,
) -> Vec<u32> {
    let count = state.tablets.count();
    let mut owned = owned_by(state);
    if owned.is_empty() {
        return (0..count).collect();
    }
    let fair = count / (owned.len() as u32 + 1);
    let wanted = wanted.unwrap_or(fair).clamp(1, count) as usize;
    let mut taken: Vec<u32> = Vec::new();
    // If that is too little, owners give all but one.
    for kept in [(fair as usize * 9).div_ceil(10).max(1), 1] {
        while taken.len() < wanted {
            let last = taken.last().map(|slice| sequence_of(*slice));
            let more = last.and_then(|last| {
                let donor = richest(&owned, kept, |slice| sequence_of(slice) == last)?;
                Some((donor, last))
            });
            let next = more.or_else(|| {
                let donor = richest(&owned, kept, |_| true)?;
                let sequence = next_sequence(&owned[&donor], kept, &taken, count, &sequence_of)?;
                Some((donor, sequence))
            });
            let slice = next.and_then(|(donor, sequence)| {
                let slices = owned.get_mut(&donor)?;
                take_spread(slices, taken.len(), |slice| sequence_of(slice) == sequence)
            });
            let Some(slice) = slice else {
                break;
            };
            taken.push(slice);
        }
    }
    taken.sort_unstable();
    taken
}

/// The node that owns most slices, of those that own more than `kept`, and one for which `is_such` returns true.
fn richest(owned: &BTreeMap<Node, Vec<u32>>, kept: usize, is_such: impl Fn(u32) -> bool) -> Option<Node> {
    let donors = owned
        .iter()
        .filter(|(_, slices)| slices.len() > kept && slices.iter().any(|slice| is_such(*slice)));
    let richest = donors.max_by_key(|(_, slices)| slices.len());
    richest.map(|(node, _)| *node)
}

/// The sequence that is taken next from a node's slices: the largest that it can give whole, or else the smallest; of several, the one
/// whose neighbours suit best. Requires: the node has more than it keeps.
fn next_sequence(
    slices: &[u32],
    kept: usize,
    taken: &[u32],
    count: u32,
    sequence_of: impl Fn(u32) -> u32,
) -> Option<u32> {
    /// One of its slices, and their number.
    struct Found {
        slice: u32,
        size: usize,
    }
    let mut sequences: BTreeMap<u32, Found> = BTreeMap::new();
    for slice in slices {
        let found = sequences.entry(sequence_of(*slice));
        found
            .or_insert(Found {
                slice: *slice,
                size: 0,
            })
            .size += 1;
    }
    let sizes = || sequences.values().map(|found| found.size);
    let whole = sizes().filter(|size| size + kept <= slices.len()).max();
    let size = whole.or_else(|| sizes().min())?;
    sequences.retain(|_, found| found.size == size);
    let [taken_set, kept_set] =
        [taken, slices].map(|slices| slices.iter().copied().collect::<BTreeSet<u32>>());
    // Few neighbours that the new node owns already; then many that the owner keeps.
    let score = |found: &Found| {
        let taken = neighbours(found.slice, &taken_set, count);
        (taken, NEIGHBOURS - neighbours(found.slice, &kept_set, count))
    };
    let best = sequences.values().map(score).min()?;
    sequences.retain(|_, found| score(found) == best);
    let sequences: Vec<u32> = sequences.into_keys().collect();
    sequences.get(spread(taken.len(), sequences.len())).copied()
}

/// How many neighbours of a slice are among others.
fn neighbours(slice: u32, others: &BTreeSet<u32>, count: u32) -> usize {
    let steps = [1, 2, count.saturating_sub(2), count.saturating_sub(1)];
    let neighbours = steps.map(|step| (slice + step) % count);
    neighbours.iter().filter(|slice| others.contains(slice)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::{empty, joined};

    fn grown(tablets: u32, nodes: usize, sequence_of: impl Fn(u32) -> u32) -> ClusterState {
        let mut state = empty(tablets);
        for _ in 0..nodes {
            let slices = slices_for_newcomer(&state, &sequence_of, None);
            state = joined(&state, "dc", slices);
        }
        state
    }

    /// The number of slices and of sequences of each node.
    fn sizes(state: &ClusterState, sequence_of: impl Fn(u32) -> u32) -> Vec<(usize, usize)> {
        let owned = owned_by(state).into_values();
        let sizes = owned.map(|slices| {
            let sequences: BTreeSet<u32> = slices.iter().map(|slice| sequence_of(*slice)).collect();
            (slices.len(), sequences.len())
        });
        sizes.collect()
    }

    #[test]
    fn newcomers_get_a_fair_share() {
        for sequences in [1, 16] {
            let sequence_of = |slice| slice % sequences;
            assert_eq!(
                slices_for_newcomer(&empty(16), sequence_of, None),
                (0..16).collect::<Vec<u32>>()
            );
            let two = grown(16, 2, sequence_of);
            assert_eq!(sizes(&two, |_| 0), [(8, 1), (8, 1)]);
            let third = slices_for_newcomer(&two, sequence_of, None);
            let owned = owned_by(&two);
            let from_second = third.iter().filter(|slice| owned[&2].contains(slice)).count();
            assert_eq!(third.len(), 5);
            assert!((2..=3).contains(&from_second), "{third:?} of {owned:?}");
            assert_eq!(slices_for_newcomer(&two, sequence_of, Some(2)).len(), 2);
            let most = slices_for_newcomer(&two, sequence_of, Some(99));
            assert_eq!(most.len(), 14, "one stays with each");
        }
    }

    #[test]
    fn whole_sequences_are_taken_where_that_is_fair() {
        let sequence_of = |slice| slice % 8;
        let two = grown(48, 2, sequence_of);
        assert_eq!(sizes(&two, sequence_of), [(24, 4), (24, 4)]);
        let third = slices_for_newcomer(&two, sequence_of, None);
        let taken = (0..8).map(|sequence| {
            third
                .iter()
                .filter(|slice| sequence_of(**slice) == sequence)
                .count()
        });
        let mut taken: Vec<usize> = taken.filter(|taken| *taken > 0).collect();
        taken.sort_unstable();
        assert_eq!(taken, [1, 3, 6, 6], "of a sequence's 6 slices");
    }

    #[test]
    fn sequences_are_taken_far_from_each_other() {
        // Each slice is a sequence of its own. Three of them are a quarter of the ring.
        let taken = slices_for_newcomer(&grown(12, 1, |slice| slice), |slice| slice, Some(3));
        let steps = [taken[1] - taken[0], taken[2] - taken[1], taken[0] + 12 - taken[2]];
        assert!(steps.iter().all(|step| *step >= 3), "{taken:?}");
    }

    #[test]
    fn nodes_of_a_large_cluster_own_slices_of_few_sequences() {
        let sequence_of = |slice| slice % 96;
        let sizes = sizes(&grown(960, 24, sequence_of), sequence_of);
        let sequences: usize = sizes.iter().map(|(_, sequences)| sequences).sum();
        assert!(sequences <= 24 * 6, "a fair share is 4 sequences: {sizes:?}");
        for (slices, _) in sizes {
            assert!((34..=46).contains(&slices), "{slices} slices, where 40 are fair");
        }
    }
}
