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
use super::source::{BodySource, ByteSource};
use super::subset::Subset;
use super::times::Times;
use super::wanted::Wanted;
use crate::Result;

const HAS_TIMESTAMP: u8 = 0x04;
const HAS_TTL: u8 = 0x08;
const HAS_DELETION: u8 = 0x10;
const HAS_ALL_COLUMNS: u8 = 0x20;
const HAS_COMPLEX_DELETION: u8 = 0x40;

const CELL_IS_DELETED: u8 = 0x01;
const CELL_IS_EXPIRING: u8 = 0x02;
const CELL_HAS_EMPTY_VALUE: u8 = 0x04;
const CELL_USES_ROW_TIMESTAMP: u8 = 0x08;
const CELL_USES_ROW_TTL: u8 = 0x10;
const CELL_FLAGS: u8 = 0x1F;

/// Cells that are made room for before they were seen.
const CELLS_FORESEEN_MAX: usize = 1024;

/// Decodes the body of one row.
pub(super) struct BodyDecoder<'d> {
    pub(super) flags: u8,
    pub(super) times: &'d Times,
    pub(super) columns: &'d FileColumns,
    pub(super) wanted: Wanted<'d>,
    /// Known once the start of the body was read.
    liveness: Liveness,
}

impl<'d> BodyDecoder<'d> {
    pub(super) fn new(flags: u8, times: &'d Times, columns: &'d FileColumns, wanted: Wanted<'d>) -> Self {
        Self {
            flags,
            times,
            columns,
            wanted,
            liveness: Liveness::NONE,
        }
    }

    /// Fills a row that has its clustering, from the whole body.
    pub(super) fn decode_into<S: BodySource>(&mut self, input: &mut S, row: &mut Row) -> Result<()> {
        let subset = self.start(input, row)?;
        self.decode_columns(input, &subset, row)
    }

    /// Reads what stands before the columns; gives which ones there are.
    pub(super) fn start<S: BodySource>(&mut self, input: &mut S, row: &mut Row) -> Result<Subset> {
        input.uvint()?;
        self.liveness = self.liveness(input)?;
        row.liveness = self.liveness;
        if self.flags & HAS_DELETION != 0 {
            row.deletion = self.times.deletion(input)?;
        }
        let columns = self.columns;
        let subset = if self.flags & HAS_ALL_COLUMNS != 0 {
            Subset::First(columns.columns.len())
        } else {
            Subset::decode(input, columns.columns.len())?
        };
        row.columns.reserve_exact(subset.len());
        Ok(subset)
    }

    /// Reads the columns, up to the end of the body.
    pub(super) fn decode_columns<S: BodySource>(
        &self,
        input: &mut S,
        subset: &Subset,
        row: &mut Row,
    ) -> Result<()> {
        let columns = self.columns;
        let mut next = subset.next_from(0);
        while let Some(index) = next {
            self.column(input, &columns.columns[index], row)?;
            next = subset.next_from(index + 1);
        }
        if input.remaining() != 0 {
            return Err(input.corrupt("the end of the row"));
        }
        self.finish(row);
        Ok(())
    }

    /// Puts the columns in order.
    #[inline]
    pub(super) fn finish(&self, row: &mut Row) {
        if !self.columns.ids_ascend {
            row.columns.sort_unstable_by_key(|entry| entry.column);
        }
    }

    fn liveness(&self, input: &mut impl ByteSource) -> Result<Liveness> {
        match self.flags & (HAS_TIMESTAMP | HAS_TTL) {
            0 => Ok(Liveness::NONE),
            HAS_TIMESTAMP => Ok(Liveness::live(self.times.timestamp(input)?)),
            HAS_TTL => Err(input.corrupt("a row with a timestamp, since it has a TTL")),
            _ => {
                let timestamp_micros = self.times.timestamp(input)?;
                let ttl_secs = self.times.ttl(input)?;
                let expires_secs = self.times.local_deletion(input)?;
                Ok(Liveness::expiring(timestamp_micros, ttl_secs, expires_secs))
            }
        }
    }

    /// Reads one column into the row.
    #[inline]
    pub(super) fn column<S: BodySource>(
        &self,
        input: &mut S,
        column: &FileColumn,
        row: &mut Row,
    ) -> Result<()> {
        let data = if column.is_complex {
            self.complex(input, column)?
        } else {
            let (_, cell) = self.cell(input, column, self.wanted.has(column))?;
            column.keeps(cell.timestamp_micros).then_some(Data::Simple(cell))
        };
        if let (Some(column), Some(data)) = (column.column, data) {
            row.columns.push(ColumnData { column, data });
        }
        Ok(())
    }

    fn complex<S: BodySource>(&self, input: &mut S, column: &FileColumn) -> Result<Option<Data>> {
        let mut deletion = DeletionTime::LIVE;
        if self.flags & HAS_COMPLEX_DELETION != 0 {
            deletion = self.times.deletion(input)?;
        }
        if !column.keeps(deletion.marked_at_micros) {
            deletion = DeletionTime::LIVE;
        }
        let count = input.len()?;
        // Two bytes is the shortest cell: flags and the length of the path.
        if count as u64 > input.remaining() / 2 {
            return Err(input.corrupt("as many cells as fit into the row before it"));
        }
        let is_wanted = self.wanted.has(column);
        let mut cells = Vec::with_capacity(count.min(CELLS_FORESEEN_MAX));
        for _ in 0..count {
            let (path, cell) = self.cell(input, column, is_wanted)?;
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
    fn cell<S: BodySource>(
        &self,
        input: &mut S,
        column: &FileColumn,
        is_wanted: bool,
    ) -> Result<(Bytes, Cell)> {
        let flags = input.u8()?;
        let mut cell = self.cell_times(flags, input)?;
        let path = if column.is_complex {
            input.bytes_vint()?
        } else {
            Bytes::new()
        };
        if flags & CELL_HAS_EMPTY_VALUE != 0 {
            return Ok((path, cell));
        }
        let len = match column.fixed_len {
            Some(len) if !column.is_complex => len,
            _ => input.len()?,
        };
        let is_wanted = is_wanted
            && flags & CELL_IS_DELETED == 0
            && (!column.is_complex || self.wanted.has_element(column, &path));
        if is_wanted {
            cell.value = input.take_value(len)?;
        } else {
            input.skip_value(len)?;
        }
        Ok((path, cell))
    }

    /// A cell without its value: the times that follow its flags.
    #[inline]
    pub(super) fn cell_times(&self, flags: u8, input: &mut impl ByteSource) -> Result<Cell> {
        if flags & !CELL_FLAGS != 0 || flags & (CELL_IS_DELETED | CELL_IS_EXPIRING) == 3 {
            return Err(input.corrupt("the flags of a cell before it"));
        }
        let timestamp_micros = if flags & CELL_USES_ROW_TIMESTAMP != 0 {
            self.liveness.timestamp_micros
        } else {
            self.times.timestamp(input)?
        };
        let (ttl_secs, local_deletion_secs) = self.expiry(flags, input)?;
        Ok(Cell {
            timestamp_micros,
            ttl_secs,
            local_deletion_secs,
            value: Bytes::new(),
        })
    }

    /// TTL and local deletion time of a cell.
    #[inline]
    fn expiry(&self, flags: u8, input: &mut impl ByteSource) -> Result<(u32, u32)> {
        let (liveness, times) = (self.liveness, self.times);
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
}
