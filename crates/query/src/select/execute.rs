//! Building a page of rows.
//!
//! A page ends after exactly the requested number of rows (or groups), or earlier if its rows take too many bytes. It then gets
//! a paging state, without a check whether more rows exist, so the next page may be empty. It gets none if LIMIT is reached, or
//! if the last of the requested partitions can have no more rows ([`Scan::page_end`]).
//!
//! Compat: clients of Cassandra take a full page without a paging state as the end of LIMIT, and some request pages as long as
//! they are full. `AbstractQueryPager`, `MultiPartitionPager`.

use std::borrow::Cow;

use bytes::Bytes;
use ilion_codec::SHARED_MIN;
use ilion_env::cost::{self, Count};
use ilion_rows::{
    ClusteringFilter, ColumnData, Cursor, Data, PartitionHead, ReadError, ReadPurge, Row, Unfiltered,
};

use super::group_by::{GroupBy, GroupKey};
use super::limits::Limits;
use super::order::Sink;
use super::paging::PagePosition;
use super::plain::{PageEnd, PlainPage};
use super::row_view::key_components;
use super::rows_out::RowsOut;
use super::scan::{Scan, Step, Taken, end_read, read_law, tell_partition};
use super::segments::ScanPlan;
use super::selection::Group;
use super::wanted_elements::wanted_elements;
use super::{Answer, RowView, SelectPlan};
use crate::context::Execution;
use crate::guardrails::check_page;
use crate::read_patience;
use crate::{Error, ResultSet, Wanted};

/// The limits of a page.
struct Page {
    limits: Limits,
    /// Rows per page; `None` means no paging.
    size: Option<u32>,
    /// Bytes of rows after which a page ends; `None` without paging.
    bytes_max: Option<usize>,
    resume: Option<PagePosition>,
}

impl Page {
    /// Rows or groups that LIMIT still allows, over all pages.
    fn rows_left(&self) -> Option<u32> {
        match &self.resume {
            Some(position) => position.rows_left,
            None => self.limits.rows,
        }
    }

    /// True if the page has as many rows or bytes as it may.
    fn is_full(&self, out: &RowsOut) -> bool {
        let is_heavy = |bytes_max| out.cells.len() >= bytes_max;
        self.size == Some(out.row_count) || self.bytes_max.is_some_and(is_heavy)
    }
}

impl SelectPlan {
    pub fn execute(&self, execution: &Execution<'_>) -> Result<ResultSet, Error> {
        let _waits = ilion_env::client_waits();
        let begin = || read_patience::begin(execution, self.restrictions.is_by_key());
        if let Some(nearest) = &self.nearest {
            let _patience = begin();
            return Ok(self.result(self.nearest(nearest, execution)?, None));
        }
        let page = self.page(execution)?;
        if self.is_point() && page.resume.is_none() && page.size != Some(1) {
            let _may_park = ilion_env::parking::may_park();
            return Ok(self.result(self.point(execution)?, None));
        }
        let _patience = begin();
        if self.group_by.is_some() || self.is_aggregate() {
            self.warn_of_aggregation(execution);
        }
        if self.order.is_sorting() && page.size.is_some() && self.is_paged(execution)? {
            return Err(Error::invalid(
                "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either \
                     remove the ORDER BY or the IN and sort client side, or disable paging for this query",
            ));
        }
        let (out, position) = match &self.group_by {
            Some(group_by) => self.groups(group_by, &page, execution)?,
            None if self.is_aggregate() => (self.aggregate(execution)?, None),
            None => self.rows(&page, execution)?,
        };
        Ok(self.result(out, position))
    }

    fn result(&self, out: RowsOut, position: Option<PagePosition>) -> ResultSet {
        cost::add(Count::RowsReturned, u64::from(out.row_count));
        cost::add(Count::BytesReturned, out.cells.len() as u64);
        ResultSet {
            columns: self.columns.clone(),
            metadata_id: None,
            row_count: out.row_count,
            cells: out.cells,
            paging_state: position.map(|position| position.encode()),
        }
    }

    fn page(&self, execution: &Execution<'_>) -> Result<Page, Error> {
        let limits = self.limits.evaluate(execution)?;
        let size = execution.options.page_size.filter(|size| *size > 0);
        if let Some(size) = size.filter(|_| !ilion_schema::is_system_keyspace(&self.table.keyspace)) {
            check_page(size, &self.table.name, execution)?;
        }
        let state = execution.options.paging_state.as_ref();
        let resume = state
            .map(|state| PagePosition::decode(state, &self.table))
            .transpose()?;
        let bytes_max = execution.query_options.page_bytes_max;
        Ok(Page {
            limits,
            size,
            bytes_max: size.and(Some(bytes_max)).filter(|bytes_max| *bytes_max > 0),
            resume,
        })
    }

    /// True if a SELECT with a page size is paged.
    ///
    /// Compat: `SelectStatement.execute`. Rows are not paged if WHERE is never true, as with `c > 2 AND c < 1`.
    fn is_paged(&self, execution: &Execution<'_>) -> Result<bool, Error> {
        let is_never_true = self.restrictions.slices(execution)?.is_empty()
            || self.restrictions.partition_keys(execution)?.is_empty();
        Ok(!is_never_true || self.is_aggregate() || self.group_by.is_some())
    }

    fn warn_of_aggregation(&self, execution: &Execution<'_>) {
        if !self.restrictions.restricts_partition() {
            execution.warn("Aggregation query used without partition key".into());
        } else if self.restrictions.has_key_in() {
            execution.warn("Aggregation query used on multiple partition keys (IN restriction)".into());
        }
    }

    pub(super) fn scan_plan(&self) -> ScanPlan<'_> {
        ScanPlan {
            table: &self.table,
            restrictions: &self.restrictions,
            is_distinct: self.is_distinct,
            is_reversed: self.order.is_reversed,
            columns: &self.all_rows.columns,
            element_keys: &self.element_keys,
        }
    }

    /// True if the SELECT reads at most one row, by its whole primary key, and does not filter, aggregate or order by nearness.
    fn is_point(&self) -> bool {
        self.restrictions.is_one_row()
            && self.nearest.is_none()
            && !self.restrictions.is_filtering()
            && !self.is_aggregate()
            && self.group_by.is_none()
    }

    /// Reads at most one row, by the shortest path.
    fn point(&self, execution: &Execution<'_>) -> Result<RowsOut, Error> {
        let mut out = RowsOut::default();
        let refused = |error: crate::StoreError| error.of_read(execution.options.consistency);
        let Some(key) = self.restrictions.only_key(execution)? else {
            return Ok(out);
        };
        // The plan's filter has no time, so it is for reads at the present.
        let is_of_plan = self.restrictions.wants_all_rows()
            && self.element_keys.is_empty()
            && execution.options.now_secs.is_none();
        let filter = match is_of_plan {
            true => Cow::Borrowed(&self.all_rows),
            false => Cow::Owned(ClusteringFilter {
                elements: wanted_elements(&self.element_keys, execution),
                slices: self.restrictions.slices(execution)?,
                now_secs: Some(execution.ttl_now_secs()),
                ..self.all_rows.clone()
            }),
        };
        tell_partition(&self.table);
        let cursor = execution
            .store
            .read_partition(&self.table, &key, &filter)
            .map_err(refused)?;
        let mut cursor = ReadPurge::new(cursor, self.table.clone(), read_law(&self.table, execution));
        let found = first_row(&mut cursor);
        end_read(&cursor, &self.table, execution);
        if let Some((head, row)) = found.map_err(|error| refused(error.into()))? {
            let view = RowView {
                key: &key_components(&self.table, &key.key)?,
                static_row: head.static_row.as_ref(),
                row: Some(&row),
            };
            out.cells
                .end()
                .reserve(self.columns.len() * 4 + key.key.len() + size_of(&row));
            self.answer(execution)
                .selection
                .write(view, execution, &mut out)?;
        }
        Ok(out)
    }

    /// How many of the rows that are read this page can need. All, if rows are filtered or sorted after they are read.
    fn wanted(&self, page: &Page) -> Wanted {
        if self.restrictions.is_filtering() || self.order.is_sorting() {
            return Wanted::default();
        }
        Wanted {
            rows: page.rows_left().into_iter().chain(page.size).min(),
            rows_per_partition: match self.is_distinct {
                true => Some(1),
                false => page.limits.per_partition,
            },
        }
    }

    /// A page of rows.
    fn rows(&self, page: &Page, execution: &Execution<'_>) -> Result<(RowsOut, Option<PagePosition>), Error> {
        let store = execution.store.wanting(self.wanted(page));
        let execution = &Execution {
            store: store.as_deref().unwrap_or(execution.store),
            ..*execution
        };
        let answer = self.answer(execution);
        let mut scan = Scan::start(self.scan_plan(), execution, page.resume.as_ref())?;
        let mut sink = Sink::new(&self.order);
        let is_sorting = self.order.is_sorting();
        let mut left = page.rows_left();
        let mut page_end = None;
        while is_sorting || left != Some(0) {
            let mut taken = answer.plain_rows(&mut scan, page, left, &mut sink.out)?;
            if taken.rows == 0 {
                let row = match scan.advance()? {
                    Step::End => break,
                    Step::Row(row) => Some(row),
                    Step::StaticRow => None,
                };
                let view = scan.view(row.as_ref());
                answer.selection.write(view, execution, &mut sink.out)?;
                sink.took(|| self.order.keys(view));
                scan.mark(row);
                taken = Taken {
                    rows: 1,
                    of_partition: 1,
                };
            }
            left = left.map(|left| left.saturating_sub(taken.rows));
            let given = scan.count_given(taken.of_partition);
            let is_partition_done = page.limits.per_partition == Some(given);
            if page.is_full(&sink.out) {
                page_end = scan.page_end(is_partition_done, left);
                break;
            }
            if is_partition_done {
                scan.skip_partition();
            }
        }
        let position = page_end.filter(|_| left != Some(0));
        Ok((sink.finish(page.limits.rows), position))
    }

    /// Aggregates all rows into one.
    fn aggregate(&self, execution: &Execution<'_>) -> Result<RowsOut, Error> {
        let answer = self.answer(execution);
        let mut scan = Scan::start(self.scan_plan(), execution, None)?;
        let mut group: Option<Group<'_>> = None;
        loop {
            if let Some(group) = &mut group
                && answer.add_plain_rows(&mut scan, group)?
            {
                continue;
            }
            let row = match scan.advance()? {
                Step::End => break,
                Step::Row(row) => Some(row),
                Step::StaticRow => None,
            };
            let view = scan.view(row.as_ref());
            let running = match &mut group {
                Some(group) => group,
                None => group.insert(answer.selection.start_group(Some(view), execution)?),
            };
            running.add(view, execution)?;
            scan.mark(row);
            scan.count_given(1);
        }
        let group = match group {
            Some(group) => group,
            None => answer.selection.start_group(None, execution)?,
        };
        let mut out = RowsOut::default();
        group.write(execution, &mut out)?;
        Ok(out)
    }

    /// Aggregates rows with the same group key into one.
    fn groups(
        &self,
        group_by: &GroupBy,
        page: &Page,
        execution: &Execution<'_>,
    ) -> Result<(RowsOut, Option<PagePosition>), Error> {
        let answer = self.answer(execution);
        let mut scan = Scan::start(self.scan_plan(), execution, page.resume.as_ref())?;
        let mut sink = Sink::new(&self.order);
        let is_sorting = self.order.is_sorting();
        let mut left = page.rows_left();
        let mut current: Option<OpenGroup<'_>> = None;
        let mut page_end = None;
        loop {
            if let Some(open) = &mut current
                && answer.add_plain_rows(&mut scan, &mut open.group)?
            {
                continue;
            }
            let row = match scan.advance()? {
                Step::End => break,
                Step::Row(row) => Some(row),
                Step::StaticRow => None,
            };
            let view = scan.view(row.as_ref());
            let key = group_by.key(&scan_key(&scan), view, execution)?;
            if !current.as_ref().is_some_and(|open| open.key == key) {
                let given = scan.partition().map_or(0, |partition| partition.given);
                if page.limits.per_partition.is_some_and(|limit| given >= limit) {
                    scan.skip_partition();
                    continue;
                }
                if let Some(open) = current.take() {
                    open.close(&mut sink, execution)?;
                    left = left.map(|left| left.saturating_sub(1));
                    if left == Some(0) && !is_sorting {
                        return Ok((sink.finish(None), None));
                    }
                    if page.size == Some(sink.out.row_count) {
                        return Ok((sink.finish(None), page_end));
                    }
                }
                current = Some(OpenGroup {
                    key,
                    sort_keys: self.order.keys(view),
                    group: answer.selection.start_group(Some(view), execution)?,
                });
                if let Some(open) = &mut current {
                    open.group.add(view, execution)?;
                }
                scan.count_given(1);
            } else if let Some(open) = &mut current {
                open.group.add(view, execution)?;
            }
            scan.mark(row);
            if page.size == Some(sink.out.row_count + 1) {
                // If each partition is one group, the partition is finished when the group ends.
                let left = left.map(|left| left.saturating_sub(1));
                page_end = scan.group_end(group_by.is_by_partition(), page.limits.per_partition, left);
            }
        }
        if let Some(open) = current {
            open.close(&mut sink, execution)?;
            left = left.map(|left| left.saturating_sub(1));
        }
        let is_full = page.size == Some(sink.out.row_count) && left != Some(0);
        Ok((sink.finish(page.limits.rows), page_end.filter(|_| is_full)))
    }
}

impl Answer {
    /// Appends the plain rows that come next; there may be none.
    fn plain_rows(
        &self,
        scan: &mut Scan<'_>,
        page: &Page,
        left: Option<u32>,
        out: &mut RowsOut,
    ) -> Result<Taken, Error> {
        let Some(selection) = &self.plain else {
            return Ok(Taken::default());
        };
        let rows_left = left.map_or(u32::MAX, |left| out.row_count.saturating_add(left));
        let end = PageEnd {
            rows_max: page.size.map_or(rows_left, |size| size.min(rows_left)),
            per_partition: page.limits.per_partition,
            bytes_max: page.bytes_max.unwrap_or(usize::MAX),
        };
        scan.take_plain(&mut PlainPage::new(selection, out, end))
    }

    /// Adds the plain rows that come next to the current group. False if there are none.
    fn add_plain_rows(&self, scan: &mut Scan<'_>, group: &mut Group<'_>) -> Result<bool, Error> {
        let arguments = self.plain_arguments.as_ref();
        let Some(mut taker) = arguments.and_then(|arguments| group.plain(arguments)) else {
            return Ok(false);
        };
        let taken = scan.take_plain(&mut taker);
        taker.finish()?;
        Ok(taken?.rows > 0)
    }
}

/// The first row of the first partition.
fn first_row(cursor: &mut impl Cursor) -> Result<Option<(PartitionHead, Row)>, ReadError> {
    let Some(head) = cursor.next_partition()? else {
        return Ok(None);
    };
    cost::add(Count::Partitions, 1);
    Ok(match cursor.next_unfiltered()? {
        Some(Unfiltered::Row(row)) => Some((head, row)),
        _ => None,
    })
}

/// Approximate size of the values that will be copied.
fn size_of(row: &Row) -> usize {
    let size = |entry: &ColumnData| match &entry.data {
        Data::Simple(cell) if cell.value.len() >= SHARED_MIN => 0,
        Data::Simple(cell) => cell.value.len(),
        Data::Complex(complex) => complex.cells.len() * 16,
    };
    let clustering = row.clustering.values().iter().flatten();
    clustering
        .map(Bytes::len)
        .chain(row.columns.iter().map(size))
        .sum()
}

fn scan_key(scan: &Scan<'_>) -> Bytes {
    scan.partition()
        .map(|partition| partition.key.key.clone())
        .unwrap_or_default()
}

/// A group to which more rows may be added.
struct OpenGroup<'p> {
    key: GroupKey,
    sort_keys: Vec<Option<Bytes>>,
    group: Group<'p>,
}

impl OpenGroup<'_> {
    fn close(self, sink: &mut Sink<'_>, execution: &Execution<'_>) -> Result<(), Error> {
        self.group.write(execution, &mut sink.out)?;
        sink.took(|| self.sort_keys);
        Ok(())
    }
}
