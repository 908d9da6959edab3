//! Adds the rows and markers of a partition, each in the cheapest way.

use std::ops::Range;

use ilion_codec::Append as _;
use ilion_rows::{EntryRow, PlainRow, Row, Unfiltered};

use super::SSTableWriter;
use super::written::Written;
use crate::Result;
use crate::row::encode::LARGE_VALUE_BYTES;

impl SSTableWriter {
    /// Appends the static row of a partition; `None` is an empty row. The partition starts at `start` of Data.db, and at
    /// `start_buffered` of the buffer. Returns true if the row is not empty.
    #[inline(never)]
    pub(super) fn add_static(
        &mut self,
        row: Option<&Row>,
        start: u64,
        start_buffered: usize,
    ) -> Result<bool> {
        if row.is_some() && !self.options.has_static_rows {
            return Err(self.refuse("a static row was added, although the options exclude static rows"));
        }
        let static_at = self.buffer.len();
        let stored = self.encoder.encode_static(row, &mut self.stats, &mut self.buffer);
        let has_row = match stored {
            Ok(has_row) => has_row,
            Err(reason) => return Err(self.unstorable(reason)),
        };
        if let (Some(cells), Some(row), true) = (&mut self.cells, row, has_row) {
            let bytes = &self.buffer.as_slice()[start_buffered..];
            cells.static_row(start, bytes, static_at - start_buffered, row, &self.encoder)?;
        }
        self.append_body()?;
        Ok(has_row)
    }

    /// Adds a row or marker to the partition. Requires: they ascend.
    ///
    /// # Errors
    /// As [`SSTableWriter::begin_partition`].
    pub fn add(&mut self, unfiltered: &Unfiltered) -> Result<()> {
        match self.add_usual(unfiltered)? {
            true => self.flush_if_large(),
            false => self.add_any(unfiltered),
        }
    }

    /// Appends a row if it has the usual form; else returns false.
    #[inline]
    fn add_usual(&mut self, unfiltered: &Unfiltered) -> Result<bool> {
        let position = self.position();
        let (Unfiltered::Row(row), Some(open)) = (unfiltered, &mut self.open) else {
            return Ok(false);
        };
        let start = position - open.start;
        let previous_size = start - open.previous_start;
        let (stats, buffer) = (&mut self.stats, &mut self.buffer);
        let buffered = buffer.len();
        let Some(clustering) = self.encoder.encode_usual(row, previous_size, stats, buffer) else {
            return Ok(false);
        };
        self.deleted.end(position, self.span.last_stored());
        open.previous_start = start;
        let end = start + (buffer.len() - buffered) as u64;
        let clustering = &buffer.as_slice()[clustering];
        let written = Written::Row(row.clustering.values());
        self.span.add(written, clustering);
        self.index.add_unfiltered(written, clustering, start, end)?;
        Ok(true)
    }

    /// Appends any row or marker. This is its own function, so that the code for usual rows can use all registers.
    #[inline(never)]
    fn add_any(&mut self, unfiltered: &Unfiltered) -> Result<()> {
        let (position, buffered) = (self.position(), self.buffer.len());
        let Some(open) = &mut self.open else {
            return Err(self.refuse("a row comes before its partition"));
        };
        let start = position - open.start;
        let previous_size = start - open.previous_start;
        let partition_start = open.start;
        let before_first = (start == open.head_length).then_some(start);
        let (stats, buffer) = (&mut self.stats, &mut self.buffer);
        let stored = match unfiltered {
            Unfiltered::Row(row) => self.encoder.encode_row(row, previous_size, stats, buffer),
            Unfiltered::Marker(marker) => self
                .encoder
                .encode_marker(marker, previous_size, stats, buffer)
                .map(Some),
        };
        let clustering = match stored {
            Ok(Some(clustering)) => clustering,
            Ok(None) => return Ok(()),
            Err(reason) => return Err(self.unstorable(reason)),
        };
        open.previous_start = start;
        let end = self.position() + self.encoder.body().len() - partition_start;
        let clustering = &self.buffer.as_slice()[clustering];
        match unfiltered {
            Unfiltered::Row(row) if row.is_deletion() => self.deleted.add(position, clustering),
            _ => self.deleted.end(position, self.span.last_stored()),
        }
        let written = Written::from(unfiltered);
        self.span.add(written, clustering);
        self.index.add_unfiltered(written, clustering, start, end)?;
        if let Some(cells) = &mut self.cells {
            let bytes = self.buffer.as_slice();
            cells.unfiltered(unfiltered, position, before_first, bytes, buffered, &self.encoder)?;
        }
        self.append_body()?;
        self.flush_if_large()
    }

    /// Adds a row with a key and no columns, encoded like any row.
    ///
    /// # Errors
    /// As [`SSTableWriter::begin_partition`].
    pub fn add_entry(&mut self, entry: &EntryRow<'_>) -> Result<()> {
        let (start, previous_size) = self.next_start()?;
        let (stats, buffer) = (&mut self.stats, &mut self.buffer);
        match self.encoder.encode_if_short(entry, previous_size, stats, buffer) {
            Ok(Some(clustering)) => self.note_small_row(&entry.clustering, clustering, start),
            Ok(None) => self.add(&Unfiltered::Row(entry.to_row())),
            Err(reason) => Err(self.unstorable(reason)),
        }
    }

    /// Adds a plain row, encoded like any row. Returns false, and adds nothing, if it must be added as a [`Row`].
    ///
    /// # Errors
    /// As [`SSTableWriter::begin_partition`].
    #[inline(always)]
    pub fn add_plain_row(&mut self, row: &PlainRow<'_>) -> Result<bool> {
        let Some(timestamp_micros) = row.timestamp_micros else {
            return Ok(false);
        };
        let (start, previous_size) = self.next_start()?;
        let (stats, buffer) = (&mut self.stats, &mut self.buffer);
        match self
            .encoder
            .encode_seen(row, timestamp_micros, previous_size, stats, buffer)
        {
            Ok(Some(clustering)) => self
                .note_small_row(row.clustering, clustering, start)
                .map(|()| true),
            Ok(None) => Ok(false),
            Err(reason) => Err(self.unstorable(reason)),
        }
    }

    /// Offset of the next row in its partition, and distance from the previous one.
    #[inline]
    fn next_start(&self) -> Result<(u64, u64)> {
        let Some(open) = &self.open else {
            return Err(self.refuse("a row comes before its partition"));
        };
        let start = self.position() - open.start;
        Ok((start, start - open.previous_start))
    }

    /// Records a row that starts at `start` and was appended whole; `clustering` is the range of its clustering in the buffer.
    #[inline(always)]
    fn note_small_row(
        &mut self,
        values: &[Option<&[u8]>],
        clustering: Range<usize>,
        start: u64,
    ) -> Result<()> {
        let position = self.position();
        let Some(open) = &mut self.open else {
            return Err(self.refuse("a row comes before its partition"));
        };
        open.previous_start = start;
        self.deleted.end(open.start + start, self.span.last_stored());
        let end = position - open.start;
        let clustering = &self.buffer.as_slice()[clustering];
        let written = Written::Shown(values);
        self.span.add(written, clustering);
        self.index.add_unfiltered(written, clustering, start, end)?;
        self.flush_if_large()
    }

    /// Appends the rest of a row or marker. Large values are written to Data.db without a copy.
    #[inline]
    fn append_body(&mut self) -> Result<()> {
        match self.encoder.body().is_empty() {
            true => Ok(()),
            false => self.append_long_body(),
        }
    }

    fn append_long_body(&mut self) -> Result<()> {
        match self.encoder.body().as_slice() {
            Some(body) => {
                self.buffer.bytes(body);
                Ok(())
            }
            None => self.append_large_body(),
        }
    }

    fn append_large_body(&mut self) -> Result<()> {
        for piece in self.encoder.body().pieces() {
            if piece.len() < LARGE_VALUE_BYTES {
                self.buffer.bytes(piece);
            } else {
                self.data.write(self.buffer.as_slice())?;
                self.buffer.clear();
                ilion_env::each_piece(piece, |piece| self.data.write(piece))?;
            }
        }
        self.encoder.forget_values();
        Ok(())
    }
}
