//! The merge itself: one cursor in, a writer out.

use ilion_rows::{Cursor, PartitionHead, ReadError, Unfiltered};

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Partitions written.
    pub partitions: u64,
    /// Rows and markers written.
    pub unfiltereds: u64,
}

/// Receives what a merge writes.
pub trait Sink {
    /// What it may fail with.
    type Error: From<ReadError>;
    /// A partition begins.
    fn begin_partition(&mut self, head: &PartitionHead) -> Result<(), Self::Error>;
    /// A row or marker of it.
    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<(), Self::Error>;
    /// The partition ends.
    fn end_partition(&mut self) -> Result<(), Self::Error>;
}

/// Writes all that `source` gives into `sink`. Partitions in which nothing is left are not begun.
///
/// # Errors
/// Whatever source or sink fail with.
pub fn merge_into<C: Cursor, S: Sink>(source: &mut C, sink: &mut S) -> Result<Outcome, S::Error> {
    let mut outcome = Outcome::default();
    while let Some(head) = source.next_partition()? {
        let mut is_begun = !head.deletion.is_live() || head.static_row.is_some();
        if is_begun {
            sink.begin_partition(&head)?;
        }
        while let Some(unfiltered) = source.next_unfiltered()? {
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
    Ok(outcome)
}
