//! States of clusters whose nodes joined one after another, for tests.

use ilion_cluster::{Change, ClusterState, Endpoint, Entry, Join, Location, Record, Takes, apply};
use ilion_commitlog::Origin;
use uuid::Uuid;

use crate::meta::position_of;

fn entry(offset: u64, node: u32, change: Change) -> Entry {
    Entry {
        position: position_of(offset),
        time_micros: 0,
        origin: Origin {
            node,
            incarnation: 1,
            seq: offset,
        },
        record: Record {
            cluster: Uuid::from_u128(7),
            change,
        },
    }
}

/// A cluster without nodes.
pub(crate) fn empty(tablets: u32) -> ClusterState {
    let create = Change::Create {
        tablets,
        level: 1,
        down_max_micros: 1,
    };
    apply(None, &entry(0, 0, create)).unwrap().0
}

/// The next node has joined.
pub(crate) fn joined(state: &ClusterState, datacenter: &str, slices: Vec<u32>) -> ClusterState {
    let number = state.members.len() as u32 + 1;
    let id = Uuid::from_u128(number.into());
    let join = Change::Join(Join {
        host: id,
        session: id,
        endpoint: Endpoint {
            ip: [127, 0, 0, 1].into(),
            native_port: 9042,
            storage_port: 7000,
        },
        location: Location {
            datacenter: datacenter.to_owned(),
            rack: "r".to_owned(),
        },
        understands: 1,
        takes: Takes::Slices(slices),
    });
    let offset = state.position.segment.0;
    let (state, _) = apply(Some(state), &entry(offset + 1, 0, join)).unwrap();
    let Some(transition) = &state.transition else {
        return state;
    };
    let ready = Change::Ready {
        transition: transition.number,
        schema_epoch: 0,
    };
    apply(Some(&state), &entry(offset + 2, number, ready)).unwrap().0
}
