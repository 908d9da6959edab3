//! One SSTable, open for reads by many threads.

use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyRange, ReadError};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

use crate::{
    ChunkCache, Descriptor, Error, KeyHash, PartitionCursor, RangeCursor, Result, SerializationHeader,
    StatsMetadata,
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
#[derive(Debug)]
pub struct SSTable {
    descriptor: Descriptor,
    size_bytes: u64,
    estimated_keys: u64,
    first_key: DecoratedKey,
    last_key: DecoratedKey,
    stats: StatsMetadata,
    header: SerializationHeader,
}

impl SSTable {
    /// Opens an SSTable; Data.db is not read.
    ///
    /// # Errors
    /// A component is damaged, missing, or of a version that cannot be read.
    pub fn open(_env: &Arc<dyn Env>, descriptor: &Descriptor, _options: &OpenOptions) -> Result<Self> {
        descriptor.version.check_readable()?;
        Err(Error::Refused("reading SSTables is not built yet".to_owned()))
    }

    /// Which SSTable it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Bytes of all its components.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// About how many partitions it has.
    pub fn estimated_keys(&self) -> u64 {
        self.estimated_keys
    }

    /// Its first partition's key.
    pub fn first_key(&self) -> &DecoratedKey {
        &self.first_key
    }

    /// Its last partition's key.
    pub fn last_key(&self) -> &DecoratedKey {
        &self.last_key
    }

    /// What Statistics.db says about its contents.
    pub fn stats(&self) -> &StatsMetadata {
        &self.stats
    }

    /// What its rows are encoded with.
    pub fn header(&self) -> &SerializationHeader {
        &self.header
    }

    /// False if its Bloom filter knows that it does not have the key.
    pub fn may_contain(&self, _hash: &KeyHash) -> bool {
        true
    }

    /// One partition, or nothing if it is not here.
    ///
    /// # Errors
    /// A component is damaged or cannot be read.
    pub fn partition(
        self: &Arc<Self>,
        _table: &Arc<TableSchema>,
        _key: &DecoratedKey,
        _filter: &Arc<ClusteringFilter>,
    ) -> std::result::Result<Option<PartitionCursor>, ReadError> {
        Err(Error::Refused("reading SSTables is not built yet".to_owned()).into())
    }

    /// The partitions of a range, lazily: no I/O before the first partition is asked for.
    pub fn cursor(
        self: &Arc<Self>,
        _table: &Arc<TableSchema>,
        _range: KeyRange,
        _filter: Arc<ClusteringFilter>,
        _scan: Scan,
    ) -> RangeCursor {
        RangeCursor {}
    }
}
