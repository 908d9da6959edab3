//! Reads of one partition through the row cache.

use std::sync::Arc;

use ilion_env::cost::{self, Count};
use ilion_env::trace;
use ilion_rows::{ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, ReadError};
use ilion_schema::TableSchema;

use crate::row_cache::{CachedPartition, HeadThenRest, Served, is_head_read};
use crate::shared::Shared;
use crate::table_store::TableStore;

impl Shared {
    /// Reads one partition; its head comes from the row cache, if the table uses it.
    pub(crate) fn read_partition(
        &self,
        store: &Arc<TableStore>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, ReadError> {
        let rows_max = table.options.caching.rows_per_partition;
        match rows_max.filter(|_| self.row_cache.is_enabled()) {
            None => {
                self.note_read_for_sorting(store);
                store.read_partition(table, key, filter, self.now_secs())
            }
            Some(rows_max) => self.read_through(store, table, key, filter, rows_max),
        }
    }

    fn read_through(
        &self,
        store: &Arc<TableStore>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
        rows_max: u32,
    ) -> Result<Box<dyn Cursor>, ReadError> {
        let found = self.row_cache.lookup(table.id, &key.key);
        if found.is_some() {
            cost::add(Count::CachedPartitions, 1);
            trace::note(|| "Row cache hit");
        }
        let cached = match found {
            None if is_head_read(filter) => self.fill_row_cache(store, table, key, rows_max)?,
            cached => cached,
        };
        let served = cached.map_or(Served::No, |cached| {
            cached.serve(filter, &ClusteringComparator::of(table))
        });
        match served {
            Served::Whole(cursor) => Ok(cursor),
            Served::No => store.read_partition(table, key, filter, self.now_secs()),
            Served::Head(head, slices) => {
                let (store, table, key) = (store.clone(), table.clone(), key.clone());
                let rest = ClusteringFilter {
                    slices,
                    ..filter.clone()
                };
                let now_secs = self.now_secs();
                Ok(Box::new(HeadThenRest {
                    head,
                    open_rest: Some(Box::new(move || {
                        store.read_partition(&table, &key, &rest, now_secs)
                    })),
                    rest: None,
                }))
            }
        }
    }

    /// Reads the head of a partition into the row cache, and returns it; `None` if it is too large to be cached.
    pub(crate) fn fill_row_cache(
        &self,
        store: &Arc<TableStore>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        rows_max: u32,
    ) -> Result<Option<Arc<CachedPartition>>, ReadError> {
        let ticket = self.row_cache.ticket(table.id, &key.key);
        // Cells may expire while the partition is cached; then the liveness decides.
        let whole = ClusteringFilter {
            liveness: true,
            ..ClusteringFilter::all()
        };
        let mut cursor = store.read_partition(table, key, &whole, self.now_secs())?;
        let bytes_max = self.row_cache.entry_bytes_max();
        let Some(read) = CachedPartition::read(&mut *cursor, rows_max, bytes_max)? else {
            return Ok(None);
        };
        let read = Arc::new(read);
        self.row_cache.insert(table.id, &key.key, ticket, read.clone());
        Ok(Some(read))
    }
}
