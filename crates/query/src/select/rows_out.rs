//! The rows of an answer, in the form of the protocol.

use bytes::Bytes;
use ilion_codec::{Rope, SHARED_MIN};

/// Row after row, per cell a length (-1 for null) and the bytes.
#[derive(Debug, Default)]
pub(super) struct RowsOut {
    pub cells: Rope,
    pub row_count: u32,
}

impl RowsOut {
    /// Appends a cell.
    #[inline]
    pub fn value(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.cells.end().extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(bytes) => {
                let out = self.cells.end();
                out.reserve(4 + bytes.len());
                out.extend_from_slice(&length_of(bytes));
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Appends a cell with a reference-counted value: a large one is not copied.
    #[inline]
    pub fn shared(&mut self, value: &Bytes) {
        if value.len() < SHARED_MIN {
            return self.value(Some(value));
        }
        self.cells.end().extend_from_slice(&length_of(value));
        self.cells.push(value);
    }

    /// Ends a row whose cells were all appended.
    #[inline]
    pub fn end_row(&mut self) {
        self.row_count += 1;
    }
}

#[inline]
fn length_of(value: &[u8]) -> [u8; 4] {
    // Compat: values above 2 GiB cannot be sent, so none is longer.
    i32::try_from(value.len()).unwrap_or(i32::MAX).to_be_bytes()
}
