//! Attached indexes, which have files beside each SSTable: written with it, opened with it, built if they are missing.
//!
//! Invariant: an SSTable that is added to a view has every attached index of its table. The caller that adds it ensures this
//! while it holds the table's files (`maintenance`), and a build does so at its end. So an SSTable whose writing began before an index
//! was created gets the index, too.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_compaction::Watched;
use ilion_env::Env;
use ilion_index::{RowNumbers, RowNumbersFile};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Row, Unfiltered};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, Scan};

use super::indexed_writer::{AttachedWriters, attached_of, base_of, begin};
use crate::live_sstable::LiveSSTable;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::source::scan;
use crate::table_store::{LiveIndex, TableIndexes, TableStore};
use crate::{Error, Result};

/// `Ok(Err)` for a component that must be made again; `Err` for a shortage, after which the component may still be sound.
fn usable<T>(opened: std::result::Result<T, ilion_index::Error>) -> Result<std::result::Result<T, Error>> {
    match opened.map_err(Error::from) {
        Err(error) if error.is_shortage() => Err(error),
        opened => Ok(opened),
    }
}

/// The files of an index beside an SSTable.
pub(super) fn files_beside(env: &dyn Env, descriptor: &Descriptor, index: &str) -> Result<Vec<PathBuf>> {
    let prefix = format!("{}-Index+{index}", descriptor.base_name());
    let is_of_index = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_prefix(&prefix));
        rest.is_some_and(|rest| rest.starts_with('+'))
    };
    let files = descriptor.files(env)?;
    Ok(files.into_iter().filter(is_of_index).collect())
}

impl Shared {
    /// Opens the attached indexes that an SSTable has files of.
    pub(crate) fn open_attached(
        &self,
        table: &Arc<TableSchema>,
        indexes: &TableIndexes,
        sstable: &LiveSSTable,
    ) -> Result<()> {
        let Some(rows) = self.open_row_numbers(table, indexes, sstable)? else {
            return Ok(());
        };
        let base = base_of(sstable.descriptor());
        for (live, attached) in indexes.attached() {
            match usable(attached.open_sstable(&self.env, &base, rows.clone()))? {
                Ok(index) => sstable.set_index(live.name(), Some(index)),
                Err(error) => {
                    tracing::info!(index = live.name(), %error, "an index is to be built for an SSTable")
                }
            }
        }
        Ok(())
    }

    fn open_row_numbers(
        &self,
        table: &Arc<TableSchema>,
        indexes: &TableIndexes,
        sstable: &LiveSSTable,
    ) -> Result<Option<Arc<dyn RowNumbers>>> {
        if indexes.attached().next().is_none() {
            return Ok(None);
        }
        let partitioner = table.partitioner(self.options.partitioner);
        let base = base_of(sstable.descriptor());
        match usable(RowNumbersFile::open(&self.env, &base, table, partitioner))? {
            Ok(rows) => Ok(Some(Arc::new(rows))),
            Err(error) => {
                tracing::debug!(%error, "the rows of an SSTable are to be numbered");
                Ok(None)
            }
        }
    }

    /// Opens the indexes of an SSTable before it is added to the view, and builds those that were created after the SSTable was
    /// begun. `written` are the indexes that it was written with.
    ///
    /// Requires: the table's files are held (`maintenance`).
    pub(crate) fn attach(
        &self,
        store: &Arc<TableStore>,
        written: &TableIndexes,
        sstable: &Arc<LiveSSTable>,
    ) -> Result<()> {
        let now = store.indexes();
        if now.attached().next().is_none() {
            return Ok(());
        }
        let is_written = |live: &&Arc<LiveIndex>| {
            written
                .0
                .iter()
                .any(|other| Arc::ptr_eq(&other.state, &live.state))
        };
        let opened = TableIndexes(now.0.iter().filter(is_written).cloned().collect());
        let table = store.schema();
        self.open_attached(&table, &opened, sstable)?;
        for (live, _) in now.attached() {
            if sstable.index(live.name()).is_none() {
                self.build_beside(store, live, sstable)?;
            }
        }
        Ok(())
    }

    /// True if every SSTable has the index.
    pub(crate) fn is_attached_everywhere(&self, store: &TableStore, live: &LiveIndex) -> bool {
        let view = store.view();
        view.sstables
            .iter()
            .all(|sstable| sstable.index(live.name()).is_some())
    }

    /// Builds an attached index for every SSTable without it. Returns false if the build was stopped.
    pub(crate) fn build_attached(&self, store: &Arc<TableStore>, live: &Arc<LiveIndex>) -> Result<bool> {
        loop {
            let view = store.view().clone();
            let missing = view
                .sstables
                .iter()
                .find(|sstable| sstable.index(live.name()).is_none());
            if live.is_dropped() || self.pacer.is_stopping() {
                return Ok(false);
            }
            match missing {
                Some(sstable) => self.build_beside(store, live, sstable)?,
                None => {
                    let _maintenance = store.maintenance.alone();
                    if self.is_attached_everywhere(store, live) {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Builds an attached index for one SSTable.
    fn build_beside(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        sstable: &Arc<LiveSSTable>,
    ) -> Result<()> {
        let written = self.make_part(store, live, sstable);
        // DROP INDEX sets `is_dropped` before it removes the parts, and may have passed this SSTable before its part was added.
        if live.is_dropped() {
            if let Ok(Some(part)) = &written {
                sstable.remove_index(part);
            }
            return self.remove_beside(sstable.descriptor(), live.name());
        }
        written.map(drop)
    }

    /// Writes the files of an attached index for one SSTable and opens them.
    fn make_part(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        sstable: &Arc<LiveSSTable>,
    ) -> Result<Option<Arc<dyn ilion_index::SSTableIndex>>> {
        let Some(attached) = attached_of(live) else {
            return Ok(None);
        };
        let table = store.schema();
        let descriptor = sstable.descriptor();
        self.remove_beside(descriptor, live.name())?;
        let partitioner = table.partitioner(self.options.partitioner);
        let only = TableIndexes(vec![live.clone()]);
        let known = self.open_row_numbers(&table, &only, sstable)?;
        if known.is_none() {
            // The file of row numbers is missing, or cannot be used.
            let rows = PathBuf::from(format!("{}{}", base_of(descriptor), RowNumbersFile::NAME));
            self.env.remove_file_if_any(&rows)?;
        }
        let numbering = known.is_none().then_some(partitioner);
        let mut index_writers = begin(self, &[attached], descriptor, &table, numbering)?;
        if let Err(error) = self.each_row(store, live, sstable, &mut |key, row| index_writers.add(key, row)) {
            index_writers.abandon();
            return Err(error);
        }
        if known
            .as_ref()
            .is_some_and(|rows| rows.len() != index_writers.number)
        {
            index_writers.abandon();
            return Err(Error::Refused(format!(
                "{descriptor}: its rows are not those that were numbered; remove its Index+Rows.db"
            )));
        }
        index_writers.finish()?;
        self.env.sync_dir(&descriptor.directory)?;
        self.open_attached(&table, &only, sstable)?;
        match sstable.index(live.name()) {
            Some(part) => Ok(Some(part)),
            None => Err(Error::Refused(format!(
                "{descriptor}: an index that was just written cannot be opened"
            ))),
        }
    }

    /// Calls `show` for all rows of an SSTable, static ones included.
    fn each_row(
        &self,
        store: &Arc<TableStore>,
        live: &LiveIndex,
        sstable: &Arc<LiveSSTable>,
        show: &mut dyn FnMut(&DecoratedKey, &Row) -> std::result::Result<(), ilion_index::Error>,
    ) -> Result<()> {
        let task = self.begin_build_task(store, live, std::slice::from_ref(sstable));
        let filter = Arc::new(ClusteringFilter::all());
        let cursor = scan(
            sstable,
            &store.schema(),
            &KeyRange::all(),
            &filter,
            Scan::Sequential,
        );
        let items = sstable.sstable.stats().total_rows + sstable.sstable.estimated_keys();
        let bytes = sstable.sstable.size_bytes();
        let mut cursor = Watched::new(cursor, Pace::of(&self.pacer, &task.task), bytes, items);
        while let Some(head) = cursor.next_partition()? {
            if let Some(row) = &head.static_row {
                show(&head.key, row)?;
            }
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                if let Unfiltered::Row(row) = unfiltered {
                    show(&head.key, &row)?;
                }
            }
        }
        Ok(())
    }

    /// Removes an attached index from all SSTables.
    pub(crate) fn detach(&self, store: &TableStore, index: &str) -> Result<()> {
        let view = store.view().clone();
        for sstable in &view.sstables {
            sstable.set_index(index, None);
            self.remove_beside(sstable.descriptor(), index)?;
        }
        Ok(())
    }

    /// Removes the files of an index beside an SSTable. A build of the index may remove the same files when DROP INDEX stops it.
    fn remove_beside(&self, descriptor: &Descriptor, index: &str) -> Result<()> {
        for path in files_beside(&*self.env, descriptor, index)? {
            self.env.remove_file_if_any(&path)?;
        }
        Ok(())
    }

    /// Compares an index with the rows of an SSTable: returns the number of rows, and whether the index is right. `None` if the files
    /// of the index must be compared instead.
    pub(super) fn compare_rows(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        sstable: &Arc<LiveSSTable>,
    ) -> Result<Option<(u64, bool)>> {
        let Some(index) = sstable.index(live.name()) else {
            return Ok(None);
        };
        let Some(mut comparison) = index.begin_comparison()? else {
            return Ok(None);
        };
        let mut number = 0_u32;
        self.each_row(store, live, sstable, &mut |key, row| {
            if !row.is_empty() {
                comparison.add(number, key, row);
                number = number.saturating_add(1);
            }
            Ok(())
        })?;
        Ok(Some((u64::from(number), comparison.is_same())))
    }

    /// Writes an index from the rows of an SSTable, with `prefix` before the names of its files; returns the number of rows.
    pub(super) fn write_beside(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        sstable: &Arc<LiveSSTable>,
        prefix: &str,
    ) -> Result<u64> {
        let Some(attached) = attached_of(live) else {
            return Ok(0);
        };
        let descriptor = sstable.descriptor();
        let name = format!("{prefix}{}-", descriptor.base_name());
        let base = descriptor.directory.join(name).display().to_string();
        let mut index_writers = AttachedWriters {
            writers: vec![attached.begin_sstable(&self.env, &base)?],
            rows: None,
            number: 0,
        };
        if let Err(error) = self.each_row(store, live, sstable, &mut |key, row| index_writers.add(key, row)) {
            index_writers.abandon();
            return Err(error);
        }
        let rows = u64::from(index_writers.number);
        index_writers.finish()?;
        Ok(rows)
    }
}
