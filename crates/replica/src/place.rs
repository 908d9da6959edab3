//! [`PlaceStore`]: the storage that a command sees when it is executed at its place in a log.
//!
//! All replicas must have the same outcome. So the clock is the log's, ids come from the command's seed, counts are those of the cluster,
//! and only partitions of the tablet exist: this node may have others by chance. What the command writes becomes part of the record: the
//! engine remembers its position.

use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Tablets;
use ilion_codec::md5;
use ilion_engine::{CounterCache, Engine, ReadSurvey, TabletPosition};
use ilion_query::{Awaited, ClusterFacts, EngineStore, PartitionGuard, Store, StoreError};
use ilion_rows::counter::CounterId;
use ilion_rows::{
    ClusteringFilter, Cursor, Decoded, DecoratedKey, KeyRange, Mutation, MutationReader, VecCursor,
    decode_mutation, encode_mutation, number_timestamps,
};
use ilion_schema::{
    AUTH_KEYSPACE, Applied, SchemaChange, TableAlteration, TableId, TableSchema, is_system_keyspace,
};
use ilion_types::{time_uuid_from_ticks, time_uuid_ticks};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::written;

/// The timestamps of rows of roles begin with this multiple of their schema epoch: above those of earlier epochs. A batch has fewer.
const ROLE_TIMESTAMPS: u64 = 1 << 20;

/// Where a command is executed, and what it may depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandContext {
    pub position: TabletPosition,
    /// The time of the record in its log.
    pub time_micros: i64,
    /// Ids are derived from it.
    pub seed: Uuid,
    /// Number of times and ids that were given so far.
    given: u32,
}

impl CommandContext {
    pub(crate) fn new(position: TabletPosition, time_micros: i64, seed: Uuid) -> Self {
        Self {
            position,
            time_micros,
            seed,
            given: 0,
        }
    }

    fn next(&mut self) -> u32 {
        self.given += 1;
        self.given
    }

    /// The next time: those of one record ascend.
    fn micros(&mut self) -> i64 {
        let given = self.next();
        self.time_micros.saturating_add(i64::from(given - 1))
    }

    /// The next version 1 UUID: that of the seed with another number in its last two bytes. The UUIDs ascend, as the elements of a list
    /// that are appended together must.
    fn time_uuid(&mut self) -> Uuid {
        let given = self.next();
        let (_, low) = self.seed.as_u64_pair();
        let number = u64::from(given) & 0xffff;
        time_uuid_from_ticks(time_uuid_ticks(&self.seed), (low & !0xffff) | number)
    }

    /// The next version 4 UUID.
    fn random_uuid(&mut self) -> Uuid {
        let mut source = self.seed.as_bytes().to_vec();
        source.extend(self.next().to_be_bytes());
        uuid::Builder::from_random_bytes(md5(&source)).into_uuid()
    }
}

/// Storage at a place in a log. One command is executed at a time.
pub(crate) struct PlaceStore {
    inner: EngineStore,
    tablets: Tablets,
    cluster: Uuid,
    place: Mutex<Option<CommandContext>>,
    /// `Some` while the schema changes: columns are dropped at this time.
    altering: Mutex<Option<i64>>,
    /// The mutations that the last command has written, as [`written`] encodes them.
    written: Mutex<Vec<u8>>,
    /// Why the engine refused a write of the command.
    failure: Mutex<Option<ilion_engine::Error>>,
}

impl PlaceStore {
    pub(crate) fn new(engine: Arc<Engine>, cluster: Uuid, tablets: Tablets) -> Self {
        Self {
            inner: EngineStore::new(engine, ClusterFacts::default()),
            tablets,
            cluster,
            place: Mutex::new(None),
            altering: Mutex::new(None),
            written: Mutex::default(),
            failure: Mutex::new(None),
        }
    }

    /// Why the engine refused a write since the last call.
    pub(crate) fn take_failure(&self) -> Option<ilion_engine::Error> {
        self.failure.lock().take()
    }

    /// The mutations that the last command has written, as [`written`] encodes them.
    pub(crate) fn take_written(&self) -> Vec<u8> {
        std::mem::take(&mut *self.written.lock())
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.inner.engine()
    }

    /// Executes a command at this place.
    pub(crate) fn at<T>(&self, place: CommandContext, execute: impl FnOnce() -> T) -> T {
        self.written.lock().clear();
        *self.place.lock() = Some(place);
        let executed = execute();
        *self.place.lock() = None;
        executed
    }

    /// Changes the schema.
    pub(crate) fn altering<T>(&self, time_micros: i64, alter: impl FnOnce() -> T) -> T {
        *self.altering.lock() = Some(time_micros);
        let altered = alter();
        *self.altering.lock() = None;
        altered
    }

    /// Removes all data of a table.
    pub(crate) fn empty(&self, table: TableId) -> Result<(), StoreError> {
        self.inner.truncate(table)
    }

    /// Writes rows of roles and permissions, which are the change to this schema epoch, and syncs them: the log is not read again from
    /// before an epoch that is saved as adopted.
    ///
    /// # Errors
    /// [`StoreError::Invalid`]: the mutations are damaged, or are not of `system_auth`. Any other: they cannot be written now.
    pub(crate) fn write_roles(&self, mutations: &Bytes, epoch: u64) -> Result<(), StoreError> {
        let schema = self.engine().schema();
        let resolve = |id: TableId| schema.table_by_id(id).cloned();
        let (mut reader, mut decoded) = (MutationReader::new(mutations.clone()), Vec::new());
        loop {
            match reader.next_mutation(&resolve) {
                Ok(None) => break,
                Ok(Some(Decoded::Mutation(mutation))) if mutation.table.keyspace == AUTH_KEYSPACE => {
                    decoded.push(mutation);
                }
                Ok(Some(_)) => {
                    return Err(StoreError::Invalid(format!("a table is not of {AUTH_KEYSPACE}")));
                }
                Err(error) => return Err(StoreError::Invalid(error.to_string())),
            }
        }
        let first = epoch.saturating_mul(ROLE_TIMESTAMPS);
        number_timestamps(&mut decoded, i64::try_from(first).unwrap_or(i64::MAX));
        self.engine().apply(&decoded)?;
        Ok(self.engine().sync_log()?)
    }

    fn with<T>(&self, use_place: impl FnOnce(&mut CommandContext) -> T) -> Option<T> {
        self.place.lock().as_mut().map(use_place)
    }

    fn tablet(&self) -> Option<u32> {
        self.with(|place| place.position.tablet)
    }

    /// The tablet that has a partition of any table.
    pub(crate) fn tablet_of(&self, key: &DecoratedKey) -> Option<u32> {
        key.token.murmur3().map(|token| self.tablets.of(token))
    }

    fn is_here(&self, key: &DecoratedKey) -> bool {
        self.tablet_of(key) == self.tablet()
    }

    fn write(&self, mut mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        if mutations
            .iter()
            .all(|mutation| is_system_keyspace(&mutation.table.keyspace))
        {
            // Each node has these tables for itself.
            return self.inner.apply(mutations);
        }
        let Some(position) = self.with(|place| place.position) else {
            return Err(outside());
        };
        mutations.retain(|mutation| self.is_here(&mutation.key));
        let mut written = self.written.lock();
        for mutation in &mut mutations {
            as_logged(mutation);
            written::append(mutation, &mut written);
        }
        drop(written);
        let checked = self.engine().check_loggable(&mutations);
        let written = checked.and_then(|()| self.engine().apply_at(position, &mutations));
        written.map_err(|error| {
            if let ilion_engine::Error::Refused(reason) = error {
                // No replica can store this write, or its indexes cannot: it is an error of the client.
                return StoreError::Invalid(reason);
            }
            let message = error.to_string();
            *self.failure.lock() = Some(error);
            StoreError::WriteRefused(message)
        })?;
        Ok(None)
    }
}

/// Leaves out what a record would lose on its way: cells of a column that are older than its drop, if it was added again. SSTables
/// lose these cells, too, so without this a replica would show them only until its next flush.
fn as_logged(mutation: &mut Mutation) {
    if mutation.table.dropped.is_empty() {
        return;
    }
    let mut record = Vec::new();
    encode_mutation(mutation, &mut record);
    let table = mutation.table.clone();
    if let Ok(Decoded::Mutation(logged)) = decode_mutation(&record.into(), &|_| Some(table.clone())) {
        *mutation = logged;
    }
}

/// The error of a command that does something that has no place in the log of a tablet.
fn outside() -> StoreError {
    StoreError::Internal("a command of a tablet does not do this; this is a bug".to_owned())
}

impl Store for PlaceStore {
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.write(mutations)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.write(mutations)
    }

    fn read_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Box<dyn Cursor>, StoreError> {
        match self.is_here(key) {
            true => self.inner.read_partition(table, key, filter),
            false => Ok(Box::new(VecCursor::new(Vec::new()))),
        }
    }

    fn is_clearable(&self, _table: TableId) -> bool {
        false
    }

    fn is_settable(&self, _table: TableId) -> bool {
        false
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        let Some(time_micros) = *self.altering.lock() else {
            return Err(outside());
        };
        let mut change = change.clone();
        if let SchemaChange::AlterTable {
            alteration: TableAlteration::DropColumns { timestamp_micros, .. },
            ..
        } = &mut change
        {
            timestamp_micros.get_or_insert(time_micros);
        }
        self.inner.alter_schema(&change)
    }

    fn lock_partitions(&self, _partitions: &[(TableId, DecoratedKey)]) -> Box<dyn PartitionGuard + '_> {
        // Records of a tablet are applied one at a time.
        Box::new(())
    }

    fn now_micros(&self) -> i64 {
        self.with(|place| place.time_micros)
            .unwrap_or_else(|| self.inner.now_micros())
    }

    fn unique_micros(&self) -> i64 {
        self.with(CommandContext::micros)
            .unwrap_or_else(|| self.inner.unique_micros())
    }

    fn monotonic_nanos(&self) -> u64 {
        0
    }

    fn time_uuid(&self) -> Uuid {
        self.with(CommandContext::time_uuid).unwrap_or_default()
    }

    fn random_uuid(&self) -> Uuid {
        self.with(CommandContext::random_uuid).unwrap_or_default()
    }

    /// All replicas count alike, so they count as one.
    fn counter_id(&self) -> CounterId {
        self.cluster.into_bytes()
    }

    fn counter_cache(&self) -> Option<&CounterCache> {
        None
    }

    fn survey_partition(
        &self,
        _table: &Arc<TableSchema>,
        _key: &DecoratedKey,
        _filter: &ClusteringFilter,
    ) -> Option<ReadSurvey> {
        None
    }

    fn survey_range(&self, _table: &Arc<TableSchema>, _range: &KeyRange) -> Option<ReadSurvey> {
        None
    }

    ilion_query::store_methods!(forward [inner]: schema partitioner cluster index_classes indexes_of);
    ilion_query::store_methods!(refuse [outside()]: read_range truncate set_virtual index_search index_estimate index_nearest);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use ilion_engine::EngineOptions;
    use ilion_env::MemEnv;
    use ilion_query::{ClientState, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};

    use super::*;

    #[test]
    fn a_condition_finds_the_row_that_lives_by_the_clock_of_the_log() {
        let (now_secs, later_secs) = (1_700_000_000, 1_700_000_060);
        let env = MemEnv::new(1);
        env.set_micros(now_secs * 1_000_000);
        let options = EngineOptions::below(Path::new("/ilion"));
        let engine = Arc::new(Engine::open(env.shared(), options).unwrap());
        let tablets = Tablets::new(1).unwrap();
        let store = Arc::new(PlaceStore::new(engine.clone(), Uuid::nil(), tablets));
        let processor = QueryProcessor::new(store.clone(), QueryOptions::default());
        let query = |text: &str, timestamp_micros| {
            let options = ExecuteOptions {
                timestamp_micros: Some(timestamp_micros),
                ..ExecuteOptions::default()
            };
            processor
                .query(&mut ClientState::default(), text, &options)
                .unwrap()
                .outcome
        };
        for text in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b int)",
        ] {
            store.altering(1, || query(text, 1));
        }
        let seed = time_uuid_from_ticks(1 << 50, 1);
        let at = |secs: i64, offset: u64, text| {
            let position = TabletPosition { tablet: 0, offset };
            let context = CommandContext::new(position, secs * 1_000_000, seed);
            store.at(context, || query(text, offset.cast_signed()))
        };
        at(now_secs, 1, "INSERT INTO ks.t (k) VALUES (1)");
        engine
            .flush(engine.schema().table("ks", "t").unwrap().id)
            .unwrap();
        at(
            now_secs,
            2,
            "UPDATE ks.t USING TTL 10 SET a = 5, b = 5 WHERE k = 1",
        );
        // For this node, the values of the row have not expired yet.
        let Outcome::Rows(rows) = at(later_secs, 3, "UPDATE ks.t SET a = 6 WHERE k = 1 IF EXISTS") else {
            panic!("a conditional write has rows");
        };
        let applied = [0, 0, 0, 1, 1];
        assert_eq!(rows.cells.into_vec(), applied);
    }

    #[test]
    fn ids_of_a_command_differ_ascend_and_are_the_same_on_every_replica() {
        let position = TabletPosition { tablet: 1, offset: 2 };
        let seed = time_uuid_from_ticks(1 << 50, 0x8000_1234_5678_9abc);
        let ids = || {
            let mut place = CommandContext::new(position, 7, seed);
            let times: Vec<Uuid> = (0..300).map(|_| place.time_uuid()).collect();
            let random: Vec<Uuid> = (0..300).map(|_| place.random_uuid()).collect();
            (times, random)
        };
        let (times, random) = ids();
        assert_eq!(ids(), (times.clone(), random.clone()));
        assert!(times.is_sorted() && times.iter().all(|id| id.get_version_num() == 1));
        assert!(random.iter().all(|id| id.get_version_num() == 4));
        let all: BTreeSet<&Uuid> = times.iter().chain(&random).collect();
        assert_eq!(all.len(), 600);
    }
}
