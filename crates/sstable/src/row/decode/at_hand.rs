//! Decodes rows that are wholly in the stream's window, in one go.
//!
//! Most rows of a scan are in the window. Most of these have a timestamp and a value in each cell, and no other times; the code below
//! handles only these, and keeps its state in registers. Rows that are rare, cut off or damaged are left to the general decoder, which
//! reports errors.

use ilion_rows::{Clustering, Liveness, NO_TIMESTAMP, Row, Values};

use super::RowFormat;
use super::body::BodyDecoder;
use super::common_cell::common_cells;
use super::wanted::Wanted;
use crate::DataStream;
use crate::row::format::BITMAP_COLUMNS;
use crate::row::format::state::RowFlags;
use crate::row::format::subset::Subset;
use crate::row::rest::Rest;
use crate::row::source::{BodySource as _, Stretch};

impl RowFormat {
    /// Decodes the row at the stream's position with all its columns, if the whole row is in the window, and moves behind it.
    /// Otherwise, or if the row is damaged, returns `None` without moving: call [`RowFormat::head`]. The row may be empty.
    #[inline]
    pub(crate) fn row_at_hand(&self, stream: &mut DataStream) -> Option<Row> {
        let input = Stretch::at_hand(stream);
        let mut rest = input.rest();
        let flags = RowFlags::at_hand(&mut rest)?;
        let mut values = Values::new();
        self.clustering.values_at_hand(&mut rest, |value, left| {
            values.push(value.map(|value| input.slice_before(left, value.len())));
        })?;
        let clustering = Clustering::new(values);
        let size = usize::try_from(rest.uvint()?).ok()?;
        let mut input = input.going_on(rest);
        let body = input.next_stretch(size)?;
        let end = input.offset();
        if stream.keeps_apart(size) {
            return None;
        }
        let row = match flags.are_common() {
            true => self.common_row(flags, clustering, body)?,
            false => self.any_row(flags, clustering, body)?,
        };
        stream.go_to(end);
        Some(row)
    }

    /// Passes the start of each row to `each`, from the stream's position on, and moves behind the last. Stops at `end`, or earlier at
    /// anything that [`RowFormat::head`] must decode: a marker, the end of the partition, a row that is not whole in the window, damage.
    pub(crate) fn row_starts_at_hand(&self, stream: &mut DataStream, end: u64, mut each: impl FnMut(u64)) {
        let input = Stretch::at_hand(stream);
        let start = stream.position();
        let mut rest = input.rest();
        let behind = |rest| start + input.rest().before(rest).len() as u64;
        while behind(rest) < end {
            let Some(next) = self.behind_row(rest) else {
                break;
            };
            each(behind(rest));
            rest = next;
        }
        let offset = input.going_on(rest).offset();
        stream.go_to(offset);
    }

    /// The bytes behind a row; `None` if no regular row starts here, or not all of it is in the window.
    #[inline]
    fn behind_row<'w>(&self, mut rest: Rest<'w>) -> Option<Rest<'w>> {
        RowFlags::at_hand(&mut rest)?;
        self.clustering.skip_at_hand(&mut rest)?;
        let size = usize::try_from(rest.uvint()?).ok()?;
        rest.take(size)?;
        Some(rest)
    }

    fn decoder(&self, flags: RowFlags) -> BodyDecoder<'_> {
        BodyDecoder::new(flags, &self.times, &self.regulars, Wanted::ALL)
    }

    /// Decodes a row that may have other times than a timestamp.
    #[inline(never)]
    fn any_row(&self, flags: RowFlags, clustering: Clustering, body: Stretch<'_>) -> Option<Row> {
        let mut row = Row::empty(clustering);
        self.decoder(flags).decode_at_hand(body, &mut row).ok()?;
        Some(row)
    }

    /// Decodes a row with a timestamp and no other times.
    #[inline(always)]
    fn common_row(&self, flags: RowFlags, clustering: Clustering, mut input: Stretch<'_>) -> Option<Row> {
        let mut rest = input.rest();
        rest.skip_uvint()?;
        let mut row_micros = NO_TIMESTAMP;
        if flags.has_timestamp() {
            row_micros = self.times.timestamp_of(rest.uvint()?);
        }
        let columns = &self.regulars.columns;
        let missing = match flags.has_all_columns() {
            true => 0,
            false if columns.len() >= BITMAP_COLUMNS => return None,
            false => rest.uvint()?,
        };
        let present = columns.len().checked_sub(missing.count_ones() as usize)?;
        let mut cells = Vec::with_capacity(present);
        input.go_to(rest);
        let indexed = columns.iter().enumerate();
        let stopped_at = match missing {
            0 => common_cells(indexed, row_micros, &self.times, &mut input, &mut cells),
            _ => {
                let indexed = indexed.filter(|(index, _)| missing >> index & 1 == 0);
                common_cells(indexed, row_micros, &self.times, &mut input, &mut cells)
            }
        };
        if let Some(index) = stopped_at {
            let row = Row::live(clustering, Liveness::live(row_micros), cells);
            return self.rest_of_row(flags, missing, index, input, row);
        }
        if input.remaining() != 0 || cells.len() != present {
            return None;
        }
        self.regulars.put_in_order(&mut cells);
        Some(Row::live(clustering, Liveness::live(row_micros), cells))
    }

    /// Decodes the remaining columns, from the first one with other times on.
    #[inline(never)]
    fn rest_of_row(
        &self,
        flags: RowFlags,
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
}
