//! Attached indexes, which have files beside each SSTable: written with it, opened with it, built if they are missing.
//!
//! Invariant: an SSTable that is added to a view has every attached index of its table. The caller that adds it makes sure of that
//! while it holds the table's files (`maintenance`), as a build does at its end. So an SSTable that was begun before an index was
//! created gets the index, too.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_compaction::{Sink, Watched};
use ilion_env::Env;
use ilion_index::{Attached, RowNumbers, RowNumbersFile, RowNumbersWriter, SSTableIndexWriter, Storage};
use ilion_memtable::Observed;
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, EntryRow, KeyRange, Liveness,
    NO_TIMESTAMP, PartitionHead, PlainRow, Row, Unfiltered, may_be_plain, rows_may_be_plain,
};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, SSTableWriter, Scan, WriterOptions};
use ilion_types::{Partitioner, Token};

use crate::large::LargeWatch;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::source::scan;
use crate::table_store::{LiveIndex, TableIndexes, TableStore};
use crate::view::LiveSSTable;
use crate::{Error, Result};

/// The beginning of the names of an SSTable's files.
pub(super) fn base_of(descriptor: &Descriptor) -> String {
    let path = descriptor.directory.join(descriptor.base_name());
    format!("{}-", path.display())
}

fn attached_of(live: &LiveIndex) -> Option<&dyn Attached> {
    match live.index.storage() {
        Storage::Attached(attached) => Some(attached),
        Storage::HiddenTable(_) => None,
    }
}

impl TableIndexes {
    fn attached(&self) -> impl Iterator<Item = (&Arc<LiveIndex>, &dyn Attached)> {
        self.0.iter().filter_map(|live| Some((live, attached_of(live)?)))
    }
}

/// Writers of attached indexes, for an SSTable that is written or read.
struct AttachedWriters {
    /// `None` if the rows are numbered already.
    rows: Option<RowNumbersWriter>,
    writers: Vec<Box<dyn SSTableIndexWriter>>,
    number: u32,
}

impl AttachedWriters {
    fn add(&mut self, key: &DecoratedKey, row: &Row) -> std::result::Result<(), ilion_index::Error> {
        // Empty rows are not in the SSTable.
        if row.is_empty() {
            return Ok(());
        }
        if let Some(rows) = &mut self.rows {
            rows.add(key, row)?;
        }
        for writer in &mut self.writers {
            writer.add(self.number, key, row)?;
        }
        self.number = self.number.saturating_add(1);
        Ok(())
    }

    /// As [`Self::add`], for a plain partition with its token.
    fn add_plain(
        &mut self,
        token: &Token,
        partition: &PlainRow<'_>,
        observed: &Observed,
    ) -> std::result::Result<(), ilion_index::Error> {
        if let Some(rows) = &mut self.rows {
            rows.add_plain(token, partition.key)?;
        }
        let mut copied: Option<(DecoratedKey, Row)> = None;
        for writer in &mut self.writers {
            if !writer.add_plain(self.number, partition)? {
                let (key, row) = copied.get_or_insert_with(|| {
                    let key = DecoratedKey {
                        token: token.clone(),
                        key: Bytes::copy_from_slice(partition.key),
                    };
                    (key, copy_of(partition, observed))
                });
                writer.add(self.number, key, row)?;
            }
        }
        self.number = self.number.saturating_add(1);
        Ok(())
    }

    fn finish(self) -> std::result::Result<(), ilion_index::Error> {
        self.rows.map_or(Ok(()), RowNumbersWriter::finish)?;
        self.writers.into_iter().try_for_each(|writer| writer.finish())
    }

    fn abandon(self) {
        if let Some(rows) = self.rows {
            rows.abandon();
        }
        self.writers.into_iter().for_each(|writer| writer.abandon());
    }
}

/// An SSTable that is written together with its attached indexes.
pub(crate) struct IndexedWriter {
    writer: SSTableWriter,
    index_writers: Option<AttachedWriters>,
    key: Option<DecoratedKey>,
    /// The columns that attached indexes need.
    observed: Observed,
    watch: LargeWatch,
}

impl IndexedWriter {
    /// Creates the files.
    pub(crate) fn new(
        shared: &Shared,
        indexes: &TableIndexes,
        descriptor: &Descriptor,
        table: &Arc<TableSchema>,
        options: WriterOptions,
    ) -> Result<Self> {
        let partitioner = options.partitioner;
        let writer = SSTableWriter::new(&shared.env, descriptor, table, options)?;
        let chosen: Vec<&dyn Attached> = indexes.attached().map(|(_, attached)| attached).collect();
        let index_writers = match chosen.is_empty() {
            true => None,
            false => shared.keep(begin(shared, &chosen, descriptor, table, Some(partitioner)))?,
        };
        Ok(Self {
            writer,
            index_writers,
            key: None,
            observed: indexes.observed(),
            watch: LargeWatch::new(shared.options.large, table),
        })
    }

    fn add_to_indexes(&mut self, row: &Row) -> Result<()> {
        let (Some(index_writers), Some(key)) = (&mut self.index_writers, &self.key) else {
            return Ok(());
        };
        let added = index_writers.add(key, row);
        self.go_on(added)
    }

    /// Continues without the indexes if they cannot be written.
    fn go_on(&mut self, told: std::result::Result<(), ilion_index::Error>) -> Result<()> {
        if let Err(error) = told
            && let Some(index_writers) = self.index_writers.take()
        {
            index_writers.abandon();
            return give_up(error);
        }
        Ok(())
    }

    pub(crate) fn partitions(&self) -> u64 {
        self.writer.partitions()
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.writer.stored_bytes()
    }

    /// Completes the indexes and then the SSTable.
    pub(crate) fn finish(self) -> Result<()> {
        self.watch.finish();
        if let Some(Err(error)) = self.index_writers.map(AttachedWriters::finish) {
            give_up(error)?;
        }
        Ok(self.writer.finish()?)
    }

    pub(crate) fn abandon(self) {
        if let Some(index_writers) = self.index_writers {
            index_writers.abandon();
        }
        self.writer.abandon();
    }
}

/// A plain row with the columns that indexes need.
fn copy_of(row: &PlainRow<'_>, observed: &Observed) -> Row {
    // A plain row has a timestamp.
    let micros = row.timestamp_micros.unwrap_or(NO_TIMESTAMP);
    let clustering = row.clustering.iter();
    let clustering = clustering.map(|value| value.map(Bytes::copy_from_slice));
    let cells = row.cells.iter();
    let columns = cells
        .filter(|(column, _)| observed.has(*column))
        .map(|(column, value)| ColumnData {
            column: *column,
            data: Data::Simple(Cell::live(micros, Bytes::copy_from_slice(value))),
        });
    Row {
        liveness: Liveness::live(micros),
        columns: columns.collect(),
        ..Row::empty(Clustering::new(clustering.collect()))
    }
}

impl Sink for IndexedWriter {
    type Error = Error;

    fn begin_partition(&mut self, head: &PartitionHead) -> Result<()> {
        self.watch.begin_partition(head, self.writer.data_bytes());
        self.writer.begin_partition(head)?;
        if self.index_writers.is_some() {
            self.key = Some(head.key.clone());
            if let Some(row) = &head.static_row {
                self.add_to_indexes(row)?;
            }
        }
        Ok(())
    }

    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<()> {
        let before = self.writer.data_bytes();
        self.writer.add(unfiltered)?;
        self.watch
            .unfiltered(unfiltered, self.writer.data_bytes() - before);
        match unfiltered {
            Unfiltered::Row(row) => self.add_to_indexes(row),
            Unfiltered::Marker(_) => Ok(()),
        }
    }

    fn entry(&mut self, entry: &EntryRow<'_>) -> Result<()> {
        if self.index_writers.is_some() {
            return self.unfiltered(&Unfiltered::Row(entry.to_row()));
        }
        let before = self.writer.data_bytes();
        self.writer.add_entry(entry)?;
        self.watch.entry(entry, self.writer.data_bytes() - before);
        Ok(())
    }

    fn end_partition(&mut self) -> Result<()> {
        self.writer.finish_partition()?;
        self.watch.end_partition(self.writer.data_bytes());
        Ok(())
    }

    fn takes_plain(&self) -> bool {
        may_be_plain(self.watch.table())
    }

    /// Needs the token of the partition.
    fn plain_partition(&mut self, partition: &PlainRow<'_>) -> Result<bool> {
        let Some(token) = partition.token.filter(|_| self.watch.passes_over(partition)) else {
            return Ok(false);
        };
        let is_written = self.writer.add_plain(token, partition)?;
        if is_written && let Some(index_writers) = &mut self.index_writers {
            let added = index_writers.add_plain(token, partition, &self.observed);
            self.go_on(added)?;
        }
        Ok(is_written)
    }

    fn takes_plain_rows(&self) -> bool {
        rows_may_be_plain(self.watch.table())
    }

    #[inline]
    fn plain_row(&mut self, row: &PlainRow<'_>) -> Result<bool> {
        if !self.watch.passes_over(row) {
            return Ok(false);
        }
        let is_written = self.writer.add_plain_row(row)?;
        if is_written && self.index_writers.is_some() {
            self.add_to_indexes(&copy_of(row, &self.observed))?;
        }
        Ok(is_written)
    }
}

/// `Ok(Err)` for a component that must be made again; `Err` if it may be sound, but something is used up now.
fn usable<T>(opened: std::result::Result<T, ilion_index::Error>) -> Result<std::result::Result<T, Error>> {
    match opened.map_err(Error::from) {
        Err(error) if error.is_shortage() => Err(error),
        opened => Ok(opened),
    }
}

/// Returns errors of the system; any other error only costs the index of this SSTable.
fn give_up(error: ilion_index::Error) -> Result<()> {
    match error {
        ilion_index::Error::Env(error) => Err(error.into()),
        error => {
            tracing::error!(%error, "an SSTable is written without its indexes; rebuild them");
            Ok(())
        }
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

/// Starts to write attached indexes, and (with a partitioner) the numbers of rows.
fn begin(
    shared: &Shared,
    chosen: &[&dyn Attached],
    descriptor: &Descriptor,
    table: &Arc<TableSchema>,
    partitioner: Option<Partitioner>,
) -> std::result::Result<AttachedWriters, ilion_index::Error> {
    let base = base_of(descriptor);
    let rows = partitioner.map(|of| RowNumbersWriter::create(&shared.env, &base, table, of));
    let writers = chosen
        .iter()
        .map(|attached| attached.begin_sstable(&shared.env, &base));
    Ok(AttachedWriters {
        writers: writers.collect::<std::result::Result<_, _>>()?,
        rows: rows.transpose()?,
        number: 0,
    })
}

impl Shared {
    /// `None` in place of an error that only costs an index.
    fn keep<T>(&self, made: std::result::Result<T, ilion_index::Error>) -> Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) => give_up(error).map(|()| None),
        }
    }

    /// Opens the attached indexes that an SSTable has.
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

    /// Builds an attached index for every SSTable without it. Returns false if it was stopped.
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
        let Some(attached) = attached_of(live) else {
            return Ok(());
        };
        let table = store.schema();
        let descriptor = sstable.descriptor();
        self.remove_beside(descriptor, live.name())?;
        let partitioner = table.partitioner(self.options.partitioner);
        let only = TableIndexes(vec![live.clone()]);
        let known = self.open_row_numbers(&table, &only, sstable)?;
        if known.is_none() {
            // Files of the index that are damaged, or of another table.
            let rows = PathBuf::from(format!("{}{}", base_of(descriptor), RowNumbersFile::NAME));
            if self.env.exists(&rows) {
                self.env.remove_file(&rows)?;
            }
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
            Some(_) => Ok(()),
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

    /// Removes the files of an index beside an SSTable.
    fn remove_beside(&self, descriptor: &Descriptor, index: &str) -> Result<()> {
        for path in files_beside(&*self.env, descriptor, index)? {
            self.env.remove_file(&path)?;
        }
        Ok(())
    }

    /// Compares an index with the rows of an SSTable: returns the number of rows, and whether the index is right. `None` if the index
    /// must be compared by its files.
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
