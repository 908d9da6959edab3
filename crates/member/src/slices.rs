//! Which slices of the ring change their owner: when a node joins or leaves, and when they are spread evenly. Pure.

use std::collections::BTreeMap;

use ilion_cluster::{ClusterState, Moment, Node, Phase, Strategy};

/// The slices of each member that is neither joining nor leaving, ascending.
fn owned_by(state: &ClusterState) -> BTreeMap<Node, Vec<u32>> {
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

/// The new owner of each slice of a node that leaves: each goes to the node that has fewest then. Nodes of the same data center that are
/// up are preferred, so that the data of a data center stays there. `None`: there is no other node.
pub(crate) fn moves_of_leaver(
    state: &ClusterState,
    leaver: Node,
    is_up: impl Fn(Node) -> bool,
) -> Option<Vec<(u32, Node)>> {
    let mut others = owned_by(state);
    let slices = others.remove(&leaver)?;
    let rank = |node: Node| {
        let is_near = data_center(state, node) == data_center(state, leaver);
        (!is_near, !is_up(node))
    };
    let best = others.keys().map(|node| rank(*node)).min()?;
    let mut counts: BTreeMap<Node, usize> = others
        .iter()
        .filter(|(node, _)| rank(**node) == best)
        .map(|(node, slices)| (*node, slices.len()))
        .collect();
    let moves = slices.into_iter().map(|slice| {
        let (node, count) = counts.iter_mut().min_by_key(|(_, count)| **count)?;
        *count += 1;
        Some((slice, *node))
    });
    moves.collect()
}

/// Moves after which the nodes of each data center have equal numbers of slices, give or take one. As few as possible, ascending.
pub(crate) fn balancing_moves(state: &ClusterState) -> Vec<(u32, Node)> {
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
            let slice = owned
                .get_mut(&richest)
                .and_then(|slices| take_spread(slices, moves.len()));
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

/// Takes one of these slices; steps of the golden ratio spread those that are taken one after another.
fn take_spread(slices: &mut Vec<u32>, taken: usize) -> Option<u32> {
    let at = (taken * 618) % 1000 * slices.len() / 1000;
    (at < slices.len()).then(|| slices.remove(at))
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

/// The slices that a new node takes: `wanted` of them, or its fair share. They come from the nodes that have most, and are spread over
/// what each of these has, so that the data of every node is spread over the ring. Ascending; at least one stays with each owner.
pub(crate) fn slices_for_newcomer(state: &ClusterState, wanted: Option<u32>) -> Vec<u32> {
    let count = state.tablets.count();
    let mut owned = owned_by(state);
    if owned.is_empty() {
        return (0..count).collect();
    }
    let fair = count / (owned.len() as u32 + 1);
    let wanted = wanted.unwrap_or(fair).clamp(1, count) as usize;
    let mut taken = Vec::new();
    while taken.len() < wanted {
        let richest = owned.values_mut().max_by_key(|slices| slices.len());
        let Some(slices) = richest.filter(|slices| slices.len() > 1) else {
            break;
        };
        match take_spread(slices, taken.len()) {
            Some(slice) => taken.push(slice),
            None => break,
        }
    }
    taken.sort_unstable();
    taken
}

#[cfg(test)]
mod tests {
    use ilion_cluster::{Change, Endpoint, Entry, Join, Location, Record, Takes, apply};
    use ilion_commitlog::Origin;
    use uuid::Uuid;

    use super::*;
    use crate::meta::position_of;

    fn entry(offset: u64, change: Change) -> Entry {
        Entry {
            position: position_of(offset),
            time_micros: 0,
            origin: Origin {
                node: 2,
                incarnation: 1,
                seq: 1,
            },
            record: Record {
                cluster: Uuid::from_u128(7),
                change,
            },
        }
    }

    fn join(number: u128, slices: Vec<u32>) -> Change {
        Change::Join(Join {
            host: Uuid::from_u128(number),
            session: Uuid::from_u128(number),
            endpoint: Endpoint {
                ip: [127, 0, 0, 1].into(),
                native_port: 9042,
                storage_port: 7000,
            },
            location: Location {
                datacenter: "dc".to_owned(),
                rack: "r".to_owned(),
            },
            understands: 1,
            takes: Takes::Slices(slices),
        })
    }

    #[test]
    fn newcomers_get_a_fair_share() {
        let create = Change::Create {
            tablets: 16,
            level: 1,
            down_max_micros: 1,
        };
        let (empty, _) = apply(None, &entry(0, create)).unwrap();
        let all = slices_for_newcomer(&empty, None);
        assert_eq!(all, (0..16).collect::<Vec<u32>>());
        let (one, _) = apply(Some(&empty), &entry(1, join(1, all))).unwrap();
        let second = slices_for_newcomer(&one, None);
        assert_eq!(second.len(), 8);
        let (two, _) = apply(Some(&one), &entry(2, join(2, second.clone()))).unwrap();
        let ready = Change::Ready {
            transition: 1,
            schema_epoch: 0,
        };
        let (two, _) = apply(Some(&two), &entry(3, ready)).unwrap();
        let third = slices_for_newcomer(&two, None);
        assert_eq!(third.len(), 5);
        let from_second = third.iter().filter(|slice| second.contains(slice)).count();
        assert!((2..=3).contains(&from_second), "{third:?} of {second:?}");
        assert_eq!(slices_for_newcomer(&two, Some(2)).len(), 2);
        assert_eq!(
            slices_for_newcomer(&two, Some(99)).len(),
            14,
            "one stays with each"
        );
    }

    #[test]
    fn slices_of_a_leaver_go_to_those_who_have_least_and_stay_in_the_data_center() {
        let create = Change::Create {
            tablets: 12,
            level: 1,
            down_max_micros: 1,
        };
        let (mut state, _) = apply(None, &entry(0, create)).unwrap();
        let add = |state: &ClusterState, number: u128, center: &str, slices: Vec<u32>| {
            let Change::Join(mut join) = join(number, slices) else {
                unreachable!();
            };
            join.location.datacenter = center.to_owned();
            let offset = state.position.segment.0;
            let (state, _) = apply(Some(state), &entry(offset + 1, Change::Join(join))).unwrap();
            let Some(transition) = &state.transition else {
                return state;
            };
            let ready = Change::Ready {
                transition: transition.number,
                schema_epoch: 0,
            };
            let mut ready = entry(offset + 2, ready);
            ready.origin.node = number as u32;
            apply(Some(&state), &ready).unwrap().0
        };
        state = add(&state, 1, "dc", (0..12).collect());
        state = add(&state, 2, "dc", vec![0, 1, 2]);
        state = add(&state, 3, "dc", vec![3]);
        state = add(&state, 4, "far", vec![4, 5]);
        assert_eq!(balancing_moves(&state).len(), 2, "6, 3 and 1 become 4, 3 and 3");
        let moves = moves_of_leaver(&state, 2, |_| true).unwrap();
        assert_eq!(moves, [(0, 3), (1, 3), (2, 3)]);
        let moves = moves_of_leaver(&state, 2, |node| node != 3).unwrap();
        assert_eq!(moves, [(0, 1), (1, 1), (2, 1)]);
        let moves = moves_of_leaver(&state, 4, |_| true).unwrap();
        assert_eq!(moves, [(4, 3), (5, 3)], "there is no other node near");
    }
}
