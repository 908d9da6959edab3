//! A row in a memtable: packed if it is short, else a [`Row`] as readers get it.

use std::cmp::Ordering;
use std::sync::Arc;

use ilion_rows::{Before, Bound, ClusteringComparator, DeletionTime, Row, Values};
use ilion_schema::TableSchema;

use crate::arena::Arena;
use crate::observed::Observer;
use crate::packed::Packed;

/// A row of a memtable. A clone shares its memory.
#[derive(Clone, Debug)]
pub(crate) enum StoredRow {
    /// A short row, or a deletion of a row.
    Packed(Packed),
    /// A row that is large, has both data and a deletion, or has a column of many cells.
    Built(Arc<Row>),
}

/// Approximate overhead of an allocation in bytes.
const ALLOCATION_BYTES: usize = 16;
/// Bytes that [`bytes::Bytes`] allocate in addition, once they are shared.
const SHARED_BYTES: usize = 32;

impl StoredRow {
    /// A copy of a row. Requires: the row is not empty.
    pub(crate) fn copy_of(row: &Row) -> Self {
        match Packed::of(row) {
            Some(packed) => Self::Packed(packed),
            None => Self::Built(Arc::new(row.detached())),
        }
    }

    /// As [`Self::copy_of`], but copies only a short row.
    fn of(row: Row) -> Self {
        match Packed::of(&row) {
            Some(packed) => Self::Packed(packed),
            None => Self::Built(Arc::new(row)),
        }
    }

    /// Moves the row into an arena, if it is packed and short enough; else returns it unchanged.
    pub(crate) fn moved_to(self, arena: &mut Arena) -> Self {
        match self {
            Self::Packed(packed) => Self::Packed(packed.moved_to(arena)),
            built => built,
        }
    }

    /// Memory of the row in bytes, including its bytes in an arena.
    pub(crate) fn size_bytes(&self) -> usize {
        let in_arena = match self {
            Self::Packed(packed) if packed.is_in_arena() => packed.size_bytes(),
            _ => 0,
        };
        self.own_bytes() + in_arena
    }

    /// Bytes of memory that are freed with the row. Bytes in an arena are not counted: the arena's chunk frees them later.
    pub(crate) fn own_bytes(&self) -> usize {
        let own = match self {
            Self::Packed(packed) if packed.is_in_arena() => 0,
            Self::Packed(packed) => ALLOCATION_BYTES + SHARED_BYTES + packed.size_bytes(),
            Self::Built(row) => ALLOCATION_BYTES + row.size_bytes(),
        };
        size_of::<Self>() + own
    }

    /// The row as readers get it.
    #[inline]
    pub(crate) fn row(&self) -> Row {
        match self {
            Self::Packed(packed) => packed.row(),
            Self::Built(row) => Row::clone(row),
        }
    }

    /// True if the row is a deletion and has nothing else.
    #[inline]
    pub(crate) fn is_deletion(&self) -> bool {
        match self {
            Self::Packed(packed) => packed.is_deletion(),
            Self::Built(row) => row.is_deletion(),
        }
    }

    /// Compares the clustering of a row with this one.
    #[inline]
    pub(crate) fn compare(&self, values: &Values, comparator: &ClusteringComparator) -> Ordering {
        let values = values.iter().map(Option::as_deref);
        match self {
            Self::Packed(packed) => comparator.compare_leading(packed.clustering(), values),
            Self::Built(row) => {
                let own = row.clustering.values().iter().map(Option::as_deref);
                comparator.compare_leading(own, values)
            }
        }
    }

    /// True if the row is before `bound`.
    #[inline]
    pub(crate) fn is_before(&self, bound: &Bound, comparator: &ClusteringComparator) -> bool {
        match self.compare(&bound.values, comparator) {
            Ordering::Less => true,
            Ordering::Equal => !bound.kind.is_before(),
            Ordering::Greater => false,
        }
    }

    /// Merges another row of the same clustering. Returns by how many bytes the stored row grew.
    pub(crate) fn merge(&mut self, other: Self, table: &TableSchema) -> isize {
        if let Self::Built(known) = self {
            return Arc::make_mut(known).merge(other.into_row(), table);
        }
        let before = self.own_bytes();
        match (&*self, &other) {
            (Self::Packed(known), Self::Packed(new)) if !table.is_counter() && new.replaces(known) => {
                *self = other;
            }
            _ => {
                let mut row = self.row();
                row.merge(other.into_row(), table);
                *self = Self::of(row);
            }
        }
        self.own_bytes().cast_signed() - before.cast_signed()
    }

    /// As [`Self::merge`], and shows the change to an observer; `shown` has the contents of `other`.
    pub(crate) fn merge_shown(
        &mut self,
        other: Self,
        shown: &Row,
        table: &TableSchema,
        observer: &mut Observer<'_>,
    ) -> isize {
        let before = self.own_bytes();
        match (&mut *self, &other) {
            (Self::Built(known), _) => {
                let old = observer.observed.part_of(known);
                let grown = Arc::make_mut(known).merge(other.into_row(), table);
                observer.show(Some(Before::Row(&old)), known);
                return grown;
            }
            (Self::Packed(known), Self::Packed(new)) if !table.is_counter() && new.replaces(known) => {
                known.show_change(shown, observer);
                *self = other;
            }
            (Self::Packed(known), _) => {
                let mut row = known.row();
                row.merge(other.into_row(), table);
                known.show_change(&row, observer);
                *self = Self::of(row);
            }
        }
        self.own_bytes().cast_signed() - before.cast_signed()
    }

    fn into_row(self) -> Row {
        match self {
            Self::Packed(packed) => packed.row(),
            Self::Built(row) => Arc::unwrap_or_clone(row),
        }
    }

    /// Removes the parts of the row that a partition deletion covers. Returns false if the row is empty afterwards.
    pub(crate) fn shadow(&mut self, deletion: DeletionTime) -> bool {
        if deletion.is_live() {
            return true;
        }
        let mut row = match self {
            Self::Packed(packed) if packed.is_newer_than(deletion) => return true,
            Self::Packed(packed) => packed.row(),
            Self::Built(row) => {
                let row = Arc::make_mut(row);
                row.shadow(deletion);
                return !row.is_empty();
            }
        };
        row.shadow(deletion);
        let is_left = !row.is_empty();
        if is_left {
            *self = Self::of(row);
        }
        is_left
    }
}
