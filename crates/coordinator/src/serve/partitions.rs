//! Pages of partitions: what a cursor reads, as mutations.
//!
//! A page ends behind a row, or behind the end of a deleted range. A range that is open there is cut: the next page opens it again,
//! since a read of a slice returns the part of a deleted range that lies in it.

use ilion_rows::{
    Bound, BoundKind, ColumnData, Cursor, Data, Direction, Marker, Mutation, PartitionHead, PartitionUpdate,
    RangeTombstone, Row, Unfiltered, encode_mutation,
};
use ilion_schema::TableSchema;

use super::Serving;
use crate::answer::{Answer, ReplicaError};
use crate::command::Resume;

/// Number of rows between two checks of the deadline.
const ROWS_BETWEEN: usize = 256;

/// A partition of a page, while it is read.
struct Open {
    head: PartitionHead,
    update: PartitionUpdate,
    direction: Direction,
    /// The range that is deleted from here on: where it begins in the direction of the read.
    range: Option<(Bound, ilion_rows::DeletionTime)>,
}

impl Open {
    fn take_row(&mut self, row: Row) -> Bound {
        let kind = match self.direction {
            Direction::Forward => BoundKind::ExclStart,
            Direction::Reversed => BoundKind::ExclEnd,
        };
        let behind = Bound::new(kind, row.clustering.values().clone());
        self.update.rows.push(row);
        behind
    }

    /// Takes a marker. Returns its position if a page may end there: where a range ends, so that each page makes progress.
    fn take_marker(&mut self, marker: Marker) -> Option<Bound> {
        let ends = self.range.is_some();
        self.close(&marker.bound);
        self.range = marker.start.map(|deletion| (marker.bound.clone(), deletion));
        ends.then_some(marker.bound)
    }

    /// Ends the open range, if there is one, at a position.
    fn close(&mut self, position: &Bound) {
        if let Some((begin, deletion)) = self.range.take()
            && begin.as_start() != position.as_start()
        {
            let (start, end) = match self.direction {
                Direction::Forward => (&begin, position),
                Direction::Reversed => (position, &begin),
            };
            self.update.ranges.push(RangeTombstone {
                start: start.as_start(),
                end: end.as_end(),
                deletion,
            });
        }
    }
}

/// Whether a row is live whatever the time is: a part of it never expires. The clock of the read is the coordinator's.
fn lives_always(row: &Row, table: &TableSchema) -> bool {
    let end_of_time = u32::MAX;
    let is_live = |entry: &ColumnData| match &entry.data {
        Data::Simple(cell) => cell.is_live(end_of_time),
        Data::Complex(complex) => complex.cells.iter().any(|(_, cell)| cell.is_live(end_of_time)),
    };
    let is_known = |entry: &ColumnData| table.column(entry.column).is_some();
    row.liveness.is_live(end_of_time)
        || (!table.has_strict_liveness && row.columns.iter().any(|entry| is_known(entry) && is_live(entry)))
}

impl Serving<'_> {
    /// The next page of a cursor.
    pub(super) fn partitions(
        &self,
        mut cursor: Box<dyn Cursor>,
        is_reversed: bool,
    ) -> Result<Answer, ReplicaError> {
        let direction = Direction::of(is_reversed);
        let (mut out, mut rows, mut bytes) = (Vec::new(), 0_usize, 0);
        let mut resume = None;
        'page: while let Some(head) = cursor.next_partition()? {
            rows += 1;
            bytes += head.key.size_bytes() + head.static_row.as_ref().map_or(0, Row::size_bytes);
            let mut open = Open {
                head,
                update: PartitionUpdate::default(),
                direction,
                range: None,
            };
            let mut wanted = self.rows_per_partition.unwrap_or(u32::MAX);
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                rows += 1;
                if rows.is_multiple_of(ROWS_BETWEEN) {
                    self.check_deadline()?;
                }
                let behind = match unfiltered {
                    Unfiltered::Row(row) => {
                        bytes += row.size_bytes();
                        wanted = wanted.saturating_sub(u32::from(lives_always(&row, self.table)));
                        Some(open.take_row(row))
                    }
                    Unfiltered::Marker(marker) => {
                        bytes += size_of::<RangeTombstone>();
                        open.take_marker(marker)
                    }
                };
                if let Some(behind) = behind.as_ref().filter(|_| wanted == 0) {
                    // The cursor passes over the rest of the partition.
                    open.close(behind);
                    break;
                }
                if let Some(behind) = behind.filter(|_| self.is_full(rows, bytes)) {
                    open.close(&behind);
                    resume = Some(Resume::Within(open.head.key.clone(), behind));
                    self.encode(open, &mut out);
                    break 'page;
                }
            }
            let key = open.head.key.clone();
            self.encode(open, &mut out);
            if self.is_full(rows, bytes) {
                resume = Some(Resume::After(key));
                break;
            }
        }
        let partitions = out.into();
        Ok(Answer::Partitions { partitions, resume })
    }

    fn encode(&self, open: Open, out: &mut Vec<u8>) {
        let Open {
            head,
            mut update,
            direction,
            ..
        } = open;
        if direction == Direction::Reversed {
            update.rows.reverse();
        }
        update.deletion = Some(head.deletion).filter(|deletion| !deletion.is_live());
        update.static_row = head.static_row;
        // Sources may still have cells of dropped columns, which have no name any more. Every reader passes over them.
        let is_known = |entry: &ColumnData| self.table.column(entry.column).is_some();
        for row in update.static_row.iter_mut().chain(&mut update.rows) {
            row.columns.retain(is_known);
        }
        let mutation = Mutation {
            table: self.table.clone(),
            key: head.key,
            update,
        };
        encode_mutation(&mutation, out);
    }
}
