//! A scan over plain rows, which go into the page from where they lie.

use bytes::Bytes;
use ilion_env::cost::{self, Count};
use ilion_rows::{Clustering, Cursor, DecoratedKey};

use super::{Partition, Scan, components};
use crate::Error;
use crate::select::plain::{PageEnd, PlainPage, PlainSelection, Within};
use crate::select::rows_out::RowsOut;

/// Plain rows that were taken at once.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::select) struct Taken {
    pub rows: u32,
    /// Those among them that are of the partition that is then the current one.
    pub of_partition: u32,
}

impl Scan<'_> {
    /// Takes the rows that come next into the page from where they lie, if they are plain. Requires: what was to be given of the current
    /// partition, if the table has no clustering, was.
    pub fn take_plain(
        &mut self,
        selection: &PlainSelection,
        end: PageEnd,
        out: &mut RowsOut,
    ) -> Result<Taken, Error> {
        let is_possible = self.groups.is_none() && self.cursor.is_some() && self.filter.is_empty();
        if !is_possible || !self.luck.is_due() {
            return Ok(Taken::default());
        }
        let page = PlainPage {
            selection,
            within: Within::default(),
            out,
            end,
            last: None,
        };
        let taken = match self.plan.table.clustering().next() {
            None => self.take_partitions(page)?,
            Some(_) => self.take_rows(page)?,
        };
        self.luck.note(taken.rows > 0);
        Ok(taken)
    }

    /// Takes partitions of one row. The last of them is then the current one.
    fn take_partitions(&mut self, mut page: PlainPage<'_>) -> Result<Taken, Error> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(Taken::default());
        };
        let run = cursor.plain_partitions(None, &mut page);
        let Some(run) = run.map_err(|error| self.refused(error.into()))? else {
            return Ok(Taken::default());
        };
        cost::add(Count::Partitions, run.count);
        self.partition = Some(Partition {
            components: components(self.plan.table, &run.last.key)?,
            // A copy: a slice would keep memory of the source from being used again.
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
    fn take_rows(&mut self, page: PlainPage<'_>) -> Result<Taken, Error> {
        let (Some(cursor), Some(partition)) = (&mut self.cursor, &mut self.partition) else {
            return Ok(Taken::default());
        };
        let mut end = page.end;
        if let Some(limit) = end.per_partition {
            let left = limit.saturating_sub(partition.given);
            end.rows_max = end.rows_max.min(page.out.row_count.saturating_add(left));
        }
        let within = Within {
            key: &partition.components,
            static_row: partition.static_row.as_ref(),
        };
        let mut page = PlainPage { within, end, ..page };
        let count = cursor.plain_rows(&partition.key, None, &mut page);
        if let Some(last) = page.last {
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
