//! The sorted view of a table: which SSTables are in it, and when the next view is due.
//!
//! Reads use the view for the SSTables in it, and look up the SSTables beside it one by one. `sorted_making` makes views. Views are
//! not kept on disk, and a start needs none.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use ilion_sstable::SortedView;

use crate::live_sstable::LiveSSTable;

/// Number of reads that must meet SSTables beside the view before the next view is made.
const READS_BEFORE: u32 = 32;
/// Rest after a view was made, as a multiple of the time that making it took: in the long run, making views takes at most 5 % of a core.
const REST: u64 = 20;
/// Rests of up to this long altogether are postponed, so that after a burst of writes views follow the flushes and compactions at once.
const CREDIT_NANOS: u64 = 60_000_000_000;

/// A view, and the SSTables that are its sources.
pub(crate) struct Order {
    pub view: SortedView,
    sources: Vec<Weak<LiveSSTable>>,
    /// A token map of a source is damaged, so reads must not use the view.
    is_broken: AtomicBool,
}

/// An [`Order`], applied to the SSTables of a [`crate::view::View`].
pub(crate) struct Sorted {
    pub order: Arc<Order>,
    /// The place of each source among the SSTables of the view; `None` if it is not there any more.
    places: Vec<Option<usize>>,
    /// Places of the SSTables that are not sources.
    pub beside: Vec<usize>,
}

/// Decides when the next view of a table is made.
#[derive(Default)]
pub(crate) struct SortedState {
    /// Number of reads that met SSTables beside the view since it was made.
    reads: AtomicU32,
    /// True while a view is requested or being made.
    is_requested: AtomicBool,
    /// When all rests so far will be over.
    rested_nanos: AtomicU64,
}

impl Order {
    pub(crate) fn new(view: SortedView, sources: &[&Arc<LiveSSTable>]) -> Arc<Self> {
        Arc::new(Self {
            view,
            sources: sources.iter().map(|live| Arc::downgrade(live)).collect(),
            is_broken: AtomicBool::new(false),
        })
    }

    /// True if the view has exactly these sources, in this order.
    pub(crate) fn is_of(&self, sources: &[&Arc<LiveSSTable>]) -> bool {
        let is_same =
            |(own, live): (&Weak<LiveSSTable>, &&Arc<LiveSSTable>)| own.as_ptr() == Arc::as_ptr(live);
        self.sources.len() == sources.len() && self.sources.iter().zip(sources).all(is_same)
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_broken.load(Relaxed)
    }

    /// Marks the view as broken: reads do not use it from now on.
    pub(crate) fn give_up(&self) {
        self.is_broken.store(true, Relaxed);
    }
}

impl Sorted {
    /// Returns `None` if none of the sources is left.
    pub(crate) fn of(order: Arc<Order>, sstables: &[Arc<LiveSSTable>]) -> Option<Arc<Self>> {
        let place = |source: &Weak<LiveSSTable>| {
            let is_source = |live: &Arc<LiveSSTable>| std::ptr::eq(Arc::as_ptr(live), source.as_ptr());
            sstables.iter().position(is_source)
        };
        let places: Vec<Option<usize>> = order.sources.iter().map(place).collect();
        let is_beside = |at: &usize| !places.contains(&Some(*at));
        let beside = (0..sstables.len()).filter(is_beside).collect();
        let has_sources = places.iter().any(Option::is_some);
        has_sources.then(|| {
            Arc::new(Self {
                order,
                places,
                beside,
            })
        })
    }

    /// The place of a source among the SSTables of the view; `None` if it is not there any more.
    #[inline]
    pub(crate) fn place(&self, source: usize) -> Option<usize> {
        self.places[source]
    }

    /// Number of sources that are left.
    pub(crate) fn sources(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// True if its sources are exactly the SSTables of the view.
    pub(crate) fn is_whole(&self) -> bool {
        self.beside.is_empty() && self.sources() == self.places.len()
    }
}

impl SortedState {
    /// Counts a read that met SSTables beside the view. Returns true if there were enough such reads.
    pub(crate) fn is_due(&self) -> bool {
        let reads = self.reads.load(Relaxed);
        self.reads.store(reads.saturating_add(1), Relaxed);
        reads >= READS_BEFORE && !self.is_requested.load(Relaxed)
    }

    /// Returns true if a view must be made now. The caller must then call [`SortedState::ended`] after the making.
    pub(crate) fn request(&self, now_nanos: u64) -> bool {
        if now_nanos.saturating_add(CREDIT_NANOS) < self.rested_nanos.load(Relaxed) {
            self.reads.store(0, Relaxed);
            return false;
        }
        !self.is_requested.swap(true, Relaxed)
    }

    /// Records that the making of a view has ended, with or without success.
    pub(crate) fn ended(&self, began_nanos: u64, ended_nanos: u64) {
        let rest_nanos = ended_nanos.saturating_sub(began_nanos).saturating_mul(REST);
        let from_nanos = self.rested_nanos.load(Relaxed).max(ended_nanos);
        self.rested_nanos
            .store(from_nanos.saturating_add(rest_nanos), Relaxed);
        self.reads.store(0, Relaxed);
        self.is_requested.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn views_follow_each_other_at_once_until_their_rests_add_up_to_a_minute() {
        let state = SortedState::default();
        // Each takes two seconds, so a rest of forty.
        for begins in [100, 102] {
            assert!(state.request(begins * SECOND));
            assert!(!state.request(begins * SECOND), "it is being made");
            state.ended(begins * SECOND, (begins + 2) * SECOND);
        }
        // The rests are over at 182.
        assert!(!state.request(121 * SECOND));
        assert!(state.request(122 * SECOND));
    }
}
