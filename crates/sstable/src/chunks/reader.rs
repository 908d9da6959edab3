//! Uncompressed bytes of Data.db at any position.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Compressor, crc32};
use ilion_env::{Access, Env, ReadFile, parking};

use super::cache::ChunkCache;
use super::spare;
use crate::checksums::{BLOCK_BYTES, Checksums, Sums};
use crate::component_file::read_component;
use crate::compression_info::CompressionInfo;
use crate::crc_file::CrcFile;
use crate::{Component, Descriptor, Error, Result};

/// Chunk length of uncompressed files without checksums.
const UNCHECKED_CHUNK_LENGTH: u32 = BLOCK_BYTES;
/// Maximum length of a read in bytes; Cassandra refuses values above 256 MiB.
const READ_LEN_MAX: usize = 1 << 30;
const CRC_LEN: u64 = 4;

/// How the file stores chunks.
#[derive(Debug)]
enum Layout {
    Compressed {
        info: CompressionInfo,
        compressor: Compressor,
    },
    /// Uncompressed, with CRCs from this component.
    Checked(CrcFile, Component),
    Unchecked,
}

/// Data.db or an index, open for reads by many threads.
pub struct ChunkReader {
    file: Arc<dyn ReadFile>,
    layout: Arc<Layout>,
    chunk_length: u32,
    data_length: u64,
    cache: Option<Arc<ChunkCache>>,
    /// Number that identifies the file in the cache.
    cache_file: u64,
}

impl ChunkReader {
    /// Opens Data.db with CompressionInfo.db or CRC.db, whichever exists. Without a cache, every read decompresses.
    ///
    /// # Errors
    /// A component is damaged or unreadable, or Data.db is missing.
    pub fn open(env: &dyn Env, descriptor: &Descriptor, cache: Option<Arc<ChunkCache>>) -> Result<Self> {
        Self::open_checked(env, descriptor, cache, None)
    }

    /// As [`Self::open`]; also compares the chunk map with the checksums.
    pub(crate) fn open_checked(
        env: &dyn Env,
        descriptor: &Descriptor,
        cache: Option<Arc<ChunkCache>>,
        checksums: Option<&Checksums>,
    ) -> Result<Self> {
        let file = env.open_read(&descriptor.path(&Component::Data))?;
        file.advise(Access::Random);
        let layout = open_layout(env, descriptor, file.as_ref(), checksums)?;
        let (chunk_length, data_length) = match &layout {
            Layout::Compressed { info, .. } => (info.chunk_length, info.data_length),
            Layout::Checked(crcs, _) => (crcs.chunk_length, file.size_bytes()),
            Layout::Unchecked => (UNCHECKED_CHUNK_LENGTH, file.size_bytes()),
        };
        let cache_file = cache.as_ref().map_or(0, |cache| cache.admit_file());
        Ok(Self {
            file,
            layout: Arc::new(layout),
            chunk_length,
            data_length,
            cache,
            cache_file,
        })
    }

    /// Opens an uncompressed component without checksums, such as Index.db.
    ///
    /// # Errors
    /// The file is missing or unreadable.
    pub fn open_unchecked(env: &dyn Env, path: &Path, cache: Option<Arc<ChunkCache>>) -> Result<Self> {
        Self::open_summed(env, path, cache, None)
    }

    /// As [`Self::open_unchecked`], for a component whose checksums may be known: then each chunk is checked when it is read.
    pub(crate) fn open_summed(
        env: &dyn Env,
        path: &Path,
        cache: Option<Arc<ChunkCache>>,
        sums: Option<&Sums>,
    ) -> Result<Self> {
        let file = env.open_read(path)?;
        file.advise(Access::Random);
        let layout = match sums {
            Some(sums) => {
                sums.check_length(file.size_bytes(), path)?;
                Layout::Checked(sums.to_crc_file(), Component::Checksums)
            }
            None => Layout::Unchecked,
        };
        let cache_file = cache.as_ref().map_or(0, |cache| cache.admit_file());
        Ok(Self {
            chunk_length: UNCHECKED_CHUNK_LENGTH,
            data_length: file.size_bytes(),
            file,
            layout: Arc::new(layout),
            cache,
            cache_file,
        })
    }

    /// Opens the file again, with another handle that bypasses the cache, for a scan from start to end.
    ///
    /// # Errors
    /// The file cannot be opened again.
    pub fn reopen_for_scan(&self, env: &dyn Env) -> Result<Self> {
        let file = env.open_read(self.file.path())?;
        file.advise(Access::Sequential);
        Ok(Self {
            file,
            layout: self.layout.clone(),
            chunk_length: self.chunk_length,
            data_length: self.data_length,
            cache: None,
            cache_file: 0,
        })
    }

    /// Uncompressed size of the file.
    #[inline]
    pub fn data_length(&self) -> u64 {
        self.data_length
    }

    /// Size of the file on disk.
    pub(crate) fn stored_length(&self) -> u64 {
        self.file.size_bytes()
    }

    /// Path of the file, for errors.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Uncompressed length of every chunk except the last.
    pub fn chunk_length(&self) -> u32 {
        self.chunk_length
    }

    /// The content of CompressionInfo.db; `None` if the file is not compressed.
    pub fn compression(&self) -> Option<&CompressionInfo> {
        match self.layout.as_ref() {
            Layout::Compressed { info, .. } => Some(info),
            _ => None,
        }
    }

    /// Memory of the chunk map, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self.layout.as_ref() {
            Layout::Compressed { info, .. } => info.offsets.len() * 8,
            Layout::Checked(crcs, _) => crcs.crcs.len() * 4,
            Layout::Unchecked => 0,
        }
    }

    /// Exactly `len` bytes from `position`: a slice of a chunk if they lie in one, else a copy.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    pub fn read_at(&self, position: u64, len: usize) -> Result<Bytes> {
        self.check_range(position, len)?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let (start, chunk) = self.chunk_at(position)?;
        let from = offset_in(start, position);
        if let Some(end) = from.checked_add(len).filter(|end| *end <= chunk.len()) {
            return Ok(chunk.slice(from..end));
        }
        let mut gathered = chunk[from..].to_vec();
        while gathered.len() < len {
            let (_, next) = self.chunk_at(position + gathered.len() as u64)?;
            let wanted = (len - gathered.len()).min(next.len());
            gathered.extend_from_slice(&next[..wanted]);
        }
        Ok(Bytes::from(gathered))
    }

    /// The chunk that contains `position`, and the chunk's start.
    ///
    /// # Errors
    /// Corrupt: `position` is beyond the data, or the chunk is damaged.
    pub(crate) fn chunk_at(&self, position: u64) -> Result<(u64, Bytes)> {
        self.check_range(position, 1)?;
        let index = position / u64::from(self.chunk_length);
        let start = index * u64::from(self.chunk_length);
        let cached = self.cache.as_ref();
        if let Some(chunk) = cached.and_then(|cache| cache.lookup(self.cache_file, index)) {
            return Ok((start, chunk));
        }
        let mut chunk = spare::take(self.length_of(index));
        self.fill(index, 1, &mut chunk)?;
        let chunk = chunk.freeze();
        if let Some(cache) = &self.cache {
            cache.insert(self.cache_file, index, chunk.clone());
        }
        Ok((start, chunk))
    }

    /// The chunk that contains `position`, and the chunk's start, if it is cached. No I/O.
    pub(crate) fn cached_chunk_at(&self, position: u64) -> Option<(u64, Bytes)> {
        let index = position / u64::from(self.chunk_length);
        let chunk = self.cache.as_ref()?.lookup_ahead(self.cache_file, index)?;
        Some((index * u64::from(self.chunk_length), chunk))
    }

    /// The chunk that contains `position`, if it is cached; else a run of `count` chunks that starts with it, read at once. For
    /// streams that have already read several chunks, and for large values. The chunks are added to the cache only while the cache
    /// has room without evicting others.
    pub(super) fn run_at(&self, position: u64, count: u64) -> Result<(u64, Bytes)> {
        let index = position / u64::from(self.chunk_length);
        let cached = self.cache.as_ref();
        if let Some(chunk) = cached.and_then(|cache| cache.lookup(self.cache_file, index)) {
            return Ok((index * u64::from(self.chunk_length), chunk));
        }
        let mut run = Vec::new();
        let start = self.append_run(position, count, &mut run)?;
        if let Some(cache) = self.cache.as_ref().filter(|cache| cache.has_room_for(run.len())) {
            for (index, chunk) in (index..).zip(run.chunks(self.chunk_length as usize)) {
                cache.insert(self.cache_file, index, Bytes::copy_from_slice(chunk));
            }
        }
        Ok((start, Bytes::from(run)))
    }

    /// Number of chunks, starting with the chunk that contains `position`, that have about `wanted_bytes` stored bytes; at least one.
    pub(super) fn chunks_of(&self, position: u64, wanted_bytes: u64) -> u64 {
        let first = position / u64::from(self.chunk_length);
        let Ok((run_start, _)) = self.stored_range(first) else {
            return 1;
        };
        let mut count = 1;
        while first + count < self.chunk_count() {
            match self.stored_range(first + count) {
                Ok((_, end)) if end.saturating_sub(run_start) <= wanted_bytes => count += 1,
                // Also if the chunk map is damaged: the error is reported when that chunk is read.
                _ => break,
            }
        }
        count
    }

    /// The number of existing chunks from `position` to `end`; at least one.
    pub(super) fn chunks_upto(&self, position: u64, end: u64) -> u64 {
        let chunk_length = u64::from(self.chunk_length);
        let end = end.min(self.data_length).div_ceil(chunk_length);
        end.saturating_sub(position / chunk_length).max(1)
    }

    /// Appends `count` uncompressed chunks, starting with the chunk that contains `position`; reads them at once. Returns the
    /// position of the first appended byte.
    pub(super) fn append_run(&self, position: u64, count: u64, out: &mut Vec<u8>) -> Result<u64> {
        self.check_range(position, 1)?;
        let first = position / u64::from(self.chunk_length);
        if self.append_chunks(first, count, out).is_err() {
            self.append_whole_ones(first, count, out)?;
        }
        Ok(first * u64::from(self.chunk_length))
    }

    /// Appends the chunks before the first damaged one. Fails only if the first chunk is damaged.
    #[cold]
    fn append_whole_ones(&self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        self.append_chunks(first, 1, out)?;
        for index in first + 1..first + count {
            if self.append_chunks(index, 1, out).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// True if the chunks are compressed.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(self.layout.as_ref(), Layout::Compressed { .. })
    }

    /// Reads `count` stored chunks, starting with chunk `first`. If they cannot all be read, reads only the first.
    pub(super) fn read_run(&self, first: u64, count: u64, run: &mut StoredRun) -> Result<()> {
        match self.try_read_run(first, count, run) {
            Err(_) if count > 1 => self.try_read_run(first, 1, run),
            read => read,
        }
    }

    fn try_read_run(&self, first: u64, count: u64, run: &mut StoredRun) -> Result<()> {
        run.chunks = 0..0;
        let (start, _) = self.stored_range(first)?;
        let (_, end) = self.stored_range(first + count - 1)?;
        self.read_stored(first, start, run.room(offset_in(start, end)))?;
        run.start = start;
        run.chunks = first..first + count;
        Ok(())
    }

    /// Appends the uncompressed bytes of a chunk of the run; on error, appends none.
    pub(super) fn append_of(&self, run: &StoredRun, index: u64, out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        out.resize(at + self.length_of(index), 0);
        let decoded = self.decode_of(run, index, &mut out[at..]);
        if decoded.is_err() {
            out.truncate(at);
        }
        decoded
    }

    /// Decodes a chunk of the run into `out`, which has the length of the chunk.
    fn decode_of(&self, run: &StoredRun, index: u64, out: &mut [u8]) -> Result<()> {
        let (start, end) = self.stored_range(index)?;
        let place = offset_in(run.start, start)..offset_in(run.start, end);
        match run.bytes.get(place) {
            Some(piece) => self.decode_chunk(index, piece, out),
            None => {
                let position = index * u64::from(self.chunk_length);
                Err(self.corrupt(position, "a chunk behind the one before it"))
            }
        }
    }

    pub(super) fn check_range(&self, position: u64, len: usize) -> Result<()> {
        let fits = position
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.data_length);
        if !fits {
            return Err(self.corrupt(position, format!("{len} more bytes of data")));
        }
        if len > READ_LEN_MAX {
            return Err(self.corrupt(position, "a value of at most 1 GiB"));
        }
        Ok(())
    }

    /// An error about damage at an uncompressed position of this file.
    pub fn corrupt(&self, position: u64, expected: impl Into<String>) -> Error {
        Error::corrupt(self.file.path(), position, expected)
    }

    fn chunk_count(&self) -> u64 {
        self.data_length.div_ceil(u64::from(self.chunk_length))
    }

    /// Uncompressed length of a chunk.
    fn length_of(&self, index: u64) -> usize {
        let start = index * u64::from(self.chunk_length);
        let left = self.data_length.saturating_sub(start);
        left.min(u64::from(self.chunk_length)) as usize
    }

    /// The range of a stored chunk in the file, including its CRC.
    fn stored_range(&self, index: u64) -> Result<(u64, u64)> {
        let Layout::Compressed { info, .. } = self.layout.as_ref() else {
            let start = index * u64::from(self.chunk_length);
            return Ok((start, start + self.length_of(index) as u64));
        };
        let at = index as usize;
        let start = info.offsets.get(at).copied().unwrap_or(u64::MAX);
        let end = info
            .offsets
            .get(at + 1)
            .copied()
            .unwrap_or(self.file.size_bytes());
        // Upper limit: no algorithm makes a chunk longer by more than a quarter and 1 KiB.
        let longest = u64::from(info.chunk_length) + u64::from(info.chunk_length) / 4 + 1024;
        let length = end
            .checked_sub(start)
            .and_then(|length| length.checked_sub(CRC_LEN));
        if length.is_none_or(|length| length > longest) || end > self.file.size_bytes() {
            let position = index * u64::from(self.chunk_length);
            return Err(self.corrupt(position, "a chunk that lies in the file"));
        }
        Ok((start, end))
    }

    /// Reads `count` chunks at once and appends their uncompressed bytes; on error, appends none.
    fn append_chunks(&self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        let lengths: usize = (first..first + count).map(|index| self.length_of(index)).sum();
        out.resize(at + lengths, 0);
        let filled = self.fill(first, count, &mut out[at..]);
        if filled.is_err() {
            out.truncate(at);
        }
        filled
    }

    /// Reads `count` chunks at once into `out`, which has their uncompressed length.
    fn fill(&self, first: u64, count: u64, out: &mut [u8]) -> Result<()> {
        thread_local! {
            static RUN: RefCell<StoredRun> = const { RefCell::new(StoredRun::none()) };
        }
        if !self.is_compressed() {
            let (start, _) = self.stored_range(first)?;
            self.read_stored(first, start, out)?;
            return self.check_uncompressed(first, out);
        }
        RUN.with_borrow_mut(|run| {
            self.try_read_run(first, count, run)?;
            let mut chunks = (first..).zip(out.chunks_mut(self.chunk_length as usize));
            chunks.try_for_each(|(index, chunk)| self.decode_of(run, index, chunk))
        })
    }

    fn read_stored(&self, first: u64, offset: u64, into: &mut [u8]) -> Result<()> {
        parking::read_exact_at(&self.file, offset, into).map_err(|error| {
            if error.is_unexpected_end() {
                self.corrupt(first * u64::from(self.chunk_length), "a file of its full length")
            } else {
                error.into()
            }
        })
    }

    fn check_uncompressed(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let Layout::Checked(crcs, component) = self.layout.as_ref() else {
            return Ok(());
        };
        for (index, chunk) in (first..).zip(bytes.chunks(self.chunk_length as usize)) {
            if crcs.crcs.get(index as usize) != Some(&crc32(chunk)) {
                let position = index * u64::from(self.chunk_length);
                return Err(self.corrupt(
                    position,
                    format!("a chunk with the CRC that {component} has for it"),
                ));
            }
        }
        Ok(())
    }

    /// Decodes a chunk into `out`, which has the length of the chunk.
    fn decode_chunk(&self, index: u64, piece: &[u8], out: &mut [u8]) -> Result<()> {
        let Layout::Compressed { info, compressor } = self.layout.as_ref() else {
            return Ok(());
        };
        let position = index * u64::from(self.chunk_length);
        let Some((stored, crc)) = piece.split_last_chunk::<4>() else {
            return Err(self.corrupt(position, "a chunk with its CRC"));
        };
        if crc32(stored) != u32::from_be_bytes(*crc) {
            return Err(self.corrupt(position, "a chunk with the CRC that follows it"));
        }
        if stored.len() >= info.compressed_length_max as usize {
            let raw = stored.get(..out.len());
            let raw = raw.ok_or_else(|| self.corrupt(position, "a raw chunk of full length"))?;
            out.copy_from_slice(raw);
            return Ok(());
        }
        match compressor.decompress(stored, out) {
            Ok(found) if found == out.len() => Ok(()),
            Ok(_) => Err(self.corrupt(position, "a chunk of full length")),
            Err(error) => Err(self.corrupt(position, error.to_string())),
        }
    }
}

/// Consecutive chunks in their stored form.
#[derive(Debug)]
pub(super) struct StoredRun {
    /// The bytes of the chunks, possibly followed by old bytes.
    bytes: Vec<u8>,
    /// Offset of the first chunk in the file.
    start: u64,
    /// Indexes of the chunks.
    chunks: Range<u64>,
}

impl StoredRun {
    pub(super) const fn none() -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            chunks: 0..0,
        }
    }

    /// Memory for `len` bytes; only new memory is zeroed.
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        &mut self.bytes[..len]
    }

    pub(super) fn has(&self, index: u64) -> bool {
        self.chunks.contains(&index)
    }
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.forget_file(self.cache_file, self.chunk_count());
        }
    }
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkReader").field("path", &self.path()).finish()
    }
}

#[inline]
pub(super) fn offset_in(start: u64, position: u64) -> usize {
    let offset = position.checked_sub(start);
    offset
        .and_then(|offset| usize::try_from(offset).ok())
        .unwrap_or(usize::MAX)
}

/// Reads a whole component; `None` if it does not exist. If the checksums cover the component, it must exist and match.
fn read_checked(
    env: &dyn Env,
    descriptor: &Descriptor,
    component: &Component,
    checksums: Option<&Checksums>,
) -> Result<Option<Vec<u8>>> {
    let bytes = read_component(env, descriptor, component)?;
    let path = descriptor.path(component);
    match (&bytes, checksums.and_then(|checksums| checksums.of(component))) {
        (Some(bytes), Some(sums)) => sums.check(bytes, &path)?,
        (None, Some(_)) => return Err(Error::corrupt(&path, 0, "the file, since Checksums.db names it")),
        (_, None) => {}
    }
    Ok(bytes)
}

fn open_layout(
    env: &dyn Env,
    descriptor: &Descriptor,
    data: &dyn ReadFile,
    checksums: Option<&Checksums>,
) -> Result<Layout> {
    if let Some(bytes) = read_checked(env, descriptor, &Component::CompressionInfo, checksums)? {
        let path = descriptor.path(&Component::CompressionInfo);
        let info = CompressionInfo::decode(&bytes, descriptor.version, &path)?;
        let compressor = info.compressor(&path)?;
        return Ok(Layout::Compressed { info, compressor });
    }
    let Some(bytes) = read_checked(env, descriptor, &Component::Crc, checksums)? else {
        return Ok(Layout::Unchecked);
    };
    let path = descriptor.path(&Component::Crc);
    let crcs = CrcFile::decode(&bytes, &path)?;
    let chunks = data.size_bytes().div_ceil(u64::from(crcs.chunk_length));
    if crcs.crcs.len() as u64 != chunks {
        return Err(Error::corrupt(
            &path,
            bytes.len() as u64,
            format!("a CRC for each of {chunks} chunks"),
        ));
    }
    Ok(Layout::Checked(crcs, Component::Crc))
}
