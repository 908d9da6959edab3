//! [`forwarded`]: which methods of [`Cursor`] a wrapper forwards. For tests: a wrapper that does not forward a fast path returns the
//! same rows, only slowly, so no other test notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{
    Bound, Cursor, DecoratedKey, Flow, Partition, PartitionHead, PlainRow, PlainRun, PlainVisitor, ReadError,
    Unfiltered, VecCursor,
};

/// A method of [`Cursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// [`Cursor::next_partition`]
    NextPartition,
    /// [`Cursor::next_unfiltered`]
    NextUnfiltered,
    /// [`Cursor::lower_bound`]
    LowerBound,
    /// [`Cursor::peek`]
    Peek,
    /// [`Cursor::plain_partitions`]
    PlainPartitions,
    /// [`Cursor::plain_rows`]
    PlainRows,
    /// [`Cursor::skip_deleted`]
    SkipDeleted,
}

use Method::{LowerBound, NextPartition, NextUnfiltered, Peek, PlainPartitions, PlainRows, SkipDeleted};

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] = [
        NextPartition,
        NextUnfiltered,
        LowerBound,
        Peek,
        PlainPartitions,
        PlainRows,
        SkipDeleted,
    ];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A cursor that records which of its methods were called. It shows no plain rows, although it is asked for them.
pub struct Recorder {
    partitions: VecCursor,
    called: Arc<AtomicU32>,
}

impl Recorder {
    fn record(&self, method: Method) {
        self.called.fetch_or(method.bit(), Relaxed);
    }
}

impl Cursor for Recorder {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.record(NextPartition);
        self.partitions.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.record(NextUnfiltered);
        self.partitions.next_unfiltered()
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        self.record(LowerBound);
        self.partitions.lower_bound()
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        self.record(Peek);
        self.partitions.lower_bound()
    }

    fn plain_partitions(
        &mut self,
        _: Option<&DecoratedKey>,
        _: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        self.record(PlainPartitions);
        Ok(None)
    }

    fn plain_rows(
        &mut self,
        _: &DecoratedKey,
        _: Option<&Bound>,
        _: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        self.record(PlainRows);
        Ok(0)
    }

    fn skip_deleted(&mut self, _: Option<&Bound>) -> Result<(), ReadError> {
        self.record(SkipDeleted);
        Ok(())
    }
}

/// A visitor that takes no row.
struct TakesNone;

impl PlainVisitor for TakesNone {
    fn row(&mut self, _: &PlainRow<'_>) -> Flow {
        Flow::Leave
    }
}

fn call(method: Method, cursor: &mut dyn Cursor) -> Result<(), ReadError> {
    match method {
        NextPartition => drop(cursor.next_partition()?),
        LowerBound => drop(cursor.lower_bound()),
        Peek => drop(cursor.peek()),
        PlainPartitions => drop(cursor.plain_partitions(None, &mut TakesNone)?),
        NextUnfiltered | PlainRows | SkipDeleted => {
            let Some(head) = cursor.next_partition()? else {
                return Ok(());
            };
            cursor.next_unfiltered()?;
            if method == PlainRows {
                cursor.plain_rows(&head.key, None, &mut TakesNone)?;
            }
            if method == SkipDeleted {
                cursor.skip_deleted(None)?;
            }
        }
    }
    Ok(())
}

/// The methods that a wrapper forwards: for each of them, `wrap` wraps a cursor over these partitions, and then the method is called
/// once, `plain_rows` and `skip_deleted` behind the first row of the first partition. It is forwarded if the wrapped cursor sees the same method.
///
/// # Errors
/// The wrapper fails.
pub fn forwarded<C: Cursor>(
    partitions: &[Partition],
    mut wrap: impl FnMut(Recorder) -> C,
) -> Result<Vec<Method>, ReadError> {
    let mut forwarded = Vec::new();
    for method in Method::ALL {
        let called = Arc::default();
        let recorder = Recorder {
            partitions: VecCursor::new(partitions.to_vec()),
            called: Arc::clone(&called),
        };
        call(method, &mut wrap(recorder))?;
        if called.load(Relaxed) & method.bit() != 0 {
            forwarded.push(method);
        }
    }
    Ok(forwarded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::{parse_partitions, parse_table};
    use crate::{
        ClusteringComparator, ClusteringFilter, CompactionPurge, Direction, FilterCursor, GarbageSkip,
        Granularity, MergeCursor, ReadLaw, ReadPurge,
    };
    use ilion_types::Partitioner;

    /// What each wrapper forwards. Those without plain rows change the rows that they return.
    #[test]
    fn wrappers_forward_the_fast_paths() {
        let table = parse_table("k int pk, c int ck, v int").unwrap();
        let text = "partition 1\n  row 1 live@1 v=1@1\n  row 2 live@1 v=2@1\n";
        let partitions = parse_partitions(text, &table, Partitioner::Murmur3).unwrap();
        let of = |wrap: &dyn Fn(Recorder) -> Box<dyn Cursor>| forwarded(&partitions, wrap).unwrap();
        let plain = [
            NextPartition,
            NextUnfiltered,
            LowerBound,
            PlainPartitions,
            PlainRows,
        ];
        let rows_only = [NextPartition, NextUnfiltered, LowerBound];

        assert_eq!(forwarded(&partitions, Box::new).unwrap(), Method::ALL);
        let read = of(&|cursor| {
            let law = ReadLaw::without_limits(1);
            Box::new(ReadPurge::new(cursor, table.clone(), law))
        });
        assert_eq!(read, plain);
        let compaction = of(&|cursor| Box::new(CompactionPurge::new(cursor, 1, 0, Box::new(|_| 0))));
        assert_eq!(compaction, plain);
        let merge = of(&|cursor| Box::new(MergeCursor::new(vec![cursor], table.clone(), Direction::Forward)));
        assert_eq!(merge, [&plain[..], &[SkipDeleted]].concat());
        let filter = of(&|cursor| {
            let comparator = ClusteringComparator::of(&table);
            Box::new(FilterCursor::new(
                cursor,
                Arc::new(ClusteringFilter::all()),
                comparator,
            ))
        });
        assert_eq!(filter, rows_only);
        let garbage = of(&|cursor| {
            Box::new(GarbageSkip::new(
                cursor,
                Box::new(|_| Ok(None)),
                Granularity::Row,
                table.clone(),
            ))
        });
        assert_eq!(garbage, rows_only);
    }
}
