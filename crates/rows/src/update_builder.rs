//! [`UpdateBuilder`]: turns the rows and markers of a partition that is read into mutations.

use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{
    Bound, ColumnData, DecoratedKey, DeletionTime, Direction, Marker, Mutation, PartitionHead,
    PartitionUpdate, RangeTombstone, Row,
};

/// A partition while it is read, as the mutation that makes what was read of it.
pub struct UpdateBuilder {
    mutation: Mutation,
    direction: Direction,
    /// The range that is deleted from here on: where it begins in the direction of the read.
    range: Option<(Bound, DeletionTime)>,
}

impl UpdateBuilder {
    /// Begins a partition.
    pub fn new(table: Arc<TableSchema>, head: PartitionHead, direction: Direction) -> Self {
        Self {
            mutation: Mutation {
                table,
                key: head.key,
                update: PartitionUpdate {
                    deletion: Some(head.deletion).filter(|deletion| !deletion.is_live()),
                    static_row: head.static_row,
                    ..PartitionUpdate::default()
                },
            },
            direction,
            range: None,
        }
    }

    /// The partition's key.
    pub fn key(&self) -> &DecoratedKey {
        &self.mutation.key
    }

    /// Adds the next row.
    #[inline]
    pub fn add_row(&mut self, row: Row) {
        self.mutation.update.rows.push(row);
    }

    /// Adds the next marker. Returns true if a deleted range ends there.
    pub fn add_marker(&mut self, marker: Marker) -> bool {
        let ends = self.range.is_some();
        self.close(&marker.bound);
        self.range = marker.start.map(|deletion| (marker.bound, deletion));
        ends
    }

    /// Ends the deleted range that is open at this position, if there is one.
    pub fn close(&mut self, position: &Bound) {
        if let Some((begin, deletion)) = self.range.take()
            && begin.as_start() != position.as_start()
        {
            let (start, end) = match self.direction {
                Direction::Forward => (&begin, position),
                Direction::Reversed => (position, &begin),
            };
            self.mutation.update.ranges.push(RangeTombstone {
                start: start.as_start(),
                end: end.as_end(),
                deletion,
            });
        }
    }

    /// The mutation of what was added so far. What is added afterwards belongs to another mutation of the same partition; a deleted range
    /// that is open belongs to that one as a whole.
    #[must_use]
    pub fn split(&mut self) -> Mutation {
        let update = std::mem::take(&mut self.mutation.update);
        let (table, key) = (self.mutation.table.clone(), self.mutation.key.clone());
        finished(Mutation { table, key, update }, self.direction)
    }

    /// The mutation. Requires: no deleted range is open.
    pub fn finish(self) -> Mutation {
        finished(self.mutation, self.direction)
    }
}

/// Puts rows into the order of clusterings, and leaves out cells of dropped columns: these have no name any more, and every reader passes
/// over them.
fn finished(mut mutation: Mutation, direction: Direction) -> Mutation {
    let Mutation { table, update, .. } = &mut mutation;
    if direction == Direction::Reversed {
        update.rows.reverse();
    }
    let is_known = |entry: &ColumnData| table.column(entry.column).is_some();
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        row.columns.retain(is_known);
    }
    mutation
}
