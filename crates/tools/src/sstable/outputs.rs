//! What is written of some SSTables: one after another, each told of when it is whole.

use std::io::Write;

use ilion_compaction::Sink;
use ilion_rows::{PartitionHead, PlainRow, Unfiltered, may_be_plain, rows_may_be_plain};
use ilion_sstable::Descriptor;

use super::shape::Shape;
use super::target::{Output, Target, TargetFormat};

/// New SSTables of one shape.
pub(super) struct Outputs<'a> {
    target: &'a mut Target,
    format: TargetFormat,
    shape: &'a Shape,
    /// From this size of Data.db on, the next partition goes to another one.
    size_bytes: Option<u64>,
    output: Option<Output>,
    inputs: String,
    /// Partitions of all inputs, if there are several: some may be of the same key.
    partitions_before: Option<u64>,
    out: &'a mut dyn Write,
}

impl<'a> Outputs<'a> {
    /// One SSTable, of all that these have; `out` is told.
    pub(super) fn whole(
        target: &'a mut Target,
        format: TargetFormat,
        shape: &'a Shape,
        inputs: &[Descriptor],
        out: &'a mut dyn Write,
    ) -> Self {
        let inputs: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        Self {
            target,
            format,
            shape,
            size_bytes: None,
            output: None,
            inputs: inputs.join(", "),
            partitions_before: None,
            out,
        }
    }

    /// Several, each of about this size.
    #[must_use]
    pub(super) fn cut_at(mut self, size_bytes: u64) -> Self {
        self.size_bytes = Some(size_bytes);
        self
    }

    /// Says how many partitions the inputs had, each counted by itself.
    #[must_use]
    pub(super) fn of_partitions(mut self, count: u64) -> Self {
        self.partitions_before = Some(count);
        self
    }

    /// The one for the partition that begins.
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
            empty => Ok(empty.insert(self.target.begin(self.format, self.shape)?)),
        }
    }

    /// The one at hand.
    fn output(&mut self) -> anyhow::Result<&mut Output> {
        match &mut self.output {
            Some(output) => Ok(output),
            None => anyhow::bail!("a row came before its partition"),
        }
    }

    /// Finishes the one at hand and says what it is; false if it has nothing in it.
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
        // It may be long until the next one is whole.
        self.out.flush()?;
        Ok(true)
    }

    /// Finishes the last one.
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
        may_be_plain(&self.shape.table)
    }

    fn plain_partition(&mut self, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        let token = row.token_by(self.shape.options.partitioner);
        self.next()?.add_plain(&token, row)
    }

    fn takes_plain_rows(&self) -> bool {
        rows_may_be_plain(&self.shape.table)
    }

    fn plain_row(&mut self, row: &PlainRow<'_>) -> anyhow::Result<bool> {
        self.output()?.add_plain_row(row)
    }
}
