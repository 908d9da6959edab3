//! [`Router`]: the replicas of a token at one state. A new router is made when the ring or the replication of a keyspace changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::placement::{Node, Strategy};
use crate::state::{ClusterState, Moment};
use crate::tablets::Tablets;

/// The replicas of each tablet, computed in advance, so that a look-up does not walk the ring.
#[derive(Clone, Debug)]
pub struct Router {
    tablets: Tablets,
    keyspaces: BTreeMap<String, Routes>,
}

#[derive(Clone, Debug)]
struct Routes {
    strategy: Strategy,
    /// The replicas of each tablet. `None` for `LocalStrategy`.
    replicas: Option<Vec<Vec<Node>>>,
}

impl Router {
    /// The router of a cluster without keyspaces.
    pub fn empty() -> Self {
        Self {
            tablets: Tablets::ONE,
            keyspaces: BTreeMap::new(),
        }
    }

    /// The router for reads at this state.
    pub fn new(state: &ClusterState) -> Self {
        let ring = state.ring(Moment::Now);
        let of_strategy = |strategy: &Strategy| Routes {
            strategy: strategy.clone(),
            replicas: (0..state.tablets.count())
                .map(|tablet| ring.replicas(strategy, state.tablets.end(tablet)))
                .collect(),
        };
        let keyspaces = state.schema.keyspaces.iter();
        Self {
            tablets: state.tablets,
            keyspaces: keyspaces
                .map(|(name, strategy)| (name.clone(), of_strategy(strategy)))
                .collect(),
        }
    }

    /// The tablet of a token, and so the log for its writes.
    pub fn tablet(&self, token: i64) -> u32 {
        self.tablets.of(token)
    }

    /// The replicas of a token, the primary one first. `None` if the keyspace is unknown or has `LocalStrategy`.
    pub fn replicas(&self, keyspace: &str, token: i64) -> Option<&[Node]> {
        let replicas = self.keyspaces.get(keyspace)?.replicas.as_ref()?;
        replicas.get(self.tablet(token) as usize).map(Vec::as_slice)
    }

    /// The nodes that have a replica of a tablet for any keyspace.
    pub fn nodes_of(&self, tablet: u32) -> BTreeSet<Node> {
        let routes = self.keyspaces.values();
        let replicas = routes.filter_map(|routes| routes.replicas.as_ref()?.get(tablet as usize));
        replicas.flatten().copied().collect()
    }

    /// How a keyspace is replicated.
    pub fn strategy(&self, keyspace: &str) -> Option<&Strategy> {
        self.keyspaces.get(keyspace).map(|routes| &routes.strategy)
    }
}
