//! One SSTable, open for reads by many threads.
//!
//! A token map has the positions of the SSTable's partitions, and the starts of ranges; its pages are loaded on demand. Without one,
//! the Bloom filter and the summary (BIG only) are in memory, and the partition index is read as needed.

mod presence;
mod sample;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ilion_env::Env;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyBound, KeyRange, ReadError, Slice};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::checksums::make_checksums;
use crate::chunks::READ_AHEAD_BYTES;
use crate::make_token_map::make_token_map;
use crate::open::OpenedParts;
use crate::open_options::count;
use crate::reader::{FULL_LEVEL, IndexCursor, Location, MapWalker, PartitionReader, key_in_data};
use crate::row::decode::{RowFormat, Unwanted};
use crate::tokens::{Candidates, Mapped, TokenMap};
use crate::{
    DataScan, DataStream, Descriptor, Finding, KeyHash, ListedSSTable, OpenOptions, PartitionCursor,
    RangeCursor, Result, Scan, SerializationHeader, StatsMetadata, SummaryShare,
};
use crate::{NoView, SortedBudget, SortedView, Spot};

pub(crate) use presence::Begin;
pub use presence::{Presence, Whereabouts};

/// An SSTable, open for reads.
pub struct SSTable {
    parts: Arc<OpenedParts>,
    /// The row format for the table that was used last. Held only to swap it.
    format: RwLock<Option<Arc<RowFormat>>>,
}

impl SSTable {
    /// Opens an SSTable. With a token map, this reads only Statistics.db, the start of CompressionInfo.db and the tail of
    /// Tokens.db. Without one, it reads the index, too: a missing or damaged Summary.db is built again in memory, and a missing
    /// or damaged Filter.db is ignored.
    ///
    /// # Errors
    /// A required component is damaged or missing, or the version is not supported.
    pub fn open(env: &Arc<dyn Env>, descriptor: &Descriptor, options: &OpenOptions) -> Result<Self> {
        let parts = OpenedParts::open(env, descriptor, None, options)?;
        Ok(Self::of(parts))
    }

    /// As [`SSTable::open`], but takes the sizes of the files from a directory that was just listed.
    ///
    /// # Errors
    /// As [`SSTable::open`].
    pub fn open_found(env: &Arc<dyn Env>, found: &ListedSSTable, options: &OpenOptions) -> Result<Self> {
        let parts = OpenedParts::open(env, &found.descriptor, Some(found), options)?;
        Ok(Self::of(parts))
    }

    fn of(parts: OpenedParts) -> Self {
        Self {
            parts: Arc::new(parts),
            format: RwLock::new(None),
        }
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.parts.descriptor
    }

    /// Size in bytes of all components, as of when the SSTable was opened.
    pub fn size_bytes(&self) -> u64 {
        self.parts.size_bytes
    }

    /// Uncompressed size of its data.
    pub fn data_length(&self) -> u64 {
        self.parts.ends.data_length
    }

    /// Number of partitions; exact if the SSTable was opened with a token map.
    pub fn estimated_keys(&self) -> u64 {
        self.parts.ends.partitions
    }

    /// The key of its first partition.
    pub fn first_key(&self) -> &DecoratedKey {
        &self.parts.ends.first
    }

    /// The key of its last partition.
    pub fn last_key(&self) -> &DecoratedKey {
        &self.parts.ends.last
    }

    /// The statistics of Statistics.db.
    pub fn stats(&self) -> &StatsMetadata {
        &self.parts.stats
    }

    /// A slice that covers all rows and markers of the SSTable, except static rows.
    pub fn covered(&self) -> &Slice {
        &self.parts.covered
    }

    /// The serialization header of its rows.
    pub fn header(&self) -> &SerializationHeader {
        &self.parts.header
    }

    /// Memory of its opened parts, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.parts.memory_bytes()
    }

    /// The partition with this key; `None` if the SSTable does not have it. With a token map, this takes one read of Data.db.
    ///
    /// # Errors
    /// The index is damaged or cannot be read, or the file does not fit the table.
    pub fn partition(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &Arc<ClusteringFilter>,
    ) -> std::result::Result<Option<PartitionCursor>, ReadError> {
        self.partition_at(table, key, &Whereabouts::UNKNOWN, filter, Unwanted::Times)
    }

    /// As [`SSTable::partition`], for callers that know the result of [`SSTable::presence`]. `unwanted` selects which cells are returned
    /// of columns that the filter does not select.
    ///
    /// # Errors
    /// As [`SSTable::partition`].
    pub fn partition_at(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        whereabouts: &Whereabouts,
        filter: &Arc<ClusteringFilter>,
        unwanted: Unwanted,
    ) -> std::result::Result<Option<PartitionCursor>, ReadError> {
        let open = || self.partition_reader(table, filter, Scan::Point, unwanted);
        let mut reader = None;
        let location = self.find(key, whereabouts, &mut |position| {
            let reader = match &mut reader {
                Some(reader) => reader,
                empty => empty.insert(open()?),
            };
            reader.has_key_at(position, &key.key)
        })?;
        let Some(location) = location else {
            return Ok(None);
        };
        let reader = match reader {
            Some(reader) => reader,
            None => open()?,
        };
        Ok(Some(PartitionCursor::new(reader, key.clone(), location)))
    }

    /// The partitions of a range. Does no I/O on Data.db or the index before the first partition is requested.
    pub fn cursor(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
        scan: Scan,
    ) -> RangeCursor {
        RangeCursor::new(self.clone(), table.clone(), range, filter, scan)
    }

    /// The partitions from an entry of a sorted view on, up to `end`; `source` is the number of this SSTable in the view. Like
    /// [`SSTable::cursor`], reads no data before the first partition is requested.
    pub fn cursor_in(
        self: &Arc<Self>,
        view: &SortedView,
        spot: Spot,
        source: usize,
        table: &Arc<TableSchema>,
        end: KeyBound,
        filter: Arc<ClusteringFilter>,
    ) -> RangeCursor {
        let range = KeyRange {
            start: KeyBound::Start,
            end,
        };
        let begin = Begin::Exactly {
            map: view.map(source).clone(),
            rank: view.rank(spot, source),
        };
        RangeCursor::beginning(
            self.clone(),
            table.clone(),
            range,
            filter,
            Scan::Point,
            Some(begin),
        )
    }

    /// The sorted view of several SSTables: the order of their partitions. The index of an SSTable in `sstables` is its source number.
    ///
    /// # Errors
    /// A token map is damaged or cannot be read.
    pub fn sorted_view(
        sstables: &[Arc<Self>],
        budget: &Arc<SortedBudget>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<std::result::Result<SortedView, NoView>> {
        let maps = sstables.iter().map(|sstable| sstable.parts.tokens.load_full());
        match maps.collect::<Option<Vec<_>>>() {
            Some(maps) => SortedView::build(maps, budget, go_on),
            None => Ok(Err(NoView::Unfit)),
        }
    }

    /// Scans the partitions of the SSTable without the index.
    ///
    /// # Errors
    /// Data.db cannot be opened again, or the file does not fit the table.
    pub fn data_scan(&self, table: &Arc<TableSchema>) -> Result<DataScan> {
        let data = Arc::new(self.parts.data()?.reopen_for_scan(&*self.parts.env)?);
        let stream = DataStream::sequential(data, 0, READ_AHEAD_BYTES);
        Ok(DataScan::over(
            stream,
            self.format_for(table)?,
            self.partitioner(),
        ))
    }

    /// The position in Data.db of the partition with this key; `None` if the SSTable does not have it. Reads Data.db if the index does
    /// not have whole keys.
    ///
    /// # Errors
    /// The index or the data is damaged or cannot be read.
    pub fn position_of(&self, key: &DecoratedKey) -> Result<Option<u64>> {
        let location = self.find(key, &Whereabouts::UNKNOWN, &mut |position| {
            Ok(key_in_data(self.parts.data()?, position)? == key.key)
        })?;
        Ok(location.map(|location| location.position))
    }

    /// True if the SSTable should have a token map, has no usable one, and it is not known that none can be built.
    pub fn wants_token_map(&self) -> bool {
        self.parts.options.finding == Finding::TokenMap
            && self.parts.tokens.load().is_none()
            && !self.parts.goes_without_token_map.load(Relaxed)
    }

    /// Size of the token map in bytes; `None` if there is no usable one.
    pub fn token_map_bytes(&self) -> Option<u64> {
        self.parts.tokens.load().as_ref().map(|map| map.file_length())
    }

    /// Size of the cell map in bytes; `None` if there is no usable one.
    ///
    /// # Errors
    /// The cell map cannot be read.
    pub fn cell_map_bytes(&self) -> Result<Option<u64>> {
        Ok(self.parts.cell_map()?.map(|map| map.file_length()))
    }

    /// Builds Tokens.db from the index, and uses it from then on. Reads the whole index; for a BTI index, also keys in Data.db.
    /// Stops when `go_on` returns false; returns false then, or if the index cannot be mapped.
    ///
    /// # Errors
    /// The index or the data is damaged, or a file cannot be read or written.
    pub fn make_token_map(&self, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        let made = make_token_map(&self.parts, go_on);
        let made = made.and_then(|is_made| {
            if is_made {
                self.parts.reload_token_map()?;
            }
            Ok(is_made)
        });
        if made.is_err() || matches!(made, Ok(false) if go_on()) {
            self.parts.goes_without_token_map.store(true, Relaxed);
        }
        made
    }

    /// True if the checksums are known to be missing or damaged, and were not built since.
    pub fn wants_checksums(&self) -> bool {
        self.parts.lacks_checksums.load(Relaxed)
    }

    /// Computes Checksums.db from the current components. The file is used when the SSTable is opened the next time. Stops when
    /// `go_on` returns false; returns false then.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn make_checksums(&self, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        let parts = &self.parts;
        let made = make_checksums(&*parts.env, &parts.descriptor, parts.owner(), go_on);
        if !matches!(made, Ok(false)) {
            parts.lacks_checksums.store(false, Relaxed);
        }
        made
    }

    pub(crate) fn partitioner(&self) -> Partitioner {
        self.parts.options.partitioner
    }

    /// The result of a lookup in the token map; `None` if there is no map, or it is damaged (then it is dropped).
    #[inline]
    fn with_token_map<T>(&self, look_up: impl FnOnce(&TokenMap) -> Result<T>) -> Option<T> {
        let map = self.parts.tokens.load();
        match look_up(map.as_deref()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.parts.drop_token_map(&error);
                None
            }
        }
    }

    /// The location of a key's partition. `has_key_at` compares the key in Data.db.
    fn find(
        &self,
        key: &DecoratedKey,
        whereabouts: &Whereabouts,
        has_key_at: &mut dyn FnMut(u64) -> Result<bool>,
    ) -> Result<Option<Location>> {
        if whereabouts.0.is_none() && self.is_outside(key) {
            return Ok(None);
        }
        let candidates = self.with_token_map(|map| {
            let range = match &whereabouts.0 {
                Some(range) => range.clone(),
                None => match map.candidates(&key.token)? {
                    Candidates::These(range) => range,
                    Candidates::TooMany => return Ok(None),
                },
            };
            let mapped: Result<SmallVec<[Mapped; 1]>> = range.map(|index| map.partition(index)).collect();
            mapped.map(Some)
        });
        let Some(candidates) = candidates.flatten() else {
            return self.find_in_index(key, has_key_at);
        };
        let lookups = &self.parts.options.lookups;
        count(&lookups.by_token_map);
        for mapped in candidates {
            if has_key_at(mapped.position)? {
                return Ok(Some(mapped.into()));
            }
            count(&lookups.token_map_false_positives);
        }
        Ok(None)
    }

    fn find_in_index(
        &self,
        key: &DecoratedKey,
        has_key_at: &mut dyn FnMut(u64) -> Result<bool>,
    ) -> Result<Option<Location>> {
        let filter = self.parts.filter()?;
        if filter.is_some_and(|filter| !filter.may_contain(KeyHash::of(&key.key))) {
            return Ok(None);
        }
        if let Some((cache, number)) = &self.parts.cached_as
            && let Some(location) = cache.lookup(*number, &key.key)
        {
            if location.is_certain {
                return Ok(Some(location));
            }
            if let Some(location) = self.check_loaded(key, location, has_key_at)? {
                return Ok(Some(location));
            }
        }
        let lookups = &self.parts.options.lookups;
        count(&lookups.by_index);
        count(&self.parts.index_lookups);
        if let Some(location) = self.parts.index()?.find(key)?
            && (location.is_certain || has_key_at(location.position)?)
        {
            self.remember(key, &location);
            return Ok(Some(location));
        }
        if filter.is_some() {
            count(&lookups.filter_false_positives);
        }
        Ok(None)
    }

    /// Size of the index summary, and its use since the last call; `None` if there is no summary in memory.
    pub fn take_summary_share(&self) -> Option<SummaryShare> {
        let summary = self.parts.opened_index()?.summary()?.load();
        let bytes = summary.memory_bytes() as u64;
        Some(SummaryShare {
            bytes,
            full_bytes: bytes * u64::from(FULL_LEVEL) / u64::from(summary.level),
            level: summary.level,
            lookups: self.parts.index_lookups.swap(0, Relaxed),
        })
    }

    /// Keeps `level` of every 128 samples of the index summary in memory. With fewer samples, lookups read more of the index. If
    /// there are fewer samples now, the summary is read from Summary.db again.
    ///
    /// # Errors
    /// Summary.db and the index cannot be read; the summary stays unchanged.
    pub fn resample_summary(&self, level: u8) -> Result<()> {
        self.parts.resample_summary(level.clamp(1, FULL_LEVEL))
    }

    pub(crate) fn parts(&self) -> &Arc<OpenedParts> {
        &self.parts
    }

    pub(crate) fn remember(&self, key: &DecoratedKey, location: &Location) {
        if let Some((cache, number)) = &self.parts.cached_as {
            let location = Location {
                is_certain: true,
                ..location.clone()
            };
            cache.insert(*number, &key.key, location);
        }
    }

    /// True if lookups use the key cache: there is one, and no token map.
    pub fn uses_key_cache(&self) -> bool {
        self.parts.cached_as.is_some() && self.parts.tokens.load().is_none()
    }

    /// Adds a partition to the key cache, as after a lookup. Returns false if the SSTable does not have it, or does not use the cache.
    ///
    /// # Errors
    /// The index or the data is damaged or cannot be read.
    pub fn load_key(&self, key: &DecoratedKey) -> Result<bool> {
        if !self.uses_key_cache() || self.is_outside(key) {
            return Ok(false);
        }
        let location = self.parts.index()?.find(key)?;
        let Some(location) = location else {
            return Ok(false);
        };
        if !location.is_certain && key_in_data(self.parts.data()?, location.position)? != key.key {
            return Ok(false);
        }
        self.remember(key, &location);
        Ok(true)
    }

    /// Iterates over the partitions above `bound`. With a token map, the iteration may start with some that are not above it. `begin` is
    /// where they begin, if that is known.
    pub(crate) fn index_above(
        &self,
        bound: &KeyBound,
        begin: Option<&Begin>,
        scan: Scan,
    ) -> Result<IndexCursor> {
        let rank = match begin {
            Some(Begin::Exactly { map, rank }) => {
                return Ok(IndexCursor::Map(MapWalker::new(map.clone(), *rank)));
            }
            Some(Begin::NotBefore { rank, .. }) => *rank,
            None => None,
        };
        if let Some(map) = self.parts.tokens.load_full()
            && let Some(first) = rank.or_else(|| self.with_token_map(|map| map.rank(bound)))
        {
            return Ok(IndexCursor::Map(MapWalker::new(map, first)));
        }
        let index = self.parts.index()?;
        index.walk_above(bound, scan, self.partitioner(), &*self.parts.env)
    }

    pub(crate) fn partition_reader(
        &self,
        table: &Arc<TableSchema>,
        filter: &Arc<ClusteringFilter>,
        scan: Scan,
        unwanted: Unwanted,
    ) -> Result<PartitionReader> {
        let format = self.format_for(table)?;
        let data = self.parts.data()?;
        let stream = match scan {
            Scan::Point => DataStream::cached(data.clone(), 0),
            Scan::Sequential => {
                let data = data.reopen_for_scan(&*self.parts.env)?;
                let scratch = self.parts.env.scratch(&self.descriptor().directory);
                DataStream::sequential(Arc::new(data), 0, READ_AHEAD_BYTES)
                    .keeping_large_rows(self.parts.options.held_row_bytes_max, scratch)
            }
        };
        PartitionReader::new(stream, self.parts.clone(), format, filter.clone(), unwanted)
    }

    pub(crate) fn format_for(&self, table: &Arc<TableSchema>) -> Result<Arc<RowFormat>> {
        let known = self.format.read().clone();
        if let Some(format) = known.filter(|format| Arc::ptr_eq(&format.table, table)) {
            return Ok(format);
        }
        let format = Arc::new(RowFormat::of(
            &self.parts.header,
            self.descriptor().version,
            table,
        )?);
        *self.format.write() = Some(format.clone());
        Ok(format)
    }
}

impl std::fmt::Debug for SSTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SSTable({})", self.descriptor())
    }
}
