//! Lookups in a cell map.

use bytes::Bytes;
use ilion_codec::Reader;
use ilion_env::Env;

use super::BLOCK_ENTRIES;
use super::tail::{TAIL_LEN, Tail};
use crate::{Component, Descriptor, Error, Result};
use ilion_pages::{PageBytes, Pages, paged_length};

/// The cell map of one SSTable.
pub(crate) struct CellMap {
    pages: Pages,
    tail: Tail,
    blocks: u64,
}

/// The entry of a position in Data.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The bytes at this position: the start of a partition or row.
    pub(crate) head: Bytes,
    /// The parts of the rest of a row, see [`super::Parts`].
    pub(crate) parts: Option<Bytes>,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Near {
    pub(crate) entry: Option<Entry>,
    /// The next position that has an entry; `None` at the end.
    pub(crate) next: Option<u64>,
}

impl CellMap {
    /// Opens Cells.db; `None` if it does not exist. Reads only its tail.
    ///
    /// # Errors
    /// Corrupt if its tail is damaged, or if it belongs to another SSTable than the one with this fingerprint and this size of
    /// Data.db on disk.
    pub(crate) fn open(
        env: &dyn Env,
        descriptor: &Descriptor,
        fingerprint: u32,
        stored_length: u64,
    ) -> Result<Option<Self>> {
        let path = descriptor.path(&Component::Cells);
        let file = match env.open_read(&path) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let expected = "the end of a cell map of version 1";
        let mut bytes = [0; TAIL_LEN];
        let Some(tail_at) = file.size_bytes().checked_sub(TAIL_LEN as u64) else {
            return Err(Error::corrupt(&path, 0, expected));
        };
        file.read_exact_at(tail_at, &mut bytes)?;
        let Some(tail) = Tail::decode(&bytes).filter(|tail| tail.has_room(tail_at)) else {
            return Err(Error::corrupt(&path, tail_at, expected));
        };
        if tail.fingerprint != fingerprint || tail.stored_length != stored_length {
            let expected = "a cell map of this SSTable, not of another one with the same name";
            return Err(Error::corrupt(&path, tail_at, expected));
        }
        let Some(pages) = Pages::of(file, tail.body_length) else {
            return Err(Error::corrupt(&path, tail_at, expected));
        };
        Ok(Some(Self {
            pages,
            blocks: blocks_for(tail.entry_count),
            tail,
        }))
    }

    /// Number of partitions and rows that have an entry.
    pub(crate) fn entry_count(&self) -> u64 {
        self.tail.entry_count
    }

    /// Uncompressed size of Data.db.
    pub(crate) fn data_length(&self) -> u64 {
        self.tail.data_length
    }

    /// Size of the file.
    pub(crate) fn file_length(&self) -> u64 {
        self.pages.file_length()
    }

    /// Memory of the map in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.pages.memory_bytes()
    }

    /// The entry of `position`, and the next position with an entry.
    ///
    /// # Errors
    /// The map is damaged or cannot be read.
    pub(crate) fn near(&self, position: u64) -> Result<Near> {
        let Some(number) = self.block_below(position)? else {
            return Ok(Near {
                entry: None,
                next: Some(self.base(0)?),
            });
        };
        let (start, bytes) = self.block(number)?;
        let count = (self.tail.entry_count - number * BLOCK_ENTRIES).min(BLOCK_ENTRIES);
        let found = find(&bytes, self.base(number)?, count, position);
        let Some(mut near) = found else {
            return Err(self.pages.corrupt(start, "a block of entries").into());
        };
        if near.next.is_none() && number + 1 < self.blocks {
            near.next = Some(self.base(number + 1)?);
        }
        Ok(near)
    }

    /// The last block that starts at or before `position`.
    fn block_below(&self, position: u64) -> Result<Option<u64>> {
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.base(middle)? <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
    }

    fn base(&self, number: u64) -> Result<u64> {
        Ok(self.pages.u64_at(self.tail.directory_at + number * 8)?)
    }

    fn block_at(&self, number: u64) -> Result<u64> {
        let at = self.tail.directory_at + (self.blocks + number) * 8;
        Ok(self.pages.u64_at(at)?)
    }

    fn block(&self, number: u64) -> Result<(u64, PageBytes<'_>)> {
        let start = self.block_at(number)?;
        let end = match number + 1 {
            next if next < self.blocks => self.block_at(next)?,
            _ => self.tail.directory_at,
        };
        let len = end.checked_sub(start).and_then(|len| usize::try_from(len).ok());
        match len {
            Some(len) => Ok((start, self.pages.bytes(start, len)?)),
            None => Err(self.pages.corrupt(start, "blocks in order").into()),
        }
    }
}

impl Tail {
    /// True if the numbers of the tail fit a file whose tail starts at `tail_at`.
    fn has_room(&self, tail_at: u64) -> bool {
        let directory_end = blocks_for(self.entry_count)
            .checked_mul(16)
            .and_then(|len| len.checked_add(self.directory_at));
        self.entry_count > 0
            && paged_length(self.body_length) == Some(tail_at)
            && directory_end.is_some_and(|end| end <= self.body_length)
    }
}

fn blocks_for(entry_count: u64) -> u64 {
    entry_count.div_ceil(BLOCK_ENTRIES)
}

/// Finds an entry in a block; `None` if the block is damaged.
fn find(bytes: &[u8], base: u64, count: u64, wanted: u64) -> Option<Near> {
    let mut input = Reader::new(bytes);
    let (mut position, mut offset) = (base, 0_usize);
    let mut at = None;
    let mut next = None;
    for _ in 0..count {
        position = position.checked_add(input.uvint().ok()?)?;
        let len = usize::try_from(input.uvint().ok()?).ok()?;
        if position == wanted {
            at = Some((offset, len));
        } else if position > wanted && next.is_none() {
            next = Some(position);
        }
        offset = offset.checked_add(len)?;
    }
    let entry = match at {
        None => None,
        Some((offset, len)) => {
            let entry = input.rest().get(offset..)?.get(..len)?;
            Some(parse_entry(entry)?)
        }
    };
    Some(Near { entry, next })
}

fn parse_entry(bytes: &[u8]) -> Option<Entry> {
    let mut input = Reader::new(bytes);
    let len = usize::try_from(input.uvint().ok()?).ok()?;
    let head = Bytes::copy_from_slice(input.take(len).ok()?);
    let parts = input.rest();
    Some(Entry {
        head,
        parts: (!parts.is_empty()).then(|| Bytes::copy_from_slice(parts)),
    })
}
