//! [`Member`]: a node of a cluster, and what the layers above it need of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{ClusterState, ClusterView, Node};
use ilion_commitlog::SharedLogs;
use ilion_coordinator::{
    BarrierError, Barriers, ClusterStore, Membership, ReadOptions, ReplicaClient, ReplicaReader, Topology,
};
use ilion_engine::Engine;
use ilion_env::turns::{Spawned, spawn};
use ilion_query::Store;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::barriers::LogBarriers;
use crate::copying::{self, CopyParts};
use crate::facts::MemberFacts;
use crate::follower::Follower;
use crate::forward::MemberClient;
use crate::join_error::JoinError;
use crate::options::MemberOptions;
use crate::ring::RingChanges;
use crate::sender::Sender;
use crate::shared::{Known, MemberListener, Shared, nanos};
use crate::writes::LogWrites;

/// How long a replica waits for records of the meta log that the coordinator of a read has already.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// A node of a cluster. It follows the logs until it is dropped.
pub struct Member {
    session: Uuid,
    shared: Arc<Shared>,
    membership: Arc<LogMembership>,
    barriers: Arc<LogBarriers>,
    writes: Arc<LogWrites>,
    follower: Mutex<Option<Spawned<()>>>,
}

impl Member {
    /// Takes part in the cluster: begins to follow the logs. `local` is the storage of the engine.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn start(
        engine: &Arc<Engine>,
        local: Arc<dyn Store>,
        logs: Arc<dyn SharedLogs>,
        client: Arc<dyn MemberClient>,
        options: MemberOptions,
    ) -> Result<Self, JoinError> {
        let sender = Arc::new(Sender::new(engine.env().clone(), logs));
        let session = local.random_uuid();
        let shared = Arc::new(Shared::new(engine.clone(), options, local, sender));
        let follower = Follower::new(shared.clone(), client.clone(), session)?;
        let closing = Closing(shared.clone());
        let thread = spawn("ilion-follower", move || {
            let mut follower = follower;
            // Dropped before `follower`, whose drop waits for copies from other nodes: these may in turn wait for requests that this drop
            // refuses.
            let _closing = closing;
            follower.run();
        })?;
        Ok(Self {
            session,
            membership: Arc::new(LogMembership {
                shared: shared.clone(),
            }),
            barriers: Arc::new(LogBarriers::new(shared.clone())),
            writes: Arc::new(LogWrites {
                shared: shared.clone(),
                client,
            }),
            shared,
            follower: Mutex::new(Some(thread)),
        })
    }

    /// Identifies this process.
    pub fn session(&self) -> Uuid {
        self.session
    }

    /// Waits until this node has its number, so that it can talk to others. It may lack data.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn wait_numbered(&self, at_most: Duration) -> Result<Node, JoinError> {
        self.wait_known(at_most, |known| known.number)
    }

    /// Waits until this node is a member with all of its data.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn wait_joined(&self, at_most: Duration) -> Result<Node, JoinError> {
        self.wait_known(at_most, |known| known.node)
    }

    fn wait_known(
        &self,
        at_most: Duration,
        look: impl Fn(&Known) -> Option<Node>,
    ) -> Result<Node, JoinError> {
        let ends = self.shared.now_nanos().saturating_add(nanos(at_most));
        let known = self.shared.wait_until(ends, |known| match &known.halted {
            Some(reason) => Some(Err(JoinError::Refused(reason.clone()))),
            None => look(known).map(Ok),
        });
        known.unwrap_or(Err(JoinError::TooSlow(at_most)))
    }

    /// How many tablets this node still copies from others.
    pub fn lacking(&self) -> usize {
        self.shared.know(|known| known.lacking)
    }

    /// Waits until this node has applied every record of its tablets that was acknowledged before the call.
    ///
    /// # Errors
    /// The reason why it has not, or why that is not known. It waits for `at_most`.
    pub fn catch_up(&self, at_most: Duration) -> Result<(), String> {
        match self.lacking() {
            0 => {}
            lacking => return Err(format!("it still copies {lacking} slices from other nodes")),
        }
        let deadline_nanos = self.shared.now_nanos().saturating_add(nanos(at_most));
        let tablets = self.shared.progress.facts().into_iter();
        let tablets: Vec<u32> = tablets.map(|facts| facts.tablet).collect();
        let reached = self.barriers.raise(&tablets, deadline_nanos);
        let applied = reached.and_then(|reached| self.barriers.wait_applied(&reached, deadline_nanos));
        applied.map_err(|error| match error {
            BarrierError::TimedOut => format!(
                "it has not applied all records of the log after {} s, or does not reach the log",
                at_most.as_secs()
            ),
            BarrierError::Unavailable(reason) => reason,
        })
    }

    /// Counts, and how far this node is with its tablets.
    pub fn facts(&self) -> MemberFacts {
        let tablets = self.shared.progress.facts();
        self.shared.counting.facts(tablets, self.lacking())
    }

    /// The cluster, as of the records that this node has read. `None`: it has read none.
    pub fn state(&self) -> Option<Arc<ClusterState>> {
        self.shared.know(|known| known.state.clone())
    }

    /// Why this node does not follow the cluster any more.
    pub fn halted(&self) -> Option<String> {
        self.shared.know(|known| known.halted.clone())
    }

    /// A tablet that this node does not follow any more.
    pub fn halted_tablet(&self) -> Option<u32> {
        self.shared.progress.any_halted()
    }

    /// This node as a replica, for reads of other nodes.
    pub fn reader(&self) -> ReplicaReader {
        ReplicaReader {
            store: self.shared.local.clone(),
            membership: self.membership.clone(),
            barriers: self.barriers.clone(),
        }
    }

    /// The cluster as this node sees it. `None`: it has not joined yet.
    pub fn view(&self) -> Option<ClusterView> {
        self.shared.view()
    }

    /// How long each other member was silent, as a share of the time after which it is taken for down.
    pub fn silences(&self) -> BTreeMap<Node, f64> {
        let known = self
            .shared
            .know(|known| Some((known.node?, known.state.clone()?)));
        let Some((own, state)) = known else {
            return BTreeMap::new();
        };
        let longest = self.shared.options.silence_micros().max(1);
        let others = state.members.iter().filter(|(node, _)| **node != own);
        #[expect(clippy::cast_precision_loss, reason = "a share for operators")]
        let share = |member| state.silence_micros(member).max(0) as f64 / longest as f64;
        others.map(|(node, member)| (*node, share(member))).collect()
    }

    /// Reports the cluster to this listener, at once and from now on.
    pub fn listen(&self, listener: Arc<dyn MemberListener>) {
        *self.shared.listener.lock() = Some(listener);
        self.shared.tell(None);
    }

    /// Executes a command that another node has sent with [`MemberClient`], and returns the bytes of the answer.
    pub fn execute_for(&self, request: &Bytes) -> Vec<u8> {
        self.writes.execute_for(request)
    }

    /// Copies tablets for another node, which has asked with [`MemberClient::copy`].
    ///
    /// # Errors
    /// This node does not have what is wanted, or not yet.
    pub fn copy_for(&self, request: &Bytes) -> Result<CopyParts, String> {
        copying::serve(&self.shared, request)
    }

    /// The cluster as the storage of this node's query layer. Requires: this node has joined.
    pub fn store(&self, client: Arc<dyn ReplicaClient>, options: ReadOptions) -> ClusterStore {
        ClusterStore::new(self.reader(), client, self.writes.clone(), options)
    }

    /// Changes of the ring.
    pub fn ring(&self) -> RingChanges {
        RingChanges(self.shared.clone())
    }

    /// Changes [`MemberOptions::write_timeout`], for writes that begin later.
    pub fn set_write_timeout(&self, timeout: Duration) {
        self.shared.set_write_timeout(timeout);
    }

    /// Stops following the logs, and saves how far it is.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Relaxed);
        if let Some(thread) = self.follower.lock().take()
            && thread.join().is_none()
        {
            tracing::error!("the thread that follows the logs ended with a panic");
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop();
    }
}

/// When the thread that follows the logs ends, whatever the reason, writes that wait for it are given up.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.learn(|known| {
            known
                .halted
                .get_or_insert_with(|| "this node does not follow the cluster any more".to_owned());
        });
        // Drops the channels, which ends the waits for answers.
        self.0.cleanings.lock().clear();
        self.0.copies.lock().clear();
        self.0.overdue.close();
        self.0.overdue_reads.close();
        let listener = self.0.listener.lock().clone();
        if let (Some(listener), true) = (listener, self.0.know(|known| known.has_left)) {
            listener.left();
        }
    }
}

/// What this node knows of its cluster, for reads.
struct LogMembership {
    shared: Arc<Shared>,
}

impl Membership for LogMembership {
    fn node(&self) -> Node {
        self.shared.know(|known| known.node.unwrap_or_default())
    }

    fn topology(&self) -> Arc<Topology> {
        let known = self.shared.know(|known| known.topology.clone());
        known.unwrap_or_else(|| Arc::new(Topology::empty()))
    }

    fn topology_at(&self, ring_version: u64, schema_epoch: u64, deadline_nanos: u64) -> Arc<Topology> {
        let is_new = |topology: &Arc<Topology>| {
            topology.ring_version() >= ring_version && topology.schema_epoch() >= schema_epoch
        };
        let topology = self.topology();
        if is_new(&topology) {
            return topology;
        }
        let soon = self.shared.now_nanos().saturating_add(nanos(CATCH_UP_MAX));
        let new = self
            .shared
            .wait_until(soon.min(deadline_nanos), |known| match known.halted {
                // It learns nothing more.
                Some(_) => Some(None),
                None => known.topology.clone().filter(is_new).map(Some),
            });
        new.flatten().unwrap_or_else(|| self.topology())
    }

    fn is_alive(&self, node: Node) -> bool {
        let (own, state) = self.shared.know(|known| (known.node, known.state.clone()));
        state.is_some_and(|state| own == Some(node) || self.shared.is_up(&state, node))
    }

    fn is_ready(&self, tablet: u32) -> bool {
        self.shared.progress.is_ready(tablet)
    }
}
