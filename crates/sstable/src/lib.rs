//! Cassandra's SSTable files, read and write, and Ilion's own side components.
//!
//! An SSTable is a set of files (components) with one [`Descriptor`]. `Data.db` holds the partitions, in compressed
//! chunks; the other components say where things are and what is in it.
//!
//! | module | what |
//! | --- | --- |
//! | `descriptor`, `version`, `component` | names of files, and what each format version means |
//! | `directory` | a table's directory, sorted into SSTables, temporary files and transaction logs |
//! | `transaction` | the set of files that a flush or compaction adds and removes, atomically |
//! | `toc`, `digest`, `crc_file`, `compression_info` | the small components |
//! | `chunks` | Data.db as a sequence of uncompressed bytes: cache, streams, writer |
//! | `bloom` | Filter.db |
//! | `cells` | Cells.db, the cell map |
//! | `checksums` | Checksums.db: CRCs of the components that have none |
//! | `sstable` | [`SSTable`]: one SSTable open for reads |
//! | `reader` | its partition index, and cursors over its partitions |
//! | `open`, `open_options`, `lazy` | its parts, opened when they are needed |
//! | `key_cache` | where partitions are that were looked up lately |
//! | `saved_place` | the same, as Cassandra's key cache saves it |
//! | `make_token_map` | Tokens.db from the index of an SSTable that has none |
//! | `tokens` | Tokens.db, the token map |
//! | `trie` | nodes of Partitions.db and Rows.db, and walks over them |
//! | `commit_log_interval` | which stretches of the commit log an SSTable covers |
//! | `comparable` | keys and clusterings as the bytes that tries are walked with |
//! | `row` | rows and markers: their format, to bytes, from bytes, seen where they lie |
//! | `dump` | partitions as JSON, as `sstabledump` prints them |
//! | `statistics` | Statistics.db: validation, cardinality, statistics, serialization header |
//! | `histogram` | the histograms of Statistics.db |
//! | `metadata_collector` | what Statistics.db will say, gathered while rows are written |
//! | `verify` | an SSTable checked against itself |
//! | `writer` | partitions in, all components out, in either format |
//!
//! When you add a component, name it in `component`, list it in `descriptor`'s tests and write it before TOC.txt.

mod error;

pub mod bloom;
mod cells;
mod checksums;
pub mod chunks;
mod commit_log_interval;
mod comparable;
pub mod component;
mod component_file;
pub mod compression_info;
pub mod crc_file;
pub mod descriptor;
pub mod digest;
mod directory;
pub mod dump;
#[cfg(test)]
mod fixtures;
pub mod histogram;
pub mod key_cache;
mod lazy;
mod make_token_map;
mod metadata_collector;
mod open;
mod open_options;
mod reader;
mod row;
mod saved_place;
mod sstable;
pub mod statistics;
pub mod toc;
mod tokens;
mod transaction;
mod trie;
pub mod verify;
pub mod version;
mod writer;

pub use bloom::{BloomFilter, KeyHash};
pub use chunks::{ChunkCache, ChunkReader, ChunkWriter, Compression, DataFile, DataStream};
pub use commit_log_interval::{CommitLogInterval, union_intervals};
pub use component::Component;
pub use component_file::{read_component, write_component};
pub use descriptor::{Descriptor, Format, SSTableId};
pub use directory::{Found, TableFiles, list_directory};
pub use error::{Error, Result};
pub use histogram::{EstimatedHistogram, TombstoneHistogram};
pub use key_cache::{CachedKey, KeyCache};
pub use open_options::{Finding, LookupCounts, Lookups, OpenOptions};
pub use reader::{
    BlockAt, DataScan, IndexScan, IndexedPartition, PartitionCursor, RangeCursor, SummaryShare,
};
pub use row::decode::Unwanted;
pub use row::format as row_format;
pub use saved_place::{IndexForm, SavedPlace};
pub use sstable::{Begin, Presence, SSTable, Scan, Whereabouts};
pub use statistics::{
    Cardinality, ClassName, CommitLogPosition, EncodingStats, HeaderColumn, SerializationHeader, Statistics,
    StatsMetadata, Validation,
};
pub use tokens::{Candidate, NoView, SOURCES_MAX, SortedBudget, SortedView, Spot};
pub use transaction::{
    CommittedTransaction, FailedCommit, Transaction, TransactionKind, finish_transaction, finish_transactions,
};
pub use version::Version;
pub use writer::{CellMapLimits, SSTableWriter, WriterOptions};
