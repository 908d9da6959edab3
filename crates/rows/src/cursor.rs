//! How partitions are read: memtables, SSTables, merges and filters all implement [`Cursor`].

use std::path::PathBuf;

use crate::{Bound, DecoratedKey, DeletionTime, PlainRun, PlainVisitor, Row, Unfiltered};

/// The start of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionHead {
    /// Its key.
    pub key: DecoratedKey,
    /// Partition deletion.
    pub deletion: DeletionTime,
    /// Static row; `None` if the source has none, or the read did not ask for it.
    pub static_row: Option<Row>,
}

/// Returns partitions in (token, key) order. Partitions always ascend; unfiltereds follow clustering order, or its reverse in a
/// reversed read.
///
/// No method has a default: otherwise a wrapper could forget to forward a fast path, and would be correct but slow.
/// [`cursor_methods!`](crate::cursor_methods) writes forwarding methods, and the methods of sources without a fast path. Tests name what
/// each wrapper forwards (`recorder`, and a list in `crates/ilion/testdata/cursors.txt`).
pub trait Cursor: Send {
    /// The next partition; `None` at the end. Skips the rest of the current partition. A partition may have no unfiltereds.
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError>;

    /// The next row or marker of the current partition; `None` at its end.
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError>;

    /// A lower bound of the next partition's key that costs no I/O; `None` if unknown. A merge first calls this, and does not
    /// read the partition while the bound is beyond the range that is needed.
    fn lower_bound(&self) -> Option<DecoratedKey>;

    /// The key of the next partition, if it costs no I/O to find and the current partition was read to its end; else `None`. A
    /// source may keep the partition for the next call of `next_partition`.
    fn peek(&mut self) -> Option<DecoratedKey>;

    /// Skips the rest of the current partition. Then shows the visitor the partitions that follow while they are plain, wanted
    /// and before `before`. Afterwards the cursor is behind the last partition taken. `None` if the visitor took no partition: call
    /// [`Cursor::next_partition`]. A source may stop at any partition.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError>;

    /// Shows the visitor the rows that follow in the current partition, with key `key`, while they are plain, wanted and before
    /// `before`. Returns the number of rows taken. `next_unfiltered` continues behind them. A source may stop at any row.
    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError>;

    /// Moves past the rows that follow in the current partition, while each of them is nothing but a deletion ([`Row::is_deletion`]) and
    /// lies before `before`, in the order of the read. Markers stay. A source may stop at any row.
    ///
    /// For a caller that returns no deletions, and knows that no other source has rows in between: without this method, the first living
    /// row of a partition that is used as a queue is found behind all rows that were ever deleted.
    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError>;
}

/// Writes methods of a [`Cursor`].
///
/// `forward field: method ...` forwards these methods to the cursor in that field. `without: method ...` writes methods that return
/// `None` or 0, or skip no row, for sources without lower bounds, plain rows or a way to skip.
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
        fn next_partition(&mut self) -> ::std::result::Result<Option<$crate::PartitionHead>, $crate::ReadError> {
            self.$field.next_partition()
        }
    };
    (@next_unfiltered [forward $field:tt]) => {
        #[inline]
        fn next_unfiltered(&mut self) -> ::std::result::Result<Option<$crate::Unfiltered>, $crate::ReadError> {
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
        ) -> ::std::result::Result<Option<$crate::PlainRun>, $crate::ReadError> {
            self.$field.plain_partitions(before, visitor)
        }
    };
    (@plain_partitions [without]) => {
        fn plain_partitions(
            &mut self,
            _: Option<&$crate::DecoratedKey>,
            _: &mut dyn $crate::PlainVisitor,
        ) -> ::std::result::Result<Option<$crate::PlainRun>, $crate::ReadError> {
            Ok(None)
        }
    };
    (@plain_rows [forward $field:tt]) => {
        fn plain_rows(
            &mut self,
            key: &$crate::DecoratedKey,
            before: Option<&$crate::Bound>,
            visitor: &mut dyn $crate::PlainVisitor,
        ) -> ::std::result::Result<u64, $crate::ReadError> {
            self.$field.plain_rows(key, before, visitor)
        }
    };
    (@plain_rows [without]) => {
        fn plain_rows(
            &mut self,
            _: &$crate::DecoratedKey,
            _: Option<&$crate::Bound>,
            _: &mut dyn $crate::PlainVisitor,
        ) -> ::std::result::Result<u64, $crate::ReadError> {
            Ok(0)
        }
    };
    (@skip_deleted [forward $field:tt]) => {
        fn skip_deleted(&mut self, before: Option<&$crate::Bound>) -> ::std::result::Result<(), $crate::ReadError> {
            self.$field.skip_deleted(before)
        }
    };
    (@skip_deleted [without]) => {
        fn skip_deleted(&mut self, _: Option<&$crate::Bound>) -> ::std::result::Result<(), $crate::ReadError> {
            Ok(())
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

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        (**self).skip_deleted(before)
    }
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes break the format. Retrying does not help; scrub or restore.
    #[error("corrupt file {}: at byte {offset}: expected {expected}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Offset in the file; for a compressed file, in its uncompressed data.
        offset: u64,
        /// What the format requires at this offset.
        expected: String,
    },
    /// The operating system returned an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The read met more tombstones than `tombstone_failure_threshold` allows.
    #[error("scanned over {tombstones} tombstones; query aborted (see tombstone_failure_threshold)")]
    TooManyTombstones {
        /// Number of tombstones met.
        tombstones: u64,
    },
    /// The read took longer than its timeout or was cancelled.
    #[error("the read was aborted: {0}")]
    Aborted(&'static str),
    /// Too few replicas are reachable. Retrying may help. Only in clusters.
    #[error("cannot reach enough replicas: {required} are required, {alive} can be asked")]
    Unavailable {
        /// How many replicas must answer.
        required: u32,
        /// How many of the replicas are reachable.
        alive: u32,
    },
    /// A replica could not read. The replica's log says why. Only in clusters.
    #[error("node {node} could not read: {message}")]
    Replica {
        /// The replica.
        node: u32,
        /// The error message in its answer.
        message: String,
    },
}
