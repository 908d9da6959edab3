//! Decodes the part of a row behind its clustering.
//!
//! ```text
//! body   := previous_size:uvint state [subset] data*
//! data   := cell                                    simple column
//!         | [deletion] count:uvint (cell)*          complex column
//! cell   := flags:u8 [timestamp] [local_deletion] [ttl] [path:bytesV] [value]
//! ```

use bytes::Bytes;
use ilion_rows::{
    Cell, ColumnData, ComplexColumn, Data, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, Row,
};

use super::columns::{FileColumn, FileColumns};
use super::common_cell::common_cells;
use super::wanted::Wanted;
use crate::error::Step;
use crate::row::format::cell_flag;
use crate::row::format::state::{RowFlags, RowState};
use crate::row::format::subset::Subset;
use crate::row::format::times::Times;
use crate::row::source::{BodySource, ByteSource, Stretch};

/// Maximum capacity reserved for cells before they are decoded.
const CELLS_FORESEEN_MAX: usize = 1024;

/// The times of a cell, without its value.
#[derive(Clone, Copy)]
pub(super) struct CellTimes {
    pub(super) timestamp_micros: i64,
    ttl_secs: u32,
    local_deletion_secs: u32,
}

impl CellTimes {
    #[inline]
    fn live(timestamp_micros: i64) -> Self {
        Self {
            timestamp_micros,
            ttl_secs: NO_TTL,
            local_deletion_secs: NO_DELETION_TIME,
        }
    }

    /// True if the cell is neither a tombstone nor expires.
    #[inline]
    pub(super) fn live_for_ever(&self) -> bool {
        self.local_deletion_secs == NO_DELETION_TIME
    }

    /// A cell with these times.
    #[inline]
    pub(super) fn cell(self, value: Bytes) -> Cell {
        Cell {
            timestamp_micros: self.timestamp_micros,
            ttl_secs: self.ttl_secs,
            local_deletion_secs: self.local_deletion_secs,
            value,
        }
    }
}

/// Decodes the body of one row.
pub(super) struct BodyDecoder<'d> {
    pub(super) flags: RowFlags,
    pub(super) times: &'d Times,
    pub(super) columns: &'d FileColumns,
    pub(super) wanted: Wanted<'d>,
    /// The row's liveness; set when the part before the columns is decoded.
    liveness: Liveness,
}

impl<'d> BodyDecoder<'d> {
    pub(super) fn new(
        flags: RowFlags,
        times: &'d Times,
        columns: &'d FileColumns,
        wanted: Wanted<'d>,
    ) -> Self {
        Self {
            flags,
            times,
            columns,
            wanted,
            liveness: Liveness::NONE,
        }
    }

    /// This decoder, as it is after the part before the columns was decoded.
    #[inline]
    pub(super) fn resumed(self, liveness: Liveness) -> Self {
        Self { liveness, ..self }
    }

    /// Decodes a body that is in memory into `row`, whose clustering is already set.
    #[inline(always)]
    pub(super) fn decode_at_hand(&mut self, mut input: Stretch<'_>, row: &mut Row) -> Step<()> {
        let subset = self.start(&mut input, row)?;
        row.columns = Vec::with_capacity(subset.len());
        let first = match subset {
            Subset::First(count) if self.wanted.is_all() => {
                let columns = self.columns.columns.iter().enumerate();
                let row_micros = self.liveness.timestamp_micros;
                common_cells(columns, row_micros, self.times, &mut input, &mut row.columns).unwrap_or(count)
            }
            _ => 0,
        };
        self.decode_from(first, &mut input, &subset, row)
    }

    /// Decodes the part before the columns; returns which columns the row has.
    #[inline(always)]
    pub(super) fn start<S: BodySource>(&mut self, input: &mut S, row: &mut Row) -> Step<Subset> {
        input.uvint()?;
        let state = RowState::decode(self.flags, self.times, input)?;
        self.liveness = state.liveness;
        state.put_into(row);
        let columns = self.columns;
        let subset = if self.flags.has_all_columns() {
            Subset::First(columns.columns.len())
        } else {
            Subset::decode(input, columns.columns.len())?
        };
        Ok(subset)
    }

    /// Decodes the columns, up to the end of the body.
    pub(super) fn decode_columns<S: BodySource>(
        &self,
        input: &mut S,
        subset: &Subset,
        row: &mut Row,
    ) -> Step<()> {
        row.columns.reserve(subset.len());
        self.decode_from(0, input, subset, row)
    }

    /// Decodes the columns from index `first` on.
    #[inline]
    pub(super) fn decode_from<S: BodySource>(
        &self,
        first: usize,
        input: &mut S,
        subset: &Subset,
        row: &mut Row,
    ) -> Step<()> {
        let columns = self.columns;
        let mut next = subset.next_from(first);
        while let Some(index) = next {
            self.column(input, &columns.columns[index], row)?;
            next = subset.next_from(index + 1);
        }
        if input.remaining() != 0 {
            return Err(input.corrupt("the end of the row"));
        }
        self.columns.put_in_order(&mut row.columns);
        Ok(())
    }

    /// Decodes one column into the row.
    pub(super) fn column<S: BodySource>(
        &self,
        input: &mut S,
        column: &FileColumn,
        row: &mut Row,
    ) -> Step<()> {
        if column.is_complex {
            return self.complex_column(input, column, row);
        }
        let flags = input.u8()?;
        let times = self.cell_times(flags, input)?;
        let value = if flags & cell_flag::HAS_EMPTY_VALUE != 0 {
            Bytes::new()
        } else {
            let len = match column.fixed_len {
                Some(len) => len,
                None => input.len()?,
            };
            if flags & cell_flag::IS_DELETED == 0 && self.wanted.has(column) {
                input.take_value(len)?
            } else {
                input.skip_value(len)?;
                Bytes::new()
            }
        };
        if let Some(id) = column.column
            && column.keeps(times.timestamp_micros)
        {
            let data = Data::Simple(times.cell(value));
            row.columns.push(ColumnData { column: id, data });
        }
        Ok(())
    }

    #[inline(never)]
    fn complex_column<S: BodySource>(&self, input: &mut S, column: &FileColumn, row: &mut Row) -> Step<()> {
        if let (Some(data), Some(column)) = (self.complex(input, column)?, column.column) {
            row.columns.push(ColumnData { column, data });
        }
        Ok(())
    }

    fn complex<S: BodySource>(&self, input: &mut S, column: &FileColumn) -> Step<Option<Data>> {
        let mut deletion = DeletionTime::LIVE;
        if self.flags.has_complex_deletions() {
            deletion = self.times.deletion(input)?;
        }
        if !column.keeps(deletion.marked_at_micros) {
            deletion = DeletionTime::LIVE;
        }
        let count = input.len()?;
        // The shortest cell has two bytes: flags and the length of the path.
        if count as u64 > input.remaining() / 2 {
            return Err(input.corrupt("as many cells as fit into the row before it"));
        }
        let is_wanted = self.wanted.has(column);
        let mut cells = Vec::with_capacity(count.min(CELLS_FORESEEN_MAX));
        for _ in 0..count {
            let (path, cell) = self.element(input, column, is_wanted)?;
            if column.keeps(cell.timestamp_micros) {
                cells.push((path, cell));
            }
        }
        if cells.is_empty() && deletion.is_live() {
            return Ok(None);
        }
        Ok(Some(Data::Complex(Box::new(ComplexColumn { deletion, cells }))))
    }

    /// Decodes a cell of a complex column, and its path.
    fn element<S: BodySource>(
        &self,
        input: &mut S,
        column: &FileColumn,
        is_wanted: bool,
    ) -> Step<(Bytes, Cell)> {
        let flags = input.u8()?;
        let times = self.cell_times(flags, input)?;
        let path = input.bytes_vint()?;
        if flags & cell_flag::HAS_EMPTY_VALUE != 0 {
            return Ok((path, times.cell(Bytes::new())));
        }
        let len = input.len()?;
        if is_wanted && flags & cell_flag::IS_DELETED == 0 && self.wanted.has_element(column, &path) {
            return Ok((path, times.cell(input.take_value(len)?)));
        }
        input.skip_value(len)?;
        Ok((path, times.cell(Bytes::new())))
    }

    /// Decodes the times that follow the flags of a cell.
    #[inline]
    pub(super) fn cell_times(&self, flags: u8, input: &mut impl ByteSource) -> Step<CellTimes> {
        if flags == cell_flag::USES_ROW_TIMESTAMP {
            // The usual case: cells of an INSERT.
            return Ok(CellTimes::live(self.liveness.timestamp_micros));
        }
        self.own_times(flags, input)
    }

    fn own_times(&self, flags: u8, input: &mut impl ByteSource) -> Step<CellTimes> {
        if flags & !cell_flag::ALL != 0 || flags & (cell_flag::IS_DELETED | cell_flag::IS_EXPIRING) == 3 {
            return Err(input.corrupt("the flags of a cell before it"));
        }
        let timestamp_micros = if flags & cell_flag::USES_ROW_TIMESTAMP != 0 {
            self.liveness.timestamp_micros
        } else {
            self.times.timestamp(input)?
        };
        let (ttl_secs, local_deletion_secs) = self.expiry(flags, input)?;
        Ok(CellTimes {
            timestamp_micros,
            ttl_secs,
            local_deletion_secs,
        })
    }

    /// Decodes TTL and local deletion time of a cell.
    fn expiry(&self, flags: u8, input: &mut impl ByteSource) -> Step<(u32, u32)> {
        let (liveness, times) = (self.liveness, self.times);
        if flags & cell_flag::USES_ROW_TTL != 0 {
            if flags & cell_flag::IS_EXPIRING == 0 || liveness.ttl_secs == NO_TTL {
                return Err(input.corrupt("an expiring cell of an expiring row before it"));
            }
            return Ok((liveness.ttl_secs, liveness.expires_secs));
        }
        if flags & cell_flag::IS_DELETED != 0 {
            return Ok((NO_TTL, times.local_deletion(input)?));
        }
        if flags & cell_flag::IS_EXPIRING != 0 {
            let expires_secs = times.local_deletion(input)?;
            return Ok((times.ttl(input)?, expires_secs));
        }
        Ok((NO_TTL, NO_DELETION_TIME))
    }
}
