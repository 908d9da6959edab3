//! Runs with concurrent readers and writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard};

use crate::sort::Sorter;
use crate::{Coming, Order, Room, Run, Runs, Stretch};

/// Number of heads that a reader can compare in the time that sorting one record takes.
const PASSED_FOR_A_SORT: usize = 64;

/// Runs behind a lock, which is held for one record or for the sort of a tail. Also keeps notes of type `N`, updated with each
/// record.
#[derive(Debug, Default)]
pub struct SharedRuns<N = ()> {
    state: RwLock<State<N>>,
    /// Work of readers on unsorted records, in heads compared, minus the work of sorts that were triggered by it.
    spent: AtomicUsize,
}

#[derive(Debug, Default)]
struct State<N> {
    runs: Runs,
    /// Growth of memory by readers' sorts, until the next write returns it.
    unreported_bytes: isize,
    notes: N,
}

impl<N> SharedRuns<N> {
    /// Appends a record and updates the notes; returns the growth of memory in bytes.
    #[inline]
    pub fn push(
        &self,
        order: &impl Order,
        coming: Coming,
        note: impl FnOnce(&mut N),
        write: impl FnOnce(&mut Room<'_>),
    ) -> isize {
        let mut state = self.state.write();
        let state = &mut *state;
        note(&mut state.notes);
        let grown = state.runs.push(order, coming, write);
        grown + std::mem::take(&mut state.unreported_bytes)
    }

    /// Runs that have the current records of a stretch, the oldest first. Void records that were sorted are not in them.
    pub fn snapshot(&self, order: &impl Order, stretch: &impl Stretch) -> Vec<Arc<Run>> {
        self.sort_what_is_due(order, stretch);
        let state = self.state.read();
        let mut runs: Vec<Arc<Run>> = state.runs.runs().cloned().collect();
        if state.runs.is_closed() {
            return runs;
        }
        let unsorted = state.runs.unsorted().to_vec();
        let (mut of_tails, mut of_last) = (Run::default(), Run::default());
        let mut spent = state.runs.tail().pick(stretch, &mut of_last);
        drop(state);
        spent += unsorted
            .iter()
            .map(|tail| tail.pick(stretch, &mut of_tails))
            .sum::<usize>();
        let picked = Sorter::default().sort(order, &[of_tails, of_last]);
        spent += picked.len() * PASSED_FOR_A_SORT;
        self.spent.fetch_add(spent, Ordering::Relaxed);
        if !picked.is_empty() {
            runs.push(Arc::new(picked));
        }
        runs
    }

    /// Sorts tails worth the work that readers have spent; all tails if the stretch selects all records.
    fn sort_what_is_due(&self, order: &impl Order, stretch: &impl Stretch) {
        let wants_all = stretch.heads() == (0..=u64::MAX);
        let is_due = |runs: &Runs| {
            let spent = self.spent.load(Ordering::Relaxed);
            !runs.is_closed() && (wants_all || runs.next_len() * PASSED_FOR_A_SORT <= spent)
        };
        let state = self.state.upgradable_read();
        if !is_due(&state.runs) {
            return;
        }
        let mut state = RwLockUpgradableReadGuard::upgrade(state);
        while is_due(&state.runs) {
            let (grown, records) = state.runs.sort_next(order);
            state.unreported_bytes += grown;
            let spent = self.spent.load(Ordering::Relaxed);
            let left = spent.saturating_sub(records * PASSED_FOR_A_SORT);
            self.spent.store(left, Ordering::Relaxed);
        }
    }

    /// All records, as sorted runs and unsorted tails, the oldest first; void records come before the others.
    pub fn all(&self) -> Vec<Arc<Run>> {
        self.state.write().runs.all()
    }

    /// The notes.
    pub fn notes(&self) -> impl std::ops::Deref<Target = N> {
        RwLockReadGuard::map(self.state.read(), |state| &state.notes)
    }

    /// Number of records; equal records that are not merged yet count separately.
    pub fn len(&self) -> usize {
        self.state.read().runs.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.state.read().runs.is_empty()
    }
}
