//! The parts of an SSTable that stay in memory, read and checked when it is opened.

use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_env::Env;

use crate::chunks::READ_AHEAD_BYTES;
use crate::reader::{IndexWalker, PartitionIndex, PartitionTrie, Summary};
use crate::{
    BloomFilter, ChunkReader, Component, Descriptor, Error, Format, OpenOptions, Result, SerializationHeader,
    StatsMetadata, read_component, statistics, toc,
};

/// What an open SSTable holds.
pub(crate) struct OpenedParts {
    pub(crate) data: Arc<ChunkReader>,
    pub(crate) index: PartitionIndex,
    pub(crate) filter: Option<BloomFilter>,
    pub(crate) stats: StatsMetadata,
    pub(crate) header: SerializationHeader,
    pub(crate) size_bytes: u64,
}

impl OpenedParts {
    pub(crate) fn open(env: &dyn Env, descriptor: &Descriptor, options: &OpenOptions) -> Result<Self> {
        descriptor.version.check_readable()?;
        let components = listed_components(env, descriptor)?;
        check_compression_info(env, descriptor, &components)?;
        let statistics = read_statistics(env, descriptor, options)?;
        let cache = options.chunk_cache.clone();
        let data = Arc::new(ChunkReader::open(env, descriptor, cache)?);
        Ok(Self {
            index: open_index(env, descriptor, options, &data)?,
            filter: open_filter(env, descriptor)?,
            size_bytes: size_of(env, descriptor, &components),
            data,
            stats: statistics.stats,
            header: statistics.header,
        })
    }

    pub(crate) fn estimated_keys(&self) -> u64 {
        match self.stats.partition_sizes.count() {
            0 => self.index.estimated_keys().max(1),
            count => count,
        }
    }
}

/// Components that TOC.txt names, and all that Ilion knows.
fn listed_components(env: &dyn Env, descriptor: &Descriptor) -> Result<BTreeSet<Component>> {
    let listed = read_component(env, descriptor, &Component::Toc)?;
    Ok(listed.map(|bytes| toc::parse(&bytes)).unwrap_or_default())
}

/// Without its chunk map, compressed data would be taken for rows.
fn check_compression_info(
    env: &dyn Env,
    descriptor: &Descriptor,
    listed: &BTreeSet<Component>,
) -> Result<()> {
    let path = descriptor.path(&Component::CompressionInfo);
    if listed.contains(&Component::CompressionInfo) && !env.exists(&path) {
        return Err(Error::corrupt(&path, 0, "the file, since TOC.txt names it"));
    }
    Ok(())
}

fn size_of(env: &dyn Env, descriptor: &Descriptor, listed: &BTreeSet<Component>) -> u64 {
    let mut components = listed.clone();
    components.extend(Component::known());
    let sizes = components
        .iter()
        .map(|component| env.file_size(&descriptor.path(component)).unwrap_or(0));
    sizes.sum()
}

fn read_statistics(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
) -> Result<statistics::Statistics> {
    let path = descriptor.path(&Component::Statistics);
    let Some(bytes) = read_component(env, descriptor, &Component::Statistics)? else {
        return Err(Error::corrupt(
            &path,
            0,
            "the file, since rows cannot be read without it",
        ));
    };
    let statistics = statistics::Statistics::decode(&bytes, descriptor.version, &path)?;
    let expected = options.partitioner.class_name();
    let found = statistics
        .validation
        .as_ref()
        .map(|validation| &validation.partitioner);
    match found {
        Some(found) if !is_same_class(found, expected) => Err(Error::Refused(format!(
            "{descriptor}: its partitions are in the order of {found}, but the partitioner is {expected}"
        ))),
        _ => Ok(statistics),
    }
}

fn is_same_class(found: &str, expected: &str) -> bool {
    let simple = |class: &str| class.rsplit('.').next().map(str::to_owned);
    simple(found) == simple(expected)
}

fn open_index(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
    data: &Arc<ChunkReader>,
) -> Result<PartitionIndex> {
    let open = |component: Component| {
        let path = descriptor.path(&component);
        ChunkReader::open_plain(env, &path, options.chunk_cache.clone()).map(Arc::new)
    };
    if descriptor.format == Format::Bti {
        let (partitions, rows) = (open(Component::Partitions)?, open(Component::Rows)?);
        let trie = PartitionTrie::open(partitions, rows, data.clone(), options.partitioner)?;
        return Ok(PartitionIndex::Trie(Arc::new(trie)));
    }
    let index = open(Component::Index)?;
    let summary = Box::new(open_summary(env, descriptor, options, &index)?);
    Ok(PartitionIndex::Sorted { summary, index })
}

fn open_summary(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
    index: &Arc<ChunkReader>,
) -> Result<Summary> {
    let partitioner = options.partitioner;
    let bytes = read_component(env, descriptor, &Component::Summary)?;
    let stored = bytes.and_then(|bytes| Summary::decode(&bytes, partitioner, index.data_length()));
    if let Some(summary) = stored {
        return Ok(summary);
    }
    tracing::warn!(sstable = %descriptor, "Summary.db is missing or damaged: made again from Index.db");
    let walker = IndexWalker::sequential(index, 0, READ_AHEAD_BYTES);
    let built = Summary::build(walker, partitioner)?;
    built.ok_or_else(|| Error::corrupt(index.path(), 0, "at least one partition"))
}

/// A damaged filter is as good as none: reads are slower, not wrong.
fn open_filter(env: &dyn Env, descriptor: &Descriptor) -> Result<Option<BloomFilter>> {
    let Some(bytes) = read_component(env, descriptor, &Component::Filter)? else {
        return Ok(None);
    };
    match BloomFilter::decode(&bytes, descriptor.version) {
        Ok(filter) if !filter.is_blank() => Ok(Some(filter)),
        _ => {
            tracing::warn!(sstable = %descriptor, "Filter.db is damaged: the SSTable is read without it");
            Ok(None)
        }
    }
}
