//! What an index answers: places of rows that may match.

use std::cmp::Ordering;

use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, ReadError, Row};

/// Which row of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowPart {
    /// The static row: every row of the partition may match.
    Static,
    /// One row.
    Row(Clustering),
}

/// A place in a table, in the order of reads: token, key, static row, rows by clustering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition.
    pub key: DecoratedKey,
    /// The row in it.
    pub row: RowPart,
}

impl Place {
    /// Before everything of a partition.
    pub fn start_of(key: DecoratedKey) -> Self {
        Self {
            key,
            row: RowPart::Static,
        }
    }

    /// Orders two places of the same table.
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        self.key
            .cmp(&other.key)
            .then_with(|| match (&self.row, &other.row) {
                (RowPart::Static, RowPart::Static) => Ordering::Equal,
                (RowPart::Static, RowPart::Row(_)) => Ordering::Less,
                (RowPart::Row(_), RowPart::Static) => Ordering::Greater,
                (RowPart::Row(a), RowPart::Row(b)) => comparator.compare(a, b),
            })
    }
}

/// Which entry of a hidden table a candidate comes from, so that it can be removed once it is seen to be stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMark {
    /// The partition of the hidden table: the indexed value.
    pub value: DecoratedKey,
    /// The row in it.
    pub clustering: Clustering,
    /// The timestamp of the entry. Its removal has the same, so that it hides no newer entry.
    pub timestamp_micros: i64,
    /// True if the entry expires by itself: then it is left alone, since a later write of the same time may outlive it.
    pub is_expiring: bool,
}

/// A row that may match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub place: Place,
    /// Where that was found, if that can be stale and removed.
    pub entry: Option<EntryMark>,
}

/// Gives candidates in ascending order of their places, each place once.
pub trait Candidates: Send {
    /// The next candidate.
    ///
    /// # Errors
    /// A source cannot be read.
    fn next(&mut self) -> Result<Option<Candidate>, ReadError>;

    /// Passes over everything before a place. Never goes back.
    ///
    /// # Errors
    /// A source cannot be read.
    fn seek(&mut self, place: &Place) -> Result<(), ReadError>;

    /// Tells what was read for a candidate, the row as it lives now (nothing: it does not), so that a stale entry can be removed.
    /// For a candidate of [`RowPart::Static`] it is the static row.
    fn met(&mut self, _candidate: &Candidate, _row: Option<&Row>) {}
}

impl<C: Candidates + ?Sized> Candidates for Box<C> {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        (**self).next()
    }

    fn seek(&mut self, place: &Place) -> Result<(), ReadError> {
        (**self).seek(place)
    }

    fn met(&mut self, candidate: &Candidate, row: Option<&Row>) {
        (**self).met(candidate, row);
    }
}

/// No candidates.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCandidates;

impl Candidates for NoCandidates {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        Ok(None)
    }

    fn seek(&mut self, _place: &Place) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Gives candidates about best first, for `ORDER BY column ANN OF vector`. The same place may come more than once, with
/// scores of old values.
pub trait Ranked: Send {
    /// The next place with its score; the higher the nearer.
    ///
    /// # Errors
    /// A source cannot be read.
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError>;
}
