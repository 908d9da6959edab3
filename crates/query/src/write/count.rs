//! Increments to counter contexts: what this node has counted is read, and its new count is written.
//!
//! Compat: `CounterMutation` of Cassandra 5.0. A cell that is written holds only this node's shard; reading sums it with
//! those of others.

use std::sync::Arc;

use ilion_rows::{Cell, Data, Mutation, Row, counter};
use ilion_schema::TableSchema;

use super::current::Current;
use super::mutate::{self, Rows};
use super::{BatchMember, apply};
use crate::batch::merge_partitions;
use crate::context::Execution;
use crate::{Error, Executed, Outcome, WriteType};

/// Carries out changes of counters.
pub(super) fn execute(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<Executed, Error> {
    let Some(first) = members.first() else {
        return Ok(Executed::of(Outcome::Void));
    };
    let mut partitions = Vec::new();
    let mut mutations = Vec::new();
    for member in members {
        partitions.extend(mutate::partitions(member.plan, &member.execution)?);
        member
            .plan
            .mutations(&member.execution, timestamp_micros, &mut mutations)?;
    }
    let guard = first.execution.store.lock_partitions(&partitions);
    let mut mutations = merge_partitions(mutations);
    for mutation in &mut mutations {
        count(mutation, &first.execution)?;
    }
    let executed = apply(&first.execution, mutations, &partitions, WriteType::Counter);
    drop(guard);
    executed
}

/// Turns the increments of a mutation into this node's counts.
fn count(mutation: &mut Mutation, execution: &Execution<'_>) -> Result<(), Error> {
    let clusterings = mutation.update.rows.iter().map(|row| row.clustering.clone());
    let rows = Rows::Each(clusterings.collect());
    let table: &Arc<TableSchema> = &mutation.table;
    let current = Current::read(table, &mutation.key, &rows, execution)?;
    for row in &mut mutation.update.rows {
        let stored = current.row(&row.clustering);
        count_row(row, stored, execution);
    }
    if let Some(row) = &mut mutation.update.static_row {
        count_row(row, current.static_row(), execution);
    }
    Ok(())
}

fn count_row(row: &mut Row, stored: Option<&Row>, execution: &Execution<'_>) {
    for column in &mut row.columns {
        let Data::Simple(cell) = &mut column.data else {
            continue;
        };
        let stored = match stored.and_then(|stored| stored.column(column.column)) {
            Some(Data::Simple(stored)) => Some(stored),
            _ => None,
        };
        count_cell(cell, stored, execution);
    }
}

fn count_cell(cell: &mut Cell, stored: Option<&Cell>, execution: &Execution<'_>) {
    // A tombstone has no increment.
    let Some(delta) = counter::update_delta(&cell.value) else {
        return;
    };
    let id = execution.store.counter_id();
    let own = stored.and_then(|stored| counter::global_of(&stored.value, &id));
    let (clock, count) = own.unwrap_or_default();
    cell.value = counter::global(id, clock.wrapping_add(1), count.wrapping_add(delta));
}
