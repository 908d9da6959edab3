//! The one way to read partitions: memtables, SSTables, merges and filters are all cursors.

use std::path::PathBuf;

use crate::{Bound, DecoratedKey, DeletionTime, PlainRun, PlainVisitor, Row, Unfiltered};

/// The start of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionHead {
    /// Its key.
    pub key: DecoratedKey,
    /// Partition deletion.
    pub deletion: DeletionTime,
    /// Static row, if any was read.
    pub static_row: Option<Row>,
}

/// Gives partitions in (token, key) order and the unfiltereds of each in clustering order (reversed if the read
/// asked so; partitions always ascend).
///
/// No method has a default: a wrapper that forgot to forward a fast path would still be right, and slow.
/// [`cursor_methods!`](crate::cursor_methods) writes those that are forwarded as they are, and those that a source does without.
pub trait Cursor: Send {
    /// The next partition; skips what is left of the current one. A partition may turn out to have no unfiltereds.
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError>;

    /// The next row or marker of the current partition.
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError>;

    /// A key that the next partition is not before, known without I/O; `None` if unknown. A merge asks it before it
    /// asks for the partition itself, and leaves a source alone whose bound lies beyond what is wanted.
    fn lower_bound(&self) -> Option<DecoratedKey>;

    /// The key of the next partition, if it is at hand and nothing of the current one is left: known without I/O. A source may keep it
    /// for when it is asked for the partition.
    fn peek(&mut self) -> Option<DecoratedKey>;

    /// Leaves the current partition and shows the visitor those that follow, as long as they are plain, wanted and before that key;
    /// then stands behind the last one that was taken. `None` if none was: then [`Cursor::next_partition`] is to be asked. A source
    /// may stop at any partition.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError>;

    /// Shows the visitor the rows that follow in the current partition, of which that is the key, as long as they are plain, wanted and
    /// before that bound; returns how many were taken. What follows the last of them is then the next one. A source may stop at any row.
    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError>;
}

/// Writes methods of a [`Cursor`].
///
/// `forward field: method ...` passes them on to the cursor in a field; `without: method ...` does without: such a source knows
/// nothing ahead and shows nothing where it lies.
#[macro_export]
macro_rules! cursor_methods {
    (forward $field:tt: $($method:ident)+) => {
        $($crate::cursor_methods!(@$method [forward $field]);)+
    };
    (without: $($method:ident)+) => {
        $($crate::cursor_methods!(@$method [without]);)+
    };
    (@next_partition [forward $field:tt]) => {
        #[inline]
        fn next_partition(&mut self) -> Result<Option<$crate::PartitionHead>, $crate::ReadError> {
            self.$field.next_partition()
        }
    };
    (@next_unfiltered [forward $field:tt]) => {
        #[inline]
        fn next_unfiltered(&mut self) -> Result<Option<$crate::Unfiltered>, $crate::ReadError> {
            self.$field.next_unfiltered()
        }
    };
    (@lower_bound [forward $field:tt]) => {
        fn lower_bound(&self) -> Option<$crate::DecoratedKey> {
            self.$field.lower_bound()
        }
    };
    (@lower_bound [without]) => {
        fn lower_bound(&self) -> Option<$crate::DecoratedKey> {
            None
        }
    };
    (@peek [forward $field:tt]) => {
        fn peek(&mut self) -> Option<$crate::DecoratedKey> {
            self.$field.peek()
        }
    };
    (@peek [without]) => {
        fn peek(&mut self) -> Option<$crate::DecoratedKey> {
            None
        }
    };
    (@plain_partitions [forward $field:tt]) => {
        fn plain_partitions(
            &mut self,
            before: Option<&$crate::DecoratedKey>,
            visitor: &mut dyn $crate::PlainVisitor,
        ) -> Result<Option<$crate::PlainRun>, $crate::ReadError> {
            self.$field.plain_partitions(before, visitor)
        }
    };
    (@plain_partitions [without]) => {
        fn plain_partitions(
            &mut self,
            _: Option<&$crate::DecoratedKey>,
            _: &mut dyn $crate::PlainVisitor,
        ) -> Result<Option<$crate::PlainRun>, $crate::ReadError> {
            Ok(None)
        }
    };
    (@plain_rows [forward $field:tt]) => {
        fn plain_rows(
            &mut self,
            key: &$crate::DecoratedKey,
            before: Option<&$crate::Bound>,
            visitor: &mut dyn $crate::PlainVisitor,
        ) -> Result<u64, $crate::ReadError> {
            self.$field.plain_rows(key, before, visitor)
        }
    };
    (@plain_rows [without]) => {
        fn plain_rows(
            &mut self,
            _: &$crate::DecoratedKey,
            _: Option<&$crate::Bound>,
            _: &mut dyn $crate::PlainVisitor,
        ) -> Result<u64, $crate::ReadError> {
            Ok(0)
        }
    };
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        (**self).next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        (**self).next_unfiltered()
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        (**self).lower_bound()
    }

    fn peek(&mut self) -> Option<DecoratedKey> {
        (**self).peek()
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        (**self).plain_partitions(before, visitor)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        (**self).plain_rows(key, before, visitor)
    }
}

/// Why a source could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes break the format. Retrying does not help; scrub or restore.
    #[error("corrupt file {}: at byte {offset}: expected {expected}", file.display())]
    Corrupt {
        /// Damaged file.
        file: PathBuf,
        /// Offset in the file (of uncompressed data for compressed files).
        offset: u64,
        /// What should have been there.
        expected: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The read met more tombstones than `tombstone_failure_threshold` allows.
    #[error("scanned over {tombstones} tombstones; query aborted (see tombstone_failure_threshold)")]
    TooManyTombstones {
        /// How many were met.
        tombstones: u64,
    },
    /// The read took longer than its timeout or was cancelled.
    #[error("the read was given up: {0}")]
    Aborted(&'static str),
}
