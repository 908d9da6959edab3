//! A cursor over one partition.

use ilion_rows::{Bound, Cursor, DecoratedKey, PartitionHead, PlainVisitor, ReadError, Unfiltered};

use super::location::Location;
use super::partition_reader::PartitionReader;

/// A partition of an SSTable. Data.db is read when the partition is requested.
#[derive(Debug)]
pub struct PartitionCursor {
    reader: PartitionReader,
    /// Key and location of the partition; `None` once it was returned.
    waiting: Option<(DecoratedKey, Location)>,
}

impl PartitionCursor {
    pub(crate) fn new(reader: PartitionReader, key: DecoratedKey, location: Location) -> Self {
        Self {
            reader,
            waiting: Some((key, location)),
        }
    }
}

impl Cursor for PartitionCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((key, location)) = self.waiting.take() else {
            return Ok(None);
        };
        let started = self.reader.begin_at(&location)?;
        if started.key != key.key {
            return Err(self
                .reader
                .corrupt_start("the partition that the index has there")
                .into());
        }
        Ok(Some(PartitionHead {
            key,
            deletion: started.deletion,
            static_row: started.static_row,
        }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if self.waiting.is_some() {
            return Ok(None);
        }
        Ok(self.reader.next()?)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match self.waiting {
            Some(_) => Ok(0),
            None => Ok(self.reader.visit_rows(key, before, visitor)),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match self.waiting {
            Some(_) => Ok(()),
            None => Ok(self.reader.skip_deleted(before)?),
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.waiting.as_ref().map(|(key, _)| key.clone())
    }

    ilion_rows::cursor_methods!(without: peek plain_partitions);
}
