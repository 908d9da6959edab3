//! [`Reads`]: the reads of one statement, and what they share.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::{Node, Strategy};
use ilion_engine::TabletPosition;
use ilion_env::{parking, patience};
use ilion_query::{Store, StoreError, Wanted};
use ilion_rows::{KeyRange, ReadError};
use ilion_schema::{TableId, TableSchema, is_system_keyspace};
use ilion_types::Partitioner;
use parking_lot::Mutex;

use crate::answer::{Answer, ReplicaError, TIMED_OUT};
use crate::barriers::{Applied, BarrierError};
use crate::client::{Pending, ReplicaClient};
use crate::command::{PageSize, Read, ReadCommand};
use crate::level::Level;
use crate::membership::{Membership, Topology, Versions};
use crate::route::{Chooser, Failures, SubRange};
use crate::serve::ReplicaReader;
use crate::speculation::Latencies;

/// How a coordinator asks replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The first page of a range or partition. Each later one is four times as large.
    pub page_first: PageSize,
    /// The largest page.
    pub page_max: PageSize,
    /// Maximum number of ranges that are asked at the same time.
    pub ranges_max: usize,
    /// A read without a deadline of its own ends after this time.
    pub timeout: Duration,
    /// Another replica is asked if one has not answered within this time.
    pub replica_timeout: Duration,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            page_first: PageSize {
                rows: 256,
                bytes: 64 << 10,
            },
            page_max: PageSize {
                rows: 8192,
                bytes: 1 << 20,
            },
            ranges_max: 8,
            timeout: Duration::from_secs(10),
            replica_timeout: Duration::from_secs(2),
        }
    }
}

/// What all statements of a coordinator share.
pub(crate) struct Shared {
    /// This node as a replica.
    pub replica: ReplicaReader,
    pub client: Arc<dyn ReplicaClient>,
    pub options: ReadOptions,
    /// How long other nodes took for pages, by table.
    pub latencies: Mutex<HashMap<TableId, Latencies>>,
}

/// The reads of a statement.
#[derive(Clone)]
pub(crate) struct Reads {
    pub shared: Arc<Shared>,
    pub level: Level,
    /// How much the statement wants at most.
    pub wanted: Wanted,
}

impl Shared {
    /// This node's own data.
    pub fn local(&self) -> &dyn Store {
        &*self.replica.store
    }

    pub fn membership(&self) -> &dyn Membership {
        &*self.replica.membership
    }

    /// The ring, if the data of a table is spread over nodes. `None`: each node has its own data of it, so the local store reads.
    ///
    /// # Errors
    /// This node does not know yet where the replicas are.
    pub fn spread(&self, table: &TableSchema) -> Result<Option<Arc<Topology>>, ReadError> {
        if table.partitioner(self.local().partitioner()) != Partitioner::Murmur3 {
            return Ok(None);
        }
        let topology = self.membership().topology();
        match topology.replicas(&table.keyspace, 0) {
            Some(_) => Ok(Some(topology)),
            None if topology.strategy(&table.keyspace).is_some() || is_system_keyspace(&table.keyspace) => {
                Ok(None)
            }
            None => Err(ReadError::Unavailable {
                required: 1,
                alive: 0,
            }),
        }
    }
}

impl Reads {
    pub fn now_nanos(&self) -> u64 {
        self.shared.local().monotonic_nanos()
    }

    /// When the statement ends: the deadline of the thread, or `timeout` from now if the thread has none.
    pub fn deadline_nanos(&self) -> u64 {
        patience::ends_nanos().unwrap_or_else(|| {
            self.now_nanos()
                .saturating_add(nanos(self.shared.options.timeout))
        })
    }

    /// Calls `decide` with a chooser for the newest ring that this node knows.
    pub fn choose<T>(
        &self,
        table: &TableSchema,
        failures: &Failures,
        decide: impl FnOnce(&Chooser<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let topology = self.shared.membership().topology();
        decide(&Chooser {
            membership: self.shared.membership(),
            topology: &topology,
            keyspace: &table.keyspace,
            level: self.level,
            failures,
        })
    }

    /// The parts of a range, one for each replica and stretch of tablets, without replicas that failed.
    pub fn parts(
        &self,
        table: &TableSchema,
        range: &KeyRange,
        failures: &Failures,
    ) -> Result<Vec<SubRange>, ReadError> {
        self.choose(table, failures, |chooser| {
            let (mut parts, mut rest) = (Vec::new(), Some(range.clone()));
            while let Some(range) = rest.take() {
                if let Some((part, left)) = chooser.first_part(&range, u32::MAX)? {
                    parts.push(part);
                    rest = left;
                }
            }
            Ok(parts)
        })
    }

    /// Notes that a replica did not answer. A replica that refused may be right: if this node has learned of another ring or schema since
    /// it planned the read, the replica may be asked again after the read is planned anew.
    pub fn lose(&self, failures: &mut Failures, node: Node, versions: Versions, error: ReplicaError) {
        let is_outdated = || self.shared.membership().topology().versions() != versions;
        if matches!(error, ReplicaError::Refused(_)) && is_outdated() {
            return;
        }
        failures.insert(node, error);
    }

    pub fn is_here(&self, node: Node) -> bool {
        node == self.shared.membership().node()
    }

    /// Whether reads of a table at the level have barriers.
    pub fn has_barrier(&self, table: &TableSchema) -> bool {
        let topology = self.shared.membership().topology();
        let factor = topology.strategy(&table.keyspace).map_or(1, Strategy::factor);
        self.level.has_barrier(factor)
    }

    /// The records that a replica must have applied before it answers; empty if the level has no barrier.
    pub fn barrier(
        &self,
        table: &TableSchema,
        tablets: Range<u32>,
    ) -> Result<Vec<TabletPosition>, ReadError> {
        if !self.has_barrier(table) {
            return Ok(Vec::new());
        }
        let tablets: Vec<u32> = tablets.collect();
        let raised = self
            .shared
            .replica
            .barriers
            .raise(&tablets, self.deadline_nanos());
        raised.map_err(|error| self.of_barrier(error, table, &tablets))
    }

    /// Waits until this node may read tablets of its own at the level. The outer error ends the statement. After the inner error another
    /// replica may be asked: this node does not follow a tablet any more, and planned the read before it knew.
    pub fn wait_here(
        &self,
        table: &TableSchema,
        tablets: Range<u32>,
    ) -> Result<Result<(), ReplicaError>, ReadError> {
        let reached = self.barrier(table, tablets)?;
        if reached.is_empty() {
            return Ok(Ok(()));
        }
        let barriers = &self.shared.replica.barriers;
        of_applied(barriers.wait_applied(&reached, self.deadline_nanos()))
    }

    /// As [`Self::wait_here`], for one tablet. If the request can be parked, its thread does not wait: the error then ends only this
    /// attempt, and the next one finds what came of the barrier.
    pub fn wait_here_parked(
        &self,
        table: &TableSchema,
        tablet: u32,
    ) -> Result<Result<(), ReplicaError>, ReadError> {
        if !self.has_barrier(table) {
            return Ok(Ok(()));
        }
        let outcome = parking::outcome::<(u32, Applied)>().filter(|(of, _)| *of == tablet);
        if let Some((_, applied)) = outcome {
            return of_applied(applied.map_err(|error| self.of_barrier(error, table, &[tablet]))?);
        }
        if !parking::may_wait() {
            return self.wait_here(table, tablet..tablet + 1);
        }
        let (barriers, deadline_nanos) = (self.shared.replica.barriers.clone(), self.deadline_nanos());
        parking::wait_for(move |done| {
            let applied = move |applied: Applied| done(Box::new((tablet, applied)));
            barriers.on_applied(tablet, deadline_nanos, Box::new(applied));
        });
        Err(ReadError::Aborted(TIMED_OUT))
    }

    fn of_barrier(&self, error: BarrierError, table: &TableSchema, tablets: &[u32]) -> ReadError {
        match error {
            BarrierError::TimedOut => ReadError::Aborted(TIMED_OUT),
            BarrierError::Unavailable(reason) => {
                tracing::warn!(reason, "a read got no barrier");
                let first = tablets.first().copied().unwrap_or_default();
                let failures = Failures::new();
                let unavailable = self.choose(table, &failures, |chooser| Ok(chooser.unavailable(first)));
                unavailable.unwrap_or_else(|error| error)
            }
        }
    }

    /// The error of a read of this node's own data.
    pub fn of_local(&self, error: StoreError) -> ReadError {
        match error {
            StoreError::Read(error) => error,
            other => ReadError::Replica {
                node: self.shared.membership().node(),
                message: other.to_string(),
            },
        }
    }

    /// The first page of a part. It has room for the rows that are wanted, each with a partition of its own.
    pub fn page_first(&self) -> PageSize {
        let first = self.shared.options.page_first;
        let entries = self.wanted.rows.map(|rows| rows.saturating_mul(2));
        PageSize {
            rows: entries.map_or(first.rows, |entries| entries.clamp(1, first.rows)),
            ..first
        }
    }

    /// Sends a read to another node.
    pub fn send(
        &self,
        node: Node,
        table: TableId,
        applied: Vec<TabletPosition>,
        page: PageSize,
        read: Read,
    ) -> Box<dyn Pending> {
        let topology = self.shared.membership().topology();
        let left = self.deadline_nanos().saturating_sub(self.now_nanos());
        let rows_per_partition = match read {
            Read::Partition { .. } | Read::Range { .. } => self.wanted.rows_per_partition,
            Read::Search { .. } | Read::Nearest { .. } | Read::Estimate { .. } => None,
        };
        let command = ReadCommand {
            table,
            schema_epoch: topology.schema_epoch(),
            ring_version: topology.ring_version(),
            time_left_micros: left.min(nanos(self.shared.options.replica_timeout)) / 1000,
            applied,
            page,
            rows_per_partition,
            read,
        };
        match self.is_here(node) {
            true => Box::new(Here {
                shared: self.shared.clone(),
                command,
            }),
            false => {
                parking::stay();
                self.shared.client.send(node, command)
            }
        }
    }

    /// Waits for an answer. The outer error ends the statement: its time is over. After the inner error another replica may be asked.
    ///
    /// A replica that is slow is given up here after `replica_timeout`.
    pub fn wait(&self, pending: Box<dyn Pending>) -> Result<Result<Answer, ReplicaError>, ReadError> {
        let (now, ends) = (self.now_nanos(), self.deadline_nanos());
        if now >= ends {
            return Err(ReadError::Aborted(TIMED_OUT));
        }
        let until = now
            .saturating_add(nanos(self.shared.options.replica_timeout))
            .min(ends);
        let answer = pending.wait(until);
        if answer.is_err() && self.now_nanos() >= ends {
            return Err(ReadError::Aborted(TIMED_OUT));
        }
        Ok(answer)
    }
}

/// A read that this node asks of itself.
struct Here {
    shared: Arc<Shared>,
    command: ReadCommand,
}

impl Pending for Here {
    fn wait(self: Box<Self>, _deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        self.shared.replica.serve(&self.command)
    }
}

fn of_applied(applied: Result<(), BarrierError>) -> Result<Result<(), ReplicaError>, ReadError> {
    match applied {
        Ok(()) => Ok(Ok(())),
        Err(BarrierError::Unavailable(reason)) => Ok(Err(ReplicaError::Refused(reason))),
        Err(BarrierError::TimedOut) => Err(ReadError::Aborted(TIMED_OUT)),
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
