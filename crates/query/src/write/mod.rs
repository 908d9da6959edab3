//! INSERT, UPDATE and DELETE.
//!
//! Planning (`plan`, `operation`, `timing`, `condition`) resolves names and terms. Executing makes one [`Mutation`] per
//! partition (`mutate`, `row_writer`) and applies it. Statements that depend on stored data (positions in lists, counters,
//! conditions) read and write under the lock of their partitions.
//!
//! | module | what |
//! | --- | --- |
//! | `modify` | [`ModifyPlan`] |
//! | `plan` | from a statement to its plan, with Cassandra's refusals |
//! | `operation` | the change of one column |
//! | `timing` | USING: timestamps and TTLs |
//! | `json` | INSERT JSON |
//! | `mutate` | from a plan and values to mutations |
//! | `row_writer` | from operations to the columns of a row |
//! | `current` | the stored rows that a statement depends on |
//! | `condition` | IF: planning and evaluating |
//! | `conditional`, `answer` | conditional statements and batches, and their answers |
//! | `count` | counter updates |
//! | `apply` | guardrails, then the store |

mod answer;
mod apply;
mod condition;
mod conditional;
mod count;
mod current;
mod json;
mod modify;
mod mutate;
mod operation;
mod plan;
mod row_writer;
mod target;
mod timing;

use ilion_cql::ast;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::TableId;

use crate::context::{Execution, PlanContext};
use crate::guardrails::{check_values, ensure};
use crate::masking::Masks;
use crate::partitions::merge_partitions;
use crate::protect::check_derived;
use crate::views::has_views;
use crate::{Error, Executed, Outcome, StoreError, WriteType};

use apply::apply;
use current::Reading;

pub(crate) use apply::check_written;
pub(crate) use modify::{BatchMember, ModifyPlan};
pub(crate) use timing::evaluate_timestamp;

impl ModifyPlan {
    /// Resolves an INSERT, UPDATE or DELETE.
    ///
    /// # Errors
    /// The statement is not possible for its table.
    pub fn plan(ast: &ast::Modification, context: &PlanContext<'_>) -> Result<Self, Error> {
        let mut plan = match ast {
            ast::Modification::Insert(insert) => plan::insert(insert, context)?,
            ast::Modification::Update(update) => plan::update(update, context)?,
            ast::Modification::Delete(delete) => plan::delete(delete, context)?,
        };
        plan::check_virtual(&plan, context)?;
        check_derived(&plan.table, context)?;
        let limits = &context.options.guardrails;
        context.forbid(ensure(
            "user_timestamps",
            limits.user_timestamps_enabled || !plan.has_timestamp(),
            "User provided timestamps (USING TIMESTAMP)",
        ));
        context.forbid(ensure(
            "read_before_write_list_operations",
            limits.read_before_write_list_operations_enabled || !plan.reads(),
            "List operation requiring read before write",
        ));
        plan.has_views = has_views(context.schema, &plan.table);
        if plan.is_conditional() {
            plan.masks = Masks::of(&plan.table, context);
        }
        Ok(plan)
    }

    fn set_virtual(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        let mut mutations = Vec::new();
        self.mutations(execution, execution.timestamp_micros(), &mut mutations)?;
        for mutation in &mutations {
            let done = execution.store.set_virtual(mutation);
            done.map_err(StoreError::of_statement)?;
        }
        Ok(Executed::of(Outcome::Void))
    }

    /// Appends the mutations of the plan, whether its condition holds or not. `timestamp_micros` is that of the batch or request, for
    /// statements without one.
    ///
    /// # Errors
    /// A value is not possible in its place.
    pub fn mutations(
        &self,
        execution: &Execution<'_>,
        timestamp_micros: i64,
        out: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        mutate::mutations(self, execution, timestamp_micros, Reading::Stored, out)
    }

    /// Executes the plan as a statement of its own, not in a batch.
    ///
    /// # Errors
    /// A value is not possible in its place, or the store refused.
    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        if self.is_conditional() {
            let member = BatchMember {
                plan: self,
                execution: *execution,
            };
            return conditional::execute(&[member], conditional::Origin::Alone);
        }
        if self.is_counter() {
            let member = BatchMember {
                plan: self,
                execution: *execution,
            };
            return count::execute(&[member], execution.timestamp_micros());
        }
        if self.is_virtual() {
            return self.set_virtual(execution);
        }
        let mut mutations = Vec::new();
        let partitions = if self.is_locking() {
            mutate::partitions(self, execution)?
        } else {
            Vec::new()
        };
        let guard = (!partitions.is_empty()).then(|| execution.store.lock_partitions(&partitions));
        self.mutations(execution, execution.timestamp_micros(), &mut mutations)?;
        let executed = apply(execution, mutations, &partitions, WriteType::Simple);
        drop(guard);
        executed
    }
}

/// The partitions that members read before they write, to be locked.
///
/// # Errors
/// A value is not possible in a key.
pub(crate) fn partitions_read(members: &[BatchMember<'_>]) -> Result<Vec<(TableId, DecoratedKey)>, Error> {
    let mut partitions = Vec::new();
    for member in members.iter().filter(|member| member.plan.is_locking()) {
        partitions.extend(mutate::partitions(member.plan, &member.execution)?);
    }
    Ok(partitions)
}

/// The partitions that members write, each once.
///
/// # Errors
/// A value is not possible in a key.
pub(crate) fn partitions_written(members: &[BatchMember<'_>]) -> Result<Vec<DecoratedKey>, Error> {
    let mut keys = Vec::new();
    for member in members {
        keys.extend(mutate::keys(member.plan, &member.execution)?);
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// Checks the values that members write, and calls all their functions, before the statement gets into the log of a cluster: when the log
/// executes it, this node's limits do not count. Conditions, and values that depend on stored data, are not known yet.
///
/// # Errors
/// A value is not possible in its place, or a guardrail refuses it.
pub(crate) fn check_foreseen(members: &[BatchMember<'_>], timestamp_micros: i64) -> Result<(), Error> {
    let mut mutations = Vec::with_capacity(members.len());
    for member in members {
        let (plan, execution) = (member.plan, &member.execution);
        plan.condition.evaluate_terms(execution)?;
        mutate::mutations(
            plan,
            execution,
            timestamp_micros,
            Reading::Nothing,
            &mut mutations,
        )?;
    }
    match members.first() {
        Some(first) => check_values(&merge_partitions(mutations), &first.execution),
        None => Ok(()),
    }
}

/// Executes a batch with a conditional member: if a condition does not hold, nothing is written. Requires: the rules that need no
/// values were checked (no counters, no timestamps).
///
/// # Errors
/// A value is not possible in its place, the batch spans partitions, or the store refused.
pub(crate) fn execute_conditional_batch(members: &[BatchMember<'_>]) -> Result<Executed, Error> {
    conditional::execute(members, conditional::Origin::Batch)
}

/// Executes a batch of counter updates.
///
/// # Errors
/// A value is not possible in its place, or the store refused.
pub(crate) fn execute_counter_batch(
    members: &[BatchMember<'_>],
    timestamp_micros: i64,
) -> Result<Executed, Error> {
    count::execute_batch(members, timestamp_micros)
}
