//! [`apply`]: the next state and its effects. It reads only the state and the record, no clock and no settings.
//!
//! A record that cannot take effect is *refused*; the refusal is an effect for its sender. A record that a node does not understand
//! *halts* the node: if it skipped the record, its state would differ from that of others. A rule here may change only together with a
//! feature level.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_commitlog::{Origin, Position};
use uuid::Uuid;

use crate::levels::{FEATURE_LEVEL_MAX, Feature};
use crate::logged_snapshot::Snapshots;
use crate::outcomes::Outcomes;
use crate::placement::Node;
use crate::record::{Change, Record, SchemaRecord, Unreadable};
use crate::refusal::Refusal;
use crate::state::{ClusterState, SchemaState};
use crate::tablets::{META_TABLET, Tablets};
use crate::window::{Admission, Windows};

/// A record as it was read from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position in the log.
    pub position: Position,
    /// When it was logged.
    pub time_micros: i64,
    /// The sender. Its node is 0 if it has no number yet.
    pub origin: Origin,
    /// The record.
    pub record: Record,
}

/// A consequence of a record: what a node must do, or may report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The cluster was created.
    Created,
    /// A node has got a number.
    Joined {
        /// Its number.
        node: Node,
        /// Its host id.
        host: Uuid,
        /// Its process. A process that reads its own host id with another session stops: another process has the same directory.
        session: Uuid,
    },
    /// A process of a member started. An earlier process of it that reads this stops.
    Started {
        /// The member.
        node: Node,
        /// The process.
        session: Uuid,
        /// Its incarnation.
        incarnation: u32,
    },
    /// A transition began, or there is more to copy for it. The nodes in `gains` copy, then log that they are ready.
    Copy {
        /// The transition.
        transition: u64,
        /// The tablets of each node that gains some.
        gains: BTreeMap<Node, Vec<u32>>,
    },
    /// Slices have new owners; the node sends its drivers an event.
    RingChanged {
        /// The new ring's version.
        version: u64,
    },
    /// The placement of a keyspace now follows the replication in its schema.
    ReplicationChanged {
        /// The keyspace.
        keyspace: String,
    },
    /// A node is no longer a member.
    Left {
        /// The former member.
        node: Node,
    },
    /// The transition was cancelled.
    Cancelled {
        /// Its number.
        transition: u64,
    },
    /// The schema changed.
    SchemaChanged {
        /// Its epoch.
        epoch: u64,
        /// The change.
        body: Bytes,
    },
    /// A log may be deleted up to this position.
    Trimmed {
        /// The tablet.
        tablet: u32,
        /// The position.
        position: Position,
    },
    /// A node lacks records that are deleted: it must copy these tablets.
    Stranded {
        /// The node.
        node: Node,
        /// The tablets.
        tablets: Vec<u32>,
    },
    /// Records are evaluated by the rules of this level from here on.
    LevelRaised {
        /// The level.
        level: u32,
    },
    /// The commands in a block of a tablet came to something else on this node than on more than half of the replicas. The node stops the
    /// tablet; its next process copies it.
    Differs {
        /// The node.
        node: Node,
        /// The tablet.
        tablet: u32,
        /// The block.
        block: u64,
    },
    /// The commands in a block came to different outcomes, and no outcome is that of more than half of the replicas.
    Disputed {
        /// The replicas.
        nodes: Vec<Node>,
        /// The tablet.
        tablet: u32,
        /// The block.
        block: u64,
    },
    /// The record changed nothing.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// The record is a copy of an earlier one.
    Repeated,
}

/// Why a node must stop following the meta log. Nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The record cannot be read.
    #[error("meta log at {position}: {reason}")]
    Unreadable {
        /// The record.
        position: Position,
        /// Damage, or a newer version.
        reason: Unreadable,
    },
    /// The log or the record belongs to another cluster.
    #[error(
        "meta log at {position}: the record belongs to cluster {found}, this node to {expected}; check which log this node is given, \
         and whether it was made anew"
    )]
    OtherCluster {
        /// The record.
        position: Position,
        /// This node's cluster.
        expected: Uuid,
        /// The record's.
        found: Uuid,
    },
    /// This feature level is unknown here.
    #[error(
        "meta log at {position}: the cluster uses feature level {level}, this version of Ilion understands {FEATURE_LEVEL_MAX}; upgrade \
         this node and start it again"
    )]
    UnknownLevel {
        /// The record.
        position: Position,
        /// The level.
        level: u32,
    },
    /// The log does not begin with a cluster.
    #[error(
        "meta log at {position}: its first record does not create a cluster, and no snapshot of the cluster came before it: check whether \
         this is the meta log of a cluster"
    )]
    NotCreated {
        /// The record.
        position: Position,
    },
    /// The settings of the cluster are invalid.
    #[error("meta log at {position}: a cluster needs {rule}; make a new log and create the cluster again")]
    NoCluster {
        /// The record.
        position: Position,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The caller passed records out of order, or one twice.
    #[error(
        "meta log at {position}: a record at or before the last one, {last}, was given; this is a defect of Ilion"
    )]
    OutOfOrder {
        /// The record.
        position: Position,
        /// The last one applied.
        last: Position,
    },
}

/// The next state and the effects.
pub type Applied = (ClusterState, Vec<Effect>);

/// The outcome of a change: its effects, or why it changed nothing.
pub(crate) type Outcome = Result<Vec<Effect>, Refusal>;

impl Entry {
    /// Reads a record of the meta log.
    ///
    /// # Errors
    /// The record is damaged, or its version or kind is unknown here.
    pub fn decode(position: Position, time_micros: i64, origin: Origin, body: &[u8]) -> Result<Self, Halt> {
        let record = Record::decode(body).map_err(|reason| Halt::Unreadable { position, reason })?;
        Ok(Self {
            position,
            time_micros,
            origin,
            record,
        })
    }
}

/// Applies the next record of the log. `None` is the state before the first one. A node that starts calls it for every record above the
/// position of its snapshot.
///
/// # Errors
/// The node cannot go on. Nothing was applied.
pub fn apply(state: Option<&ClusterState>, entry: &Entry) -> Result<Applied, Halt> {
    let Some(state) = state else {
        return create(entry);
    };
    let position = entry.position;
    if position <= state.position {
        let last = state.position;
        return Err(Halt::OutOfOrder { position, last });
    }
    // Two nodes that found an empty log may both have created a cluster, each with an id of its own: the first one counts.
    let is_late_creation = matches!(entry.record.change, Change::Create { .. });
    if entry.record.cluster != state.cluster && !is_late_creation {
        let (expected, found) = (state.cluster, entry.record.cluster);
        return Err(Halt::OtherCluster {
            position,
            expected,
            found,
        });
    }
    // A start and a join are in no window, since their process is not known yet. Their copies are recognised by the session.
    let is_numbered = !matches!(entry.record.change, Change::Join(_) | Change::Start { .. });
    let is_of_member = state.members.contains_key(&entry.origin.node);
    // The next state, if the record changes nothing.
    let noted = || {
        let mut next = state.clone();
        next.position = position;
        next.time_micros = state.time_micros.max(entry.time_micros);
        let is_new = !is_numbered || !is_of_member || next.windows.admit(entry.origin) == Admission::New;
        (next, is_new)
    };
    let (mut next, is_new) = noted();
    if !is_new {
        return Ok((next, vec![Effect::Repeated]));
    }
    match next.change(entry) {
        Ok(_) if next.level > FEATURE_LEVEL_MAX => {
            let level = next.level;
            Err(Halt::UnknownLevel { position, level })
        }
        Ok(effects) => {
            debug_assert_eq!(next.check(), Ok(()));
            Ok((next, effects))
        }
        // The refused change may have altered a part of `next`.
        Err(refusal) => Ok((noted().0, vec![Effect::Refused { refusal }])),
    }
}

fn create(entry: &Entry) -> Result<Applied, Halt> {
    let position = entry.position;
    let Change::Create {
        tablets,
        level,
        down_max_micros,
    } = entry.record.change
    else {
        return Err(Halt::NotCreated { position });
    };
    if level > FEATURE_LEVEL_MAX {
        return Err(Halt::UnknownLevel { position, level });
    }
    let no_cluster = |rule| Halt::NoCluster { position, rule };
    let tablets = Tablets::new(tablets).ok_or_else(|| no_cluster("1 to 4096 tablets"))?;
    let state = ClusterState {
        cluster: entry.record.cluster,
        tablets,
        down_max_micros,
        level,
        position,
        time_micros: entry.time_micros,
        next_node: 1,
        next_transition: 1,
        members: BTreeMap::new(),
        former: BTreeMap::new(),
        owners: vec![None; tablets.count() as usize],
        ring_version: 0,
        transition: None,
        schema: SchemaState::default(),
        flushed: BTreeMap::new(),
        trimmed: BTreeMap::new(),
        outcomes: Outcomes::default(),
        snapshots: Snapshots::default(),
        windows: Windows::default(),
    };
    state.check().map_err(no_cluster)?;
    Ok((state, vec![Effect::Created]))
}

impl ClusterState {
    fn change(&mut self, entry: &Entry) -> Outcome {
        let origin = entry.origin;
        match &entry.record.change {
            Change::Create { .. } => return Err(Refusal::Created),
            Change::Join(join) => return self.join(join),
            Change::Start {
                session,
                endpoint,
                understands,
            } => return self.start(origin, *session, *endpoint, *understands),
            _ => self.hear(origin)?,
        }
        match &entry.record.change {
            Change::Create { .. } | Change::Join(_) | Change::Start { .. } => Ok(Vec::new()),
            Change::Ready {
                transition,
                schema_epoch,
            } => self.ready(origin.node, *transition, *schema_epoch),
            Change::Leave { node, moves } => self.leave(*node, moves),
            Change::Move { moves } => self.move_slices(moves),
            Change::Cancel { transition } => self.cancel(*transition),
            Change::Schema(record) => self.change_schema(record),
            Change::Flushed { positions } => self.flush(origin, positions),
            Change::Trim { positions } => self.trim(positions),
            Change::Heartbeat { schema_epoch } => {
                self.heartbeat(origin.node, *schema_epoch);
                Ok(Vec::new())
            }
            Change::Level { level } => self.raise(*level),
            Change::Snapshot(part) => {
                self.snapshots.add(origin.node, part, self.position)?;
                Ok(Vec::new())
            }
            Change::Release { release } => self.note_release(origin.node, release),
            Change::Digests { blocks } => self.tell_digests(origin.node, blocks),
        }
    }

    /// Checks that the sender is the current process of a member, and notes its time.
    fn hear(&mut self, origin: Origin) -> Result<(), Refusal> {
        let (node, time_micros) = (origin.node, self.time_micros);
        let member = self.members.get_mut(&node).ok_or(Refusal::NoMember { node })?;
        if member.incarnation != origin.incarnation {
            let current = member.incarnation;
            return Err(Refusal::Superseded { node, current });
        }
        member.heard_micros = time_micros;
        Ok(())
    }

    fn heartbeat(&mut self, node: Node, schema_epoch: u64) {
        let known = self.schema.epoch;
        if let Some(member) = self.members.get_mut(&node) {
            member.schema_epoch = member.schema_epoch.max(schema_epoch.min(known));
        }
    }

    fn change_schema(&mut self, record: &SchemaRecord) -> Outcome {
        let current = self.schema.epoch;
        if record.checked_at != current {
            return Err(Refusal::SchemaMoved { current });
        }
        let is_sorted = record.keyspaces.is_sorted_by(|one, other| one.0 < other.0);
        if !is_sorted {
            let rule = "keyspaces are named once, in order";
            return Err(Refusal::Invalid { rule });
        }
        self.schema.count(&record.body);
        let epoch = self.schema.epoch;
        let body = record.body.clone();
        let mut effects = vec![Effect::SchemaChanged { epoch, body }];
        for (keyspace, strategy) in &record.keyspaces {
            effects.extend(self.replicate(keyspace, strategy.as_ref())?);
        }
        Ok(effects)
    }

    fn flush(&mut self, origin: Origin, positions: &[(u32, Position)]) -> Outcome {
        self.check_tablets(positions)?;
        let node = origin.node;
        for (tablet, position) in positions {
            self.outcomes.note_flushed(node, origin.incarnation, *tablet);
            let flushed = self.flushed.entry((*tablet, node)).or_default();
            *flushed = (*flushed).max(*position);
        }
        Ok(Vec::new())
    }

    fn check_tablets(&self, positions: &[(u32, Position)]) -> Result<(), Refusal> {
        let is_tablet = |tablet: u32| tablet == META_TABLET || tablet < self.tablets.count();
        if positions.iter().all(|(tablet, _)| is_tablet(*tablet)) {
            return Ok(());
        }
        let rule = "positions are those of tablets";
        Err(Refusal::Invalid { rule })
    }

    fn trim(&mut self, positions: &[(u32, Position)]) -> Outcome {
        self.check_tablets(positions)?;
        let points = self.trim_points();
        for (tablet, position) in positions {
            let tablet = *tablet;
            if points.get(&tablet).is_none_or(|point| point < position) {
                return Err(Refusal::StillNeeded { tablet });
            }
        }
        let mut effects = Vec::new();
        for (tablet, position) in positions {
            let (tablet, position) = (*tablet, *position);
            if position > self.trimmed(tablet) {
                self.trimmed.insert(tablet, position);
                effects.push(Effect::Trimmed { tablet, position });
            }
        }
        if effects.is_empty() {
            return Ok(effects);
        }
        for (node, tablets) in self.all_stranded() {
            let tablets = tablets.into_iter().collect();
            effects.push(Effect::Stranded { node, tablets });
        }
        Ok(effects)
    }

    fn note_release(&mut self, node: Node, release: &str) -> Outcome {
        if !self.has(Feature::Releases) {
            let rule = "members tell their release from feature level 2 on";
            return Err(Refusal::Invalid { rule });
        }
        if let Some(member) = self.members.get_mut(&node) {
            member.release = Some(release.to_owned());
        }
        Ok(Vec::new())
    }

    fn raise(&mut self, level: u32) -> Outcome {
        if level <= self.level {
            let rule = "feature levels only rise";
            return Err(Refusal::Invalid { rule });
        }
        let too_old = self.members.iter().find(|(_, member)| member.understands < level);
        if let Some((node, member)) = too_old {
            let (node, understands) = (*node, member.understands);
            return Err(Refusal::NotUnderstood { node, understands });
        }
        self.level = level;
        Ok(vec![Effect::LevelRaised { level }])
    }
}
