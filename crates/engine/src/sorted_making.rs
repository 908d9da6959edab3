//! Sorted views are made in the background, after reads have met SSTables beside the view a number of times.

use std::sync::Arc;

use ilion_schema::TableId;
use ilion_sstable::{NoView, SSTable};

use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::sorted::{Order, Sorted};
use crate::table_store::TableStore;
use crate::view::View;
use crate::work::Work;
use crate::{Engine, Error, Result};

/// Minimum number of SSTables in a view.
const SSTABLES_MIN: usize = 2;

impl Engine {
    /// Makes the table's sorted view now, if it has enough SSTables. For tests and benchmarks; otherwise reads start this.
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

    /// True if reads of the table use a sorted view.
    pub fn has_sorted_view(&self, table: TableId) -> bool {
        let store = self.shared.any_table(table);
        store.is_some_and(|(store, _)| store.view().sorted().is_some())
    }
}

impl Shared {
    /// Counts a read of the table, and requests a view in the background if one is due. Reads that skip the row cache call this.
    #[inline]
    pub(crate) fn note_read_for_sorting(&self, store: &Arc<TableStore>) {
        let view = store.view();
        let is_whole = view.sorted().is_some_and(|sorted| sorted.is_whole());
        if !is_whole && view.sstables.len() >= SSTABLES_MIN && store.sorted.is_due() {
            self.request_sorted_view(store);
        }
    }

    #[cold]
    fn request_sorted_view(&self, store: &Arc<TableStore>) {
        if store.sorted.request(self.env.monotonic_nanos()) {
            self.background.send(Work::SortView(store.clone()));
        }
    }

    /// Makes the table's view. If that fails, the failure is logged and reads continue without a view.
    pub(crate) fn make_sorted_view(&self, store: &TableStore) {
        let began_nanos = self.env.monotonic_nanos();
        let made = self.sort_sstables(store);
        let ended_nanos = self.env.monotonic_nanos();
        let millis = ended_nanos.saturating_sub(began_nanos) / 1_000_000;
        match made {
            Ok(Ok(partitions)) => tracing::debug!(?store, partitions, millis, "a sorted view was made"),
            Ok(Err(reason)) => tracing::debug!(?store, ?reason, "no sorted view"),
            Err(error) => tracing::error!(?store, %error, "a sorted view cannot be made; reads do without"),
        }
        store.sorted.ended(began_nanos, ended_nanos);
    }

    /// Returns the number of partitions in the view.
    fn sort_sstables(&self, store: &TableStore) -> ilion_sstable::Result<std::result::Result<u64, NoView>> {
        let view = store.view();
        let has_map = |live: &&Arc<LiveSSTable>| live.sstable.token_map_bytes().is_some();
        let sources: Vec<&Arc<LiveSSTable>> = view
            .sstables
            .iter()
            .filter(has_map)
            .take(ilion_sstable::SOURCES_MAX)
            .collect();
        if sources.len() < SSTABLES_MIN {
            return Ok(Err(NoView::Unfit));
        }
        // Some SSTables cannot be in a view: those without a token map, and those above the limit of sources.
        if let Some(sorted) = view.sorted().filter(|sorted| sorted.order.is_of(&sources)) {
            return Ok(Ok(sorted.order.view.partition_count()));
        }
        let sstables: Vec<Arc<SSTable>> = sources.iter().map(|live| live.sstable.clone()).collect();
        let mut go_on = || !self.pacer.is_stopping();
        let made = match SSTable::sorted_view(&sstables, &self.sorted_views, &mut go_on)? {
            Ok(made) => made,
            Err(reason) => return Ok(Err(reason)),
        };
        let partitions = made.partition_count();
        let order = Order::new(made, &sources);
        store.change_view(|view| View {
            sorted: Sorted::of(order, &view.sstables),
            ..view.clone()
        });
        Ok(Ok(partitions))
    }
}
