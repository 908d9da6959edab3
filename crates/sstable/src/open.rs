//! The parts of an open SSTable: those read at once, and those opened on first use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arc_swap::{ArcSwap, ArcSwapOption};
use ilion_env::Env;
use ilion_rows::{DecoratedKey, Slice};

use crate::cells::{CellMap, Whole};
use crate::checksums::{Checksums, Owner};
use crate::chunks::READ_AHEAD_BYTES;
use crate::compression_info::check_compressor;
use crate::deleted::DeletedRuns;
use crate::lazy::Lazy;
use crate::reader::{IndexWalker, PartitionIndex, PartitionTrie, Summary};
use crate::tokens::{TokenMap, fingerprint_of};
use crate::{
    BloomFilter, ChunkReader, Component, Descriptor, Error, Finding, Format, KeyCache, ListedSSTable,
    OpenOptions, Result, SerializationHeader, StatsMetadata, read_component, statistics, toc,
};

/// The parts of an open SSTable. With a token map, opening reads only Statistics.db, the start of CompressionInfo.db and the
/// tail of Tokens.db.
pub(crate) struct OpenedParts {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) descriptor: Descriptor,
    pub(crate) options: OpenOptions,
    pub(crate) stats: StatsMetadata,
    /// See [`StatsMetadata::covered`].
    pub(crate) covered: Slice,
    pub(crate) header: SerializationHeader,
    pub(crate) size_bytes: u64,
    /// Size of Data.db on disk when it was opened.
    stored_length: u64,
    pub(crate) ends: Ends,
    /// The token map: opened with the SSTable or built later; `None` if it is missing or damaged.
    pub(crate) tokens: ArcSwapOption<TokenMap>,
    /// The key cache and the SSTable's number in it; `None` if there is no key cache.
    pub(crate) cached_as: Option<(Arc<KeyCache>, u64)>,
    /// Lookups in the index since the last check whether a token map is worth building.
    pub(crate) index_lookups: AtomicU64,
    /// True if no token map can be built.
    pub(crate) goes_without_token_map: AtomicBool,
    /// Opens to `None` if there are no checksums, or they are damaged.
    checksums: Lazy<Option<Checksums>>,
    /// True if checksums are missing or damaged.
    pub(crate) lacks_checksums: AtomicBool,
    /// Opens to `None` if there is no cell map, or it is damaged.
    cells: Lazy<ArcSwapOption<CellMap>>,
    /// Opens to `None` if there are no deleted runs, or they are damaged.
    deleted: Lazy<Option<DeletedRuns>>,
    data: Lazy<Arc<ChunkReader>>,
    index: Lazy<PartitionIndex>,
    filter: Lazy<Option<BloomFilter>>,
}

/// First and last key and sizes, from the token map, or else from the index and Data.db.
pub(crate) struct Ends {
    pub(crate) first: DecoratedKey,
    pub(crate) last: DecoratedKey,
    pub(crate) partitions: u64,
    /// Uncompressed size of Data.db.
    pub(crate) data_length: u64,
}

impl OpenedParts {
    /// Opens an SSTable. `found` has the sizes of its files, if the directory was just listed.
    pub(crate) fn open(
        env: &Arc<dyn Env>,
        descriptor: &Descriptor,
        found: Option<&ListedSSTable>,
        options: &OpenOptions,
    ) -> Result<Self> {
        descriptor.version.check_readable()?;
        let has = |component: &Component| match found {
            Some(found) => found.size_of(component).is_some(),
            None => env.exists(&descriptor.path(component)),
        };
        check_components(descriptor, has)?;
        let statistics = read_statistics(&**env, descriptor, options)?;
        check_chunk_map(&**env, descriptor, has)?;
        let stored_length = match found.and_then(|found| found.size_of(&Component::Data)) {
            Some(length) => length,
            None => env.file_size(&descriptor.path(&Component::Data))?,
        };
        let map = match options.finding {
            Finding::TokenMap => {
                open_token_map(&**env, descriptor, options, &statistics.stats, stored_length)?
            }
            Finding::Summary | Finding::WholeIndex => None,
        };
        let (data, index, checksums) = (Lazy::new(), Lazy::new(), Lazy::new());
        let lacks_checksums = AtomicBool::new(!has(&Component::Checksums));
        let ends = match &map {
            Some(map) => Ends::of_map(map),
            None => {
                let owner = Owner::of(stored_length, &statistics.stats);
                let checksums = checksums
                    .get_or_open(|| open_checksums(&**env, descriptor, owner, &lacks_checksums))?
                    .as_ref();
                let data = data.get_or_open(|| open_data(&**env, descriptor, options, checksums))?;
                let index = index.get_or_open(|| open_index(&**env, descriptor, options, data, checksums))?;
                Ends::of_index(index, data, &statistics.stats)
            }
        };
        let parts = Self {
            env: env.clone(),
            descriptor: descriptor.clone(),
            options: options.clone(),
            stored_length,
            checksums,
            lacks_checksums,
            size_bytes: found.map_or_else(|| size_of(&**env, descriptor), ListedSSTable::size_bytes),
            covered: statistics.stats.covered(descriptor.version),
            stats: statistics.stats,
            header: statistics.header,
            ends,
            tokens: ArcSwapOption::from(map.map(Arc::new)),
            cached_as: options
                .key_cache
                .as_ref()
                .map(|(table, cache)| (cache.clone(), cache.admit(*table, descriptor))),
            index_lookups: AtomicU64::new(0),
            goes_without_token_map: AtomicBool::new(false),
            cells: Lazy::new(),
            deleted: Lazy::new(),
            data,
            index,
            filter: Lazy::new(),
        };
        if parts.tokens.load().is_none() {
            parts.filter()?;
        }
        Ok(parts)
    }

    /// Data.db.
    #[inline]
    pub(crate) fn data(&self) -> Result<&Arc<ChunkReader>> {
        self.data.get_or_open(|| {
            let checksums = self.checksums()?;
            let data = open_data(&*self.env, &self.descriptor, &self.options, checksums)?;
            if data.data_length() != self.ends.data_length {
                let expected = format!(
                    "{} uncompressed bytes, as the token map says",
                    self.ends.data_length
                );
                return Err(Error::corrupt(data.path(), data.data_length(), expected));
            }
            Ok(data)
        })
    }

    /// The partition index.
    #[inline]
    pub(crate) fn index(&self) -> Result<&PartitionIndex> {
        self.index.get_or_open(|| {
            let (data, checksums) = (self.data()?, self.checksums()?);
            open_index(&*self.env, &self.descriptor, &self.options, data, checksums)
        })
    }

    /// The checksums; `None` if they are missing or damaged.
    fn checksums(&self) -> Result<Option<&Checksums>> {
        let checksums = self.checksums.get_or_open(|| {
            open_checksums(&*self.env, &self.descriptor, self.owner(), &self.lacks_checksums)
        })?;
        Ok(checksums.as_ref())
    }

    /// Identifies this SSTable in Checksums.db.
    pub(crate) fn owner(&self) -> Owner {
        Owner::of(self.stored_length, &self.stats)
    }

    /// The index; `None` if it was not opened yet.
    pub(crate) fn opened_index(&self) -> Option<&PartitionIndex> {
        self.index.opened()
    }

    /// Replaces the summary by one at sampling level `level` of 128; reads Summary.db again if the current summary has fewer samples.
    pub(crate) fn resample_summary(&self, level: u8) -> Result<()> {
        let Some(PartitionIndex::Sorted { summary, index }) = self.index.opened() else {
            return Ok(());
        };
        let mut resampled = summary.load_full();
        if resampled.level < level {
            resampled = Arc::new(open_summary(
                &*self.env,
                &self.descriptor,
                &self.options,
                index,
                self.checksums()?,
            )?);
        }
        if resampled.level > level {
            resampled = Arc::new(resampled.thinned(level));
        }
        summary.store(resampled);
        Ok(())
    }

    /// The Bloom filter; `None` if the SSTable has no usable one.
    #[inline]
    pub(crate) fn filter(&self) -> Result<Option<&BloomFilter>> {
        let filter = self
            .filter
            .get_or_open(|| open_filter(&*self.env, &self.descriptor, self.checksums()?))?;
        Ok(filter.as_ref())
    }

    /// The cell map; `None` if it is missing or damaged.
    pub(crate) fn cell_map(&self) -> Result<Option<Arc<CellMap>>> {
        let cells = self
            .cells
            .get_or_open(|| Ok(ArcSwapOption::from(self.open_cell_map()?.map(Arc::new))))?;
        Ok(cells.load_full())
    }

    /// Opens the cell map. A damaged one is ignored: large rows are read without it.
    fn open_cell_map(&self) -> Result<Option<CellMap>> {
        let data = self.data()?;
        let fingerprint = fingerprint_of(&self.stats);
        let opened = CellMap::open(&*self.env, &self.descriptor, fingerprint, data.stored_length());
        match opened {
            Ok(Some(map)) if map.data_length() != data.data_length() => Ok(None),
            Err(error) if error.is_corrupt() => {
                tracing::warn!(sstable = %self.descriptor, %error, "Cells.db is not used; the next compaction writes a new one");
                Ok(None)
            }
            opened => opened,
        }
    }

    /// Drops the cell map, which turned out to be damaged.
    #[cold]
    pub(crate) fn drop_cell_map(&self, error: &Error) {
        tracing::warn!(sstable = %self.descriptor, %error, "the cell map is no longer used; the next compaction writes a new one");
        if let Some(cells) = self.cells.opened() {
            cells.store(None);
        }
    }

    /// The deleted runs; `None` if they are missing or damaged.
    pub(crate) fn deleted_runs(&self) -> Result<Option<&DeletedRuns>> {
        let runs = self.deleted.get_or_open(|| {
            let whole = Whole {
                data_length: self.ends.data_length,
                stored_length: self.stored_length,
                fingerprint: fingerprint_of(&self.stats),
            };
            let opened = DeletedRuns::open(&*self.env, &self.descriptor, &self.header, whole);
            match opened {
                Err(error) if error.is_corrupt() => {
                    tracing::warn!(sstable = %self.descriptor, %error, "Deleted.db is not used; the next compaction writes a new one");
                    Ok(None)
                }
                opened => opened,
            }
        })?;
        Ok(runs.as_ref())
    }

    /// Memory of all opened parts, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let cells = self.cells.opened().and_then(|cells| cells.load_full());
        let map = self.tokens.load().as_ref().map_or(0, |map| map.memory_bytes());
        let index = self.index.opened().map_or(0, PartitionIndex::memory_bytes);
        let filter = self.filter.opened().and_then(Option::as_ref);
        let data = self.data.opened().map_or(0, |data| data.memory_bytes());
        let cells = cells.map_or(0, |map| map.memory_bytes());
        let deleted = self.deleted.opened().and_then(Option::as_ref);
        let deleted = deleted.map_or(0, DeletedRuns::memory_bytes);
        let checksums = self.checksums.opened().and_then(Option::as_ref);
        let checksums = checksums.map_or(0, Checksums::memory_bytes);
        map + cells + deleted + checksums + index + filter.map_or(0, BloomFilter::memory_bytes) + data
    }

    /// Drops the token map, which turned out to be damaged. The index is used until there is a new map.
    #[cold]
    pub(crate) fn drop_token_map(&self, error: &Error) {
        tracing::warn!(sstable = %self.descriptor, %error, "the token map is no longer used; it is built again");
        self.tokens.store(None);
    }

    /// Opens Tokens.db again, after it was written.
    pub(crate) fn reload_token_map(&self) -> Result<()> {
        let stored_length = self.env.file_size(&self.descriptor.path(&Component::Data))?;
        let map = open_token_map(
            &*self.env,
            &self.descriptor,
            &self.options,
            &self.stats,
            stored_length,
        )?;
        self.tokens.store(map.map(Arc::new));
        Ok(())
    }
}

impl Ends {
    fn of_map(map: &TokenMap) -> Self {
        Self {
            first: map.first.clone(),
            last: map.last.clone(),
            partitions: map.partition_count(),
            data_length: map.data_length(),
        }
    }

    fn of_index(index: &PartitionIndex, data: &ChunkReader, stats: &StatsMetadata) -> Self {
        let partitions = match stats.partition_sizes.count() {
            0 => index.estimated_keys().max(1),
            count => count,
        };
        Self {
            first: index.first_key(),
            last: index.last_key(),
            partitions,
            data_length: data.data_length(),
        }
    }
}

impl Drop for OpenedParts {
    fn drop(&mut self) {
        if let Some((cache, number)) = &self.cached_as {
            cache.forget(*number);
        }
    }
}

impl std::fmt::Debug for OpenedParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenedParts({})", self.descriptor)
    }
}

/// Opens the token map. A damaged one is ignored, and built again later.
fn open_token_map(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
    stats: &StatsMetadata,
    stored_length: u64,
) -> Result<Option<TokenMap>> {
    let fingerprint = fingerprint_of(stats);
    match TokenMap::open(env, descriptor, options.partitioner, fingerprint, stored_length) {
        Err(error) if error.is_corrupt() => {
            tracing::warn!(sstable = %descriptor, %error, "Tokens.db is not used; it is built again");
            Ok(None)
        }
        opened => opened,
    }
}

fn open_data(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
    checksums: Option<&Checksums>,
) -> Result<Arc<ChunkReader>> {
    let cache = options.chunk_cache.clone();
    ChunkReader::open_checked(env, descriptor, cache, checksums).map(Arc::new)
}

/// Opens the checksums. Damaged ones are ignored, and computed again later.
fn open_checksums(
    env: &dyn Env,
    descriptor: &Descriptor,
    owner: Owner,
    are_lacking: &AtomicBool,
) -> Result<Option<Checksums>> {
    let opened = match Checksums::read(env, descriptor, owner) {
        Err(error) if error.is_corrupt() => {
            tracing::warn!(
                sstable = %descriptor,
                %error,
                "Checksums.db is not used; it is built again from the components as they are: run `ilion sstable verify` to check them"
            );
            None
        }
        opened => opened?,
    };
    are_lacking.store(opened.is_none(), Relaxed);
    Ok(opened)
}

/// Fails if an essential component is missing: the SSTable is damaged then.
fn check_components(descriptor: &Descriptor, has: impl Fn(&Component) -> bool) -> Result<()> {
    let needed: &[Component] = match descriptor.format {
        Format::Big => &[Component::Data, Component::Statistics, Component::Index],
        Format::Bti => &[
            Component::Data,
            Component::Statistics,
            Component::Partitions,
            Component::Rows,
        ],
    };
    match needed.iter().find(|component| !has(component)) {
        None => Ok(()),
        Some(missing) => {
            let expected = "the file, since an SSTable cannot be read without it";
            Err(Error::corrupt(&descriptor.path(missing), 0, expected))
        }
    }
}

/// The components that TOC.txt names, including unknown ones.
fn listed_components(env: &dyn Env, descriptor: &Descriptor) -> Result<BTreeSet<Component>> {
    let listed = read_component(env, descriptor, &Component::Toc)?;
    Ok(listed.map(|bytes| toc::parse(&bytes)).unwrap_or_default())
}

/// Checks that CompressionInfo.db and CRC.db exist if TOC.txt names them. Without its chunk map, compressed data would be decoded as
/// rows; without CRC.db, uncompressed data could not be checked. An unknown compressor is refused now, not at the first read.
fn check_chunk_map(env: &dyn Env, descriptor: &Descriptor, has: impl Fn(&Component) -> bool) -> Result<()> {
    if check_compressor(env, descriptor)? {
        return Ok(());
    }
    let listed = listed_components(env, descriptor)?;
    let maps = [Component::CompressionInfo, Component::Crc];
    match maps.iter().find(|map| listed.contains(map) && !has(map)) {
        None => Ok(()),
        Some(missing) => {
            let path = descriptor.path(missing);
            Err(Error::corrupt(&path, 0, "the file, since TOC.txt names it"))
        }
    }
}

/// Size in bytes of the known components; components of Cassandra's secondary indexes do not count.
fn size_of(env: &dyn Env, descriptor: &Descriptor) -> u64 {
    let sizes = Component::known().map(|component| env.file_size(&descriptor.path(&component)).unwrap_or(0));
    sizes.sum()
}

fn read_statistics(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
) -> Result<statistics::Statistics> {
    let path = descriptor.path(&Component::Statistics);
    let Some(statistics) = statistics::Statistics::read(env, descriptor)? else {
        return Err(Error::corrupt(
            &path,
            0,
            "the file, since rows cannot be read without it",
        ));
    };
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
    checksums: Option<&Checksums>,
) -> Result<PartitionIndex> {
    let open = |component: Component| {
        let path = descriptor.path(&component);
        let sums = checksums.and_then(|checksums| checksums.of(&component));
        ChunkReader::open_summed(env, &path, options.chunk_cache.clone(), sums).map(Arc::new)
    };
    if descriptor.format == Format::Bti {
        let (partitions, rows) = (open(Component::Partitions)?, open(Component::Rows)?);
        let trie = PartitionTrie::open(partitions, rows, data.clone(), options.partitioner)?;
        return Ok(PartitionIndex::Trie(Arc::new(trie)));
    }
    let index = open(Component::Index)?;
    let summary = ArcSwap::from_pointee(open_summary(env, descriptor, options, &index, checksums)?);
    Ok(PartitionIndex::Sorted { summary, index })
}

fn open_summary(
    env: &dyn Env,
    descriptor: &Descriptor,
    options: &OpenOptions,
    index: &Arc<ChunkReader>,
    checksums: Option<&Checksums>,
) -> Result<Summary> {
    let partitioner = options.partitioner;
    let bytes = match options.finding {
        Finding::WholeIndex => None,
        Finding::TokenMap | Finding::Summary => read_component(env, descriptor, &Component::Summary)?,
    };
    let bytes = bytes.filter(|bytes| is_as_it_was(bytes, descriptor, &Component::Summary, checksums));
    let stored = bytes.and_then(|bytes| Summary::decode(&bytes, partitioner, index.data_length()));
    if let Some(summary) = stored {
        return Ok(summary);
    }
    if options.finding != Finding::WholeIndex {
        tracing::warn!(sstable = %descriptor, "Summary.db is missing or damaged: built again from Index.db");
    }
    let walker = IndexWalker::sequential(index, 0, READ_AHEAD_BYTES);
    let built = Summary::build(walker, partitioner)?;
    built.ok_or_else(|| Error::corrupt(index.path(), 0, "at least one partition"))
}

/// Compares a component that reads can do without with the checksums. Returns false if it does not match.
fn is_as_it_was(
    bytes: &[u8],
    descriptor: &Descriptor,
    component: &Component,
    checksums: Option<&Checksums>,
) -> bool {
    let sums = checksums.and_then(|checksums| checksums.of(component));
    sums.is_none_or(|sums| sums.check(bytes, &descriptor.path(component)).is_ok())
}

/// Opens the Bloom filter. A damaged one is ignored: reads are slower, but correct.
fn open_filter(
    env: &dyn Env,
    descriptor: &Descriptor,
    checksums: Option<&Checksums>,
) -> Result<Option<BloomFilter>> {
    let Some(bytes) = read_component(env, descriptor, &Component::Filter)? else {
        if checksums.is_some_and(|checksums| checksums.of(&Component::Filter).is_some()) {
            tracing::warn!(sstable = %descriptor, "Filter.db is missing: the SSTable is read without it");
        }
        return Ok(None);
    };
    match BloomFilter::decode(&bytes, descriptor.version) {
        Ok(filter)
            if !filter.is_blank() && is_as_it_was(&bytes, descriptor, &Component::Filter, checksums) =>
        {
            Ok(Some(filter))
        }
        _ => {
            tracing::warn!(sstable = %descriptor, "Filter.db is damaged: the SSTable is read without it");
            Ok(None)
        }
    }
}
