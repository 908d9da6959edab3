//! Entries of hidden tables of indexes: rows of nothing but their key and a liveness or a deletion.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::TableSchema;
use ilion_types::{Partitioner, Token};

use smallvec::SmallVec;

use crate::{Clustering, DecoratedKey, DeletionTime, Liveness, Mutation, PartitionUpdate, Row};

/// What entries point to. A row that gets another value has two entries: one that goes and one that comes.
#[derive(Clone, Copy, Debug)]
pub struct EntryPlace<'e> {
    /// The token of the first component of the clustering, which is a partition key of the indexed table.
    pub key_token: &'e Token,
    /// The clustering, all of it.
    pub clustering: &'e [Option<&'e [u8]>],
}

/// A change of one entry of a place. It has no memory of its own, since a write makes one for each index of its table.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    /// The partition key of the hidden table: the indexed value.
    pub value: &'e [u8],
    /// [`Liveness::NONE`] of an entry that is removed.
    pub liveness: Liveness,
    /// [`DeletionTime::LIVE`] of an entry that is added.
    pub deletion: DeletionTime,
}

impl<'e> Entry<'e> {
    /// One that is added.
    #[inline]
    pub fn added(value: &'e [u8], liveness: Liveness) -> Self {
        Self {
            value,
            liveness,
            deletion: DeletionTime::LIVE,
        }
    }

    /// One that is removed.
    #[inline]
    pub fn removed(value: &'e [u8], deletion: DeletionTime) -> Self {
        Self {
            value,
            liveness: Liveness::NONE,
            deletion,
        }
    }

    /// The same as a mutation of the hidden table.
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
        // A hidden table has an order of its own, whatever the node's partitioner.
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

/// An entry of a hidden table as it is read, its values where they lie.
#[derive(Clone, Debug)]
pub struct EntryRow<'e> {
    /// The clustering, all of it.
    pub clustering: SmallVec<[Option<&'e [u8]>; 4]>,
    /// [`Liveness::NONE`] of one that was removed.
    pub liveness: Liveness,
    /// [`DeletionTime::LIVE`] of one that was not removed.
    pub deletion: DeletionTime,
}

impl EntryRow<'_> {
    /// The same as a row that owns its values.
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
