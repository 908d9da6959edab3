//! Which slices of the ring a node takes when it joins. Pure.

use std::collections::BTreeMap;

use ilion_cluster::{ClusterState, Moment, Node};

/// The slices that a new node takes: `wanted` of them, or its fair share. They come from the nodes that have most, and are spread over
/// what each of these has, so that the data of every node is spread over the ring. Ascending; at least one stays with each owner.
pub(crate) fn slices_for_newcomer(state: &ClusterState, wanted: Option<u32>) -> Vec<u32> {
    let count = state.tablets.count();
    let mut owned: BTreeMap<Node, Vec<u32>> = BTreeMap::new();
    for slice in 0..count {
        if let Some(owner) = state.owner(slice, Moment::Now) {
            owned.entry(owner).or_default().push(slice);
        }
    }
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
        // Steps of the golden ratio spread over what is left.
        let at = (taken.len() * 618) % 1000 * slices.len() / 1000;
        taken.push(slices.remove(at));
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
}
