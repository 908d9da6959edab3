//! Records of the log back into memtables, but for what SSTables hold already.
//!
//! Changes of the schema are records as well: what follows one is read with the schema that it made, or a later one, as far
//! as that is on disk. A later schema does no harm: data that only an earlier one knows was dropped in between.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use ilion_commitlog::{Envelope, Kind, Position};
use ilion_rows::{Decoded, Mutation, MutationReader};
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::CommitLogInterval;
use uuid::Uuid;

use crate::compact::{intervals_of, union};
use crate::engine::Shared;
use crate::recovery::is_on_disk;
use crate::table_store::TableStore;
use crate::write::memtable_position;
use crate::{Error, Result};

pub(crate) struct Replay<'a> {
    shared: &'a Shared,
    /// What the SSTables of a table hold, found when its first record comes.
    on_disk: HashMap<TableId, Vec<CommitLogInterval>>,
    /// `system_schema` has changed since the schema was read from it.
    is_schema_old: bool,
    skipped: u64,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            on_disk: HashMap::new(),
            is_schema_old: false,
            skipped: 0,
        }
    }

    /// Applies a record.
    pub(crate) fn receive(&mut self, position: Position, envelope: &Envelope<'_>) -> Result<()> {
        if envelope.kind != Kind::Schema {
            self.renew_schema()?;
        }
        match envelope.kind {
            Kind::Noop => {}
            Kind::Truncate => self.shared.replay_truncate(position, envelope.body)?,
            Kind::Schema => {
                self.is_schema_old = true;
                self.apply(position, envelope.body)?;
            }
            Kind::Mutation | Kind::Batch | Kind::Cas | Kind::Counter => {
                self.apply(position, envelope.body)?
            }
        }
        if self.shared.budget.is_flush_due() {
            self.flush_largest(position)?;
        }
        Ok(())
    }

    /// Ends the replay; returns how many mutations were skipped since their data is on disk or their table is gone.
    pub(crate) fn finish(self) -> Result<u64> {
        let schema = self.shared.load_schema()?;
        self.shared.adopt_tables(&schema)?;
        self.shared.schema.store(Arc::new(schema));
        Ok(self.skipped)
    }

    fn renew_schema(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_schema_old) {
            let schema = self.shared.load_schema_in_part()?;
            self.shared.adopt_tables(&schema)?;
            self.shared.schema.store(Arc::new(schema));
        }
        Ok(())
    }

    fn apply(&mut self, position: Position, body: &[u8]) -> Result<()> {
        let tables = self.shared.tables.load_full();
        let resolve =
            |id: TableId| -> Option<Arc<TableSchema>> { tables.get(&id).map(|store| store.schema()) };
        let mut reader = MutationReader::new(Bytes::copy_from_slice(body));
        loop {
            match reader.next_mutation(&resolve) {
                Ok(None) => return Ok(()),
                Ok(Some(Decoded::NoSuchTable(_))) => self.skipped += 1,
                Ok(Some(Decoded::Mutation(mutation))) => match tables.get(&mutation.table.id) {
                    Some(store) => self.apply_to(store, position, &mutation),
                    None => self.skipped += 1,
                },
                Err(error) => {
                    return Err(Error::Refused(format!(
                        "the commit log record at {position} does not decode ({error}); its checksum holds, so a newer \
                         Ilion may have written it"
                    )));
                }
            }
        }
    }

    fn apply_to(&mut self, store: &TableStore, position: Position, mutation: &Mutation) {
        let id = self.shared.id;
        let on_disk = self
            .on_disk
            .entry(store.id)
            .or_insert_with(|| intervals(store, id));
        if is_on_disk(on_disk, position) {
            self.skipped += 1;
            return;
        }
        let active = store.active.read();
        let applied = active
            .memtable
            .apply_logged(mutation, memtable_position(position));
        self.shared.budget.grow(applied.grown_bytes);
    }

    /// Requires: the record at `position` is applied, so that the next begins behind it.
    fn flush_largest(&mut self, position: Position) -> Result<()> {
        let tables = self.shared.tables.load_full();
        let size = |store: &&Arc<TableStore>| store.active.read().memtable.size_bytes();
        let Some(store) = tables.values().max_by_key(size) else {
            return Ok(());
        };
        let behind = Position::new(position.segment.0, position.offset.saturating_add(1));
        self.shared.flush_upto(store, || behind)
    }
}

fn intervals(store: &TableStore, id: Uuid) -> Vec<CommitLogInterval> {
    let view = store.view();
    union(
        view.sstables
            .iter()
            .flat_map(|live| intervals_of(&live.sstable, id))
            .collect(),
    )
}
