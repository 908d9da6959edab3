//! Rows that are wholly at hand, decoded in one go.
//!
//! Most rows of a scan are so, and most of these have a timestamp and cells with a value each, and no other times: nothing but that
//! is looked for here, which the processor does in registers. What is not as expected, be it rare, cut off or damaged, is left to the
//! decoder of all rows, which tells what is wrong.

use ilion_rows::{Cell, Clustering, ColumnData, Data, DeletionTime, Liveness, NO_TIMESTAMP, Row};

use super::body::{BodyDecoder, CELL_USES_ROW_TIMESTAMP, HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use super::columns::FileColumn;
use super::source::{Stretch, read_uvint};
use super::subset::{BITMAP_COLUMNS, Subset};
use super::wanted::Wanted;
use super::{END_OF_PARTITION, IS_EXTENDED, IS_MARKER, RowFormat};
use crate::DataStream;

impl RowFormat {
    /// The row at which the stream stands, with all its columns, if all of it is at hand; the stream then stands behind it. Else, and
    /// if anything is wrong with it, nothing has changed and [`RowFormat::head`] is to be asked. The row may be empty.
    #[inline]
    pub(crate) fn row_at_hand(&self, stream: &mut DataStream) -> Option<Row> {
        let mut input = Stretch::at_hand(stream);
        let flags = input.next_u8()?;
        if flags & (END_OF_PARTITION | IS_MARKER | IS_EXTENDED) != 0 {
            return None;
        }
        let clustering = self.clustering.clustering_at_hand(&mut input)?;
        let size = usize::try_from(input.next_uvint()?).ok()?;
        let body = input.next_stretch(size)?;
        let end = input.offset();
        if stream.keeps_apart(size) {
            return None;
        }
        let row = match flags & !(HAS_TIMESTAMP | HAS_ALL_COLUMNS) {
            0 => self.common_row(flags, clustering, body)?,
            _ => self.any_row(flags, clustering, body)?,
        };
        stream.go_to(end);
        Some(row)
    }

    fn decoder(&self, flags: u8) -> BodyDecoder<'_> {
        BodyDecoder::new(flags, &self.times, &self.regulars, Wanted::ALL)
    }

    /// A row that has other times, too.
    #[inline(never)]
    fn any_row(&self, flags: u8, clustering: Clustering, body: Stretch<'_>) -> Option<Row> {
        let mut row = Row::empty(clustering);
        self.decoder(flags).decode_at_hand(body, &mut row).ok()?;
        Some(row)
    }

    /// A row that has no times but a timestamp.
    #[inline(always)]
    fn common_row(&self, flags: u8, clustering: Clustering, mut input: Stretch<'_>) -> Option<Row> {
        input.next_uvint()?;
        let mut row_micros = NO_TIMESTAMP;
        if flags & HAS_TIMESTAMP != 0 {
            row_micros = self.times.timestamp_of(input.next_uvint()?);
        }
        let columns = &self.regulars.columns;
        let missing = match flags & HAS_ALL_COLUMNS {
            0 if columns.len() >= BITMAP_COLUMNS => return None,
            0 => input.next_uvint()?,
            _ => 0,
        };
        let present = columns.len().checked_sub(missing.count_ones() as usize)?;
        let mut cells = Vec::with_capacity(present);
        let mut rest = input.rest();
        for (index, column) in columns.iter().enumerate() {
            if missing != 0 && missing >> index & 1 == 1 {
                continue;
            }
            let Some((timestamp_micros, value, left)) = self.common_cell(column, row_micros, rest) else {
                let row = inserted(clustering, row_micros, cells);
                return self.rest_of_row(flags, missing, index, input.going_on(rest), row);
            };
            let column = column.plain?;
            let data = Data::Simple(Cell::live(timestamp_micros, input.slice_before(left, value)));
            cells.push(ColumnData { column, data });
            rest = left;
        }
        if !rest.is_empty() || cells.len() != present {
            return None;
        }
        self.regulars.put_in_order(&mut cells);
        Some(inserted(clustering, row_micros, cells))
    }

    /// The columns from the first one on that has other times.
    #[inline(never)]
    fn rest_of_row(
        &self,
        flags: u8,
        missing: u64,
        from: usize,
        mut input: Stretch<'_>,
        mut row: Row,
    ) -> Option<Row> {
        let count = self.regulars.columns.len();
        let subset = match missing {
            0 => Subset::First(count),
            missing => Subset::of_missing(missing, count)?,
        };
        let decoder = self.decoder(flags).resumed(row.liveness);
        decoder.decode_from(from, &mut input, &subset, &mut row).ok()?;
        Some(row)
    }

    /// Timestamp and length of a cell, and the bytes behind its value.
    #[inline(always)]
    fn common_cell<'w>(
        &self,
        column: &FileColumn,
        row_micros: i64,
        bytes: &'w [u8],
    ) -> Option<(i64, usize, &'w [u8])> {
        let (flags, mut rest) = bytes.split_first()?;
        let timestamp_micros = match *flags {
            CELL_USES_ROW_TIMESTAMP => row_micros,
            0 => self.times.timestamp_of(split_uvint(&mut rest)?),
            _ => return None,
        };
        let len = match column.fixed_len {
            Some(len) => len,
            None => usize::try_from(split_uvint(&mut rest)?).ok()?,
        };
        let rest = rest.get(len..)?;
        column.plain.is_some().then_some((timestamp_micros, len, rest))
    }
}

#[inline(always)]
fn split_uvint(rest: &mut &[u8]) -> Option<u64> {
    let (value, len) = read_uvint(rest)?;
    *rest = rest.get(len..)?;
    Some(value)
}

#[inline(always)]
fn inserted(clustering: Clustering, row_micros: i64, columns: Vec<ColumnData>) -> Row {
    Row {
        clustering,
        liveness: Liveness::live(row_micros),
        deletion: DeletionTime::LIVE,
        columns,
    }
}
