//! Index.db: key and position of every partition, in the order of Data.db.
//!
//! ```text
//! file  := entry*
//! entry := key:bytes16  position:uvint  size:uvint  promoted index of that size
//! ```

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::Partitioner;

use super::location::{Location, RowIndexAt};
use crate::row::read_uvint;
use crate::row::source::ByteSource as _;
use crate::{ChunkReader, DataStream, Error, Result};

const KEY_LENGTH_LEN: usize = 2;
const VINT_LEN_MAX: usize = 9;

/// Iterates over the entries of Index.db.
#[derive(Debug)]
pub(crate) struct IndexWalker {
    stream: DataStream,
}

impl IndexWalker {
    /// A walker for a single lookup, through the cache.
    pub(crate) fn cached(index: &Arc<ChunkReader>, position: u64) -> Self {
        Self {
            stream: DataStream::cached(index.clone(), position),
        }
    }

    /// A walker over many entries, past the cache.
    pub(crate) fn sequential(index: &Arc<ChunkReader>, position: u64, read_ahead_bytes: u64) -> Self {
        Self {
            stream: DataStream::sequential(index.clone(), position, read_ahead_bytes),
        }
    }

    /// Offset of the next entry.
    pub(crate) fn position(&self) -> u64 {
        self.stream.position()
    }

    /// An error about damage at the current offset.
    pub(crate) fn corrupt(&self, expected: &'static str) -> Error {
        self.stream.corrupt(expected)
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<(Bytes, Location)>> {
        if self.stream.is_at_end() {
            return Ok(None);
        }
        let key_len = usize::from(u16::from_be_bytes(self.stream.array()?));
        let key = self.stream.take(key_len)?;
        let location = self.location()?;
        Ok(Some((key, location)))
    }

    fn location(&mut self) -> Result<Location> {
        let position = self.stream.uvint()?;
        let size = self.stream.uvint()?;
        let promoted_at = self.stream.position();
        self.stream.skip(size)?;
        Ok(Location {
            position,
            is_certain: true,
            row_index: promoted(promoted_at, size),
            entry_at: None,
        })
    }

    /// The location of `key`, if an entry that starts before `end` has it.
    pub(crate) fn find(&mut self, key: &[u8], end: u64) -> Result<Option<Location>> {
        loop {
            let left = end.saturating_sub(self.stream.position());
            if left == 0 {
                return Ok(None);
            }
            let window = self.stream.rest();
            let window = &window[..window.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let (passed, found) = find_at_hand(window, key);
            self.stream.consume(passed);
            match found {
                Some(entry) => return self.take_location(entry).map(Some),
                None if passed > 0 => {}
                // The next entry is not wholly in the window, or has a promoted index to skip.
                None => {
                    if let Some(location) = self.find_next(key)? {
                        return Ok(Some(location));
                    }
                }
            }
        }
    }

    /// The location of the next entry, if that entry has `key`.
    fn find_next(&mut self, key: &[u8]) -> Result<Option<Location>> {
        let Some(prefix) = self.stream.peek(KEY_LENGTH_LEN)?.first_chunk() else {
            return Err(self.corrupt("the length of a key"));
        };
        let key_len = usize::from(u16::from_be_bytes(*prefix));
        let bytes = self.stream.peek(KEY_LENGTH_LEN + key_len + 2 * VINT_LEN_MAX)?;
        let Some(entry) = Entry::read(bytes) else {
            return Err(self.corrupt("the entry of a partition"));
        };
        let is_it = entry.key == key;
        let numbers = entry.numbers;
        let location = self.take_location(numbers)?;
        Ok(is_it.then_some(location))
    }

    /// Skips an entry that is in the window.
    fn take_location(&mut self, entry: Numbers) -> Result<Location> {
        self.stream.consume(entry.len);
        let promoted_at = self.stream.position();
        self.stream.skip(entry.promoted_size)?;
        Ok(Location {
            position: entry.position,
            is_certain: true,
            row_index: promoted(promoted_at, entry.promoted_size),
            entry_at: None,
        })
    }

    /// Moves to the first entry above `bound`. Returns false if there is none.
    pub(crate) fn seek_above(&mut self, bound: &KeyBound, partitioner: Partitioner) -> Result<bool> {
        loop {
            let start = self.stream.position();
            let Some((key, _)) = self.next_entry()? else {
                return Ok(false);
            };
            let key = DecoratedKey::new(partitioner, key);
            if bound.compare(&key).is_lt() {
                self.stream.seek(start);
                return Ok(true);
            }
        }
    }
}

fn promoted(position: u64, size: u64) -> Option<RowIndexAt> {
    (size > 0).then_some(RowIndexAt::Promoted { position, size })
}

/// An entry in the window, without its promoted index.
struct Entry<'b> {
    key: &'b [u8],
    numbers: Numbers,
}

struct Numbers {
    position: u64,
    promoted_size: u64,
    /// Length of the entry up to its promoted index.
    len: usize,
}

impl<'b> Entry<'b> {
    #[inline]
    fn read(bytes: &'b [u8]) -> Option<Self> {
        let (key_len, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*key_len)))?;
        let (position, position_len) = read_uvint(rest)?;
        let (promoted_size, size_len) = read_uvint(&rest[position_len..])?;
        Some(Self {
            key,
            numbers: Numbers {
                position,
                promoted_size,
                len: KEY_LENGTH_LEN + key.len() + position_len + size_len,
            },
        })
    }
}

/// Searches for `key` among the whole entries in `bytes`, up to and including the first with a promoted index. Returns the size of the
/// entries before the match, and the match.
#[inline]
fn find_at_hand(bytes: &[u8], key: &[u8]) -> (usize, Option<Numbers>) {
    let mut passed = 0;
    while let Some(entry) = Entry::read(&bytes[passed..]) {
        if entry.key == key {
            return (passed, Some(entry.numbers));
        }
        if entry.numbers.promoted_size > 0 {
            break;
        }
        passed += entry.numbers.len;
    }
    (passed, None)
}
