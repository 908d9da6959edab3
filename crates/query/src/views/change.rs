//! The rows of a base partition before and after a mutation, and the updates of views that follow.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, Clustering, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, Direction,
    MergeCursor, Mutation, Partition, PartitionUpdate, Row, Slice, Unfiltered, VecCursor,
};
use ilion_schema::TableSchema;

use super::definition::ViewPlan;
use super::entry::{self, EntryKey, WantedEntry};
use super::steer;
use crate::select::key_components;
use crate::{Error, Store, StoreError};

/// A row of the base table before and after a mutation.
struct Change {
    before: Option<Row>,
    after: Option<Row>,
    /// The deletion in the mutation that removes the row, if the mutation has one.
    deletion: Option<DeletionTime>,
}

/// Appends the updates of views that follow from a mutation of their base table. Requires: the partition is locked.
pub(super) fn view_updates(
    store: &dyn Store,
    plans: &[ViewPlan],
    mutation: &Mutation,
    now_secs: u32,
    out: &mut Vec<Mutation>,
) -> Result<(), Error> {
    let Some(base) = plans.first().map(|plan| &plan.base) else {
        return Ok(());
    };
    let comparator = ClusteringComparator::of(base);
    let slices = touched(&mutation.update, &comparator);
    if slices.is_empty() {
        return Ok(());
    }
    let key = key_components(base, &mutation.key.key)?;
    for change in changes(store, base, mutation, slices, &comparator)? {
        for plan in plans {
            push_update(store, plan, &key, &change, now_secs, out)?;
        }
    }
    Ok(())
}

/// Appends the entry that a view should have for the current row of a base partition.
pub(super) fn push_entry(
    store: &dyn Store,
    plan: &ViewPlan,
    key: &[Bytes],
    row: Row,
    now_secs: u32,
    out: &mut Vec<Mutation>,
) -> Result<(), Error> {
    let change = Change {
        before: None,
        after: Some(row),
        deletion: None,
    };
    push_update(store, plan, key, &change, now_secs, out)
}

fn push_update(
    store: &dyn Store,
    plan: &ViewPlan,
    key: &[Bytes],
    change: &Change,
    now_secs: u32,
    out: &mut Vec<Mutation>,
) -> Result<(), Error> {
    let wanted = |row: &Option<Row>| match row {
        Some(row) => entry::wanted(plan, key, row, now_secs),
        None => Ok(None),
    };
    let (before, after) = (wanted(&change.before)?, wanted(&change.after)?);
    let is_moved = |before: &WantedEntry| after.as_ref().is_none_or(|after| after.place != before.place);
    if let Some(gone) = before.as_ref().filter(|before| is_moved(before))
        && let Some(stored) = stored_entry(store, plan, &gone.place)?
        && let Some(row) = steer::to_nothing(&stored, change.deletion, &plan.view, now_secs)
    {
        out.push(mutation(plan, gone.place.key.clone(), row));
    }
    if let Some(after) = after
        && before.as_ref() != Some(&after)
    {
        let stored = stored_entry(store, plan, &after.place)?;
        if let Some(row) = steer::to_wanted(stored.as_ref(), &after, &plan.view, now_secs) {
            out.push(mutation(plan, after.place.key, row));
        }
    }
    Ok(())
}

fn mutation(plan: &ViewPlan, key: DecoratedKey, row: Row) -> Mutation {
    Mutation {
        table: plan.view.clone(),
        key,
        update: PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    }
}

/// The stored entry of a view, live or dead.
fn stored_entry(store: &dyn Store, plan: &ViewPlan, place: &EntryKey) -> Result<Option<Row>, Error> {
    let slices = vec![Slice::exactly(&place.clustering)];
    let partition = read(store, &plan.view, &place.key, slices)?;
    let rows = partition.into_iter().flat_map(|partition| partition.unfiltereds);
    Ok(rows.into_iter().find_map(|unfiltered| match unfiltered {
        Unfiltered::Row(row) => Some(row),
        Unfiltered::Marker(_) => None,
    }))
}

fn read(
    store: &dyn Store,
    table: &Arc<TableSchema>,
    key: &DecoratedKey,
    slices: Vec<Slice>,
) -> Result<Option<Partition>, Error> {
    // An entry lives as long as its row, so a view needs the liveness even of rows that have newer cells.
    let filter = ClusteringFilter {
        slices,
        liveness: true,
        ..ClusteringFilter::all()
    };
    let mut cursor = store
        .read_partition(table, key, &filter)
        .map_err(StoreError::of_statement)?;
    Partition::read_next(&mut *cursor).map_err(|error| StoreError::Read(error).of_statement())
}

/// The slices that an update touches, in order, not overlapping.
fn touched(update: &PartitionUpdate, comparator: &ClusteringComparator) -> Vec<Slice> {
    if update.deletion.is_some() {
        return vec![Slice::all()];
    }
    let ranges = update.ranges.iter().map(|range| Slice {
        start: range.start.clone(),
        end: range.end.clone(),
    });
    let rows = update.rows.iter().map(|row| Slice::exactly(&row.clustering));
    let mut slices: Vec<Slice> = ranges.chain(rows).collect();
    slices.sort_by(|a, b| comparator.compare_bounds(&a.start, &b.start));
    let mut joined: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        match joined.last_mut() {
            Some(last) if comparator.compare_bounds(&slice.start, &last.end).is_le() => {
                if comparator.compare_bounds(&slice.end, &last.end).is_gt() {
                    last.end = slice.end;
                }
            }
            _ => joined.push(slice),
        }
    }
    joined
}

fn changes(
    store: &dyn Store,
    base: &Arc<TableSchema>,
    mutation: &Mutation,
    slices: Vec<Slice>,
    comparator: &ClusteringComparator,
) -> Result<Vec<Change>, Error> {
    let before = read(store, base, &mutation.key, slices)?;
    let update = Partition::of(mutation.key.clone(), mutation.update.clone(), comparator);
    let sources = before.iter().cloned().chain([update]);
    let sources: Vec<Box<dyn Cursor>> = sources
        .map(|partition| Box::new(VecCursor::new(vec![partition])) as Box<dyn Cursor>)
        .collect();
    let mut merged = MergeCursor::new(sources, base.clone(), Direction::Forward);
    let after = Partition::read_next(&mut merged).map_err(|error| StoreError::Read(error).of_statement())?;
    let mut before = rows_of(before).peekable();
    let mut after = rows_of(after).peekable();
    let mut changes = Vec::new();
    loop {
        let side = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => comparator.compare(&before.clustering, &after.clustering),
        };
        let before = if side.is_le() { before.next() } else { None };
        let after = if side.is_ge() { after.next() } else { None };
        let clustering = before.as_ref().or(after.as_ref()).map(|row| &row.clustering);
        let deletion =
            clustering.and_then(|clustering| deletion_of(&mutation.update, clustering, comparator));
        changes.push(Change {
            before,
            after,
            deletion,
        });
    }
    Ok(changes)
}

fn rows_of(partition: Option<Partition>) -> impl Iterator<Item = Row> {
    let unfiltereds = partition.into_iter().flat_map(|partition| partition.unfiltereds);
    unfiltereds.filter_map(|unfiltered| match unfiltered {
        Unfiltered::Row(row) => Some(row),
        Unfiltered::Marker(_) => None,
    })
}

/// The newest deletion in an update that covers a row.
fn deletion_of(
    update: &PartitionUpdate,
    clustering: &Clustering,
    comparator: &ClusteringComparator,
) -> Option<DeletionTime> {
    let holds = |start: &Bound, end: &Bound| {
        comparator.compare_bound_to_row(start, clustering).is_lt()
            && comparator.compare_bound_to_row(end, clustering).is_gt()
    };
    let ranges = update
        .ranges
        .iter()
        .filter(|range| holds(&range.start, &range.end));
    let row = update.rows.iter().find(|row| row.clustering == *clustering);
    let rows = row.map(|row| row.deletion).filter(|deletion| !deletion.is_live());
    ranges
        .map(|range| range.deletion)
        .chain(rows)
        .chain(update.deletion)
        .reduce(DeletionTime::max)
}
