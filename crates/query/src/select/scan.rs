//! Reading: the rows that a SELECT selects, partition by partition, filtered and without dead data.
//!
//! A partition with static values and no rows gives one row, unless the statement restricts clustering columns.
//! Compat: `SelectStatement.processPartition`, `RowFilter.CQLFilter` of Cassandra 5.0.

mod plain_rows;

use std::collections::VecDeque;

use ilion_env::cost::{self, Count};
use ilion_env::patience::{self, Ended};
use ilion_env::trace;
use ilion_rows::{
    Clustering, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, KeyRange, PartitionHead,
    PlainLuck, ReadError, ReadLaw, ReadPurge, Row, Unfiltered,
};
use ilion_schema::TableSchema;

use super::RowView;
use super::candidates::Groups;
use super::paging::{self, PagePosition};
use super::row_view::{KeyComponents, key_components};
use super::segments::{Rest, ScanPlan, Segment, segments};
use super::wanted_elements::wanted_elements;
use crate::context::Execution;
use crate::restrictions::{RowFilter, SearchPlan};
use crate::{Error, StoreError};

pub(super) use plain_rows::Taken;

/// Units of work that a group of candidates costs, even if none of its rows exists. See [`spend`].
const GROUP_UNITS: u32 = 16;

/// The current partition.
pub(super) struct Partition {
    pub key: DecoratedKey,
    pub components: KeyComponents,
    pub static_row: Option<Row>,
    /// Number of rows or groups returned so far. The caller counts groups.
    pub given: u32,
    /// The clustering of the last row that was returned.
    last: Option<Clustering>,
    is_resumed: bool,
    /// True if all rows that WHERE selects are read, not only some that an index found.
    is_whole: bool,
}

/// The next row of a scan.
pub(super) enum Step {
    Row(Row),
    /// The partition has only static values.
    StaticRow,
    End,
}

/// A read in progress.
pub(super) struct Scan<'e> {
    plan: ScanPlan<'e>,
    execution: &'e Execution<'e>,
    filter: RowFilter,
    clusterings: ClusteringFilter,
    segments: VecDeque<Segment>,
    /// The candidates of an index search, if there is one.
    groups: Option<Groups>,
    is_whole: bool,
    cursor: Option<ReadPurge<Box<dyn Cursor>>>,
    partition: Option<Partition>,
    /// Number of rows or groups of the cursor's partition that earlier pages and groups of candidates returned; `None` if it is new.
    given_before: Option<u32>,
    /// The partition of the previous group, and how many rows of it were returned.
    passed: Option<(DecoratedKey, u32)>,
    luck: PlainLuck,
}

impl<'e> Scan<'e> {
    /// Starts a read, or continues one where an earlier page ended.
    pub fn start(
        plan: ScanPlan<'e>,
        execution: &'e Execution<'e>,
        resume: Option<&PagePosition>,
    ) -> Result<Self, Error> {
        let clusterings = ClusteringFilter {
            slices: plan.restrictions.slices(execution)?,
            reversed: plan.is_reversed,
            columns: plan.columns.clone(),
            elements: wanted_elements(plan.element_keys, execution),
            liveness: false,
            now_secs: Some(execution.ttl_now_secs()),
        };
        let search = match clusterings.slices.is_empty() {
            true => None,
            false => plan.restrictions.search_plan(plan.table, execution)?,
        };
        let mut scan = Self {
            plan,
            execution,
            filter: plan.restrictions.row_filter(execution)?,
            segments: VecDeque::new(),
            groups: None,
            is_whole: true,
            clusterings,
            cursor: None,
            partition: None,
            given_before: None,
            passed: None,
            luck: PlainLuck::default(),
        };
        match search {
            None => scan.segments = segments(plan, &scan.clusterings, execution, resume)?,
            Some(search) => scan.groups = scan.search(&search, resume)?,
        }
        Ok(scan)
    }

    /// Starts the index search; `None` if no partition can match.
    fn search(
        &mut self,
        search: &SearchPlan,
        resume: Option<&PagePosition>,
    ) -> Result<Option<Groups>, Error> {
        let restrictions = self.plan.restrictions;
        let range = match restrictions.is_by_key() {
            true => restrictions
                .only_key(self.execution)?
                .map(|key| KeyRange::exactly(&key)),
            false => restrictions.key_range(self.execution)?,
        };
        let Some(range) = range else {
            return Ok(None);
        };
        let mut start = None;
        if let Some(position) = resume {
            let partitioner = self.plan.table.partitioner(self.execution.store.partitioner());
            let key = DecoratedKey::new(partitioner, position.key.clone());
            if !range.contains(&key) {
                return Err(paging::invalid());
            }
            self.passed = Some((key.clone(), position.given_of_partition));
            start = Some((position, key));
        }
        let groups = Groups::begin(
            search.begin(self.plan.table, &range, self.execution)?,
            ClusteringComparator::of(self.plan.table),
            self.clusterings.slices.clone(),
            range,
            start,
            self.execution.options.now_secs.is_none(),
        );
        groups.map(Some).map_err(|error| self.refused(error.into()))
    }

    pub fn partition(&self) -> Option<&Partition> {
        self.partition.as_ref()
    }

    /// Adds to the number of rows or groups that were returned of the partition; returns the sum.
    pub fn count_given(&mut self, more: u32) -> u32 {
        let Some(partition) = &mut self.partition else {
            return 0;
        };
        partition.given = partition.given.saturating_add(more);
        partition.given
    }

    /// Moves to the next partition.
    pub fn skip_partition(&mut self) {
        if let (Some(groups), Some(partition)) = (&mut self.groups, &self.partition) {
            groups.skip(&partition.key);
        }
        self.leave_partition();
    }

    fn leave_partition(&mut self) {
        let left = self.partition.take();
        if self.groups.is_some()
            && let Some(partition) = left
        {
            self.passed = Some((partition.key, partition.given));
        }
    }

    /// A row of the current partition in the form of CQL.
    pub fn view<'v>(&'v self, row: Option<&'v Row>) -> RowView<'v> {
        let partition = self.partition.as_ref();
        RowView {
            key: partition.map_or(&[], |partition| &partition.components),
            static_row: partition.and_then(|partition| partition.static_row.as_ref()),
            row,
        }
    }

    /// Records the last row that was returned, at which a page may end.
    pub fn mark(&mut self, row: Option<Row>) {
        if let Some(partition) = &mut self.partition {
            partition.last = row.map(|row| row.clustering);
        }
    }

    /// The position at which the page ends; `None` if there can be no more rows. If `is_partition_done`, the next page skips the rest of
    /// the partition.
    pub fn page_end(&self, is_partition_done: bool, rows_left: Option<u32>) -> Option<PagePosition> {
        let partition = self.partition.as_ref()?;
        let is_done = is_partition_done || self.plan.is_distinct;
        if self.is_on_last_key() && (is_done || self.has_one_row(partition)) {
            return None;
        }
        Some(PagePosition {
            key: partition.key.key.clone(),
            clustering: partition.last.clone().filter(|_| !is_done),
            given_of_partition: partition.given,
            rows_left,
        })
    }

    /// Like [`Self::page_end`], but after a row of a group that may get more rows. Compat: a partition that is one group
    /// still may have more rows.
    pub fn group_end(
        &self,
        is_by_partition: bool,
        per_partition: Option<u32>,
        rows_left: Option<u32>,
    ) -> Option<PagePosition> {
        let given = self.partition.as_ref().map(|partition| partition.given);
        let mut position = self.page_end(given.is_some() && given == per_partition, rows_left)?;
        if is_by_partition {
            position.clustering = None;
        }
        Some(position)
    }

    /// True if the statement gives its partition keys, and the current partition is the last of them.
    fn is_on_last_key(&self) -> bool {
        self.plan.restrictions.is_by_key() && self.segments.is_empty()
    }

    /// True if the partition has at most one row, which was returned.
    fn has_one_row(&self, partition: &Partition) -> bool {
        partition.last.is_none() || self.plan.table.clustering().len() == 0
    }

    /// The next row that passes the filter.
    pub fn advance(&mut self) -> Result<Step, Error> {
        loop {
            if self.partition.is_none() && !self.next_partition()? {
                return Ok(Step::End);
            }
            if let Some(step) = self.next_of_partition()? {
                return Ok(step);
            }
            self.leave_partition();
        }
    }

    fn next_of_partition(&mut self) -> Result<Option<Step>, Error> {
        let Some(partition) = &self.partition else {
            return Ok(None);
        };
        let has_given = partition.given > 0 || partition.last.is_some();
        if self.plan.is_distinct && has_given {
            return Ok(None);
        }
        while let Some(unfiltered) = self.next_unfiltered()? {
            let Unfiltered::Row(row) = unfiltered else {
                continue;
            };
            if let Some(groups) = &mut self.groups {
                groups.met_row(&row);
            }
            if self.filter.keeps_row(&self.view(Some(&row))) {
                return Ok(Some(Step::Row(row)));
            }
        }
        if let Some(groups) = &mut self.groups {
            groups.met_end();
        }
        let is_static_alone = self.partition.as_ref().is_some_and(|partition| {
            !has_given && partition.is_whole && !partition.is_resumed && partition.static_row.is_some()
        });
        Ok((is_static_alone && self.gives_static_alone()).then_some(Step::StaticRow))
    }

    fn gives_static_alone(&self) -> bool {
        let restrictions = self.plan.restrictions;
        !restrictions.restricts_clustering() && self.filter.keeps_row(&self.view(None))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, Error> {
        match &mut self.cursor {
            None => Ok(None),
            Some(cursor) => cursor
                .next_unfiltered()
                .map_err(|error| self.refused(error.into())),
        }
    }

    /// Moves to the next partition that may have rows; false at the end.
    fn next_partition(&mut self) -> Result<bool, Error> {
        loop {
            let Some(head) = self.next_head()? else {
                return Ok(false);
            };
            let given_before = self.given_before;
            self.partition = Some(Partition {
                components: key_components(self.plan.table, &head.key.key)?,
                key: head.key,
                static_row: head.static_row,
                given: given_before.unwrap_or(0),
                last: None,
                is_resumed: given_before.is_some(),
                is_whole: self.is_whole,
            });
            if self.filter.keeps_partition(&self.view(None)) {
                return Ok(true);
            }
            self.skip_partition();
        }
    }

    fn next_head(&mut self) -> Result<Option<PartitionHead>, Error> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                if let Some(head) = cursor
                    .next_partition()
                    .map_err(|error| self.refused(error.into()))?
                {
                    cost::add(Count::Partitions, 1);
                    if let Some(groups) = &mut self.groups {
                        groups.met_partition(head.static_row.as_ref());
                    }
                    return Ok(Some(head));
                }
                self.close();
                if let Some(groups) = &mut self.groups {
                    groups.met_no_more_partitions();
                }
            }
            if self.groups.is_some() {
                if !self.open_group()? {
                    return Ok(None);
                }
                continue;
            }
            let Some(segment) = self.segments.pop_front() else {
                return Ok(None);
            };
            self.cursor = Some(self.open(segment)?);
        }
    }

    /// Opens the rows of the next group; false at the end.
    fn open_group(&mut self) -> Result<bool, Error> {
        spend(GROUP_UNITS).map_err(|error| self.refused(error.into()))?;
        let next = self.groups.as_mut().map(Groups::next).transpose();
        let Some(group) = next.map_err(|error| self.refused(error.into()))?.flatten() else {
            return Ok(false);
        };
        let passed = self.passed.as_ref().filter(|(key, _)| *key == group.key);
        let given = passed.map(|(_, given)| *given);
        let rest = Rest {
            slices: group.slices,
            given: given.unwrap_or(0),
        };
        self.cursor = Some(self.open(Segment::Rest(group.key, rest))?);
        self.given_before = given;
        self.is_whole = group.is_whole;
        Ok(true)
    }

    fn open(&mut self, segment: Segment) -> Result<ReadPurge<Box<dyn Cursor>>, Error> {
        let (store, table) = (self.execution.store, self.plan.table);
        self.given_before = None;
        if !matches!(segment, Segment::Range(_)) {
            tell_partition(table);
        }
        let opened = match segment {
            Segment::Range(range) => store.read_range(table, &range, &self.clusterings),
            Segment::Partition(key) => store.read_partition(table, &key, &self.clusterings),
            Segment::Rest(key, Rest { slices, given }) => {
                self.given_before = Some(given);
                let rest = ClusteringFilter {
                    slices,
                    columns: self.clusterings.columns.clone(),
                    elements: self.clusterings.elements.clone(),
                    ..self.clusterings
                };
                store.read_partition(table, &key, &rest)
            }
        };
        let cursor = opened.map_err(|error| self.refused(error))?;
        Ok(ReadPurge::new(
            cursor,
            table.clone(),
            read_law(table, self.execution),
        ))
    }

    /// Closes the cursor.
    fn close(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            end_read(&cursor, self.plan.table, self.execution);
        }
    }

    fn refused(&self, error: StoreError) -> Error {
        error.of_read(self.execution.options.consistency)
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Adds a line about the read of a partition to the trace.
pub(super) fn tell_partition(table: &TableSchema) {
    trace::note(|| format!("Executing single-partition query on {}", table.name));
}

/// Adds the counts of a finished read to the cost of the request. Warns the client of too many tombstones.
pub(super) fn end_read<C: Cursor>(cursor: &ReadPurge<C>, table: &TableSchema, execution: &Execution<'_>) {
    let counts = cursor.counts();
    cost::add(Count::Rows, counts.live_rows);
    cost::add(Count::Tombstones, counts.tombstones);
    trace::note(|| {
        let (rows, tombstones) = (counts.live_rows, counts.tombstones);
        format!("Read {rows} live rows and {tombstones} tombstone cells")
    });
    if cursor.is_worth_warning() {
        execution.warn(format!(
            "Read {} live rows and {} tombstone cells for query of {}.{} (see tombstone_warn_threshold)",
            counts.live_rows, counts.tombstones, table.keyspace, table.name
        ));
    }
}

/// The rules by which data is live or dead, at the time of the execution.
pub(super) fn read_law(table: &TableSchema, execution: &Execution<'_>) -> ReadLaw {
    let now_secs = execution.ttl_now_secs();
    ReadLaw {
        now_secs,
        gc_before_secs: now_secs.saturating_sub(table.options.gc_grace_secs),
        limits: execution.query_options.tombstone_limits,
        spend,
    }
}

/// Counts units of work, so that the clock is read only now and then. Fails once the read's deadline has passed.
pub(super) fn spend(units: u32) -> Result<(), ReadError> {
    patience::spend(units).map_err(|Ended(reason)| ReadError::Aborted(reason))
}
