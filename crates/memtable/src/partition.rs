//! One partition in memory, and how an update changes it.

use std::sync::Arc;

use ilion_rows::{
    ClusteringComparator, DeletionTime, Detacher, Direction, PartitionUpdate, RangeList, Row, RowChange,
    Slice,
};
use ilion_schema::TableSchema;

use crate::row_list::{RowList, Span};

/// A partition. What few partitions have is kept apart, so that one of a single row stays small.
///
/// A clone is a snapshot for a reader: it shares everything, and writers copy what is shared before they change it.
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

/// Tells an observer how a row changed: before (nothing if it was not there) and after.
pub(crate) type Observer<'o> = Option<&'o mut dyn FnMut(RowChange<'_>)>;

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

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Takes in an update whose bytes come from `detacher`. Returns by how many bytes the partition grew.
    pub(crate) fn apply(
        &mut self,
        update: &PartitionUpdate,
        detacher: &mut Detacher,
        table: &TableSchema,
        comparator: &ClusteringComparator,
        mut observer: Observer<'_>,
    ) -> isize {
        let mut grown = 0;
        if let Some(deletion) = update.deletion {
            grown += self.delete(deletion, &mut observer);
        }
        // The detacher gives its bytes in the order static row, rows, ranges.
        if let Some(row) = &update.static_row {
            let row = detacher.row(row);
            grown += self.merge_static(row, table, &mut observer);
        }
        for row in &update.rows {
            let row = detacher.row(row);
            grown += self.merge_row(row, table, comparator, &mut observer);
        }
        if !update.ranges.is_empty() {
            grown += self.delete_ranges(update, detacher, comparator);
        }
        grown
    }

    fn rare(&mut self, grown: &mut isize) -> &mut Rare {
        if self.rare.is_none() {
            *grown += size_of::<Rare>().cast_signed();
        }
        Arc::make_mut(self.rare.get_or_insert_default())
    }

    /// Deletes the partition: what is older goes at once.
    fn delete(&mut self, deletion: DeletionTime, observer: &mut Observer<'_>) -> isize {
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
            .retain(|row| shadow_row(row, deletion, &mut grown, observer));
        grown
    }

    fn merge_static(&mut self, mut row: Row, table: &TableSchema, observer: &mut Observer<'_>) -> isize {
        let mut grown = 0;
        let rare = self.rare(&mut grown);
        row.shadow(rare.deletion);
        match &mut rare.static_row {
            Some(known) => grown += merge_into(known, row, table, observer),
            slot if !row.is_empty() => {
                grown += row.size_bytes().cast_signed();
                report(observer, None, &row);
                *slot = Some(row);
            }
            _ => {}
        }
        grown
    }

    fn merge_row(
        &mut self,
        mut row: Row,
        table: &TableSchema,
        comparator: &ClusteringComparator,
        observer: &mut Observer<'_>,
    ) -> isize {
        row.shadow(self.deletion());
        if row.is_empty() {
            return 0;
        }
        match self.rows.find(&row.clustering, comparator) {
            Ok(place) => match self.rows.at_mut(place) {
                Some(known) => merge_into(known, row, table, observer),
                None => 0,
            },
            Err(place) => {
                let grown = row.size_bytes().cast_signed();
                report(observer, None, &row);
                self.rows.insert(place, row);
                grown
            }
        }
    }

    fn delete_ranges(
        &mut self,
        update: &PartitionUpdate,
        detacher: &mut Detacher,
        comparator: &ClusteringComparator,
    ) -> isize {
        let mut grown = 0;
        let rare = self.rare(&mut grown);
        let deletion = rare.deletion;
        let ranges = Arc::make_mut(rare.ranges.get_or_insert_default());
        for range in &update.ranges {
            let range = detacher.range(range);
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

    /// Takes the next row off the span: a copy without what the partition's own deleted ranges cover.
    pub(crate) fn take(
        &self,
        span: &mut Span,
        direction: Direction,
        comparator: &ClusteringComparator,
    ) -> Option<Row> {
        while let Some(row) = self.rows.take(span, direction) {
            let mut row = row.clone();
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

/// False if nothing of the row is left.
fn shadow_row(row: &mut Row, deletion: DeletionTime, grown: &mut isize, observer: &mut Observer<'_>) -> bool {
    let before = observer.is_some().then(|| row.clone());
    *grown += row.shadow(deletion);
    let is_left = !row.is_empty();
    if !is_left {
        *grown -= size_of::<Row>().cast_signed() + row.clustering.size_bytes().cast_signed();
    }
    report(observer, before.as_ref(), row);
    is_left
}

fn merge_into(known: &mut Row, row: Row, table: &TableSchema, observer: &mut Observer<'_>) -> isize {
    if observer.is_none() {
        return known.merge(row, table);
    }
    let before = known.clone();
    let grown = known.merge(row, table);
    report(observer, Some(&before), known);
    grown
}

#[inline]
fn report(observer: &mut Observer<'_>, before: Option<&Row>, after: &Row) {
    if let Some(observer) = observer {
        observer(RowChange { before, after });
    }
}
