//! Reads the partitions of Data.db one after the other, without any index: for tools that print positions, or that read the
//! undamaged parts of a damaged SSTable.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, Cursor, DecoratedKey, KeyBound, PartitionHead, PlainRun, PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

use super::shown::{show_partitions, show_rows, until};
use crate::error::Step;
use crate::row::decode::{Head, RowFormat, Wanted};
use crate::row::seen::{Patterns, WantedKeys};
use crate::row::{key_at_hand, source::ByteSource as _};
use crate::{ChunkReader, DataStream, Result, SerializationHeader, Version};

/// A scan of Data.db with positions.
#[derive(Debug)]
pub struct DataScan {
    stream: DataStream,
    format: Arc<RowFormat>,
    partitioner: Partitioner,
    patterns: Patterns,
    /// True if rows of the current partition may follow.
    is_within: bool,
    /// The key of the next partition, if it was peeked.
    ahead: Option<DecoratedKey>,
}

impl DataScan {
    /// Scans chunk by chunk, so that chunks next to a damaged one can be read.
    ///
    /// # Errors
    /// Refused: the file does not fit the table.
    pub fn new(
        data: Arc<ChunkReader>,
        header: &SerializationHeader,
        version: Version,
        table: &Arc<TableSchema>,
        partitioner: Partitioner,
    ) -> Result<Self> {
        let format = Arc::new(RowFormat::of(header, version, table)?);
        Ok(Self::over(DataStream::cached(data, 0), format, partitioner))
    }

    pub(crate) fn over(stream: DataStream, format: Arc<RowFormat>, partitioner: Partitioner) -> Self {
        Self {
            stream,
            format,
            partitioner,
            patterns: Patterns::default(),
            is_within: false,
            ahead: None,
        }
    }

    /// The position in uncompressed Data.db where the next partition, row or marker starts.
    pub fn position(&self) -> u64 {
        self.stream.position()
    }

    /// Uncompressed size of Data.db.
    pub fn data_length(&self) -> u64 {
        self.stream.chunks().data_length()
    }

    /// Moves to the start of a partition.
    pub fn seek(&mut self, position: u64) {
        self.stream.seek(position);
        self.is_within = false;
        self.ahead = None;
    }

    /// Moves to the start of a row or marker of the current partition.
    pub fn seek_within(&mut self, position: u64) {
        self.stream.seek(position);
        self.is_within = true;
        self.ahead = None;
    }

    fn begin(&mut self) -> Result<PartitionHead> {
        let key_length = u16::from_be_bytes(self.stream.array()?);
        let key = self.stream.take(usize::from(key_length))?;
        let (deletion, static_row) = self.format.partition_head(&mut self.stream)?;
        self.is_within = true;
        Ok(PartitionHead {
            key: self.decorated(key),
            deletion,
            static_row,
        })
    }

    /// The key of the partition that starts here.
    fn decorated(&mut self, key: Bytes) -> DecoratedKey {
        match self.ahead.take() {
            Some(ahead) if ahead.key == key => ahead,
            _ => DecoratedKey::new(self.partitioner, key),
        }
    }

    /// Moves to the end of the partition.
    fn leave(&mut self) -> Step<()> {
        while self.is_within {
            match self.next_head()? {
                Some(Head::Row(row)) => self.stream.skip(row.body_size)?,
                Some(Head::Marker(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Skips the rest of the current partition, and returns the next one; `None` at the end of the data.
    ///
    /// # Errors
    /// Data.db is damaged or cannot be read. Call [`DataScan::seek`] before reading on.
    pub fn next_partition(&mut self) -> Result<Option<PartitionHead>> {
        self.leave()?;
        if self.stream.is_at_end() {
            return Ok(None);
        }
        self.begin().map(Some)
    }

    /// The next row or marker of the partition, including rows whose columns were all dropped.
    ///
    /// # Errors
    /// As [`DataScan::next_partition`].
    pub fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>> {
        if !self.is_within {
            return Ok(None);
        }
        if let Some(row) = self.format.row_at_hand(&mut self.stream) {
            return Ok(Some(Unfiltered::Row(row)));
        }
        match self.next_head()? {
            None => Ok(None),
            Some(Head::Marker(marker)) => Ok(Some(Unfiltered::Marker(marker))),
            Some(Head::Row(head)) => {
                let row = self.format.row(&mut self.stream, head, Wanted::ALL);
                Ok(Some(Unfiltered::Row(
                    row.inspect_err(|_| self.is_within = false)?,
                )))
            }
        }
    }

    /// Reads the next head. After an error, no more rows of the partition can be read.
    fn next_head(&mut self) -> Step<Option<Head>> {
        let head = self.format.head(&mut self.stream);
        self.is_within = matches!(head, Ok(Some(_)));
        head
    }
}

impl Cursor for DataScan {
    fn next_partition(&mut self) -> std::result::Result<Option<PartitionHead>, ReadError> {
        Ok(Self::next_partition(self)?)
    }

    fn next_unfiltered(&mut self) -> std::result::Result<Option<Unfiltered>, ReadError> {
        Ok(Self::next_unfiltered(self)?)
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        if self.ahead.is_none() && !self.is_within {
            let key = self.stream.window().0.slice_ref(key_at_hand(self.stream.rest())?);
            self.ahead = Some(DecoratedKey::new(self.partitioner, key));
        }
        self.ahead.clone()
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> std::result::Result<Option<PlainRun>, ReadError> {
        if !self.format.may_be_plain() {
            return Ok(None);
        }
        self.leave()?;
        let is_wanted = until(&KeyBound::End, before);
        let keys = WantedKeys::new(self.partitioner, is_wanted, &mut self.ahead);
        let (stream, patterns) = (&mut self.stream, &mut self.patterns);
        Ok(show_partitions(stream, &self.format, patterns, keys, visitor))
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> std::result::Result<u64, ReadError> {
        if !self.is_within || !self.format.rows_may_be_plain() {
            return Ok(0);
        }
        let (stream, patterns) = (&mut self.stream, &mut self.patterns);
        Ok(show_rows(stream, &self.format, patterns, key, before, visitor))
    }

    ilion_rows::cursor_methods!(without: lower_bound skip_deleted);
}
