//! Finds rows by number, and numbers by place.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;
use ilion_pages::PageBytes;
use ilion_rows::{DecoratedKey, ReadError};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

use super::block::Rows;
use super::order::{Clusterings, order_byte};
use super::writer::Tail;
use super::{BLOCK_ROWS, MAGIC, NAME};
use crate::clustering_bytes::decode_clustering;
use crate::paged::{PagedFile, u64_at, unusable};
use crate::{Error, Place, RowNumbers, RowPart};

/// Bytes of a directory entry, which describes one block.
const ENTRY_LEN: usize = 16;

/// The rows of an SSTable by number. Its file is read on demand.
pub struct RowNumbersFile {
    file: PagedFile,
    tail: Tail,
    clusterings: Clusterings,
    partitioner: Partitioner,
}

impl RowNumbersFile {
    /// The name of the file, which follows the base of an SSTable's component paths.
    pub const NAME: &str = NAME;

    /// Opens the file of an SSTable whose components begin with `base` (`.../nb-1-big-`). Reads only its tail.
    ///
    /// # Errors
    /// [`Error::Unusable`] if it must be written again.
    pub fn open(
        env: &Arc<dyn Env>,
        base: &str,
        table: &TableSchema,
        partitioner: Partitioner,
    ) -> Result<Self, Error> {
        let path = PathBuf::from(format!("{base}{NAME}"));
        let (file, fields) = PagedFile::open(env, &path, MAGIC)?;
        let tail = Tail::decode(&fields).ok_or_else(|| unusable(&path, "its tail is invalid"))?;
        let clusterings = Clusterings::of(table);
        if tail.order != order_byte(partitioner) || tail.has_clustering == clusterings.is_empty() {
            return Err(unusable(&path, "it belongs to another table or partitioner"));
        }
        let directory_len = u64::from(tail.rows.div_ceil(BLOCK_ROWS)) * ENTRY_LEN as u64;
        if tail.directory_at.checked_add(directory_len) != Some(file.body_length()) {
            return Err(unusable(&path, "its directory has a wrong offset"));
        }
        Ok(Self {
            file,
            tail,
            clusterings,
            partitioner,
        })
    }

    /// Size of the file.
    pub fn size_bytes(&self) -> u64 {
        self.file.size_bytes()
    }

    /// The keys of the first and the last row, to check that the file belongs to an SSTable.
    pub fn ends(&self) -> (&Bytes, &Bytes) {
        (&self.tail.first_key, &self.tail.last_key)
    }

    fn blocks(&self) -> u32 {
        self.tail.rows.div_ceil(BLOCK_ROWS)
    }

    /// The code of the first row's token, and the block's offset.
    #[inline]
    fn entry(&self, block: u32) -> Result<(u64, u64), ReadError> {
        let at = self.tail.directory_at + u64::from(block) * ENTRY_LEN as u64;
        let bytes = self.file.bytes(at, ENTRY_LEN)?;
        Ok((u64_at(&bytes, 0), u64_at(&bytes, 8)))
    }

    /// The bytes of a block, and its offset.
    #[inline]
    fn block(&self, block: u32) -> Result<(PageBytes<'_>, u64), ReadError> {
        let (_, start) = self.entry(block)?;
        let end = if block + 1 < self.blocks() {
            self.entry(block + 1)?.1
        } else {
            self.tail.directory_at
        };
        let len = end.checked_sub(start).and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or_else(|| self.file.corrupt(start, "a block before the next one"))?;
        Ok((self.file.bytes(start, len)?, start))
    }

    /// The rows of a block; none is decoded yet.
    #[inline]
    fn rows<'b>(&self, bytes: &'b [u8]) -> Rows<'b> {
        Rows::of(bytes, !self.clusterings.is_empty())
    }

    fn read(&self, rows: &mut Rows<'_>, count: u32, start: u64) -> Result<(), ReadError> {
        rows.read(count as usize)
            .map_err(|_| self.file.corrupt(start, "a block of rows"))
    }

    /// Compares a row with a place.
    fn compare(&self, rows: &Rows<'_>, row: usize, place: &Place, buffer: &mut Vec<u8>) -> Ordering {
        rows.key(row, buffer);
        if *buffer != place.key.key {
            let token = self.partitioner.token(buffer);
            let of_tokens = token.cmp(&place.key.token);
            return of_tokens.then_with(|| buffer[..].cmp(&place.key.key));
        }
        match (rows.clustering(row, buffer), &place.row) {
            (false, RowPart::Static) => Ordering::Equal,
            (false, RowPart::Row(_)) => Ordering::Less,
            (true, RowPart::Static) => Ordering::Greater,
            (true, RowPart::Row(clustering)) => self.clusterings.compare(buffer, clustering),
        }
    }

    /// True if the first row of a block is before a place.
    fn starts_below(&self, block: u32, code: u64, place: &Place) -> Result<bool, ReadError> {
        let (head, _) = self.entry(block)?;
        if head != code {
            return Ok(head < code);
        }
        let (bytes, start) = self.block(block)?;
        let mut rows = self.rows(&bytes);
        self.read(&mut rows, 1, start)?;
        Ok(self.compare(&rows, 0, place, &mut Vec::new()).is_lt())
    }

    /// The index in its block of the first row that is not before a place.
    fn number_in(&self, block: u32, place: &Place) -> Result<u32, ReadError> {
        let count = (self.tail.rows - block * BLOCK_ROWS).min(BLOCK_ROWS);
        let (bytes, start) = self.block(block)?;
        let mut rows = self.rows(&bytes);
        self.read(&mut rows, count, start)?;
        let mut buffer = Vec::new();
        let (mut low, mut high) = (0, rows.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.compare(&rows, middle, place, &mut buffer).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(u32::try_from(low).unwrap_or(count))
    }
}

impl RowNumbers for RowNumbersFile {
    fn len(&self) -> u32 {
        self.tail.rows
    }

    fn place(&self, number: u32) -> Result<Place, ReadError> {
        if number >= self.tail.rows {
            return Err(self.file.corrupt(u64::from(number), "the number of a row"));
        }
        let row = number % BLOCK_ROWS;
        let (bytes, start) = self.block(number / BLOCK_ROWS)?;
        let mut rows = self.rows(&bytes);
        self.read(&mut rows, row + 1, start)?;
        let mut buffer = Vec::new();
        rows.key(row as usize, &mut buffer);
        let key = DecoratedKey::new(self.partitioner, Bytes::copy_from_slice(&buffer));
        let row = if rows.clustering(row as usize, &mut buffer) {
            RowPart::Row(decode_clustering(&buffer))
        } else {
            RowPart::Static
        };
        Ok(Place { key, row })
    }

    fn number_from(&self, place: &Place) -> Result<u32, ReadError> {
        let code = place.key.token.code();
        let (mut low, mut high) = (0, self.blocks());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.starts_below(middle, code, place)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The block before the first one that starts at the place or after it may have the row.
        match low.checked_sub(1) {
            None => Ok(0),
            Some(block) => Ok(block * BLOCK_ROWS + self.number_in(block, place)?),
        }
    }
}

impl std::fmt::Debug for RowNumbersFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowNumbersFile")
            .field("rows", &self.tail.rows)
            .finish_non_exhaustive()
    }
}
