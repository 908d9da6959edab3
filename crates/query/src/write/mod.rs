//! INSERT, UPDATE and DELETE.
//!
//! Planning (`plan`, `operation`, `timing`, `condition`) resolves names and terms. Executing makes one [`Mutation`] per
//! partition (`mutate`, `row_writer`) and applies it. Statements that depend on stored data (positions in lists, counters,
//! conditions) read and write under the lock of their partitions.
//!
//! | module | what |
//! | --- | --- |
//! | `plan` | a statement to [`ModifyPlan`], with Cassandra's refusals |
//! | `operation` | the change of one column |
//! | `timing` | USING: timestamps and times to live |
//! | `json` | INSERT JSON |
//! | `mutate` | from a plan and values to mutations |
//! | `row_writer` | from operations to the columns of a row |
//! | `current` | the stored rows that a statement depends on |
//! | `condition` | IF: planning and evaluating |
//! | `conditional`, `answer` | conditional statements and batches, and their answers |
//! | `count` | counter updates |

mod answer;
mod condition;
mod conditional;
mod count;
mod current;
mod json;
mod mutate;
mod operation;
mod plan;
mod row_writer;
mod target;
mod timing;

use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{TableId, TableKind, TableSchema, is_system_keyspace};

use crate::context::{Execution, PlanContext};
use crate::guardrails::{self, ensure};
use crate::masking::Masks;
use crate::protect::check_derived;
use crate::restrictions::Restrictions;
use crate::term::Term;
use crate::views::{self, has_views};
use crate::{Error, Executed, Outcome, StoreError, WriteType};

use condition::Condition;
use json::JsonSource;
use operation::Operations;
use timing::Timing;

pub(crate) use timing::evaluate_timestamp;

/// A planned INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModifyPlan {
    table: Arc<TableSchema>,
    kind: Kind,
    target: Target,
    operations: Operations,
    timing: Timing,
    condition: Condition,
    /// True if the table has materialized views.
    has_views: bool,
    /// The masks that apply to its answer, if it has one.
    masks: Option<Masks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    /// The statement's name in messages about conditions.
    fn noun(self) -> &'static str {
        match self {
            Self::Insert | Self::Update => "updates",
            Self::Delete => "deletions",
        }
    }
}

/// The rows that a statement changes.
#[derive(Debug)]
enum Target {
    /// The values of an INSERT's primary key; `clustering` is `None` if only static columns are set.
    Values {
        partition_key: Vec<Term>,
        clustering: Option<Vec<Term>>,
    },
    /// INSERT JSON: columns and values are known at execution.
    Json(JsonSource),
    /// The rows of a WHERE.
    Where(Box<Restrictions>),
}

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

    /// The table.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// The markers that form the partition key, in key order; empty if they do not cover all of it.
    pub fn partition_key_markers(&self) -> Vec<u16> {
        match &self.target {
            Target::Where(restrictions) => restrictions.partition_key_markers(),
            Target::Json(_) => Vec::new(),
            Target::Values { partition_key, .. } => {
                let marker = |term: &Term| term.marker_index().and_then(|index| u16::try_from(index).ok());
                let markers: Option<Vec<u16>> = partition_key.iter().map(marker).collect();
                markers.unwrap_or_default()
            }
        }
    }

    /// True if it has an IF.
    pub fn is_conditional(&self) -> bool {
        !self.condition.is_none()
    }

    /// True if its answer is masked for roles without UNMASK.
    pub fn has_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// True if it changes counters.
    pub fn is_counter(&self) -> bool {
        self.table.is_counter()
    }

    /// True if its table is computed when it is read.
    pub fn is_virtual(&self) -> bool {
        self.table.kind == TableKind::Virtual
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

    /// True if it has its own timestamp.
    pub fn has_timestamp(&self) -> bool {
        self.timing.has_timestamp()
    }

    /// True if it reads stored data without a condition: positions in lists.
    pub fn reads(&self) -> bool {
        self.operations.reads()
    }

    /// True if its partitions must be locked: it or its views read stored data.
    pub fn is_locking(&self) -> bool {
        self.reads() || self.has_views
    }

    /// Appends its mutations, whatever its condition. `timestamp_micros` is that of the batch or request, for statements
    /// without one.
    ///
    /// # Errors
    /// A value is not possible in its place.
    pub fn mutations(
        &self,
        execution: &Execution<'_>,
        timestamp_micros: i64,
        out: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        mutate::mutations(self, execution, timestamp_micros, out)
    }

    /// Executes it outside of a batch.
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

/// A member of a batch with its own values.
pub(crate) struct BatchMember<'a> {
    pub plan: &'a ModifyPlan,
    pub execution: Execution<'a>,
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

/// Executes a batch with a conditional member: all conditions hold, or nothing is written. Requires: the rules without values
/// were checked (no counters, no timestamps).
///
/// # Errors
/// A value is not possible in its place, the batch spans partitions, or the store refused.
pub(crate) fn execute_conditional_batch(
    members: &[BatchMember<'_>],
    _timestamp_micros: i64,
) -> Result<Executed, Error> {
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

/// Applies the guardrails of writes.
///
/// # Errors
/// A value is too large, or the consistency level is not allowed.
pub(crate) fn check_written(mutations: &[Mutation], execution: &Execution<'_>) -> Result<(), Error> {
    if mutations
        .iter()
        .any(|mutation| !is_system_keyspace(&mutation.table.keyspace))
    {
        guardrails::check_write_level(execution.options.consistency, execution)?;
        guardrails::check_disk(execution)?;
    }
    guardrails::check_values(mutations, execution)
}

fn apply(
    execution: &Execution<'_>,
    mutations: Vec<Mutation>,
    locked: &[(TableId, DecoratedKey)],
    write_type: WriteType,
) -> Result<Executed, Error> {
    let mut executed = Executed::of(Outcome::Void);
    if !mutations.is_empty() {
        check_written(&mutations, execution)?;
        executed.durable_at = views::apply(execution, mutations, locked, write_type)?;
    }
    Ok(executed)
}
