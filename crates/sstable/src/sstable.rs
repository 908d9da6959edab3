//! One SSTable, open for reads by many threads.
//!
//! In memory: the summary (BIG only), the Bloom filter, the chunk map, the statistics. The partition index and Data.db are
//! read as needed.

use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyBound, KeyRange, ReadError};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;
use parking_lot::RwLock;

use crate::chunks::READ_AHEAD_BYTES;
use crate::open::OpenedParts;
use crate::reader::{IndexCursor, PartitionReader, key_in_data};
use crate::row_decode::RowFormat;
use crate::{
    BloomFilter, ChunkCache, DataScan, DataStream, Descriptor, KeyHash, PartitionCursor, RangeCursor, Result,
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
        self.parts.index.first_key()
    }

    /// Its last partition's key.
    pub fn last_key(&self) -> &DecoratedKey {
        self.parts.index.last_key()
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
        self.parts.index.memory_bytes() + filter + self.parts.data.memory_bytes()
    }

    /// False if its Bloom filter knows that it does not have the key.
    #[inline]
    pub fn may_contain(&self, hash: &KeyHash) -> bool {
        self.parts
            .filter
            .as_ref()
            .is_none_or(|filter| filter.may_contain(*hash))
    }

    /// One partition, or nothing if it is not here. Looks into the index; into Data.db only if the index is a trie, which does
    /// not have whole keys.
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
        let Some(location) = self.parts.index.find(key)? else {
            return Ok(None);
        };
        let mut reader = self.partition_reader(table, filter, Scan::Point)?;
        if !location.is_certain && !reader.has_key_at(location.position, &key.key)? {
            return Ok(None);
        }
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

    /// Its partitions one after another, without its index.
    ///
    /// # Errors
    /// Data.db cannot be opened again, or the file does not fit the table.
    pub fn data_scan(&self, table: &Arc<TableSchema>) -> Result<DataScan> {
        let data = Arc::new(self.parts.data.reopen_for_scan(self.env.as_ref())?);
        let stream = DataStream::sequential(data, 0, READ_AHEAD_BYTES);
        Ok(DataScan::over(stream, self.format_for(table)?, self.partitioner))
    }

    /// Where in Data.db the partition of a key starts, if it is here. Looks into Data.db if the index does not have whole keys.
    ///
    /// # Errors
    /// The index or the data is damaged or cannot be read.
    pub fn position_of(&self, key: &DecoratedKey) -> Result<Option<u64>> {
        if key < self.first_key() || key > self.last_key() || !self.may_contain(&KeyHash::of(&key.key)) {
            return Ok(None);
        }
        let Some(location) = self.parts.index.find(key)? else {
            return Ok(None);
        };
        let is_other = !location.is_certain && key_in_data(&self.parts.data, location.position)? != key.key;
        Ok((!is_other).then_some(location.position))
    }

    pub(crate) fn partitioner(&self) -> Partitioner {
        self.partitioner
    }

    /// A walk over the index's entries above `bound`.
    pub(crate) fn index_above(&self, bound: &KeyBound, scan: Scan) -> Result<IndexCursor> {
        let (index, env) = (&self.parts.index, self.env.as_ref());
        index.walk_above(bound, scan, self.partitioner, env)
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
            self.parts.index.row_indexes().clone(),
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
