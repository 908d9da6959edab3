//! Plain rows of a scan, used in place.

use bytes::Bytes;
use ilion_env::cost::{self, Count};
use ilion_rows::{AlikeRows, Clustering, Cursor, DecoratedKey, Flow, PlainRow, PlainVisitor};

use super::{Partition, Scan, key_components, spend};
use crate::Error;
use crate::select::plain::{PlainTaker, Within};

/// The number of plain rows that were taken at once.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::select) struct Taken {
    pub rows: u32,
    /// The number of them in the last partition, which is then the current one.
    pub of_partition: u32,
}

/// Passes rows to a taker, together with their partition.
struct Visit<'v, T> {
    taker: &'v mut T,
    within: Within<'v>,
}

impl<T: PlainTaker> PlainVisitor for Visit<'_, T> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        self.taker.row(row, self.within)
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        self.taker.rows(rows, self.within)
    }
}

impl Scan<'_> {
    /// Passes the next rows to the taker, in place, as long as they are plain and the taker accepts them. Requires: if the table has no
    /// clustering, the row of the current partition was already returned.
    pub fn take_plain(&mut self, taker: &mut impl PlainTaker) -> Result<Taken, Error> {
        let is_possible = self.groups.is_none() && self.cursor.is_some() && self.filter.is_empty();
        if !is_possible || !self.luck.is_due() {
            return Ok(Taken::default());
        }
        let taken = match self.plan.table.clustering().next() {
            None => self.take_partitions(taker)?,
            Some(_) => self.take_rows(taker)?,
        };
        self.luck.note(taken.rows > 0);
        spend(taken.rows).map_err(|error| self.refused(error.into()))?;
        Ok(taken)
    }

    /// Takes partitions of one row each. The last one becomes the current partition.
    fn take_partitions(&mut self, taker: &mut impl PlainTaker) -> Result<Taken, Error> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(Taken::default());
        };
        let within = Within::default();
        let run = cursor.plain_partitions(None, &mut Visit { taker, within });
        let Some(run) = run.map_err(|error| self.refused(error.into()))? else {
            return Ok(Taken::default());
        };
        cost::add(Count::Partitions, run.count);
        self.partition = Some(Partition {
            components: key_components(self.plan.table, &run.last.key)?,
            // A copy, since a slice would keep the source's whole buffer alive.
            key: DecoratedKey {
                key: Bytes::copy_from_slice(&run.last.key),
                token: run.last.token,
            },
            static_row: None,
            given: 0,
            last: Some(Clustering::empty()),
            is_resumed: false,
            is_whole: true,
        });
        Ok(Taken {
            rows: u32::try_from(run.count).unwrap_or(u32::MAX),
            of_partition: 1,
        })
    }

    /// Takes rows of the current partition.
    fn take_rows(&mut self, taker: &mut impl PlainTaker) -> Result<Taken, Error> {
        let (Some(cursor), Some(partition)) = (&mut self.cursor, &mut self.partition) else {
            return Ok(Taken::default());
        };
        taker.begin_partition(partition.given);
        let within = Within {
            key: &partition.components,
            static_row: partition.static_row.as_ref(),
        };
        let mut visit = Visit { taker, within };
        let count = cursor.plain_rows(&partition.key, None, &mut visit);
        if let Some(last) = visit.taker.take_last() {
            partition.last = Some(last);
        }
        let count = count.map_err(|error| self.refused(error.into()))?;
        let rows = u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Taken {
            rows,
            of_partition: rows,
        })
    }
}
