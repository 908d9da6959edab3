//! [`Shared`]: what the thread that follows the logs shares with those that serve clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use crossbeam_channel::Sender as Channel;
use ilion_cluster::{ClusterState, ClusterView, Eyes, Node, Tablets};
use ilion_coordinator::Topology;
use ilion_engine::Engine;
use ilion_env::{Env, turns};
use ilion_query::Store;
use ilion_replica::BatchId;
use ilion_schema::SchemaEvent;
use parking_lot::{Condvar, Mutex};

use crate::copying;
use crate::facts::Counting;
use crate::meta::Asked;
use crate::options::MemberOptions;
use crate::pending::{Overdue, PendingCommands};
use crate::progress::Progress;
use crate::sender::Sender;

/// What this node knows of its cluster.
#[derive(Default)]
pub(crate) struct Known {
    /// The state of the cluster, as of the records of the meta log that were read.
    pub state: Option<Arc<ClusterState>>,
    /// The ring, with the schema that this node has adopted.
    pub topology: Option<Arc<Topology>>,
    /// The number of this node, once it is in the meta log.
    pub number: Option<Node>,
    /// This node, once it is a member with all of its data.
    pub node: Option<Node>,
    /// Tablets that this node still copies from others.
    pub lacking: usize,
    /// The schema that this node has adopted.
    pub adopted: u64,
    /// Changes of the schema that this process asked for, by the numbers of their records.
    pub asked: BTreeMap<u64, Asked>,
    /// True if this node was a member and is not one any more.
    pub has_left: bool,
    /// Why this node does not follow the cluster any more.
    pub halted: Option<String>,
}

/// See the module.
pub(crate) struct Shared {
    pub env: Arc<dyn Env>,
    pub options: MemberOptions,
    pub engine: Arc<Engine>,
    /// The storage of the engine.
    pub local: Arc<dyn Store>,
    pub sender: Arc<Sender>,
    pub progress: Progress,
    pub counting: Arc<Counting>,
    /// Writes and commands that are on their way.
    pub overdue: Overdue,
    /// Reads that wait for their barrier, and not on a thread.
    pub overdue_reads: Overdue,
    pub commands: Arc<PendingCommands>,
    /// Requests of other nodes to copy tablets.
    pub copies: Mutex<Vec<copying::Asked>>,
    /// Logged batches all of whose parts are in their logs, by home; the homes do not know it yet.
    pub finished: Mutex<Vec<(u32, BatchId)>>,
    /// Requests to remove the data of slices that this node does not hold.
    pub cleanings: Mutex<Vec<Channel<Result<(), String>>>>,
    known: Mutex<Known>,
    learned: Condvar,
    pub is_stopping: AtomicBool,
    /// How long a write may take, in nanoseconds.
    write_timeout: AtomicU64,
    /// Shows the cluster to clients.
    pub listener: Mutex<Option<Arc<dyn MemberListener>>>,
}

/// Shows the cluster to clients. Called by the thread that follows the logs, one call after another.
pub trait MemberListener: Send + Sync {
    /// The cluster may have changed.
    fn changed(&self, view: ClusterView);

    /// This node has adopted a change of the schema. Its view came before.
    fn schema_changed(&self, event: &SchemaEvent);

    /// This node has other roles or permissions than before.
    fn roles_changed(&self);

    /// This node is not a member any more: others have its data. This is the last call, and no write waits for the logs any more.
    fn left(&self);
}

impl Shared {
    pub fn new(
        engine: Arc<Engine>,
        options: MemberOptions,
        local: Arc<dyn Store>,
        sender: Arc<Sender>,
    ) -> Self {
        Self {
            env: engine.env().clone(),
            write_timeout: AtomicU64::new(nanos(options.write_timeout)),
            engine,
            options,
            local,
            counting: sender.counting().clone(),
            sender,
            progress: Progress::default(),
            overdue: Overdue::default(),
            overdue_reads: Overdue::default(),
            commands: Arc::default(),
            copies: Mutex::default(),
            finished: Mutex::default(),
            cleanings: Mutex::default(),
            known: Mutex::default(),
            learned: Condvar::new(),
            is_stopping: AtomicBool::new(false),
            listener: Mutex::default(),
        }
    }

    /// A write that is not acknowledged within this time has timed out.
    pub fn write_timeout(&self) -> Duration {
        Duration::from_nanos(self.write_timeout.load(Relaxed))
    }

    /// Changes the time limit of writes that begin later.
    pub fn set_write_timeout(&self, timeout: Duration) {
        self.write_timeout.store(nanos(timeout), Relaxed);
    }

    /// The tablets of each sequence of records, by the number of the sequence.
    pub fn sequences(&self, tablets: Tablets) -> BTreeMap<u32, Vec<u32>> {
        let logs = self.sender.logs();
        let mut sequences: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for tablet in 0..tablets.count() {
            sequences
                .entry(logs.sequence_of(tablet))
                .or_default()
                .push(tablet);
        }
        sequences
    }

    /// Number of offsets of the blocks whose outcomes replicas compare. If tablets share a sequence, blocks are longer, so that one has about
    /// as many records of a tablet.
    pub fn block_length(&self, tablets: Tablets) -> u64 {
        let sequences = self.sequences(tablets).len().max(1) as u64;
        let sharing = u64::from(tablets.count()).div_ceil(sequences);
        self.options.block_length.saturating_mul(sharing)
    }

    pub fn now_nanos(&self) -> u64 {
        self.env.monotonic_nanos()
    }

    /// Gives up the writes and reads whose time is over.
    pub fn give_up_overdue(&self) {
        let now = self.now_nanos();
        self.overdue.give_up_until(now);
        self.overdue_reads.give_up_until(now);
    }

    /// The deadline of this thread, or one after `timeout`.
    pub fn ends_nanos(&self, timeout: Duration) -> u64 {
        ilion_env::patience::ends_nanos().unwrap_or_else(|| self.now_nanos().saturating_add(nanos(timeout)))
    }

    /// Passes on the cluster, and a change of the schema, to the listener.
    pub fn tell(&self, event: Option<&SchemaEvent>) {
        let listener = self.listener.lock().clone();
        if let (Some(listener), Some(view)) = (listener, self.view()) {
            listener.changed(view);
            if let Some(event) = event {
                listener.schema_changed(event);
            }
        }
    }

    /// Tells the listener that roles or permissions have changed.
    pub fn tell_of_roles(&self) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            listener.roles_changed();
        }
    }

    /// The cluster as this node sees it.
    pub fn view(&self) -> Option<ClusterView> {
        let (own, schema_epoch, state) =
            self.know(|known| Some((known.node?, known.adopted, known.state.clone()?)))?;
        let eyes = Eyes {
            own,
            schema_epoch,
            silence_micros: self.options.silence_micros(),
        };
        Some(ClusterView::of(&state, eyes))
    }

    /// The nodes that apply a tablet, whatever keyspace they have of it; those that are thought to be up come first.
    pub fn replicas_of(&self, tablet: u32) -> Vec<Node> {
        let known = self.know(|known| Some((known.state.clone()?, known.topology.clone()?)));
        let Some((state, topology)) = known else {
            return Vec::new();
        };
        let mut replicas: Vec<Node> = topology.nodes_of(tablet).into_iter().collect();
        replicas.sort_by_key(|node| !self.is_up(&state, *node));
        replicas
    }

    /// Whether a node is a member that has given signs of life.
    pub fn is_up(&self, state: &ClusterState, node: Node) -> bool {
        let member = state.members.get(&node);
        member.is_some_and(|member| !state.is_silent(member, self.options.silence_micros()))
    }

    /// The time until a deadline.
    pub fn left(&self, ends_nanos: u64) -> Duration {
        Duration::from_nanos(ends_nanos.saturating_sub(self.now_nanos()))
    }

    pub fn know<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.lock())
    }

    /// Changes what is known, and wakes those that wait for it.
    pub fn learn(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock());
        self.learned.notify_all();
    }

    /// Waits until something is known. `None`: the time is over.
    pub fn wait_until<T>(&self, ends_nanos: u64, mut look: impl FnMut(&Known) -> Option<T>) -> Option<T> {
        let mut known = self.known.lock();
        loop {
            if let Some(found) = look(&known) {
                return Some(found);
            }
            let left = self.left(ends_nanos);
            if left.is_zero() {
                return None;
            }
            turns::wait_for(&self.learned, &mut known, left);
        }
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
