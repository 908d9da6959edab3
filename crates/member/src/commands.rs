//! Commands: they are executed at their place in the log, and answered with the outcome of a replica.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::unbounded;
use ilion_cluster::Feature;
use ilion_commitlog::{AppendError, Kind, Origin};
use ilion_query::{BeginCommand, Command, Commands, Error, Executed, Reason, StoreError};
use ilion_rows::DecoratedKey;
use ilion_schema::TableId;

use crate::asking::check_size;
use crate::forward::{self, Answered, Handed, NotHanded};
use crate::pending::{CommandDone, Outcome, PendingCommand, no_outcome};
use crate::sender::Unsent;
use crate::settling::{of_append, unknown};
use crate::shared::{Known, Shared};
use crate::waiting::receive_until;
use crate::writes::{LogWrites, tablet_of};

impl LogWrites {
    /// Refuses a command that members of an older version could not read.
    fn check_level(&self, command: &Command) -> Result<(), Error> {
        let has_results = !command.function_results.is_empty();
        let state = self.shared.know(|known| known.state.clone());
        match state {
            Some(state) if has_results && !state.has(Feature::FunctionResults) => {
                Err(Error::Invalid(format!(
                    "A statement with a condition, a counter or a position in a list cannot call user-defined functions yet: the cluster \
                     has feature level {}, and {} is needed. It gets it when all of its nodes are upgraded",
                    state.level,
                    Feature::FunctionResults.level()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Waits until this node has adopted a newer schema than this, so that what was overtaken by it can be tried again. Returns its epoch;
    /// `None` if it was not adopted in time.
    fn wait_for_newer_schema(&self, epoch: u64, ends_nanos: u64) -> Option<u64> {
        let is_newer = |known: &Known| {
            let adopted = known.topology.as_ref().map(|topology| topology.schema_epoch());
            adopted.filter(|adopted| *adopted > epoch)
        };
        let newer = self.shared.wait_until(ends_nanos, is_newer);
        if newer.is_none() {
            tracing::debug!(
                epoch,
                "the schema that has overtaken a statement is not adopted in time"
            );
        }
        newer
    }

    /// Executes a command at its place in the log of one tablet. The outer error is that of the log.
    fn execute_at(&self, unsent: Unsent) -> Result<Outcome, StoreError> {
        let ends_nanos = unsent.ends_nanos;
        let (sender, answer) = unbounded();
        begin_at(
            &self.shared,
            unsent,
            Box::new(move |answered| drop(sender.send(answered))),
        );
        let answered = receive_until(&self.shared, &answer, ends_nanos);
        answered.unwrap_or_else(|_| Err(no_outcome())).map_err(of_append)
    }

    /// Makes a replica of the tablet execute a command, since this node is none. The replica sends the record, so it gets the outcome.
    fn hand_over(&self, unsent: Unsent) -> Result<Outcome, StoreError> {
        let (log, ends_nanos) = (unsent.log, unsent.ends_nanos);
        let own = self.shared.know(|known| known.node);
        for node in self.shared.replicas_of(log) {
            if Some(node) == own {
                continue;
            }
            let handed = Handed {
                tablet: log,
                is_counter: unsent.kind == Kind::Counter,
                schema_epoch: unsent.schema_epoch,
                left_micros: self
                    .shared
                    .left(ends_nanos)
                    .as_micros()
                    .try_into()
                    .unwrap_or(u64::MAX),
                body: unsent.body.clone(),
            };
            let reason = match self.client.execute(node, handed.encode().into(), ends_nanos) {
                Ok(answer) => match forward::decode_answer(&answer) {
                    Ok(Answered::Executed(outcome)) => return Ok(outcome),
                    Ok(Answered::NotHere(reason)) => reason,
                    Ok(Answered::Unknown) => return Err(unknown()),
                    // It may have executed the command, so no other node may execute it.
                    Err(reason) => {
                        tracing::warn!(node, tablet = log, %reason, "the answer to a command is not understood");
                        return Err(unknown());
                    }
                },
                Err(NotHanded::Before(reason)) => reason,
                Err(NotHanded::Unknown(reason)) => {
                    tracing::warn!(node, tablet = log, %reason, "the outcome of a command is unknown");
                    return Err(unknown());
                }
            };
            tracing::debug!(node, tablet = log, %reason, "a command is handed to another node");
        }
        Err(StoreError::Unavailable {
            required: 1,
            alive: 0,
        })
    }

    /// Executes a command for another node. Returns the bytes of its answer.
    pub fn execute_for(&self, request: &Bytes) -> Vec<u8> {
        let answered = match Handed::decode(request) {
            Err(error) => Answered::NotHere(format!("a command that this node does not know {error}")),
            Ok(handed) if !self.shared.progress.is_ready(handed.tablet) => {
                Answered::NotHere("the node is no replica of the tablet, or not ready".to_owned())
            }
            Ok(handed) => {
                let left_nanos = handed.left_micros.saturating_mul(1000);
                let executed = self.execute_at(Unsent {
                    log: handed.tablet,
                    kind: if handed.is_counter {
                        Kind::Counter
                    } else {
                        Kind::Cas
                    },
                    schema_epoch: handed.schema_epoch,
                    body: handed.body,
                    ends_nanos: self.shared.now_nanos().saturating_add(left_nanos),
                });
                match executed {
                    Ok(outcome) => Answered::Executed(outcome),
                    Err(StoreError::WriteTimeout { .. }) => Answered::Unknown,
                    Err(error) => Answered::NotHere(error.to_string()),
                }
            }
        };
        answered.encode()
    }
}

impl Commands for LogWrites {
    fn admit_capture(&self, table: TableId) -> Result<(), StoreError> {
        Ok(self.shared.engine.admit_capture(table)?)
    }

    fn execute(
        &self,
        command: &Command,
        reason: Reason,
        partitions: &[DecoratedKey],
    ) -> Result<Executed, Error> {
        let refused = |error: StoreError| error.of_command(command.level(reason));
        self.check_level(command)?;
        let topology = self.topology().map_err(refused)?;
        let tablets: BTreeSet<u32> = partitions
            .iter()
            .map(|key| tablet_of(key, &topology))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        let kind = Kind::from(reason);
        let body = Bytes::from(command.encode());
        check_size(&self.shared, body.len()).map_err(|error| Error::Invalid(error.to_string()))?;
        let ends_nanos = self.shared.ends_nanos(self.shared.write_timeout());
        let mut schema_epoch = topology.schema_epoch();
        let mut executed = None;
        // Counters may be in several tablets: each executes its part.
        for log in tablets {
            let outcome = loop {
                let unsent = Unsent {
                    log,
                    kind,
                    schema_epoch,
                    body: body.clone(),
                    ends_nanos,
                };
                let outcome = match self.shared.progress.is_ready(log) {
                    true => self.execute_at(unsent),
                    false => self.hand_over(unsent),
                };
                if !matches!(outcome, Ok(Err(Error::Overtaken))) {
                    break outcome;
                }
                let newer = self.wait_for_newer_schema(schema_epoch, ends_nanos);
                match (newer, &executed) {
                    // Once a part is made, the statement must not be planned anew as a whole.
                    (Some(newer), Some(_)) => schema_epoch = newer,
                    _ => break outcome,
                }
            };
            executed = match (outcome, executed) {
                (Ok(Ok(made)), _) => Some(made),
                (Ok(Err(error)), None) => return Err(error),
                (Err(error), None) => return Err(refused(error)),
                (Err(unknown @ StoreError::WriteTimeout { .. }), Some(_)) => return Err(refused(unknown)),
                (Err(error), Some(_)) => return Err(refused(made_in_part(&error))),
                (Ok(Err(error)), Some(_)) => return Err(refused(made_in_part(&error))),
            };
        }
        executed.ok_or_else(|| Error::Invalid("a statement of no partition".to_owned()))
    }

    fn begin(&self, command: &Command, reason: Reason, partitions: &[DecoratedKey]) -> Option<BeginCommand> {
        self.check_level(command).ok()?;
        let topology = self.topology().ok()?;
        let mut tablets = partitions.iter().map(|key| tablet_of(key, &topology).ok());
        let log = tablets.next()??;
        if !tablets.all(|other| other == Some(log)) || !self.shared.progress.is_ready(log) {
            return None;
        }
        let body = Bytes::from(command.encode());
        check_size(&self.shared, body.len()).ok()?;
        let unsent = Unsent {
            log,
            kind: Kind::from(reason),
            schema_epoch: topology.schema_epoch(),
            body,
            ends_nanos: self.shared.ends_nanos(self.shared.write_timeout()),
        };
        let (shared, level) = (self.shared.clone(), command.level(reason));
        Some(Box::new(move |done| {
            let answered = move |answered: Result<Outcome, AppendError>| {
                done(answered.unwrap_or_else(|error| Err(of_append(error).of_command(level))));
            };
            begin_at(&shared, unsent, Box::new(answered));
        }))
    }
}

/// Sends a command to the log of one tablet. `done` gets the outcome of this replica, or the error of the log.
fn begin_at(shared: &Arc<Shared>, unsent: Unsent, done: CommandDone) {
    let (log, ends_nanos) = (unsent.log, unsent.ends_nanos);
    let pending = PendingCommand::new(&shared.commands, done);
    let numbered = |origin: Origin| PendingCommand::note(&pending, (log, origin.seq));
    let of_sent = pending.clone();
    let sent = move |sent: Result<u64, AppendError>| {
        // If the record is acknowledged, the outcome comes when it is applied here.
        if let Err(error) = sent {
            of_sent.settle(Err(error));
        }
    };
    match shared.sender.send(unsent, numbered, Box::new(sent)) {
        Ok(()) => shared.overdue.watch(ends_nanos, &pending),
        Err(error) => pending.settle(Err(error)),
    }
}

/// The error for a client whose statement has failed in a tablet after it was executed in an earlier one. It is a `WriteFailure`, which
/// drivers do not retry: a retry would execute the statement in the earlier tablet a second time.
fn made_in_part(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::WriteRefused(format!(
        "The statement was executed for some of its partitions, and not for the others: {error}"
    ))
}
