//! Feature levels: which records and rules a cluster uses. Its level is the highest that all of its members understand, and it only rises.
//!
//! | level | what it adds |
//! | --- | --- |
//! | 1 | the first |
//! | 2 | members log their release (`Change::Release`); commands in the logs of tablets may have results of user-defined functions |
//! | 3 | members tell digests of outcomes (`Change::Digests`), and a replica whose digests differ is found |
//! | 4 | the host id of a cancelled join is remembered, so that a late copy of its request does not begin the join again |
//! | 5 | digests do not depend on how a node numbers the columns of a table; members tell none before |
//! | 6 | changes of the schema may be rows of roles and permissions |
//!
//! A node that does not understand the level of its cluster stops, and its error says that it must be upgraded. So a node asks
//! [`ClusterState::has`] before it logs what needs a level.

use crate::state::ClusterState;

/// The highest feature level that this version understands.
pub const FEATURE_LEVEL_MAX: u32 = 6;

/// What a cluster may use from some level on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// [`crate::Change::Release`], and releases in snapshots.
    Releases,
    /// Commands with results of user-defined functions.
    FunctionResults,
    /// [`crate::Change::Digests`], and digests in snapshots.
    Digests,
    /// A cancelled join is final for its host id.
    FinalCancels,
    /// Members tell digests that are the same on all replicas. Those of older versions depend on the numbers of columns.
    EqualDigests,
    /// Roles and permissions of the cluster, which are logged like changes of the schema.
    Roles,
}

impl Feature {
    /// The first level that has this feature.
    pub fn level(self) -> u32 {
        match self {
            Self::Releases | Self::FunctionResults => 2,
            Self::Digests => 3,
            Self::FinalCancels => 4,
            Self::EqualDigests => 5,
            Self::Roles => 6,
        }
    }
}

impl ClusterState {
    /// Whether the cluster uses this.
    pub fn has(&self, feature: Feature) -> bool {
        self.level >= feature.level()
    }

    /// The highest level that all members understand; `None` if the cluster already has it, or has no members.
    pub fn possible_level(&self) -> Option<u32> {
        let members = self.members.values();
        let least = members
            .map(|member| member.understands.min(FEATURE_LEVEL_MAX))
            .min();
        least.filter(|level| *level > self.level)
    }
}
