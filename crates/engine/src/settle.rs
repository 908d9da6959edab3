//! Reads of rows by their whole keys, source after source, until older sources can add nothing.
//!
//! SSTables are read from the newest data to the oldest. A row is settled against sources older than a timestamp if a deletion at or
//! above that timestamp covers the row, or if each wanted column has a newer cell and the row is known to live. Then no data
//! of these sources is visible. Compat: `SinglePartitionReadCommand.queryMemtableAndSSTablesInTimestampOrder` of
//! Cassandra 5.0, which does not check whether the row lives: there, an expired row can hide an older column that lives.
//!
//! Unwanted columns are read only as far as they may show that the row lives ([`ilion_sstable::Unwanted::Newest`]). If that is not
//! enough, everything is read again with the times of all cells, since one of them may live.
//!
//! If the liveness of rows is wanted, or alone decides whether a row lives (strict liveness, of views), it must be newer, too.
//!
//! Not used for counters, whose values add up over all sources, nor for columns of many cells.

use std::sync::Arc;

use ilion_rows::{
    ClusteringComparator, ClusteringFilter, Cursor, Data, DeletionTime, Direction, Marker, PartitionHead,
    ReadError, Row, Slice, Unfiltered, merge_rows,
};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use smallvec::SmallVec;

/// Maximum number of rows; a read of more rows uses all sources at once.
const ROWS_MAX: usize = 64;

/// The wanted rows and columns of a partition, if it can be settled.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The wanted columns, all of them simple.
    statics: SmallVec<[ColumnId; 4]>,
    regulars: SmallVec<[ColumnId; 8]>,
    /// True if the liveness of rows is wanted.
    pub(crate) liveness: bool,
}

impl Wanted {
    /// `None` if the read cannot be settled.
    pub(crate) fn of(
        table: &TableSchema,
        filter: &ClusteringFilter,
        comparator: &ClusteringComparator,
    ) -> Option<Self> {
        let is_by_rows = !filter.slices.is_empty()
            && filter.slices.len() <= ROWS_MAX
            && filter.slices.iter().all(|slice| slice.is_one_row(comparator));
        if !is_by_rows || table.is_counter() {
            return None;
        }
        let mut wanted = Self {
            statics: SmallVec::new(),
            regulars: SmallVec::new(),
            liveness: filter.liveness || table.has_strict_liveness,
        };
        match &filter.columns {
            None => table
                .statics()
                .chain(table.regulars())
                .try_for_each(|column| wanted.add(column)),
            Some(ids) => ids
                .iter()
                .filter_map(|id| table.column(*id))
                .try_for_each(|column| wanted.add(column)),
        }?;
        Some(wanted)
    }

    /// True if static columns are wanted.
    pub(crate) fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    /// `None` if the column cannot be settled.
    fn add(&mut self, column: &Column) -> Option<()> {
        if column.is_complex() {
            return None;
        }
        match column.kind {
            ColumnKind::Static => self.statics.push(column.id),
            ColumnKind::Regular => self.regulars.push(column.id),
            ColumnKind::PartitionKey | ColumnKind::Clustering => {}
        }
        Some(())
    }
}

/// One wanted row.
struct Slot {
    slice: Slice,
    row: Option<Row>,
    /// The newest deleted range that covers it.
    range: DeletionTime,
    is_settled: bool,
}

/// Merges sources, newest first.
pub(crate) struct Settling {
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    wanted: Wanted,
    now_secs: u32,
    head: Option<PartitionHead>,
    is_static_settled: bool,
    slots: SmallVec<[Slot; 1]>,
    direction: Direction,
    /// The filter for the next source; never reversed.
    filter: Arc<ClusteringFilter>,
}

impl Settling {
    pub(crate) fn new(
        table: &Arc<TableSchema>,
        comparator: ClusteringComparator,
        filter: &Arc<ClusteringFilter>,
        wanted: Wanted,
        now_secs: u32,
    ) -> Self {
        let slot = |slice: &Slice| Slot {
            slice: slice.clone(),
            row: None,
            range: DeletionTime::LIVE,
            is_settled: false,
        };
        Self {
            table: table.clone(),
            comparator,
            is_static_settled: wanted.statics.is_empty(),
            wanted,
            now_secs,
            head: None,
            slots: filter.slices.iter().map(slot).collect(),
            direction: Direction::of(filter.reversed),
            filter: match filter.reversed {
                false => filter.clone(),
                true => Arc::new(ClusteringFilter {
                    reversed: false,
                    ..ClusteringFilter::clone(filter)
                }),
            },
        }
    }

    /// The filter for the next source.
    pub(crate) fn filter(&self) -> &Arc<ClusteringFilter> {
        &self.filter
    }

    /// True if the static row is still wanted.
    pub(crate) fn wants_static(&self) -> bool {
        !self.is_static_settled
    }

    /// The newest deletion of the partition in the sources so far.
    pub(crate) fn deletion(&self) -> DeletionTime {
        self.head
            .as_ref()
            .map_or(DeletionTime::LIVE, |head| head.deletion)
    }

    /// True if sources whose newest data is `micros` can add nothing. If not, removes settled rows from the filter.
    pub(crate) fn is_settled(&mut self, micros: i64) -> bool {
        let Some(head) = &self.head else {
            return false;
        };
        if head.deletion.deletes(micros) {
            return true;
        }
        let (columns, now_secs) = (&self.wanted, self.now_secs);
        if !self.is_static_settled {
            let row = self.head.as_ref().and_then(|head| head.static_row.as_ref());
            self.is_static_settled =
                row.is_some_and(|row| is_settled(row, &columns.statics, micros, now_secs));
        }
        let mut is_changed = false;
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_settled) {
            let row = slot.row.as_ref();
            slot.is_settled = slot.range.deletes(micros)
                || row.is_some_and(|row| {
                    let has_liveness = !columns.liveness || row.liveness.timestamp_micros > micros;
                    row.deletion.deletes(micros)
                        || (has_liveness && is_settled(row, &columns.regulars, micros, now_secs))
                });
            is_changed |= slot.is_settled;
        }
        if is_changed {
            let left = self.slots.iter().filter(|slot| !slot.is_settled);
            self.filter = Arc::new(ClusteringFilter {
                slices: left.map(|slot| slot.slice.clone()).collect(),
                columns: self.filter.columns.clone(),
                elements: self.filter.elements.clone(),
                ..*self.filter
            });
        }
        self.is_static_settled && self.filter.slices.is_empty()
    }

    /// Merges a source, which was opened with [`Self::filter`].
    pub(crate) fn absorb(&mut self, source: &mut dyn Cursor) -> Result<(), ReadError> {
        let Some(head) = source.next_partition()? else {
            return Ok(());
        };
        self.absorb_head(head);
        let mut at = 0;
        while let Some(unfiltered) = source.next_unfiltered()? {
            at = self.absorb_unfiltered(unfiltered, at);
        }
        Ok(())
    }

    fn absorb_head(&mut self, head: PartitionHead) {
        let Some(known) = &mut self.head else {
            self.head = Some(head);
            return;
        };
        known.deletion = known.deletion.max(head.deletion);
        if let Some(row) = head.static_row {
            match &mut known.static_row {
                Some(known) => {
                    known.merge(row, &self.table);
                }
                none => *none = Some(row),
            }
        }
    }

    /// Merges a row into its slot. The slots are searched from index `from` on. Returns the index of the slot.
    fn absorb_unfiltered(&mut self, unfiltered: Unfiltered, from: usize) -> usize {
        let comparator = &self.comparator;
        let is_before = |slot: &Slot| match &unfiltered {
            Unfiltered::Row(row) => comparator
                .compare_bound_to_row(&slot.slice.end, &row.clustering)
                .is_lt(),
            Unfiltered::Marker(marker) => comparator.compare_bounds(&slot.slice.end, &marker.bound).is_lt(),
        };
        let passed = match self.slots.len() {
            1 => 0,
            _ => self.slots[from..]
                .iter()
                .take_while(|slot| is_before(slot))
                .count(),
        };
        let at = from + passed;
        let Some(slot) = self.slots.get_mut(at) else {
            debug_assert!(false, "a source gives nothing behind what it was asked for");
            return from;
        };
        match unfiltered {
            Unfiltered::Row(row) => match &mut slot.row {
                Some(known) => {
                    known.merge(row, &self.table);
                }
                none => *none = Some(row),
            },
            Unfiltered::Marker(marker) => {
                // The marker that opens the range is before the row, the one that closes it is behind.
                let covering = match marker.bound.kind.is_before() {
                    true => marker.start,
                    false => marker.end,
                };
                slot.range = slot.range.max(covering.unwrap_or(DeletionTime::LIVE));
            }
        }
        at
    }

    /// The result in the order of the read; `None` if no source has the partition.
    pub(crate) fn finish(self) -> Option<SettledCursor> {
        let mut head = self.head?;
        let deletion = head.deletion;
        head.static_row = merge_rows(head.static_row, deletion, &self.table);
        let mut unfiltereds = SmallVec::new();
        let give = |slot: Slot| slot.give(deletion, self.direction, &mut unfiltereds);
        match self.direction {
            Direction::Forward => self.slots.into_iter().for_each(give),
            Direction::Reversed => self.slots.into_iter().rev().for_each(give),
        }
        Some(SettledCursor {
            head: Some(head),
            unfiltereds: unfiltereds.into_iter(),
        })
    }
}

impl Slot {
    fn give(self, deletion: DeletionTime, direction: Direction, out: &mut SmallVec<[Unfiltered; 1]>) {
        let range = Some(self.range).filter(|range| range.supersedes(&deletion));
        let Slice { start, end } = &self.slice;
        let (first, last) = match direction {
            Direction::Forward => (start, end),
            Direction::Reversed => (end, start),
        };
        if range.is_some() {
            out.push(Unfiltered::Marker(Marker::at(first, None, range, direction)));
        }
        if let Some(mut row) = self.row {
            row.shadow(deletion.max(self.range));
            if !row.is_empty() {
                out.push(Unfiltered::Row(row));
            }
        }
        if range.is_some() {
            out.push(Unfiltered::Marker(Marker::at(last, range, None, direction)));
        }
    }
}

/// True if the row lives and every one of `columns` is newer than `micros`.
fn is_settled(row: &Row, columns: &[ColumnId], micros: i64, now_secs: u32) -> bool {
    let mut lives = row.liveness.timestamp_micros > micros && row.liveness.is_live(now_secs);
    for column in columns {
        match row.column(*column) {
            Some(Data::Simple(cell)) if cell.timestamp_micros > micros => lives |= cell.is_live(now_secs),
            _ => return false,
        }
    }
    lives
}

/// A cursor over a partition that was read as a whole.
pub(crate) struct SettledCursor {
    head: Option<PartitionHead>,
    unfiltereds: smallvec::IntoIter<[Unfiltered; 1]>,
}

impl SettledCursor {
    /// True if some row does not live, as far as it was read.
    pub(crate) fn has_dead_rows(&self, now_secs: u32) -> bool {
        let static_row = self.head.iter().filter_map(|head| head.static_row.as_ref());
        let rows = self
            .unfiltereds
            .as_slice()
            .iter()
            .filter_map(|unfiltered| match unfiltered {
                Unfiltered::Row(row) => Some(row),
                Unfiltered::Marker(_) => None,
            });
        static_row.chain(rows).any(|row| !row.is_live(now_secs))
    }
}

impl Cursor for SettledCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.head.take();
        if head.is_none() {
            self.unfiltereds = SmallVec::new().into_iter();
        }
        Ok(head)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if self.head.is_some() {
            return Ok(None);
        }
        Ok(self.unfiltereds.next())
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions plain_rows skip_deleted);
}
