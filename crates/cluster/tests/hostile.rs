//! Changed bytes of records and snapshots, with checksums that fit: an error or a value, never a panic. The seed is printed. `fuzz/` has
//! the same at length.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use bytes::Bytes;
use ilion_cluster::{
    BlockDigest, Change, ClusterState, Endpoint, Entry, Join, Location, Moment, Record, SchemaRecord,
    SnapshotPart, Strategy, Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use ilion_env::Seeded;
use uuid::Uuid;

/// One record of each kind, in an order in which most take effect.
fn changes() -> Vec<Change> {
    let join = |host, takes| {
        Change::Join(Join {
            host: Uuid::from_u128(host),
            session: Uuid::from_u128(host),
            endpoint: endpoint(),
            location: Location {
                datacenter: "dc1".to_owned(),
                rack: format!("r{host}"),
            },
            understands: 3,
            takes,
        })
    };
    let network = BTreeMap::from([("dc1".to_owned(), 2), ("dc2".to_owned(), 1)]);
    let place = Position::new(3, 4);
    let told = BlockDigest {
        block: 5,
        digest: [6; 16],
    };
    vec![
        Change::Create {
            tablets: 4,
            level: 1,
            down_max_micros: 1,
        },
        join(1, Takes::Slices(vec![0, 1, 2, 3])),
        Change::Schema(SchemaRecord {
            checked_at: 0,
            keyspaces: vec![
                ("a".to_owned(), Some(Strategy::Network(network))),
                ("b".to_owned(), Some(Strategy::Simple(2))),
                ("c".to_owned(), None),
            ],
            body: Bytes::from_static(b"CREATE KEYSPACE"),
        }),
        join(2, Takes::Slices(vec![1, 3])),
        Change::Start {
            session: Uuid::from_u128(9),
            endpoint: endpoint(),
            understands: 3,
        },
        Change::Heartbeat { schema_epoch: 1 },
        Change::Flushed {
            positions: vec![(0, place), (u32::MAX, place)],
        },
        Change::Trim {
            positions: vec![(0, Position::START)],
        },
        Change::Ready {
            transition: 1,
            schema_epoch: 1,
        },
        Change::Cancel { transition: 1 },
        join(3, Takes::PlaceOf(1)),
        Change::Leave {
            node: 1,
            moves: vec![(0, 2), (2, 2)],
        },
        Change::Move { moves: vec![(0, 2)] },
        Change::Level { level: 3 },
        Change::Snapshot(SnapshotPart {
            position: place,
            part: 0,
            parts: 2,
            bytes: Bytes::from_static(b"state"),
        }),
        Change::Release {
            release: "5.0.9".to_owned(),
        },
        Change::Digests {
            blocks: vec![(0, told), (3, told)],
        },
    ]
}

fn endpoint() -> Endpoint {
    Endpoint {
        ip: Ipv6Addr::LOCALHOST.into(),
        native_port: 9042,
        storage_port: 7000,
    }
}

fn entry(position: u64, record: Record) -> Entry {
    Entry {
        position: Position::new(position, 0),
        time_micros: 7,
        origin: Origin {
            node: 1,
            incarnation: 1,
            seq: position,
        },
        record,
    }
}

fn states() -> (Vec<Vec<u8>>, Vec<ClusterState>) {
    let (mut records, mut states): (Vec<_>, Vec<ClusterState>) = (Vec::new(), Vec::new());
    for (position, change) in (1..).zip(changes()) {
        let cluster = Uuid::from_u128(0xC1);
        let record = Record { cluster, change };
        let bytes = record.encode();
        assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
        let (state, _) = apply(states.last(), &entry(position, record)).unwrap();
        records.push(bytes);
        states.push(state);
    }
    (records, states)
}

fn with_checksum(bytes: &mut Vec<u8>) {
    bytes.truncate(bytes.len().saturating_sub(4));
    let crc = ilion_codec::crc32(bytes);
    bytes.extend(crc.to_be_bytes());
}

/// Changes up to three bytes, or cuts.
fn damage(bytes: &mut Vec<u8>, random: &mut Seeded) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = match random.below(3) {
            0 => 0xFF,
            1 => bytes[at].wrapping_add(1),
            _ => random.below(256) as u8,
        };
    }
    if random.one_in(8) {
        bytes.truncate(random.below(bytes.len() as u64) as usize);
    }
    with_checksum(bytes);
}

fn ask(state: &ClusterState) {
    let router = ilion_cluster::Router::new(state);
    state.schema.keyspaces.keys().for_each(|keyspace| {
        router.replicas(keyspace, 7);
    });
    state.all_replicas(Moment::Afterwards);
    state.gains();
    state.trim_points();
    state.members.keys().for_each(|node| {
        state.stranded(*node);
    });
}

#[test]
fn changed_records_are_errors_or_records() {
    let (records, states) = states();
    let mut applied = 0;
    for seed in 0..1500 {
        println!("seed {seed}");
        let mut random = Seeded::new(seed);
        let mut bytes = records[random.below(records.len() as u64) as usize].clone();
        damage(&mut bytes, &mut random);
        let Ok(record) = Record::decode(&bytes) else {
            continue;
        };
        assert_eq!(Record::decode(&record.encode()).as_ref(), Ok(&record));
        let state = &states[random.below(states.len() as u64) as usize];
        if let Ok((next, _)) = apply(Some(state), &entry(99, record)) {
            applied += 1;
            ask(&next);
        }
    }
    assert!(applied > 150, "{applied}");
}

#[test]
fn changed_snapshots_are_errors_or_states() {
    let (_, states) = states();
    let mut decoded = 0;
    for seed in 0..1500 {
        println!("seed {seed}");
        let mut random = Seeded::new(seed);
        let mut bytes = states[random.below(states.len() as u64) as usize].encode();
        damage(&mut bytes, &mut random);
        let Ok(state) = ClusterState::decode(&bytes) else {
            continue;
        };
        decoded += 1;
        assert_eq!(ClusterState::decode(&state.encode()).as_ref(), Ok(&state));
        ask(&state);
        let cluster = state.cluster;
        let beyond = state.position.segment.0.saturating_add(1);
        for change in changes() {
            if let Ok((next, _)) = apply(Some(&state), &entry(beyond, Record { cluster, change })) {
                ask(&next);
            }
        }
    }
    assert!(decoded > 150, "{decoded}");
}

#[test]
fn cut_records_and_snapshots_are_refused() {
    let (records, states) = states();
    for bytes in records {
        (0..bytes.len()).for_each(|end| assert!(Record::decode(&bytes[..end]).is_err()));
    }
    let bytes = states.last().unwrap().encode();
    (0..bytes.len()).for_each(|end| assert!(ClusterState::decode(&bytes[..end]).is_err()));
}
