//! The columns of a row of which the cell map says where they are.
//!
//! Cells whose values are not wanted come from the map, the others from Data.db. What does not fit the row is left alone:
//! the row is walked through then.

use bytes::Bytes;
use ilion_rows::{ColumnData, Data, Row};
use smallvec::SmallVec;

use super::body::BodyDecoder;
use super::columns::FileColumn;
use super::source::{BodySource, ByteSource, Piece, Within};
use super::subset::Subset;
use crate::cells::{Part, parse_parts};
use crate::error::Step;
use crate::{ChunkReader, DataStream, Error};

impl BodyDecoder<'_> {
    /// Reads the columns by what the map has of them, up to the end of the body.
    pub(super) fn decode_mapped(
        &self,
        stream: &mut DataStream,
        end: u64,
        subset: &Subset,
        mapped: &Bytes,
        row: &mut Row,
    ) -> Step<()> {
        let mut position = stream.position();
        let Some(parts) = parse_parts(mapped, subset.len(), end.saturating_sub(position)) else {
            return self.decode_columns(&mut Within::new(stream, end), subset, row);
        };
        let first = subset.next_from(0);
        let mut indexes = std::iter::successors(first, |index| subset.next_from(index + 1));
        for part in parts {
            let count = part.columns();
            let columns: SmallVec<[&FileColumn; 4]> = indexes
                .by_ref()
                .take(count)
                .map(|index| &self.columns.columns[index])
                .collect();
            let stretch = Located {
                position,
                end: position + part.length(),
                mapped,
            };
            self.part(stream, &part, &columns, &stretch, row)?;
            position = stretch.end;
        }
        stream.seek(end);
        self.columns.put_in_order(&mut row.columns);
        Ok(())
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

    /// Reads columns in Data.db.
    fn read(
        &self,
        stream: &mut DataStream,
        columns: &[&FileColumn],
        at: &Located<'_>,
        row: &mut Row,
    ) -> Step<()> {
        stream.seek(at.position);
        if columns.iter().all(|column| self.wanted.has_all_of(column)) {
            // One read, wherever in a chunk they begin.
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

    /// Simple columns with the same times: those up to the last wanted one are read, the others need not be.
    fn run(
        &self,
        stream: &mut DataStream,
        times: std::ops::Range<usize>,
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
        let file = stream.chunks().clone();
        let mut input = Piece::new(at.mapped.slice(times), at.position, &file);
        let flags = input.u8()?;
        let times = self.cell_times(flags, &mut input)?;
        if input.remaining() != 0 || columns.iter().any(|column| column.is_complex) {
            return Err(input.corrupt(EXPECTED));
        }
        for column in &columns[read..] {
            if let (Some(id), true) = (column.column, column.keeps(times.timestamp_micros)) {
                row.columns.push(ColumnData {
                    column: id,
                    data: Data::Simple(times.cell(Bytes::new())),
                });
            }
        }
        Ok(())
    }
}

const EXPECTED: &str = "columns as the cell map has them (remove Cells.db to read without it)";

/// Where columns are in Data.db, and what the map has of the row.
struct Located<'m> {
    position: u64,
    end: u64,
    mapped: &'m Bytes,
}

/// Cells without their values, which are in Data.db.
struct Skeleton<'s> {
    cells: Piece<'s>,
    stream: &'s mut DataStream,
    /// Where in Data.db the first cell is.
    at: u64,
    /// Bytes of values up to here.
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
