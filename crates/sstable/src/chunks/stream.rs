//! Walks through uncompressed data from a position on.
//!
//! The window is a run of uncompressed bytes in one piece of memory; what is taken are slices of it. When a row
//! crosses its end, the rest moves to the front of a new window.

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

/// Longer values go past the cache.
const CACHED_VALUE_BYTES_MAX: u64 = 4 << 20;

/// Memory that is made room for before its bytes were read.
const FORESEEN_BYTES_MAX: usize = 64 << 20;

/// A scan that has less than this at hand takes the next chunk: what is left is copied then.
const REFILLED_BELOW: usize = 1 << 10;

/// Values from here on are kept apart, where a row is too large to be held.
const APART_BYTES_MIN: usize = 4 << 10;
/// Bytes of them that are read at once.
const APART_READ_BYTES: usize = 128 << 10;

/// Chunks that a walk through the cache reads one by one, before it reads several at once.
const CHUNKS_BEFORE_RUNS: u32 = 3;

/// Bytes of a window that count as much as a row, for whoever has only so much time.
const BYTES_PER_UNIT: usize = 32;

/// A place in uncompressed data that moves forward, or is moved.
#[derive(Debug)]
pub struct DataStream {
    chunks: Arc<ChunkReader>,
    /// Zero: chunk by chunk through the cache.
    read_ahead_bytes: u64,
    /// Uncompressed bytes from `window_start` on.
    window: Bytes,
    window_start: u64,
    /// Invariant: at most the window's length.
    offset: usize,
    /// The window was laid, see [`DataStream::lay`].
    is_laid: bool,
    /// Where values of rows of more than so many bytes are kept; `None`: in memory.
    scratch: Option<(usize, Scratch)>,
    /// Memory of the windows of a scan.
    buffers: Buffers,
    /// What a scan has read of the file. Each chunk is decompressed when the scan comes to it, so that it is near the processor then.
    ahead: StoredRun,
    /// Where the data that was read last ends.
    read_upto: u64,
    /// How many times in a row what was read follows on what was read before.
    in_a_row: u32,
}

impl DataStream {
    /// Reads chunk by chunk, through the cache: for point reads and slices. Once some chunks have followed on each other,
    /// more and more are read at once.
    pub fn cached(chunks: Arc<ChunkReader>, position: u64) -> Self {
        Self::new(chunks, position, 0)
    }

    /// Reads about `read_ahead_bytes` of stored bytes at once, past the cache: for scans and compaction.
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

    /// Keeps values of rows of more than so many bytes there rather than in memory.
    #[must_use]
    pub fn keeping_large_rows(mut self, held_bytes_max: usize, scratch: Scratch) -> Self {
        self.scratch = Some((held_bytes_max, scratch));
        self
    }

    /// True if values of a row of so many bytes are kept elsewhere.
    #[inline]
    pub(crate) fn keeps_apart(&self, row_bytes: usize) -> bool {
        self.scratch.as_ref().is_some_and(|(most, _)| row_bytes > *most)
    }

    /// The file that it walks through.
    pub fn chunks(&self) -> &Arc<ChunkReader> {
        &self.chunks
    }

    /// Where it stands.
    #[inline]
    pub fn position(&self) -> u64 {
        self.window_start + self.offset as u64
    }

    /// True at (or beyond) the end of the data.
    pub fn is_at_end(&self) -> bool {
        self.position() >= self.chunks.data_length()
    }

    /// Moves to a position, without I/O; beyond the end, the next read fails.
    pub fn seek(&mut self, position: u64) {
        let ahead = position.checked_sub(self.window_start);
        match ahead.map(|ahead| usize::try_from(ahead).unwrap_or(usize::MAX)) {
            Some(offset) if offset <= self.window.len() => self.offset = offset,
            _ => self.set_window(position, Bytes::new()),
        }
    }

    /// Has bytes at hand that are known to be at `position`, where it then stands. As soon as more are wanted, it is as if they had
    /// not been: the data is read from where the stream stands, so that what lies in one chunk is not copied.
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

    /// The bytes at hand from the position on, perhaps none: no I/O.
    #[inline]
    pub fn rest(&self) -> &[u8] {
        &self.window[self.offset..]
    }

    /// All bytes at hand, and where among them the position is.
    #[inline]
    pub(crate) fn window(&self) -> (&Bytes, usize) {
        (&self.window, self.offset)
    }

    /// Makes at least `len` bytes at hand (see [`DataStream::rest`]).
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

    /// Of a scan, has the next chunk at hand if little is left of the one before it, perhaps not a whole row. True if there was more. If
    /// that chunk is damaged, this is told when it is read.
    pub(crate) fn refill(&mut self) -> bool {
        let left = self.rest().len();
        let is_due = self.read_ahead_bytes > 0 && left < REFILLED_BELOW;
        is_due && self.peek(left + 1).is_ok_and(|rest| rest.len() > left)
    }

    /// At least `len` bytes from the position on, or all that the data still has.
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

    /// Moves past `len` bytes that were at hand.
    ///
    /// # Panics
    /// If fewer are at hand: the caller has required or peeked them.
    #[inline]
    pub fn consume(&mut self, len: usize) {
        assert!(
            len <= self.window.len() - self.offset,
            "consumes what it has seen"
        );
        self.offset += len;
    }

    /// Goes to a place in the window (see [`DataStream::window`]).
    ///
    /// # Panics
    /// If it is outside: the caller has seen the bytes before it.
    #[inline]
    pub(crate) fn go_to(&mut self, offset: usize) {
        assert!(offset <= self.window.len(), "goes where it has seen bytes");
        self.offset = offset;
    }

    /// Moves past `len` bytes and gives them, as a slice of the window.
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

    /// The same, not as a slice of the window: copied, or kept elsewhere if they are many.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged. Io: they cannot be kept.
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

    /// Moves past `len` bytes without reading those that are not at hand.
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

    /// A vint of which not all is at hand.
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

    /// Damage at the position.
    pub fn corrupt(&self, expected: impl Into<String>) -> Error {
        self.chunks.corrupt(self.position(), expected)
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, len: usize) -> Step<()> {
        let position = self.position();
        let done = self.window.len() / BYTES_PER_UNIT;
        patience::spend(u32::try_from(done).unwrap_or(u32::MAX))?;
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
        // A window that grows as it is read comes to twice as much. Without memory for all of it at once it does.
        if whole <= FORESEEN_BYTES_MAX || joined.try_reserve_exact(whole).is_err() {
            joined.reserve(whole.min(FORESEEN_BYTES_MAX));
        }
        joined.extend_from_slice(self.rest());
        // How many bytes of `joined` lie before `position`.
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

    /// The chunk that holds `position`; or a run of chunks, if the walk has gone on for a while or the `missing` bytes are
    /// in several. And where it starts.
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

    /// Chunks with the next `missing` bytes that are to be read at once.
    fn chunks_missing(&self, position: u64, missing: usize) -> u64 {
        let end = position.saturating_add((missing as u64).min(LARGE_READ_BYTES));
        self.chunks.chunks_upto(position, end)
    }

    /// Appends the chunk (or run of chunks) that holds `position`, of `missing` bytes; returns the position of its first byte
    /// and where in `out` it stands.
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

    /// So many bytes were read from the start of a chunk on, whose position that gives.
    fn note_read(&mut self, index: u64, len: usize) -> u64 {
        let start = index * u64::from(self.chunks.chunk_length());
        self.read_upto = start + len as u64;
        start
    }
}
