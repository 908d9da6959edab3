//! Counts of partitions by the number of inputs that had them: `rows_merged` of the history.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_rows::{Cursor, DecoratedKey, MergeCursor, PartitionHead, PlainRun, PlainVisitor, ReadError};

/// Counts of partitions by the number of inputs that have them; the first count is that of partitions in one input.
#[derive(Clone, Debug)]
pub(super) struct Joined(Arc<[AtomicU64]>);

impl Joined {
    /// Counts of 0, for a compaction of this many inputs.
    pub(crate) fn of_inputs(inputs: usize) -> Self {
        Self((0..inputs).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, inputs: usize, partitions: u64) {
        if let Some(count) = inputs.checked_sub(1).and_then(|place| self.0.get(place)) {
            count.fetch_add(partitions, Relaxed);
        }
    }

    /// Pairs of a number of inputs and the count of partitions that were in that many inputs; without counts of 0.
    pub(crate) fn counts(&self) -> Vec<(u32, u64)> {
        let counts = (1..).zip(self.0.iter().map(|count| count.load(Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// Counts the partitions of a merge.
pub(super) struct Counted {
    pub merge: MergeCursor,
    pub joined: Joined,
}

impl Cursor for Counted {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.merge.next_partition()?;
        if head.is_some() {
            self.joined.add(self.merge.sources_of_partition(), 1);
        }
        Ok(head)
    }

    /// Counts each plain partition as one that a single input has.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let run = self.merge.plain_partitions(before, visitor)?;
        self.joined.add(1, run.as_ref().map_or(0, |run| run.count));
        Ok(run)
    }

    ilion_rows::cursor_methods!(forward merge: next_unfiltered lower_bound peek plain_rows);

    ilion_rows::cursor_methods!(without: skip_deleted);
}

#[cfg(test)]
mod tests {
    use ilion_rows::Direction;
    use ilion_rows::notation::{parse_partitions, parse_table};
    use ilion_rows::recorder::{Method, forwarded};
    use ilion_types::Partitioner;

    use super::*;

    #[test]
    fn what_a_merge_has_is_forwarded() {
        let table = parse_table("k int pk, c int ck, v int").unwrap();
        let text = "partition 1\n  row 1 live@1 v=1@1\n  row 2 live@1 v=2@1\n";
        let partitions = parse_partitions(text, &table, Partitioner::Murmur3).unwrap();
        let found = forwarded(&partitions, |cursor| {
            let source = Box::new(cursor) as Box<dyn Cursor>;
            Counted {
                merge: MergeCursor::new(vec![source], table.clone(), Direction::Forward),
                joined: Joined::of_inputs(1),
            }
        });
        use Method::{LowerBound, NextPartition, NextUnfiltered, PlainPartitions, PlainRows};
        let expected = [
            NextPartition,
            NextUnfiltered,
            LowerBound,
            PlainPartitions,
            PlainRows,
        ];
        assert_eq!(found.unwrap(), expected);
    }
}
