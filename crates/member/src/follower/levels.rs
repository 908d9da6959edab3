//! The feature level of the cluster: it is raised as soon as all members understand a higher one. From then on members tell their release.

use ilion_cluster::{Change, Feature};

use super::{AGAIN, Due, Follower};

impl Follower {
    /// Logs a record that raises the level, if this is the node that does it.
    pub(super) fn raise_level(&mut self) {
        let Some(level) = self.meta.state.as_ref().and_then(|state| state.possible_level()) else {
            return;
        };
        if self.does_chores() && self.is_due_first(Due::Level, AGAIN) {
            self.tell(Change::Level { level });
        }
    }

    /// Tells the cluster the release of this node, if it knows another one.
    pub(super) fn say_release(&mut self) {
        let (Some(state), Some(node)) = (&self.meta.state, self.meta.node) else {
            return;
        };
        let Some(member) = state.members.get(&node) else {
            return;
        };
        let release = &self.shared.options.release;
        if !state.has(Feature::Releases) || member.release.as_ref() == Some(release) {
            return;
        }
        let release = release.clone();
        if self.is_due_first(Due::Release, AGAIN) {
            self.tell(Change::Release { release });
        }
    }
}
