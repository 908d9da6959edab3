//! Reads the entries of a partition index, for tools: works as far as the index is readable, even if other components of the SSTable
//! are damaged.

use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;
use ilion_rows::{DeletionTime, KeyBound};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

use super::block_index::BlockIndex;
use super::index_walker::IndexWalker;
use super::location::RowIndexAt;
use super::partition_index::IndexCursor;
use super::partition_trie::PartitionTrie;
use super::row_trie::BlockStarts;
use crate::chunks::READ_AHEAD_BYTES;
use crate::row::decode::RowFormat;
use crate::{ChunkReader, Component, Descriptor, Format, Result, Scan, SerializationHeader};

/// An entry of the index.
#[derive(Clone, Debug)]
pub struct IndexedPartition {
    /// The partition key; `None` if the index does not have whole keys.
    pub key: Option<Bytes>,
    /// Position of the partition in uncompressed Data.db.
    pub position: u64,
    row_index: Option<RowIndexAt>,
}

/// The start of a block of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAt {
    /// Position in uncompressed Data.db.
    pub position: u64,
    /// The deletion that is open there.
    pub open: Option<DeletionTime>,
}

/// A scan of the index.
#[derive(Debug)]
pub struct IndexScan {
    cursor: IndexCursor,
    row_indexes: Arc<ChunkReader>,
    format: Arc<RowFormat>,
}

impl IndexScan {
    /// Opens the index.
    ///
    /// # Errors
    /// The index is missing, or its start or end is damaged.
    pub fn open(
        env: &dyn Env,
        descriptor: &Descriptor,
        data: &Arc<ChunkReader>,
        header: &SerializationHeader,
        table: &Arc<TableSchema>,
        partitioner: Partitioner,
    ) -> Result<Self> {
        let open = |component: Component| {
            ChunkReader::open_unchecked(env, &descriptor.path(&component), None).map(Arc::new)
        };
        let format = Arc::new(RowFormat::of(header, descriptor.version, table)?);
        if descriptor.format == Format::Big {
            let index = open(Component::Index)?;
            return Ok(Self {
                cursor: IndexCursor::Sorted(IndexWalker::sequential(&index, 0, READ_AHEAD_BYTES)),
                row_indexes: index,
                format,
            });
        }
        let (partitions, rows) = (open(Component::Partitions)?, open(Component::Rows)?);
        let trie = Arc::new(PartitionTrie::open(
            partitions,
            rows.clone(),
            data.clone(),
            partitioner,
        )?);
        let walker = trie.walk_above(&KeyBound::Start, Scan::Point, partitioner, env)?;
        Ok(Self {
            cursor: IndexCursor::Trie(walker),
            row_indexes: rows,
            format,
        })
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// The index is damaged; the scan cannot continue.
    pub fn next_partition(&mut self) -> Result<Option<IndexedPartition>> {
        let entry = self.cursor.next_entry()?;
        Ok(entry.map(|entry| IndexedPartition {
            key: entry.key,
            position: entry.location.position,
            row_index: entry.location.row_index,
        }))
    }

    /// The starts of the blocks of a partition; empty without a row index.
    ///
    /// # Errors
    /// The row index is damaged.
    pub fn blocks(&self, partition: &IndexedPartition) -> Result<Vec<BlockAt>> {
        let (file, format) = (self.row_indexes.clone(), self.format.clone());
        let mut blocks = Vec::new();
        let mut add = |offset: u64, open: Option<DeletionTime>| {
            blocks.push(BlockAt {
                position: partition.position.saturating_add(offset),
                open,
            });
        };
        match &partition.row_index {
            None => {}
            Some(RowIndexAt::Promoted { position, size }) => {
                let index = BlockIndex::open(file, format, *position, *size)?;
                let mut open = None;
                for at in 0..index.count {
                    let block = index.block(at)?;
                    add(block.offset, open);
                    open = block.open;
                }
            }
            Some(RowIndexAt::Trie { root, .. }) => {
                let starts = BlockStarts::gather(file, format, *root)?;
                for at in 0..starts.as_ref().map_or(0, BlockStarts::block_count) {
                    let start = starts
                        .as_ref()
                        .and_then(|starts| starts.get(usize::try_from(at).ok()?));
                    if let Some((offset, open)) = start {
                        add(offset, open);
                    }
                }
            }
        }
        Ok(blocks)
    }
}
