//! Makes commands of statements that read before they write, in a cluster.

use std::sync::Arc;

use ilion_rows::DecoratedKey;

use crate::batch::Member;
use crate::context::{Execution, Sight};
use crate::guardrails;
use crate::plan::Plan;
use crate::planned::Planned;
use crate::write::{ModifyPlan, check_foreseen, partitions_written};
use crate::{Command, Commands, Error, Executed, Form, Outcome, Reason, Value};

/// Why a statement with these changes is executed by the log; `None` if it reads nothing.
pub(crate) fn reason_of<'p>(mut plans: impl Iterator<Item = &'p ModifyPlan>) -> Option<Reason> {
    plans.find_map(|plan| match plan {
        _ if plan.is_conditional() || plan.is_locking() => Some(Reason::Decides),
        _ if plan.is_counter() => Some(Reason::Counts),
        _ => None,
    })
}

/// The changes of a statement.
pub(crate) fn changes_of(plan: &Plan) -> &[ModifyPlan] {
    match plan {
        Plan::Modify(modify) => std::slice::from_ref(&**modify),
        Plan::Batch(batch) => batch.members(),
        _ => &[],
    }
}

/// The keyspace of the unqualified names of a batch of the protocol.
///
/// # Errors
/// Its statements were prepared in several.
pub(crate) fn keyspace_of(members: &[Arc<Planned>]) -> Result<Option<&str>, Error> {
    let mut unqualified = members.iter().filter(|member| !member.is_qualified);
    let first = unqualified.next().and_then(|member| member.keyspace.as_deref());
    match unqualified.all(|member| member.keyspace.as_deref() == first) {
        true => Ok(first),
        false => Err(Error::invalid(
            "Statements of a batch that reads were prepared in several keyspaces: name the keyspaces of their tables",
        )),
    }
}

/// Has a statement executed by the log. `statements` are its texts with their values, `members` its changes. `None`: this node executes it.
///
/// Replicas decide by nothing but the log and their data, so the limits that this node's settings give are checked here.
///
/// # Errors
/// A value is not possible in its place, a guardrail refuses it, or what the execution gave.
pub(crate) fn send(
    commands: &dyn Commands,
    reason: Reason,
    form: Form,
    statements: Vec<(String, Vec<Value>)>,
    keyspace: Option<&str>,
    members: &[Member<'_>],
    execution: &Execution<'_>,
) -> Result<Option<Executed>, Error> {
    guardrails::check_write_level(execution.options.consistency, execution)?;
    guardrails::check_disk(execution)?;
    let is_masked = |member: &Member<'_>| member.execution.sight == Sight::Masked && member.plan.has_masks();
    if members.iter().any(is_masked) {
        return Err(Error::invalid(
            "A conditional write of a table with masked columns needs the permission UNMASK in a cluster",
        ));
    }
    let partitions: Vec<DecoratedKey> = partitions_written(members)?;
    if partitions.is_empty() {
        // An IN without values.
        return Ok(Some(Executed::of(Outcome::Void)));
    }
    let reads_lists = |member: &Member<'_>| !member.plan.is_conditional() && !member.plan.is_counter();
    if partitions.len() > 1 && members.iter().all(reads_lists) {
        // Positions in lists: no log has all of these partitions, and a batch must not be made in part. As in Cassandra, the coordinator
        // reads the lists.
        return Ok(None);
    }
    // Functions may have other results on other nodes: those of this node count.
    execution.calls.begin_noting();
    check_foreseen(members, execution.timestamp_micros())?;
    let command = Command {
        form,
        statements,
        keyspace: keyspace.map(str::to_owned),
        consistency: execution.options.consistency,
        serial_consistency: execution.options.serial_consistency,
        timestamp_micros: execution.timestamp_micros(),
        now_secs: execution.options.now_secs,
        seed: execution.store.time_uuid(),
        function_results: execution.calls.take_noted(),
    };
    commands.execute(&command, reason, &partitions).map(Some)
}
