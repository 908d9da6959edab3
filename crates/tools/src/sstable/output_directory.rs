//! The directory of new SSTables, and free ids in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_env::Env;
use ilion_rows::{Cell, Data, NO_DELETION_TIME, PartitionHead, PlainRow, Row, Unfiltered};
use ilion_sstable::{
    Descriptor, Format, SSTableId, SSTableWriter, Transaction, TransactionKind, Version, list_directory,
};
use ilion_types::Token;

use super::output_schema::OutputSchema;

/// The last second that formats before oa can store.
const SECONDS_MAX_BEFORE_OA: u32 = i32::MAX.unsigned_abs() - 1;

/// The format of new SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// What Cassandra 4.0 to 5.0 write by default (BIG).
    Nb,
    /// What Cassandra 5.0 writes without storage compatibility (BIG).
    Oa,
    /// The trie-indexed format of Cassandra 5.0 (BTI).
    Da,
}

impl OutputFormat {
    fn parts(self) -> (Version, Format) {
        match self {
            Self::Nb => (Version::NB, Format::Big),
            Self::Oa => (Version::OA, Format::Big),
            Self::Da => (Version::DA, Format::Bti),
        }
    }

    /// The format of a file or, if that cannot be written, the next newer format.
    pub(super) fn like(descriptor: &Descriptor) -> Self {
        match descriptor.format {
            Format::Bti => Self::Da,
            Format::Big if descriptor.version.is_oa_or_later() => Self::Oa,
            Format::Big => Self::Nb,
        }
    }
}

/// A directory for new SSTables.
pub(super) struct OutputDirectory {
    env: Arc<dyn Env>,
    directory: Arc<Path>,
    next_id: u32,
}

impl OutputDirectory {
    /// Opens the directory, which may be absent, and must not contain an input.
    pub(super) fn open(env: &Arc<dyn Env>, directory: &Path, inputs: &[Descriptor]) -> anyhow::Result<Self> {
        let is_there = |input: &&Descriptor| absolute(&input.directory) == absolute(directory);
        if let Some(input) = inputs.iter().find(is_there) {
            bail!(
                "{}: {input} is in it; new SSTables go to another directory",
                directory.display()
            );
        }
        let found = match env.exists(directory) {
            true => list_directory(env.as_ref(), directory)
                .with_context(|| format!("looking into {}", directory.display()))?,
            false => Vec::new(),
        };
        let greatest = found.iter().filter_map(|found| match found.descriptor.id {
            SSTableId::Sequence(number) => Some(number),
            SSTableId::TimeUuid(_) => None,
        });
        Ok(Self {
            env: env.clone(),
            directory: directory.into(),
            next_id: greatest.max().unwrap_or(0).saturating_add(1),
        })
    }

    /// Begins an SSTable.
    pub(super) fn begin(&mut self, format: OutputFormat, schema: &OutputSchema) -> anyhow::Result<Output> {
        // Created as late as possible, so that a refused command leaves no directory.
        if !self.env.exists(&self.directory) {
            self.env.create_dir_all(&self.directory)?;
        }
        let (version, format) = format.parts();
        let id = SSTableId::Sequence(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        let descriptor = Descriptor::new(self.directory.clone(), version, id, format);
        let mut transaction =
            Transaction::begin(self.env.clone(), &self.directory, TransactionKind::Compaction)?;
        transaction.add(&descriptor)?;
        let writer = SSTableWriter::new(&self.env, &descriptor, &schema.table, schema.options.clone());
        let mut output = Output {
            descriptor,
            writer: None,
            transaction: Some(transaction),
        };
        output.writer = Some(writer?);
        Ok(output)
    }
}

/// Normalizes a path; links are not resolved.
fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf())
}

/// An SSTable that is being written. Dropping an unfinished SSTable removes its files.
pub(super) struct Output {
    descriptor: Descriptor,
    writer: Option<SSTableWriter>,
    transaction: Option<Transaction>,
}

impl Output {
    pub(super) fn begin_partition(&mut self, head: &PartitionHead) -> anyhow::Result<()> {
        if !self.descriptor.version.is_oa_or_later() {
            self.check_secs(head.deletion.local_secs)?;
            if let Some(row) = &head.static_row {
                self.check_row(row)?;
            }
        }
        Ok(self.writer()?.begin_partition(head)?)
    }

    pub(super) fn add(&mut self, unfiltered: &Unfiltered) -> anyhow::Result<()> {
        if !self.descriptor.version.is_oa_or_later() {
            match unfiltered {
                Unfiltered::Row(row) => self.check_row(row)?,
                Unfiltered::Marker(marker) => {
                    for deletion in marker.start.iter().chain(&marker.end) {
                        self.check_secs(deletion.local_secs)?;
                    }
                }
            }
        }
        Ok(self.writer()?.add(unfiltered)?)
    }

    pub(super) fn finish_partition(&mut self) -> anyhow::Result<()> {
        Ok(self.writer()?.finish_partition()?)
    }

    /// Adds a plain partition. Returns false if it must be added with `begin_partition`.
    pub(super) fn add_plain(&mut self, token: &Token, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        Ok(self.writer()?.add_plain(token, row)?)
    }

    /// Adds a plain row to the partition. Returns false if it must be added with `add`.
    pub(super) fn add_plain_row(&mut self, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        Ok(self.writer()?.add_plain_row(row)?)
    }

    /// Approximate bytes of Data.db so far.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, SSTableWriter::stored_bytes)
    }

    pub(super) fn partitions(&self) -> u64 {
        self.writer.as_ref().map_or(0, SSTableWriter::partitions)
    }

    fn writer(&mut self) -> anyhow::Result<&mut SSTableWriter> {
        self.writer.as_mut().context("the SSTable is finished")
    }

    /// Makes the SSTable durable; returns `None` if it has no partition.
    pub(super) fn finish(mut self) -> anyhow::Result<Option<Descriptor>> {
        if self.partitions() == 0 {
            return Ok(None);
        }
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        if let Some(transaction) = self.transaction.take() {
            // Dropping the committed transaction removes its log.
            drop(transaction.commit().map_err(|failed| failed.error)?);
        }
        Ok(Some(self.descriptor.clone()))
    }

    fn check_row(&self, row: &Row) -> anyhow::Result<()> {
        self.check_secs(row.liveness.expires_secs)?;
        self.check_secs(row.deletion.local_secs)?;
        let check = |cell: &Cell| self.check_secs(cell.local_deletion_secs);
        for column in &row.columns {
            match &column.data {
                Data::Simple(cell) => check(cell)?,
                Data::Complex(complex) => {
                    self.check_secs(complex.deletion.local_secs)?;
                    complex.cells.iter().try_for_each(|(_, cell)| check(cell))?;
                }
            }
        }
        Ok(())
    }

    /// Refuses times that the format cannot store: the writer would reduce them, and data would expire early.
    fn check_secs(&self, secs: u32) -> anyhow::Result<()> {
        if secs > SECONDS_MAX_BEFORE_OA && secs != NO_DELETION_TIME {
            bail!(
                "the format {} cannot hold what expires after 2038-01-19, and there is some: use oa or da",
                self.descriptor.version
            );
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abandon();
        }
        // If this fails, the transaction log makes the next start of a node remove the files.
        if let Some(transaction) = self.transaction.take() {
            let _ = transaction.abort();
        }
    }
}
