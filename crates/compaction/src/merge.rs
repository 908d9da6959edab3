//! The merge: writes all that a cursor returns into a [`Sink`].

use ilion_rows::{
    Cursor, EntryRow, Flow, PartitionHead, PlainLuck, PlainRow, PlainVisitor, ReadError, Unfiltered,
};

/// Counts of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Partitions written.
    pub partitions: u64,
    /// Rows and markers written.
    pub unfiltereds: u64,
}

/// Receives the output of a merge.
pub trait Sink {
    /// Errors of the sink; the merge also converts read errors to this type.
    type Error: From<ReadError>;
    /// Begins a partition.
    fn begin_partition(&mut self, head: &PartitionHead) -> Result<(), Self::Error>;
    /// Adds a row or marker.
    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<(), Self::Error>;
    /// Adds a row that has only its key.
    fn entry(&mut self, entry: &EntryRow<'_>) -> Result<(), Self::Error> {
        self.unfiltered(&Unfiltered::Row(entry.to_row()))
    }
    /// Ends the partition.
    fn end_partition(&mut self) -> Result<(), Self::Error>;
    /// True if the sink takes plain partitions; else the merge does not look for them. Called once for each merge.
    fn takes_plain(&self) -> bool {
        false
    }
    /// Writes a whole partition from its encoded row. Returns false if the merge must pass it by the other methods.
    fn plain_partition(&mut self, _row: &PlainRow<'_>) -> Result<bool, Self::Error> {
        Ok(false)
    }
    /// True if the sink takes plain rows; else the merge does not look for them. Called once for each merge.
    fn takes_plain_rows(&self) -> bool {
        false
    }
    /// Writes an encoded row of the partition. Returns false if the merge must pass it by [`Self::unfiltered`].
    fn plain_row(&mut self, _row: &PlainRow<'_>) -> Result<bool, Self::Error> {
        Ok(false)
    }
}

/// Passes plain partitions to the sink.
struct Passing<'s, S: Sink> {
    sink: &'s mut S,
    failed: Option<S::Error>,
}

impl<S: Sink> PlainVisitor for Passing<'_, S> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        match self.sink.plain_partition(row) {
            Ok(true) => Flow::Next,
            Ok(false) => Flow::Leave,
            Err(error) => {
                self.failed = Some(error);
                Flow::Leave
            }
        }
    }
}

/// Writes the plain partitions that come next; returns how many.
fn pass_plain<C: Cursor, S: Sink>(source: &mut C, sink: &mut S) -> Result<u64, S::Error> {
    let mut passing = Passing { sink, failed: None };
    let run = source.plain_partitions(None, &mut passing);
    match passing.failed {
        Some(error) => Err(error),
        None => Ok(run?.map_or(0, |run| run.count)),
    }
}

/// Passes plain rows of a partition to the sink; begins the partition before the first.
struct PassingRows<'s, S: Sink> {
    sink: &'s mut S,
    head: &'s PartitionHead,
    is_begun: &'s mut bool,
    failed: Option<S::Error>,
}

impl<S: Sink> PassingRows<'_, S> {
    #[inline]
    fn begin(&mut self) -> Result<(), S::Error> {
        if !*self.is_begun {
            self.sink.begin_partition(self.head)?;
            *self.is_begun = true;
        }
        Ok(())
    }
}

impl<S: Sink> PlainVisitor for PassingRows<'_, S> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        match self.begin().and_then(|()| self.sink.plain_row(row)) {
            Ok(true) => Flow::Next,
            Ok(false) => Flow::Leave,
            Err(error) => {
                self.failed = Some(error);
                Flow::Leave
            }
        }
    }
}

/// Writes the plain rows that come next in a partition; returns how many.
fn pass_plain_rows<C: Cursor, S: Sink>(
    source: &mut C,
    sink: &mut S,
    head: &PartitionHead,
    is_begun: &mut bool,
) -> Result<u64, S::Error> {
    let mut passing = PassingRows {
        sink,
        head,
        is_begun,
        failed: None,
    };
    let count = source.plain_rows(&head.key, None, &mut passing);
    match passing.failed {
        Some(error) => Err(error),
        None => Ok(count?),
    }
}

/// Writes all that `source` returns into `sink`. Empty partitions are left out.
///
/// # Errors
/// The source cannot be read, or the sink fails.
pub fn merge_into<C: Cursor, S: Sink>(source: &mut C, sink: &mut S) -> Result<Outcome, S::Error> {
    let mut outcome = Outcome::default();
    let takes_plain = sink.takes_plain();
    let takes_plain_rows = sink.takes_plain_rows();
    let mut luck = PlainLuck::default();
    loop {
        if takes_plain {
            let passed = pass_plain(source, sink)?;
            outcome.partitions += passed;
            outcome.unfiltereds += passed;
        }
        let Some(head) = source.next_partition()? else {
            return Ok(outcome);
        };
        let mut is_begun = !head.deletion.is_live() || head.static_row.is_some();
        if is_begun {
            sink.begin_partition(&head)?;
        }
        loop {
            if takes_plain_rows && luck.is_due() {
                let passed = pass_plain_rows(source, sink, &head, &mut is_begun)?;
                luck.note(passed > 0);
                outcome.unfiltereds += passed;
            }
            let Some(unfiltered) = source.next_unfiltered()? else {
                break;
            };
            if !is_begun {
                sink.begin_partition(&head)?;
                is_begun = true;
            }
            sink.unfiltered(&unfiltered)?;
            outcome.unfiltereds += 1;
        }
        if is_begun {
            sink.end_partition()?;
            outcome.partitions += 1;
        }
    }
}

#[cfg(test)]
mod tests;
