//! One partition in memory, and how an update changes it.

use std::sync::Arc;

use ilion_rows::{
    Before, Bound, ClusteringComparator, DeletionTime, Direction, PartitionUpdate, RangeList, RangeTombstone,
    Row, Slice,
};
use ilion_schema::TableSchema;
use smallvec::SmallVec;

use crate::arena::Arena;
use crate::observed::Observer;
use crate::packed::Packed;
use crate::row_list::{RowList, Span};
use crate::stored_row::StoredRow;

/// A partition. Parts that few partitions have are in `Rare`, so that a partition of a single row stays small.
///
/// A clone is a snapshot for a reader: it shares all memory, and writers copy shared memory before they change it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    rows: RowList,
    rare: Option<Arc<Rare>>,
}

#[derive(Clone, Debug)]
struct Rare {
    deletion: DeletionTime,
    static_row: Option<Row>,
    ranges: Option<Arc<RangeList>>,
}

impl Default for Rare {
    fn default() -> Self {
        Self {
            deletion: DeletionTime::LIVE,
            static_row: None,
            ranges: None,
        }
    }
}

/// The contents of an update, copied before any lock is taken.
pub(crate) struct Copies {
    static_row: Option<Row>,
    rows: SmallVec<[StoredRow; 1]>,
    ranges: Vec<RangeTombstone>,
}

impl Copies {
    pub(crate) fn of(update: &PartitionUpdate) -> Self {
        Self {
            static_row: update.static_row.as_ref().map(Row::detached),
            rows: update.rows.iter().map(StoredRow::copy_of).collect(),
            ranges: update.ranges.iter().map(RangeTombstone::detached).collect(),
        }
    }
}

/// The observer, if there is one.
type Watcher<'w, 'o> = &'w mut Option<Observer<'o>>;

impl Partition {
    pub(crate) fn deletion(&self) -> DeletionTime {
        self.rare
            .as_ref()
            .map_or(DeletionTime::LIVE, |rare| rare.deletion)
    }

    pub(crate) fn static_row(&self) -> Option<&Row> {
        self.rare.as_ref()?.static_row.as_ref()
    }

    pub(crate) fn ranges(&self) -> Option<&Arc<RangeList>> {
        self.rare.as_ref()?.ranges.as_ref()
    }

    /// The row, if the partition consists of one packed row and has no deletion and no static row; else `None`.
    #[inline]
    pub(crate) fn only_packed(&self) -> Option<&Packed> {
        match self.rows.only()? {
            StoredRow::Packed(packed) if self.rare.is_none() => Some(packed),
            _ => None,
        }
    }

    /// Merges an update, whose rows are in `copies`. Returns by how many bytes the partition grew.
    pub(crate) fn apply(
        &mut self,
        update: &PartitionUpdate,
        copies: Copies,
        table: &TableSchema,
        comparator: &ClusteringComparator,
        arena: &mut Arena,
        mut observer: Option<Observer<'_>>,
    ) -> isize {
        let mut grown = 0;
        if let Some(deletion) = update.deletion {
            grown += self.delete(deletion, &mut observer);
        }
        if let Some(row) = copies.static_row {
            grown += self.merge_static(row, table, &mut observer);
        }
        for (row, original) in copies.rows.into_iter().zip(&update.rows) {
            // The row's only column may have been dropped meanwhile.
            if original.is_empty() {
                continue;
            }
            grown += self.merge_row(row, original, (table, comparator), arena, &mut observer);
        }
        if !copies.ranges.is_empty() {
            grown += self.delete_ranges(copies.ranges, comparator);
        }
        grown
    }

    fn rare(&mut self, grown: &mut isize) -> &mut Rare {
        if self.rare.is_none() {
            *grown += size_of::<Rare>().cast_signed();
        }
        Arc::make_mut(self.rare.get_or_insert_default())
    }

    /// Deletes the partition, and at once drops the data that the deletion covers.
    fn delete(&mut self, deletion: DeletionTime, observer: Watcher<'_, '_>) -> isize {
        let mut grown = 0;
        let rare = self.rare(&mut grown);
        if !deletion.supersedes(&rare.deletion) {
            return grown;
        }
        rare.deletion = deletion;
        if let Some(ranges) = &mut rare.ranges {
            let before = ranges.size_bytes();
            Arc::make_mut(ranges).shadow(deletion);
            grown += ranges.size_bytes().cast_signed() - before.cast_signed();
            if ranges.is_empty() {
                rare.ranges = None;
            }
        }
        if let Some(row) = &mut rare.static_row
            && !shadow_row(row, deletion, &mut grown, observer)
        {
            rare.static_row = None;
        }
        self.rows
            .retain(|row| shadow_stored(row, deletion, &mut grown, observer));
        grown
    }

    fn merge_static(&mut self, mut row: Row, table: &TableSchema, observer: Watcher<'_, '_>) -> isize {
        let mut grown = 0;
        let rare = self.rare(&mut grown);
        row.shadow(rare.deletion);
        match &mut rare.static_row {
            Some(known) => grown += merge_into(known, row, table, observer),
            slot if !row.is_empty() => {
                grown += row.size_bytes().cast_signed();
                show(observer, None, &row);
                *slot = Some(row);
            }
            _ => {}
        }
        grown
    }

    /// Merges a row, which is a copy of `original`.
    fn merge_row(
        &mut self,
        mut row: StoredRow,
        original: &Row,
        (table, comparator): (&TableSchema, &ClusteringComparator),
        arena: &mut Arena,
        observer: Watcher<'_, '_>,
    ) -> isize {
        let deletion = self.deletion();
        if !row.shadow(deletion) {
            return 0;
        }
        let shadowed = (observer.is_some() && !deletion.is_live()).then(|| row.row());
        let shown = shadowed.as_ref().unwrap_or(original);
        match self.rows.find(original.clustering.values(), comparator) {
            Ok(place) => {
                let grown = self.rows.change(place, |known| match observer {
                    Some(observer) => known.merge_shown(row, shown, table, observer),
                    None => known.merge(row, table),
                });
                grown.unwrap_or(0)
            }
            Err(place) => {
                let row = row.moved_to(arena);
                let grown = row.size_bytes().cast_signed();
                show(observer, None, shown);
                self.rows.insert(place, row);
                grown
            }
        }
    }

    fn delete_ranges(&mut self, deleted: Vec<RangeTombstone>, comparator: &ClusteringComparator) -> isize {
        let mut grown = 0;
        let rare = self.rare(&mut grown);
        let deletion = rare.deletion;
        let ranges = Arc::make_mut(rare.ranges.get_or_insert_default());
        for range in deleted {
            if range.deletion.supersedes(&deletion) {
                grown += ranges.insert(range, comparator);
            }
        }
        if ranges.is_empty() {
            rare.ranges = None;
        }
        grown
    }

    /// The rows in `slice`.
    pub(crate) fn span(&self, slice: &Slice, comparator: &ClusteringComparator) -> Span {
        self.rows.span(slice, comparator)
    }

    /// Removes deleted rows from the span, see [`ilion_rows::Cursor::skip_deleted`].
    pub(crate) fn skip_deleted(
        &self,
        span: &mut Span,
        direction: Direction,
        before: Option<&Bound>,
        comparator: &ClusteringComparator,
    ) {
        let limit = before.map(|bound| self.rows.lower_bound(bound, comparator));
        self.rows.skip_deleted(span, direction, limit);
    }

    /// Removes the next row from the span; returns a copy without the data that the partition's deleted ranges cover. Skips rows that
    /// are empty then.
    pub(crate) fn take(
        &self,
        span: &mut Span,
        direction: Direction,
        comparator: &ClusteringComparator,
    ) -> Option<Row> {
        while let Some(row) = self.rows.take(span, direction) {
            let mut row = row.row();
            if let Some(ranges) = self.ranges() {
                row.shadow(ranges.covering(&row.clustering, comparator));
                if row.is_empty() {
                    continue;
                }
            }
            return Some(row);
        }
        None
    }
}

/// Removes the parts of a row that a deletion covers. Returns false if the row is empty afterwards.
fn shadow_row(row: &mut Row, deletion: DeletionTime, grown: &mut isize, observer: Watcher<'_, '_>) -> bool {
    let before = part_of(row, observer);
    *grown += row.shadow(deletion);
    let is_left = !row.is_empty();
    if !is_left {
        *grown -= size_of::<Row>().cast_signed() + row.clustering.size_bytes().cast_signed();
    }
    show(observer, before.as_ref(), row);
    is_left
}

fn merge_into(known: &mut Row, row: Row, table: &TableSchema, observer: Watcher<'_, '_>) -> isize {
    let before = part_of(known, observer);
    let grown = known.merge(row, table);
    show(observer, before.as_ref(), known);
    grown
}

/// As [`shadow_row`], for a stored row.
fn shadow_stored(
    row: &mut StoredRow,
    deletion: DeletionTime,
    grown: &mut isize,
    observer: Watcher<'_, '_>,
) -> bool {
    let before = observer.is_some().then(|| row.row());
    *grown -= row.own_bytes().cast_signed();
    let is_left = row.shadow(deletion);
    if is_left {
        *grown += row.own_bytes().cast_signed();
    }
    if let Some(before) = before {
        let after = match is_left {
            true => row.row(),
            false => Row::empty(before.clustering.clone()),
        };
        show(observer, Some(&before), &after);
    }
    is_left
}

/// The part of a row that the observer needs; `None` without an observer.
fn part_of(row: &Row, observer: Watcher<'_, '_>) -> Option<Row> {
    let observer = observer.as_ref()?;
    Some(observer.observed.part_of(row))
}

#[inline]
fn show(observer: Watcher<'_, '_>, before: Option<&Row>, after: &Row) {
    if let Some(observer) = observer {
        observer.show(before.map(Before::Row), after);
    }
}
