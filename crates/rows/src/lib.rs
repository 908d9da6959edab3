//! The data model and its laws. Commit log, memtable, SSTable and compaction all use these types.
//!
//! A table is a sequence of partitions in (token, key) order. A partition has a deletion, at most one static row, and
//! *unfiltereds* in clustering order: rows and range tombstone markers. A row has a liveness, a deletion and columns; a
//! column is one cell (simple) or a deletion and many cells by path (complex).
//!
//! The main path of a read: each source is a [`Cursor`]; `merge` reconciles them cell by cell; `purge` drops dead data; the
//! query takes rows from the last cursor.
//!
//! | module | what |
//! | --- | --- |
//! | `key` | [`DecoratedKey`]: token and key |
//! | `clustering` | [`Clustering`], [`Bound`], and their order |
//! | [`clustering_codec`] | clusterings and bounds as bytes |
//! | `cell` | [`Cell`], [`DeletionTime`], [`Liveness`] |
//! | `row` | [`Row`], [`ColumnData`] |
//! | `unfiltered` | [`Unfiltered`], [`Marker`] |
//! | `mutation` | [`Mutation`], [`PartitionUpdate`]: one change to one partition |
//! | `mutation_codec` | mutations as bytes, for the commit log |
//! | `detach` | copies of mutations that own their bytes |
//! | `entry` | [`EntryPlace`], [`Entry`], [`EntryRow`]: rows with a key and no columns |
//! | `cursor` | [`Cursor`]: how partitions are read |
//! | `update_builder` | [`UpdateBuilder`]: what is read of a partition, as mutations |
//! | `vec_cursor` | [`VecCursor`]: partitions in memory as a cursor |
//! | `filter_cursor` | [`FilterCursor`]: slices and direction for sources that return every row |
//! | `alike` | [`AlikeRows`]: batches of plain rows with the same layout |
//! | `plain` | [`PlainRow`]: simple live rows, read without a copy |
//! | `plain_visitor` | [`PlainVisitor`]: takes plain rows |
//! | `plain_luck` | [`PlainLuck`]: when to look for plain rows |
//! | `range` | [`KeyRange`]: the partitions that a read selects |
//! | `slices` | the clusterings that a read selects |
//! | `direction` | [`Direction`]: in which order a read meets rows |
//! | `ranges` | [`RangeList`]: deleted ranges in normal form and their markers |
//! | `reconcile` | which of two cells, livenesses or rows wins |
//! | `merge` | [`MergeCursor`]: many sources as one |
//! | `purge` | dropping dead data: [`ReadPurge`], [`CompactionPurge`] |
//! | [`counter`] | contexts of counter cells |
//! | `random` | random tables and mutations for tests (feature `testing`) |
//! | `recorder` | which methods a wrapper of a cursor forwards; for tests (feature `testing`) |
//! | [`paths`] | the order of cells inside a complex column |
//! | [`notation`] | partitions as text, for tests and dumps |
//! | `size` | memory that data takes |
//!
//! When you change a rule of `reconcile`, also look at `purge` and at the texts in `testdata/`.

mod alike;
mod cell;
mod clustering;
pub mod clustering_codec;
pub mod counter;
mod cursor;
mod detach;
mod direction;
mod entry;
mod filter_cursor;
mod garbage;
mod key;
mod merge;
mod mutation;
mod mutation_codec;
pub mod notation;
pub mod paths;
mod plain;
mod plain_luck;
mod plain_visitor;
mod purge;
#[cfg(any(test, feature = "testing"))]
pub mod random;
mod range;
mod ranges;
mod reconcile;
#[cfg(any(test, feature = "testing"))]
pub mod recorder;
mod row;
mod size;
mod slices;
mod unfiltered;
mod update_builder;
mod vec_cursor;

pub use alike::{AlikeRows, LaidTimestamp, RowLayout, RowsBytes};
pub use cell::{Cell, CellRef, DeletionTime, Liveness, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
pub use clustering::{Bound, BoundKind, Clustering, ClusteringComparator, Values};
pub use cursor::{Cursor, PartitionHead, ReadError};
pub use direction::Direction;
pub use entry::{Entry, EntryPlace, EntryRow};
pub use filter_cursor::FilterCursor;
pub use garbage::{GarbageSkip, Granularity, Shadows};
pub use key::DecoratedKey;
pub use merge::MergeCursor;
pub use mutation::{Mutation, PartitionUpdate, RangeTombstone, number_timestamps};
pub use mutation_codec::{Decoded, MutationReader, decode_mutation, encode_mutation, peek_place};
pub use plain::{Flow, PlainRow, may_be_plain, rows_may_be_plain};
pub use plain_luck::PlainLuck;
pub use plain_visitor::{PlainRun, PlainVisitor};
pub use purge::{CompactionPurge, PurgeableBelow, ReadCounts, ReadLaw, ReadPurge, TombstoneLimits};
pub use range::{KeyBound, KeyRange};
pub use ranges::{Markers, RangeList};
pub use reconcile::{EXPIRED_LIVENESS_TTL, merge_rows};
pub use row::{Before, ColumnData, ComplexColumn, Data, Row, RowChange};
pub use slices::{ClusteringFilter, Slice, WantedElements, slices_after};
pub use unfiltered::{Marker, Unfiltered};
pub use update_builder::UpdateBuilder;
pub use vec_cursor::{Partition, VecCursor};
