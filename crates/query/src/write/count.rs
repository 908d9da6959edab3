//! Counter updates: reads what this node has counted, and writes the new count.
//!
//! Compat: `CounterMutation` of Cassandra 5.0. A written cell has this node's shard only; reads add up all shards. If the
//! counter cache has all counts of a mutation, nothing is read.

use ilion_engine::{CounterCache, CounterKey, OwnCount, deletes_counters};
use ilion_rows::counter::CounterId;
use ilion_rows::{Cell, Clustering, Data, DecoratedKey, Mutation, Row, counter};
use ilion_schema::{ColumnId, TableSchema};

use super::apply::apply;
use super::current::{Current, Rows};
use super::modify::BatchMember;
use super::mutate;
use crate::context::Execution;
use crate::partitions::{merge_partitions, partition_count};
use crate::{BatchKind, Error, Executed, Outcome, WriteType};

/// Executes counter updates.
pub(super) fn execute(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<Executed, Error> {
    execute_merged(members, timestamp_micros, |_, _| ())
}

/// Executes a batch of counter updates and records its number of partitions.
pub(super) fn execute_batch(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<Executed, Error> {
    execute_merged(members, timestamp_micros, |execution, mutations| {
        let sizes = execution.query_options.batch_sizes.of(BatchKind::Counter);
        sizes.record(partition_count(mutations) as u64);
    })
}

/// Executes counter updates. Calls `tell` with the merged mutations, in which increments are not yet replaced by counts.
fn execute_merged(
    members: &[BatchMember<'_>],
    timestamp_micros: i64,
    tell: impl FnOnce(&Execution<'_>, &[Mutation]),
) -> Result<Executed, Error> {
    let _waits = ilion_env::client_waits();
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
    let store = first.execution.store;
    let guard = store.lock_partitions(&partitions);
    let mut mutations = merge_partitions(mutations);
    tell(&first.execution, &mutations);
    let mut counted = Vec::new();
    for mutation in &mut mutations {
        count(mutation, &first.execution, &mut counted)?;
    }
    let executed = apply(&first.execution, mutations, &partitions, WriteType::Counter)?;
    if let Some(cache) = store.counter_cache() {
        for counted in &counted {
            cache.insert(&counted.key, counted.own, counted.epoch);
        }
    }
    drop(guard);
    Ok(executed)
}

/// A new count, to be cached once it is written.
struct Counted {
    key: CounterKey,
    own: OwnCount,
    epoch: u64,
}

/// Replaces the increments in a mutation by this node's counts.
fn count(
    mutation: &mut Mutation,
    execution: &Execution<'_>,
    counted: &mut Vec<Counted>,
) -> Result<(), Error> {
    let (table, key) = (mutation.table.clone(), mutation.key.clone());
    let cache = execution
        .store
        .counter_cache()
        .filter(|_| !deletes_counters(&mutation.update));
    let epoch = cache.map_or(0, |cache| cache.epoch(table.id, &key.key));
    let known = cache.and_then(|cache| known_counts(mutation, cache));
    let mut known = known.map(Vec::into_iter);
    let current = match known {
        Some(_) => None,
        None => {
            let clusterings = mutation.update.rows.iter().map(|row| row.clustering.clone());
            let rows = Rows::Each(clusterings.collect());
            Some(Current::read(&table, &key, &rows, execution)?)
        }
    };
    let id = execution.store.counter_id();
    let update = &mut mutation.update;
    let statics = update.static_row.iter_mut().map(|row| (row, true));
    for (row, is_static) in statics.chain(update.rows.iter_mut().map(|row| (row, false))) {
        let stored = current.as_ref().and_then(|current| match is_static {
            true => current.static_row(),
            false => current.row(&row.clustering),
        });
        for entry in &mut row.columns {
            let Some((cell, delta)) = increment(&mut entry.data) else {
                continue;
            };
            let own = match &mut known {
                Some(known) => known.next(),
                None => own_count(stored, entry.column, &id),
            };
            let own = own.unwrap_or(OwnCount { clock: 0, count: 0 });
            let own = OwnCount {
                clock: own.clock.wrapping_add(1),
                count: own.count.wrapping_add(delta),
            };
            cell.value = counter::global(id, own.clock, own.count);
            if cache.is_some() {
                counted.push(Counted {
                    key: counter_key(&table, &key, &row.clustering, entry.column),
                    own,
                    epoch,
                });
            }
        }
    }
    Ok(())
}

/// The cached count of every counter of a mutation, in order; `None` if one is not cached.
fn known_counts(mutation: &mut Mutation, cache: &CounterCache) -> Option<Vec<OwnCount>> {
    let (table, key) = (&mutation.table, &mutation.key);
    let update = &mut mutation.update;
    let mut known = Vec::new();
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        for entry in &mut row.columns {
            if increment(&mut entry.data).is_some() {
                known.push(cache.lookup(&counter_key(table, key, &row.clustering, entry.column))?);
            }
        }
    }
    Some(known)
}

fn counter_key(
    table: &TableSchema,
    key: &DecoratedKey,
    clustering: &Clustering,
    column: ColumnId,
) -> CounterKey {
    CounterKey {
        table: table.id,
        key: key.key.clone(),
        clustering: clustering.clone(),
        column,
    }
}

/// The cell and increment of a counter; `None` for a tombstone.
fn increment(data: &mut Data) -> Option<(&mut Cell, i64)> {
    match data {
        Data::Simple(cell) => counter::update_delta(&cell.value).map(|delta| (cell, delta)),
        Data::Complex(_) => None,
    }
}

fn own_count(stored: Option<&Row>, column: ColumnId, id: &CounterId) -> Option<OwnCount> {
    match stored?.column(column)? {
        Data::Simple(stored) => {
            let (clock, count) = counter::global_of(&stored.value, id)?;
            Some(OwnCount { clock, count })
        }
        Data::Complex(_) => None,
    }
}
