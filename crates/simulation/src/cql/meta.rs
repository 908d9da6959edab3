//! [`Meta`]: a node's view of the meta log: its membership, and changes of the schema that it has to adopt.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ilion_cluster::{
    Change, ClusterState, Effect, Endpoint, Entry, FEATURE_LEVEL_MAX, Join, Location, Record, SchemaRecord,
    Takes, apply,
};
use ilion_commitlog::{Envelope, Kind, Origin, Position};
use ilion_histories::Violation;
use uuid::Uuid;

use crate::log::{Answer, Side, SimLog, Ticket};

/// Identifies the simulated cluster.
pub(super) const CLUSTER: Uuid = Uuid::from_u128(7);
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;

/// A change of the schema.
#[derive(Clone)]
pub(super) struct Unadopted {
    pub epoch: u64,
    /// When it was logged.
    pub time_micros: i64,
    pub change: Bytes,
}

/// What a node knows from the meta log, and asks of it.
#[derive(Default)]
pub(super) struct Meta {
    state: Option<ClusterState>,
    node: u32,
    session: Uuid,
    /// The incarnation of this process, once its start is in the log.
    incarnation: Option<u32>,
    start: Option<Ticket>,
    /// Changes that this node has read of and not adopted, with their epochs.
    pub unadopted: VecDeque<Unadopted>,
    /// What became of changes that this process asked for, by their numbers: the epoch, or `None` if they were refused.
    pub outcomes: BTreeMap<u64, Option<u64>>,
}

fn endpoint() -> Endpoint {
    Endpoint {
        ip: std::net::Ipv4Addr::LOCALHOST.into(),
        native_port: 9042,
        storage_port: 7000,
    }
}

/// The session of a node's process after this many starts.
fn session(node: u32, starts: u32) -> Uuid {
    Uuid::from_u128(u128::from(node) << 32 | u128::from(starts))
}

fn envelope(origin: Origin, body: &[u8]) -> Envelope<'_> {
    Envelope {
        kind: Kind::Schema,
        tablet: ilion_cluster::META_TABLET,
        schema_epoch: 0,
        origin,
        time_micros: 0,
        is_captured: false,
        body,
    }
}

fn encoded(change: Change) -> Vec<u8> {
    let cluster = CLUSTER;
    Record { cluster, change }.encode()
}

/// Puts the records into the meta log that make the cluster and its members.
pub(crate) fn begin_cluster(meta: &mut SimLog, nodes: u32, tablets: u32) {
    let mut put = |node, incarnation, seq, change| {
        let origin = Origin {
            node,
            incarnation,
            seq,
        };
        meta.put(&envelope(origin, &encoded(change)));
    };
    put(
        0,
        0,
        0,
        Change::Create {
            tablets,
            level: FEATURE_LEVEL_MAX,
            down_max_micros: DAY_MICROS,
        },
    );
    for node in 1..=nodes {
        let takes = match node {
            1 => (0..tablets).collect(),
            _ => vec![node - 1],
        };
        let join = Join {
            host: Uuid::from_u128(u128::from(node)),
            session: session(node, 1),
            endpoint: endpoint(),
            location: Location {
                datacenter: "datacenter1".to_owned(),
                rack: format!("rack{node}"),
            },
            understands: FEATURE_LEVEL_MAX,
            takes: Takes::Slices(takes),
        };
        put(0, 0, 0, Change::Join(join));
        if node > 1 {
            let transition = u64::from(node - 1);
            let schema_epoch = 0;
            // The numbers that processes give later are higher than this one.
            let ready = Change::Ready {
                transition,
                schema_epoch,
            };
            put(node, 1, 1, ready);
        }
    }
}

impl Meta {
    /// A process that begins. It reads the log from its first record.
    pub fn new(node: u32, starts: u32) -> Self {
        Self {
            node,
            session: session(node, starts),
            ..Self::default()
        }
    }

    /// The incarnation of this process; `None` before it may send anything.
    pub fn incarnation(&self) -> Option<u32> {
        self.incarnation
    }

    /// The schema that the cluster has.
    pub fn schema_epoch(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.schema.epoch)
    }

    /// The record of a change that was checked against the newest schema.
    pub fn record_of(&self, change: Bytes) -> Vec<u8> {
        encoded(Change::Schema(SchemaRecord {
            checked_at: self.schema_epoch(),
            keyspaces: Vec::new(),
            body: change,
        }))
    }

    /// Sends a record of [`Self::record_of`].
    pub fn ask(&self, origin: Origin, record: &[u8], log: &mut SimLog, side: Side) -> Ticket {
        log.send(&envelope(origin, record), side)
    }

    /// Applies the next record, or takes a step of the start of a process. Returns true if something happened.
    pub fn follow(&mut self, adopted: u64, log: &mut SimLog, side: Side) -> Result<bool, Violation> {
        let position = self
            .state
            .as_ref()
            .map_or(Position::START, |state| state.position);
        let next = log.next_above(position, side);
        let next = next.map_err(|deleted| Violation(format!("meta: {deleted}")))?;
        let Some((position, record)) = next else {
            return Ok(self.begin(log, side));
        };
        let origin = record.origin;
        let read = Entry::decode(position, record.time_micros, origin, &record.body);
        let applied = read.and_then(|entry| apply(self.state.as_ref(), &entry));
        let (state, effects) = applied.map_err(|halt| Violation(format!("halted: {halt}")))?;
        let time_micros = state.time_micros;
        self.state = Some(state);
        let is_own = origin.node == self.node && Some(origin.incarnation) == self.incarnation;
        for effect in effects {
            match effect {
                Effect::Joined { node, session, .. } if (node, session) == (self.node, self.session) => {
                    self.incarnation = Some(1);
                }
                Effect::Started {
                    node,
                    session,
                    incarnation,
                } if (node, session) == (self.node, self.session) => self.incarnation = Some(incarnation),
                Effect::SchemaChanged { epoch, body } => {
                    if epoch > adopted {
                        let change = body;
                        self.unadopted.push_back(Unadopted {
                            epoch,
                            time_micros,
                            change,
                        });
                    }
                    if is_own {
                        self.outcomes.insert(origin.seq, Some(epoch));
                    }
                }
                Effect::Refused { .. } if is_own => {
                    self.outcomes.insert(origin.seq, None);
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Sends the record of this process's start, until it is in the log.
    fn begin(&mut self, log: &mut SimLog, side: Side) -> bool {
        if self.incarnation.is_some() {
            return false;
        }
        let Some(member) = self
            .state
            .as_ref()
            .and_then(|state| state.members.get(&self.node))
        else {
            return false;
        };
        match self.start.map(|ticket| log.take_answer(ticket)) {
            Some(None) => return false,
            // It was refused, or it is in the log and not read yet.
            Some(Some(Answer::Acknowledged(position)))
                if self.state.as_ref().is_some_and(|state| state.position < position) =>
            {
                self.start = None;
                return false;
            }
            _ => {}
        }
        let origin = Origin {
            node: self.node,
            incarnation: member.incarnation + 1,
            seq: 0,
        };
        let start = Change::Start {
            session: self.session,
            endpoint: endpoint(),
            understands: FEATURE_LEVEL_MAX,
        };
        self.start = Some(log.send(&envelope(origin, &encoded(start)), side));
        true
    }
}
