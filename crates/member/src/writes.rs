//! The write path of a member: mutations become records, and are answered when they are acknowledged and applied here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{Change, Feature, Refusal, SchemaRecord, Strategy};
use ilion_commitlog::AppendError;
use ilion_coordinator::{Topology, Writes};
use ilion_query::{Awaited, Commands, PartitionGuard, StoreError};
use ilion_replica::FencedChange;
use ilion_rows::{DecoratedKey, Mutation, encode_mutation};
use ilion_schema::{Applied, Diff, Schema, SchemaChange, TableId, is_system_keyspace};

use crate::asking::{check_size, log_and_read};
use crate::forward::MemberClient;
use crate::logged::{self, TabletBatch, kind_of};
use crate::meta::Asked;
use crate::pending::PendingWrite;
use crate::sender::Unsent;
use crate::settling::{of_append, settle_when_applied};
use crate::shared::{Known, Shared, nanos};

/// How many times a change of the schema is checked again because another one came first.
const SCHEMA_TRIES: u32 = 20;

/// How long the answer to a change of replication waits for copies of tablets.
const COPIES_AWAITED: Duration = Duration::from_secs(2);

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
    pub fn topology(&self) -> Result<Arc<Topology>, StoreError> {
        let known = self.shared.know(|known| match &known.halted {
            Some(reason) => Err(StoreError::WriteRefused(reason.clone())),
            None => Ok(known.topology.clone()),
        })?;
        known.ok_or_else(|| StoreError::WriteRefused("this node has not joined the cluster yet".to_owned()))
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
        let engine = &self.shared.engine;
        engine.check_loggable(mutations)?;
        let mut captured = mutations.iter().filter(|mutation| mutation.table.options.cdc);
        captured.try_for_each(|mutation| engine.admit_capture(mutation.table.id))?;
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
    /// adopted it. `check` gets the schema and its epoch, and returns `None` if there is nothing to change.
    fn change<T>(
        &self,
        check: impl Fn(&Schema, u64) -> Result<Option<Checked<T>>, StoreError>,
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
            let Some(checked) = check(&self.shared.local.schema(), checked_at)? else {
                return Ok(None);
            };
            let is_placed = checked.keyspaces.iter().any(|(_, strategy)| strategy.is_some());
            let record = SchemaRecord {
                checked_at,
                keyspaces: checked.keyspaces,
                body: checked.change.encode().into(),
            };
            match log_and_read(&self.shared, Change::Schema(record), ends_nanos)? {
                Asked::Done(epoch) => {
                    self.wait_for_schema(epoch, ends_nanos)?;
                    if is_placed {
                        self.wait_for_copies(ends_nanos);
                    }
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

    /// Waits until this node has copied the tablets that a new keyspace gave it, so that its client can read the keyspace at once: a node
    /// copies a tablet with the data of all keyspaces. Copies that take longer go on.
    fn wait_for_copies(&self, ends_nanos: u64) {
        let ends_nanos = ends_nanos.min(self.shared.now_nanos() + nanos(COPIES_AWAITED));
        self.shared
            .wait_until(ends_nanos, |known| (known.lacking == 0).then_some(()));
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

    fn roles_version(&self) -> u64 {
        self.shared.know(|known| known.adopted)
    }

    fn change_roles(&self, mutations: &[Mutation], version: Option<u64>) -> Result<(), StoreError> {
        let has_roles = |known: &Known| known.state.as_ref().map(|state| state.has(Feature::Roles));
        if self.shared.know(has_roles) == Some(false) {
            return Err(StoreError::Invalid(
                "not all nodes of the cluster have a version with roles yet: upgrade them first".to_owned(),
            ));
        }
        self.shared.engine.check_loggable(mutations)?;
        let mut body = Vec::new();
        for mutation in mutations {
            encode_mutation(mutation, &mut body);
        }
        let change = FencedChange::Roles(body.into());
        let check = |_: &Schema, checked_at| {
            if version.is_some_and(|version| version != checked_at) {
                return Err(StoreError::Overtaken);
            }
            Ok(Some(Checked {
                change: change.clone(),
                keyspaces: Vec::new(),
                made: (),
            }))
        };
        self.change(check).map(drop)
    }

    fn truncate(&self, table: TableId) -> Result<(), StoreError> {
        self.shared.engine.admit_capture(table)?;
        let check = |schema: &Schema, _| match schema.table_by_id(table) {
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
        let check = |schema: &Schema, _| {
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

pub(crate) fn tablet_of(key: &DecoratedKey, topology: &Topology) -> Result<u32, StoreError> {
    let token = key.token.murmur3();
    let token = token
        .ok_or_else(|| StoreError::Internal("a table of another partitioner is not in a ring".to_owned()))?;
    Ok(topology.tablets().of(token))
}
