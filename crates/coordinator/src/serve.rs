//! [`ReplicaReader`]: answers the commands of coordinators from this node's own data.
//!
//! An answer has one page. Memory is bounded by the page plus one row or one candidate.

mod partitions;

use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Tablets;
use ilion_index::{Candidates, Estimate, Place};
use ilion_query::{Store, StoreError};
use ilion_rows::{ClusteringComparator, DecoratedKey, KeyRange, ReadError};
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError, encode_answer};
use crate::barriers::{BarrierError, Barriers};
use crate::command::{PageSize, Read, ReadCommand, Resume, SearchFrom};
use crate::membership::{Membership, Topology};
use crate::open::{Span, open};
use crate::tablets::{tablet_of, tablets_of};

/// Maximum memory of a page in bytes, whatever the coordinator asks for.
const PAGE_BYTES_MAX: u32 = 16 << 20;

/// The clock of a coordinator may be ahead of this node's by so much. Values that expire within this time do not show that a row lives, so
/// that a read may touch more SSTables.
const CLOCK_AHEAD_SECS_MAX: u32 = 3600;

/// A node as a replica.
pub struct ReplicaReader {
    /// Its own data.
    pub store: Arc<dyn Store>,
    /// The node's knowledge of the cluster.
    pub membership: Arc<dyn Membership>,
    /// How far it has applied.
    pub barriers: Arc<dyn Barriers>,
}

impl ReplicaReader {
    /// The bytes of the answer to the bytes of a command. See [`Self::serve`].
    pub fn answer(&self, command: &Bytes) -> Vec<u8> {
        let unknown = |error| refused(&format!("a command that it does not know: {error}"));
        let answer = ReadCommand::decode(command).map_err(unknown);
        encode_answer(&answer.and_then(|command| self.serve(&command)))
    }

    /// Answers a command. The caller sets the deadline of this thread (`env::patience`), if the command comes from another node.
    ///
    /// # Errors
    /// See [`ReplicaError`].
    pub fn serve(&self, command: &ReadCommand) -> Result<Answer, ReplicaError> {
        let deadline_nanos = self.deadline(command);
        let (ring_version, schema_epoch) = (command.ring_version, command.schema_epoch);
        let topology = self
            .membership
            .topology_at(ring_version, schema_epoch, deadline_nanos);
        let schema = self.store.schema();
        let table = schema.table_by_id(command.table);
        let table = table.ok_or_else(|| refused("the table does not exist here"))?;
        self.check(command, &topology, table)?;
        if !command.applied.is_empty() {
            self.barriers
                .wait_applied(&command.applied, deadline_nanos)
                .map_err(|error| match error {
                    BarrierError::TimedOut => ReplicaError::TimedOut,
                    BarrierError::Unavailable(reason) => ReplicaError::Refused(reason),
                })?;
        }
        let serving = Serving {
            replica: self,
            table,
            topology: &topology,
            page: PageSize {
                rows: command.page.rows.max(1),
                bytes: command.page.bytes.min(PAGE_BYTES_MAX),
            },
            // Rows of compact tables live by other rules.
            rows_per_partition: command.rows_per_partition.filter(|_| !table.is_compact()),
            deadline_nanos,
        };
        serving.read(&command.read)
    }

    fn deadline(&self, command: &ReadCommand) -> u64 {
        let left = command.time_left_micros.saturating_mul(1000);
        self.store.monotonic_nanos().saturating_add(left)
    }

    /// Refuses what this node must not answer.
    fn check(
        &self,
        command: &ReadCommand,
        topology: &Topology,
        table: &TableSchema,
    ) -> Result<(), ReplicaError> {
        if topology.ring_version() < command.ring_version {
            return Err(refused("it knows an older ring only"));
        }
        if topology.schema_epoch() < command.schema_epoch {
            return Err(refused("it knows an older schema only"));
        }
        let tablets = command.read.tablets(topology.tablets());
        for tablet in tablets.ok_or_else(|| refused("the ranges of the read are none"))? {
            let replicas = topology.replicas(&table.keyspace, tablet);
            if !replicas.is_some_and(|replicas| replicas.contains(&self.membership.node())) {
                return Err(refused("it is no replica of the tablet"));
            }
            if !self.membership.is_ready(tablet) {
                return Err(refused("its copy of the tablet is not ready"));
            }
        }
        Ok(())
    }
}

fn refused(reason: &str) -> ReplicaError {
    ReplicaError::Refused(reason.to_owned())
}

impl Read {
    /// The tablets that it reads. `None` if its ranges overlap, or if it resumes outside its range.
    fn tablets(&self, tablets: Tablets) -> Option<Vec<u32>> {
        let ranges = match self {
            Self::Partition { key, .. } => return Some(tablet_of(key, tablets).into_iter().collect()),
            Self::Range { range, resume, .. } => {
                let is_inside = |resume: &Resume| range.contains(resume.key());
                if !resume.as_ref().is_none_or(is_inside) {
                    return None;
                }
                std::slice::from_ref(range)
            }
            Self::Search { range, .. } => std::slice::from_ref(range),
            Self::Nearest { ranges, .. } | Self::Estimate { ranges, .. } => ranges,
        };
        let of = |range: &KeyRange| tablets_of(range, tablets).unwrap_or(0..0);
        // Two ranges that meet inside a tablet both have it.
        let count_max = 2 * tablets.count() as usize;
        let touched: Vec<u32> = ranges.iter().flat_map(of).take(count_max + 1).collect();
        (touched.len() <= count_max).then_some(touched)
    }
}

/// The latest time that the clock of a coordinator may show, seconds since 1970.
fn latest_secs(store: &dyn Store) -> u32 {
    let now_secs = u32::try_from(store.now_micros() / 1_000_000).unwrap_or(0);
    now_secs.saturating_add(CLOCK_AHEAD_SECS_MAX)
}

/// A command that is being answered.
struct Serving<'r> {
    replica: &'r ReplicaReader,
    table: &'r Arc<TableSchema>,
    topology: &'r Topology,
    page: PageSize,
    rows_per_partition: Option<u32>,
    deadline_nanos: u64,
}

impl Serving<'_> {
    fn read(&self, read: &Read) -> Result<Answer, ReplicaError> {
        let store = &*self.replica.store;
        match read {
            Read::Partition { key, filter, resume } => {
                let mut filter = filter.resolve(self.table).map_err(refused)?;
                filter.now_secs = Some(latest_secs(store));
                let resume = resume.clone().map(|bound| Resume::Within(key.clone(), bound));
                let span = Span::Partition(key.clone());
                let cursor = open(store, self.table, &span, &filter, resume.as_ref())?;
                self.partitions(cursor, filter.reversed)
            }
            Read::Range {
                range,
                filter,
                resume,
            } => {
                let filter = filter.resolve(self.table).map_err(refused)?;
                let span = Span::Range(range.clone());
                let cursor = open(store, self.table, &span, &filter, resume.as_ref())?;
                self.partitions(cursor, filter.reversed)
            }
            Read::Search {
                index,
                predicate,
                range,
                from,
            } => {
                let candidates = store.index_search(self.table, index, predicate, range)?;
                self.candidates(candidates, range, from.as_ref())
            }
            Read::Nearest {
                index,
                vector,
                ranges,
                skip,
            } => self.nearest(index, vector, ranges, *skip),
            Read::Estimate {
                index,
                predicate,
                ranges,
            } => {
                let whole = store.index_estimate(self.table, index, predicate)?;
                Ok(Answer::Estimate(self.part_of(whole, ranges)))
            }
        }
    }

    fn is_full(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.page.rows as usize || bytes >= self.page.bytes as usize
    }

    /// Fails once the deadline has passed. Called once for several rows.
    fn check_deadline(&self) -> Result<(), ReplicaError> {
        match self.replica.store.monotonic_nanos() >= self.deadline_nanos {
            true => Err(ReplicaError::TimedOut),
            false => Ok(()),
        }
    }

    fn candidates(
        &self,
        mut candidates: Box<dyn Candidates>,
        range: &KeyRange,
        from: Option<&SearchFrom>,
    ) -> Result<Answer, ReplicaError> {
        let comparator = ClusteringComparator::of(self.table);
        let is_passed = |place: &Place| from.is_some_and(|from| from.passes(place, &comparator));
        if let Some(SearchFrom::At(place) | SearchFrom::Behind(place)) = from {
            if !has_clustering(place, &comparator) {
                return Err(refused("places have the clusterings of the table"));
            }
            candidates.seek(place)?;
        } else if let Some(first) = Place::first_of(&range.start) {
            candidates.seek(&first)?;
        }
        let (mut places, mut bytes) = (Vec::new(), 0);
        while let Some(candidate) = candidates.next()? {
            let place = candidate.place;
            if range.end.compare(&place.key).is_lt() {
                break;
            }
            if !range.contains(&place.key) || is_passed(&place) {
                continue;
            }
            bytes += size_of_place(&place);
            places.push(place);
            if self.is_full(places.len(), bytes) {
                let is_last = false;
                return Ok(Answer::Candidates { places, is_last });
            }
        }
        let is_last = true;
        Ok(Answer::Candidates { places, is_last })
    }

    fn nearest(
        &self,
        index: &str,
        vector: &[f32],
        ranges: &[KeyRange],
        skip: u32,
    ) -> Result<Answer, ReplicaError> {
        let mut ranked = self.replica.store.index_nearest(self.table, index, vector)?;
        let (mut places, mut bytes, mut left_out) = (Vec::new(), 0, 0);
        while let Some((place, score)) = ranked.next()? {
            if !ranges.iter().any(|range| range.contains(&place.key)) {
                continue;
            }
            if left_out < skip {
                left_out += 1;
                continue;
            }
            bytes += size_of_place(&place);
            places.push((place, score));
            if self.is_full(places.len(), bytes) {
                let is_last = false;
                return Ok(Answer::Ranked { places, is_last });
            }
        }
        let is_last = true;
        Ok(Answer::Ranked { places, is_last })
    }

    /// The share of an estimate over all of this node's tablets that falls to those of these ranges.
    fn part_of(&self, whole: Estimate, ranges: &[KeyRange]) -> Estimate {
        let tablets = self.topology.tablets();
        let of = |range: &KeyRange| tablets_of(range, tablets).unwrap_or(0..0);
        let asked: u64 = ranges.iter().map(|range| of(range).len() as u64).sum();
        let node = self.replica.membership.node();
        let has = |tablet: &u32| {
            let replicas = self.topology.replicas(&self.table.keyspace, *tablet);
            replicas.is_some_and(|replicas| replicas.contains(&node))
        };
        let all = (0..tablets.count()).filter(has).count() as u64;
        if all <= asked {
            return whole;
        }
        let rows = u128::from(whole.rows) * u128::from(asked) / u128::from(all);
        Estimate {
            rows: u64::try_from(rows).unwrap_or(u64::MAX),
            ..whole
        }
    }
}

/// True if the place's clustering has the table's columns.
pub(crate) fn has_clustering(place: &Place, comparator: &ClusteringComparator) -> bool {
    match &place.row {
        ilion_index::RowPart::Static => true,
        ilion_index::RowPart::Row(clustering) => clustering.values().len() == comparator.len(),
    }
}

fn size_of_place(place: &Place) -> usize {
    let key = |key: &DecoratedKey| key.size_bytes();
    size_of::<Place>()
        + key(&place.key)
        + match &place.row {
            ilion_index::RowPart::Static => 0,
            ilion_index::RowPart::Row(clustering) => clustering.size_bytes(),
        }
}

impl From<StoreError> for ReplicaError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Read(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<ReadError> for ReplicaError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Aborted(_) => Self::TimedOut,
            other => Self::Failed(other.to_string()),
        }
    }
}
