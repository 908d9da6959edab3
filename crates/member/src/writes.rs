//! The write path of a member: mutations and commands become records, and are answered when they are acknowledged and applied here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::{RecvTimeoutError, unbounded};
use ilion_cluster::{Change, Feature, Refusal, SchemaRecord, Strategy};
use ilion_commitlog::{AppendError, Kind, Origin};
use ilion_coordinator::{Topology, Writes};
use ilion_query::{Awaited, Command, Commands, Error, Executed, PartitionGuard, Reason, StoreError};
use ilion_replica::FencedChange;
use ilion_rows::{DecoratedKey, Mutation, encode_mutation};
use ilion_schema::{Applied, Diff, Schema, SchemaChange, TableId, is_system_keyspace};

use crate::asking::{check_size, log_and_read};
use crate::forward::{self, Answered, Handed, MemberClient, NotHanded};
use crate::logged::{self, TabletBatch, kind_of};
use crate::meta::Asked;
use crate::pending::PendingWrite;
use crate::sender::Unsent;
use crate::settling::{of_append, settle_when_applied, unknown};
use crate::shared::{Known, Outcome, Shared, nanos};
use crate::waiting::receive_until;

/// How many times a change of the schema is checked again because another one came first.
const SCHEMA_TRIES: u32 = 20;

/// The tablet and the length of a part of a logged batch, and a share of their count.
const PART_BYTES: usize = 4 + 4 + 2;

/// The write path of a node.
pub(crate) struct LogWrites {
    pub shared: Arc<Shared>,
    pub client: Arc<dyn MemberClient>,
}

/// A change that the newest schema allows.
struct Checked<T> {
    change: FencedChange,
    /// The keyspaces whose replication it sets, with the new one; `None` if it drops the keyspace.
    keyspaces: Keyspaces,
    /// What the caller gets once it is made.
    made: T,
}

type Keyspaces = Vec<(String, Option<Strategy>)>;

impl LogWrites {
    fn topology(&self) -> Result<Arc<Topology>, StoreError> {
        let known = self.shared.know(|known| match &known.halted {
            Some(reason) => Err(StoreError::WriteRefused(reason.clone())),
            None => Ok(known.topology.clone()),
        })?;
        known.ok_or_else(|| StoreError::WriteRefused("this node has not joined the cluster yet".to_owned()))
    }

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

    /// Sends a record of a write. It is settled once it is acknowledged, and applied here if this node is a replica.
    fn send(&self, unsent: Unsent, write: &Arc<PendingWrite>) {
        let (shared, log, of_done) = (self.shared.clone(), unsent.log, write.clone());
        let done = move |sent: Result<u64, AppendError>| match sent {
            Err(error) => of_done.settle(Err(of_append(error))),
            Ok(offset) => settle_when_applied(&shared, &of_done, log, offset),
        };
        if let Err(error) = self.shared.sender.send(unsent, |_| {}, Box::new(done)) {
            write.settle(Err(of_append(error)));
        }
    }

    /// Writes mutations. `is_logged`: all or none of them.
    fn write(&self, mutations: &[Mutation], is_logged: bool) -> Result<Option<Awaited>, StoreError> {
        let topology = self.topology()?;
        self.shared.engine.check_loggable(mutations)?;
        let schema_epoch = topology.schema_epoch();
        let ends_nanos = self.shared.ends_nanos(self.shared.write_timeout());
        let mut bodies: BTreeMap<u32, (Vec<u8>, u32)> = BTreeMap::new();
        for mutation in mutations {
            let tablet = tablet_of(&mutation.key, &topology)?;
            let (body, count) = bodies.entry(tablet).or_default();
            encode_mutation(mutation, body);
            *count += 1;
        }
        let is_spread = is_logged && bodies.len() > 1;
        match is_spread {
            true => check_size(
                &self.shared,
                bodies.values().map(|(body, _)| body.len() + PART_BYTES).sum(),
            )?,
            false => bodies
                .values()
                .try_for_each(|(body, _)| check_size(&self.shared, body.len()))?,
        }
        let write = PendingWrite::new(bodies.len());
        self.shared.overdue.watch(ends_nanos, &write);
        let parts = bodies
            .into_iter()
            .map(|(tablet, (body, count))| (tablet, (Bytes::from(body), count)));
        let parts: BTreeMap<u32, TabletBatch> = parts.collect();
        if is_spread {
            logged::send(&self.shared, schema_epoch, &parts, &write, ends_nanos).map_err(of_append)?;
            return Ok(Some(Awaited::cluster(write)));
        }
        for (log, (body, mutations)) in parts {
            let unsent = Unsent {
                log,
                kind: kind_of(mutations),
                schema_epoch,
                body,
                ends_nanos,
            };
            self.send(unsent, &write);
        }
        Ok(Some(Awaited::cluster(write)))
    }

    /// Makes a change at one place of all logs: checks it against the newest schema, logs it, and waits until the nodes that are up have
    /// adopted it. `check` returns `None` if there is nothing to change.
    fn change<T>(
        &self,
        check: impl Fn(&Schema) -> Result<Option<Checked<T>>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let ends_nanos = self.shared.now_nanos() + nanos(self.shared.options.schema_timeout);
        for _ in 0..SCHEMA_TRIES {
            let is_newest = |known: &Known| {
                let epoch = known.state.as_ref().map_or(0, |state| state.schema.epoch);
                (known.adopted == epoch || known.halted.is_some()).then_some(epoch)
            };
            let newest = self.shared.wait_until(ends_nanos, is_newest);
            let Some(checked_at) = newest else {
                return Err(StoreError::WriteRefused(
                    "this node waits for an earlier change of the schema; try again".to_owned(),
                ));
            };
            self.topology()?;
            let Some(checked) = check(&self.shared.local.schema())? else {
                return Ok(None);
            };
            let record = SchemaRecord {
                checked_at,
                keyspaces: checked.keyspaces,
                body: checked.change.encode().into(),
            };
            match log_and_read(&self.shared, Change::Schema(record), ends_nanos)? {
                Asked::Done(epoch) => {
                    self.wait_for_schema(epoch, ends_nanos)?;
                    return Ok(Some(checked.made));
                }
                Asked::Refused(Refusal::SchemaMoved { .. }) => {}
                Asked::Refused(refusal) => return Err(StoreError::Invalid(refusal.to_string())),
            }
        }
        Err(StoreError::WriteRefused(
            "other changes of the schema always came first; try again".to_owned(),
        ))
    }

    /// Waits until all nodes that are up have a schema. Those that are too slow get it later.
    fn wait_for_schema(&self, epoch: u64, ends_nanos: u64) -> Result<(), StoreError> {
        let silence = self.shared.options.silence_micros();
        let here = self.shared.wait_until(ends_nanos, |known| match &known.halted {
            Some(reason) => Some(Err(StoreError::WriteRefused(reason.clone()))),
            None => (known.adopted >= epoch).then_some(Ok(())),
        });
        match here {
            Some(result) => result?,
            None => {
                return Err(of_append(AppendError::Unknown(
                    "the change is logged, and made when this node has applied what comes before it"
                        .to_owned(),
                )));
            }
        }
        let everywhere = self.shared.wait_until(ends_nanos, |known| {
            let state = known.state.as_ref()?;
            state.behind_schema(epoch, silence).next().is_none().then_some(())
        });
        if everywhere.is_none() {
            tracing::warn!(
                epoch,
                "some nodes have not adopted a change of the schema in time"
            );
        }
        Ok(())
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
        let (log, ends_nanos) = (unsent.log, unsent.ends_nanos);
        // The outcome, or the error of the log.
        let (sender, answer) = unbounded();
        let failed = sender.clone();
        let mut key = None;
        let numbered = |origin: Origin| {
            key = Some((log, origin.seq));
            self.shared.commands.lock().insert((log, origin.seq), sender);
        };
        let done = move |sent: Result<u64, AppendError>| {
            // If the record is acknowledged, the outcome comes when it is applied here.
            if let Err(error) = sent {
                drop(failed.send(Err(error)));
            }
        };
        let sent = self.shared.sender.send(unsent, numbered, Box::new(done));
        let answered = sent.and_then(|()| {
            receive_until(&self.shared, &answer, ends_nanos).unwrap_or_else(|error| {
                let reason = match error {
                    RecvTimeoutError::Timeout => "no outcome in time",
                    RecvTimeoutError::Disconnected => "the node stops",
                };
                Err(AppendError::Unknown(reason.to_owned()))
            })
        });
        if let Some(key) = key {
            self.shared.commands.lock().remove(&key);
        }
        answered.map_err(of_append)
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

impl Writes for LogWrites {
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.write(&mutations, false)
    }

    fn apply_logged(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.write(&mutations, true)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.write(&mutations, false)
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        let check = |schema: &Schema| match schema.table_by_id(table) {
            Some(_) => Ok(Some(Checked {
                change: FencedChange::Truncate(table),
                keyspaces: Vec::new(),
                made: (),
            })),
            None => Err(StoreError::Invalid(format!("table {table} does not exist"))),
        };
        self.change(check).map(drop)
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        let mut change = change.clone();
        change.give_id(|| TableId(self.shared.local.time_uuid()));
        let check = |schema: &Schema| {
            let applied = schema.apply(&change, self.shared.local.now_micros())?;
            if applied.diffs.is_empty() {
                return Ok(None);
            }
            Ok(Some(Checked {
                change: FencedChange::Schema(change.clone()),
                keyspaces: replication_of(&applied)?,
                made: applied,
            }))
        };
        self.change(check)
    }

    fn lock_partitions(&self, _partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        // Statements that read before they write are commands, so there is nothing to lock.
        Box::new(())
    }

    fn commands(&self) -> Option<&dyn Commands> {
        Some(self)
    }

    ilion_query::store_methods!(forward [shared.local]: now_micros unique_micros monotonic_nanos time_uuid random_uuid counter_id);
}

impl Commands for LogWrites {
    fn execute(
        &self,
        command: &Command,
        reason: Reason,
        partitions: &[DecoratedKey],
    ) -> Result<Executed, Error> {
        let refused = |error: StoreError| error.of_command(command, reason);
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
}

/// The error for a client whose statement has failed in a tablet after it was executed in an earlier one. It is a `WriteFailure`, which
/// drivers do not retry: a retry would execute the statement in the earlier tablet a second time.
fn made_in_part(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::WriteRefused(format!(
        "The statement was executed for some of its partitions, and not for the others: {error}"
    ))
}

/// See [`Checked::keyspaces`].
fn replication_of(applied: &Applied) -> Result<Keyspaces, StoreError> {
    let mut names = BTreeSet::new();
    for diff in &applied.diffs {
        if let Diff::Keyspace(transition) = diff {
            names.insert(transition.object().name.clone());
        }
    }
    let names = names.into_iter().filter(|name| !is_system_keyspace(name));
    names
        .map(|name| {
            let strategy = applied
                .schema
                .keyspace(&name)
                .map(|keyspace| Strategy::of(&keyspace.replication));
            let strategy = strategy
                .transpose()
                .map_err(|error| StoreError::Invalid(error.to_string()))?;
            Ok((name, strategy))
        })
        .collect()
}

fn tablet_of(key: &DecoratedKey, topology: &Topology) -> Result<u32, StoreError> {
    let token = key.token.murmur3();
    let token = token
        .ok_or_else(|| StoreError::Internal("a table of another partitioner is not in a ring".to_owned()))?;
    Ok(topology.tablets().of(token))
}
