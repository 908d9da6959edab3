//! Batches, of CQL and of the protocol: their rules, their size, and their mutations as one write.
//!
//! Compat: rules, messages and warnings are those of `BatchStatement` of Cassandra 5.0.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::Mutation;
use ilion_schema::{TableId, TableSchema};
use ilion_types::CqlType;

use crate::consistency::{check_condition, check_counter, check_write};
use crate::context::{Execution, PlanContext};
use crate::merge::data_len;
use crate::partitions::{key_count, merge_partitions, partition_count};
use crate::protect::check_change;
use crate::term::Term;
use crate::views;
use crate::write::{
    ModifyPlan, evaluate_timestamp, execute_conditional_batch, execute_counter_batch, partitions_read,
};
use crate::{BatchKind, ColumnSpec, Error, Executed, Outcome, WriteType};

pub(crate) use crate::write::BatchMember as Member;
use crate::write::check_written;

/// A planned `BEGIN BATCH`.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    kind: BatchKind,
    timestamp: Option<Term>,
    members: Vec<ModifyPlan>,
}

/// Whether the batch itself has a timestamp, which all its members get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnTimestamp {
    Absent,
    Given,
}

impl BatchPlan {
    /// Resolves a batch.
    pub fn plan(ast: &ast::Batch, context: &PlanContext<'_>) -> Result<Self, Error> {
        if ast.using.ttl.is_some() {
            return Err(Error::invalid(
                "Global TTL on the BATCH statement is not supported.",
            ));
        }
        let members = ast
            .modifications
            .iter()
            .map(|modification| ModifyPlan::plan(modification, context))
            .collect::<Result<Vec<_>, _>>()?;
        members
            .iter()
            .try_for_each(|member| check_change(member.table()))?;
        let timestamp = ast
            .using
            .timestamp
            .as_ref()
            .map(|term| Term::plan(term, &timestamp_receiver(), context))
            .transpose()?;
        let own_timestamp = match timestamp {
            None => OwnTimestamp::Absent,
            Some(_) => OwnTimestamp::Given,
        };
        check(ast.kind, members.iter(), own_timestamp)?;
        Ok(Self {
            kind: ast.kind,
            timestamp,
            members,
        })
    }

    /// Its statements.
    pub fn members(&self) -> &[ModifyPlan] {
        &self.members
    }

    /// The table that the batch changes; `None` if its members change several.
    pub fn only_table(&self) -> Option<&Arc<TableSchema>> {
        let first = self.members.first()?.table();
        let is_of_first = |member: &ModifyPlan| member.table().id == first.id;
        self.members.iter().all(is_of_first).then_some(first)
    }

    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        let timestamp_micros = match &self.timestamp {
            None => execution.timestamp_micros(),
            Some(term) => {
                let given = evaluate_timestamp(term, execution)?;
                given.unwrap_or_else(|| execution.timestamp_micros())
            }
        };
        let members: Vec<Member<'_>> = self
            .members
            .iter()
            .map(|plan| Member {
                plan,
                execution: *execution,
            })
            .collect();
        execute(self.kind, &members, timestamp_micros, execution)
    }
}

fn timestamp_receiver() -> ColumnSpec {
    ColumnSpec {
        keyspace: "[batch]".into(),
        table: "[batch]".into(),
        name: "[timestamp]".into(),
        ty: CqlType::BigInt,
    }
}

/// Checks the rules that need no values.
pub(crate) fn check<'p>(
    kind: BatchKind,
    members: impl Iterator<Item = &'p ModifyPlan> + Clone,
    timestamp: OwnTimestamp,
) -> Result<(), Error> {
    let refuse_if = |refused: bool, message: &str| {
        if refused {
            Err(Error::invalid(message))
        } else {
            Ok(())
        }
    };
    let given = timestamp == OwnTimestamp::Given;
    // A batch is written as a whole or not at all; a virtual table cannot take part in that.
    refuse_if(
        members.clone().any(ModifyPlan::is_virtual),
        "Virtual tables cannot be updated in a batch",
    )?;
    let conditional = members.clone().any(ModifyPlan::is_conditional);
    let counters = members.clone().any(ModifyPlan::is_counter);
    let others = members.clone().any(|member| !member.is_counter());
    refuse_if(
        given && conditional,
        "Cannot provide custom timestamp for conditional BATCH",
    )?;
    refuse_if(
        given && kind == BatchKind::Counter,
        "Cannot provide custom timestamp for counter BATCH",
    )?;
    refuse_if(
        given && members.clone().any(ModifyPlan::has_timestamp),
        "Timestamp must be set either on BATCH or individual statements",
    )?;
    refuse_if(
        given && counters,
        "Cannot provide custom timestamp for a BATCH containing counters",
    )?;
    refuse_if(
        kind == BatchKind::Counter && others,
        "Cannot include non-counter statement in a counter batch",
    )?;
    refuse_if(
        counters && others,
        "Counter and non-counter mutations cannot exist in the same batch",
    )?;
    refuse_if(
        kind == BatchKind::Logged && counters,
        "Cannot include a counter statement in a logged batch",
    )?;
    let tables: HashSet<TableId> = members.map(|member| member.table().id).collect();
    refuse_if(
        conditional && tables.len() > 1,
        "Batch with conditions cannot span multiple tables",
    )
}

/// Executes a batch whose rules were checked.
pub(crate) fn execute(
    kind: BatchKind,
    members: &[Member<'_>],
    timestamp_micros: i64,
    execution: &Execution<'_>,
) -> Result<Executed, Error> {
    if members.iter().any(|member| member.plan.is_conditional()) {
        check_condition(execution.options)?;
        return execute_conditional_batch(members);
    }
    if let Some(counter) = members.iter().find(|member| member.plan.is_counter()) {
        check_counter(execution.options, counter.plan.table())?;
        return execute_counter_batch(members, timestamp_micros);
    }
    check_write(execution.options)?;
    let read = partitions_read(members)?;
    let guard = (!read.is_empty()).then(|| execution.store.lock_partitions(&read));
    let mut mutations = Vec::with_capacity(members.len());
    for member in members {
        member
            .plan
            .mutations(&member.execution, timestamp_micros, &mut mutations)?;
    }
    let mutations = merge_partitions(mutations);
    let partitions = partition_count(&mutations);
    // Compat: a batch of one partition may have any size, and is as good as a logged one, since it is one write anyway.
    if partitions > 1 {
        check_size(&mutations, execution)?;
        warn_of_kind(kind, &mutations, execution);
    }
    let sizes = execution.query_options.batch_sizes.of(kind);
    sizes.record(partitions as u64);
    let write_type = match kind {
        BatchKind::Logged => WriteType::Batch,
        BatchKind::Unlogged | BatchKind::Counter => WriteType::UnloggedBatch,
    };
    let mut executed = Executed::of(Outcome::Void);
    if !mutations.is_empty() {
        check_written(&mutations, execution)?;
        let awaited = views::apply(execution, mutations, &read, write_type)?;
        executed.awaited = awaited.map(|awaited| awaited.of(execution.options.consistency, write_type));
    }
    drop(guard);
    Ok(executed)
}

/// Refuses or warns of a large batch.
fn check_size(mutations: &[Mutation], execution: &Execution<'_>) -> Result<(), Error> {
    let limits = execution.query_options;
    let size: usize = mutations.iter().map(|mutation| data_len(&mutation.update)).sum();
    if limits.batch_size_fail_bytes != 0 && size > limits.batch_size_fail_bytes {
        return Err(Error::invalid("Batch too large"));
    }
    let threshold = limits.batch_size_warn_bytes;
    if threshold != 0 && size > threshold {
        execution.warn(format!(
            "Batch for [{}] is of size {size}, exceeding specified threshold of {threshold} by {}.",
            table_names(mutations),
            size - threshold
        ));
    }
    Ok(())
}

fn warn_of_kind(kind: BatchKind, mutations: &[Mutation], execution: &Execution<'_>) {
    if kind == BatchKind::Logged {
        let fleeting: Vec<&Mutation> = mutations
            .iter()
            .filter(|mutation| mutation.table.options.gc_grace_secs == 0)
            .collect();
        if !fleeting.is_empty() {
            let names = table_names(fleeting.iter().copied());
            execution.warn(format!(
                "Executing a LOGGED BATCH on table{} [{names}], configured with a gc_grace_seconds of 0. The \
                 gc_grace_seconds is used to TTL batchlog entries, so setting gc_grace_seconds too low on tables \
                 involved in an atomic batch might cause batchlog entries to expire before being replayed.",
                plural(&names)
            ));
        }
        return;
    }
    let limits = execution
        .query_options
        .guardrails
        .unlogged_batch_across_partitions;
    let keys = key_count(mutations);
    if limits.warn.is_some_and(|limit| keys as u64 > limit) {
        let names = table_names(mutations);
        execution.warn(format!(
            "Unlogged batch covering {keys} partitions detected against table{} [{names}]. You should use a logged batch \
             for atomicity, or asynchronous writes for performance.",
            plural(&names)
        ));
    }
}

fn table_names<'m>(mutations: impl IntoIterator<Item = &'m Mutation>) -> String {
    let names: BTreeSet<String> = mutations
        .into_iter()
        .map(|mutation| format!("{}.{}", mutation.table.keyspace, mutation.table.name))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn plural(names: &str) -> &'static str {
    if names.contains(", ") { "s" } else { "" }
}
