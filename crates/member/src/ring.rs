//! [`RingChanges`]: what an operator changes of the ring: this node leaves, a lost one is removed, slices are spread evenly, a change is
//! cancelled; and the data of slices that this node does not hold any more is removed.
//!
//! Each is one record of the meta log. A change that moves data is under way until the nodes that gain slices have copied them; writes and
//! reads go on meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::bounded;
use ilion_cluster::{Change, ClusterState, Node, Phase, TransitionKind};
use ilion_query::StoreError;
use uuid::Uuid;

use crate::asking::log_and_read;
use crate::meta::Asked;
use crate::shared::{Shared, nanos};
use crate::slices::{balancing_moves, losing_keyspace, moves_of_leaver};
use crate::waiting::receive;

/// A record of the meta log is read back within this time, or its outcome is unknown.
const ASKED_MAX: Duration = Duration::from_secs(30);

/// Why the ring is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The change is not permitted, or not now.
    #[error("{0}")]
    Refused(String),
    /// The outcome is not known yet.
    #[error("{0}: see the state of the ring before it is asked for again")]
    Unknown(String),
}

/// A change of the ring that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingChange {
    /// Its number.
    pub number: u64,
    /// What it is for.
    pub kind: TransitionKind,
    /// How many slices change their owner.
    pub slices: usize,
    /// The nodes that copy data for it, and whether each has all of it.
    pub copying: Vec<(Node, bool)>,
}

/// See the module.
#[derive(Clone)]
pub struct RingChanges(pub(crate) Arc<Shared>);

impl RingChanges {
    /// The change that is under way; `None` if there is none.
    pub fn current(&self) -> Option<RingChange> {
        let state = self.0.know(|known| known.state.clone())?;
        current_of(&state)
    }

    /// Whether this node was a member and is not one any more.
    pub fn has_left(&self) -> bool {
        self.0.know(|known| known.has_left)
    }

    /// This node gives all of its slices to the others, and leaves the cluster. Returns the number of the change; 0 if there is nothing to
    /// copy. With `force`, also if a keyspace then has fewer replicas than it wants.
    ///
    /// # Errors
    /// See [`RingError`].
    pub fn leave(&self, force: bool) -> Result<u64, RingError> {
        let (state, own) = self.known()?;
        if let (false, Some((keyspace, replicas, nodes))) = (force, losing_keyspace(&state, own)) {
            return Err(RingError::Refused(format!(
                "Not enough live nodes to maintain replication factor in keyspace {keyspace} (RF = {replicas}, N = {nodes}). Perform a \
                 forceful decommission to ignore."
            )));
        }
        self.give_away(&state, own)
    }

    /// Gives all slices of a lost node to the others, which copy them from other replicas; it is a member no more.
    ///
    /// # Errors
    /// See [`RingError`]. A node that is up leaves by itself.
    pub fn remove(&self, host: Uuid) -> Result<u64, RingError> {
        let (state, own) = self.known()?;
        let found = state.members.iter().find(|(_, member)| member.host == host);
        let Some((node, member)) = found else {
            return Err(RingError::Refused("Host ID not found.".to_owned()));
        };
        if *node == own {
            return Err(RingError::Refused("Cannot remove self".to_owned()));
        }
        if self.0.is_up(&state, *node) {
            return Err(RingError::Refused(format!(
                "Node {} is alive and owns this ID. Use decommission command to remove it from the ring",
                member.endpoint.ip
            )));
        }
        self.give_away(&state, *node)
    }

    fn sequence_of(&self, slice: u32) -> u32 {
        self.0.sender.logs().sequence_of(slice)
    }

    fn give_away(&self, state: &ClusterState, node: Node) -> Result<u64, RingError> {
        let is_up = |other: Node| self.0.is_up(state, other);
        let Some(moves) = moves_of_leaver(state, node, |slice| self.sequence_of(slice), is_up) else {
            return Err(RingError::Refused(
                "no other normal nodes in the ring; decommission would be pointless".to_owned(),
            ));
        };
        self.ask(Change::Leave { node, moves })
    }

    /// Spreads the slices evenly over the nodes of each data center. Returns `None` if they are.
    ///
    /// # Errors
    /// See [`RingError`].
    pub fn rebalance(&self) -> Result<Option<u64>, RingError> {
        let (state, _) = self.known()?;
        let moves = balancing_moves(&state, |slice| self.sequence_of(slice));
        if moves.is_empty() {
            return Ok(None);
        }
        self.ask(Change::Move { moves }).map(Some)
    }

    /// Gives up the change that is under way: the ring stays as it was. A node that was joining must begin anew with an empty directory.
    ///
    /// # Errors
    /// See [`RingError`].
    pub fn cancel(&self) -> Result<(), RingError> {
        let (state, _) = self.known()?;
        let Some(transition) = state.transition.as_ref().map(|transition| transition.number) else {
            return Err(RingError::Refused(
                "No change of the ring is under way.".to_owned(),
            ));
        };
        self.ask(Change::Cancel { transition }).map(drop)
    }

    /// Removes the data of slices that this node does not hold and will not hold, and returns when it is durable.
    ///
    /// # Errors
    /// The data is not removed, or only in part. The call can be repeated.
    pub fn clean(&self) -> Result<(), String> {
        let (sender, done) = bounded(1);
        self.0.cleanings.lock().push(sender);
        if let Some(reason) = self.0.know(|known| known.halted.clone()) {
            self.0.cleanings.lock().clear();
            return Err(reason);
        }
        // The follower drops the channel when it ends.
        receive(&done).unwrap_or_else(|_| Err("this node does not follow the cluster any more".to_owned()))
    }

    /// The cluster, and this node as a member that neither joins nor leaves.
    fn known(&self) -> Result<(Arc<ClusterState>, Node), RingError> {
        let (halted, known) = self.0.know(|known| {
            let state = known.state.clone();
            (known.halted.clone(), state.zip(known.node))
        });
        if let Some(reason) = halted {
            return Err(RingError::Refused(reason));
        }
        known.ok_or_else(|| RingError::Refused("this node has not joined the cluster yet".to_owned()))
    }

    fn ask(&self, change: Change) -> Result<u64, RingError> {
        let ends_nanos = self.0.now_nanos().saturating_add(nanos(ASKED_MAX));
        match log_and_read(&self.0, change, ends_nanos) {
            Ok(Asked::Done(transition)) => Ok(transition),
            Ok(Asked::Refused(refusal)) => Err(RingError::Refused(refusal.to_string())),
            // This node has left before the outcome could be read.
            Err(StoreError::WriteRefused(_)) if self.has_left() => Ok(0),
            // It was sent, and no outcome was read.
            Err(error @ (StoreError::WriteTimeout { .. } | StoreError::WriteRefused(_))) => {
                Err(RingError::Unknown(error.to_string()))
            }
            Err(error) => Err(RingError::Refused(error.to_string())),
        }
    }
}

/// See [`RingChanges::current`]. Pure.
fn current_of(state: &ClusterState) -> Option<RingChange> {
    let transition = state.transition.as_ref()?;
    let joining = state
        .members
        .iter()
        .filter(|(_, member)| member.phase == Phase::Joining);
    let mut copying: Vec<Node> = joining.map(|(node, _)| *node).collect();
    copying.extend(state.gains().into_keys());
    copying.sort_unstable();
    copying.dedup();
    let copying = copying.into_iter();
    Some(RingChange {
        number: transition.number,
        kind: transition.kind.clone(),
        slices: transition.moves.len(),
        copying: copying
            .map(|node| (node, transition.ready.contains(&node)))
            .collect(),
    })
}
