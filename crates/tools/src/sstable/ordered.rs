//! A scan that fails if partitions or rows are out of order. Merges and writers rely on the order, and a file without checksums may
//! be damaged.
//!
//! Plain partitions and rows are visited in place as long as they are in order. The ordinary read handles the first one that is out of
//! order, since its error has the position.

mod order;
mod shown;

use std::path::PathBuf;

use ilion_rows::{Bound, Cursor, DecoratedKey, PartitionHead, PlainRun, PlainVisitor, ReadError, Unfiltered};
use ilion_sstable::{Component, DataScan};
use ilion_types::Partitioner;

use super::output_schema::OutputSchema;
use super::source::Source;
use order::Order;
use shown::{OrderedPartitions, OrderedRows};

/// Reads partitions, rows and markers in order; fails if a deleted range is not closed at the end of its partition.
pub(super) struct OrderedScan {
    scan: DataScan,
    order: Order,
    partitioner: Partitioner,
    file: PathBuf,
    items: u64,
}

impl OrderedScan {
    /// A scan of a source. Its rows are those of the schema's table, which may have more columns than the source.
    pub(super) fn new(source: &Source, schema: &OutputSchema) -> anyhow::Result<Self> {
        let sstable = &source.sstable;
        Ok(Self {
            scan: sstable.data_scan(&schema.table)?,
            order: Order::of(&schema.table),
            partitioner: source.partitioner,
            file: sstable.descriptor().path(&Component::Data),
            items: sstable
                .stats()
                .total_rows
                .saturating_add(sstable.estimated_keys()),
        })
    }

    pub(super) fn data_length(&self) -> u64 {
        self.scan.data_length()
    }

    /// Number of rows and partitions, from Statistics.db.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    fn corrupt(&self, offset: u64, expected: &str) -> ReadError {
        ReadError::Corrupt {
            file: self.file.clone(),
            offset,
            expected: expected.to_owned(),
        }
    }

    /// Reads the rest of the partition, which must be in order, too.
    fn leave(&mut self) -> Result<(), ReadError> {
        while self.next_unfiltered()?.is_some() {}
        Ok(())
    }
}

impl Cursor for OrderedScan {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.leave()?;
        let start = self.scan.position();
        let Some(head) = self.scan.next_partition()? else {
            return Ok(None);
        };
        let DecoratedKey { token, key } = &head.key;
        if !self.order.admits_key(token, key) {
            return Err(self.corrupt(
                start,
                "a partition whose key is above that of the partition before",
            ));
        }
        self.order.begin(token, key);
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let start = self.scan.position();
        let next = self.scan.next_unfiltered()?;
        let checked = match &next {
            None => self.order.end(),
            Some(unfiltered) => self.order.pass(unfiltered),
        };
        match checked {
            Ok(()) => Ok(next),
            Err(expected) => Err(self.corrupt(start, expected)),
        }
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        self.leave()?;
        let (order, partitioner) = (&mut self.order, self.partitioner);
        let mut ordered = OrderedPartitions {
            order,
            partitioner,
            visitor,
        };
        self.scan.plain_partitions(before, &mut ordered)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        let order = &mut self.order;
        self.scan
            .plain_rows(key, before, &mut OrderedRows { order, visitor })
    }

    ilion_rows::cursor_methods!(without: skip_deleted);

    ilion_rows::cursor_methods!(forward scan: peek);

    ilion_rows::cursor_methods!(without: lower_bound);
}
