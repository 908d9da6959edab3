//! The results of an index: places of rows that may match.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, KeyBound, ReadError, Row};

/// A row of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowPart {
    /// The static row: every row of the partition may match.
    Static,
    /// One row.
    Row(Clustering),
}

/// The place of a row in a table. Places are ordered like reads: token, key, static row, rows by clustering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition.
    pub key: DecoratedKey,
    /// The row of the partition.
    pub row: RowPart,
}

impl Place {
    /// The first place of a partition.
    pub fn start_of(key: DecoratedKey) -> Self {
        Self {
            key,
            row: RowPart::Static,
        }
    }

    /// A place before all places of partitions behind this bound, to start a search at; `None` for the start of the table, since a search
    /// begins there anyway, and for its end, behind which there is no partition.
    pub fn first_of(bound: &KeyBound) -> Option<Self> {
        let key = match bound {
            KeyBound::Start | KeyBound::End => return None,
            KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => DecoratedKey {
                token: token.clone(),
                key: Bytes::new(),
            },
            KeyBound::Before(key) | KeyBound::After(key) => key.clone(),
        };
        Some(Self::start_of(key))
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

/// The entry of a hidden table that a candidate comes from, so that it can be removed if it is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMark {
    /// The partition of the hidden table: the indexed value.
    pub value: DecoratedKey,
    /// The row of that partition.
    pub clustering: Clustering,
    /// The timestamp of the entry. Its removal uses the same timestamp, so it hides no newer entry.
    pub timestamp_micros: i64,
    /// True if the entry has a TTL. Such an entry is not removed, since a later write with the same timestamp may outlive it.
    pub is_expiring: bool,
}

/// A row that may match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The row.
    pub place: Place,
    /// The entry that it comes from, if entries of this index can be stale.
    pub entry: Option<EntryMark>,
}

/// Returns candidates in ascending order of their places, each place once.
pub trait Candidates: Send {
    /// The next candidate.
    ///
    /// # Errors
    /// A source cannot be read.
    fn next(&mut self) -> Result<Option<Candidate>, ReadError>;

    /// Skips all candidates before a place. Never goes back.
    ///
    /// # Errors
    /// A source cannot be read.
    fn seek(&mut self, place: &Place) -> Result<(), ReadError>;

    /// Reports the row that was read for a candidate (`None` if it is not live), so that a stale entry can be removed. For a
    /// candidate of [`RowPart::Static`], this is the static row.
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

/// Returns candidates roughly in order of their score, for `ORDER BY column ANN OF vector`. A place may come more than once,
/// with scores of old values.
pub trait Ranked: Send {
    /// The next place and its score; a higher score is nearer.
    ///
    /// # Errors
    /// A source cannot be read.
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError>;
}
