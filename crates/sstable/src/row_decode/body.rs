//! What stands in a row after its clustering.
//!
//! ```text
//! body   := previous_size:uvint [timestamp] [ttl expires] [deletion] [subset] data*
//! data   := cell                                    simple column
//!         | [deletion] count:uvint (cell)*          complex column
//! cell   := flags:u8 [timestamp] [local_deletion] [ttl] [path:bytesV] [value]
//! ```

use bytes::Bytes;
use ilion_rows::{
    Cell, ColumnData, ComplexColumn, Data, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, Row,
};

use super::columns::{FileColumn, FileColumns};
use super::source::{ByteSource, Stretch};
use super::subset::Subset;
use super::times::Times;
use crate::Result;

pub(super) const HAS_TIMESTAMP: u8 = 0x04;
pub(super) const HAS_TTL: u8 = 0x08;
pub(super) const HAS_DELETION: u8 = 0x10;
pub(super) const HAS_ALL_COLUMNS: u8 = 0x20;
pub(super) const HAS_COMPLEX_DELETION: u8 = 0x40;

const CELL_IS_DELETED: u8 = 0x01;
const CELL_IS_EXPIRING: u8 = 0x02;
const CELL_HAS_EMPTY_VALUE: u8 = 0x04;
const CELL_USES_ROW_TIMESTAMP: u8 = 0x08;
const CELL_USES_ROW_TTL: u8 = 0x10;
const CELL_FLAGS: u8 = 0x1F;

/// Cells that are made room for before they were seen.
const CELLS_FORESEEN_MAX: usize = 1024;

/// Decodes one row body.
pub(super) struct BodyDecoder<'d, 'f> {
    pub(super) input: Stretch<'f>,
    pub(super) flags: u8,
    pub(super) times: &'d Times,
    pub(super) columns: &'d FileColumns,
}

impl BodyDecoder<'_, '_> {
    /// Fills a row that has its clustering.
    pub(super) fn decode_into(mut self, row: &mut Row) -> Result<()> {
        self.input.uvint()?;
        row.liveness = self.liveness()?;
        if self.flags & HAS_DELETION != 0 {
            row.deletion = self.times.deletion(&mut self.input)?;
        }
        let columns = self.columns;
        let subset = if self.flags & HAS_ALL_COLUMNS != 0 {
            Subset::First(columns.columns.len())
        } else {
            Subset::decode(&mut self.input, columns.columns.len())?
        };
        row.columns.reserve_exact(subset.len());
        let mut next = subset.next_from(0);
        while let Some(index) = next {
            let column = &columns.columns[index];
            let data = self.column(column, row.liveness)?;
            if let (Some(column), Some(data)) = (column.column, data) {
                row.columns.push(ColumnData { column, data });
            }
            next = subset.next_from(index + 1);
        }
        if self.input.remaining() != 0 {
            return Err(self.input.corrupt("the end of the row"));
        }
        if !columns.ids_ascend {
            row.columns.sort_unstable_by_key(|entry| entry.column);
        }
        Ok(())
    }

    fn liveness(&mut self) -> Result<Liveness> {
        match self.flags & (HAS_TIMESTAMP | HAS_TTL) {
            0 => Ok(Liveness::NONE),
            HAS_TIMESTAMP => Ok(Liveness::live(self.times.timestamp(&mut self.input)?)),
            HAS_TTL => Err(self.input.corrupt("a row with a timestamp, since it has a TTL")),
            _ => {
                let timestamp_micros = self.times.timestamp(&mut self.input)?;
                let ttl_secs = self.times.ttl(&mut self.input)?;
                let expires_secs = self.times.local_deletion(&mut self.input)?;
                Ok(Liveness::expiring(timestamp_micros, ttl_secs, expires_secs))
            }
        }
    }

    #[inline]
    fn column(&mut self, column: &FileColumn, liveness: Liveness) -> Result<Option<Data>> {
        if column.is_complex {
            return self.complex(column, liveness);
        }
        let (_, cell) = self.cell(column, liveness)?;
        Ok(column.keeps(cell.timestamp_micros).then_some(Data::Simple(cell)))
    }

    fn complex(&mut self, column: &FileColumn, liveness: Liveness) -> Result<Option<Data>> {
        let mut deletion = DeletionTime::LIVE;
        if self.flags & HAS_COMPLEX_DELETION != 0 {
            deletion = self.times.deletion(&mut self.input)?;
        }
        if !column.keeps(deletion.marked_at_micros) {
            deletion = DeletionTime::LIVE;
        }
        let count = self.input.len()?;
        // Two bytes is the shortest cell: flags and the length of the path.
        if count > self.input.remaining() / 2 {
            return Err(self.input.corrupt("as many cells as fit into the row before it"));
        }
        let mut cells = Vec::with_capacity(count.min(CELLS_FORESEEN_MAX));
        for _ in 0..count {
            let (path, cell) = self.cell(column, liveness)?;
            if column.keeps(cell.timestamp_micros) {
                cells.push((path, cell));
            }
        }
        if cells.is_empty() && deletion.is_live() {
            return Ok(None);
        }
        Ok(Some(Data::Complex(Box::new(ComplexColumn { deletion, cells }))))
    }

    /// A cell with its path, empty in a simple column.
    #[inline]
    fn cell(&mut self, column: &FileColumn, liveness: Liveness) -> Result<(Bytes, Cell)> {
        let input = &mut self.input;
        let flags = input.u8()?;
        if flags & !CELL_FLAGS != 0 || flags & (CELL_IS_DELETED | CELL_IS_EXPIRING) == 3 {
            return Err(input.corrupt("the flags of a cell before it"));
        }
        let timestamp_micros = if flags & CELL_USES_ROW_TIMESTAMP != 0 {
            liveness.timestamp_micros
        } else {
            self.times.timestamp(input)?
        };
        let (ttl_secs, local_deletion_secs) = cell_times(flags, self.times, liveness, input)?;
        let path = if column.is_complex {
            input.bytes_vint()?
        } else {
            Bytes::new()
        };
        let value = match (flags & CELL_HAS_EMPTY_VALUE != 0, column.fixed_len) {
            (true, _) => Bytes::new(),
            (false, Some(len)) if !column.is_complex => input.take(len)?,
            _ => input.bytes_vint()?,
        };
        let is_deleted = flags & CELL_IS_DELETED != 0;
        let cell = Cell {
            timestamp_micros,
            ttl_secs,
            local_deletion_secs,
            value: if is_deleted { Bytes::new() } else { value },
        };
        Ok((path, cell))
    }
}

/// TTL and local deletion time of a cell.
#[inline]
fn cell_times(flags: u8, times: &Times, liveness: Liveness, input: &mut Stretch<'_>) -> Result<(u32, u32)> {
    if flags & CELL_USES_ROW_TTL != 0 {
        if flags & CELL_IS_EXPIRING == 0 || liveness.ttl_secs == NO_TTL {
            return Err(input.corrupt("an expiring cell of an expiring row before it"));
        }
        return Ok((liveness.ttl_secs, liveness.expires_secs));
    }
    if flags & CELL_IS_DELETED != 0 {
        return Ok((NO_TTL, times.local_deletion(input)?));
    }
    if flags & CELL_IS_EXPIRING != 0 {
        let expires_secs = times.local_deletion(input)?;
        return Ok((times.ttl(input)?, expires_secs));
    }
    Ok((NO_TTL, NO_DELETION_TIME))
}
