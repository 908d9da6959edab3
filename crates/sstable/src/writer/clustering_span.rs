//! The range from the first to the last unfiltered of a partition.

use ilion_codec::{Append as _, Reader, Slab};
use ilion_rows::{Bound, BoundKind, Clustering, ClusteringComparator, Slice, Values};
use ilion_schema::TableSchema;

use super::written::Written;
use crate::row::format::values::{FixedLen, decode_values};

/// Length of a bound before its values: its kind and their number.
const BOUND_HEAD_BYTES: usize = 3;

/// The first and the last unfiltered of the current partition.
#[derive(Debug)]
pub(super) struct ClusteringSpan {
    comparator: ClusteringComparator,
    lens: Vec<FixedLen>,
    added: Added,
    /// The first unfiltered. `None` if it is a row of a table without clustering columns.
    first: Option<Bound>,
    /// The clustering of the last unfiltered as stored in Data.db, if it is not the first.
    last: Slab,
    /// The kind of the last unfiltered's bound; `None` if it is a row.
    last_kind: Option<BoundKind>,
    /// True after `finish_partition` returned a slice that no other row can widen.
    is_told: bool,
}

/// The clusterings of a partition, for the covered slice.
#[derive(Debug)]
pub(super) enum Reach {
    /// One row: the bound before it.
    Row(Bound),
    /// From the first to the last unfiltered. Its bounds have the wrong kinds if a deleted range is open at one end.
    Slice(Slice),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Zero,
    One,
    Many,
}

impl ClusteringSpan {
    pub(super) fn new(table: &TableSchema) -> Self {
        let lens = table.clustering().map(|column| column.ty.fixed_len());
        Self {
            comparator: ClusteringComparator::of(table),
            lens: lens
                .map(|len| len.and_then(|len| u32::try_from(len).ok()))
                .collect(),
            added: Added::Zero,
            first: None,
            last: Slab::default(),
            last_kind: None,
            is_told: false,
        }
    }

    #[inline]
    pub(super) fn begin_partition(&mut self) {
        self.added = Added::Zero;
    }

    /// True if no unfiltered was added since the start of the partition.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.added == Added::Zero
    }

    /// Adds an unfiltered; `clustering` are its values, or its bound, as stored in Data.db.
    #[inline(always)]
    pub(super) fn add(&mut self, written: Written<'_>, clustering: &[u8]) {
        let kind = written.kind();
        debug_assert!(
            self.ascends(&written.to_values(), kind),
            "unfiltereds come in clustering order"
        );
        self.last_kind = kind;
        if self.added != Added::Zero {
            self.added = Added::Many;
            self.last.clear();
            self.last.bytes(clustering);
            return;
        }
        self.added = Added::One;
        if kind.is_some() || !self.lens.is_empty() {
            self.first = Some(Bound::new(
                kind.unwrap_or(BoundKind::InclStart),
                written.to_values(),
            ));
        }
    }

    /// True if the unfiltered comes after the last one. Used in debug assertions only: too slow for every row of a release build.
    fn ascends(&self, values: &Values, kind: Option<BoundKind>) -> bool {
        if self.is_empty() {
            return true;
        }
        let (last, last_kind) = self.last();
        let comparator = &self.comparator;
        let clustering = |values: &Values| Clustering::new(values.clone());
        let bound = |kind: BoundKind, values: &Values| Bound::new(kind, values.clone());
        let order = match (last_kind, kind) {
            (None, None) => comparator.compare(&clustering(&last), &clustering(values)),
            (Some(before), None) => {
                comparator.compare_bound_to_row(&bound(before, &last), &clustering(values))
            }
            (None, Some(kind)) => comparator
                .compare_bound_to_row(&bound(kind, values), &clustering(&last))
                .reverse(),
            (Some(before), Some(kind)) => {
                comparator.compare_bounds(&bound(before, &last), &bound(kind, values))
            }
        };
        order.is_lt()
    }

    /// The clustering of the last unfiltered, as in Data.db. Requires: it is not the first.
    pub(super) fn last_stored(&self) -> &[u8] {
        self.last.as_slice()
    }

    /// The last unfiltered: its clustering values, and the kind of its bound if it is a marker.
    pub(super) fn last(&self) -> (Values, Option<BoundKind>) {
        let values = match self.added {
            Added::Many => self.decoded_last(),
            Added::One => self
                .first
                .as_ref()
                .map_or_else(Values::new, |first| first.values.clone()),
            Added::Zero => Values::new(),
        };
        (values, self.last_kind)
    }

    #[expect(clippy::expect_used, reason = "they were encoded for the same columns")]
    fn decoded_last(&self) -> Values {
        let (lens, bytes) = match self.last.as_slice().split_first_chunk::<BOUND_HEAD_BYTES>() {
            Some(([_, count @ ..], values)) if self.last_kind.is_some() => {
                let count = usize::from(u16::from_be_bytes(*count));
                (&self.lens[..count], values)
            }
            _ => (&self.lens[..], self.last.as_slice()),
        };
        decode_values(lens, &mut Reader::new(bytes)).expect("values can be read as they were written")
    }

    /// The clusterings of the partition; `None` if it is empty, or cannot widen the slice that was returned before.
    #[inline]
    pub(super) fn finish_partition(&mut self) -> Option<Reach> {
        let is_all_there_is = self.lens.is_empty() && self.first.is_none();
        if self.is_empty() || (is_all_there_is && self.is_told) {
            return None;
        }
        self.is_told |= is_all_there_is;
        Some(self.reach())
    }

    #[inline(never)]
    fn reach(&mut self) -> Reach {
        if self.added == Added::One
            && self.last_kind.is_none()
            && let Some(row) = self.first.take()
        {
            return Reach::Row(row);
        }
        Reach::Slice(self.slice())
    }

    fn slice(&mut self) -> Slice {
        let (values, kind) = self.last();
        let first = self.first.take();
        Slice {
            start: first.unwrap_or_else(|| Bound::new(BoundKind::InclStart, Values::new())),
            end: Bound::new(kind.unwrap_or(BoundKind::InclEnd), values),
        }
    }
}
