//! A scan that refuses what is out of order: merges and writers rely on the order, and a file without checksums may have
//! lost it.

use std::cmp::Ordering;
use std::path::PathBuf;

use ilion_rows::{
    Bound, Clustering, ClusteringComparator, Cursor, DecoratedKey, DeletionTime, PartitionHead, ReadError,
    Unfiltered,
};
use ilion_sstable::{Component, DataScan};

use super::shape::Shape;
use super::source::Source;

/// Where the row or marker before stands.
enum Place {
    Row(Clustering),
    Bound(Bound),
}

/// Partitions, rows and markers in order, each deleted range closed.
pub(super) struct OrderedScan {
    scan: DataScan,
    comparator: ClusteringComparator,
    file: PathBuf,
    last_key: Option<DecoratedKey>,
    last: Option<Place>,
    open: Option<DeletionTime>,
}

impl OrderedScan {
    /// The rows of a source as those of a table that may have more columns.
    pub(super) fn new(source: &Source, shape: &Shape) -> anyhow::Result<Self> {
        Ok(Self {
            scan: source.sstable.data_scan(&shape.table)?,
            comparator: ClusteringComparator::of(&shape.table),
            file: source.sstable.descriptor().path(&Component::Data),
            last_key: None,
            last: None,
            open: None,
        })
    }

    pub(super) fn position(&self) -> u64 {
        self.scan.position()
    }

    pub(super) fn data_length(&self) -> u64 {
        self.scan.data_length()
    }

    fn corrupt(&self, offset: u64, expected: &str) -> ReadError {
        ReadError::Corrupt {
            file: self.file.clone(),
            offset,
            expected: expected.to_owned(),
        }
    }

    fn ascends(&self, next: &Unfiltered) -> bool {
        let comparator = &self.comparator;
        let order = match (&self.last, next) {
            (None, _) => Ordering::Less,
            (Some(Place::Row(last)), Unfiltered::Row(row)) => comparator.compare(last, &row.clustering),
            (Some(Place::Row(last)), Unfiltered::Marker(marker)) => {
                comparator.compare_bound_to_row(&marker.bound, last).reverse()
            }
            (Some(Place::Bound(last)), Unfiltered::Row(row)) => {
                comparator.compare_bound_to_row(last, &row.clustering)
            }
            (Some(Place::Bound(last)), Unfiltered::Marker(marker)) => {
                comparator.compare_bounds(last, &marker.bound)
            }
        };
        order.is_lt()
    }
}

impl Cursor for OrderedScan {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        // What is left of the partition before has to be in order, too.
        while self.next_unfiltered()?.is_some() {}
        let start = self.scan.position();
        let Some(head) = self.scan.next_partition()? else {
            return Ok(None);
        };
        if self.last_key.as_ref().is_some_and(|last| *last >= head.key) {
            return Err(self.corrupt(
                start,
                "a partition whose key is above that of the partition before",
            ));
        }
        self.last_key = Some(head.key.clone());
        self.last = None;
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let start = self.scan.position();
        let next = self.scan.next_unfiltered()?;
        let Some(unfiltered) = &next else {
            return match self.open.take() {
                None => Ok(None),
                Some(_) => {
                    Err(self.corrupt(start, "no deleted range that is open at the end of its partition"))
                }
            };
        };
        if !self.ascends(unfiltered) {
            return Err(self.corrupt(start, "a row or marker that sorts above the one before"));
        }
        self.last = Some(match unfiltered {
            Unfiltered::Row(row) => Place::Row(row.clustering.clone()),
            Unfiltered::Marker(marker) => {
                if marker.end != self.open {
                    return Err(self.corrupt(start, "a marker that ends the deletion that is open before it"));
                }
                self.open = marker.start;
                Place::Bound(marker.bound.clone())
            }
        });
        Ok(next)
    }
}
