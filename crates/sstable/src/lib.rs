//! Cassandra's SSTable files, read and write, and Ilion's own side components.
//!
//! An SSTable is a set of files (components) with one [`Descriptor`]. `Data.db` has the partitions, in compressed chunks; the
//! other components are indexes, filters, checksums and metadata.
//!
//! | module | what |
//! | --- | --- |
//! | `descriptor`, `version`, `component` | names of files, and the differences between format versions |
//! | `directory` | the SSTables of a table's directory |
//! | `transaction` | the files that a flush or compaction adds and removes, atomically |
//! | `toc`, `digest`, `crc_file`, `compression_info`, `component_file` | small components, and reading and writing them whole |
//! | `chunks` | Data.db as a sequence of uncompressed bytes: cache, streams, writer |
//! | `bloom` | Filter.db |
//! | `cells` | Cells.db, the cell map |
//! | `deleted` | Deleted.db, runs of deleted rows |
//! | `checksums` | Checksums.db: CRCs of components without checksums of their own |
//! | `sstable` | [`SSTable`]: one SSTable open for reads |
//! | `reader` | its partition index, row indexes, and cursors over its partitions |
//! | `open`, `open_options`, `lazy` | its parts, opened on first use |
//! | `key_cache` | positions of partitions that were recently found through an index |
//! | `saved_place` | these positions in the form of Cassandra's saved key cache |
//! | `make_token_map` | builds a missing Tokens.db from the index |
//! | `tokens` | Tokens.db, the token map |
//! | `trie` | nodes of Partitions.db and Rows.db, and walks over them |
//! | `commit_log_interval` | the intervals of the commit log that an SSTable covers |
//! | `comparable` | byte-comparable keys and clusterings, for tries |
//! | `row` | the format of rows and markers: encoder, decoder, and visits of plain rows |
//! | `dump` | partitions as JSON, as `sstabledump` prints them |
//! | `statistics` | Statistics.db: validation, cardinality, statistics, serialization header |
//! | `histogram` | the histograms of Statistics.db |
//! | `metadata_collector` | collects the content of Statistics.db while rows are written |
//! | `verify` | checks that the components of an SSTable agree with each other |
//! | `writer` | writes an SSTable with all its components, in either format |
//!
//! When you add a component, name it in `component`, list it in the tests of `descriptor`, and write it before TOC.txt.

mod error;

mod bloom;
mod cells;
mod checksums;
pub mod chunks;
mod commit_log_interval;
mod comparable;
mod component;
mod component_file;
pub mod compression_info;
pub mod crc_file;
mod deleted;
mod descriptor;
pub mod digest;
mod directory;
pub mod dump;
#[cfg(test)]
mod fixtures;
mod histogram;
mod key_cache;
mod lazy;
mod make_token_map;
mod metadata_collector;
mod open;
mod open_options;
mod reader;
mod row;
mod saved_place;
mod sstable;
mod statistics;
mod toc;
mod tokens;
mod transaction;
mod trie;
pub mod verify;
mod version;
mod writer;

pub use bloom::{BloomFilter, KeyHash};
pub use chunks::{ChunkCache, ChunkReader, ChunkWriter, Compression, DataFile, DataStream};
pub use commit_log_interval::{CommitLogInterval, union_intervals};
pub use component::Component;
pub use component_file::{read_component, write_component};
pub use descriptor::{Descriptor, SSTableId};
pub use directory::{ListedSSTable, TableFiles, list_directory};
pub use error::{Error, Result};
pub use histogram::{EstimatedHistogram, TombstoneHistogram};
pub use key_cache::{CachedKey, KeyCache};
pub use open_options::{Finding, LookupCounts, Lookups, OpenOptions};
pub use reader::{
    BlockAt, DataScan, Glance, IndexScan, IndexedPartition, PartitionCursor, RangeCursor, Scan, SummaryShare,
};
pub use row::decode::Unwanted;
pub use row::format as row_format;
pub use saved_place::{IndexForm, SavedPlace};
pub use sstable::{Presence, SSTable, Whereabouts};
pub use statistics::{
    Cardinality, ClassName, CommitLogPosition, EncodingStats, HeaderColumn, SerializationHeader, Statistics,
    StatsMetadata, Validation,
};
pub use tokens::{Candidate, NoView, SOURCES_MAX, SortedBudget, SortedView, Spot};
pub use transaction::{
    CommittedTransaction, FailedCommit, Transaction, TransactionKind, finish_transaction, finish_transactions,
};
pub use version::{Format, Version};
pub use writer::{CellMapLimits, SSTableWriter, WriterOptions};
