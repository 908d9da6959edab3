//! The read path: opens a cursor for each source that may have wanted rows, and merges them.
//!
//! A read of rows by their whole primary key reads one source after another, and ends early (`settle`). Any other read of a partition
//! leaves out sources that a deletion of the whole partition covers, and SSTables without clusterings in the wanted slices. SSTables whose
//! clusterings do not overlap are opened one after another (`chain`).

use std::ops::Range;
use std::sync::Arc;

use ilion_env::cost::{self, Count};
use ilion_env::trace;
use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, Direction, KeyRange,
    MergeCursor, NO_DELETION_TIME, PartitionHead, PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{KeyHash, Presence, SSTable, Scan, Unwanted, Whereabouts};

use smallvec::SmallVec;

use crate::chain::ChainRead;
use crate::live_sstable::LiveSSTable;
use crate::settle::{SettledCursor, Settling, Wanted};
use crate::sorted_scan::{SortedRead, SortedScan};
use crate::source::{Held, Tally, note_skipped, note_touched, scan, skip, skip_all, touch};
use crate::table_store::TableStore;
use crate::view::View;

/// Upper limit of the partitions of one SSTable that are compared with a key because the sorted view names them. With more, the index
/// of the SSTable finds the partition.
const RANKS_MAX: u64 = 8;

/// A cursor without partitions.
struct Nothing;

impl Cursor for Nothing {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions plain_rows skip_deleted);
}

/// A cursor whose first partition was already read from its source, and is returned when the caller asks for it.
struct Begun<C> {
    head: Option<PartitionHead>,
    cursor: C,
}

impl<C: Cursor> Begun<C> {
    fn of(mut cursor: C) -> Result<Self, ReadError> {
        let head = cursor.next_partition()?;
        Ok(Self { head, cursor })
    }

    fn deletion(&self) -> DeletionTime {
        self.head
            .as_ref()
            .map_or(DeletionTime::LIVE, |head| head.deletion)
    }
}

impl<C: Cursor> Cursor for Begun<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self.head.take() {
            None => self.cursor.next_partition(),
            head => Ok(head),
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        match &self.head {
            None => self.cursor.lower_bound(),
            Some(head) => Some(head.key.clone()),
        }
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match &self.head {
            None => self.cursor.plain_rows(key, before, visitor),
            Some(_) => Ok(0),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match &self.head {
            None => self.cursor.skip_deleted(before),
            Some(_) => Ok(()),
        }
    }

    ilion_rows::cursor_methods!(forward cursor: next_unfiltered);

    ilion_rows::cursor_methods!(without: peek plain_partitions);
}

/// A read of one partition.
pub(crate) struct PointRead<'r> {
    pub table: &'r Arc<TableSchema>,
    pub key: &'r DecoratedKey,
    pub filter: Arc<ClusteringFilter>,
    pub comparator: &'r ClusteringComparator,
}

impl TableStore {
    /// One partition, merged from all sources that may have data of it. `now_secs` is the present.
    pub(crate) fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
        now_secs: u32,
    ) -> Result<Box<dyn Cursor>, ReadError> {
        let view = self.view();
        let filter = Arc::new(filter.clone());
        let Some(active) = view.memtables.first() else {
            return Ok(Box::new(Nothing));
        };
        if view.sstables.is_empty() {
            let cursors = view.memtables.iter().filter_map(|memtable| {
                let cursor = memtable.partition(key, &filter)?;
                Some(Box::new(cursor) as Box<dyn Cursor>)
            });
            let cursors: Vec<_> = cursors.collect();
            cost::add(Count::Memtables, cursors.len() as u64);
            tell_merged(0);
            let direction = Direction::of(filter.reversed);
            return Ok(merged(cursors, table, active.comparator(), direction));
        }
        let read = PointRead {
            table,
            key,
            filter,
            comparator: active.comparator(),
        };
        match Wanted::of(table, &read.filter, read.comparator) {
            Some(wanted) => {
                // A row that lives at the later time lives at both.
                let now_secs = now_secs.max(read.filter.now_secs.unwrap_or(0));
                read.settle(&view, wanted, now_secs)
            }
            None => read.merge(&view),
        }
    }

    /// The partitions of a range, merged from all sources.
    pub(crate) fn read_range(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        filter: &ClusteringFilter,
    ) -> Box<dyn Cursor> {
        let filter = Arc::new(filter.clone());
        let view = self.view();
        let Some(active) = view.memtables.first() else {
            return Box::new(Nothing);
        };
        let mut sources: Vec<Box<dyn Cursor>> =
            Vec::with_capacity(view.memtables.len() + view.sstables.len());
        let memtables = view.memtables.iter();
        for memtable in memtables.filter(|memtable| !memtable.has_nothing_to_read()) {
            cost::add(Count::Memtables, 1);
            sources.push(Box::new(memtable.cursor(range.clone(), filter.clone())));
        }
        cost::add(Count::SSTablesConsidered, view.sstables.len() as u64);
        let mut beside = None;
        if let Some(sorted) = view.sorted() {
            let read = SortedRead {
                table: table.clone(),
                range: range.clone(),
                filter: filter.clone(),
                comparator: active.comparator().clone(),
            };
            match SortedScan::new(&view, sorted, read) {
                Ok(scan) => {
                    sources.push(Box::new(scan));
                    beside = Some(&sorted.beside[..]);
                }
                Err(_) => sorted.order.give_up(),
            }
        }
        let mut scan_one = |live: &Arc<LiveSSTable>| {
            if range.misses(live.sstable.first_key(), live.sstable.last_key()) {
                skip(Count::SkippedByKeyRange, live);
            } else {
                sources.push(scan(live, table, range, &filter, Scan::Point));
            }
        };
        match beside {
            Some(beside) => beside.iter().for_each(|at| scan_one(&view.sstables[*at])),
            None => view.sstables.iter().for_each(scan_one),
        }
        trace::note(|| {
            let name = &table.name;
            format!(
                "Executing seq scan across {} sstables for {name}",
                view.sstables.len()
            )
        });
        merged(
            sources,
            table,
            active.comparator(),
            Direction::of(filter.reversed),
        )
    }
}

impl PointRead<'_> {
    /// Reads at most one row per slice, and returns them as one partition.
    ///
    /// In the first pass, unwanted columns are read only as far as they may show that a row lives. If that is not enough, a second pass
    /// reads the times of all cells. Only the last pass is counted, so that no SSTable counts twice.
    fn settle(&self, view: &View, wanted: Wanted, now_secs: u32) -> Result<Box<dyn Cursor>, ReadError> {
        cost::add(Count::SSTablesConsidered, view.sstables.len() as u64);
        let sources = self.sources(view);
        let mut tally = Tally::default();
        let settled = self.settle_in_passes(view, &sources, wanted, now_secs, &mut tally);
        tally.count();
        Ok(match settled? {
            Some(cursor) => Box::new(cursor),
            None => Box::new(Nothing),
        })
    }

    fn settle_in_passes(
        &self,
        view: &View,
        sources: &[Asked<'_>],
        wanted: Wanted,
        now_secs: u32,
        tally: &mut Tally,
    ) -> Result<Option<SettledCursor>, ReadError> {
        let settling = |wanted| {
            let comparator = self.comparator.clone();
            Settling::new(self.table, comparator, &self.filter, wanted, now_secs)
        };
        let in_short = self.filter.columns.is_some() && !wanted.liveness;
        if in_short {
            let first = settling(wanted.clone());
            let settled = self.settle_with(view, sources, first, Unwanted::Newest, tally)?;
            let is_unsure = |settled: &SettledCursor| settled.has_dead_rows(now_secs);
            if !settled.as_ref().is_some_and(is_unsure) {
                return Ok(settled);
            }
            *tally = Tally::default();
        }
        self.settle_with(view, sources, settling(wanted), Unwanted::Times, tally)
    }

    /// Reads one source after another, until older ones cannot change the result.
    fn settle_with(
        &self,
        view: &View,
        sources: &[Asked<'_>],
        mut settling: Settling,
        unwanted: Unwanted,
        tally: &mut Tally,
    ) -> Result<Option<SettledCursor>, ReadError> {
        for memtable in &view.memtables {
            if let Some(mut cursor) = memtable.partition(self.key, settling.filter()) {
                tally.add(Count::Memtables, 1);
                settling.absorb(&mut cursor)?;
            }
        }
        let hash = KeyHash::of(&self.key.key);
        let mut merged = 0;
        for (index, (live, ranks)) in sources.iter().enumerate() {
            let sstable = &live.sstable;
            let newest = sstable.stats().max_timestamp_micros;
            if settling.is_settled(newest) {
                let why = match settling.deletion().deletes(newest) {
                    true => Count::SkippedByDeletion,
                    false => Count::SkippedByTimestamp,
                };
                let left = &sources[index..];
                tally.add(why, left.len() as u64);
                left.iter().for_each(|(live, _)| note_skipped(why, live));
                break;
            }
            let prospect = self.prospect(sstable, ranks, &hash, settling.filter(), settling.wants_static());
            let whereabouts = match prospect {
                Prospect::Possible(whereabouts) => whereabouts,
                Prospect::Needless(why) => {
                    tally.add(why, 1);
                    note_skipped(why, live);
                    continue;
                }
            };
            tally.add(Count::SSTablesTouched, 1);
            note_touched(live);
            let found =
                sstable.partition_at(self.table, self.key, &whereabouts, settling.filter(), unwanted)?;
            if let Some(mut cursor) = found {
                merged += 1;
                settling.absorb(&mut cursor)?;
            }
        }
        tell_merged(merged);
        Ok(settling.finish())
    }

    /// Merges all sources, except those that a deletion of the whole partition covers.
    fn merge(&self, view: &View) -> Result<Box<dyn Cursor>, ReadError> {
        let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
        let mut deletion = DeletionTime::LIVE;
        for memtable in &view.memtables {
            if let Some(cursor) = memtable.partition(self.key, &self.filter) {
                cost::add(Count::Memtables, 1);
                let begun = Begun::of(cursor)?;
                deletion = deletion.max(begun.deletion());
                sources.push(Box::new(begun));
            }
        }
        cost::add(Count::SSTablesConsidered, view.sstables.len() as u64);
        let hash = KeyHash::of(&self.key.key);
        let sstables = self.sources(view);
        let mut merged_sstables = 0;
        let mut later = Vec::new();
        // Whether a partition has a static row matters even if no column of it is wanted.
        let wants_static = self.table.has_statics();
        for (index, (live, ranks)) in sstables.iter().enumerate() {
            let sstable = &live.sstable;
            if deletion.deletes(sstable.stats().max_timestamp_micros) {
                let left = sstables[index..].iter().map(|(live, _)| *live);
                skip_all(Count::SkippedByDeletion, left.len(), left);
                break;
            }
            let whereabouts = match self.prospect(sstable, ranks, &hash, &self.filter, wants_static) {
                Prospect::Possible(whereabouts) => whereabouts,
                Prospect::Needless(why) => {
                    skip(why, live);
                    continue;
                }
            };
            if !is_part_of_head(sstable, wants_static) {
                merged_sstables += 1;
                later.push(Arc::clone(live));
                continue;
            }
            touch(live);
            let found =
                sstable.partition_at(self.table, self.key, &whereabouts, &self.filter, Unwanted::Times)?;
            let Some(cursor) = found else {
                continue;
            };
            merged_sstables += 1;
            let held = Held::touched(cursor, Arc::clone(live));
            if may_delete_partitions(sstable) {
                let begun = Begun::of(held)?;
                deletion = deletion.max(begun.deletion());
                sources.push(Box::new(begun));
            } else {
                sources.push(Box::new(held));
            }
        }
        tell_merged(merged_sstables);
        if !later.is_empty() {
            let read = ChainRead {
                table: self.table.clone(),
                key: self.key.clone(),
                filter: self.filter.clone(),
            };
            sources.extend(read.sources(later, self.comparator));
        }
        let direction = Direction::of(self.filter.reversed);
        Ok(merged(sources, self.table, self.comparator, direction))
    }

    /// The SSTables that may have the partition, newest first. The sorted view excludes some of its sources, which are counted as
    /// skipped; for each other source it returns the numbers of the partitions that may be the wanted one, if they are few.
    pub(crate) fn sources<'v>(&self, view: &'v View) -> SmallVec<[Asked<'v>; 4]> {
        let Some(sorted) = view.sorted() else {
            return view.sstables.iter().map(|live| (live, None)).collect();
        };
        let Ok(candidates) = sorted.order.view.candidates(&self.key.token) else {
            sorted.order.give_up();
            return view.sstables.iter().map(|live| (live, None)).collect();
        };
        let known = candidates.into_iter().filter_map(|(source, ranks)| {
            let are_few = ranks.end - ranks.start <= RANKS_MAX;
            Some((sorted.place(source)?, are_few.then_some(ranks)))
        });
        let mut places: SmallVec<[(usize, Option<Range<u64>>); 4]> = known.collect();
        places.extend(sorted.beside.iter().map(|at| (*at, None)));
        places.sort_unstable_by_key(|(at, _)| *at);
        if places.len() < view.sstables.len() {
            let is_left = |at: &usize| places.iter().all(|(other, _)| other != at);
            let left = (0..view.sstables.len()).filter(is_left);
            let count = view.sstables.len() - places.len();
            skip_all(
                Count::SkippedBySortedView,
                count,
                left.map(|at| &view.sstables[at]),
            );
        }
        let asked = places.into_iter().map(|(at, ranks)| (&view.sstables[at], ranks));
        asked.collect()
    }

    /// Decides from memory whether an SSTable must be read.
    #[inline]
    pub(crate) fn prospect(
        &self,
        sstable: &SSTable,
        ranks: &Option<Range<u64>>,
        hash: &KeyHash,
        filter: &ClusteringFilter,
        wants_static: bool,
    ) -> Prospect {
        let presence = match ranks {
            Some(ranks) => Presence::Possible(Whereabouts::among(ranks.clone())),
            None => sstable.presence(self.key, hash),
        };
        match presence {
            Presence::Outside => Prospect::Needless(Count::SkippedByKeyRange),
            Presence::Absent => Prospect::Needless(Count::SkippedByFilter),
            Presence::Possible(_) if self.has_nothing_of(sstable, filter, wants_static) => {
                Prospect::Needless(Count::SkippedByClustering)
            }
            Presence::Possible(whereabouts) => Prospect::Possible(whereabouts),
        }
    }

    /// True if, by its statistics, the SSTable has no row in the slices of `filter`, and no deletion that covers a part of them.
    fn has_nothing_of(&self, sstable: &SSTable, filter: &ClusteringFilter, wants_static: bool) -> bool {
        if is_part_of_head(sstable, wants_static) {
            return false;
        }
        let covered = sstable.covered();
        filter
            .slices
            .iter()
            .all(|slice| slice.misses(covered, self.comparator))
    }
}

/// An SSTable, and the numbers of its partitions that may be the wanted one; `None` if unknown.
pub(crate) type Asked<'v> = (&'v Arc<LiveSSTable>, Option<Range<u64>>);

/// Whether an SSTable must be read for a partition.
pub(crate) enum Prospect {
    /// It has no wanted data of the partition, for this reason, under which it is counted.
    Needless(Count),
    /// It may have the partition.
    Possible(Whereabouts),
}

fn tell_merged(sstables: usize) {
    trace::note(|| format!("Merged data from memtables and {sstables} sstables"));
}

/// False if the statistics of the SSTable exclude a deletion of a whole partition.
fn may_delete_partitions(sstable: &SSTable) -> bool {
    let stats = sstable.stats();
    stats.has_partition_deletions && stats.min_local_deletion_secs != NO_DELETION_TIME
}

/// True if the SSTable may have a deletion of the whole partition, or a static row that is wanted.
fn is_part_of_head(sstable: &SSTable, wants_static: bool) -> bool {
    may_delete_partitions(sstable) || (wants_static && !sstable.header().statics.is_empty())
}

fn merged(
    mut sources: Vec<Box<dyn Cursor>>,
    table: &Arc<TableSchema>,
    comparator: &ClusteringComparator,
    direction: Direction,
) -> Box<dyn Cursor> {
    match sources.len() {
        0 => Box::new(Nothing),
        1 => sources.remove(0),
        _ => Box::new(MergeCursor::ordered(
            sources,
            table.clone(),
            comparator.clone(),
            direction,
        )),
    }
}

#[cfg(test)]
mod forwarding;
#[cfg(test)]
mod tests;
