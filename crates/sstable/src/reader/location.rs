//! The location of a partition, which every kind of partition index returns.

use bytes::Bytes;

/// The location of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// Position in uncompressed Data.db.
    pub(crate) position: u64,
    /// True if the index has the whole key. If false, the partition at this position may have another key.
    pub(crate) is_certain: bool,
    /// The location of the partition's row index, if it has one.
    pub(crate) row_index: Option<RowIndexAt>,
    /// The offset of the partition's entry in the index, if the row index must be looked up there.
    pub(crate) entry_at: Option<u64>,
}

/// The location of a partition's row index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowIndexAt {
    /// A promoted index in Index.db.
    Promoted {
        /// Offset in Index.db.
        position: u64,
        /// Size in bytes.
        size: u64,
    },
    /// A trie in Rows.db.
    Trie {
        /// Offset of the root in Rows.db.
        root: u64,
        /// Offset of the rest of the header: the number of blocks and the partition's deletion.
        rest: u64,
    },
}

/// An entry of a partition index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// The partition key; `None` if it must be read from Data.db.
    pub(crate) key: Option<Bytes>,
    pub(crate) location: Location,
}
