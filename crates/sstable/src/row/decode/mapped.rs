//! Decodes the columns of a row with the row's entry in the cell map.
//!
//! Cells whose values are not selected come from the map, the others from Data.db. An entry that does not fit the row is
//! ignored: the row is then decoded without it.

use std::ops::Range;

use bytes::Bytes;
use ilion_rows::{ColumnData, Data, Row};
use ilion_schema::ColumnId;
use smallvec::SmallVec;

use super::body::{BodyDecoder, CellTimes};
use super::columns::FileColumn;
use super::wanted::Unwanted;
use crate::cells::{Part, Parts};
use crate::error::Step;
use crate::row::format::subset::Subset;
use crate::row::source::{BodySource, ByteSource, Piece, Within};
use crate::{ChunkReader, DataStream, Error};

impl BodyDecoder<'_> {
    /// Decodes the columns with their parts of the map, up to the end of the body.
    pub(super) fn decode_mapped(
        &self,
        stream: &mut DataStream,
        end: u64,
        subset: &Subset,
        mapped: &Bytes,
        row: &mut Row,
    ) -> Step<()> {
        let start = stream.position();
        let mut parts = Parts::of(mapped, subset.len(), end.saturating_sub(start));
        self.mapped_columns(&mut parts, stream, subset, mapped, row)?;
        if !parts.fit() {
            row.columns.clear();
            stream.seek(start);
            return self.decode_columns(&mut Within::new(stream, end), subset, row);
        }
        stream.seek(end);
        self.columns.put_in_order(&mut row.columns);
        Ok(())
    }

    fn mapped_columns(
        &self,
        parts: &mut Parts<'_>,
        stream: &mut DataStream,
        subset: &Subset,
        mapped: &Bytes,
        row: &mut Row,
    ) -> Step<()> {
        let asked = self.selected(subset);
        let mut asked = &asked[..];
        let mut not_selected = NotSelected::default();
        let may_leave_out = self.wanted.unwanted() == Unwanted::Newest && self.columns.is_whole;
        row.columns.reserve(match may_leave_out {
            true => asked.len() + 1,
            false => subset.len(),
        });
        let (mut position, mut rank) = (stream.position(), 0);
        while let Some(part) = parts.next() {
            let at = Located {
                position,
                end: position + part.length(),
                mapped,
            };
            let ranks = rank..rank + part.columns();
            (position, rank) = (at.end, ranks.end);
            let asked_before = asked;
            while let Some((_, left)) = asked.split_first().filter(|(next, _)| **next < rank) {
                asked = left;
            }
            if let (Part::Run { times, .. }, true) = (&part, asked.len() == asked_before.len()) {
                let times = self.times_of_run(times, &mut not_selected, stream, &at)?;
                if may_leave_out && times.live_for_ever() {
                    not_selected.leave_out(times, ranks.start);
                    let next = asked.first().copied().unwrap_or_else(|| subset.len());
                    let (columns, length) = parts.pass_same(next - rank);
                    (position, rank) = (position.saturating_add(length), rank + columns);
                    continue;
                }
                for index in subset.indexes(ranks) {
                    self.push_times(&self.columns.columns[index], times, row);
                }
                continue;
            }
            let columns: SmallVec<[&FileColumn; 4]> = subset
                .indexes(ranks)
                .map(|index| &self.columns.columns[index])
                .collect();
            self.part(stream, &part, &columns, &at, row)?;
        }
        if let Some((times, rank)) = not_selected.newest {
            let mut index = subset.indexes(rank..rank + 1);
            let column = index.next().and_then(|index| self.columns.columns[index].column);
            column.into_iter().for_each(|id| stand_in(id, times, row));
        }
        Ok(())
    }

    /// The selected columns, as ranks among the columns of the row.
    fn selected(&self, subset: &Subset) -> SmallVec<[usize; 8]> {
        let wanted = self.wanted.columns().unwrap_or_default();
        let indexes = wanted.iter().filter_map(|id| self.columns.index_of(*id));
        let mut ranks: SmallVec<[usize; 8]> = indexes.filter_map(|index| subset.rank(index)).collect();
        ranks.sort_unstable();
        ranks
    }

    /// The times of a run of columns that are not selected. Usually they equal those of the run before.
    fn times_of_run(
        &self,
        times: &Range<usize>,
        not_selected: &mut NotSelected,
        stream: &DataStream,
        at: &Located<'_>,
    ) -> Step<CellTimes> {
        match not_selected.known {
            Some((start, known)) if start == times.start => Ok(known),
            _ => {
                let found = self.mapped_times(times.clone(), stream, at)?;
                not_selected.known = Some((times.start, found));
                Ok(found)
            }
        }
    }

    fn mapped_times(&self, times: Range<usize>, stream: &DataStream, at: &Located<'_>) -> Step<CellTimes> {
        let mut input = Piece::new(at.mapped.slice(times), at.position, stream.chunks());
        let flags = input.u8()?;
        let times = self.cell_times(flags, &mut input)?;
        match input.remaining() {
            0 => Ok(times),
            _ => Err(input.corrupt(EXPECTED)),
        }
    }

    /// Adds a cell with its times, but without its value.
    fn push_times(&self, column: &FileColumn, times: CellTimes, row: &mut Row) {
        if let (Some(id), true) = (column.column, column.keeps(times.timestamp_micros)) {
            row.columns.push(ColumnData {
                column: id,
                data: Data::Simple(times.cell(Bytes::new())),
            });
        }
    }

    fn part(
        &self,
        stream: &mut DataStream,
        part: &Part,
        columns: &[&FileColumn],
        at: &Located<'_>,
        row: &mut Row,
    ) -> Step<()> {
        match part {
            Part::Run { times, .. } => self.run(stream, times.clone(), columns, at, row),
            Part::Complex { cells, .. } if columns.iter().all(|column| column.is_complex) => {
                let is_read = columns.iter().all(|column| self.wanted.has_all_of(column));
                if is_read {
                    return self.read(stream, columns, at, row);
                }
                let file = stream.chunks().clone();
                let mut skeleton = Skeleton {
                    cells: Piece::new(at.mapped.slice(cells.clone()), at.position, &file),
                    stream,
                    at: at.position,
                    passed: 0,
                    end: at.end,
                };
                for column in columns {
                    self.column(&mut skeleton, column, row)?;
                }
                match skeleton.remaining() == 0 && skeleton.cells.remaining() == 0 {
                    true => Ok(()),
                    false => Err(skeleton.corrupt(EXPECTED)),
                }
            }
            Part::Complex { .. } => Err(stream.chunks().corrupt(at.position, EXPECTED).into()),
            Part::Read { .. } => self.read(stream, columns, at, row),
        }
    }

    /// Decodes columns from Data.db.
    fn read(
        &self,
        stream: &mut DataStream,
        columns: &[&FileColumn],
        at: &Located<'_>,
        row: &mut Row,
    ) -> Step<()> {
        stream.seek(at.position);
        if columns.iter().all(|column| self.wanted.has_all_of(column)) {
            // One read for all columns, even if they cross the end of a chunk.
            stream.require(at.length())?;
        }
        let mut within = Within::new(stream, at.end);
        for column in columns {
            self.column(&mut within, column, row)?;
        }
        match within.remaining() {
            0 => Ok(()),
            _ => Err(within.corrupt(EXPECTED)),
        }
    }

    /// Decodes simple columns with the same times: reads them up to the last selected one, and skips the rest.
    fn run(
        &self,
        stream: &mut DataStream,
        times: Range<usize>,
        columns: &[&FileColumn],
        at: &Located<'_>,
        row: &mut Row,
    ) -> Step<()> {
        let last = columns.iter().rposition(|column| self.wanted.has(column));
        let read = last.map_or(0, |last| last + 1);
        if read == columns.len() {
            return self.read(stream, columns, at, row);
        }
        if read > 0 {
            stream.seek(at.position);
            let mut within = Within::new(stream, at.end);
            for column in &columns[..read] {
                self.column(&mut within, column, row)?;
            }
        }
        let times = self.mapped_times(times, stream, at)?;
        if columns.iter().any(|column| column.is_complex) {
            return Err(stream.chunks().corrupt(at.position, EXPECTED).into());
        }
        for column in &columns[read..] {
            self.push_times(column, times, row);
        }
        Ok(())
    }
}

/// Adds, in the position of its column, the cell that stands for the cells that were left out.
fn stand_in(column: ColumnId, times: CellTimes, row: &mut Row) {
    let before = row.columns.partition_point(|entry| entry.column < column);
    let data = Data::Simple(times.cell(Bytes::new()));
    row.columns.insert(before, ColumnData { column, data });
}

/// The times of columns that are not selected.
#[derive(Default)]
struct NotSelected {
    /// The times decoded last, and their offset in the map.
    known: Option<(usize, CellTimes)>,
    /// The newest times of the cells that were left out, and the rank of a column with these times.
    newest: Option<(CellTimes, usize)>,
}

impl NotSelected {
    fn leave_out(&mut self, times: CellTimes, rank: usize) {
        let is_newer = |(newest, _): &(CellTimes, usize)| newest.timestamp_micros < times.timestamp_micros;
        if self.newest.as_ref().is_none_or(is_newer) {
            self.newest = Some((times, rank));
        }
    }
}

const EXPECTED: &str = "columns as the cell map has them (remove Cells.db to read without it)";

/// A range of columns in Data.db, and the row's entry in the map.
struct Located<'m> {
    position: u64,
    end: u64,
    mapped: &'m Bytes,
}

/// Cells from the map, whose values are in Data.db.
struct Skeleton<'s> {
    cells: Piece<'s>,
    stream: &'s mut DataStream,
    /// Position of the first cell in Data.db.
    at: u64,
    /// Number of bytes of values that were skipped so far.
    passed: u64,
    end: u64,
}

impl Located<'_> {
    fn length(&self) -> usize {
        usize::try_from(self.end - self.position).unwrap_or(usize::MAX)
    }
}

impl Skeleton<'_> {
    fn position(&self) -> u64 {
        let offset = self.cells.offset() as u64 + self.passed;
        self.at.saturating_add(offset)
    }

    fn pass(&mut self, len: usize) -> Step<()> {
        if len as u64 > self.remaining() {
            return Err(self.corrupt(EXPECTED));
        }
        self.passed += len as u64;
        Ok(())
    }
}

impl ByteSource for Skeleton<'_> {
    fn u8(&mut self) -> Step<u8> {
        self.cells.u8()
    }

    fn uvint(&mut self) -> Step<u64> {
        self.cells.uvint()
    }

    fn take(&mut self, len: usize) -> Step<Bytes> {
        self.cells.take(len)
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        let file: &ChunkReader = self.stream.chunks();
        Box::new(file.corrupt(self.position(), expected))
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        self.cells.array()
    }
}

impl BodySource for Skeleton<'_> {
    fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.position())
    }

    fn take_value(&mut self, len: usize) -> Step<Bytes> {
        let position = self.position();
        self.pass(len)?;
        self.stream.seek(position);
        self.stream.take(len)
    }

    fn skip_value(&mut self, len: usize) -> Step<()> {
        self.pass(len)
    }
}
