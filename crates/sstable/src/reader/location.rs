//! Where a partition is: what every kind of partition index gives.

use bytes::Bytes;

/// Where a partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// In uncompressed Data.db.
    pub(crate) position: u64,
    /// The index had the whole key. Else what is there may be a partition with another one.
    pub(crate) is_certain: bool,
    /// Its row index, if it has one.
    pub(crate) row_index: Option<RowIndexAt>,
    /// Where the index has the entry of a partition with a row index, if only that is known of it.
    pub(crate) entry_at: Option<u64>,
}

/// Where the row index of a partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowIndexAt {
    /// A promoted index in Index.db.
    Promoted {
        /// Where it starts.
        position: u64,
        /// Its bytes.
        size: u64,
    },
    /// A trie in Rows.db, with its root there.
    Trie {
        /// Where the root is.
        root: u64,
        /// Where the rest of its head is: the number of blocks and the partition's deletion.
        rest: u64,
    },
}

/// One entry of a partition index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Nothing: it is to be read in Data.db.
    pub(crate) key: Option<Bytes>,
    pub(crate) location: Location,
}
