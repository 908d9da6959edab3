//! The sorted view of a table: which of its SSTables have their order in it, and when it is made anew.
//!
//! Reads go by the view for the SSTables that it has, and ask those beside it as they would without. It is made in the background once reads
//! have met SSTables beside it some times, and then at most as often as it takes a small share of one core. None is kept on disk: a start
//! needs none.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use ilion_schema::TableId;
use ilion_sstable::{NoView, SSTable, SortedView};

use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::view::{LiveSSTable, View};
use crate::work::Work;
use crate::{Engine, Error, Result};

/// Of fewer SSTables no view is made.
const SSTABLES_MIN: usize = 2;
/// Reads that meet SSTables beside the view before it is made anew.
const READS_BEFORE: u32 = 32;
/// A view is not made anew before so many times as long as that took have passed: 5 % of one core.
const REST: u64 = 20;

/// A view, and the SSTables that are its sources.
pub(crate) struct Order {
    pub view: SortedView,
    sources: Vec<Weak<LiveSSTable>>,
    /// A token map of it was found to be damaged: it is not to be used.
    is_broken: AtomicBool,
}

/// An order, as it applies to the SSTables of a [`View`].
pub(crate) struct Sorted {
    pub order: Arc<Order>,
    /// Where each source is among the SSTables of the view; `None` of those that are gone.
    places: Vec<Option<usize>>,
    /// SSTables that are no sources.
    pub beside: Vec<usize>,
}

/// When a table's view is made anew.
#[derive(Default)]
pub(crate) struct SortedState {
    /// Reads that met SSTables beside the view, since it was made.
    reads: AtomicU32,
    /// It was asked for.
    is_asked: AtomicBool,
    not_before_nanos: AtomicU64,
}

impl Order {
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_broken.load(Relaxed)
    }

    /// It is not used from now on.
    pub(crate) fn give_up(&self) {
        self.is_broken.store(true, Relaxed);
    }
}

impl Sorted {
    /// `None` if none of the sources is left.
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

    /// Where a source is among the SSTables of the view; `None` if it is gone.
    #[inline]
    pub(crate) fn place(&self, source: usize) -> Option<usize> {
        self.places[source]
    }

    /// How many SSTables are sources.
    pub(crate) fn sources(&self) -> usize {
        self.places.iter().flatten().count()
    }
}

impl View {
    /// The order of its SSTables, as far as there is one.
    #[inline]
    pub(crate) fn sorted(&self) -> Option<&Arc<Sorted>> {
        self.sorted.as_ref().filter(|sorted| sorted.order.is_usable())
    }

    /// Whether some SSTables are asked beside the view that could be in it.
    fn has_some_beside(&self) -> bool {
        self.sstables.len() >= SSTABLES_MIN
            && self
                .sorted()
                .is_none_or(|sorted| !sorted.beside.is_empty() || sorted.sources() < sorted.places.len())
    }
}

impl TableStore {
    /// To be called by each read: true once it is to be asked for a view.
    #[inline]
    pub(crate) fn wants_sorted_view(&self) -> bool {
        self.view().has_some_beside() && self.sorted.is_due()
    }
}

impl Engine {
    /// Makes the table's sorted view now, if it has SSTables enough. Reads have it made by themselves; for tests and benchmarks.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn sort(&self, table: TableId) -> Result<()> {
        let (store, _) = self
            .shared
            .any_table(table)
            .ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        self.shared.make_sorted_view(&store);
        Ok(())
    }

    /// True if reads of the table go by a sorted view.
    pub fn has_sorted_view(&self, table: TableId) -> bool {
        let store = self.shared.any_table(table);
        store.is_some_and(|(store, _)| store.view().sorted().is_some())
    }
}

impl SortedState {
    fn is_due(&self) -> bool {
        let reads = self.reads.load(Relaxed);
        self.reads.store(reads.saturating_add(1), Relaxed);
        reads >= READS_BEFORE && !self.is_asked.load(Relaxed)
    }
}

impl Shared {
    /// Asks for the table's view, unless it was asked for or made a short while ago.
    #[cold]
    pub(crate) fn ask_for_sorted_view(&self, store: &Arc<TableStore>) {
        let state = &store.sorted;
        if self.env.monotonic_nanos() < state.not_before_nanos.load(Relaxed) {
            state.reads.store(0, Relaxed);
        } else if !state.is_asked.swap(true, Relaxed) {
            self.background.send(Work::SortView(store.clone()));
        }
    }

    /// Makes the table's view. A table without one is read all the same.
    pub(crate) fn make_sorted_view(&self, store: &TableStore) {
        let began_nanos = self.env.monotonic_nanos();
        let made = self.sort_sstables(store);
        let ended_nanos = self.env.monotonic_nanos();
        let millis = (ended_nanos - began_nanos) / 1_000_000;
        match made {
            Ok(Ok(partitions)) => tracing::debug!(?store, partitions, millis, "a sorted view was made"),
            Ok(Err(reason)) => tracing::debug!(?store, ?reason, "no sorted view"),
            Err(error) => tracing::error!(?store, %error, "a sorted view cannot be made; reads do without"),
        }
        let rest_nanos = (ended_nanos - began_nanos).saturating_mul(REST);
        let state = &store.sorted;
        state
            .not_before_nanos
            .store(ended_nanos.saturating_add(rest_nanos), Relaxed);
        state.reads.store(0, Relaxed);
        state.is_asked.store(false, Relaxed);
    }

    /// Returns how many partitions the view has.
    fn sort_sstables(&self, store: &TableStore) -> ilion_sstable::Result<std::result::Result<u64, NoView>> {
        let view = store.view();
        let fitting = |live: &&Arc<LiveSSTable>| live.sstable.token_map_bytes().is_some();
        let sources: Vec<&Arc<LiveSSTable>> = view
            .sstables
            .iter()
            .filter(fitting)
            .take(ilion_sstable::SOURCES_MAX)
            .collect();
        if sources.len() < SSTABLES_MIN {
            return Ok(Err(NoView::Unfit));
        }
        let sstables: Vec<Arc<SSTable>> = sources.iter().map(|live| live.sstable.clone()).collect();
        let mut go_on = || !self.pacer.is_stopping();
        let made = match SSTable::sorted_view(&sstables, &self.sorted_views, &mut go_on)? {
            Ok(made) => made,
            Err(reason) => return Ok(Err(reason)),
        };
        let partitions = made.partition_count();
        let order = Arc::new(Order {
            view: made,
            sources: sources.into_iter().map(Arc::downgrade).collect(),
            is_broken: AtomicBool::new(false),
        });
        store.change_view(|view| View {
            sorted: Sorted::of(order, &view.sstables),
            ..view.clone()
        });
        Ok(Ok(partitions))
    }
}
