//! Makes commands from statements that read before they write, in a cluster.

use std::sync::Arc;

use ilion_env::parking;
use ilion_rows::DecoratedKey;
use ilion_schema::is_system_keyspace;

use crate::batch::Member;
use crate::context::{Execution, Sight};
use crate::guardrails;
use crate::plan::Plan;
use crate::planned::Planned;
use crate::write::{ModifyPlan, check_foreseen, partitions_written};
use crate::{
    BeginCommand, Command, Commands, Decided, Error, Executed, Form, Outcome, Reason, Value, WriteType,
};

/// Why a statement with these changes must be a command; `None` if it reads nothing before it writes.
pub(crate) fn reason_of<'p>(mut plans: impl Iterator<Item = &'p ModifyPlan>) -> Option<Reason> {
    plans.find_map(|plan| match plan {
        _ if plan.is_conditional() || plan.is_locking() => Some(Reason::Decides),
        _ if plan.is_counter() => Some(Reason::Counts),
        _ => None,
    })
}

/// The changes that a statement makes; empty if it is not a modification.
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
/// Its statements were prepared in different keyspaces.
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

/// Sends a statement as a command to the log, and returns its outcome. `statements` are its texts with their values, `members` its changes.
/// `None`: the statement cannot be a command, and this node executes it.
///
/// Replicas depend on nothing but the log and their data, so the limits in this node's settings are checked here.
///
/// If the request may be parked, this ends its attempt, and [`Decided`] has the outcome.
///
/// # Errors
/// A value is not possible in its place, a guardrail refuses it, or the execution fails.
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
    let tables = members.iter().map(|member| member.plan.table());
    let mut captured = tables.filter(|table| table.options.cdc);
    let admitted = captured.try_for_each(|table| commands.admit_capture(table.id));
    admitted.map_err(|error| error.of_write(execution.options.consistency, WriteType::Simple))?;
    if let Some(member) = members
        .iter()
        .find(|member| is_system_keyspace(&member.plan.table().keyspace))
    {
        return Err(Error::Invalid(format!(
            "In a cluster, tables of {} cannot be written with a condition, or at a position of a list",
            member.plan.table().keyspace
        )));
    }
    let is_masked = |member: &Member<'_>| member.execution.sight == Sight::Masked && member.plan.has_masks();
    if members.iter().any(is_masked) {
        return Err(Error::invalid(
            "A conditional write of a table with masked columns needs the permission UNMASK in a cluster",
        ));
    }
    let (partitions, is_volatile) = execution.calls.watch_volatile(|| partitions_written(members));
    let partitions = partitions?;
    if partitions.is_empty() {
        // An IN without values selects no partition.
        return Ok(Some(Executed::of(Outcome::Void)));
    }
    let reads_lists = |member: &Member<'_>| !member.plan.is_conditional() && !member.plan.is_counter();
    if partitions.len() > 1 && members.iter().all(reads_lists) {
        // Positions in lists of several partitions: no single log has all of these partitions, and a batch must not be applied in part.
        // As in Cassandra, the coordinator reads the lists.
        return Ok(None);
    }
    if is_volatile {
        return Err(Error::invalid(
            "In a cluster, the partition key of a conditional write, or of a write to a counter or to a position of a list, cannot be the \
             time or a new id (now(), uuid(), current_timestamp() and so on), since each replica executes the statement: let the client \
             choose the value",
        ));
    }
    // A function may give another result on another node, so the results of this node are logged.
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
    if execution.options.may_park
        && let Some(begin) = begin(commands, &command, reason, &partitions)
    {
        let warnings = execution.warnings.borrow().clone();
        parking::wait_for(move |done| {
            begin(Box::new(move |decided| {
                let decided = decided.map(|executed| Executed {
                    warnings: [warnings, executed.warnings].concat(),
                    ..executed
                });
                done(Box::new(Decided(decided)));
            }));
        });
        // Nobody sees it: it ends this attempt.
        return Err(Error::Overloaded(
            "the outcome of a command is not known yet".to_owned(),
        ));
    }
    commands.execute(&command, reason, &partitions).map(Some)
}

/// What logs the command while its request is parked; `None` if the request must wait on its thread.
fn begin(
    commands: &dyn Commands,
    command: &Command,
    reason: Reason,
    partitions: &[DecoratedKey],
) -> Option<BeginCommand> {
    // The request is not executed again: it is answered with the outcome.
    let _may_park = parking::may_park();
    match parking::may_wait() {
        true => commands.begin(command, reason, partitions),
        false => None,
    }
}
