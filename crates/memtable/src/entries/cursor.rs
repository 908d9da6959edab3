//! Reading entries as partitions and rows.

use std::collections::VecDeque;
use std::sync::Arc;

use ilion_rows::{
    Bound, ClusteringFilter, Cursor, DecoratedKey, KeyRange, PartitionHead, ReadError, Row, Unfiltered,
};
use ilion_runs::Walk;

use super::Entries;
use super::record::{is_same_value, key_of, row_of};

/// Reads a range of partitions.
pub(crate) struct EntryCursor {
    entries: Arc<Entries>,
    filter: Arc<ClusteringFilter>,
    walk: Walk,
    /// A record of the current partition, which names it; empty between partitions.
    partition: Vec<u8>,
    /// Number of slices that were read to their end.
    slices: usize,
    /// For reversed reads: the remaining rows of the current partition, the last one first.
    turned: Option<VecDeque<Row>>,
    record: Vec<u8>,
}

impl EntryCursor {
    pub(crate) fn new(entries: Arc<Entries>, range: &KeyRange, filter: Arc<ClusteringFilter>) -> Self {
        Self {
            walk: entries.walk(range),
            entries,
            filter,
            partition: Vec::new(),
            slices: 0,
            turned: None,
            record: Vec::new(),
        }
    }

    /// True if there is no partition in the range.
    pub(crate) fn is_empty(&self) -> bool {
        self.walk.is_empty()
    }

    /// Skips the rest of the current partition.
    fn leave(&mut self, entries: &Entries) {
        let Self { walk, partition, .. } = self;
        if !partition.is_empty() {
            walk.seek(&entries.order, |record| {
                entries.order.is_not_after_value(record.bytes, partition)
            });
            partition.clear();
        }
    }

    fn next_forwards(&mut self, entries: &Entries) -> Option<Row> {
        let order = &entries.order;
        loop {
            let slice = self.filter.slices.get(self.slices)?;
            let Self { walk, partition, .. } = self;
            let is_here = |bytes: &[u8]| is_same_value(bytes, partition);
            if !is_here(walk.peek()?.bytes) {
                return None;
            }
            walk.seek(order, |record| {
                is_here(record.bytes) && order.compare_bound(&slice.start, record.bytes).is_gt()
            });
            let next = walk.peek()?;
            if !is_here(next.bytes) {
                return None;
            }
            if order.compare_bound(&slice.end, next.bytes).is_lt() {
                self.slices += 1;
                continue;
            }
            self.record.clear();
            self.walk.take(order, &mut self.record);
            return Some(row_of(&self.record));
        }
    }

    fn next_turned(&mut self, entries: &Entries) -> Option<Row> {
        if self.turned.is_none() {
            let mut rows = VecDeque::new();
            while let Some(row) = self.next_forwards(entries) {
                rows.push_front(row);
            }
            self.turned = Some(rows);
        }
        self.turned.as_mut()?.pop_front()
    }
}

impl Cursor for EntryCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let entries = self.entries.clone();
        self.leave(&entries);
        (self.slices, self.turned) = (0, None);
        let Some(record) = self.walk.peek() else {
            return Ok(None);
        };
        self.partition.extend_from_slice(record.bytes);
        Ok(Some(PartitionHead {
            key: key_of(&self.partition),
            deletion: ilion_rows::DeletionTime::LIVE,
            static_row: None,
        }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if self.partition.is_empty() {
            return Ok(None);
        }
        let entries = self.entries.clone();
        let row = match self.filter.reversed {
            true => self.next_turned(&entries),
            false => self.next_forwards(&entries),
        };
        Ok(row.map(Unfiltered::Row))
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.walk.peek().map(|record| key_of(record.bytes))
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        let Some(slice) = self.filter.slices.get(self.slices) else {
            return Ok(());
        };
        if self.filter.reversed || self.partition.is_empty() {
            return Ok(());
        }
        let Self {
            walk,
            partition,
            entries,
            ..
        } = self;
        let order = &entries.order;
        walk.skip_removed(order, |record| {
            let is_after = |bound: &Bound| order.compare_bound(bound, record.bytes).is_gt();
            is_same_value(record.bytes, partition) && is_after(&slice.end) && before.is_none_or(is_after)
        });
        Ok(())
    }

    ilion_rows::cursor_methods!(without: peek plain_partitions plain_rows);
}
