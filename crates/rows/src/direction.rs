//! [`Direction`]: in which order a read returns the rows of a partition.

use std::cmp::Ordering;

/// The direction of a read inside partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In stored order.
    Forward,
    /// From the last to the first.
    Reversed,
}

impl Direction {
    /// `Reversed` if the flag is true.
    pub fn of(reversed: bool) -> Self {
        if reversed { Self::Reversed } else { Self::Forward }
    }

    /// The order in which a read of this direction returns two rows with the stored order `stored`.
    #[inline]
    #[must_use]
    pub fn order(self, stored: Ordering) -> Ordering {
        match self {
            Self::Forward => stored,
            Self::Reversed => stored.reverse(),
        }
    }
}
