//! One SSTable, open for reads by many threads.
//!
//! A token map finds its partitions, and tells where those of a range begin; of it only what is asked for is loaded. Without one, the Bloom
//! filter and the summary (BIG only) are in memory and the partition index is read as needed.

mod presence;

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
    DataScan, DataStream, Descriptor, Finding, Found, KeyHash, OpenOptions, PartitionCursor, RangeCursor,
    Result, SerializationHeader, StatsMetadata, SummaryShare,
};
use crate::{NoView, SortedBudget, SortedView, Spot};

pub use presence::{Begin, Presence, Whereabouts};

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
    parts: Arc<OpenedParts>,
    /// The format for the table that was last asked for. Held only to swap it.
    format: RwLock<Option<Arc<RowFormat>>>,
}

impl SSTable {
    /// Opens an SSTable. With a token map, only Statistics.db and the end of Tokens.db are read. Without, a Summary.db that
    /// is missing or damaged is made again in memory, a Filter.db that is missing or damaged is done without.
    ///
    /// # Errors
    /// A component that is needed is damaged or missing, or the version cannot be read.
    pub fn open(env: &Arc<dyn Env>, descriptor: &Descriptor, options: &OpenOptions) -> Result<Self> {
        let parts = OpenedParts::open(env, descriptor, None, options)?;
        Ok(Self::of(parts))
    }

    /// As [`SSTable::open`], of one whose files were just listed.
    ///
    /// # Errors
    /// As there.
    pub fn open_found(env: &Arc<dyn Env>, found: &Found, options: &OpenOptions) -> Result<Self> {
        let parts = OpenedParts::open(env, &found.descriptor, Some(found), options)?;
        Ok(Self::of(parts))
    }

    fn of(parts: OpenedParts) -> Self {
        Self {
            parts: Arc::new(parts),
            format: RwLock::new(None),
        }
    }

    /// Which SSTable it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.parts.descriptor
    }

    /// Bytes of all its components when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.parts.size_bytes
    }

    /// Uncompressed bytes of its data.
    pub fn data_length(&self) -> u64 {
        self.parts.ends.data_length
    }

    /// How many partitions it has: exactly, if it was opened with a token map.
    pub fn estimated_keys(&self) -> u64 {
        self.parts.ends.partitions
    }

    /// Its first partition's key.
    pub fn first_key(&self) -> &DecoratedKey {
        &self.parts.ends.first
    }

    /// Its last partition's key.
    pub fn last_key(&self) -> &DecoratedKey {
        &self.parts.ends.last
    }

    /// What Statistics.db says about its contents.
    pub fn stats(&self) -> &StatsMetadata {
        &self.parts.stats
    }

    /// All rows and markers of it lie in there, static rows aside.
    pub fn covered(&self) -> &Slice {
        &self.parts.covered
    }

    /// What its rows are encoded with.
    pub fn header(&self) -> &SerializationHeader {
        &self.parts.header
    }

    /// Memory that is taken by what was opened of it.
    pub fn memory_bytes(&self) -> usize {
        self.parts.memory_bytes()
    }

    /// One partition, or `None` if it is not here. With a token map that is one read of Data.db.
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

    /// The same where it is known to be perhaps ([`SSTable::presence`]); `unwanted` is what is given of columns that the filter does not
    /// want.
    ///
    /// # Errors
    /// As those of [`SSTable::partition`].
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

    /// The partitions of a range, lazily: no I/O on Data.db or the index before the first partition is asked for.
    pub fn cursor(
        self: &Arc<Self>,
        table: &Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
        scan: Scan,
    ) -> RangeCursor {
        RangeCursor::new(self.clone(), table.clone(), range, filter, scan)
    }

    /// The partitions from a group of a sorted view on, in which the SSTable is that source, up to `end`; lazily as [`SSTable::cursor`].
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
        let begin = Begin {
            bound: self.first_key().clone(),
            rank: Some(view.rank(spot, source)),
            map: Some(view.map(source).clone()),
        };
        let begin = Some(begin);
        RangeCursor::beginning(self.clone(), table.clone(), range, filter, Scan::Point, begin)
    }

    /// The order of the partitions of several SSTables, which are its sources as they are numbered here.
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

    /// Its partitions one after another, without its index.
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

    /// Where in Data.db the partition of a key starts, if it is here. Looks into Data.db if what finds it does not have whole
    /// keys.
    ///
    /// # Errors
    /// The index or the data is damaged or cannot be read.
    pub fn position_of(&self, key: &DecoratedKey) -> Result<Option<u64>> {
        let location = self.find(key, &Whereabouts::UNKNOWN, &mut |position| {
            Ok(key_in_data(self.parts.data()?, position)? == key.key)
        })?;
        Ok(location.map(|location| location.position))
    }

    /// True if it should have a token map, has none that can be used, and none was tried to be made in vain.
    pub fn wants_token_map(&self) -> bool {
        self.parts.options.finding == Finding::TokenMap
            && self.parts.tokens.load().is_none()
            && !self.parts.goes_without_token_map.load(Relaxed)
    }

    /// Bytes of its token map; `None` if it has none that can be used.
    pub fn token_map_bytes(&self) -> Option<u64> {
        self.parts.tokens.load().as_ref().map(|map| map.file_length())
    }

    /// Bytes of its cell map; `None` if it has none that can be used.
    ///
    /// # Errors
    /// The operating system refused.
    pub fn cell_map_bytes(&self) -> Result<Option<u64>> {
        Ok(self.parts.cell_map()?.map(|map| map.file_length()))
    }

    /// Makes Tokens.db from the index, and uses it from then on. Reads the whole index; of a BTI one, keys are read in
    /// Data.db. Goes on as long as `go_on` says; false if it was stopped, or the index cannot be mapped.
    ///
    /// # Errors
    /// The index or the data is damaged, or the operating system refused.
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

    /// True if its components have no checksums that can be used, as far as is known, and none were tried to be made in vain.
    pub fn wants_checksums(&self) -> bool {
        self.parts.lacks_checksums.load(Relaxed)
    }

    /// Makes Checksums.db of its components as they are now; it is used when the SSTable is opened the next time. Goes on as long
    /// as `go_on` says; false if it was stopped.
    ///
    /// # Errors
    /// The operating system refused.
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

    /// What the token map says; `None` if there is none, or it is damaged, which is remembered.
    #[inline]
    fn ask_token_map<T>(&self, ask: impl FnOnce(&TokenMap) -> Result<T>) -> Option<T> {
        let map = self.parts.tokens.load();
        match ask(map.as_deref()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.parts.drop_token_map(&error);
                None
            }
        }
    }

    /// Where the partition of a key is. `has_key_at` looks into Data.db.
    fn find(
        &self,
        key: &DecoratedKey,
        whereabouts: &Whereabouts,
        has_key_at: &mut dyn FnMut(u64) -> Result<bool>,
    ) -> Result<Option<Location>> {
        if whereabouts.0.is_none() && self.is_outside(key) {
            return Ok(None);
        }
        let candidates = self.ask_token_map(|map| {
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

    /// What its index summary takes and how much it was used since the last call; `None` if none is in memory.
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

    /// Keeps `level` of 128 samples of the index summary in memory: fewer make look-ups walk over more of the index. More
    /// than there are now are read from Summary.db again.
    ///
    /// # Errors
    /// Summary.db and the index cannot be read; the summary stays as it is.
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

    /// True if there is a key cache, and no token map that knows more.
    pub fn asks_key_cache(&self) -> bool {
        self.parts.cached_as.is_some() && self.parts.tokens.load().is_none()
    }

    /// Puts a partition into the key cache, as after a look-up; false if it is not here, or nothing would ask the cache.
    ///
    /// # Errors
    /// The index or the data is damaged or cannot be read.
    pub fn load_key(&self, key: &DecoratedKey) -> Result<bool> {
        if !self.asks_key_cache() || self.is_outside(key) {
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

    /// A walk over the partitions above `bound`. By a token map it may begin with some that only look as if they were; `rank` is
    /// where, if it was asked before.
    pub(crate) fn index_above(
        &self,
        bound: &KeyBound,
        begin: Option<&Begin>,
        scan: Scan,
    ) -> Result<IndexCursor> {
        let rank = begin.and_then(|begin| begin.rank);
        if let (Some(map), Some(rank)) = (begin.and_then(|begin| begin.map.clone()), rank) {
            return Ok(IndexCursor::Map(MapWalker::new(map, rank)));
        }
        if let Some(map) = self.parts.tokens.load_full()
            && let Some(first) = rank.or_else(|| self.ask_token_map(|map| map.rank(bound)))
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

    fn format_for(&self, table: &Arc<TableSchema>) -> Result<Arc<RowFormat>> {
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
