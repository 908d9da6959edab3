//! Describes large rows for the cell map.

use ilion_codec::Writer;
use ilion_rows::{CellRef, ComplexColumn, Liveness, Row};

use super::cell::{encode_cell_head, encode_cell_times, value_length};
use super::columns::{ColumnLayout, StoredColumn};
use super::source::Content;
use crate::cells::PartsWriter;
use crate::row::format::times::Times;
use crate::row::format::values::Unstorable;

/// Size in bytes at which a part ends: with short parts, a read of one column reads less.
const PART_BYTES: u64 = 1024;
/// A complex column is described if its size is at least this many times the size of its description.
const COMPLEX_BYTES_PER_MAP_BYTE: u64 = 64;

/// How precisely the map describes columns whose times differ from those of their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All columns are described.
    Fine,
    /// Short columns are marked as always read.
    Coarse,
}

impl Detail {
    /// Parts of fewer bytes are marked as always read.
    fn run_bytes_min(self) -> u64 {
        match self {
            Self::Fine => 0,
            Self::Coarse => 512,
        }
    }
}

/// Columns of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    count: usize,
    length: u64,
}

/// Builds the parts of rows; reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    parts: PartsWriter,
    run: Columns,
    run_times: Writer,
    read: Columns,
    scratch: Writer,
}

impl Sketch {
    /// The encoded parts of the last row.
    pub(crate) fn parts(&self) -> &[u8] {
        self.parts.as_slice()
    }

    /// Describes the chosen columns of a row.
    pub(super) fn draw(
        &mut self,
        row: &Row,
        layout: &ColumnLayout,
        times: &Times,
        has_complex_deletion: bool,
        detail: Detail,
    ) -> Result<(), Unstorable> {
        self.parts.clear();
        for (column, data) in layout.chosen_of(row) {
            match data {
                Content::Simple(cell, _) => self.simple(&cell, column, &row.liveness, times, detail),
                Content::Complex(complex) => {
                    self.end_run(detail);
                    self.scratch.clear();
                    if has_complex_deletion {
                        times.encode_deletion(&complex.deletion, &mut self.scratch);
                    }
                    self.complex(complex, column, &row.liveness, times)?;
                }
            }
        }
        self.end_run(detail);
        self.end_read();
        Ok(())
    }

    fn simple(
        &mut self,
        cell: &CellRef<'_>,
        column: &StoredColumn,
        liveness: &Liveness,
        times: &Times,
        detail: Detail,
    ) {
        self.scratch.clear();
        encode_cell_times(cell, liveness, times, &mut self.scratch);
        let is_like_before = self.scratch.as_slice() == self.run_times.as_slice();
        if self.run.count > 0 && (!is_like_before || self.run.length >= PART_BYTES) {
            self.end_run(detail);
        }
        std::mem::swap(&mut self.scratch, &mut self.run_times);
        self.run.count += 1;
        self.run.length += (self.run_times.len() + value_length(cell, column)) as u64;
    }

    fn end_run(&mut self, detail: Detail) {
        let run = std::mem::take(&mut self.run);
        if run.count == 0 {
        } else if run.length < detail.run_bytes_min() {
            self.add_read(run);
        } else {
            self.end_read();
            self.parts.run(run.count, self.run_times.as_slice(), run.length);
        }
    }

    fn add_read(&mut self, columns: Columns) {
        self.read.count += columns.count;
        self.read.length += columns.length;
        if self.read.length >= PART_BYTES {
            self.end_read();
        }
    }

    fn end_read(&mut self) {
        let read = std::mem::take(&mut self.read);
        if read.count > 0 {
            self.parts.read(read.count, read.length);
        }
    }

    fn complex(
        &mut self,
        complex: &ComplexColumn,
        column: &StoredColumn,
        liveness: &Liveness,
        times: &Times,
    ) -> Result<(), Unstorable> {
        let cells = &mut self.scratch;
        cells.uvint(complex.cells.len() as u64);
        let mut values = 0;
        for (path, cell) in &complex.cells {
            encode_cell_head(&cell.into(), column, Some(path), liveness, times, cells)?;
            values += cell.value.len() as u64;
        }
        let described = cells.len() as u64;
        let length = described + values;
        if described.saturating_mul(COMPLEX_BYTES_PER_MAP_BYTE) <= length {
            self.end_read();
            self.parts.complex(self.scratch.as_slice(), length);
        } else {
            self.add_read(Columns { count: 1, length });
        }
        Ok(())
    }
}
