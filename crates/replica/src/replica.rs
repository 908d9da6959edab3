//! [`Replica`]: applies records, and saves how far it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::{Admission, BlockDigest, Tablets, Windows};
use ilion_commitlog::{Kind, Record};
use ilion_engine::{Engine, TabletPosition};
use ilion_query::{
    BatchStatement, ClientState, Command, Error, Executed, Form, Guardrails, QueryOptions, QueryProcessor,
    Store, StoreError, Values,
};
use ilion_rows::{Decoded, Mutation, MutationReader, encode_mutation};
use ilion_schema::{SchemaEvent, TableId, TableSchema, whole_milli};
use uuid::Uuid;

use crate::digest::{Noted, Rolling};
use crate::logged::{BatchId, LoggedBatch, UnfinishedBatch, decode_done, id_of};
use crate::place::{CommandContext, PlaceStore};
use crate::saved::{self, SaveError, Saved, SavedTablet};
use crate::{CopiedState, FencedChange};

/// What a replica must know of its cluster.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaOptions {
    /// Identifies the cluster.
    pub cluster: Uuid,
    /// How its ring is cut.
    pub tablets: Tablets,
    /// Number of offsets of the blocks whose outcomes are compared; the same on all replicas.
    pub block_length: u64,
}

/// What became of a record.
#[derive(Debug)]
pub enum Applied {
    /// It was applied.
    Done,
    /// Its command was executed, with this outcome: an answer, or the error of its client.
    Executed(Result<Executed, Error>),
    /// Its command was executed before a crash. The outcome is not known any more.
    Forgotten,
    /// It had been applied at another place: a sender sent it again.
    Repeated,
}

/// Why a record is not applied. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotApplied {
    /// Try again later.
    #[error("{0}")]
    Later(String),
    /// The record was made with a schema that this replica has not adopted yet.
    #[error("the record needs the schema of epoch {0}")]
    Schema(u64),
    /// This replica stops following the tablet: it cannot apply the record, and must not pass over it.
    #[error("{0}")]
    Halted(String),
}

/// Why a schema is not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The change does not fit to the schema here, or the node cannot carry it out.
    #[error("the change of the schema cannot be carried out: {0}")]
    Refused(StoreError),
    /// The state cannot be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// A replica of some tablets of a cluster.
pub struct Replica {
    store: Arc<PlaceStore>,
    processor: QueryProcessor,
    cluster: Uuid,
    block_length: u64,
    tablets: BTreeMap<u32, Tablet>,
    /// The schema that the engine has.
    schema_epoch: u64,
    /// True if the change to the next schema has begun.
    is_adopting: bool,
    /// State that was taken, and is not written yet, since tables do not have all of it on disk.
    taken: Option<Saved>,
    /// The state in the file.
    saved: Saved,
    /// The tablets whose records come; only for them, purging is held back.
    followed: Option<BTreeSet<u32>>,
}

/// A tablet that the replica follows.
struct Tablet {
    time_micros: i64,
    schema_epoch: u64,
    windows: Windows,
    digest: Rolling,
    halted: Option<String>,
    unfinished: BTreeMap<BatchId, UnfinishedBatch>,
}

impl Tablet {
    /// Goes on from what was saved. `end` is the offset of the next record.
    fn from(saved: SavedTablet, end: u64, block_length: u64) -> Self {
        Self {
            time_micros: saved.time_micros,
            schema_epoch: saved.schema_epoch,
            windows: saved.windows,
            digest: Rolling::from(end, block_length),
            halted: None,
            unfinished: saved.unfinished,
        }
    }

    /// Remembers a logged batch, or forgets those that are finished. Requires: the record was applied.
    fn note_batches(&mut self, number: u32, record: &Record) {
        match record.kind {
            Kind::LoggedBatch => {
                if let Ok(mut others) = LoggedBatch::decode(&record.body) {
                    others.parts.remove(&number);
                    let batch = UnfinishedBatch {
                        schema_epoch: record.schema_epoch,
                        others,
                    };
                    self.unfinished.insert(id_of(record.origin), batch);
                }
            }
            Kind::BatchesDone => {
                for id in decode_done(&record.body).unwrap_or_default() {
                    self.unfinished.remove(&id);
                }
            }
            _ => {}
        }
    }
}

impl Replica {
    /// Goes on from what was saved.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(engine: Arc<Engine>, options: ReplicaOptions) -> Result<Self, SaveError> {
        let (cluster, block_length) = (options.cluster, options.block_length.max(1));
        let saved = saved::read(&**engine.env(), engine.data_dir(), cluster)?;
        let store = Arc::new(PlaceStore::new(engine, options.cluster, options.tablets));
        // Limits are for clients, which only the coordinator knows. The decisions of replicas must not depend on settings.
        let options = QueryOptions {
            guardrails: Guardrails::default(),
            batch_size_warn_bytes: 0,
            batch_size_fail_bytes: 0,
            in_partitions_max: usize::MAX,
            in_slices_max: usize::MAX,
            ..QueryOptions::default()
        };
        let mut replica = Self {
            processor: QueryProcessor::new(store.clone(), options),
            store,
            cluster,
            block_length,
            tablets: BTreeMap::new(),
            schema_epoch: saved.schema_epoch,
            is_adopting: saved.is_adopting,
            taken: None,
            saved: saved.clone(),
            followed: None,
        };
        replica.hold_purge();
        for (number, saved) in saved.tablets {
            replica.resume(number, saved);
        }
        Ok(replica)
    }

    /// From now on, only records of these tablets come. The state of other tablets stays, so that this replica can go on with them later.
    pub fn follow(&mut self, tablets: &BTreeSet<u32>) {
        self.followed = Some(tablets.clone());
        self.hold_purge();
    }

    /// Whether this replica has all of a tablet up to [`Self::end`].
    pub fn has(&self, tablet: u32) -> bool {
        self.tablets.contains_key(&tablet)
    }

    /// What is saved of these tablets, for a replica that copies them from then on. `None` if this replica does not have all of them, or
    /// its schema is about to change.
    pub fn saved_state(&self, tablets: &BTreeSet<u32>) -> Option<CopiedState> {
        let mut state = self.saved.clone();
        state.tablets.retain(|number, _| tablets.contains(number));
        let is_whole = state.tablets.len() == tablets.len() && !state.is_adopting;
        is_whole.then_some(CopiedState(state))
    }

    /// Forgets what it knows of tablets that it will copy, so that a start after a crash does not go on with what is left of them.
    ///
    /// # Errors
    /// The state cannot be saved. The call can be repeated.
    pub fn forget(&mut self, tablets: &BTreeSet<u32>) -> Result<(), SaveError> {
        self.retain(|number| !tablets.contains(number))
    }

    /// Forgets what it knows of all tablets but these: it is a replica of no others. Their data stays.
    ///
    /// # Errors
    /// The state cannot be saved. The call can be repeated.
    pub fn keep(&mut self, tablets: &BTreeSet<u32>) -> Result<(), SaveError> {
        self.retain(|number| tablets.contains(number))
    }

    fn retain(&mut self, is_kept: impl Fn(&u32) -> bool) -> Result<(), SaveError> {
        self.tablets.retain(|number, _| is_kept(number));
        let taken = self.taken.iter().flat_map(|taken| taken.tablets.keys());
        if self.saved.tablets.keys().chain(taken).all(&is_kept) {
            return Ok(());
        }
        self.change_saved(|saved| saved.tablets.retain(|number, _| is_kept(number)))
    }

    /// Begins with tablets that no replica has, each with the record at its offset, and with the schema that made replicas of them. Records
    /// of an older schema are of tables that are gone: they change nothing, also where there is a table of the same name again. All
    /// replicas begin alike, and save it at once: after a crash, none must need the tablet from another one.
    ///
    /// # Errors
    /// The state cannot be saved. The call can be repeated.
    pub fn begin(&mut self, tablets: &BTreeMap<u32, u64>, schema_epoch: u64) -> Result<(), SaveError> {
        if tablets.is_empty() {
            return Ok(());
        }
        let begun = |end: &u64| SavedTablet {
            end: *end,
            schema_epoch,
            ..SavedTablet::default()
        };
        self.change_saved(|saved| {
            let begun = tablets.iter().map(|(number, end)| (*number, begun(end)));
            saved.tablets.extend(begun);
        })?;
        for (number, end) in tablets {
            self.resume(*number, begun(end));
        }
        Ok(())
    }

    /// Goes on with tablets whose tables were copied.
    ///
    /// # Errors
    /// The state cannot be saved. The call can be repeated.
    pub fn take_over(&mut self, state: &CopiedState) -> Result<(), SaveError> {
        let copied = &state.0.tablets;
        self.change_saved(|saved| saved.tablets.extend(copied.clone()))?;
        for (number, saved) in copied {
            self.resume(*number, saved.clone());
        }
        Ok(())
    }

    /// Changes the state in the file, and the taken state that will be written to it.
    fn change_saved(&mut self, change: impl Fn(&mut Saved)) -> Result<(), SaveError> {
        let mut saved = self.saved.clone();
        change(&mut saved);
        let taken = self.taken.take();
        self.write_saved(saved)?;
        self.taken = taken.map(|mut taken| {
            change(&mut taken);
            taken
        });
        Ok(())
    }

    fn resume(&mut self, number: u32, saved: SavedTablet) {
        self.engine().resume_tablet(number, saved.end);
        // Records that this process has applied do not come again.
        let end = self.end(number);
        self.tablets
            .insert(number, Tablet::from(saved, end, self.block_length));
    }

    /// Its engine.
    pub fn engine(&self) -> &Arc<Engine> {
        self.store.engine()
    }

    /// The offset of the next record that it wants of a tablet.
    pub fn end(&self, tablet: u32) -> u64 {
        self.engine().tablet_end(tablet)
    }

    /// Why it does not follow a tablet any more.
    pub fn halted(&self, tablet: u32) -> Option<&str> {
        self.tablets.get(&tablet)?.halted.as_deref()
    }

    /// Follows a tablet no further: its data is not that of the other replicas.
    pub fn halt(&mut self, tablet: u32, reason: &str) {
        if let Some(tablet) = self.tablets.get_mut(&tablet) {
            tablet.halted.get_or_insert(reason.to_owned());
        }
    }

    /// Digests of outcomes since the last call, for the other replicas to compare: of a block of each tablet that has ended one.
    pub fn take_digests(&mut self) -> Vec<(u32, BlockDigest)> {
        let tablets = self.tablets.iter_mut();
        let digests = tablets.filter_map(|(number, tablet)| Some((*number, tablet.digest.take()?)));
        digests.collect()
    }

    /// Logged batches whose other parts may not be in their logs yet: the home of each, and its id.
    pub fn unfinished(&self) -> impl Iterator<Item = (u32, BatchId)> {
        let of_tablet = |(number, tablet): (&u32, &Tablet)| {
            let number = *number;
            let ids: Vec<BatchId> = tablet.unfinished.keys().copied().collect();
            ids.into_iter().map(move |id| (number, id))
        };
        self.tablets.iter().flat_map(of_tablet)
    }

    /// An unfinished batch, by its home and its id.
    pub fn unfinished_batch(&self, home: u32, id: BatchId) -> Option<&UnfinishedBatch> {
        self.tablets.get(&home)?.unfinished.get(&id)
    }

    /// The schema that the engine has.
    pub fn schema_epoch(&self) -> u64 {
        self.schema_epoch
    }

    /// Adopts the next schema, empties a table, or writes rows of roles. Returns the event for clients. `time_micros` is the time of the
    /// record in the meta log. Commands that tablets execute afterwards get later times: otherwise a column that was dropped and added again
    /// would not show their writes.
    ///
    /// Requires: everything that was applied is saved ([`Self::save`] after [`Self::take`]), so that no record is applied again with
    /// a schema that came later; and the next record of each tablet needs this schema ([`NotApplied::Schema`]).
    ///
    /// # Errors
    /// This node cannot adopt the schema, or cannot save that it did. The call can be repeated.
    pub fn adopt(
        &mut self,
        change: &FencedChange,
        time_micros: i64,
    ) -> Result<Option<SchemaEvent>, AdoptError> {
        let time_micros = whole_milli(time_micros);
        let was_adopting = std::mem::replace(&mut self.is_adopting, true);
        let saved = self.all();
        self.write_saved(saved)?;
        let event = match self.make(change, time_micros) {
            Ok(event) => event,
            // A crash came after the change, and before this was saved. The change was checked before it was logged, so that is the
            // only reason why it fails.
            Err(StoreError::Schema(_) | StoreError::Invalid(_))
                if was_adopting && matches!(change, FencedChange::Schema(_)) =>
            {
                None
            }
            Err(error) => return Err(AdoptError::Refused(error)),
        };
        if let FencedChange::Truncate(table) = change {
            self.leave_out(*table);
        }
        self.schema_epoch += 1;
        self.is_adopting = false;
        for tablet in self.tablets.values_mut() {
            tablet.time_micros = tablet.time_micros.max(time_micros + 1);
        }
        let saved = self.all();
        self.write_saved(saved)?;
        Ok(event)
    }

    /// Removes the mutations of a table from unfinished batches: these came before the table was emptied.
    fn leave_out(&mut self, table: TableId) {
        let schema = self.engine().schema();
        let resolve = |id: TableId| -> Option<Arc<TableSchema>> { schema.table_by_id(id).cloned() };
        let batches = self
            .tablets
            .values_mut()
            .flat_map(|tablet| tablet.unfinished.values_mut());
        for part in batches.flat_map(|batch| batch.others.parts.values_mut()) {
            let (mut reader, mut left) = (MutationReader::new(part.clone()), Vec::new());
            // Mutations that do not decode are refused where the part is sent.
            while let Ok(Some(decoded)) = reader.next_mutation(&resolve) {
                if let Decoded::Mutation(mutation) = decoded
                    && mutation.table.id != table
                {
                    encode_mutation(&mutation, &mut left);
                }
            }
            *part = left.into();
        }
    }

    fn make(&self, change: &FencedChange, time_micros: i64) -> Result<Option<SchemaEvent>, StoreError> {
        match change {
            FencedChange::Schema(change) => {
                let altered = self
                    .store
                    .altering(time_micros, || self.store.alter_schema(change));
                Ok(altered?.and_then(|applied| applied.event(change)))
            }
            FencedChange::Truncate(table) if self.engine().schema().table_by_id(*table).is_none() => Ok(None),
            FencedChange::Truncate(table) => self.store.empty(*table).map(|()| None),
            FencedChange::Roles(mutations) => self
                .store
                .write_roles(mutations, self.schema_epoch + 1)
                .map(|()| None),
        }
    }

    /// Applies the next record of a tablet. `time_micros` is the time that the log gave it.
    ///
    /// # Errors
    /// [`NotApplied`]: the same record must come again.
    pub fn apply(
        &mut self,
        position: TabletPosition,
        time_micros: i64,
        record: &Record,
    ) -> Result<Applied, NotApplied> {
        let block_length = self.block_length;
        let begun = || Tablet::from(SavedTablet::default(), position.offset, block_length);
        let tablet = self.tablets.entry(position.tablet).or_insert_with(begun);
        if let Some(reason) = &tablet.halted {
            return Err(NotApplied::Halted(reason.clone()));
        }
        if record.schema_epoch > self.schema_epoch {
            return Err(NotApplied::Schema(record.schema_epoch));
        }
        let admission = tablet.windows.judge(record.origin);
        let time_micros = time_micros.max(tablet.time_micros);
        tablet.digest.go_to(position.offset);
        let is_old = record.schema_epoch < tablet.schema_epoch;
        let applied = match admission {
            Admission::New => self.apply_new(position, time_micros, record, is_old),
            Admission::Repeated | Admission::Settled => self.write(position, &[]).map(|()| Applied::Repeated),
        };
        let Some(tablet) = self.tablets.get_mut(&position.tablet) else {
            return applied;
        };
        match &applied {
            Ok(applied) => {
                match applied {
                    Applied::Executed(outcome) => {
                        let written = self.store.take_written();
                        tablet
                            .digest
                            .add(position.offset, Noted::Executed(outcome, &written));
                    }
                    Applied::Forgotten => tablet.digest.add(position.offset, Noted::Forgotten),
                    Applied::Repeated => tablet.digest.add(position.offset, Noted::Repeated),
                    Applied::Done => {}
                }
                if admission == Admission::New {
                    tablet.note_batches(position.tablet, record);
                }
                tablet.windows.admit(record.origin);
                tablet.time_micros = time_micros;
                tablet.schema_epoch = tablet.schema_epoch.max(record.schema_epoch);
            }
            Err(NotApplied::Halted(reason)) => {
                let TabletPosition {
                    tablet: number,
                    offset,
                } = position;
                tracing::error!(tablet = number, offset, %reason, "a tablet is not followed any more");
                tablet.halted = Some(reason.clone());
            }
            Err(NotApplied::Later(_) | NotApplied::Schema(_)) => {}
        }
        applied
    }

    fn apply_new(
        &self,
        position: TabletPosition,
        time_micros: i64,
        record: &Record,
        is_old: bool,
    ) -> Result<Applied, NotApplied> {
        if record.tablet != position.tablet {
            return Err(NotApplied::Halted(format!(
                "the record at {} is one of tablet {}: the log is not that of this tablet, or its partitions were mixed up",
                position.offset, record.tablet
            )));
        }
        match record.kind {
            Kind::Noop => self.write(position, &[]).map(|()| Applied::Done),
            Kind::Mutation | Kind::Batch => self.write_body(position, &record.body),
            Kind::LoggedBatch => {
                let batch =
                    LoggedBatch::decode(&record.body).map_err(|error| undecodable(position, &error))?;
                let own = batch.parts.get(&position.tablet).cloned().unwrap_or_default();
                self.write_body(position, &own)
            }
            Kind::BatchesDone => {
                decode_done(&record.body).map_err(|error| undecodable(position, &error))?;
                self.write(position, &[]).map(|()| Applied::Done)
            }
            Kind::Cas | Kind::Counter if is_old => {
                self.write(position, &[])?;
                Ok(Applied::Executed(Err(Error::Overtaken)))
            }
            Kind::Cas | Kind::Counter => self.execute(position, time_micros, record),
            Kind::Truncate | Kind::Schema | Kind::Applied => Err(NotApplied::Halted(format!(
                "the record at {} has a command that does not belong into the log of a tablet; a newer Ilion may have \
                 written it: upgrade this node",
                position.offset
            ))),
        }
    }

    /// Goes on with a tablet at an offset: its log has no records between [`Self::end`] and it.
    ///
    /// # Errors
    /// Try again later.
    pub fn pass(&mut self, tablet: u32, to: u64) -> Result<(), NotApplied> {
        match to.checked_sub(1) {
            Some(offset) => self.write(TabletPosition { tablet, offset }, &[]),
            None => Ok(()),
        }
    }

    fn write_body(&self, position: TabletPosition, body: &Bytes) -> Result<Applied, NotApplied> {
        let mutations = self.mutations(position, body)?;
        self.write(position, &mutations).map(|()| Applied::Done)
    }

    /// The mutations of a body, without those of tables that do not exist any more.
    fn mutations(&self, position: TabletPosition, body: &Bytes) -> Result<Vec<Mutation>, NotApplied> {
        let schema = self.engine().schema();
        let resolve = |id: TableId| -> Option<Arc<TableSchema>> { schema.table_by_id(id).cloned() };
        let mut reader = MutationReader::new(body.clone());
        let mut mutations = Vec::new();
        loop {
            match reader.next_mutation(&resolve) {
                Ok(None) => return Ok(mutations),
                Ok(Some(Decoded::NoSuchTable(_))) => {}
                Ok(Some(Decoded::Mutation(mutation))) => {
                    if self.store.tablet_of(&mutation.key) != Some(position.tablet) {
                        return Err(NotApplied::Halted(format!(
                            "the record at {} changes a partition of another tablet: the log is not that of this tablet, \
                             or the record is damaged",
                            position.offset
                        )));
                    }
                    mutations.push(mutation);
                }
                Err(error) => return Err(undecodable(position, &error)),
            }
        }
    }

    fn execute(
        &self,
        position: TabletPosition,
        time_micros: i64,
        record: &Record,
    ) -> Result<Applied, NotApplied> {
        let command = Command::decode(&record.body).map_err(|error| undecodable(position, &error))?;
        let tables = self.tables_of(&command);
        let on_disk = tables
            .iter()
            .filter(|table| self.engine().has_on_disk(**table, position))
            .count();
        if on_disk > 0 && on_disk == tables.len() {
            // The tables have later data by now, so the outcome cannot be found again.
            self.write(position, &[])?;
            return Ok(Applied::Forgotten);
        }
        let place = CommandContext::new(position, time_micros, command.seed);
        let outcome = self.store.at(place, || self.run(&command));
        if let Some(failure) = self.store.take_failure() {
            return Err(refusal(failure));
        }
        if let Err(error) = &outcome
            && !is_of_client(error)
        {
            return Err(NotApplied::Later(error.to_string()));
        }
        // A command that writes nothing leaves the end of the tablet where it was.
        self.write(position, &[])?;
        match on_disk {
            0 => Ok(Applied::Executed(outcome)),
            _ => Ok(Applied::Forgotten),
        }
    }

    fn tables_of(&self, command: &Command) -> Vec<TableId> {
        let keyspace = command.keyspace.as_deref();
        let tables = command
            .statements
            .iter()
            .filter_map(|(text, _)| self.processor.tables_of(text, keyspace).ok());
        let mut tables: Vec<TableId> = tables.flatten().collect();
        tables.sort();
        tables.dedup();
        tables
    }

    fn run(&self, command: &Command) -> Result<Executed, Error> {
        let mut client = ClientState::default();
        let options = command.options();
        match (command.form, command.statements.as_slice()) {
            (Form::Statement, [(text, _)]) => self.processor.query(&mut client, text, &options),
            (Form::Statement, _) => Err(Error::Invalid(
                "A command of one statement has several".to_owned(),
            )),
            (Form::Batch(kind), statements) => {
                let statements = statements
                    .iter()
                    .map(|(text, values)| {
                        let values = Values::Positional(values.clone());
                        (BatchStatement::Text(text.clone()), values)
                    })
                    .collect();
                self.processor.batch(&mut client, kind, statements, &options)
            }
        }
    }

    fn write(&self, position: TabletPosition, mutations: &[Mutation]) -> Result<(), NotApplied> {
        self.engine().apply_at(position, mutations).map_err(refusal)
    }

    /// The state that is to be saved now.
    fn all(&self) -> Saved {
        let tablets = self.tablets.iter().map(|(number, tablet)| {
            let saved = SavedTablet {
                end: self.engine().tablet_end(*number),
                time_micros: tablet.time_micros,
                schema_epoch: tablet.schema_epoch,
                windows: tablet.windows.clone(),
                unfinished: tablet.unfinished.clone(),
            };
            (*number, saved)
        });
        Saved {
            cluster: self.cluster,
            schema_epoch: self.schema_epoch,
            is_adopting: self.is_adopting,
            tablets: tablets.collect(),
        }
    }

    /// Takes the state that is to be saved now, and makes the tables write what they need for it. [`Self::save`] goes on with it.
    pub fn take(&mut self) {
        let taken = self.all();
        for (number, saved) in &taken.tablets {
            self.engine().flush_tablet_below(*number, saved.end);
        }
        self.taken = Some(taken);
    }

    /// Saves what was taken, if the tables have all of it on disk; returns true once it is saved.
    ///
    /// # Errors
    /// The file cannot be written. The call can be repeated.
    pub fn save(&mut self) -> Result<bool, SaveError> {
        let engine = self.store.engine();
        let Some(taken) = &self.taken else {
            return Ok(true);
        };
        let is_needed = |(number, saved): (&u32, &SavedTablet)| engine.tablet_needed(*number) < saved.end;
        if taken.tablets.iter().any(is_needed) {
            return Ok(false);
        }
        let taken = taken.clone();
        self.write_saved(taken)?;
        Ok(true)
    }

    fn write_saved(&mut self, saved: Saved) -> Result<(), SaveError> {
        let engine = self.store.engine();
        saved::write(&**engine.env(), engine.data_dir(), &saved)?;
        self.saved = saved;
        self.hold_purge();
        self.taken = None;
        Ok(())
    }

    /// Holds purging back, since records after those that are saved may be read again.
    fn hold_purge(&self) {
        let is_followed = |number: &u32| {
            let followed = self.followed.as_ref();
            followed.is_none_or(|followed| followed.contains(number))
        };
        let tablets = self.saved.tablets.iter();
        let with_records = tablets.filter(|(number, tablet)| tablet.end > 0 && is_followed(number));
        let oldest_micros = with_records.map(|(_, tablet)| tablet.time_micros).min();
        let log_secs = oldest_micros.map(|micros| micros.div_euclid(1_000_000).max(0));
        let log_secs = log_secs.and_then(|secs| u32::try_from(secs).ok());
        self.engine().hold_purge(log_secs.unwrap_or(u32::MAX));
    }

    /// Up to where each tablet is saved, exclusive: records below are not needed again.
    pub fn saved_ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.saved
            .tablets
            .iter()
            .map(|(number, saved)| (*number, saved.end))
    }
}

/// Whether an error is one of the command, the same on all replicas, and not one of this node.
fn is_of_client(error: &Error) -> bool {
    matches!(
        error,
        Error::Invalid(_)
            | Error::Syntax(_)
            | Error::Config(_)
            | Error::Unauthorized(_)
            | Error::AlreadyExists { .. }
            | Error::FunctionFailure { .. }
    )
}

fn undecodable(position: TabletPosition, error: &ilion_codec::Error) -> NotApplied {
    NotApplied::Halted(format!(
        "the record at {} does not decode ({error}): it is damaged, or a newer Ilion has written it: upgrade this node",
        position.offset
    ))
}

fn refusal(error: ilion_engine::Error) -> NotApplied {
    match error {
        ilion_engine::Error::Refused(reason) => NotApplied::Halted(reason),
        other => NotApplied::Later(other.to_string()),
    }
}
