//! The position of a scan, and the check that the next item sorts after it.
//!
//! The previous key and clustering are copied into reused buffers, since items that are visited in place do not stay in memory.

use std::cmp::Ordering;

use ilion_rows::{Bound, ClusteringComparator, DeletionTime, Unfiltered};
use ilion_schema::TableSchema;
use ilion_types::Token;

/// The previous item in the partition.
#[derive(Debug)]
enum Previous {
    Start,
    /// A row, whose clustering was copied.
    Row,
    Bound(Bound),
}

/// The previous key and item; the next ones must sort after them.
#[derive(Debug)]
pub(super) struct Order {
    comparator: ClusteringComparator,
    /// `None` before the first partition.
    token: Option<Token>,
    key: Vec<u8>,
    previous: Previous,
    clustering: Copied,
    open: Option<DeletionTime>,
}

/// A copy of the values of a clustering.
#[derive(Debug, Default)]
struct Copied {
    bytes: Vec<u8>,
    lens: Vec<Option<usize>>,
}

impl Copied {
    fn take<'v>(&mut self, values: impl Iterator<Item = Option<&'v [u8]>>) {
        self.bytes.clear();
        self.lens.clear();
        for value in values {
            self.bytes.extend_from_slice(value.unwrap_or_default());
            self.lens.push(value.map(<[u8]>::len));
        }
    }

    fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut rest = &self.bytes[..];
        self.lens.iter().map(move |len| {
            let (value, left) = rest.split_at_checked((*len)?)?;
            rest = left;
            Some(value)
        })
    }
}

impl Order {
    pub(super) fn of(table: &TableSchema) -> Self {
        Self {
            comparator: ClusteringComparator::of(table),
            token: None,
            key: Vec::new(),
            previous: Previous::Start,
            clustering: Copied::default(),
            open: None,
        }
    }

    /// True if a partition with this key may come next.
    pub(super) fn admits_key(&self, token: &Token, key: &[u8]) -> bool {
        self.token
            .as_ref()
            .is_none_or(|last| (last, &self.key[..]) < (token, key))
    }

    /// Begins a partition.
    pub(super) fn begin(&mut self, token: &Token, key: &[u8]) {
        match (&mut self.token, token) {
            (Some(Token::Murmur3(last)), Token::Murmur3(hash)) => *last = *hash,
            (last, token) => *last = Some(token.clone()),
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.previous = Previous::Start;
    }

    /// Checks that the partition may end.
    pub(super) fn end(&mut self) -> Result<(), &'static str> {
        match self.open.take() {
            None => Ok(()),
            Some(_) => Err("no deleted range that is open at the end of its partition"),
        }
    }

    /// Checks a row or marker, and makes it the previous item.
    pub(super) fn pass(&mut self, unfiltered: &Unfiltered) -> Result<(), &'static str> {
        if !self.admits(unfiltered) {
            return Err("a row or marker that sorts above the one before");
        }
        match unfiltered {
            Unfiltered::Row(row) => self.pass_row(row.clustering.values().iter().map(Option::as_deref)),
            Unfiltered::Marker(marker) => {
                if marker.end != self.open {
                    return Err("a marker that ends the deletion that is open before it");
                }
                self.open = marker.start;
                self.previous = Previous::Bound(marker.bound.clone());
            }
        }
        Ok(())
    }

    fn admits(&self, next: &Unfiltered) -> bool {
        let comparator = &self.comparator;
        let order = match (&self.previous, next) {
            (Previous::Start, _) => Ordering::Less,
            (Previous::Row, Unfiltered::Row(row)) => {
                let values = row.clustering.values().iter().map(Option::as_deref);
                comparator.compare_leading(self.clustering.values(), values)
            }
            (Previous::Row, Unfiltered::Marker(marker)) => {
                let values: Vec<_> = self.clustering.values().collect();
                comparator
                    .compare_bound_to_values(&marker.bound, &values)
                    .reverse()
            }
            (Previous::Bound(last), Unfiltered::Row(row)) => {
                comparator.compare_bound_to_row(last, &row.clustering)
            }
            (Previous::Bound(last), Unfiltered::Marker(marker)) => {
                comparator.compare_bounds(last, &marker.bound)
            }
        };
        order.is_lt()
    }

    /// True if a row with these clustering values may come next.
    pub(super) fn admits_row(&self, clustering: &[Option<&[u8]>]) -> bool {
        match &self.previous {
            Previous::Start => true,
            Previous::Row => {
                let before = self.clustering.values();
                self.comparator
                    .compare_leading(before, clustering.iter().copied())
                    .is_lt()
            }
            Previous::Bound(last) => self.comparator.compare_bound_to_values(last, clustering).is_lt(),
        }
    }

    /// The comparator of the table.
    pub(super) fn comparator(&self) -> &ClusteringComparator {
        &self.comparator
    }

    /// Makes a row with these clustering values the previous item.
    pub(super) fn pass_row<'v>(&mut self, clustering: impl Iterator<Item = Option<&'v [u8]>>) {
        self.clustering.take(clustering);
        self.previous = Previous::Row;
    }
}
