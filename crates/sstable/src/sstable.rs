//! One SSTable, open for reads by many threads.
//!
//! In memory: the summary, the Bloom filter, the chunk map, the statistics. Index.db and Data.db are read as needed.

use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyBound, KeyRange, ReadError};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;
use parking_lot::RwLock;

use crate::chunks::READ_AHEAD_BYTES;
use crate::open::OpenedParts;
use crate::reader::{IndexWalker, Location, PartitionReader};
use crate::row_decode::RowFormat;
use crate::{
    BloomFilter, ChunkCache, DataStream, Descriptor, KeyHash, PartitionCursor, RangeCursor, Result,
    SerializationHeader, StatsMetadata,
};

/// How an SSTable is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// What the keys are ordered by.
    pub partitioner: Partitioner,
    /// Where decompressed chunks are kept; without it, every read decompresses.
    pub chunk_cache: Option<Arc<ChunkCache>>,
}

/// How a cursor reads Data.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Chunk by chunk, through the cache.
    Point,
    /// Much at once, past the cache.
    Sequential,
}

/// An SSTable, open for reads.
pub struct SSTable {
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    partitioner: Partitioner,
    parts: OpenedParts,
    /// The format for the table that was last asked for. Held only to swap it.
    format: RwLock<Option<Arc<RowFormat>>>,
}

impl SSTable {
    /// Opens an SSTable. Data.db is not read; a Summary.db that is missing or damaged is made again in memory, a
    /// Filter.db that is missing or damaged is done without.
    ///
    /// # Errors
    /// A component that is needed is damaged or missing, or the version cannot be read.
    pub fn open(env: &Arc<dyn Env>, descriptor: &Descriptor, options: &OpenOptions) -> Result<Self> {
        Ok(Self {
            env: env.clone(),
            descriptor: descriptor.clone(),
            partitioner: options.partitioner,
            parts: OpenedParts::open(env.as_ref(), descriptor, options)?,
            format: RwLock::new(None),
        })
    }

    /// Which SSTable it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Bytes of all its components when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.parts.size_bytes
    }

    /// Uncompressed bytes of its data.
    pub fn data_length(&self) -> u64 {
        self.parts.data.data_length()
    }

    /// About how many partitions it has.
    pub fn estimated_keys(&self) -> u64 {
        self.parts.estimated_keys()
    }

    /// Its first partition's key.
    pub fn first_key(&self) -> &DecoratedKey {
        &self.parts.summary.first
    }

    /// Its last partition's key.
    pub fn last_key(&self) -> &DecoratedKey {
        &self.parts.summary.last
    }

    /// What Statistics.db says about its contents.
    pub fn stats(&self) -> &StatsMetadata {
        &self.parts.stats
    }

    /// What its rows are encoded with.
    pub fn header(&self) -> &SerializationHeader {
        &self.parts.header
    }

    /// Memory that its summary, filter and chunk map take.
    pub fn memory_bytes(&self) -> usize {
        let filter = self.parts.filter.as_ref().map_or(0, BloomFilter::memory_bytes);
        self.parts.summary.memory_bytes() + filter + self.parts.data.memory_bytes()
    }

    /// False if its Bloom filter knows that it does not have the key.
    #[inline]
    pub fn may_contain(&self, hash: &KeyHash) -> bool {
        self.parts
            .filter
            .as_ref()
            .is_none_or(|filter| filter.may_contain(*hash))
    }

    /// One partition, or nothing if it is not here. Looks into Index.db, not yet into Data.db.
    ///
    /// # Errors
    /// The index is damaged or cannot be read, or the file does not fit the table.
    pub fn partition(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &Arc<ClusteringFilter>,
    ) -> std::result::Result<Option<PartitionCursor>, ReadError> {
        if key < self.first_key() || key > self.last_key() || !self.may_contain(&KeyHash::of(&key.key)) {
            return Ok(None);
        }
        let Some(location) = self.locate(key)? else {
            return Ok(None);
        };
        let reader = self.partition_reader(table, filter, Scan::Point)?;
        Ok(Some(PartitionCursor::new(reader, key.clone(), location)))
    }

    /// The partitions of a range, lazily: no I/O before the first partition is asked for.
    pub fn cursor(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
        scan: Scan,
    ) -> RangeCursor {
        RangeCursor::new(self.clone(), table.clone(), range, filter, scan)
    }

    pub(crate) fn partitioner(&self) -> Partitioner {
        self.partitioner
    }

    fn locate(&self, key: &DecoratedKey) -> Result<Option<Location>> {
        let index = &self.parts.index;
        match self.parts.summary.index_range(key, index.data_length()) {
            Some((start, end)) => IndexWalker::cached(index, start).find(&key.key, end),
            None => Ok(None),
        }
    }

    /// A walk over the index that begins at or before the first partition above `bound`.
    pub(crate) fn index_from(&self, bound: &KeyBound, scan: Scan) -> IndexWalker {
        let start = self.parts.summary.position_before(bound);
        match scan {
            Scan::Point => IndexWalker::cached(&self.parts.index, start),
            Scan::Sequential => IndexWalker::sequential(&self.parts.index, start, READ_AHEAD_BYTES),
        }
    }

    pub(crate) fn partition_reader(
        &self,
        table: &Arc<TableSchema>,
        filter: &Arc<ClusteringFilter>,
        scan: Scan,
    ) -> Result<PartitionReader> {
        let format = self.format_for(table)?;
        let stream = match scan {
            Scan::Point => DataStream::cached(self.parts.data.clone(), 0),
            Scan::Sequential => {
                let data = self.parts.data.reopen_for_scan(self.env.as_ref())?;
                DataStream::sequential(Arc::new(data), 0, READ_AHEAD_BYTES)
            }
        };
        Ok(PartitionReader::new(
            stream,
            self.parts.index.clone(),
            format,
            filter.clone(),
        ))
    }

    fn format_for(&self, table: &Arc<TableSchema>) -> Result<Arc<RowFormat>> {
        let known = self.format.read().clone();
        if let Some(format) = known.filter(|format| Arc::ptr_eq(&format.table, table)) {
            return Ok(format);
        }
        let format = Arc::new(RowFormat::of(&self.parts.header, self.descriptor.version, table)?);
        *self.format.write() = Some(format.clone());
        Ok(format)
    }
}

impl std::fmt::Debug for SSTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SSTable({})", self.descriptor)
    }
}
