//! An SSTable as a source of a read: its files are kept meanwhile, and it is counted as touched or skipped.

use std::sync::Arc;

use ilion_env::cost::{self, Count};
use ilion_env::trace;
use ilion_rows::{
    ClusteringFilter, Cursor, DecoratedKey, KeyRange, PartitionHead, PlainRun, PlainVisitor, ReadError,
};
use ilion_schema::TableSchema;
use ilion_sstable::Scan;
use smallvec::SmallVec;

use crate::live_sstable::LiveSSTable;

/// A cursor over an SSTable; while it exists the files are not removed.
pub(crate) struct Held<C> {
    cursor: C,
    sstable: Arc<LiveSSTable>,
    /// The SSTable is counted as touched.
    is_touched: bool,
}

impl<C> Held<C> {
    /// For a cursor that has not read anything yet: the SSTable is counted with the first partition.
    pub(crate) fn new(cursor: C, sstable: Arc<LiveSSTable>) -> Self {
        Self {
            cursor,
            sstable,
            is_touched: false,
        }
    }

    /// For a cursor whose SSTable is already counted as touched.
    pub(crate) fn touched(cursor: C, sstable: Arc<LiveSSTable>) -> Self {
        Self {
            cursor,
            sstable,
            is_touched: true,
        }
    }
}

impl<C: Cursor> Cursor for Held<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if !self.is_touched {
            self.is_touched = true;
            touch(&self.sstable);
        }
        self.cursor.next_partition()
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let run = self.cursor.plain_partitions(before, visitor)?;
        if run.is_some() && !self.is_touched {
            self.is_touched = true;
            touch(&self.sstable);
        }
        Ok(run)
    }

    ilion_rows::cursor_methods!(forward cursor: next_unfiltered lower_bound peek plain_rows skip_deleted);
}

/// A cursor over a range of one SSTable.
pub(crate) fn scan(
    live: &Arc<LiveSSTable>,
    table: &Arc<TableSchema>,
    range: &KeyRange,
    filter: &Arc<ClusteringFilter>,
    scan: Scan,
) -> Box<dyn Cursor> {
    let cursor = live.sstable.cursor(table, range.clone(), filter.clone(), scan);
    Box::new(Held::new(cursor, live.clone()))
}

/// The counts of one pass of a read. They are dropped if the read needs another pass.
#[derive(Default)]
pub(crate) struct Tally(SmallVec<[(Count, u64); 4]>);

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, count: Count, amount: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == count) {
            Some((_, sum)) => *sum += amount,
            None => self.0.push((count, amount)),
        }
    }

    /// Charges the counts to the request.
    pub(crate) fn count(self) {
        for (count, amount) in self.0 {
            cost::add(count, amount);
        }
    }
}

/// Counts SSTables that are skipped.
pub(crate) fn skip_all<'l>(why: Count, count: usize, sstables: impl Iterator<Item = &'l Arc<LiveSSTable>>) {
    cost::add(why, count as u64);
    if trace::is_on() {
        sstables.for_each(|live| note_skipped(why, live));
    }
}

/// Counts an SSTable that is skipped.
#[inline]
pub(crate) fn skip(why: Count, live: &LiveSSTable) {
    cost::add(why, 1);
    note_skipped(why, live);
}

/// Records in the trace that an SSTable is skipped.
#[inline]
pub(crate) fn note_skipped(why: Count, live: &LiveSSTable) {
    trace::note(|| {
        let sstable = live.sstable.descriptor().base_name();
        match why {
            Count::SkippedByKeyRange => format!("Key range allows skipping sstable {sstable}"),
            Count::SkippedByFilter if live.sstable.token_map_bytes().is_some() => {
                format!("Token map allows skipping sstable {sstable}")
            }
            Count::SkippedByFilter => format!("Bloom filter allows skipping sstable {sstable}"),
            Count::SkippedBySortedView => format!("Sorted view allows skipping sstable {sstable}"),
            Count::SkippedByClustering => format!("Skipped non-slice-intersecting sstable {sstable}"),
            Count::SkippedByDeletion => format!("Partition deletion covers sstable {sstable}"),
            _ => format!("Newer data makes sstable {sstable} needless"),
        }
    });
}

/// Counts an SSTable that is read.
#[inline]
pub(crate) fn touch(live: &LiveSSTable) {
    cost::add(Count::SSTablesTouched, 1);
    note_touched(live);
}

/// Records in the trace that an SSTable is read.
#[inline]
pub(crate) fn note_touched(live: &LiveSSTable) {
    trace::note(|| format!("Reading sstable {}", live.sstable.descriptor().base_name()));
}
