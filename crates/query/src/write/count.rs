//! Increments to counter contexts: what this node has counted is read, and its new count is written.
//!
//! Compat: `CounterMutation` of Cassandra 5.0. A cell that is written holds only this node's shard; reading sums it with
//! those of others. If the counter cache has all counts of a mutation, nothing is read.

use ilion_engine::{CounterCache, CounterKey, OwnCount, deletes_counters};
use ilion_rows::counter::CounterId;
use ilion_rows::{Cell, Clustering, Data, DecoratedKey, Mutation, Row, counter};
use ilion_schema::{ColumnId, TableSchema};

use super::current::Current;
use super::mutate::{self, Rows};
use super::{BatchMember, apply};
use crate::context::Execution;
use crate::partitions::{merge_partitions, partition_count};
use crate::{BatchKind, Error, Executed, Outcome, WriteType};

/// Carries out changes of counters.
pub(super) fn execute(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<Executed, Error> {
    execute_merged(members, timestamp_micros, |_, _| ())
}

/// The same of a batch, whose partitions are counted.
pub(super) fn execute_batch(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<Executed, Error> {
    execute_merged(members, timestamp_micros, |execution, mutations| {
        let sizes = execution.query_options.batch_sizes.of(BatchKind::Counter);
        sizes.record(partition_count(mutations) as u64);
    })
}

/// `tell` is told what the members come to, before it is counted.
fn execute_merged(
    members: &[BatchMember<'_>],
    timestamp_micros: i64,
    tell: impl FnOnce(&Execution<'_>, &[Mutation]),
) -> Result<Executed, Error> {
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

/// A new count, to be remembered once it is written.
struct Counted {
    key: CounterKey,
    own: OwnCount,
    epoch: u64,
}

/// Turns the increments of a mutation into this node's counts.
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

/// What the cache knows of every counter of a mutation, in its order; `None` if it does not know them all.
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

/// A cell that counts, and by how much. A tombstone has no increment.
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
