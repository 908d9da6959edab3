//! Collects the content of Statistics.db while rows are written (`org.apache.cassandra.io.sstable.metadata.MetadataCollector`).

use bytes::Bytes;
use ilion_rows::{
    Bound, BoundKind, CellRef, ClusteringComparator, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, Slice,
    counter,
};

use crate::histogram::{EstimatedHistogram, EstimatedHistogramBuilder, TombstoneHistogramBuilder};
use crate::statistics::{Cardinality, StatsMetadata};

/// The lowest and the highest value.
#[derive(Clone, Copy, Debug)]
struct MinMax<T> {
    min: T,
    max: T,
}

impl<T: Copy + Ord> MinMax<T> {
    #[inline]
    fn add(&mut self, value: T) {
        // Most values change neither bound; then no memory is written.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// The lowest and the highest value; `none` if no value was added.
    fn seen_or(self, none: Self) -> Self {
        if self.min > self.max { none } else { self }
    }
}

/// Collects the STATS and COMPACTION parts of Statistics.db.
#[derive(Debug)]
pub(crate) struct MetadataCollector {
    comparator: ClusteringComparator,
    timestamps: MinMax<i64>,
    local_deletions: MinMax<u32>,
    ttls: MinMax<u32>,
    tombstones: TombstoneHistogramBuilder,
    partition_sizes: EstimatedHistogramBuilder,
    cells_per_partition: EstimatedHistogramBuilder,
    cells_of_partition: u64,
    cardinality: Cardinality,
    covered: Option<Slice>,
    has_legacy_counter_shards: bool,
    has_partition_deletions: bool,
    total_columns: u64,
    total_rows: u64,
}

impl MetadataCollector {
    pub(crate) fn new(comparator: ClusteringComparator) -> Self {
        Self {
            comparator,
            timestamps: MinMax {
                min: i64::MAX,
                max: i64::MIN,
            },
            local_deletions: MinMax {
                min: u32::MAX,
                max: 0,
            },
            ttls: MinMax {
                min: u32::MAX,
                max: 0,
            },
            tombstones: TombstoneHistogramBuilder::default(),
            partition_sizes: EstimatedHistogramBuilder::new(EstimatedHistogram::of_sizes()),
            cells_per_partition: EstimatedHistogramBuilder::new(EstimatedHistogram::of_cells()),
            cells_of_partition: 0,
            cardinality: Cardinality::default(),
            covered: None,
            has_legacy_counter_shards: false,
            has_partition_deletions: false,
            total_columns: 0,
            total_rows: 0,
        }
    }

    /// Adds a row's liveness. Requires: the row has one.
    #[inline]
    pub(crate) fn liveness(&mut self, liveness: &Liveness) {
        self.timestamps.add(liveness.timestamp_micros);
        self.ttls.add(liveness.ttl_secs);
        self.local_deletion(liveness.expires_secs);
    }

    #[inline]
    pub(crate) fn cell(&mut self, cell: &CellRef<'_>) {
        self.cells_of_partition += 1;
        self.timestamps.add(cell.timestamp_micros);
        self.ttls.add(cell.ttl_secs);
        self.local_deletion(cell.local_deletion_secs);
    }

    /// Adds cells with the times of their row, whose liveness was added before.
    #[inline]
    pub(crate) fn cells_as_row(&mut self, cells: u32, liveness: &Liveness) {
        self.cells_of_partition += u64::from(cells);
        if liveness.expires_secs != NO_DELETION_TIME {
            (0..cells).for_each(|_| self.tombstones.add(liveness.expires_secs));
        }
    }

    /// Adds a live row that does not expire, with `cells` cells; all were written at `micros`.
    #[inline]
    pub(crate) fn usual_row(&mut self, micros: i64, cells: u64) {
        self.liveness(&Liveness::live(micros));
        self.row(cells);
        self.cells_of_partition += cells;
    }

    /// Adds the value of a counter cell. [`MetadataCollector::cell`] must be called for the cell, too.
    pub(crate) fn counter(&mut self, value: &[u8]) {
        if !self.has_legacy_counter_shards && !value.is_empty() {
            let mut shards = counter::shards(value).into_iter().flatten();
            self.has_legacy_counter_shards = shards.any(|shard| shard.kind != counter::ShardKind::Global);
        }
    }

    /// Adds a deletion that is not the deletion of a partition.
    #[inline]
    pub(crate) fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.timestamps.add(deletion.marked_at_micros);
            self.local_deletion(deletion.local_secs);
        }
    }

    #[inline]
    pub(crate) fn partition_deletion(&mut self, deletion: &DeletionTime) {
        self.has_partition_deletions |= !deletion.is_live();
        self.deletion(deletion);
    }

    #[inline]
    fn local_deletion(&mut self, secs: u32) {
        self.local_deletions.add(secs);
        if secs != NO_DELETION_TIME {
            self.tombstones.add(secs);
        }
    }

    /// Adds a row, static or not, that is not empty.
    #[inline]
    pub(crate) fn row(&mut self, columns_with_cells: u64) {
        self.total_columns += columns_with_cells;
        self.total_rows += 1;
    }

    /// Adds the only row of a partition; `row` is the bound at its start.
    pub(crate) fn clustering(&mut self, mut row: Bound) {
        let Some(covered) = &mut self.covered else {
            let end = Bound::new(BoundKind::InclEnd, row.values.clone());
            self.covered = Some(Slice { start: row, end });
            return;
        };
        if self.comparator.is_empty() {
            return;
        }
        if self.comparator.compare_bounds(&row, &covered.start).is_lt() {
            covered.start = row.clone();
        }
        row.kind = BoundKind::InclEnd;
        if self.comparator.compare_bounds(&row, &covered.end).is_gt() {
            covered.end = row;
        }
    }

    /// Adds the slice between the first and the last unfiltered of a partition.
    pub(crate) fn clusterings(&mut self, slice: &Slice) {
        let Some(covered) = &mut self.covered else {
            self.covered = Some(slice.clone());
            return;
        };
        if self.comparator.is_empty() {
            return;
        }
        if self
            .comparator
            .compare_bounds(&slice.start, &covered.start)
            .is_lt()
        {
            covered.start = slice.start.clone();
        }
        if self.comparator.compare_bounds(&slice.end, &covered.end).is_gt() {
            covered.end = slice.end.clone();
        }
    }

    #[inline(always)]
    pub(crate) fn end_partition(&mut self, key: &[u8], size_bytes: u64) {
        self.cardinality.add_key(key);
        self.partition_sizes.add(size_bytes);
        self.cells_per_partition.add(self.cells_of_partition);
        self.cells_of_partition = 0;
    }

    /// The collected statistics; unknown values are those of [`StatsMetadata::unknown`].
    pub(crate) fn finish(self, first_and_last_key: (Bytes, Bytes)) -> (StatsMetadata, Cardinality) {
        let timestamps = self.timestamps.seen_or(MinMax {
            min: i64::MIN,
            max: i64::MAX,
        });
        let local_deletions = self.local_deletions.seen_or(MinMax {
            min: NO_DELETION_TIME,
            max: NO_DELETION_TIME,
        });
        let ttls = self.ttls.seen_or(MinMax {
            min: NO_TTL,
            max: NO_TTL,
        });
        let stats = StatsMetadata {
            partition_sizes: self.partition_sizes.finish(),
            cells_per_partition: self.cells_per_partition.finish(),
            min_timestamp_micros: timestamps.min,
            max_timestamp_micros: timestamps.max,
            min_local_deletion_secs: local_deletions.min,
            max_local_deletion_secs: local_deletions.max,
            min_ttl_secs: ttls.min,
            max_ttl_secs: ttls.max,
            tombstone_drop_times: self.tombstones.finish(),
            covered_clusterings: self.covered.unwrap_or_else(no_clusterings),
            has_legacy_counter_shards: self.has_legacy_counter_shards,
            total_columns: self.total_columns,
            total_rows: self.total_rows,
            has_partition_deletions: self.has_partition_deletions,
            first_and_last_key: Some(first_and_last_key),
            ..StatsMetadata::unknown()
        };
        (stats, self.cardinality)
    }
}

/// A slice from behind all clusterings to before all clusterings: Cassandra writes it if there are neither rows nor markers.
fn no_clusterings() -> Slice {
    Slice {
        start: Bound::new(BoundKind::ExclStart, Default::default()),
        end: Bound::new(BoundKind::ExclEnd, Default::default()),
    }
}
