//! [`IndexedWriter`]: writes an SSTable together with its attached indexes.

use std::sync::Arc;

use bytes::Bytes;
use ilion_compaction::Sink;
use ilion_index::{Attached, RowNumbersWriter, SSTableIndexWriter, Storage};
use ilion_memtable::Observed;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, EntryRow, Liveness, NO_TIMESTAMP, PartitionHead,
    PlainRow, Row, Unfiltered, may_be_plain, rows_may_be_plain,
};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, SSTableWriter, WriterOptions};
use ilion_types::{Partitioner, Token};

use crate::large::LargeWatch;
use crate::shared::Shared;
use crate::table_store::{LiveIndex, TableIndexes};
use crate::{Error, Result};

/// Prefix of the paths of an SSTable's files.
pub(super) fn base_of(descriptor: &Descriptor) -> String {
    let path = descriptor.directory.join(descriptor.base_name());
    format!("{}-", path.display())
}

pub(super) fn attached_of(live: &LiveIndex) -> Option<&dyn Attached> {
    match live.index.storage() {
        Storage::Attached(attached) => Some(attached),
        Storage::HiddenTable(_) => None,
    }
}

impl TableIndexes {
    pub(super) fn attached(&self) -> impl Iterator<Item = (&Arc<LiveIndex>, &dyn Attached)> {
        self.0.iter().filter_map(|live| Some((live, attached_of(live)?)))
    }
}

/// Writers of attached indexes, for an SSTable that is written or read.
pub(super) struct AttachedWriters {
    /// `None` if the SSTable already has row numbers.
    pub rows: Option<RowNumbersWriter>,
    pub writers: Vec<Box<dyn SSTableIndexWriter>>,
    /// Number of the next row.
    pub number: u32,
}

impl AttachedWriters {
    pub(super) fn add(
        &mut self,
        key: &DecoratedKey,
        row: &Row,
    ) -> std::result::Result<(), ilion_index::Error> {
        // The SSTable has no empty rows, so they get no number.
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

    /// Like [`Self::add`], for a plain partition with its token.
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

    pub(super) fn finish(self) -> std::result::Result<(), ilion_index::Error> {
        self.rows.map_or(Ok(()), RowNumbersWriter::finish)?;
        self.writers.into_iter().try_for_each(|writer| writer.finish())
    }

    pub(super) fn abandon(self) {
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
        let options = WriterOptions {
            column_index_bytes: shared.adjusted.column_index_bytes(),
            ..options
        };
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
            watch: LargeWatch::new(shared.adjusted.large(), table),
        })
    }

    fn add_to_indexes(&mut self, row: &Row) -> Result<()> {
        let (Some(index_writers), Some(key)) = (&mut self.index_writers, &self.key) else {
            return Ok(());
        };
        let added = index_writers.add(key, row);
        self.go_on(added)
    }

    /// Gives up the indexes if one cannot be written; the SSTable goes on without them.
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

/// Makes a row from a plain row, with the columns that indexes need.
fn copy_of(row: &PlainRow<'_>, observed: &Observed) -> Row {
    // A plain row always has a timestamp.
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

    /// Returns false, without writing the partition, if it has no token, may need a warning, or cannot be written as plain.
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

/// Returns errors of the operating system. Any other error is logged: this SSTable is then without its indexes.
pub(super) fn give_up(error: ilion_index::Error) -> Result<()> {
    match error {
        ilion_index::Error::Env(error) => Err(error.into()),
        error => {
            tracing::error!(%error, "an SSTable is written without its indexes; rebuild them");
            Ok(())
        }
    }
}

/// Starts to write attached indexes, and (with a partitioner) the numbers of rows.
pub(super) fn begin(
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
    /// Returns `None` for an error that only costs an index (see [`give_up`]).
    pub(super) fn keep<T>(&self, made: std::result::Result<T, ilion_index::Error>) -> Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) => give_up(error).map(|()| None),
        }
    }
}
