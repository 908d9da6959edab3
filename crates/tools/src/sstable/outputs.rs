//! The sequence of new SSTables; a line is printed for each when it is complete.

use std::io::Write;

use ilion_compaction::Sink;
use ilion_rows::{PartitionHead, PlainRow, Unfiltered, may_be_plain, rows_may_be_plain};
use ilion_sstable::Descriptor;

use super::output_directory::{Output, OutputDirectory, OutputFormat};
use super::output_schema::OutputSchema;

/// New SSTables of one schema.
pub(super) struct Outputs<'a> {
    directory: &'a mut OutputDirectory,
    format: OutputFormat,
    schema: &'a OutputSchema,
    /// Once Data.db has this size, the next partition begins a new SSTable; `None` writes one SSTable.
    size_bytes: Option<u64>,
    output: Option<Output>,
    inputs: String,
    /// For a merge: sum of the partitions of the inputs. The output may have fewer, since inputs may have partitions with the same key.
    partitions_before: Option<u64>,
    out: &'a mut dyn Write,
}

impl<'a> Outputs<'a> {
    /// One SSTable with the rows of all inputs; lines are printed to `out`.
    pub(super) fn whole(
        directory: &'a mut OutputDirectory,
        format: OutputFormat,
        schema: &'a OutputSchema,
        inputs: &[Descriptor],
        out: &'a mut dyn Write,
    ) -> Self {
        let inputs: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        Self {
            directory,
            format,
            schema,
            size_bytes: None,
            output: None,
            inputs: inputs.join(", "),
            partitions_before: None,
            out,
        }
    }

    /// Writes several SSTables, each of about this size.
    #[must_use]
    pub(super) fn cut_at(mut self, size_bytes: u64) -> Self {
        self.size_bytes = Some(size_bytes);
        self
    }

    /// Also prints the sum of the partitions of the inputs.
    #[must_use]
    pub(super) fn of_partitions(mut self, count: u64) -> Self {
        self.partitions_before = Some(count);
        self
    }

    /// The SSTable for the next partition.
    fn next(&mut self) -> anyhow::Result<&mut Output> {
        let is_full = |output: &Output| {
            let stored_bytes = output.stored_bytes();
            self.size_bytes.is_some_and(|size| stored_bytes >= size)
        };
        if self.output.as_ref().is_some_and(is_full) {
            self.end()?;
        }
        match &mut self.output {
            Some(output) => Ok(output),
            empty => Ok(empty.insert(self.directory.begin(self.format, self.schema)?)),
        }
    }

    /// The current SSTable.
    fn output(&mut self) -> anyhow::Result<&mut Output> {
        match &mut self.output {
            Some(output) => Ok(output),
            None => anyhow::bail!("a row came before its partition"),
        }
    }

    /// Finishes the current SSTable and prints its line; returns false if it has no partition.
    fn end(&mut self) -> anyhow::Result<bool> {
        let Some(output) = self.output.take() else {
            return Ok(false);
        };
        let partitions = output.partitions();
        let Some(descriptor) = output.finish()? else {
            return Ok(false);
        };
        write!(self.out, "{}: {partitions} partitions", self.inputs)?;
        if let Some(before) = self.partitions_before {
            write!(self.out, " (of {before})")?;
        }
        writeln!(self.out, " in {descriptor}")?;
        // Flushed now, since the next line may come much later.
        self.out.flush()?;
        Ok(true)
    }

    /// Finishes the last SSTable.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if !self.end()? {
            writeln!(self.out, "{}: no partitions, nothing was written", self.inputs)?;
        }
        Ok(())
    }
}

impl Sink for Outputs<'_> {
    type Error = anyhow::Error;

    fn begin_partition(&mut self, head: &PartitionHead) -> anyhow::Result<()> {
        self.next()?.begin_partition(head)
    }

    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> anyhow::Result<()> {
        self.output()?.add(unfiltered)
    }

    fn end_partition(&mut self) -> anyhow::Result<()> {
        self.output()?.finish_partition()
    }

    fn takes_plain(&self) -> bool {
        may_be_plain(&self.schema.table)
    }

    fn plain_partition(&mut self, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        let token = row.token_by(self.schema.options.partitioner);
        self.next()?.add_plain(&token, row)
    }

    fn takes_plain_rows(&self) -> bool {
        rows_may_be_plain(&self.schema.table)
    }

    fn plain_row(&mut self, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        self.output()?.add_plain_row(row)
    }
}
