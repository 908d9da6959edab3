//! [`Follower`]: the thread that reads the logs of a node and applies them.
//!
//! No other thread changes the engine's tables of the cluster, except for tablets that are being copied. In turns it reads records,
//! applies them, and does the work that is due. Nothing here decides what a record means: that is in `meta` and `ilion_replica`.
//!
//! | module | what |
//! | --- | --- |
//! | `applying` | applying what was read of the logs of tablets |
//! | `levels` | the feature level, and the release of this node |
//! | `outcomes` | outcomes of commands, which must be those of the other replicas |
//! | `schema` | changes of the schema |
//! | `saving` | saving, telling others how far this node is, trimming |
//! | `batches` | batches over several tablets that are finished, or left undone |
//! | `copies` | tablets that are copied from other nodes, and to them |

mod applying;
mod batches;
mod copies;
mod levels;
mod outcomes;
mod saving;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{Change, ClusterState, META_TABLET, Moment, Node, Phase, Record};
use ilion_commitlog::{Delivered, Kind, Origin, Record as LogRecord, SharedTail, TailError};
use ilion_coordinator::Topology;
use ilion_engine::{TabletPosition, is_cluster_directory};
use ilion_replica::{BatchId, Replica, ReplicaOptions, SaveError};
use ilion_schema::{AUTH_KEYSPACE, SchemaEvent, is_system_keyspace};
use uuid::Uuid;

use crate::asking::meta_record;
use crate::catching_up::{CatchingUp, Found};
use crate::copying::{Copies, Holders, Worker};
use crate::entering::{self, NotYet};
use crate::forward::MemberClient;
use crate::join_error::JoinError;
use crate::meta::{Meta, MetaHalt};
use crate::meta_file;
use crate::progress::NotHere;
use crate::sender::Unsent;
use crate::shared::{Shared, nanos};
use crate::suspension::Suspension;

/// How long a turn waits for records: when no other work is under way, and when some is.
const IDLE: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(1);
/// A request that had no effect is sent again after this time.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a node that knows its cluster waits for the first record of a log that can be read.
const EMPTY_AFTER: Duration = Duration::from_secs(5);
/// How long a snapshot is looked for in a log whose beginning is deleted.
const NO_SNAPSHOT_AFTER: Duration = Duration::from_secs(60);
/// Minimum time before each request to take part, so that the log is read first: it may have the outcome of the last request.
const SETTLED: Duration = Duration::from_millis(80);

/// What the replicas of tablets depend on: while it stays the same, so do they.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placement {
    ring_version: u64,
    transition: Option<u64>,
    schema_epoch: u64,
    placement_epoch: u64,
    /// The schema that this node has adopted; 0 where it does not matter.
    adopted: u64,
}

fn placement_of(state: &ClusterState) -> Placement {
    Placement {
        ring_version: state.ring_version,
        transition: state.transition.as_ref().map(|transition| transition.number),
        schema_epoch: state.schema.epoch,
        placement_epoch: state.schema.placement_epoch,
        adopted: 0,
    }
}

/// Why a log is not followed on: a state without one of the records would differ from that of the other nodes.
fn gap(log: &str, next: u64, found: u64) -> String {
    format!(
        "{log}: record {next} is missing, {found} came instead. Start this node again; if that does not help, check whether the broker has \
         lost records"
    )
}

/// See the module.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    tail: Box<dyn SharedTail>,
    meta: Meta,
    replica: Option<Replica>,
    followed: BTreeSet<u32>,
    placement: Option<Placement>,
    /// The ring at that placement, with the schema that this node had adopted.
    topology: Option<(Placement, Arc<Topology>)>,
    /// Tablets whose next record needs the next schema.
    blocked: BTreeSet<u32>,
    /// True once the data that must be saved before the next schema is adopted was taken.
    is_taken_for_schema: bool,
    /// The last request to take part in the cluster, and when it was sent.
    entering: Option<(u64, Option<(Origin, Record)>)>,
    /// When each kind of periodic work was last done.
    done_nanos: BTreeMap<Due, u64>,
    /// Bytes that were applied since the last saving was begun.
    unsaved_bytes: u64,
    is_saving: bool,
    /// A change of the ring waits until this node has saved what it has applied.
    must_save: bool,
    /// The records of the meta log below are in the saved state of the cluster.
    saved_meta: u64,
    /// True once the saved state is known to be of the cluster of this meta log.
    is_checked: bool,
    /// Looks for a snapshot, if the beginning of the meta log is deleted.
    catching_up: Option<CatchingUp>,
    /// The tablets that any node is a replica of.
    placed: Option<BTreeSet<u32>>,
    copies: Copies,
    /// When this node first saw an unfinished batch, or last sent its parts; by home and id of the batch.
    batches: BTreeMap<(u32, BatchId), u64>,
    worker: Worker,
    suspension: Suspension,
}

/// Kinds of periodic work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Heartbeat,
    CatchUp,
    Ready,
    Fence(u64),
    Adopt,
    Save,
    Copy,
    Trim,
    TellLacking,
    TellStranded,
    TellBatches,
    FinishBatches,
    Level,
    Release,
}

impl Follower {
    /// Requires: no other follower of this engine.
    pub fn new(shared: Arc<Shared>, client: Arc<dyn MemberClient>, session: Uuid) -> Result<Self, JoinError> {
        let (env, data_dir) = (&*shared.env, shared.engine.data_dir());
        let saved = is_cluster_directory(env, data_dir).then(|| meta_file::read(env, data_dir));
        let mut meta = Meta::new(shared.options.host, session);
        if let Some(saved) = saved.flatten() {
            // Which schema is adopted is known later.
            meta.go_on_from(saved, 0);
        }
        // The log is read from its first record, which shows that it is the log of the cluster.
        let tail = shared.sender.logs().tail(&[(META_TABLET, 0)])?;
        Ok(Self {
            saved_meta: meta.next_offset(),
            is_checked: meta.state.is_none(),
            meta,
            worker: Worker::start(shared.clone(), client)?,
            shared,
            tail,
            replica: None,
            followed: BTreeSet::new(),
            placement: None,
            topology: None,
            blocked: BTreeSet::new(),
            is_taken_for_schema: false,
            entering: None,
            done_nanos: BTreeMap::new(),
            unsaved_bytes: 0,
            is_saving: false,
            must_save: false,
            catching_up: None,
            placed: None,
            copies: Copies::default(),
            batches: BTreeMap::new(),
            suspension: Suspension::default(),
        })
    }

    /// Follows the logs until the node stops, or must not go on.
    pub fn run(&mut self) {
        while !self.shared.is_stopping.load(Relaxed) {
            if let Err(reason) = self.turn() {
                tracing::error!(%reason, "this node does not follow the cluster any more");
                for tablet in &self.followed {
                    self.shared.progress.halt(*tablet, &reason);
                }
                self.shared.learn(|known| known.halted = Some(reason));
                return;
            }
        }
        self.save_before_stop();
    }

    /// Reads some records, and does what is due.
    fn turn(&mut self) -> Result<(), String> {
        let is_busy = !self.meta.unadopted.is_empty() || self.is_saving;
        let wait = if is_busy { BUSY } else { IDLE };
        match self.tail.next(wait) {
            Ok(records) => {
                let mut has_read_meta = false;
                for delivered in records {
                    match delivered {
                        Delivered::Record {
                            log: META_TABLET,
                            offset,
                            record,
                            ..
                        } => {
                            self.read_meta(offset, &record)?;
                            has_read_meta = true;
                        }
                        Delivered::Record {
                            log,
                            from,
                            offset,
                            record,
                        } => self.apply(from, TabletPosition { tablet: log, offset }, &record),
                        Delivered::Passed { log, from, to } => self.pass(log, from, to),
                    }
                }
                if has_read_meta {
                    self.delete_trimmed();
                    self.publish(None);
                }
            }
            Err(TailError::Unreachable(reason)) => {
                tracing::warn!(%reason, "the logs cannot be read; this is tried again");
                self.entering = None;
            }
            Err(error) => self.lose(&error)?,
        }
        self.shared.give_up_overdue();
        self.work()
    }

    /// Handles a log that cannot be read any more.
    fn lose(&mut self, error: &TailError) -> Result<(), String> {
        match error {
            TailError::Deleted {
                log: META_TABLET,
                start,
            } => {
                // Otherwise the saved state has what is deleted.
                let is_missing = self.meta.state.is_none() || *start > self.meta.next_offset();
                let now = self.shared.now_nanos();
                self.catching_up = is_missing.then(|| CatchingUp::from(*start, now));
                self.tail.follow(META_TABLET, *start);
                Ok(())
            }
            TailError::Deleted { log, .. } if *log != META_TABLET => {
                if self.followed.contains(log) {
                    self.lose_beginning(*log);
                }
                Ok(())
            }
            TailError::Unreadable { log, .. } if *log != META_TABLET => {
                tracing::error!(tablet = log, %error, "a tablet is not followed any more");
                self.shared.progress.halt(*log, &error.to_string());
                self.blocked.remove(log);
                Ok(())
            }
            _ => Err(error.to_string()),
        }
    }

    /// Checks with the first record of the meta log that the saved state is of the same cluster, and goes on reading behind that state.
    fn check_meta(&mut self, record: &LogRecord) -> Result<(), String> {
        let Some(state) = &self.meta.state else {
            return Ok(());
        };
        let first = Record::decode(&record.body).map_err(|error| error.to_string())?;
        if first.cluster != state.cluster {
            let (expected, found) = (first.cluster, state.cluster);
            return Err(SaveError::OtherCluster { expected, found }.to_string());
        }
        self.is_checked = true;
        self.tail.follow(META_TABLET, self.meta.next_offset());
        Ok(())
    }

    fn read_meta(&mut self, offset: u64, record: &LogRecord) -> Result<(), String> {
        if let Some(catching_up) = &mut self.catching_up {
            return match catching_up.read(offset, record)? {
                Some(found) => self.catch_up_with(found),
                None => Ok(()),
            };
        }
        if !self.is_checked {
            self.check_meta(record)?;
        }
        // The record that was checked may be the next one.
        self.read_meta_record(offset, record)
    }

    /// Goes on from a snapshot in the meta log.
    fn catch_up_with(&mut self, found: Found) -> Result<(), String> {
        let expected = found.snapshot.state.cluster;
        if let Some(state) = self.meta.state.as_ref().filter(|state| state.cluster != expected) {
            let found = state.cluster;
            return Err(SaveError::OtherCluster { expected, found }.to_string());
        }
        let position = found.snapshot.state.position;
        tracing::info!(%position, "the state of the cluster comes from a snapshot: earlier records are deleted");
        self.catching_up = None;
        self.is_checked = true;
        let checked = self.meta.check_membership(&found.snapshot.state);
        checked.map_err(|halt| self.halted_by(&halt))?;
        let (was, adopted) = (self.meta.incarnation, self.adopted());
        self.meta.go_on_from(found.snapshot, adopted);
        self.begin_after(was)?;
        self.stop_differing_in_state();
        found
            .records
            .iter()
            .try_for_each(|(offset, record)| self.read_meta_record(*offset, record))
    }

    fn read_meta_record(&mut self, offset: u64, record: &LogRecord) -> Result<(), String> {
        let next = self.meta.next_offset();
        if offset < next {
            return Ok(());
        }
        if offset > next && self.meta.state.is_some() {
            return Err(gap("meta log", next, offset));
        }
        let (was, adopted) = (self.meta.incarnation, self.adopted());
        let level_of = |meta: &Meta| meta.state.as_ref().map(|state| state.level);
        let old_level = level_of(&self.meta);
        let read = self.meta.read(offset, record, adopted);
        read.map_err(|halt| self.halted_by(&halt))?;
        if let (Some(old), Some(level)) = (old_level, level_of(&self.meta))
            && old < level
        {
            tracing::info!(
                level,
                "all members understand a new feature level: older versions cannot take part any more"
            );
        }
        self.begin_after(was)?;
        // After each record, so that all nodes begin new tablets at the same record.
        self.follow_ring();
        self.stop_differing();
        Ok(())
    }

    /// Why this node does not follow the meta log any more.
    fn halted_by(&self, halt: &MetaHalt) -> String {
        if *halt == MetaHalt::Left {
            // Others have the data of this node.
            tracing::info!("this node has left the cluster");
            self.shared.learn(|known| known.has_left = true);
        }
        halt.to_string()
    }

    /// Begins to take part if this process is in the meta log now and was not before.
    fn begin_after(&mut self, was: Option<u32>) -> Result<(), String> {
        match (was, self.meta.node, self.meta.incarnation) {
            (None, Some(node), Some(incarnation)) => self.begin(node, incarnation),
            _ => Ok(()),
        }
    }

    /// Called when this process is in the meta log: from now on it may send, and applies records.
    fn begin(&mut self, node: Node, incarnation: u32) -> Result<(), String> {
        let Some(state) = &self.meta.state else {
            return Ok(());
        };
        let options = ReplicaOptions {
            cluster: state.cluster,
            tablets: state.tablets,
            block_length: self.shared.block_length(state.tablets),
        };
        let differing: BTreeSet<u32> = state.differing(node).into_keys().collect();
        let is_new = !is_cluster_directory(&*self.shared.env, self.shared.engine.data_dir());
        if let (true, Some(found)) = (is_new, self.single_node_data()) {
            return Err(format!(
                "the data directory is that of a single node: it has {found}; a node that joins a cluster needs an empty data directory"
            ));
        }
        let mut replica =
            Replica::open(self.shared.engine.clone(), options).map_err(|error| error.to_string())?;
        if is_new {
            // From now on the directory is that of this cluster.
            replica.take();
            if !self.retry(|| replica.save()) {
                return Ok(());
            }
        }
        if !differing.is_empty() {
            tracing::warn!(tablets = ?differing, "these tablets are copied from other nodes: their data differed from that of other replicas");
            if !self.retry(|| replica.forget(&differing)) {
                return Ok(());
            }
        }
        let adopted = replica.schema_epoch();
        self.meta.unadopted.retain(|change| change.epoch > adopted);
        self.replica = Some(replica);
        self.shared.sender.begin(node, incarnation);
        self.shared.learn(|known| known.number = Some(node));
        tracing::info!(node, incarnation, cluster = %options.cluster, "this node is in the cluster's log");
        Ok(())
    }

    /// What a single node has left in the data directory: a keyspace, or roles; `None` if it has neither.
    fn single_node_data(&self) -> Option<String> {
        let engine = &self.shared.engine;
        let schema = engine.schema();
        let mut own = schema.keyspaces.keys().filter(|name| !is_system_keyspace(name));
        if let Some(name) = own.next() {
            return Some(format!("keyspace {name}"));
        }
        let tables = engine.table_facts();
        let mut of_roles = tables.iter().filter(|table| table.keyspace == AUTH_KEYSPACE);
        let has_roles = of_roles.any(|table| table.estimated_partitions > 0);
        has_roles.then(|| "roles".to_owned())
    }

    /// Tries something until it succeeds. Returns false if the node is stopped before.
    fn retry<T>(&mut self, mut attempt: impl FnMut() -> Result<T, SaveError>) -> bool {
        while let Err(error) = attempt() {
            if self.shared.is_stopping.load(Relaxed) {
                return false;
            }
            self.suspension.go_on(&self.shared, &error.to_string());
        }
        self.suspension.end(&self.shared);
        true
    }

    fn adopted(&self) -> u64 {
        self.replica.as_ref().map_or(0, Replica::schema_epoch)
    }

    /// Follows the tablets that this node is, or will be, a replica of.
    fn follow_ring(&mut self) {
        let (Some(state), Some(node), true) =
            (self.meta.state.clone(), self.meta.node, self.replica.is_some())
        else {
            return;
        };
        let placement = placement_of(&state);
        if self.placement == Some(placement) {
            return;
        }
        self.placement = Some(placement);
        let [now, afterwards] = [Moment::Now, Moment::Afterwards].map(|moment| state.all_replicas(moment));
        let all = now.iter().chain(&afterwards);
        let own = all.filter(|(_, nodes)| nodes.contains(&node));
        let wanted: BTreeSet<u32> = own.map(|(tablet, _)| *tablet).collect();
        let left: Vec<u32> = self.followed.difference(&wanted).copied().collect();
        for tablet in left {
            self.leave(tablet);
        }
        self.keep_copies(&wanted);
        if let Some(replica) = &mut self.replica {
            replica.follow(&wanted);
            // The logs of others go on without this node, and so does the schema: if it becomes a replica again, it copies.
            if let Err(error) = replica.keep(&wanted) {
                tracing::warn!(%error, "tablets that this node has left are forgotten later");
                self.placement = None;
            }
        }
        let placed = now.iter().filter(|(_, nodes)| !nodes.is_empty());
        let placed_before = self.placed.replace(placed.map(|(tablet, _)| *tablet).collect());
        let new = wanted.difference(&self.followed).copied();
        let new: Vec<u32> = new
            .filter(|tablet| !self.copies.wanted.contains(tablet))
            .collect();
        let holders = |tablet: &u32| {
            let was_placed = placed_before
                .as_ref()
                .is_none_or(|before| before.contains(tablet));
            let replicas = now.get(tablet);
            match replicas.is_some_and(|nodes| nodes.iter().any(|other| *other != node)) {
                _ if !was_placed => Holders::New,
                true => Holders::Others,
                false => Holders::Nobody,
            }
        };
        let new = new.into_iter().map(|tablet| (tablet, holders(&tablet)));
        self.begin_tablets(&state, &new.collect());
    }

    /// Follows a tablet from where this node has it.
    fn follow_log(&mut self, tablet: u32) {
        let Some(replica) = &self.replica else {
            return;
        };
        let end = replica.end(tablet);
        self.shared.progress.begin(tablet, end);
        self.tail.follow(tablet, end);
        self.followed.insert(tablet);
        self.catch_up(tablet);
    }

    fn leave(&mut self, tablet: u32) {
        self.tail.leave(tablet);
        self.shared.progress.leave(tablet);
        self.blocked.remove(&tablet);
        self.followed.remove(&tablet);
    }

    /// Appends a no-op to the log of a tablet, and notes when this node has applied it: then it has caught up.
    fn catch_up(&self, tablet: u32) {
        let shared = self.shared.clone();
        let unsent = self.fence(tablet);
        let suspensions = shared.progress.suspensions();
        let done = move |sent: Result<u64, _>| {
            // If the no-op is lost, `work` sends another one.
            if let Ok(offset) = sent {
                let caught_up = shared.clone();
                let callback = Box::new(move |applied: Result<(), NotHere>| {
                    if applied.is_ok() {
                        caught_up.progress.is_caught_up(tablet, suspensions);
                    }
                });
                shared.progress.on_applied(tablet, offset, callback);
            }
        };
        if let Err(error) = self.shared.sender.send(unsent, |_| {}, Box::new(done)) {
            tracing::warn!(tablet, %error, "the end of a log is asked for again");
        }
    }

    /// A no-op that needs the newest schema.
    fn fence(&self, tablet: u32) -> Unsent {
        Unsent {
            log: tablet,
            kind: Kind::Noop,
            schema_epoch: self.meta.schema_epoch(),
            body: Bytes::new(),
            ends_nanos: self.shared.now_nanos() + nanos(AGAIN),
        }
    }

    /// Publishes what this node knows now; `event` is the change of the schema that it has just adopted.
    fn publish(&mut self, event: Option<&SchemaEvent>) {
        let adopted = self.adopted();
        let topology = self.topology(adopted);
        let state = self.meta.state.clone();
        let asked = self.meta.asked.clone();
        let lacking = self.copies.wanted.len();
        let node = self.meta.node.filter(|node| self.is_complete(*node));
        self.shared.learn(|known| {
            known.state = state;
            known.topology = topology;
            known.adopted = adopted;
            known.lacking = lacking;
            known.asked = asked;
            known.node = known.node.or(node);
        });
        self.shared.tell(event);
    }

    /// The ring. It is computed when the placement or the adopted schema has changed: most records of the meta log are signs of life.
    fn topology(&mut self, adopted: u64) -> Option<Arc<Topology>> {
        let state = self.meta.state.as_ref()?;
        let placement = Placement {
            adopted,
            ..placement_of(state)
        };
        if self
            .topology
            .as_ref()
            .is_none_or(|(known, _)| *known != placement)
        {
            self.topology = Some((placement, Arc::new(Topology::at_epoch(state, adopted))));
        }
        self.topology.as_ref().map(|(_, topology)| topology.clone())
    }

    /// Whether this node has all of its data, and the newest schema.
    fn is_complete(&self, node: Node) -> bool {
        let Some(state) = &self.meta.state else {
            return false;
        };
        let is_joining = state
            .members
            .get(&node)
            .is_none_or(|member| member.phase == Phase::Joining);
        let is_ready = |tablet: &u32| self.shared.progress.is_ready(*tablet);
        let is_whole = self.meta.unadopted.is_empty() && !self.lacks_copies();
        !is_joining && is_whole && self.followed.iter().all(is_ready)
    }

    /// Does the work that is due.
    fn work(&mut self) -> Result<(), String> {
        if let Some(catching_up) = &self.catching_up {
            let passed = self.shared.now_nanos().saturating_sub(catching_up.since_nanos);
            if passed >= nanos(NO_SNAPSHOT_AFTER) {
                return Err(catching_up.no_snapshot());
            }
        }
        if self.meta.incarnation.is_none() {
            return match self.catching_up {
                Some(_) => Ok(()),
                None => self.enter(),
            };
        }
        self.work_on_copies();
        if let Some(next) = self.meta.unadopted.front().cloned() {
            self.go_on_with_schema(&next)?;
        }
        self.save();
        self.trim();
        self.work_on_batches();
        self.say_ready();
        self.say_release();
        self.raise_level();
        if self.is_due(Due::Heartbeat, self.shared.options.heartbeat) {
            self.beat();
            self.tell_digests();
            if self.is_due(Due::CatchUp, AGAIN) {
                // Their no-ops may be lost.
                let unready = |tablet: &&u32| !self.shared.progress.is_ready(**tablet);
                self.followed
                    .iter()
                    .filter(unready)
                    .for_each(|tablet| self.catch_up(*tablet));
            }
            self.publish(None);
        }
        if self.shared.know(|known| known.node.is_none()) {
            self.publish(None);
        }
        Ok(())
    }

    /// Asks to take part in the cluster. Waits for [`SETTLED`] first, so that the log is read and the request fits the state.
    fn enter(&mut self) -> Result<(), String> {
        let now = self.shared.now_nanos();
        let (asked_nanos, asked) = self.entering.get_or_insert((now, None));
        let passed = now.saturating_sub(*asked_nanos);
        if !self.is_checked {
            // The log may be another cluster's: append nothing to it.
            let cluster = self.meta.state.as_ref().map(|state| state.cluster);
            return match passed < nanos(EMPTY_AFTER) {
                true => Ok(()),
                false => Err(format!(
                    "the data directory belongs to cluster {}, and the log is empty: check which log this node is given, and whether its \
                     topics were made anew; a node that is to join another cluster needs an empty data directory",
                    cluster.unwrap_or_default()
                )),
            };
        }
        if passed < nanos(SETTLED) {
            return Ok(());
        }
        let is_long_ago = passed >= nanos(AGAIN);
        match entering::request(
            &self.meta,
            &self.shared.options,
            self.shared.sender.logs().as_ref(),
        ) {
            Ok(request) if is_long_ago || asked.as_ref() != Some(&request) => {
                entering::ask(self.shared.sender.logs(), request.0, &request.1);
                (*asked_nanos, *asked) = (now, Some(request));
            }
            // Records that are not read yet may allow it.
            Err(NotYet::Never(reason)) if is_long_ago => return Err(reason),
            Ok(_) | Err(NotYet::Never(_) | NotYet::Others) => {}
        }
        Ok(())
    }

    /// True if this work was not done for `after`; notes that it is done now. The first time counts from the first call.
    fn is_due(&mut self, due: Due, after: Duration) -> bool {
        let now = self.shared.now_nanos();
        let last = self.done_nanos.entry(due).or_insert(now);
        let is_due = now.saturating_sub(*last) >= nanos(after);
        if is_due {
            *last = now;
        }
        is_due
    }

    /// Like [`Self::is_due`], but true at the first call.
    fn is_due_first(&mut self, due: Due, after: Duration) -> bool {
        let is_first = !self.done_nanos.contains_key(&due);
        self.is_due(due, after) || is_first
    }

    /// Whether this node does the work that only one node has to do: the member with the lowest number that is up.
    fn does_chores(&self) -> bool {
        let (Some(state), Some(node)) = (&self.meta.state, self.meta.node) else {
            return false;
        };
        let mut members = state.members.keys();
        members.find(|node| self.shared.is_up(state, **node)) == Some(&node)
    }

    fn tell(&self, change: Change) {
        let Some(state) = &self.meta.state else {
            return;
        };
        let ends_nanos = self.shared.now_nanos() + nanos(AGAIN);
        let unsent = meta_record(state.cluster, change, ends_nanos);
        // A lost record is sent again later.
        let sent = self.shared.sender.send(unsent, |_| {}, Box::new(|_| {}));
        if let Err(error) = sent {
            tracing::warn!(%error, "the meta log is told later");
        }
    }

    fn beat(&self) {
        let schema_epoch = self.adopted();
        self.tell(Change::Heartbeat { schema_epoch });
    }

    /// Logs that this node has the data that it gains by a change of the ring.
    fn say_ready(&mut self) {
        let (Some(state), Some(node)) = (&self.meta.state, self.meta.node) else {
            return;
        };
        let Some(transition) = &state.transition else {
            return;
        };
        if transition.ready.contains(&node) || !self.meta.unadopted.is_empty() {
            return;
        }
        let gains = state.gains();
        let is_joining = state
            .members
            .get(&node)
            .is_some_and(|member| member.phase == Phase::Joining);
        let gained = gains.get(&node);
        if gained.is_none() && !is_joining {
            return;
        }
        if !state.stranded(node).is_empty() {
            if self.is_due_first(Due::TellStranded, SETTLED) {
                self.must_save = true;
                self.save_meta();
                self.tell_flushed();
            }
            return;
        }
        let mut tablets = gained.into_iter().flatten();
        if !tablets.all(|(tablet, _)| self.shared.progress.is_ready(*tablet)) {
            return;
        }
        let ready = Change::Ready {
            transition: transition.number,
            schema_epoch: self.meta.schema_epoch(),
        };
        if self.is_due_first(Due::Ready, AGAIN) {
            self.tell(ready);
        }
    }

    fn is_halted(&self, tablet: u32) -> bool {
        self.replica
            .as_ref()
            .is_some_and(|replica| replica.halted(tablet).is_some())
            || self.shared.progress.is_halted(tablet)
    }
}
