//! Runs that some write while others read.

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard};

use crate::{Kind, Order, Run, Runs};

/// Runs behind a lock, which is held for one record, or while a tail is sorted; and what is noted of every record beside them.
#[derive(Debug, Default)]
pub struct SharedRuns<N = ()>(RwLock<State<N>>);

#[derive(Debug, Default)]
struct State<N> {
    runs: Runs,
    /// By how many bytes reads made them grow, until a write tells.
    untold_bytes: isize,
    notes: N,
}

impl<N> SharedRuns<N> {
    /// Puts in a record and notes it; returns by how many bytes memory grew.
    #[inline]
    pub fn push(
        &self,
        order: &impl Order,
        head: u64,
        kind: Kind,
        note: impl FnOnce(&mut N),
        write: impl FnOnce(&mut Vec<u8>),
    ) -> isize {
        let mut state = self.0.write();
        let state = &mut *state;
        note(&mut state.notes);
        let grown = state.runs.push(order, head, kind, write);
        grown + std::mem::take(&mut state.untold_bytes)
    }

    /// The runs of this moment, the oldest first.
    pub fn snapshot(&self, order: &impl Order) -> Vec<Arc<Run>> {
        let state = self.0.upgradable_read();
        if state.runs.is_closed() {
            return state.runs.runs().cloned().collect();
        }
        let mut state = RwLockUpgradableReadGuard::upgrade(state);
        let grown = state.runs.close_tail(order);
        state.untold_bytes += grown;
        state.runs.runs().cloned().collect()
    }

    /// What was noted.
    pub fn notes(&self) -> impl std::ops::Deref<Target = N> {
        RwLockReadGuard::map(self.0.read(), |state| &state.notes)
    }

    /// Records, equal ones counted as often as they were not met yet.
    pub fn len(&self) -> usize {
        self.0.read().runs.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.0.read().runs.is_empty()
    }
}
