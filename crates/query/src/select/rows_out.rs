//! The rows of an answer, in the form of the protocol.

/// Row after row, per cell a length (-1 for null) and the bytes.
#[derive(Debug, Default)]
pub(super) struct RowsOut {
    pub cells: Vec<u8>,
    pub row_count: u32,
}

impl RowsOut {
    /// Appends a cell.
    #[inline]
    pub fn value(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.cells.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(bytes) => {
                // Compat: no value is longer than 2 GiB, since none can be sent.
                let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
                self.cells.reserve(4 + bytes.len());
                self.cells.extend_from_slice(&len.to_be_bytes());
                self.cells.extend_from_slice(bytes);
            }
        }
    }

    /// All cells of a row are there.
    #[inline]
    pub fn end_row(&mut self) {
        self.row_count += 1;
    }
}
