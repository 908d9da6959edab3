//! Opening and dropping indexes as the schema changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_index::{Definition, SecondaryIndex, Storage};
use ilion_schema::{IndexSchema, Keyspace, TableSchema};
use ilion_sstable::list_directory;

use super::no_such_index;
use crate::recovery::FoundSSTable;
use crate::shared::Shared;
use crate::table_store::{IndexState, LiveIndex, TableIndexes, TableStore};
use crate::{Error, Result};

/// The directory of the hidden table of an index. Compat: `Directories`, `SECONDARY_INDEX_NAME_SEPARATOR`.
pub(crate) fn directory_of(table: &Path, index: &str) -> PathBuf {
    table.join(format!(".{index}"))
}

impl Shared {
    /// Gives a table the indexes of the schema. At the start, SSTables of hidden tables are added to `found`.
    pub(crate) fn adopt_indexes(
        &self,
        keyspace: &Keyspace,
        table: &Arc<TableSchema>,
        store: &Arc<TableStore>,
        found: &mut Vec<FoundSSTable>,
    ) -> Result<()> {
        let known = store.indexes();
        let mut next = Vec::new();
        for schema in keyspace.indexes_of(&table.name) {
            let old = known.named(&schema.name).filter(|old| is_of(old, schema));
            let live = match old {
                Some(old) if old.index.definition().table == *table => Some(old.clone()),
                _ => self.open_index(schema, table, store, old, found)?,
            };
            next.extend(live);
        }
        let is_same =
            next.len() == known.0.len() && next.iter().zip(&known.0).all(|(a, b)| Arc::ptr_eq(a, b));
        if is_same {
            return Ok(());
        }
        let gone = |old: &&Arc<LiveIndex>| !next.iter().any(|live| Arc::ptr_eq(&live.state, &old.state));
        let gone: Vec<Arc<LiveIndex>> = known.0.iter().filter(gone).cloned().collect();
        store.set_indexes(&*self.env, TableIndexes(next), || self.barrier());
        if self.log.get().is_none() {
            let indexes = store.indexes();
            let view = store.view();
            let mut sstables = view.sstables.iter();
            sstables.try_for_each(|sstable| self.open_attached(table, &indexes, sstable))?;
        }
        match self.log.get() {
            Some(_) => gone.iter().try_for_each(|index| self.close_index(store, index)),
            None => {
                gone.iter().for_each(|index| self.forget_index(index));
                Ok(())
            }
        }
    }

    /// Drops an index that the schema no longer has, and removes its files.
    pub(crate) fn close_index(&self, store: &TableStore, live: &LiveIndex) -> Result<()> {
        live.state.is_dropped.store(true, Ordering::Release);
        match &live.hidden {
            Some(hidden) => self.drop_table(hidden),
            None => self.detach(store, live.name()),
        }
    }

    /// Drops an index during a replay, but leaves its files: they may belong to an index that was created with the same name later. If
    /// not, they are removed after the replay.
    fn forget_index(&self, live: &LiveIndex) {
        live.state.is_dropped.store(true, Ordering::Release);
        if let Some(hidden) = &live.hidden {
            hidden.is_dropped.store(true, Ordering::Release);
            let mut active = hidden.active.write();
            let since = active.since;
            let (bytes, _) = hidden.clear_locked(&*self.env, &mut active, since);
            self.budget.free(bytes);
        }
    }

    /// Removes directories of indexes that the schema does not have. Requires: the replay of the log has ended.
    pub(crate) fn remove_index_leftovers(&self) -> Result<()> {
        let schema = self.schema.load_full();
        for store in self.tables.load().values() {
            let table = store.schema();
            let is_index = |name: &str| {
                let keyspace = schema.keyspace(&table.keyspace);
                keyspace
                    .is_some_and(|keyspace| keyspace.indexes_of(&table.name).any(|index| index.name == name))
            };
            let directories = std::mem::take(&mut store.left.lock().directories);
            for name in directories {
                let directory = store.directory.join(&name);
                let is_left = name.strip_prefix('.').is_some_and(|name| !is_index(name));
                if is_left && self.env.exists(&directory) {
                    tracing::info!(directory = %name, ?store, "files of a dropped index are removed");
                    self.env.remove_dir_all(&directory)?;
                }
            }
        }
        Ok(())
    }

    fn open_index(
        &self,
        schema: &Arc<IndexSchema>,
        table: &Arc<TableSchema>,
        store: &Arc<TableStore>,
        old: Option<&Arc<LiveIndex>>,
        found: &mut Vec<FoundSSTable>,
    ) -> Result<Option<Arc<LiveIndex>>> {
        let index = match self.make_index(schema, table) {
            Ok(index) => index,
            // Not an error, so that a directory of a program with other classes of indexes can be opened.
            Err(reason) => {
                let (keyspace, name) = (&table.keyspace, &schema.name);
                tracing::warn!(%keyspace, index = %name, %reason, "an index is not opened and misses writes: it cannot be used until it is created again");
                return Ok(None);
            }
        };
        let hidden = match (index.storage(), old.and_then(|old| old.hidden.as_ref())) {
            (Storage::Attached(_), _) => {
                // Remove files of a dropped index with the same name.
                if old.is_none() && self.log.get().is_some() {
                    self.detach(store, &schema.name)?;
                }
                None
            }
            (Storage::HiddenTable(hidden), Some(known)) => {
                if *known.schema() != **hidden.table() {
                    known.alter(&*self.env, hidden.table().clone(), || self.barrier());
                }
                Some(known.clone())
            }
            (Storage::HiddenTable(hidden), None) => {
                Some(self.find_hidden(hidden.table(), &schema.name, store, found)?)
            }
        };
        Ok(Some(Arc::new(LiveIndex {
            index,
            hidden,
            state: old.map_or_else(Arc::<IndexState>::default, |old| old.state.clone()),
        })))
    }

    pub(crate) fn make_index(
        &self,
        schema: &Arc<IndexSchema>,
        table: &Arc<TableSchema>,
    ) -> std::result::Result<Arc<dyn SecondaryIndex>, String> {
        let class = self.options.index_classes.of(schema);
        let class = class.ok_or_else(|| "its class is not known".to_owned())?;
        let definition = Definition::of(schema, table).ok_or_else(|| "its column is not known".to_owned())?;
        class
            .open(definition.under(self.options.partitioner))
            .map_err(|error| error.to_string())
    }

    /// The hidden table of an index. At the start it gets the files in its directory. If the index is being created, such files belong to
    /// a dropped index with the same name, and are removed.
    fn find_hidden(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        store: &TableStore,
        found: &mut Vec<FoundSSTable>,
    ) -> Result<Arc<TableStore>> {
        let directory = directory_of(&store.directory, index);
        let options = &self.options;
        let hidden = Arc::new(TableStore::in_directory(
            &*self.env,
            directory,
            table.clone(),
            options.memtable_shards,
            self.barrier(),
            self.tablets.clone(),
        ));
        if self.log.get().is_none() {
            self.find_sstables(&hidden, found)?;
        } else if self.env.exists(&hidden.directory) {
            for listed in list_directory(&*self.env, &hidden.directory)? {
                hidden.reserve_generation(listed.descriptor.id);
                listed.descriptor.remove_files(&*self.env)?;
            }
            self.forget_progress(&hidden)?;
        }
        self.reserve_names_of_backups(&hidden)?;
        Ok(hidden)
    }

    /// The index of this name.
    pub(crate) fn index_of(
        &self,
        table: &TableSchema,
        name: &str,
    ) -> Result<(Arc<TableStore>, Arc<LiveIndex>)> {
        let store = self.table(table.id);
        let store = store.ok_or_else(|| no_such_index(table, name))?;
        store.check_usable()?;
        let live = store.indexes().named(name).cloned();
        Ok((store, live.ok_or_else(|| no_such_index(table, name))?))
    }
}

fn is_of(live: &LiveIndex, schema: &IndexSchema) -> bool {
    *live.index.definition().schema == *schema
}

impl From<ilion_index::Error> for Error {
    fn from(error: ilion_index::Error) -> Self {
        match error {
            ilion_index::Error::Invalid(reason) | ilion_index::Error::Config(reason) => Self::Refused(reason),
            ilion_index::Error::Env(error) => Self::Io(error),
            ilion_index::Error::Read(error) => Self::Read(error),
            error @ ilion_index::Error::Unusable { .. } => Self::Refused(error.to_string()),
        }
    }
}
