//! Reads uncompressed data forwards from a position.
//!
//! The window is a run of uncompressed bytes in one piece of memory; taken values are slices of it. When a row crosses the end
//! of the window, the rest of the window moves to the front of a new one.

use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Scratch, patience};

use super::buffers::Buffers;
use super::reader::{ChunkReader, StoredRun, offset_in};
use crate::error::Step;
use crate::row::read_uvint;
use crate::{Error, Result};

/// Stored bytes that a scan reads at once.
pub const READ_AHEAD_BYTES: u64 = 128 << 10;

/// Bytes of a large value that are read at once.
const LARGE_READ_BYTES: u64 = 1 << 20;

/// Longer values bypass the cache.
const CACHED_VALUE_BYTES_MAX: u64 = 4 << 20;

/// Memory for a window of up to this size is reserved at once. For a larger window, that is tried; if it fails, the window grows while
/// it is read.
const FORESEEN_BYTES_MAX: usize = 64 << 20;

/// If a scan has fewer bytes left in its window, it copies the rest and appends the next chunk.
const REFILLED_BELOW: usize = 1 << 10;

/// Values of at least this length are kept in scratch files, if their row is too large for memory.
const APART_BYTES_MIN: usize = 4 << 10;
/// Bytes of a value in a scratch file that are read at once.
const APART_READ_BYTES: usize = 128 << 10;

/// Number of chunks that are read one by one through the cache, before several are read at once.
const CHUNKS_BEFORE_RUNS: u32 = 3;

/// Number of bytes of a window that count as one unit against a deadline, like one row.
const BYTES_PER_UNIT: usize = 32;

/// Counts bytes that a read covers against the deadline of its request.
///
/// # Errors
/// The deadline has passed.
pub(crate) fn spend_bytes(bytes: usize) -> std::result::Result<(), patience::Ended> {
    patience::spend(u32::try_from(bytes / BYTES_PER_UNIT).unwrap_or(u32::MAX))
}

/// A position in uncompressed data, with a window of bytes.
#[derive(Debug)]
pub struct DataStream {
    chunks: Arc<ChunkReader>,
    /// Stored bytes to read at once, past the cache. Zero: read chunk by chunk through the cache.
    read_ahead_bytes: u64,
    /// Uncompressed bytes from `window_start`.
    window: Bytes,
    window_start: u64,
    /// Offset of the position in the window. Invariant: at most the window's length.
    offset: usize,
    /// True if the window was preloaded, see [`DataStream::lay`].
    is_laid: bool,
    /// A row size in bytes, and the scratch files for values of larger rows; `None` keeps all values in memory.
    scratch: Option<(usize, Scratch)>,
    /// Reused memory for the windows of a scan.
    buffers: Buffers,
    /// Stored chunks that a scan has read ahead. Each is decompressed when the scan reaches it, so that it is still in the
    /// CPU's cache then.
    ahead: StoredRun,
    /// End position of the data that was read last.
    read_upto: u64,
    /// Number of consecutive reads that each started where the one before ended.
    in_a_row: u32,
}

impl DataStream {
    /// Reads chunk by chunk, through the cache, for point reads and slices. If consecutive chunks are read, the number of chunks
    /// read at once grows.
    pub fn cached(chunks: Arc<ChunkReader>, position: u64) -> Self {
        Self::new(chunks, position, 0)
    }

    /// Reads about `read_ahead_bytes` stored bytes at once, past the cache, for scans and compactions.
    pub fn sequential(chunks: Arc<ChunkReader>, position: u64, read_ahead_bytes: u64) -> Self {
        Self::new(chunks, position, read_ahead_bytes.max(1))
    }

    fn new(chunks: Arc<ChunkReader>, position: u64, read_ahead_bytes: u64) -> Self {
        Self {
            chunks,
            read_ahead_bytes,
            window: Bytes::new(),
            window_start: position,
            offset: 0,
            is_laid: false,
            scratch: None,
            buffers: Buffers::default(),
            ahead: StoredRun::none(),
            read_upto: position,
            in_a_row: 0,
        }
    }

    /// Keeps values of rows of more than `held_bytes_max` bytes in scratch files instead of memory.
    #[must_use]
    pub(crate) fn keeping_large_rows(mut self, held_bytes_max: usize, scratch: Scratch) -> Self {
        self.scratch = Some((held_bytes_max, scratch));
        self
    }

    /// True if large values of a row of this size are kept in scratch files.
    #[inline]
    pub(crate) fn keeps_apart(&self, row_bytes: usize) -> bool {
        self.scratch.as_ref().is_some_and(|(most, _)| row_bytes > *most)
    }

    /// The file that the stream reads.
    pub fn chunks(&self) -> &Arc<ChunkReader> {
        &self.chunks
    }

    /// The current position.
    #[inline]
    pub fn position(&self) -> u64 {
        self.window_start + self.offset as u64
    }

    /// True at (or beyond) the end of the data.
    pub fn is_at_end(&self) -> bool {
        self.position() >= self.chunks.data_length()
    }

    /// Moves to a position, without I/O. Beyond the end, the next read fails.
    pub fn seek(&mut self, position: u64) {
        let ahead = position.checked_sub(self.window_start);
        match ahead.map(|ahead| usize::try_from(ahead).unwrap_or(usize::MAX)) {
            Some(offset) if offset <= self.window.len() => self.offset = offset,
            _ => self.set_window(position, Bytes::new()),
        }
    }

    /// Makes `bytes`, the data at `position`, the window, and moves there. If more bytes are needed, the window is dropped and the
    /// data is read from the current position, so that bytes of one chunk are not copied.
    pub(crate) fn lay(&mut self, position: u64, bytes: Bytes) {
        self.set_window(position, bytes);
        self.is_laid = true;
    }

    fn set_window(&mut self, start: u64, window: Bytes) {
        self.window = window;
        self.window_start = start;
        self.offset = 0;
        self.is_laid = false;
    }

    /// The bytes of the window from the position on, possibly empty. No I/O.
    #[inline]
    pub fn rest(&self) -> &[u8] {
        &self.window[self.offset..]
    }

    /// The whole window, and the offset of the position in it.
    #[inline]
    pub(crate) fn window(&self) -> (&Bytes, usize) {
        (&self.window, self.offset)
    }

    /// Reads until at least `len` bytes are available (see [`DataStream::rest`]).
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub fn require(&mut self, len: usize) -> Step<()> {
        if self.window.len() - self.offset >= len {
            return Ok(());
        }
        self.extend(len)
    }

    /// In a scan, reads the next chunk if few bytes are left, perhaps not a whole row. Returns true if bytes were added. If the next
    /// chunk is damaged, the error is reported when that chunk is needed.
    pub(crate) fn refill(&mut self) -> bool {
        let left = self.rest().len();
        let is_due = self.read_ahead_bytes > 0 && left < REFILLED_BELOW;
        is_due && self.peek(left + 1).is_ok_and(|rest| rest.len() > left)
    }

    /// Reads the next chunk if all bytes of the window are taken. If the chunk is damaged, the next [`Self::require`] or
    /// [`Self::peek`] returns the error.
    pub(crate) fn begin_window(&mut self) {
        if self.offset == self.window.len() {
            let _ = self.peek(1);
        }
    }

    /// At least `len` bytes from the position on, or all bytes up to the end of the data.
    ///
    /// # Errors
    /// A chunk is damaged.
    #[inline]
    pub fn peek(&mut self, len: usize) -> Step<&[u8]> {
        if self.window.len() - self.offset < len {
            let left = self.chunks.data_length().saturating_sub(self.position());
            let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.require(len)?;
        }
        Ok(self.rest())
    }

    /// Moves past `len` available bytes.
    ///
    /// # Panics
    /// If fewer are available: call `require` or `peek` first.
    #[inline]
    pub fn consume(&mut self, len: usize) {
        assert!(
            len <= self.window.len() - self.offset,
            "the bytes were required or peeked before"
        );
        self.offset += len;
    }

    /// Moves to an offset in the window (see [`DataStream::window`]).
    ///
    /// # Panics
    /// If the offset is outside of the window.
    #[inline]
    pub(crate) fn go_to(&mut self, offset: usize) {
        assert!(offset <= self.window.len(), "the offset is inside the window");
        self.offset = offset;
    }

    /// Returns the next `len` bytes as a slice of the window, and moves past them.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub fn take(&mut self, len: usize) -> Step<Bytes> {
        self.require(len)?;
        let taken = self.window.slice(self.offset..self.offset + len);
        self.offset += len;
        Ok(taken)
    }

    /// As [`Self::take`], but returns no slice of the window: a copy, or, for long values, bytes in a scratch file.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged. Io: the scratch file cannot be written.
    pub(crate) fn take_apart(&mut self, len: usize) -> Step<Bytes> {
        if len < APART_BYTES_MIN {
            return Ok(Bytes::copy_from_slice(&self.take(len)?));
        }
        self.chunks.check_range(self.position(), len)?;
        let (most, mut scratch) = self.scratch.take().unwrap_or_default();
        let kept = self.keep(len, &mut scratch);
        self.scratch = Some((most, scratch));
        kept
    }

    fn keep(&mut self, len: usize, scratch: &mut Scratch) -> Step<Bytes> {
        let mut keeping = scratch.begin(len);
        let mut left = len;
        while left > 0 {
            self.require(left.min(APART_READ_BYTES))?;
            let count = left.min(self.rest().len());
            keeping.append(&self.rest()[..count]).map_err(Error::from)?;
            self.consume(count);
            left -= count;
        }
        Ok(Bytes::from_owner(keeping.finish()))
    }

    /// Moves past `len` bytes, without reading those that are outside of the window.
    ///
    /// # Errors
    /// Corrupt: the data ends before.
    pub fn skip(&mut self, len: u64) -> Step<()> {
        let target = self.position().checked_add(len);
        match target.filter(|target| *target <= self.chunks.data_length()) {
            Some(target) => {
                self.seek(target);
                Ok(())
            }
            None => Err(self.corrupt(format!("{len} more bytes of data")).into()),
        }
    }

    /// The next byte.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub fn u8(&mut self) -> Step<u8> {
        self.require(1)?;
        let byte = self.window[self.offset];
        self.offset += 1;
        Ok(byte)
    }

    /// An unsigned vint.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub fn uvint(&mut self) -> Step<u64> {
        if let Some((value, len)) = read_uvint(self.rest()) {
            self.offset += len;
            return Ok(value);
        }
        self.uvint_over_end()
    }

    /// A vint that crosses the end of the window.
    #[cold]
    fn uvint_over_end(&mut self) -> Step<u64> {
        let at = self.position();
        let read = read_uvint(self.peek(9)?);
        match read {
            Some((value, len)) => {
                self.offset += len;
                Ok(value)
            }
            None => Err(self.chunks.corrupt(at, "an unsigned vint").into()),
        }
    }

    /// An error about damage at the position.
    pub fn corrupt(&self, expected: impl Into<String>) -> Error {
        self.chunks.corrupt(self.position(), expected)
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, len: usize) -> Step<()> {
        let position = self.position();
        spend_bytes(self.window.len())?;
        self.chunks.check_range(position, len)?;
        if self.is_laid {
            self.set_window(position, Bytes::new());
        }
        if self.read_ahead_bytes == 0 && self.offset == self.window.len() {
            // The common case: the next chunk, shared with the cache.
            let (start, chunk) = self.load(position, len)?;
            self.window_start = start;
            self.offset = offset_in(start, position);
            self.window = chunk;
            if self.window.len() - self.offset >= len {
                return Ok(());
            }
        }
        let mut joined = self.buffers.take();
        let whole = len + self.chunks.chunk_length() as usize;
        // A window that grows while it is read needs up to twice the memory. That is the fallback if the memory cannot be
        // reserved at once.
        if whole <= FORESEEN_BYTES_MAX || joined.try_reserve_exact(whole).is_err() {
            joined.reserve(whole.min(FORESEEN_BYTES_MAX));
        }
        joined.extend_from_slice(self.rest());
        // Number of bytes of `joined` before `position`.
        let mut before = 0;
        while joined.len() - before < len {
            let had = joined.len() - before;
            let next = position + had as u64;
            let was_empty = joined.is_empty();
            let (start, appended_at) = self.append_next(next, len - had, &mut joined)?;
            let overlap = offset_in(start, next);
            if was_empty {
                before = overlap;
            } else if overlap > 0 {
                joined.drain(appended_at..appended_at + overlap);
            }
        }
        self.window = if self.read_ahead_bytes == 0 {
            Bytes::from(joined)
        } else {
            self.buffers.share(joined)
        };
        self.window_start = position - before as u64;
        self.offset = before;
        Ok(())
    }

    /// The chunk that contains `position`, and the chunk's start. Returns a run of chunks instead if several consecutive chunks were
    /// read before, or if the `missing` bytes are in several chunks.
    fn load(&mut self, position: u64, missing: usize) -> Result<(u64, Bytes)> {
        let chunk_length = u64::from(self.chunks.chunk_length());
        let is_next = position / chunk_length * chunk_length == self.read_upto;
        self.in_a_row = if is_next {
            self.in_a_row.saturating_add(1)
        } else {
            0
        };
        let mut count = self.chunks_missing(position, missing);
        if let Some(more) = self.in_a_row.checked_sub(CHUNKS_BEFORE_RUNS) {
            let wanted_bytes = (chunk_length << (1 + more.min(8))).min(READ_AHEAD_BYTES);
            count = count.max(self.chunks.chunks_of(position, wanted_bytes));
        }
        let (start, bytes) = match count {
            1 => self.chunks.chunk_at(position)?,
            count => self.chunks.run_at(position, count)?,
        };
        self.read_upto = start + bytes.len() as u64;
        Ok((start, bytes))
    }

    /// The number of chunks to read at once for the next `missing` bytes.
    fn chunks_missing(&self, position: u64, missing: usize) -> u64 {
        let end = position.saturating_add((missing as u64).min(LARGE_READ_BYTES));
        self.chunks.chunks_upto(position, end)
    }

    /// Appends the chunk (or run of chunks) that contains `position`; `missing` bytes are needed. Returns the position of its
    /// first byte, and the offset of that byte in `out`.
    fn append_next(&mut self, position: u64, missing: usize, out: &mut Vec<u8>) -> Result<(u64, usize)> {
        let at = out.len();
        if self.read_ahead_bytes == 0 && missing as u64 <= CACHED_VALUE_BYTES_MAX {
            let (start, chunk) = self.load(position, missing)?;
            out.extend_from_slice(&chunk);
            return Ok((start, at));
        }
        let index = position / u64::from(self.chunks.chunk_length());
        if self.ahead.has(index) {
            self.chunks.append_of(&self.ahead, index, out)?;
            return Ok((self.note_read(index, out.len() - at), at));
        }
        let count = self.chunks.chunks_of(position, self.read_ahead_bytes);
        let count = count.max(self.chunks_missing(position, missing));
        if self.read_ahead_bytes > 0 && self.chunks.is_compressed() {
            self.chunks.read_run(index, count, &mut self.ahead)?;
            self.chunks.append_of(&self.ahead, index, out)?;
        } else {
            self.chunks.append_run(position, count, out)?;
        }
        Ok((self.note_read(index, out.len() - at), at))
    }

    /// Records that `len` bytes were read from the start of chunk `index`; returns the position of that chunk.
    fn note_read(&mut self, index: u64, len: usize) -> u64 {
        let start = index * u64::from(self.chunks.chunk_length());
        self.read_upto = start + len as u64;
        start
    }
}
