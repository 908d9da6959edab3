//! Records of the meta log, and snapshots of a cluster's state.

use ilion_cluster::{Change, ClusterState, Entry, Record, apply};
use ilion_commitlog::{Origin, Position};
use uuid::Uuid;

use crate::split_choice;

/// The first byte chooses: a record (0), a snapshot (1), or either without a checksum that fits.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = split_choice(data) else {
        return;
    };
    let mut bytes = data.to_vec();
    if choice < 2 {
        bytes.extend(crc32fast::hash(data).to_be_bytes());
    }
    if choice % 2 == 0 {
        record(&bytes);
    } else {
        snapshot(&bytes);
    }
}

fn record(bytes: &[u8]) {
    let Ok(record) = Record::decode(bytes) else {
        return;
    };
    assert_eq!(Record::decode(&record.encode()).as_ref(), Ok(&record));
    let create = Change::Create {
        tablets: 4,
        level: 1,
        down_max_micros: 1,
    };
    let cluster = record.cluster;
    let created = Entry {
        position: Position::new(1, 0),
        time_micros: 0,
        origin: Origin::default(),
        record: Record {
            cluster,
            change: create,
        },
    };
    let _ = apply(None, &with(&record, 1));
    let (state, _) = apply(None, &created).expect("a good record");
    if let Ok((next, _)) = apply(Some(&state), &with(&record, 2)) {
        ask(&next);
    }
}

fn with(record: &Record, position: u64) -> Entry {
    Entry {
        position: Position::new(position, 0),
        time_micros: 5,
        origin: Origin {
            node: 1,
            incarnation: 1,
            seq: 1,
        },
        record: record.clone(),
    }
}

fn snapshot(bytes: &[u8]) {
    let Ok(state) = ClusterState::decode(bytes) else {
        return;
    };
    assert_eq!(ClusterState::decode(&state.encode()).as_ref(), Ok(&state));
    ask(&state);
    let change = Change::Heartbeat { schema_epoch: 0 };
    let record = Record {
        cluster: state.cluster,
        change,
    };
    let mut entry = with(&record, 0);
    entry.position = Position::new(u64::MAX, u32::MAX);
    let _ = apply(Some(&state), &entry);
    entry.record.cluster = Uuid::nil();
    let _ = apply(Some(&state), &entry);
}

/// Asks a state everything.
fn ask(state: &ClusterState) {
    let router = ilion_cluster::Router::new(state);
    for keyspace in state.schema.keyspaces.keys() {
        router.replicas(keyspace, 7);
    }
    state.gains();
    state.trim_points();
    for node in state.members.keys() {
        state.stranded(*node);
        state.tokens(*node);
    }
}
