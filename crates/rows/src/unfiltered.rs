//! What a partition consists of below its head: rows and range tombstone markers, in clustering order.

use crate::{Bound, DeletionTime, Row};

/// A row or a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfiltered {
    /// A row.
    Row(Row),
    /// An end of a deleted range.
    Marker(Marker),
}

impl Unfiltered {
    /// The newest timestamp of what it says, of deletions as well; [`crate::NO_TIMESTAMP`] if there is none.
    pub fn newest_micros(&self) -> i64 {
        match self {
            Self::Row(row) => row.newest_micros(),
            Self::Marker(marker) => {
                let sides = [marker.end, marker.start].into_iter().flatten();
                sides.fold(crate::NO_TIMESTAMP, |newest, side| {
                    newest.max(side.marked_at_micros)
                })
            }
        }
    }
}

/// Where a range deletion starts, ends, or gives way to another.
///
/// Invariant: in forward order, `Bound::kind` is a start kind and `start` is set, or an end kind and `end` is set, or a
/// boundary kind and both are. Reversed cursors give markers with the sides as met: `end` is always the deletion that
/// was open before (in the order of iteration), `start` the one that is open after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Position.
    pub bound: Bound,
    /// The deletion that ends here.
    pub end: Option<DeletionTime>,
    /// The deletion that starts here.
    pub start: Option<DeletionTime>,
}
