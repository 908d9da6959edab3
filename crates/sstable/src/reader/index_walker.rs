//! Index.db: every partition's key and position, in the order of Data.db.
//!
//! ```text
//! file  := entry*
//! entry := key:bytes16  position:uvint  size:uvint  promoted index of that size
//! ```

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::Partitioner;

use crate::row_decode::{ByteSource as _, read_uvint};
use crate::{ChunkReader, DataStream, Error, Result};

const KEY_LENGTH_LEN: usize = 2;
const VINT_LEN_MAX: usize = 9;

/// Where a partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// In uncompressed Data.db.
    pub(crate) position: u64,
    /// Position and size of its promoted index in Index.db.
    pub(crate) promoted: Option<(u64, u64)>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) key: Bytes,
    pub(crate) location: Location,
}

/// A walk over the entries.
#[derive(Debug)]
pub(crate) struct IndexWalker {
    stream: DataStream,
}

impl IndexWalker {
    /// For one look-up, through the cache.
    pub(crate) fn cached(index: &Arc<ChunkReader>, position: u64) -> Self {
        Self {
            stream: DataStream::cached(index.clone(), position),
        }
    }

    /// For a walk over many entries, past the cache.
    pub(crate) fn sequential(index: &Arc<ChunkReader>, position: u64, read_ahead_bytes: u64) -> Self {
        Self {
            stream: DataStream::sequential(index.clone(), position, read_ahead_bytes),
        }
    }

    /// Where the next entry starts.
    pub(crate) fn position(&self) -> u64 {
        self.stream.position()
    }

    /// Damage at the position.
    pub(crate) fn corrupt(&self, expected: &'static str) -> Error {
        self.stream.corrupt(expected)
    }

    /// The next entry; nothing at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<IndexEntry>> {
        if self.stream.is_at_end() {
            return Ok(None);
        }
        let key_len = usize::from(u16::from_be_bytes(self.stream.array()?));
        let key = self.stream.take(key_len)?;
        let location = self.location()?;
        Ok(Some(IndexEntry { key, location }))
    }

    fn location(&mut self) -> Result<Location> {
        let position = self.stream.uvint()?;
        let size = self.stream.uvint()?;
        let promoted_at = self.stream.position();
        self.stream.skip(size)?;
        Ok(Location {
            position,
            promoted: (size > 0).then_some((promoted_at, size)),
        })
    }

    /// The location of `key`, if an entry before `end` has it.
    pub(crate) fn find(&mut self, key: &[u8], end: u64) -> Result<Option<Location>> {
        while self.stream.position() < end {
            let Some(prefix) = self.stream.peek(KEY_LENGTH_LEN)?.first_chunk() else {
                return Err(self.corrupt("the length of a key"));
            };
            let key_end = KEY_LENGTH_LEN + usize::from(u16::from_be_bytes(*prefix));
            let entry = self.stream.peek(key_end + 2 * VINT_LEN_MAX)?;
            let Some(entry_key) = entry.get(KEY_LENGTH_LEN..key_end) else {
                return Err(self.corrupt("a key of that length"));
            };
            let is_it = entry_key == key;
            let Some((position, size, len)) = read_numbers(&entry[key_end..]) else {
                return Err(self.corrupt("the entry of a partition"));
            };
            self.stream.consume(key_end + len);
            if is_it {
                let promoted_at = self.stream.position();
                let promoted = (size > 0).then_some((promoted_at, size));
                return Ok(Some(Location { position, promoted }));
            }
            if size > 0 {
                self.stream.skip(size)?;
            }
        }
        Ok(None)
    }

    /// Moves to the first entry that is above `bound`; it is the next one given. Returns false at the end.
    pub(crate) fn seek_above(&mut self, bound: &KeyBound, partitioner: Partitioner) -> Result<bool> {
        loop {
            let start = self.stream.position();
            let Some(entry) = self.next_entry()? else {
                return Ok(false);
            };
            let key = DecoratedKey::new(partitioner, entry.key);
            if bound.compare(&key).is_lt() {
                self.stream.seek(start);
                return Ok(true);
            }
        }
    }
}

/// Position, size of the promoted index, and how many bytes both took.
#[inline]
fn read_numbers(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let (position, position_len) = read_uvint(bytes)?;
    let (size, size_len) = read_uvint(&bytes[position_len..])?;
    Some((position, size, position_len + size_len))
}
