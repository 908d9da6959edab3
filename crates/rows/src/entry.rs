//! Entries of hidden tables of indexes: rows with a key and a liveness or a deletion, and no columns.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::TableSchema;
use ilion_types::{Partitioner, Token};

use smallvec::SmallVec;

use crate::{Clustering, DecoratedKey, DeletionTime, Liveness, Mutation, PartitionUpdate, Row};

/// The indexed row that entries point to. A row whose value changes has two entries: the old one is removed, the new one added.
#[derive(Clone, Copy, Debug)]
pub struct EntryPlace<'e> {
    /// The token of the first component of the clustering, which is a partition key of the indexed table.
    pub key_token: &'e Token,
    /// The whole clustering of the entry.
    pub clustering: &'e [Option<&'e [u8]>],
}

/// A change of one entry. It borrows its value, since each write makes one entry per index of its table.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    /// The partition key of the hidden table: the indexed value.
    pub value: &'e [u8],
    /// [`Liveness::NONE`] if the entry is removed.
    pub liveness: Liveness,
    /// [`DeletionTime::LIVE`] if the entry is added.
    pub deletion: DeletionTime,
    /// True if the entry is added, and was not there before, as far as the table's memtable knows.
    pub is_first: bool,
}

impl<'e> Entry<'e> {
    /// An entry that is added, or written again.
    #[inline]
    pub fn added(value: &'e [u8], liveness: Liveness) -> Self {
        Self {
            value,
            liveness,
            deletion: DeletionTime::LIVE,
            is_first: false,
        }
    }

    /// An entry that is removed.
    #[inline]
    pub fn removed(value: &'e [u8], deletion: DeletionTime) -> Self {
        Self {
            value,
            liveness: Liveness::NONE,
            deletion,
            is_first: false,
        }
    }

    /// This change as a mutation of the hidden table.
    pub fn to_mutation(&self, place: &EntryPlace<'_>, hidden: &Arc<TableSchema>) -> Mutation {
        let values = place
            .clustering
            .iter()
            .map(|value| value.map(Bytes::copy_from_slice));
        let row = Row {
            liveness: self.liveness,
            deletion: self.deletion,
            ..Row::empty(Clustering::new(values.collect()))
        };
        // A hidden table has its own partitioner; that of the node does not matter.
        let partitioner = hidden.partitioner(Partitioner::default());
        Mutation {
            table: hidden.clone(),
            key: DecoratedKey::new(partitioner, Bytes::copy_from_slice(self.value)),
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        }
    }
}

/// An entry of a hidden table as it was read; it borrows its values.
#[derive(Clone, Debug)]
pub struct EntryRow<'e> {
    /// The whole clustering of the entry.
    pub clustering: SmallVec<[Option<&'e [u8]>; 4]>,
    /// [`Liveness::NONE`] if the entry was removed.
    pub liveness: Liveness,
    /// [`DeletionTime::LIVE`] if the entry was not removed.
    pub deletion: DeletionTime,
}

impl EntryRow<'_> {
    /// This entry as a row that owns its values.
    pub fn to_row(&self) -> Row {
        let values = self.clustering.iter();
        let values = values.map(|value| value.map(Bytes::copy_from_slice));
        Row {
            liveness: self.liveness,
            deletion: self.deletion,
            ..Row::empty(Clustering::new(values.collect()))
        }
    }
}
