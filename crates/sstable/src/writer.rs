//! Writes an SSTable: partitions go in ascending, all components come out.

mod options;

use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{PartitionHead, Unfiltered};
use ilion_schema::TableSchema;

use crate::{Descriptor, Error, Result};

pub use options::{CommitLogInterval, WriterOptions};

/// An SSTable being written. Dropped without a word it leaves files that the transaction removes.
pub struct SSTableWriter {
    never: std::convert::Infallible,
}

impl SSTableWriter {
    /// Creates the files of an SSTable of `table`.
    ///
    /// # Errors
    /// The operating system refused, a file exists, or the options are not possible.
    pub fn new(
        _env: &Arc<dyn Env>,
        descriptor: &Descriptor,
        _table: &Arc<TableSchema>,
        _options: WriterOptions,
    ) -> Result<Self> {
        Err(Error::Refused(format!("{descriptor}: writing is not built yet")))
    }

    /// Starts a partition, with its static row. Keys must ascend.
    ///
    /// # Errors
    /// Refused if the key does not ascend; or the operating system refused.
    pub fn begin_partition(&mut self, _head: &PartitionHead) -> Result<()> {
        match self.never {}
    }

    /// Appends a row or marker to the partition. They must ascend.
    ///
    /// # Errors
    /// The operating system refused, or the row holds what the table does not know.
    pub fn add(&mut self, _unfiltered: &Unfiltered) -> Result<()> {
        match self.never {}
    }

    /// Ends the partition.
    ///
    /// # Errors
    /// The operating system refused.
    pub fn finish_partition(&mut self) -> Result<()> {
        match self.never {}
    }

    /// Partitions so far.
    pub fn partitions(&self) -> u64 {
        match self.never {}
    }

    /// Uncompressed bytes of Data.db so far.
    pub fn data_bytes(&self) -> u64 {
        match self.never {}
    }

    /// Writes and syncs all components, TOC.txt last, and syncs the directory.
    ///
    /// # Errors
    /// The operating system refused; remove the files.
    pub fn finish(self) -> Result<()> {
        match self.never {}
    }

    /// Removes what was written.
    pub fn abandon(self) {
        match self.never {}
    }
}
