//! The parts of a read: partitions by key, a range of partitions, or the rest of the partition in which a page ended.

use std::collections::VecDeque;
use std::sync::Arc;

use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringComparator, ClusteringFilter, DecoratedKey, Direction, KeyBound,
    KeyRange, Slice,
};
use ilion_schema::{ColumnId, TableSchema};

use super::paging::{self, PagePosition};
use super::wanted_elements::ElementKeys;
use crate::Error;
use crate::context::Execution;
use crate::guardrails::check_partition_keys;
use crate::restrictions::Restrictions;

/// The planned input of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanPlan<'p> {
    pub table: &'p Arc<TableSchema>,
    pub restrictions: &'p Restrictions,
    /// True for DISTINCT: one row per partition is enough.
    pub is_distinct: bool,
    pub is_reversed: bool,
    /// Static and regular columns that are selected or checked; `None` selects all.
    pub columns: &'p Option<Arc<[ColumnId]>>,
    /// Columns that are read in part.
    pub element_keys: &'p [ElementKeys],
}

/// Partitions that are still to be read.
pub(super) enum Segment {
    Partition(DecoratedKey),
    /// The partition that an earlier page ended in.
    Rest(DecoratedKey, Rest),
    Range(KeyRange),
}

/// The part of a partition that earlier pages have not returned.
pub(super) struct Rest {
    pub slices: Vec<Slice>,
    /// Number of its rows or groups that were returned.
    pub given: u32,
}

/// The segments of a read, or those that earlier pages left of it.
///
/// # Errors
/// The position does not belong to this read.
pub(super) fn segments(
    plan: ScanPlan<'_>,
    clusterings: &ClusteringFilter,
    execution: &Execution<'_>,
    resume: Option<&PagePosition>,
) -> Result<VecDeque<Segment>, Error> {
    // No row can match WHERE.
    if clusterings.slices.is_empty() {
        plan.restrictions.check_key_values(execution)?;
        return Ok(VecDeque::new());
    }
    let comparator = ClusteringComparator::of(plan.table);
    let rest = |key, position: &PagePosition| rest(&comparator, clusterings, key, position);
    if plan.restrictions.is_by_key() {
        let keys = plan.restrictions.partition_keys(execution)?;
        if plan.restrictions.has_key_in() {
            check_partition_keys(keys.len(), &plan.table.name, execution)?;
        }
        return match resume {
            None => Ok(keys.into_iter().map(Segment::Partition).collect()),
            Some(position) => resume_keys(keys, position, rest),
        };
    }
    let Some(range) = plan.restrictions.key_range(execution)? else {
        return Ok(VecDeque::new());
    };
    let Some(position) = resume else {
        return Ok(VecDeque::from([Segment::Range(range)]));
    };
    let partitioner = plan.table.partitioner(execution.store.partitioner());
    let key = DecoratedKey::new(partitioner, position.key.clone());
    if !range.contains(&key) {
        return Err(paging::invalid());
    }
    let after = Segment::Range(KeyRange {
        start: KeyBound::After(key.clone()),
        end: range.end,
    });
    Ok(rest(key, position).into_iter().chain([after]).collect())
}

fn resume_keys(
    keys: Vec<DecoratedKey>,
    position: &PagePosition,
    rest: impl Fn(DecoratedKey, &PagePosition) -> Option<Segment>,
) -> Result<VecDeque<Segment>, Error> {
    let index = keys
        .iter()
        .position(|key| key.key == position.key)
        .ok_or_else(paging::invalid)?;
    let mut keys = keys.into_iter().skip(index);
    let first = keys.next().and_then(|key| rest(key, position));
    Ok(first.into_iter().chain(keys.map(Segment::Partition)).collect())
}

/// The rest of the partition in which a page ended.
fn rest(
    comparator: &ClusteringComparator,
    clusterings: &ClusteringFilter,
    key: DecoratedKey,
    position: &PagePosition,
) -> Option<Segment> {
    let after = position.clustering.as_ref()?;
    let slices = slices_after(comparator, &clusterings.slices, clusterings.reversed, after);
    let given = position.given_of_partition;
    (!slices.is_empty()).then_some(Segment::Rest(key, Rest { slices, given }))
}

/// The slices that are left after row `last`, in the direction of the read.
pub(super) fn slices_after(
    comparator: &ClusteringComparator,
    slices: &[Slice],
    is_reversed: bool,
    last: &Clustering,
) -> Vec<Slice> {
    let (kind, direction) = match is_reversed {
        true => (BoundKind::ExclEnd, Direction::Reversed),
        false => (BoundKind::ExclStart, Direction::Forward),
    };
    let position = Bound::new(kind, last.values().clone());
    ilion_rows::slices_after(slices, &position, direction, comparator)
}
