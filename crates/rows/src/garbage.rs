//! [`GarbageSkip`]: removes data from a source that newer data of other sources has deleted.
//!
//! Compat: `CompactionIterator.GarbageSkipper` of Cassandra (`nodetool garbagecollect`). Reads return the same as before: a
//! deletion stays as long as another source has data that it covers.

use std::cmp::Ordering;
use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{
    ClusteringComparator, ComplexColumn, Cursor, Data, DecoratedKey, DeletionTime, Liveness, PartitionHead,
    ReadError, Row, Unfiltered, paths,
};

/// What counts as deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Data that a deletion of a partition, a range or a row covers.
    Row,
    /// Also cells that were deleted or overwritten.
    Cell,
}

/// Opens the same partition of the other sources; `None` if none of them has it.
pub type Shadows = Box<dyn FnMut(&DecoratedKey) -> Result<Option<Box<dyn Cursor>>, ReadError> + Send>;

/// A source without the data that newer data of other sources has deleted. Reads forwards. Partitions may end up empty.
pub struct GarbageSkip<C> {
    source: C,
    shadows: Shadows,
    granularity: Granularity,
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    /// The current partition in the other sources.
    shadow: Option<Shadow>,
}

struct Shadow {
    cursor: Box<dyn Cursor>,
    /// The deletion of the partition.
    partition: DeletionTime,
    static_row: Option<Row>,
    /// The next row or marker of the other sources, not yet compared.
    next: Option<Unfiltered>,
    /// The deletion of the range that is open before `next`.
    open: DeletionTime,
}

impl Shadow {
    fn open(mut cursor: Box<dyn Cursor>) -> Result<Option<Self>, ReadError> {
        let Some(head) = cursor.next_partition()? else {
            return Ok(None);
        };
        let next = cursor.next_unfiltered()?;
        Ok(Some(Self {
            cursor,
            partition: head.deletion,
            static_row: head.static_row,
            next,
            open: DeletionTime::LIVE,
        }))
    }

    /// Moves to the row's place; returns the row of the other sources there, if they have one.
    fn move_to(
        &mut self,
        row: &Unfiltered,
        comparator: &ClusteringComparator,
    ) -> Result<Option<Row>, ReadError> {
        while let Some(next) = &self.next {
            match comparator.compare_unfiltered(next, row) {
                Ordering::Less => {
                    if let Unfiltered::Marker(marker) = next {
                        self.open = marker.start.unwrap_or(DeletionTime::LIVE);
                    }
                    self.next = self.cursor.next_unfiltered()?;
                }
                Ordering::Equal => {
                    let passed = std::mem::replace(&mut self.next, self.cursor.next_unfiltered()?);
                    match passed {
                        Some(Unfiltered::Row(row)) => return Ok(Some(row)),
                        Some(Unfiltered::Marker(marker)) => {
                            self.open = marker.start.unwrap_or(DeletionTime::LIVE);
                        }
                        None => {}
                    }
                }
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }
}

impl<C: Cursor> GarbageSkip<C> {
    /// Filters a source.
    pub fn new(source: C, shadows: Shadows, granularity: Granularity, table: Arc<TableSchema>) -> Self {
        Self {
            source,
            shadows,
            granularity,
            comparator: ClusteringComparator::of(&table),
            table,
            shadow: None,
        }
    }

    /// Removes the parts of the row that `deletion` or the row of the other sources deletes, and, with [`Granularity::Cell`], the
    /// cells that the latter overwrites. Returns false if the row is empty then.
    fn clean(&self, row: &mut Row, deletion: DeletionTime, other: Option<&Row>) -> bool {
        row.shadow(other.map_or(deletion, |other| deletion.max(other.deletion)));
        if let Some(other) = other
            && self.granularity == Granularity::Cell
            && !self.table.is_counter()
        {
            drop_overwritten(row, other, &self.table);
        }
        !row.is_empty()
    }
}

/// Removes the cells that cells of the other row supersede.
fn drop_overwritten(row: &mut Row, other: &Row, table: &TableSchema) {
    if other.liveness.supersedes(&row.liveness) {
        row.liveness = Liveness::NONE;
    }
    row.columns
        .retain_mut(|entry| match (&mut entry.data, other.column(entry.column)) {
            (Data::Simple(cell), Some(Data::Simple(newer))) => !newer.supersedes(cell),
            (Data::Complex(complex), Some(Data::Complex(newer))) => {
                let ty = table.column(entry.column).map(|column| &column.ty);
                drop_overwritten_elements(complex, newer, |a, b| match ty {
                    Some(ty) => paths::compare_paths(ty, a, b),
                    None => a.cmp(b),
                })
            }
            _ => true,
        });
}

/// Removes the elements that elements of the other column supersede. Returns false if the column is empty then.
fn drop_overwritten_elements(
    complex: &mut ComplexColumn,
    newer: &ComplexColumn,
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
) -> bool {
    if !complex.shadow(newer.deletion) {
        return false;
    }
    complex.cells.retain(|(path, cell)| {
        let found = newer.cells.binary_search_by(|(known, _)| compare(known, path));
        found.map_or(true, |index| !newer.cells[index].1.supersedes(cell))
    });
    !complex.deletion.is_live() || !complex.cells.is_empty()
}

impl<C: Cursor> Cursor for GarbageSkip<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(mut head) = self.source.next_partition()? else {
            return Ok(None);
        };
        self.shadow = match (self.shadows)(&head.key)? {
            Some(cursor) => Shadow::open(cursor)?,
            None => None,
        };
        if let Some(shadow) = &self.shadow {
            if !head.deletion.supersedes(&shadow.partition) {
                head.deletion = DeletionTime::LIVE;
            }
            if let Some(row) = &mut head.static_row
                && !self.clean(row, shadow.partition, shadow.static_row.as_ref())
            {
                head.static_row = None;
            }
        }
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while let Some(mut unfiltered) = self.source.next_unfiltered()? {
            let Some(shadow) = &mut self.shadow else {
                return Ok(Some(unfiltered));
            };
            let other = shadow.move_to(&unfiltered, &self.comparator)?;
            let deletion = shadow.partition.max(shadow.open);
            let is_left = match &mut unfiltered {
                // Markers stay: a compaction purges deleted ranges when they are old.
                Unfiltered::Marker(_) => true,
                Unfiltered::Row(row) => self.clean(row, deletion, other.as_ref()),
            };
            if is_left {
                return Ok(Some(unfiltered));
            }
        }
        Ok(None)
    }

    crate::cursor_methods!(forward source: lower_bound);

    crate::cursor_methods!(without: peek plain_partitions plain_rows skip_deleted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::print_cursor;
    use crate::random::{Dice, random_mutation, random_table};
    use crate::{Direction, MergeCursor, Mutation, Partition, VecCursor};

    fn cursor_of(mutations: &[Mutation], table: &Arc<TableSchema>) -> Box<dyn Cursor> {
        let comparator = ClusteringComparator::of(table);
        let sources = mutations.iter().map(|mutation| {
            let partition = Partition::of(mutation.key.clone(), mutation.update.clone(), &comparator);
            Box::new(VecCursor::new(vec![partition])) as Box<dyn Cursor>
        });
        Box::new(MergeCursor::new(
            sources.collect(),
            table.clone(),
            Direction::Forward,
        ))
    }

    /// What is left out changes no answer, and nothing that is left out is left in by the finer granularity.
    #[test]
    fn nothing_that_a_read_returns_changes() {
        let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().unwrap());
        let mut skipped = [0, 0];
        for round in 0..600 {
            let mut dice = Dice::new(seed + round);
            let table = random_table(&mut dice);
            let mutations = |dice: &mut Dice, count| {
                let mutations = (0..count).map(|_| random_mutation(&table, dice));
                mutations.collect::<Vec<_>>()
            };
            let (own, others) = (mutations(&mut dice, 3), mutations(&mut dice, 3));
            // Two by two: it matters for counters whether they are added up before they are deleted.
            let merged = |own: Box<dyn Cursor>| {
                let sources = vec![own, cursor_of(&others, &table)];
                let mut merged = MergeCursor::new(sources, table.clone(), Direction::Forward);
                print_cursor(&mut merged, &table).unwrap()
            };
            let expected = merged(cursor_of(&own, &table));
            for (index, granularity) in [Granularity::Row, Granularity::Cell].into_iter().enumerate() {
                let clean = |own: &[Mutation]| {
                    let (others, table) = (others.clone(), table.clone());
                    let shadows: Shadows = Box::new({
                        let table = table.clone();
                        move |key| {
                            let same: Vec<Mutation> =
                                others.iter().filter(|other| other.key == *key).cloned().collect();
                            Ok((!same.is_empty()).then(|| cursor_of(&same, &table)))
                        }
                    });
                    GarbageSkip::new(cursor_of(own, &table), shadows, granularity, table)
                };
                let found = merged(Box::new(clean(&own)));
                assert_eq!(found, expected, "SEED={} {granularity:?}", seed + round);
                let before = print_cursor(&mut cursor_of(&own, &table), &table).unwrap();
                let after = print_cursor(&mut clean(&own), &table).unwrap();
                skipped[index] += before.len() - after.len();
            }
        }
        assert!(skipped[0] > 1000 && skipped[1] > skipped[0], "{skipped:?}");
    }
}
