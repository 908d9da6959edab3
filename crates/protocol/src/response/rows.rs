//! RESULT, kind Rows.
//!
//! ```text
//! rows     := kind: i32 (2), metadata, n: i32, n x columns x cell: bytes
//! metadata := flags: i32, columns: i32, paging_state: bytes, new_metadata_id: short bytes (both if flagged),
//!             columns (see `columns`) unless flag 0x4
//! ```
//!
//! Servers use [`RowsHead`] and append rows that are encoded already. Clients use [`Rows`], which keeps the body and returns cells as
//! slices.

use bytes::Bytes;

use crate::columns::{ColumnSpec, decode_columns, encode_columns, global_flag};
use crate::error::Error;
use crate::notation::{Input, put_bytes, put_i32, put_short_bytes, put_size};
use crate::response::KIND_ROWS;
use crate::response::prepared::decode_count;
use crate::version::Version;

const HAS_MORE_PAGES: i32 = 0x2;
const NO_METADATA: i32 = 0x4;
const METADATA_CHANGED: i32 = 0x8;

/// The metadata to send with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode<'a> {
    /// Full metadata.
    Full,
    /// Only the number of columns: the client knows the rest.
    Skip,
    /// Full metadata with a new id, since the client's metadata is out of date (v5; before, the same as `Full`).
    Changed(&'a [u8]),
}

/// The head of a result: everything before its rows.
#[derive(Clone, Copy, Debug)]
pub struct RowsHead<'a> {
    /// The columns of the result.
    pub columns: &'a [ColumnSpec],
    /// The metadata to send.
    pub mode: MetadataMode<'a>,
    /// The paging state for the next page; `None` on the last page.
    pub paging_state: Option<&'a [u8]>,
}

impl RowsHead<'_> {
    /// Appends the body of a result up to its rows, to a response that was begun with opcode RESULT. The caller appends the encoded
    /// rows: cell after cell, `length: i32` (-1 for null) and the bytes.
    pub fn begin_rows(&self, out: &mut Vec<u8>, version: Version, row_count: u32) {
        put_i32(out, KIND_ROWS);
        self.encode(out, version);
        put_size(out, row_count as usize);
    }

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

/// The decoded metadata of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsMetadata {
    /// Number of columns, also if `columns` is `None`.
    pub column_count: usize,
    /// The columns; `None` if they were not sent.
    pub columns: Option<Vec<ColumnSpec>>,
    /// The paging state for the next page; `None` on the last page.
    pub paging_state: Option<Bytes>,
    /// The id of this metadata, if it differs from the one in the request (v5).
    pub new_metadata_id: Option<Bytes>,
}

impl RowsMetadata {
    /// Full metadata of these columns.
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

/// Decoded rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Their metadata.
    pub metadata: RowsMetadata,
    /// Number of rows.
    pub row_count: usize,
    /// Invariant: exactly `row_count` x `column_count` cells.
    cells: Bytes,
}

impl Rows {
    /// Encodes rows of cells.
    ///
    /// # Panics
    /// If a row does not have one cell for each column.
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

/// Checks that the body has all cells. Each cell has at least four bytes, so a wrong count ends the loop early. Rows without columns
/// are refused: they have no bytes, so their count could not be checked.
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
