//! Replay: puts records of the log back into memtables, except those that SSTables already have.
//!
//! Changes of the schema are records as well. Records behind one need the schema that it made, or a later one: data that is
//! not in the later schema was dropped in between. So records behind a change are held back, and the schema is read once
//! for several changes. To read it takes time for each table, and a log may have a change for each table.
//!
//! One thread reads the log and passes records to others in batches. These apply them in any order, since
//! writes of one cell reconcile by their timestamps. Records and steps that depend on the order (a schema change, a truncation, a
//! flush) wait until everything before them is applied.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use crossbeam_channel::{Receiver, Sender, bounded};
use hashbrown::HashMap;
use ilion_commitlog::{Envelope, Kind, Position};
use ilion_env::Env;
use ilion_rows::{Decoded, Mutation, MutationReader, peek_place};
use ilion_schema::{SchemaFault, TableId, TableSchema};
use ilion_sstable::{CommitLogInterval, union_intervals};
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use crate::affected::Affected;
use crate::flush_pace::Haste;
use crate::intervals::{intervals_of, is_on_disk};
use crate::parallel::thread_count;
use crate::shared::Shared;
use crate::snapshots::is_kept_by_drop;
use crate::table_store::{Active, TableStore};
use crate::write::memtable_position;
use crate::{Error, Result};

/// The keyspace of the schema.
const SCHEMA_KEYSPACE: &str = "system_schema";
/// In a larger batch, records with near tokens are closer together, see [`Applier::apply_batch`].
const BATCH_RECORDS_MAX: usize = 1 << 16;
const BATCH_BYTES_MAX: usize = 10 << 20;
/// Most records are shorter.
const LAST_RECORD_BYTES: usize = 64 << 10;
/// All batches together take about this much memory.
const BATCHES_BYTES: usize = 64 << 20;
/// With more records or bytes held back than this, the schema is read and the records are applied.
const HELD_RECORDS_MAX: usize = 1 << 16;
const HELD_BYTES_MAX: usize = 16 << 20;
/// Time between two messages about the progress.
const PROGRESS_NANOS: u64 = 5_000_000_000;

/// Records for the threads, in one piece of memory.
#[derive(Default)]
struct Batch {
    /// The records, without space between them.
    bytes: BytesMut,
    /// Position and length of each.
    records: Vec<(Position, usize)>,
}

impl Batch {
    /// An empty batch with room for as many records as another one has, and for a last one that makes it a little longer, but not for a
    /// very large record.
    fn like(other: &Self) -> Self {
        let room_bytes = other.bytes.len().min(BATCH_BYTES_MAX) + LAST_RECORD_BYTES;
        Self {
            bytes: BytesMut::with_capacity(room_bytes),
            records: Vec::with_capacity(other.records.len()),
        }
    }
}

/// Replays the records that `read` passes to [`Replay::receive`]; `read` calls [`Replay::finish`] behind the last one. Returns the
/// result of `read`, and how many mutations were skipped since their data is on disk or their table was dropped.
pub(crate) fn replay<T>(
    shared: &Shared,
    faults: Vec<SchemaFault>,
    read: impl FnOnce(&mut Replay<'_>) -> Result<T>,
) -> Result<(T, u64)> {
    let applier = Applier::new(shared);
    let threads = thread_count(&shared.options);
    let (sender, receiver) = bounded(2 * threads);
    let result = std::thread::scope(|scope| -> Result<T> {
        for _ in 0..threads {
            scope.spawn(|| applier.work_through(&receiver));
        }
        let mut replay = Replay {
            shared,
            applier: &applier,
            sender: (threads > 0).then_some(sender),
            batch: Batch::default(),
            // Each thread works on one batch, and the channel has room for two more per thread.
            batch_bytes_max: (BATCHES_BYTES / (3 * threads.max(1))).min(BATCH_BYTES_MAX),
            held: Vec::new(),
            held_bytes: 0,
            is_schema_old: false,
            faults,
            records: 0,
            told_nanos: shared.env.monotonic_nanos(),
            is_taken_over: false,
        };
        read(&mut replay)
    })?;
    Ok((result, applier.skipped.load(Ordering::Relaxed)))
}

/// Whether the directory of a table has more than snapshots and backups, which stay when the table is dropped.
fn has_data_files(env: &dyn Env, directory: &Path) -> bool {
    let entries = env.list(directory).unwrap_or_default();
    entries.iter().any(|entry| !is_kept_by_drop(&entry.name))
}

/// Receives the records in their order.
pub(crate) struct Replay<'a> {
    shared: &'a Shared,
    applier: &'a Applier<'a>,
    /// `None` without threads: records are applied at once.
    sender: Option<Sender<Batch>>,
    /// Records that are not yet passed to the threads.
    batch: Batch,
    batch_bytes_max: usize,
    /// Records behind a schema change, in their order; applied once the schema was read again.
    held: Vec<DelayedRecord>,
    held_bytes: usize,
    /// `system_schema` has changed since the schema was read from it.
    is_schema_old: bool,
    /// The objects that did not decode when the schema was last read.
    faults: Vec<SchemaFault>,
    records: u64,
    told_nanos: u64,
    /// [`Shared::take_over`] was called, so files may be changed.
    is_taken_over: bool,
}

impl Replay<'_> {
    /// Receives a record.
    pub(crate) fn receive(&mut self, position: Position, envelope: &Envelope<'_>) -> Result<()> {
        match envelope.kind {
            Kind::Noop | Kind::Applied => {}
            Kind::Schema => self.take_schema(position, Bytes::copy_from_slice(envelope.body))?,
            _ if self.is_schema_old => self.hold(position, envelope)?,
            kind => self.take(position, kind, envelope.body)?,
        }
        // The memtables of tables that a later schema creates or alters must cover the records that are held back.
        if self.held.is_empty() {
            *self.shared.replayed.lock() = behind(position);
        }
        if self.shared.budget.is_flush_due() && !self.shared.budget.is_stalled() {
            self.release()?;
            self.wait()?;
            self.flush_largest(position)?;
        }
        self.tell(position);
        Ok(())
    }

    /// Requires: the schema is the one that the record needs.
    fn take(&mut self, position: Position, kind: Kind, body: &[u8]) -> Result<()> {
        match kind {
            Kind::Truncate => {
                self.wait()?;
                self.shared.replay_truncate(position, body)
            }
            _ => self.hand_out(position, body),
        }
    }

    fn take_schema(&mut self, position: Position, body: Bytes) -> Result<()> {
        let mut changes = Vec::new();
        let mut reader = MutationReader::new(body);
        self.applier
            .decode(&mut reader, position, None, |change| changes.push(change))?;
        // The schema is read first if the change drops a table with files: only a table that is in the schema has its files removed.
        if self.is_schema_old && changes.iter().any(|change| self.leaves_files(change)) {
            self.release()?;
        }
        self.is_schema_old = true;
        let changes = changes.into_iter().map(|change| (position, change));
        self.applier.apply_apart(changes.collect());
        Ok(())
    }

    /// Whether a change of the schema drops a table whose files still exist, since the crash came before they were removed.
    fn leaves_files(&self, change: &Mutation) -> bool {
        let is_of = |name| change.table.id == TableId::of_system_table(SCHEMA_KEYSPACE, name);
        if !is_of("tables") && !is_of("views") {
            return false;
        }
        let drops_all = change.update.deletion.is_some();
        let mut dropped = change
            .update
            .rows
            .iter()
            .filter(|row| !row.deletion.is_live())
            .peekable();
        if !drops_all && dropped.peek().is_none() {
            return false;
        }
        let keyspace = String::from_utf8_lossy(&change.key.key);
        let directory = self.shared.options.data_dir.join(&*keyspace);
        let mut entries = self.shared.env.list(&directory).unwrap_or_default();
        entries.retain(|entry| has_data_files(&*self.shared.env, &directory.join(&entry.name)));
        let mut leaves = dropped.map(|row| {
            let name = row.clustering.values().first().and_then(Option::as_ref);
            let prefix = format!("{}-", String::from_utf8_lossy(name.map_or(&[], |name| &**name)));
            entries.iter().any(|entry| entry.name.starts_with(&prefix))
        });
        (drops_all && !entries.is_empty()) || leaves.any(|leaves| leaves)
    }

    fn hold(&mut self, position: Position, envelope: &Envelope<'_>) -> Result<()> {
        self.held_bytes += envelope.body.len();
        self.held.push(DelayedRecord {
            position,
            kind: envelope.kind,
            body: envelope.body.into(),
        });
        if self.held.len() >= HELD_RECORDS_MAX || self.held_bytes >= HELD_BYTES_MAX {
            self.release()?;
        }
        Ok(())
    }

    /// Reads the schema if it has changed, and applies the records that were held back.
    fn release(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_schema_old) {
            self.wait()?;
            self.read_schema()?;
        }
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            self.take(held.position, held.kind, &held.body)?;
            *self.shared.replayed.lock() = behind(held.position);
        }
        Ok(())
    }

    /// Requires: all records so far are applied.
    fn read_schema(&mut self) -> Result<()> {
        self.applier.has_schema_rows.store(false, Ordering::Relaxed);
        let (schema, faults) = self.shared.load_schema()?;
        self.shared.faults.note(&faults);
        self.faults = faults;
        self.shared.adopt_tables(&schema, &Affected::All)?;
        self.shared.schema.store(Arc::new(schema));
        Ok(())
    }

    /// Ends the replay: refuses the directory before any file has changed, or takes it over.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.release()?;
        self.wait()?;
        // Rows of `system_schema` in records of another kind change the schema as well.
        if self.applier.has_schema_rows.load(Ordering::Relaxed) {
            self.read_schema()?;
        }
        self.shared.check_faults(&self.faults)?;
        self.shared.set_faulty_aside();
        self.shared.take_over()
    }

    fn hand_out(&mut self, position: Position, body: &[u8]) -> Result<()> {
        let Batch { bytes, records } = &mut self.batch;
        records.push((position, body.len()));
        bytes.extend_from_slice(body);
        if records.len() >= BATCH_RECORDS_MAX || bytes.len() >= self.batch_bytes_max {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let spare = self.applier.spare.lock().pop();
        let next = spare.unwrap_or_else(|| Batch::like(&self.batch));
        let batch = std::mem::replace(&mut self.batch, next);
        let Some(sender) = &self.sender else {
            self.applier.apply_all(batch);
            return self.applier.check();
        };
        *self.applier.pending.lock() += 1;
        if sender.send(batch).is_err() {
            return Err(Error::Refused(
                "the threads that replay the log are gone".to_owned(),
            ));
        }
        self.applier.check()
    }

    /// Returns when all records so far are applied.
    fn wait(&mut self) -> Result<()> {
        if !self.batch.records.is_empty() {
            self.send()?;
        }
        let mut pending = self.applier.pending.lock();
        while *pending > 0 {
            self.applier.idle.wait(&mut pending);
        }
        drop(pending);
        self.applier.check()
    }

    /// Requires: all records up to `position` are applied.
    fn flush_largest(&mut self, position: Position) -> Result<()> {
        // A directory with records in its log is one of Ilion, so its files may be changed.
        if !std::mem::replace(&mut self.is_taken_over, true) {
            self.shared.take_over()?;
        }
        let tables = self.shared.tables.load_full();
        let size = |store: &&Arc<TableStore>| (store.active.read().size_bytes(), store.id);
        let Some(store) = tables.values().max_by_key(size) else {
            return Ok(());
        };
        match self.shared.flush_upto(store, || behind(position), Haste::Now) {
            // The data fitted into memory before the crash, so a node with a full disk can start; the flush is tried again later.
            Err(error) if error.is_shortage() && self.shared.failure().is_none() => Ok(()),
            flushed => flushed,
        }
    }

    fn tell(&mut self, position: Position) {
        self.records += 1;
        if !self.records.is_multiple_of(1024) {
            return;
        }
        let now_nanos = self.shared.env.monotonic_nanos();
        if now_nanos.saturating_sub(self.told_nanos) >= PROGRESS_NANOS {
            self.told_nanos = now_nanos;
            let (read, segments) = self.shared.options.commit_log.progress.segments();
            tracing::info!(records = self.records, %position, read, segments, "the commit log is being replayed");
        }
    }
}

/// A record that waits for the schema.
struct DelayedRecord {
    position: Position,
    kind: Kind,
    body: Box<[u8]>,
}

/// Where the next record may begin.
fn behind(position: Position) -> Position {
    Position::new(position.segment.0, position.offset.saturating_add(1))
}

/// Applies records, on several threads.
struct Applier<'a> {
    shared: &'a Shared,
    /// The stretches of the log that the SSTables of a table cover, found at its first record.
    on_disk: RwLock<HashMap<TableId, Arc<Vec<CommitLogInterval>>>>,
    skipped: AtomicU64,
    /// Rows of `system_schema` were applied since it was last read.
    has_schema_rows: AtomicBool,
    /// The first failure.
    failure: Mutex<Option<Error>>,
    /// Batches that are not applied yet.
    pending: Mutex<usize>,
    idle: Condvar,
    /// Batches that were applied, without their records. New memory would cost more: the kernel fills it with zeros.
    spare: Mutex<Vec<Batch>>,
}

impl<'a> Applier<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            on_disk: RwLock::default(),
            skipped: AtomicU64::new(0),
            has_schema_rows: AtomicBool::new(false),
            failure: Mutex::new(None),
            pending: Mutex::new(0),
            idle: Condvar::new(),
            spare: Mutex::default(),
        }
    }

    fn check(&self) -> Result<()> {
        self.failure.lock().take().map_or(Ok(()), Err)
    }

    fn work_through(&self, batches: &Receiver<Batch>) {
        for batch in batches {
            self.apply_all(batch);
            *self.pending.lock() -= 1;
            self.idle.notify_all();
        }
    }

    fn apply_all(&self, batch: Batch) {
        let applied = catch_unwind(AssertUnwindSafe(|| self.apply_batch(batch)));
        let panicked = || Err(Error::Refused("replaying the commit log panicked".to_owned()));
        if let Err(error) = applied.unwrap_or_else(|_| panicked()) {
            self.failure.lock().get_or_insert(error);
        }
    }

    /// Applies records table by table, in the order of their tokens, so that neighbours in the memtable are still in the caches of the
    /// processor.
    fn apply_batch(&self, Batch { bytes, mut records }: Batch) -> Result<()> {
        let bytes = bytes.freeze();
        let mut offset = 0;
        let located = records.drain(..).map(|(position, len)| {
            let body = offset..offset + len;
            offset += len;
            // The first mutation stands for all of a record.
            let place = peek_place(&bytes[body.clone()]);
            Located {
                place,
                position,
                body,
            }
        });
        let mut located: Vec<Located> = located.collect();
        located.sort_unstable_by_key(|located| located.place);
        let table = |located: &Located| located.place.map(|(table, _)| table);
        for of_table in located.chunk_by(|one, next| table(one) == table(next)) {
            self.apply_located(&bytes, of_table)?;
        }
        // Fails if something keeps a part of it; the memtables have copies.
        if let Ok(mut bytes) = bytes.try_into_mut()
            && bytes.capacity() <= 2 * BATCH_BYTES_MAX
        {
            bytes.clear();
            self.spare.lock().push(Batch { bytes, records });
        }
        Ok(())
    }

    /// Applies records whose first mutations are of the same table.
    fn apply_located(&self, bytes: &Bytes, located: &[Located]) -> Result<()> {
        let tables = self.shared.tables.load();
        let first = located.first().and_then(|first| first.place);
        let store = first.and_then(|(table, _)| tables.get(&table));
        let mut apart = Vec::new();
        {
            let mut target = store.map(|store| Target::new(self, store));
            // The threads would take turns at the reference count of a schema that they share.
            let schema = store.map(|store| Arc::new(TableSchema::clone(&store.schema())));
            let mut reader = MutationReader::new(Bytes::new());
            for Located { position, body, .. } in located {
                reader.restart(bytes.slice(body.clone()));
                self.decode(
                    &mut reader,
                    *position,
                    schema.as_ref(),
                    |mutation| match &mut target {
                        Some(target) if target.store.id == mutation.table.id => {
                            target.apply(*position, &mutation);
                        }
                        _ => apart.push((*position, mutation)),
                    },
                )?;
            }
        }
        self.apply_apart(apart);
        Ok(())
    }

    fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Passes on the mutations of a record, without those of dropped tables. `known`: the schema of the table that most of them are of.
    fn decode(
        &self,
        reader: &mut MutationReader,
        position: Position,
        known: Option<&Arc<TableSchema>>,
        mut each: impl FnMut(Mutation),
    ) -> Result<()> {
        let resolve = |id: TableId| -> Option<Arc<TableSchema>> {
            match known {
                Some(known) if known.id == id => Some(known.clone()),
                _ => self.shared.tables.load().get(&id).map(|store| store.schema()),
            }
        };
        loop {
            match reader.next_mutation(&resolve) {
                Ok(None) => return Ok(()),
                Ok(Some(Decoded::NoSuchTable(_))) => self.skip(),
                Ok(Some(Decoded::Mutation(mutation))) => each(mutation),
                Err(error) => {
                    return Err(Error::Refused(format!(
                        "the commit log record at {position} does not decode ({error}); its checksum holds, so a newer \
                         Ilion may have written it"
                    )));
                }
            }
        }
    }

    /// Applies mutations of any tables, table by table.
    fn apply_apart(&self, mut mutations: Vec<(Position, Mutation)>) {
        let tables = self.shared.tables.load();
        mutations.sort_by_cached_key(|(_, mutation)| (mutation.table.id, mutation.key.token.code()));
        for of_table in mutations.chunk_by(|(_, one), (_, next)| one.table.id == next.table.id) {
            let store = of_table
                .first()
                .and_then(|(_, first)| tables.get(&first.table.id));
            let mut target = store.map(|store| Target::new(self, store));
            for (position, mutation) in of_table {
                match &mut target {
                    Some(target) => target.apply(*position, mutation),
                    None => self.skip(),
                }
            }
        }
    }

    fn on_disk(&self, store: &TableStore) -> Arc<Vec<CommitLogInterval>> {
        if let Some(known) = self.on_disk.read().get(&store.id) {
            return known.clone();
        }
        let found = Arc::new(self.intervals(store));
        self.on_disk.write().entry(store.id).or_insert(found).clone()
    }

    /// The stretches of the log that need no replay for the table.
    fn intervals(&self, store: &TableStore) -> Vec<CommitLogInterval> {
        let view = store.view();
        let of_sstables = view
            .sstables
            .iter()
            .flat_map(|live| intervals_of(&live.sstable, self.shared.id));
        let purged = self.shared.purged.lock();
        union_intervals(of_sstables.chain(purged.of(store.id)).collect())
    }
}

/// A record of a batch.
struct Located {
    /// The table and the code of the token of its first mutation.
    place: Option<(TableId, u64)>,
    position: Position,
    /// Where it is in the bytes of the batch.
    body: Range<usize>,
}

/// A table whose memtable takes mutations.
struct Target<'a> {
    applier: &'a Applier<'a>,
    store: &'a TableStore,
    active: RwLockReadGuard<'a, Active>,
    on_disk: Arc<Vec<CommitLogInterval>>,
    is_of_schema: bool,
    grown: isize,
}

impl<'a> Target<'a> {
    fn new(applier: &'a Applier<'a>, store: &'a TableStore) -> Self {
        Self {
            on_disk: applier.on_disk(store),
            is_of_schema: store.schema().keyspace == SCHEMA_KEYSPACE,
            active: store.active.read(),
            applier,
            store,
            grown: 0,
        }
    }

    fn apply(&mut self, position: Position, mutation: &Mutation) {
        let applier = self.applier;
        if is_on_disk(&self.on_disk, position) {
            return applier.skip();
        }
        if self.is_of_schema {
            applier.has_schema_rows.store(true, Ordering::Relaxed);
        }
        let position = Some(memtable_position(position));
        self.grown += applier.shared.apply_to_memtable(&self.active, mutation, position);
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        self.applier.shared.budget.grow(self.grown);
    }
}
