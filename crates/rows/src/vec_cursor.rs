//! A cursor over partitions in memory, for tests and for tables that the server computes.

use crate::{
    ClusteringComparator, Cursor, DecoratedKey, DeletionTime, Direction, Markers, PartitionHead,
    PartitionUpdate, RangeList, ReadError, Slice, Unfiltered,
};

/// A whole partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Key, partition deletion and static row.
    pub head: PartitionHead,
    /// Rows and markers in the order of reading.
    pub unfiltereds: Vec<Unfiltered>,
}

impl Partition {
    /// The partition that results from applying an update to an empty partition. Deletions do not remove rows of the same update.
    pub fn of(key: DecoratedKey, update: PartitionUpdate, comparator: &ClusteringComparator) -> Self {
        let head = PartitionHead {
            key,
            deletion: update.deletion.unwrap_or(DeletionTime::LIVE),
            static_row: update.static_row,
        };
        let ranges = RangeList::of(update.ranges, comparator);
        let mut markers = Markers::new(
            ranges.into(),
            Slice::all(),
            Direction::Forward,
            comparator.clone(),
        )
        .peekable();
        let mut unfiltereds = Vec::with_capacity(update.rows.len());
        for row in update.rows {
            while let Some(marker) = markers.next_if(|marker| {
                comparator
                    .compare_bound_to_row(&marker.bound, &row.clustering)
                    .is_lt()
            }) {
                unfiltereds.push(Unfiltered::Marker(marker));
            }
            unfiltereds.push(Unfiltered::Row(row));
        }
        unfiltereds.extend(markers.map(Unfiltered::Marker));
        Self { head, unfiltereds }
    }

    /// Reads the next partition of `cursor` to its end; `None` if there are no more partitions.
    ///
    /// # Errors
    /// The cursor fails.
    pub fn read_next(cursor: &mut dyn Cursor) -> Result<Option<Self>, ReadError> {
        let Some(head) = cursor.next_partition()? else {
            return Ok(None);
        };
        let mut unfiltereds = Vec::new();
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            unfiltereds.push(unfiltered);
        }
        Ok(Some(Self { head, unfiltereds }))
    }
}

/// A cursor over a vector of partitions.
#[derive(Debug)]
pub struct VecCursor {
    partitions: std::vec::IntoIter<Partition>,
    unfiltereds: std::vec::IntoIter<Unfiltered>,
}

impl VecCursor {
    /// Reads `partitions`, which ascend by key without duplicates.
    pub fn new(partitions: Vec<Partition>) -> Self {
        debug_assert!(partitions.is_sorted_by(|a, b| a.head.key < b.head.key));
        Self {
            partitions: partitions.into_iter(),
            unfiltereds: Vec::new().into_iter(),
        }
    }
}

impl Cursor for VecCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(Partition { head, unfiltereds }) = self.partitions.next() else {
            self.unfiltereds = Vec::new().into_iter();
            return Ok(None);
        };
        self.unfiltereds = unfiltereds.into_iter();
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.unfiltereds.next())
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        let next = self.partitions.as_slice().first();
        next.map(|partition| partition.head.key.clone())
    }

    crate::cursor_methods!(without: peek plain_partitions plain_rows skip_deleted);
}
