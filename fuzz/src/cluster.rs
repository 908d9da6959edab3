//! Records of the meta log, and snapshots of a cluster's state.

use bytes::Bytes;
use ilion_cluster::{
    BlockDigest, Change, ClusterState, Endpoint, Entry, Join, Location, Record, SchemaRecord, Strategy,
    Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use uuid::Uuid;

use crate::split_choice;

const CREATE: Change = Change::Create {
    tablets: 4,
    level: 3,
    down_max_micros: 1,
};

/// A small log to start from: a cluster of two nodes, one of which joins.
pub fn entries() -> Vec<Entry> {
    let join = |host, slices| {
        Change::Join(Join {
            host: Uuid::from_u128(host),
            session: Uuid::from_u128(host),
            endpoint: Endpoint {
                ip: [127, 0, 0, 1].into(),
                native_port: 9042,
                storage_port: 7000,
            },
            location: Location {
                datacenter: "dc1".to_owned(),
                rack: format!("r{host}"),
            },
            understands: 3,
            takes: Takes::Slices(slices),
        })
    };
    let factors = [("dc1".to_owned(), 2)].into();
    let keyspaces = vec![("ks".to_owned(), Some(Strategy::Network(factors)))];
    let schema = Change::Schema(SchemaRecord {
        checked_at: 0,
        keyspaces,
        body: Bytes::from_static(b"CREATE KEYSPACE"),
    });
    let positions = vec![(0, Position::new(3, 4))];
    let flushed = Change::Flushed { positions };
    let told = BlockDigest {
        block: 5,
        digest: [6; 16],
    };
    let digests = Change::Digests {
        blocks: vec![(1, told)],
    };
    let changes = [
        CREATE,
        join(1, vec![0, 1, 2, 3]),
        schema,
        join(2, vec![1, 3]),
        flushed,
        digests,
    ];
    (1..)
        .zip(changes)
        .map(|(position, change)| with(&of_change(Uuid::from_u128(1), change), position))
        .collect()
}

fn of_change(cluster: Uuid, change: Change) -> Record {
    Record { cluster, change }
}

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
    let created = with(&of_change(record.cluster, CREATE), 1);
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
            seq: position,
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
    let record = of_change(state.cluster, Change::Heartbeat { schema_epoch: 0 });
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
        state.differing(*node);
        state.tokens(*node);
    }
}
