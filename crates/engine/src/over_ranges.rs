//! [`OverRanges`]: a cursor over several ranges of partitions, one after another.

use std::collections::VecDeque;
use std::sync::Arc;

use ilion_rows::{
    Bound, ClusteringFilter, Cursor, DecoratedKey, Direction, KeyRange, MergeCursor, PartitionHead, PlainRun,
    PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::Scan;

use crate::live_sstable::LiveSSTable;
use crate::source::scan;

/// Opens a cursor over a range of partitions.
type Open = Box<dyn FnMut(&KeyRange) -> Box<dyn Cursor> + Send>;

/// A cursor over several ranges (see the module). Requires: the ranges ascend and do not overlap.
pub(crate) struct OverRanges {
    ranges: VecDeque<KeyRange>,
    open: Open,
    current: Option<Box<dyn Cursor>>,
}

impl OverRanges {
    fn new(ranges: &[KeyRange], open: Open) -> Self {
        Self {
            ranges: ranges.iter().cloned().collect(),
            open,
            current: None,
        }
    }

    /// A cursor over the partitions of a table's SSTables in these ranges.
    pub(crate) fn of(ranges: &[KeyRange], sstables: Vec<Arc<LiveSSTable>>, table: &Arc<TableSchema>) -> Self {
        let (table, filter) = (table.clone(), Arc::new(ClusteringFilter::all()));
        let open = move |range: &KeyRange| {
            let sources = sstables
                .iter()
                .map(|live| scan(live, &table, range, &filter, Scan::Sequential));
            let merged = MergeCursor::new(sources.collect(), table.clone(), Direction::Forward);
            Box::new(merged) as Box<dyn Cursor>
        };
        Self::new(ranges, Box::new(open))
    }

    /// The cursor of the current range, or of the next one; `None` behind the last range.
    fn current(&mut self) -> Option<&mut Box<dyn Cursor>> {
        if self.current.is_none() {
            let range = self.ranges.pop_front()?;
            self.current = Some((self.open)(&range));
        }
        self.current.as_mut()
    }
}

impl Cursor for OverRanges {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while let Some(current) = self.current() {
            if let Some(head) = current.next_partition()? {
                return Ok(Some(head));
            }
            self.current = None;
        }
        Ok(None)
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        match self.current() {
            // Behind the last partition of a range, `next_partition` goes on with the next range.
            Some(current) => current.plain_partitions(before, visitor),
            None => Ok(None),
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match &mut self.current {
            Some(current) => current.next_unfiltered(),
            None => Ok(None),
        }
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match &mut self.current {
            Some(current) => current.plain_rows(key, before, visitor),
            None => Ok(0),
        }
    }

    ilion_rows::cursor_methods!(without: lower_bound peek skip_deleted);
}

#[cfg(test)]
mod tests {
    use ilion_rows::notation::{parse_partitions, parse_table};
    use ilion_rows::recorder::{Method, forwarded};
    use ilion_types::Partitioner;

    use super::*;

    #[test]
    fn plain_rows_of_each_range_are_forwarded() {
        let table = parse_table("k int pk, c int ck, v int").unwrap();
        let text = "partition 1\n  row 1 live@1 v=1@1\n  row 2 live@1 v=2@1\n";
        let partitions = parse_partitions(text, &table, Partitioner::Murmur3).unwrap();
        let found = forwarded(&partitions, |cursor| {
            let mut cursor = Some(cursor);
            let open = move |_: &KeyRange| match cursor.take() {
                Some(cursor) => Box::new(cursor) as Box<dyn Cursor>,
                None => panic!("there is one range"),
            };
            OverRanges::new(&[KeyRange::all()], Box::new(open))
        });
        use Method::{NextPartition, NextUnfiltered, PlainPartitions, PlainRows};
        assert_eq!(
            found.unwrap(),
            [NextPartition, NextUnfiltered, PlainPartitions, PlainRows]
        );
    }
}
