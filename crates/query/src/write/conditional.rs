//! Conditional statements and batches: all conditions are evaluated on stored data, under the lock of the partition. Either
//! all members are written, or nothing is written and the answer shows the stored values.
//!
//! Compat: `CQL3CasRequest` of Cassandra 5.0.

use std::sync::Arc;

use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, Mutation, NO_TIMESTAMP, Slice};
use ilion_schema::{Column, ColumnId, TableSchema};

use super::answer::{Shown, applied, refused};
use super::apply::apply;
use super::condition::{ColumnCondition, Condition};
use super::current::{Current, Reading, Rows};
use super::modify::{BatchMember, ModifyPlan, Target};
use super::{json, mutate};
use crate::context::{Execution, Sight};
use crate::partitions::merge_partitions;
use crate::{Error, Executed, Outcome, WriteType};

/// Whether a statement is alone or in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Alone,
    Batch,
}

/// A statement with its bound values.
struct Bound<'a> {
    plan: &'a ModifyPlan,
    execution: &'a Execution<'a>,
    rows: Rows,
}

/// The conditions on one row.
enum RowCondition<'a> {
    NotExists,
    Exists,
    Columns(Vec<(&'a ColumnCondition, &'a Execution<'a>)>),
}

/// All conditions of the statements.
#[derive(Default)]
struct Conditions<'a> {
    statics: Option<RowCondition<'a>>,
    /// In stored order.
    rows: Vec<(Clustering, RowCondition<'a>)>,
}

/// Executes statements of which at least one is conditional.
pub(super) fn execute(members: &[BatchMember<'_>], origin: Origin) -> Result<Executed, Error> {
    let _waits = ilion_env::client_waits();
    let Some(first) = members.first() else {
        return Ok(Executed::of(Outcome::Void));
    };
    let json = members.iter().map(bind_json).collect::<Result<Vec<_>, _>>()?;
    let mut bound = Vec::with_capacity(members.len());
    let mut key = None;
    for (member, json) in members.iter().zip(&json) {
        let plan = json.as_ref().unwrap_or(member.plan);
        check_no_in(plan, origin)?;
        // Compat: invalid values are refused even if an earlier condition does not hold.
        plan.condition.evaluate_terms(&member.execution)?;
        bound.push(Bound {
            plan,
            execution: &member.execution,
            rows: mutate::rows(plan, &member.execution)?,
        });
        for own in mutate::keys(plan, &member.execution)? {
            if *key.get_or_insert_with(|| own.clone()) != own {
                return Err(Error::invalid(
                    "Batch with conditions cannot span multiple partitions",
                ));
            }
        }
    }
    let Some(key) = key else {
        return Ok(Executed::of(Outcome::Void));
    };
    decide(&bound, &first.plan.table, &key, origin)
}

fn bind_json(member: &BatchMember<'_>) -> Result<Option<ModifyPlan>, Error> {
    match &member.plan.target {
        Target::Json(source) => json::bind(member.plan, source, &member.execution).map(Some),
        _ => Ok(None),
    }
}

fn check_no_in(plan: &ModifyPlan, origin: Origin) -> Result<(), Error> {
    let Target::Where(restrictions) = &plan.target else {
        return Ok(());
    };
    if restrictions.has_key_in() {
        return Err(match origin {
            Origin::Alone => Error::Invalid(format!(
                "IN on the partition key is not supported with conditional {}",
                plan.kind.noun()
            )),
            Origin::Batch => Error::invalid(
                "Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)",
            ),
        });
    }
    if restrictions.has_clustering_in() {
        return Err(Error::Invalid(format!(
            "IN on the clustering key columns is not supported with conditional {}",
            plan.kind.noun()
        )));
    }
    Ok(())
}

fn decide(
    bound: &[Bound<'_>],
    table: &Arc<TableSchema>,
    key: &DecoratedKey,
    origin: Origin,
) -> Result<Executed, Error> {
    let Some(first) = bound.first() else {
        return Ok(Executed::of(Outcome::Void));
    };
    let execution = first.execution;
    let request = Conditions::of(bound, &ClusteringComparator::of(table))?;
    let locked = [(table.id, key.clone())];
    let guard = execution.store.lock_partitions(&locked);
    let mut current = request.read(table, key, execution)?;
    let wanted = columns_to_read(bound, table);
    current.keep_columns(|id| wanted.contains(&id));
    if !request.holds(&current)? {
        // Masks may call user-defined functions, which take time, so the lock is released first.
        drop(guard);
        let columns = shown_columns(bound, table, origin);
        return refused(table, key, &shown(bound, &columns), &current, execution)
            .map(Outcome::Rows)
            .map(Executed::of);
    }
    let newest = request.newest_written(bound, table, key, execution)?;
    let mutations = write(bound, key, current.newest_micros().max(newest))?;
    let mut executed = apply(execution, mutations, &locked, WriteType::Cas)?;
    drop(guard);
    executed.outcome = Outcome::Rows(applied(table));
    Ok(executed)
}

/// The columns of a refusal, each with the mask that applies.
fn shown<'p>(bound: &[Bound<'p>], columns: &[&'p Column]) -> Vec<Shown<'p>> {
    let sight = bound.first().map_or(Sight::Masked, |first| first.execution.sight);
    let masks = bound.iter().find_map(|member| member.plan.masks.as_ref());
    let masks = masks.filter(|_| sight == Sight::Masked);
    columns
        .iter()
        .map(|&column| Shown {
            column,
            masker: masks.and_then(|masks| masks.of_column(column.id)),
        })
        .collect()
}

/// Makes the mutations. All have one new timestamp, but deletions are one microsecond older than other writes.
fn write(bound: &[Bound<'_>], key: &DecoratedKey, newest_micros: i64) -> Result<Vec<Mutation>, Error> {
    let Some(first) = bound.first() else {
        return Ok(Vec::new());
    };
    let timestamp_micros = timestamp_above(newest_micros, first.execution.store.unique_micros())?;
    let mut mutations = Vec::with_capacity(bound.len());
    for Bound {
        plan,
        execution,
        rows,
    } in bound
    {
        let time = plan.timing.evaluate(&plan.table, timestamp_micros, execution)?;
        let time = time.of_condition(timestamp_micros);
        let update = mutate::partition_update(plan, key, rows, &time, Reading::Stored, execution)?;
        mutate::push(plan, key.clone(), update, &mut mutations);
    }
    Ok(merge_partitions(mutations))
}

/// The timestamp of a conditional write. It is above all timestamps that the conditions read; otherwise the client would be told
/// that the write was applied, and it would have no effect. Clients may have written with any timestamp: this raises only the
/// timestamp of this write, not the clock. Pure.
fn timestamp_above(newest_micros: i64, now_micros: i64) -> Result<i64, Error> {
    match newest_micros.checked_add(1) {
        Some(above) => Ok(now_micros.max(above)),
        None => Err(Error::Invalid(format!(
            "The row has a value or deletion of the timestamp {newest_micros}, and no conditional write can be newer"
        ))),
    }
}

impl<'a> Conditions<'a> {
    fn of(bound: &'a [Bound<'a>], comparator: &ClusteringComparator) -> Result<Self, Error> {
        let mut request = Self::default();
        for member in bound {
            let row = match &member.rows {
                Rows::Each(clusterings) => clusterings.first(),
                Rows::Static | Rows::Slices(_) => None,
            };
            match &member.plan.condition {
                Condition::None => {}
                Condition::NotExists => request.add_existence(row, RowCondition::NotExists, comparator)?,
                Condition::Exists => request.add_existence(row, RowCondition::Exists, comparator)?,
                Condition::Columns(conditions) => {
                    for condition in conditions {
                        let row = if condition.is_static() { None } else { row };
                        request.add_column(row, condition, member.execution, comparator)?;
                    }
                }
            }
        }
        Ok(request)
    }

    /// Returns the condition on `row`, or on the static row if `row` is `None`. If there was no condition yet, sets it to `new`; otherwise
    /// returns `new`, too.
    fn slot(
        &mut self,
        row: Option<&Clustering>,
        new: RowCondition<'a>,
        comparator: &ClusteringComparator,
    ) -> (&mut RowCondition<'a>, Option<RowCondition<'a>>) {
        let Some(clustering) = row else {
            return match &mut self.statics {
                Some(known) => (known, Some(new)),
                none => (none.insert(new), None),
            };
        };
        let found = self
            .rows
            .binary_search_by(|(known, _)| comparator.compare(known, clustering));
        match found {
            Ok(index) => (&mut self.rows[index].1, Some(new)),
            Err(index) => {
                self.rows.insert(index, (clustering.clone(), new));
                (&mut self.rows[index].1, None)
            }
        }
    }

    fn add_existence(
        &mut self,
        row: Option<&Clustering>,
        new: RowCondition<'a>,
        comparator: &ClusteringComparator,
    ) -> Result<(), Error> {
        let (known, Some(new)) = self.slot(row, new, comparator) else {
            return Ok(());
        };
        match (known, new) {
            (RowCondition::Exists, RowCondition::Exists)
            | (RowCondition::NotExists, RowCondition::NotExists) => Ok(()),
            (RowCondition::Columns(_), RowCondition::NotExists) => Err(Error::invalid(
                "Cannot mix IF conditions and IF NOT EXISTS for the same row",
            )),
            (RowCondition::Columns(_), _) => Err(Error::invalid(
                "Cannot mix IF conditions and IF EXISTS for the same row",
            )),
            _ => Err(Error::invalid(
                "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row",
            )),
        }
    }

    fn add_column(
        &mut self,
        row: Option<&Clustering>,
        condition: &'a ColumnCondition,
        execution: &'a Execution<'a>,
        comparator: &ClusteringComparator,
    ) -> Result<(), Error> {
        match self.slot(row, RowCondition::Columns(Vec::new()), comparator).0 {
            RowCondition::Columns(conditions) => {
                conditions.push((condition, execution));
                Ok(())
            }
            _ => Err(Error::invalid(
                "Cannot mix IF conditions and IF NOT EXISTS for the same row",
            )),
        }
    }

    /// Reads the rows with conditions. If only the static row has conditions, also reads the first row: it distinguishes a
    /// partition without static values from a missing partition.
    fn read(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        execution: &Execution<'_>,
    ) -> Result<Current, Error> {
        if self.rows.is_empty() {
            return Current::read_slices(table, key, vec![Slice::all()], 1, execution);
        }
        let slices = self.rows.iter().map(|(clustering, _)| Slice::exactly(clustering));
        Current::read_slices(table, key, slices.collect(), usize::MAX, execution)
    }

    /// The newest timestamp in the rows without a condition that members write by their whole key. Rows that a range deletion covers
    /// are not read: they may be a whole partition.
    fn newest_written(
        &self,
        bound: &[Bound<'_>],
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        execution: &Execution<'_>,
    ) -> Result<i64, Error> {
        let comparator = ClusteringComparator::of(table);
        let is_read = |clustering: &Clustering| {
            let found = self
                .rows
                .binary_search_by(|(known, _)| comparator.compare(known, clustering));
            found.is_ok()
        };
        let mut others: Vec<&Clustering> = Vec::new();
        for member in bound {
            if let Rows::Each(clusterings) = &member.rows {
                others.extend(clusterings.iter().filter(|clustering| !is_read(clustering)));
            }
        }
        if others.is_empty() {
            return Ok(NO_TIMESTAMP);
        }
        others.sort_by(|a, b| comparator.compare(a, b));
        others.dedup_by(|a, b| comparator.compare(a, b).is_eq());
        let slices = others.into_iter().map(Slice::exactly).collect();
        Ok(Current::read_slices(table, key, slices, usize::MAX, execution)?.newest_micros())
    }

    fn holds(&self, current: &Current) -> Result<bool, Error> {
        if let Some(condition) = &self.statics
            && !condition.holds(current.static_row())?
        {
            return Ok(false);
        }
        for (clustering, condition) in &self.rows {
            if !condition.holds(current.row(clustering))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl RowCondition<'_> {
    fn holds(&self, row: Option<&ilion_rows::Row>) -> Result<bool, Error> {
        match self {
            Self::NotExists => Ok(row.is_none()),
            Self::Exists => Ok(row.is_some()),
            Self::Columns(conditions) => {
                for (condition, execution) in conditions {
                    if !condition.holds(row, execution)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// The columns whose stored values matter: those in conditions and read by operations; all regular columns if rows are written, and all
/// static columns if the static row is written.
fn columns_to_read(bound: &[Bound<'_>], table: &TableSchema) -> Vec<ColumnId> {
    let updates_rows = bound.iter().any(|member| !matches!(member.rows, Rows::Static));
    let updates_statics = bound
        .iter()
        .any(|member| !member.plan.operations.statics.is_empty());
    let conditions = bound.iter().flat_map(|member| member.plan.condition.columns());
    let mut columns: Vec<ColumnId> = conditions.map(|condition| condition.column.id).collect();
    let reading = bound.iter().flat_map(|member| member.plan.operations.reading());
    columns.extend(reading.map(|operation| operation.column.id));
    if updates_rows {
        columns.extend(table.regulars().map(|column| column.id));
    }
    if updates_statics {
        columns.extend(table.statics().map(|column| column.id));
    }
    columns
}

/// The columns of a refusal, after `[applied]`.
fn shown_columns<'t>(bound: &[Bound<'_>], table: &'t TableSchema, origin: Origin) -> Vec<&'t Column> {
    let is_of_existence =
        |condition: &Condition| matches!(condition, Condition::Exists | Condition::NotExists);
    if bound.iter().any(|member| is_of_existence(&member.plan.condition)) {
        return table.select_order();
    }
    let mut columns: Vec<&Column> = Vec::new();
    if origin == Origin::Batch {
        columns.extend(table.partition_key().chain(table.clustering()));
    }
    for member in bound {
        let conditions = member.plan.condition.columns();
        let regular = conditions.iter().filter(|condition| !condition.is_static());
        let statics = conditions.iter().filter(|condition| condition.is_static());
        for condition in regular.chain(statics) {
            let id = condition.column.id;
            if !columns.iter().any(|known| known.id == id) {
                columns.extend(table.column(id));
            }
        }
    }
    columns
}
