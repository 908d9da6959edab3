//! [`Meta`]: what a node knows from the meta log. Pure: it reads records, and does nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::{Change, ClusterState, Effect, Entry, Halt, Node, Refusal, apply};
use ilion_commitlog::{Position, Record};
use uuid::Uuid;

use crate::meta_snapshot::{MetaSnapshot, SchemaLogged};

/// A change that this node has read of and not adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unadopted {
    /// The epoch of the schema after it.
    pub epoch: u64,
    /// When it was logged.
    pub time_micros: i64,
    /// The change, as [`ilion_replica::FencedChange`] encodes it.
    pub change: Bytes,
    /// True if this process asked for it.
    pub is_own: bool,
}

/// What became of a change of the schema or of the ring that this process asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It makes this epoch of the schema, or begins this transition of the ring; 0 if the ring was changed at once.
    Done(u64),
    /// It changes nothing.
    Refused(Refusal),
}

/// See the module.
pub(crate) struct Meta {
    host: Uuid,
    /// This process.
    pub session: Uuid,
    pub state: Option<Arc<ClusterState>>,
    /// The number of this node, once its join is in the log.
    pub node: Option<Node>,
    /// The incarnation of this process, once its start is in the log.
    pub incarnation: Option<u32>,
    /// All changes of the schema.
    pub changes: Vec<SchemaLogged>,
    /// Changes that are not adopted yet, in their order.
    pub unadopted: VecDeque<Unadopted>,
    /// Outcomes by the number of the record.
    pub asked: BTreeMap<u64, Asked>,
    /// What this process may delete of the logs of tablets, since it asked for it: offsets below these.
    pub trimmed: Vec<(u32, u64)>,
    /// What digests of outcomes have shown, for the follower to act on.
    pub differences: Vec<Difference>,
}

/// Replicas whose commands came to different outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub tablet: u32,
    pub block: u64,
    /// The node that differs from more than half of the replicas. `None`: it cannot be known which is right.
    pub wrong: Option<Node>,
}

/// Why a node stops following the meta log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MetaHalt {
    #[error(transparent)]
    Halt(#[from] Halt),
    #[error(
        "another process with the host id {0} has joined or started: two nodes have the same data directory, or a copy of it; stop one of \
         them, and remove the copy"
    )]
    Superseded(Uuid),
    #[error(
        "this node is not a member of the cluster any more: remove its data directory before it joins again"
    )]
    Left,
}

/// A place in the meta log in the form of the state. The first offset of a log is 0, and no record is at the start.
pub(crate) fn position_of(offset: u64) -> Position {
    Position::new(offset, 1)
}

impl Meta {
    /// What a node knows before it reads the meta log or a snapshot of it.
    pub fn new(host: Uuid, session: Uuid) -> Self {
        Self {
            host,
            session,
            state: None,
            trimmed: Vec::new(),
            differences: Vec::new(),
            node: None,
            incarnation: None,
            changes: Vec::new(),
            unadopted: VecDeque::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Checks that this process, if it is in the meta log, is still that of a member in a newer state.
    pub fn check_membership(&self, state: &ClusterState) -> Result<(), MetaHalt> {
        let Some(node) = self.node else {
            return Ok(());
        };
        let member = state.members.get(&node).ok_or(MetaHalt::Left)?;
        match member.session == self.session {
            true => Ok(()),
            false => Err(MetaHalt::Superseded(self.host)),
        }
    }

    /// Goes on from a snapshot that is newer than what was read. `adopted` is the schema that this node has.
    pub fn go_on_from(&mut self, snapshot: MetaSnapshot, adopted: u64) {
        let changes = snapshot.changes.iter().zip(1..);
        self.unadopted = changes
            .filter(|(_, epoch)| *epoch > adopted)
            .map(|(change, epoch)| Unadopted {
                epoch,
                time_micros: change.time_micros,
                change: change.body.clone(),
                is_own: false,
            })
            .collect();
        self.changes = snapshot.changes;
        // The record with which this process joined or started may be one of those that the snapshot replaces.
        let mut members = snapshot.state.members.iter();
        let own = members.find(|(_, member)| member.host == self.host && member.session == self.session);
        if let Some((node, member)) = own {
            self.node = Some(*node);
            self.incarnation = Some(member.incarnation);
        }
        self.state = Some(Arc::new(snapshot.state));
    }

    /// A snapshot of everything that this node has read. `None`: it has read no record yet.
    pub fn snapshot(&self) -> Option<MetaSnapshot> {
        Some(MetaSnapshot {
            state: self.state.as_deref()?.clone(),
            changes: self.changes.clone(),
        })
    }

    /// The schema of the cluster.
    pub fn schema_epoch(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.schema.epoch)
    }

    /// The offset of the next record.
    pub fn next_offset(&self) -> u64 {
        self.state
            .as_ref()
            .map_or(0, |state| state.position.segment.0 + 1)
    }

    /// Reads the next record. `adopted` is the schema that this node has.
    pub fn read(&mut self, offset: u64, record: &Record, adopted: u64) -> Result<(), MetaHalt> {
        let origin = record.origin;
        let entry = Entry::decode(position_of(offset), record.time_micros, origin, &record.body)?;
        let (state, effects) = apply(self.state.as_deref(), &entry)?;
        let is_of_ring = matches!(
            entry.record.change,
            Change::Leave { .. } | Change::Move { .. } | Change::Cancel { .. }
        );
        let time_micros = state.time_micros;
        self.state = Some(Arc::new(state));
        let is_own = self.node == Some(origin.node) && self.incarnation == Some(origin.incarnation);
        if is_own && is_of_ring {
            let begins = |effect: &Effect| match effect {
                Effect::Copy { transition, .. } => Some(*transition),
                _ => None,
            };
            // If the record is refused, the refusal replaces this below.
            let transition = effects.iter().find_map(begins).unwrap_or_default();
            self.asked.insert(origin.seq, Asked::Done(transition));
        }
        for effect in effects {
            match effect {
                Effect::Joined { node, host, session } if host == self.host => {
                    self.begin(node, session, 1)?;
                }
                Effect::Started {
                    node,
                    session,
                    incarnation,
                } if self.is_own_host(node) => self.begin(node, session, incarnation)?,
                Effect::Left { node } if self.node == Some(node) => return Err(MetaHalt::Left),
                Effect::SchemaChanged { epoch, body } => {
                    self.changes.push(SchemaLogged {
                        time_micros,
                        body: body.clone(),
                    });
                    if is_own {
                        self.asked.insert(origin.seq, Asked::Done(epoch));
                    }
                    if epoch > adopted {
                        self.unadopted.push_back(Unadopted {
                            epoch,
                            time_micros,
                            change: body,
                            is_own,
                        });
                    }
                }
                Effect::Trimmed { tablet, position } if is_own => {
                    self.trimmed.push((tablet, position.segment.0));
                }
                Effect::Differs { node, tablet, block } => self.differences.push(Difference {
                    tablet,
                    block,
                    wrong: Some(node),
                }),
                Effect::Disputed { tablet, block, .. } => self.differences.push(Difference {
                    tablet,
                    block,
                    wrong: None,
                }),
                Effect::Refused { refusal } if is_own => {
                    self.asked.insert(origin.seq, Asked::Refused(refusal));
                }
                _ => {}
            }
        }
        // The caller has read an old outcome long before.
        while self.asked.len() > 1024 {
            self.asked.pop_first();
        }
        Ok(())
    }

    fn is_own_host(&self, node: Node) -> bool {
        let member = self.state.as_ref().and_then(|state| state.members.get(&node));
        member.is_some_and(|member| member.host == self.host)
    }

    /// A process with this host id has begun. Earlier ones of this node are passed over when the log is read again.
    fn begin(&mut self, node: Node, session: Uuid, incarnation: u32) -> Result<(), MetaHalt> {
        if session == self.session {
            self.node = Some(node);
            self.incarnation = Some(incarnation);
        } else if self.incarnation.is_some() {
            return Err(MetaHalt::Superseded(self.host));
        }
        Ok(())
    }
}
