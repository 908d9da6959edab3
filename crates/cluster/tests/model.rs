//! Random logs. The seed is printed; `SEED=n` runs one.
//!
//! Laws: reads are only routed to nodes that have copied the data, or were replicas from the start; a log is trimmed only up to what all
//! replicas that were heard of have, and the meta log up to its newest snapshot; of two schema changes that were
//! checked against the same schema one is applied; fewer than half of the replicas of a tablet are found to differ in a block; two nodes, one of
//! them started from a snapshot, have the same state; what a record's bytes say does not change.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ilion_cluster::{
    BlockDigest, Change, ClusterState, Effect, Endpoint, Entry, Join, Location, META_TABLET, Moment, Node,
    Record, SchemaRecord, SnapshotPart, Strategy, Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use ilion_env::Seeded;
use uuid::Uuid;

const DOWN_MAX_MICROS: i64 = 400;

#[test]
fn random_logs_keep_the_laws() {
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = given.map_or(0..30, |seed: u64| seed..seed + 1);
    let mut done = Counts::default();
    for seed in seeds {
        println!("SEED={seed}");
        done.add(Model::new(seed).run(250));
    }
    println!("{done:?}");
    if given.is_none() {
        assert!(
            done.finished > 100
                && done.refused > 500
                && done.trimmed > 50
                && done.meta_trimmed > 10
                && done.schemas > 100
                && done.differing > 10,
            "{done:?}"
        );
    }
}

/// How often each kind of event happened; the test fails if one is too rare to be tested.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    finished: u32,
    refused: u32,
    trimmed: u32,
    meta_trimmed: u32,
    schemas: u32,
    differing: u32,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.finished += other.finished;
        self.refused += other.refused;
        self.trimmed += other.trimmed;
        self.meta_trimmed += other.meta_trimmed;
        self.schemas += other.schemas;
        self.differing += other.differing;
    }
}

type Gains = BTreeMap<Node, BTreeSet<(u32, String)>>;

struct Model {
    random: Seeded,
    state: ClusterState,
    /// A node that is started from a snapshot now and then.
    other: ClusterState,
    position: u64,
    time_micros: i64,
    seqs: BTreeMap<(Node, u32), u64>,
    hosts: u128,
    last: Entry,
    /// What there was to copy, by transition and schema epoch: what a node knows that is ready.
    to_copy: BTreeMap<(u64, u64), Gains>,
    /// Who has all data of a keyspace in a tablet.
    has: BTreeSet<(u32, String, Node)>,
    done: Counts,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Seeded::new(seed);
        let create = Change::Create {
            tablets: 1 + random.below(12) as u32,
            level: [1, 3, 3][random.below(3) as usize],
            down_max_micros: DOWN_MAX_MICROS,
        };
        let last = entry(1, 0, Origin::default(), create);
        let (state, _) = apply(None, &last).unwrap();
        Self {
            random,
            other: state.clone(),
            state,
            position: 1,
            time_micros: 0,
            seqs: BTreeMap::new(),
            hosts: 0,
            last,
            to_copy: BTreeMap::new(),
            has: BTreeSet::new(),
            done: Counts::default(),
        }
    }

    fn run(mut self, records: u32) -> Counts {
        for _ in 0..records {
            self.time_micros += self.random.below(20) as i64;
            self.position += 1 + self.random.below(3);
            let entry = if self.random.one_in(10) {
                let position = Position::new(self.position, 0);
                Entry {
                    position,
                    ..self.last.clone()
                }
            } else {
                let (origin, change) = self.choose();
                entry(self.position, self.time_micros, origin, change)
            };
            self.apply(&entry);
            self.last = entry;
        }
        self.done
    }

    fn apply(&mut self, entry: &Entry) {
        let before = self.state.clone();
        let (state, effects) = apply(Some(&before), entry).unwrap();
        let bytes = entry.record.encode();
        assert_eq!(Record::decode(&bytes).as_ref(), Ok(&entry.record));
        if self.random.one_in(20) {
            self.other = ClusterState::decode(&before.encode()).unwrap();
        }
        let (other, same) = apply(Some(&self.other), entry).unwrap();
        assert_eq!((&other, &same), (&state, &effects));
        (self.state, self.other) = (state, other);
        self.note_copied(&before, entry, &effects);
        for effect in &effects {
            self.check(&before, entry, effect);
        }
        self.note_replicas();
    }

    /// A node that is taken at its word has copied what it knew of.
    fn note_copied(&mut self, before: &ClusterState, entry: &Entry, effects: &[Effect]) {
        let is_taken = !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Refused { .. } | Effect::Repeated));
        if let Change::Ready {
            transition,
            schema_epoch,
        } = entry.record.change
            && is_taken
        {
            let known = self.to_copy.get(&(transition, schema_epoch));
            let copied = known
                .and_then(|gains| gains.get(&entry.origin.node))
                .into_iter()
                .flatten();
            let copied = copied.filter(|(_, keyspace)| before.schema.keyspaces.contains_key(keyspace));
            let node = entry.origin.node;
            self.has
                .extend(copied.map(|(tablet, keyspace)| (*tablet, keyspace.clone(), node)));
        }
    }

    fn check(&mut self, before: &ClusterState, entry: &Entry, effect: &Effect) {
        match effect {
            Effect::Refused { .. } => {
                self.done.refused += 1;
                assert_eq!(
                    self.state.members, before.members,
                    "a refused record changes nothing"
                );
                assert_eq!(self.state.transition, before.transition);
                assert_eq!(self.state.schema, before.schema);
            }
            Effect::RingChanged { .. } | Effect::ReplicationChanged { .. } => self.done.finished += 1,
            Effect::SchemaChanged { epoch, .. } => {
                self.done.schemas += 1;
                let Change::Schema(record) = &entry.record.change else {
                    panic!("a schema change by {entry:?}");
                };
                assert_eq!(
                    (record.checked_at, *epoch),
                    (before.schema.epoch, before.schema.epoch + 1)
                );
            }
            Effect::Differs { node, tablet, block } => {
                self.done.differing += 1;
                let Change::Digests { blocks } = &entry.record.change else {
                    panic!("digests in {entry:?}");
                };
                assert!(
                    blocks
                        .iter()
                        .any(|(of, told)| (of, &told.block) == (tablet, block))
                );
                assert!(self.state.differing(*node).contains_key(tablet));
                let replicas = before.all_replicas(Moment::Now);
                let replicas = replicas.get(tablet).cloned().unwrap_or_default();
                let right = replicas
                    .iter()
                    .filter(|node| !self.state.differing(**node).contains_key(tablet));
                let right = right.count();
                assert!(replicas.contains(node) && right > 1, "{right} of {replicas:?}");
            }
            Effect::Trimmed { tablet, position } => {
                self.done.trimmed += 1;
                if *tablet == META_TABLET {
                    self.done.meta_trimmed += 1;
                    assert!(before.newest_snapshot() >= Some(Position::new(position.segment.0 - 1, 0)));
                }
                for (node, member) in &before.members {
                    let is_heard = self.state.time_micros - member.heard_micros <= DOWN_MAX_MICROS;
                    let needs = *tablet == META_TABLET
                        || [Moment::Now, Moment::Afterwards].iter().any(|moment| {
                            let replicas = before.all_replicas(*moment);
                            replicas.get(tablet).is_some_and(|nodes| nodes.contains(node))
                        });
                    let is_kept = before.flushed(*tablet, *node) >= *position;
                    assert!(
                        !is_heard || !needs || is_kept,
                        "node {node} needs {tablet} before {position}"
                    );
                }
            }
            _ => {}
        }
    }

    /// New keyspaces are empty, so all that will be replicas have all of them. Replicas that are none any more lose what they have.
    fn note_replicas(&mut self) {
        if let Some(transition) = &self.state.transition {
            let known = (transition.number, self.state.schema.epoch);
            self.to_copy.insert(known, self.state.gains());
        }
        let keyspaces = &self.state.schema.keyspaces;
        self.has
            .retain(|(_, keyspace, _)| keyspaces.contains_key(keyspace));
        let known: BTreeSet<String> = self.has.iter().map(|(_, keyspace, _)| keyspace.clone()).collect();
        let router = ilion_cluster::Router::new(&self.state);
        let mut replicas = BTreeSet::new();
        for keyspace in keyspaces.keys() {
            for tablet in 0..self.state.tablets.count() {
                let nodes = router
                    .replicas(keyspace, self.state.tablets.end(tablet))
                    .unwrap_or_default();
                replicas.extend(nodes.iter().map(|node| (tablet, keyspace.clone(), *node)));
            }
        }
        let gains = self.state.gains();
        for place in replicas
            .iter()
            .filter(|(_, keyspace, _)| !known.contains(keyspace))
        {
            self.has.insert(place.clone());
        }
        for place in &replicas {
            assert!(
                self.has.contains(place),
                "{place:?} answers reads and has not copied the data"
            );
        }
        self.has.retain(|(tablet, keyspace, node)| {
            let gained = gains
                .get(node)
                .is_some_and(|gained| gained.contains(&(*tablet, keyspace.clone())));
            gained || replicas.contains(&(*tablet, keyspace.clone(), *node))
        });
    }

    fn member(&mut self) -> Node {
        let nodes: Vec<Node> = self.state.members.keys().copied().collect();
        match nodes.len() as u64 {
            0 => 1,
            _ if self.random.one_in(30) => 99,
            count => nodes[self.random.below(count) as usize],
        }
    }

    fn slices(&mut self, share: u64) -> Vec<u32> {
        let all = 0..self.state.tablets.count();
        all.filter(|_| self.random.one_in(share)).collect()
    }

    fn choose(&mut self) -> (Origin, Change) {
        let node = self.member();
        let current = self
            .state
            .members
            .get(&node)
            .map_or(1, |member| member.incarnation);
        let mut incarnation = current;
        let change = match self.random.below(30) {
            0 | 1 => {
                let change = self.join();
                return (Origin::default(), change);
            }
            2 => {
                incarnation += 1 + u32::from(self.random.one_in(5));
                Change::Start {
                    session: self.host(),
                    endpoint: endpoint(),
                    understands: self.understands(),
                }
            }
            3..=8 => self.ready(),
            9 => {
                let leaving = self.member();
                let slices: Vec<u32> = (0..self.state.tablets.count())
                    .filter(|slice| self.state.owner(*slice, Moment::Now) == Some(leaving))
                    .collect();
                Change::Leave {
                    node: leaving,
                    moves: self.moves(&slices),
                }
            }
            10 => {
                let slices = self.slices(4);
                Change::Move {
                    moves: self.moves(&slices),
                }
            }
            11 => Change::Cancel {
                transition: self.transition(),
            },
            12 | 13 => self.schema(),
            14 | 15 => Change::Flushed {
                positions: self.positions(),
            },
            16 => Change::Trim {
                positions: self.trim(),
            },
            17 => Change::Level {
                level: 1 + self.random.below(4) as u32,
            },
            18 => Change::Release {
                release: format!("5.0.{}", self.random.below(10)),
            },
            23..=29 => Change::Digests {
                blocks: self.digests(),
            },
            19 | 20 => Change::Snapshot(SnapshotPart {
                position: Position::new(self.position.saturating_sub(self.random.below(6)), 0),
                part: self.random.below(2) as u32,
                parts: 1 + self.random.below(2) as u32,
                bytes: Bytes::from_static(b"state"),
            }),
            _ => Change::Heartbeat {
                schema_epoch: self.random.below(5),
            },
        };
        if self.random.one_in(40) {
            incarnation = incarnation.saturating_sub(1);
        }
        let seq = self.seqs.entry((node, incarnation)).or_default();
        *seq += 1;
        let seq = *seq;
        (
            Origin {
                node,
                incarnation,
                seq,
            },
            change,
        )
    }

    fn understands(&mut self) -> u32 {
        match self.random.one_in(4) {
            true => 1 + self.random.below(3) as u32,
            false => 3,
        }
    }

    /// Most are the same on all nodes.
    fn digests(&mut self) -> Vec<(u32, BlockDigest)> {
        let digests = (0..3).map(|_| {
            let tablet = self.random.below(4) as u32;
            let digest = [u8::from(self.random.one_in(8)); 16];
            let block = self.position / 200;
            (tablet, BlockDigest { block, digest })
        });
        digests.collect()
    }

    fn host(&mut self) -> Uuid {
        self.hosts += 1;
        Uuid::from_u128(self.hosts)
    }

    fn join(&mut self) -> Change {
        let takes = if self.state.members.is_empty() {
            Takes::Slices((0..self.state.tablets.count()).collect())
        } else if self.random.one_in(3) {
            Takes::PlaceOf(self.member())
        } else {
            Takes::Slices(self.slices(3))
        };
        let host = if self.random.one_in(5) {
            Uuid::from_u128(1)
        } else {
            self.host()
        };
        Change::Join(Join {
            host,
            session: host,
            endpoint: endpoint(),
            location: Location {
                datacenter: format!("dc{}", 1 + self.random.below(2)),
                rack: format!("r{}", self.random.below(3)),
            },
            understands: self.understands(),
            takes,
        })
    }

    fn transition(&mut self) -> u64 {
        let current = self
            .state
            .transition
            .as_ref()
            .map_or(0, |transition| transition.number);
        current.saturating_sub(u64::from(self.random.one_in(5)))
    }

    fn ready(&mut self) -> Change {
        let behind = if self.random.one_in(3) {
            self.random.below(3)
        } else {
            0
        };
        let transition = self.transition();
        // A node says what it has done: there was something to copy then.
        let schema_epoch = self.state.schema.epoch.saturating_sub(behind);
        let is_known = self.to_copy.contains_key(&(transition, schema_epoch));
        Change::Ready {
            transition,
            schema_epoch: if is_known {
                schema_epoch
            } else {
                self.state.schema.epoch
            },
        }
    }

    fn moves(&mut self, slices: &[u32]) -> Vec<(u32, Node)> {
        slices.iter().map(|slice| (*slice, self.member())).collect()
    }

    fn schema(&mut self) -> Change {
        let name = format!("ks{}", self.random.below(3));
        let strategy = match self.random.below(6) {
            0 => None,
            1 => Some(Strategy::Local),
            2 | 3 => Some(Strategy::Simple(1 + self.random.below(3) as u32)),
            _ => {
                let factors = (1..=2).map(|dc| (format!("dc{dc}"), self.random.below(3) as u32));
                Some(Strategy::Network(factors.collect()))
            }
        };
        let behind = u64::from(self.random.one_in(4));
        Change::Schema(SchemaRecord {
            checked_at: self.state.schema.epoch.saturating_sub(behind),
            keyspaces: vec![(name, strategy)],
            body: Bytes::from_static(b"ddl"),
        })
    }

    fn positions(&mut self) -> Vec<(u32, Position)> {
        let tablets = (0..self.state.tablets.count()).chain([META_TABLET]);
        let position = self.position;
        tablets
            .map(|tablet| {
                (
                    tablet,
                    Position::new(position.saturating_sub(self.random.below(4)), 0),
                )
            })
            .collect()
    }

    fn trim(&mut self) -> Vec<(u32, Position)> {
        let beyond = u64::from(self.random.one_in(3));
        let points = self.state.trim_points().into_iter();
        points
            .map(|(tablet, point)| (tablet, Position::new(point.segment.0 + beyond, 0)))
            .collect()
    }
}

fn endpoint() -> Endpoint {
    Endpoint {
        ip: [127, 0, 0, 1].into(),
        native_port: 9042,
        storage_port: 7000,
    }
}

fn entry(position: u64, time_micros: i64, origin: Origin, change: Change) -> Entry {
    let cluster = Uuid::from_u128(0xC1);
    Entry {
        position: Position::new(position, 0),
        time_micros,
        origin,
        record: Record { cluster, change },
    }
}
