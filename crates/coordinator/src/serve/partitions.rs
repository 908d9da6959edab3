//! Pages of partitions: what a cursor reads, as mutations.
//!
//! A page ends behind a row, or behind the end of a deleted range. A range that is open there is cut: the next page opens it again,
//! since a read of a slice returns the part of a deleted range that lies in it.

use ilion_rows::{
    Bound, BoundKind, ColumnData, Cursor, Data, Direction, RangeTombstone, Row, Unfiltered, UpdateBuilder,
    encode_mutation,
};
use ilion_schema::TableSchema;

use super::Serving;
use crate::answer::{Answer, ReplicaError};
use crate::command::Resume;

/// Number of rows between two checks of the deadline.
const ROWS_BETWEEN: usize = 256;

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
        let behind_row = match direction {
            Direction::Forward => BoundKind::ExclStart,
            Direction::Reversed => BoundKind::ExclEnd,
        };
        let (mut out, mut rows, mut bytes) = (Vec::new(), 0_usize, 0);
        let mut resume = None;
        'page: while let Some(head) = cursor.next_partition()? {
            rows += 1;
            bytes += head.key.size_bytes() + head.static_row.as_ref().map_or(0, Row::size_bytes);
            let mut open = UpdateBuilder::new(self.table.clone(), head, direction);
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
                        let behind = Bound::new(behind_row, row.clustering.values().clone());
                        open.add_row(row);
                        Some(behind)
                    }
                    Unfiltered::Marker(marker) => {
                        bytes += size_of::<RangeTombstone>();
                        let bound = marker.bound.clone();
                        // A page may end where a range ends, so that each page makes progress.
                        open.add_marker(marker).then_some(bound)
                    }
                };
                if let Some(behind) = behind.as_ref().filter(|_| wanted == 0) {
                    // The cursor passes over the rest of the partition.
                    open.close(behind);
                    break;
                }
                if let Some(behind) = behind.filter(|_| self.is_full(rows, bytes)) {
                    open.close(&behind);
                    resume = Some(Resume::Within(open.key().clone(), behind));
                    encode_mutation(&open.finish(), &mut out);
                    break 'page;
                }
            }
            let key = open.key().clone();
            encode_mutation(&open.finish(), &mut out);
            if self.is_full(rows, bytes) {
                resume = Some(Resume::After(key));
                break;
            }
        }
        let partitions = out.into();
        Ok(Answer::Partitions { partitions, resume })
    }
}
