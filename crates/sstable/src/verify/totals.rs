//! Compares Statistics.db with the rows.

use ilion_codec::Slab;
use ilion_rows::{Bound, BoundKind, ClusteringComparator, PartitionHead, Slice, Unfiltered};

use super::opened::Opened;
use super::verification::Verification;
use crate::metadata_collector::MetadataCollector;
use crate::row::encode::RowEncoder;
use crate::{Component, StatsMetadata};

/// The statistics of the rows, as a writer would collect them.
pub(super) struct Totals {
    encoder: RowEncoder,
    collector: MetadataCollector,
    /// The slice around the unfiltereds of the current partition.
    span: Option<Slice>,
    scratch: Slab,
    partitions: u64,
    key: bytes::Bytes,
    first_key: Option<bytes::Bytes>,
}

impl Totals {
    pub(super) fn new(opened: &Opened) -> Self {
        let comparator = ClusteringComparator::of(&opened.table);
        Self {
            encoder: RowEncoder::new(&opened.table, opened.statistics.header.stats, opened.version()),
            collector: MetadataCollector::new(comparator),
            span: None,
            scratch: Slab::default(),
            partitions: 0,
            key: bytes::Bytes::new(),
            first_key: None,
        }
    }

    pub(super) fn begin_partition(&mut self, head: &PartitionHead) {
        self.scratch.clear();
        self.key = bytes::Bytes::copy_from_slice(&head.key.key);
        self.first_key.get_or_insert_with(|| self.key.clone());
        self.collector.partition_deletion(&head.deletion);
        self.span = None;
        let row = head.static_row.as_ref();
        // The result is ignored: rows that cannot be stored again were still read correctly.
        let _ = self
            .encoder
            .encode_static(row, &mut self.collector, &mut self.scratch);
    }

    pub(super) fn unfiltered(&mut self, unfiltered: &Unfiltered) {
        self.scratch.clear();
        let (collector, scratch) = (&mut self.collector, &mut self.scratch);
        match unfiltered {
            Unfiltered::Row(row) => {
                let _ = self.encoder.encode_row(row, 0, collector, scratch);
            }
            Unfiltered::Marker(marker) => {
                let _ = self.encoder.encode_marker(marker, 0, collector, scratch);
            }
        }
        self.widen(unfiltered);
    }

    fn widen(&mut self, unfiltered: &Unfiltered) {
        let (values, kind) = match unfiltered {
            Unfiltered::Row(row) => (row.clustering.values(), None),
            Unfiltered::Marker(marker) => (&marker.bound.values, Some(marker.bound.kind)),
        };
        let end = Bound::new(kind.unwrap_or(BoundKind::InclEnd), values.clone());
        match &mut self.span {
            Some(span) => span.end = end,
            span => {
                let start = Bound::new(kind.unwrap_or(BoundKind::InclStart), values.clone());
                *span = Some(Slice { start, end });
            }
        }
    }

    pub(super) fn end_partition(&mut self, size_bytes: u64) {
        self.partitions += 1;
        if let Some(slice) = self.span.take() {
            self.collector.clusterings(&slice);
        }
        self.collector.end_partition(&self.key, size_bytes);
    }

    pub(super) fn compare(self, opened: &Opened, verification: &mut Verification) {
        let path = opened.descriptor.path(&Component::Statistics);
        let stored = &opened.statistics.stats;
        let comparator = ClusteringComparator::of(&opened.table);
        let ends = (self.first_key.unwrap_or_default(), self.key);
        let (found, _) = self.collector.finish(ends);
        let mut expect = |holds: bool, what: String| {
            if !holds {
                verification.findings.add(&path, 0, what);
            }
        };
        let count = stored.partition_sizes.count();
        let partitions = self.partitions;
        expect(
            count == partitions,
            format!("as many partitions as Data.db has, {partitions}; it says {count}"),
        );
        // Versions before 4.0 counted in another way.
        if opened.version().is_na_or_later() {
            for (name, stored, found) in [
                ("rows", stored.total_rows, found.total_rows),
                ("columns set", stored.total_columns, found.total_columns),
            ] {
                expect(
                    stored == found,
                    format!("as many {name} as Data.db has, {found}; it says {stored}"),
                );
            }
        }
        for (what, holds) in bounds(stored, &found) {
            expect(holds, format!("a {what} that holds for all rows of Data.db"));
        }
        expect(
            covers(
                &comparator,
                &stored.covered(opened.version()),
                &found.covered_clusterings,
            ),
            "covered clusterings that all rows of Data.db lie in".to_owned(),
        );
        if let (Some(stored), Some(found)) = (&stored.first_and_last_key, &found.first_and_last_key) {
            expect(
                stored == found,
                "the keys of the first and the last partition of Data.db".to_owned(),
            );
        }
    }
}

/// For each bound that reads rely on: its name, and true if it is valid for the rows found.
fn bounds(stored: &StatsMetadata, found: &StatsMetadata) -> [(&'static str, bool); 7] {
    let knows_none = found.min_timestamp_micros == i64::MIN && found.max_timestamp_micros == i64::MAX;
    [
        (
            "minimum timestamp",
            knows_none || stored.min_timestamp_micros <= found.min_timestamp_micros,
        ),
        (
            "maximum timestamp",
            knows_none || stored.max_timestamp_micros >= found.max_timestamp_micros,
        ),
        (
            "minimum local deletion time",
            stored.min_local_deletion_secs <= found.min_local_deletion_secs,
        ),
        (
            "maximum local deletion time",
            stored.max_local_deletion_secs >= found.max_local_deletion_secs,
        ),
        ("minimum TTL", stored.min_ttl_secs <= found.min_ttl_secs),
        ("maximum TTL", stored.max_ttl_secs >= found.max_ttl_secs),
        (
            "mark of partition deletions",
            stored.has_partition_deletions || !found.has_partition_deletions,
        ),
    ]
}

/// True if `outer` contains `inner`. A slice whose start is after its end is empty.
fn covers(comparator: &ClusteringComparator, outer: &Slice, inner: &Slice) -> bool {
    comparator.compare_bounds(&inner.start, &inner.end).is_gt()
        || comparator.compare_bounds(&outer.start, &inner.start).is_le()
            && comparator.compare_bounds(&outer.end, &inner.end).is_ge()
}
