//! RESULT, kind Rows.
//!
//! ```text
//! rows     := kind: i32 (2), metadata, n: i32, n x columns x cell: bytes
//! metadata := flags: i32, columns: i32, paging_state: bytes, new_metadata_id: short bytes (both if flagged),
//!             columns (see `columns`) unless flag 0x4
//! ```
//!
//! A server streams: [`RowsWriter`] appends cells to the buffer that goes to the socket, and sets the number of rows at
//! the end. A client looks: [`Rows`] keeps the body and hands out cells as slices.

use bytes::Bytes;
use ilion_codec::Rope;

use crate::columns::{ColumnSpec, decode_columns, encode_columns, global_flag};
use crate::error::Error;
use crate::notation::{Input, put_bytes, put_i32, put_short_bytes, put_size};
use crate::response::KIND_ROWS;
use crate::response::prepared::decode_count;
use crate::version::Version;

const HAS_MORE_PAGES: i32 = 0x2;
const NO_METADATA: i32 = 0x4;
const METADATA_CHANGED: i32 = 0x8;

/// How much of the metadata goes with the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode<'a> {
    /// All of it.
    Full,
    /// Only the number of columns: the client knows the rest.
    Skip,
    /// All of it under a new id: what the client knows is out of date (v5; the same as `Full` before).
    Changed(&'a [u8]),
}

/// What a server says before its rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsHead<'a> {
    /// The columns of the result.
    pub columns: &'a [ColumnSpec],
    /// How much of them to send.
    pub mode: MetadataMode<'a>,
    /// Where to go on, if there are more pages.
    pub paging_state: Option<&'a [u8]>,
}

impl RowsHead<'_> {
    fn encode(&self, out: &mut Vec<u8>, version: Version) {
        let new_id = match self.mode {
            MetadataMode::Changed(id) if version >= Version::V5 => Some(id),
            _ => None,
        };
        let mut flags = global_flag(self.columns);
        if self.paging_state.is_some() {
            flags |= HAS_MORE_PAGES;
        }
        if self.mode == MetadataMode::Skip {
            flags |= NO_METADATA;
        }
        if new_id.is_some() {
            flags |= METADATA_CHANGED;
        }
        put_i32(out, flags);
        put_size(out, self.columns.len());
        if let Some(paging_state) = self.paging_state {
            put_bytes(out, Some(paging_state));
        }
        if let Some(id) = new_id {
            put_short_bytes(out, id);
        }
        if self.mode != MetadataMode::Skip {
            encode_columns(out, version, flags, self.columns);
        }
    }
}

/// Appends rows to a response that was begun with opcode RESULT.
#[derive(Debug)]
#[must_use = "the number of rows is written by finish"]
pub struct RowsWriter<'a> {
    out: &'a mut Vec<u8>,
    row_count_at: usize,
    row_count: u32,
    column_count: usize,
    cells_in_row: usize,
}

impl<'a> RowsWriter<'a> {
    /// Appends the head; no rows yet.
    pub fn new(out: &'a mut Vec<u8>, version: Version, head: &RowsHead<'_>) -> Self {
        put_i32(out, KIND_ROWS);
        head.encode(out, version);
        let row_count_at = out.len();
        put_i32(out, 0);
        Self {
            out,
            row_count_at,
            row_count: 0,
            column_count: head.columns.len(),
            cells_in_row: 0,
        }
    }

    /// Appends the next cell of the row.
    #[inline]
    pub fn cell(&mut self, value: Option<&[u8]>) {
        self.cells_in_row += 1;
        put_bytes(self.out, value);
    }

    /// Appends the next cell of the row, whose bytes `encode` appends.
    #[inline]
    pub fn cell_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        self.cells_in_row += 1;
        let length_at = self.out.len();
        put_i32(self.out, 0);
        encode(self.out);
        let length = self.out.len() - length_at - 4;
        set_i32(self.out, length_at, length);
    }

    /// Ends the row.
    ///
    /// # Panics
    /// If it has not one cell for each column: the client would read the next row as part of this one.
    #[inline]
    pub fn end_row(&mut self) {
        assert_eq!(
            self.cells_in_row, self.column_count,
            "a row has one cell for each column"
        );
        self.cells_in_row = 0;
        self.row_count += 1;
    }

    /// Appends whole rows that are encoded already: cell after cell, `length: i32` (-1 for null) and the bytes.
    pub fn encoded_rows(&mut self, row_count: u32, cells: &Rope) {
        self.out.reserve(cells.len());
        cells
            .pieces()
            .for_each(|piece| self.out.extend_from_slice(piece.bytes()));
        self.row_count += row_count;
    }

    /// Counts whole rows that are encoded already, and come after what is in the buffer.
    pub fn rows_follow(&mut self, row_count: u32) {
        self.row_count += row_count;
    }

    /// Rows so far.
    pub fn row_count(&self) -> u32 {
        self.row_count
    }

    /// Bytes in the buffer so far, to cut a page short before it gets too large for an envelope.
    pub fn len_bytes(&self) -> usize {
        self.out.len()
    }

    /// Writes the number of rows.
    pub fn finish(self) {
        debug_assert_eq!(self.cells_in_row, 0, "the last row was ended");
        set_i32(self.out, self.row_count_at, self.row_count as usize);
    }
}

/// Overwrites four bytes; sizes beyond `i32` belong to envelopes that `finish` refuses.
#[inline]
fn set_i32(out: &mut [u8], at: usize, value: usize) {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    out[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// The metadata of rows, as a client has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsMetadata {
    /// How many columns, even if they are not described.
    pub column_count: usize,
    /// The columns; none if they were not sent.
    pub columns: Option<Vec<ColumnSpec>>,
    /// Where to go on, if there are more pages.
    pub paging_state: Option<Bytes>,
    /// The id of this metadata, if it is not what the client named (v5).
    pub new_metadata_id: Option<Bytes>,
}

impl RowsMetadata {
    /// Metadata of these columns, in full.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        Self {
            column_count: columns.len(),
            columns: Some(columns),
            paging_state: None,
            new_metadata_id: None,
        }
    }

    /// Metadata of a statement that returns no rows.
    pub fn none() -> Self {
        Self::default()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match &self.columns {
            Some(columns) => RowsHead {
                columns,
                mode: match &self.new_metadata_id {
                    Some(id) => MetadataMode::Changed(id),
                    None => MetadataMode::Full,
                },
                paging_state: self.paging_state.as_deref(),
            }
            .encode(out, version),
            None => self.encode_without_columns(out),
        }
    }

    fn encode_without_columns(&self, out: &mut Vec<u8>) {
        let more = if self.paging_state.is_some() {
            HAS_MORE_PAGES
        } else {
            0
        };
        put_i32(out, NO_METADATA | more);
        put_size(out, self.column_count);
        if let Some(paging_state) = &self.paging_state {
            put_bytes(out, Some(paging_state));
        }
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let flags = input.i32()?;
        let column_count = decode_count(input)?;
        let paging_state = if flags & HAS_MORE_PAGES != 0 {
            input.bytes()?
        } else {
            None
        };
        let new_metadata_id = if flags & METADATA_CHANGED != 0 {
            Some(input.short_bytes()?)
        } else {
            None
        };
        let columns = if flags & NO_METADATA != 0 {
            None
        } else {
            Some(decode_columns(input, flags, column_count)?)
        };
        Ok(Self {
            column_count,
            columns,
            paging_state,
            new_metadata_id,
        })
    }
}

/// Rows, as a client has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// What they look like.
    pub metadata: RowsMetadata,
    /// How many there are.
    pub row_count: usize,
    /// Checked when decoded: exactly `row_count` x `column_count` cells.
    cells: Bytes,
}

impl Rows {
    /// Rows of cells, for servers that have them at hand and for tests.
    ///
    /// # Panics
    /// If a row has not one cell for each column.
    pub fn new<'c, R>(metadata: RowsMetadata, rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = Option<&'c [u8]>>,
    {
        let mut cells = Vec::new();
        let mut row_count = 0;
        for row in rows {
            let mut width = 0;
            for cell in row {
                put_bytes(&mut cells, cell);
                width += 1;
            }
            assert_eq!(width, metadata.column_count, "a row has one cell for each column");
            row_count += 1;
        }
        Self {
            metadata,
            row_count,
            cells: Bytes::from(cells),
        }
    }

    /// The cells of all rows in order; `None` is null. Take `column_count` at a time.
    pub fn cells(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut input = ilion_codec::Reader::new(&self.cells);
        let cell_count = self.row_count * self.metadata.column_count;
        (0..cell_count).map_while(move |_| input.bytes32_or_null().ok())
    }

    /// The rows in order, each as its cells.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Option<&[u8]>>> {
        let width = self.metadata.column_count;
        let mut cells = self.cells();
        (0..self.row_count).map(move |_| cells.by_ref().take(width).collect())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_i32(out, KIND_ROWS);
        self.metadata.encode(out, version);
        put_size(out, self.row_count);
        out.extend_from_slice(&self.cells);
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let metadata = RowsMetadata::decode(input)?;
        let row_count = decode_count(input)?;
        let cells = input.rest();
        check_cells(input, row_count, metadata.column_count)?;
        Ok(Self {
            metadata,
            row_count,
            cells,
        })
    }
}

/// Walks over all cells. Each takes at least four bytes, so a false count ends the walk early; rows without columns, which
/// take none, are refused for the same reason.
fn check_cells(input: &mut Input<'_>, row_count: usize, column_count: usize) -> Result<(), Error> {
    if column_count == 0 && row_count > 0 {
        return Err(Error::refused("rows without columns"));
    }
    for _ in 0..row_count {
        for _ in 0..column_count {
            input.reader().bytes32_or_null()?;
        }
    }
    Ok(())
}
