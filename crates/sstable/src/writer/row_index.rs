//! Writes the row index of one partition (Cassandra: promoted index), for partitions with several blocks.
//!
//! ```text
//! row_index := head_length:uvint  deletion:PDEL  count:uvint  block *  offset:i32 *
//! block     := first:prefix  last:prefix  offset:uvint  width:svint  has_open:bool [open:PDEL]
//! prefix    := 4 values | bound                              4: the clustering of a row
//! ```
//!
//! `offset` in a block counts from the partition's start; `width` is reduced by 65536. The offsets at the end are those of the
//! blocks, relative to the first one. `open` is the deletion that is open behind the block.

use ilion_codec::{Append, Writer};
use ilion_rows::DeletionTime;

use crate::Version;
use crate::row::format::times::encode_partition_deletion;

/// Compat: subtracted from widths, for any block size (`IndexInfo.Serializer.WIDTH_BASE`).
const WIDTH_BASE: i64 = 64 << 10;
/// The kind of a row's clustering, beside the kinds of bounds.
const ROW_KIND: u8 = 4;

/// The clustering of an unfiltered, as stored in Data.db.
#[derive(Clone, Copy, Debug)]
pub(super) enum Prefix<'a> {
    /// The values of a row.
    Row(&'a [u8]),
    /// The bound of a marker, kind first.
    Marker(&'a [u8]),
}

/// A copy of a prefix.
#[derive(Debug, Default)]
struct StoredPrefix {
    is_row: bool,
    bytes: Vec<u8>,
}

impl StoredPrefix {
    #[inline]
    fn store(&mut self, prefix: Prefix<'_>) {
        let (is_row, bytes) = match prefix {
            Prefix::Row(values) => (true, values),
            Prefix::Marker(bound) => (false, bound),
        };
        self.is_row = is_row;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn append_to(&self, out: &mut Writer) {
        if self.is_row {
            out.u8(ROW_KIND);
        }
        out.bytes(&self.bytes);
    }
}

#[derive(Debug)]
pub(super) struct RowIndexBuilder {
    version: Version,
    block_bytes: u64,
    first: StoredPrefix,
    last: StoredPrefix,
    /// Start of the current block, if it is not empty.
    block_start: Option<u64>,
    open: DeletionTime,
    blocks: Writer,
    offsets: Vec<u32>,
    /// True if an open deletion cannot be stored: then no index is written, and readers scan the partition.
    is_given_up: bool,
}

impl RowIndexBuilder {
    pub(super) fn new(version: Version, block_bytes: u32) -> Self {
        Self {
            version,
            block_bytes: u64::from(block_bytes.max(1)),
            first: StoredPrefix::default(),
            last: StoredPrefix::default(),
            block_start: None,
            open: DeletionTime::LIVE,
            blocks: Writer::new(),
            offsets: Vec::new(),
            is_given_up: false,
        }
    }

    /// Sets the deletion that is open behind a marker.
    pub(super) fn set_open(&mut self, open: Option<DeletionTime>) {
        self.open = open.unwrap_or(DeletionTime::LIVE);
    }

    /// Adds an unfiltered from `start` to `end`, as offsets from the partition's start.
    #[inline(always)]
    pub(super) fn add(&mut self, prefix: Prefix<'_>, start: u64, end: u64) {
        let block_start = match self.block_start {
            Some(block_start) => block_start,
            None => {
                self.first.store(prefix);
                *self.block_start.insert(start)
            }
        };
        let ends_block = end - block_start >= self.block_bytes;
        // With only one block, no index is written, and its last prefix is not needed.
        if ends_block || !self.offsets.is_empty() {
            self.last.store(prefix);
        }
        if ends_block {
            self.end_block(block_start, end);
        }
    }

    #[inline(never)]
    fn end_block(&mut self, start: u64, end: u64) {
        self.offsets
            .push(u32::try_from(self.blocks.len()).unwrap_or(u32::MAX));
        self.first.append_to(&mut self.blocks);
        self.last.append_to(&mut self.blocks);
        self.blocks.uvint(start);
        self.blocks.svint((end - start).cast_signed() - WIDTH_BASE);
        self.blocks.bool(!self.open.is_live());
        if !self.open.is_live() {
            self.is_given_up |=
                encode_partition_deletion(self.version, &self.open, &mut self.blocks).is_err();
        }
        self.block_start = None;
    }

    /// Appends the rest of the entry in Index.db, behind the position: the size of the row index, and, if there are several blocks,
    /// the index itself; then returns true. The partition ends at `end`; the next call is for another partition.
    #[inline]
    pub(super) fn finish_partition(
        &mut self,
        head_length: u64,
        deletion: &DeletionTime,
        end: u64,
        out: &mut impl Append,
    ) -> bool {
        let has_index = match self.offsets.is_empty() {
            true => false,
            false => self.finish_blocks(head_length, deletion, end, out),
        };
        if !has_index {
            out.u8(0);
        }
        self.block_start = None;
        self.open = DeletionTime::LIVE;
        has_index
    }

    #[inline(never)]
    fn finish_blocks(
        &mut self,
        head_length: u64,
        deletion: &DeletionTime,
        end: u64,
        out: &mut impl Append,
    ) -> bool {
        if let Some(start) = self.block_start {
            self.end_block(start, end);
        }
        let has_index = self.append_index(head_length, deletion, out);
        self.blocks.clear();
        self.offsets.clear();
        self.is_given_up = false;
        has_index
    }

    fn append_index(&mut self, head_length: u64, deletion: &DeletionTime, out: &mut impl Append) -> bool {
        let mut head = Writer::new();
        head.uvint(head_length);
        self.is_given_up |= encode_partition_deletion(self.version, deletion, &mut head).is_err();
        if self.offsets.len() < 2 || self.is_given_up {
            return false;
        }
        head.uvint(self.offsets.len() as u64);
        out.uvint((head.len() + self.blocks.len() + 4 * self.offsets.len()) as u64);
        out.bytes(head.as_slice());
        out.bytes(self.blocks.as_slice());
        for offset in &self.offsets {
            out.u32(*offset);
        }
        true
    }
}
