//! The body of a partition: rows and range tombstone markers, in clustering order.

use crate::{Bound, DeletionTime, Row};

/// A row or a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfiltered {
    /// A row.
    Row(Row),
    /// One end of a deleted range, or the boundary between two.
    Marker(Marker),
}

impl Unfiltered {
    /// The newest timestamp of its data and deletions; [`crate::NO_TIMESTAMP`] if there is none.
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

/// The start or end of a range deletion, or the boundary between two.
///
/// Invariant, in forward order: a start kind has `start` set, an end kind `end`, a boundary kind both. Reversed cursors return
/// markers with swapped sides: in the order of iteration, `end` is always the deletion that is open before the marker, `start`
/// the one that is open after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its position.
    pub bound: Bound,
    /// The deletion that ends here.
    pub end: Option<DeletionTime>,
    /// The deletion that starts here.
    pub start: Option<DeletionTime>,
}
