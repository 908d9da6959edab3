//! The storage engine: tables, the write path, the read path, and everything that goes on in the background.
//!
//! **A write** ([`Engine::apply`]) is encoded, appended to the commit log and merged into the memtable while the
//! table's `active` lock is held shared, so that a memtable is frozen together with the log position that it covers. It
//! is visible at once, and durable when the log says so ([`Engine::on_durable`]).
//! **A read** takes the table's `View` (memtables and SSTables behind one `Arc`), opens a cursor per source that
//! may have what is wanted, and merges them.
//! **Flush** writes a frozen memtable as an SSTable under a transaction log, swaps the view, and lets go of the log
//! segments below. **Compaction** merges SSTables the same way.
//! **Start** ([`Engine::open`]) finishes what a crash left, opens the SSTables, loads the schema from `system_schema`,
//! and replays what the log holds and no SSTable does.
//!
//! | module | what |
//! | --- | --- |
//! | `engine` | [`Engine`]: the public calls, what its threads share |
//! | `options`, `error` | what it is told; why it refuses |
//! | `recovery` | opening a data directory |
//! | `origin` | which Cassandra the directory is one of |
//! | `replay`, `log_losses` | records of the log back into memtables; what could not be read of it |
//! | `table_store` | [`TableStore`]: one table |
//! | `view` | what a read sees |
//! | `write`, `read` | the two hot paths |
//! | `survey` | what a read would ask, told without reading |
//! | `chain` | SSTables with different stretches of a partition, opened as a read comes to them |
//! | `settle` | rows read source after source, until older sources can add nothing |
//! | `row_cache`, `cached_read` | heads of partitions in memory, and reads through them |
//! | `counter_cache` | what this node has counted |
//! | `saved_caches` | their keys over restarts |
//! | `budget` | memory of all memtables together; slowing writers |
//! | `flush`, `flush_pace` | memtable to SSTable, and with which haste |
//! | `stall` | what failed since something was used up, and is tried again |
//! | `maintenance` | whose turn it is to change a table's files |
//! | `compact` | SSTables to fewer: chosen, merged, paced, asked for and stopped; writers are slowed for it |
//! | `indexes` | secondary indexes: opened, written, searched, built |
//! | `token_maps`, `index_summaries` | token maps that are missing; summaries within their budget |
//! | `background` | the threads that do it |
//! | `set_aside` | what a start could not open, and how the node serves the rest |
//! | `affected` | which tables a change of the schema touches |
//! | `schema_check` | a change of the schema, tried out before it is logged |
//! | `schema_store` | the schema in `system_schema`, and changes of it |
//! | `truncate` | removing all data of a table |
//! | `export`, `import` | SSTables for others, SSTables of others |
//! | `sampler` | which partitions are used most |
//! | `large` | warnings of large partitions, rows and cells |
//! | `link` | files under a second name |
//! | `clock`, `reached` | now, as deletion times have it; timestamps that never step back |
//! | `virtual_table` | tables that are computed when they are read |
//! | `stripes` | locks for what is read before it is written |
//! | `facts`, `table_details` | counts for operators |
//!
//! Lock order, first to last: schema change, the build of an index, stripes, `Shared::large_write`, `TableStore::manual`, `TableStore::maintenance`
//! (the turn of a flush, then the files), `TableStore::choosing`, `TableStore::active` (of several tables by ascending table id),
//! `TableStore::swap`, the log's own. Those of a hidden table come after the same of its table. No lock but the build's, `manual`
//! and `maintenance` is held during file I/O (the log writes under its own rules; `Shared::reached` guards its file).

mod affected;
mod background;
mod budget;
mod cached_read;
mod chain;
mod clock;
mod compact;
mod counter_cache;
mod engine;
mod error;
mod export;
mod facts;
mod flush;
mod flush_pace;
mod import;
mod index_summaries;
mod indexes;
mod large;
mod link;
mod log_losses;
mod maintenance;
mod options;
mod origin;
mod reached;
mod read;
mod recovery;
mod replay;
mod row_cache;
mod sampler;
mod saved_caches;
mod schema_check;
mod schema_store;
mod set_aside;
mod settle;
mod sorted;
mod sorted_scan;
mod stall;
mod stripes;
mod survey;
mod table_details;
mod table_store;
mod token_maps;
mod truncate;
mod view;
mod virtual_table;
mod write;

pub use compact::{CompactionFacts, CompactionRequest, TaskChoice};
pub use counter_cache::{CounterCache, CounterKey, OwnCount, deletes_counters};
pub use engine::Engine;
pub use error::{Error, Result};
pub use facts::{CacheFacts, EngineFacts, TableFacts};
pub use ilion_compaction::MajorOutput;
pub use ilion_sstable::{EstimatedHistogram, Finding, LookupCounts, Version as SSTableVersion};
pub use import::{ImportReport, ImportSource};
pub use indexes::{IndexBuildFacts, IndexRepair, IndexVerification, OpenIndex, SSTableIndexFacts};
pub use large::LargeLimits;
pub use log_losses::LogLosses;
pub use options::{CacheOptions, EngineOptions};
pub use sampler::{TopPartition, TopPartitions};
pub use set_aside::SetAside;
pub use stripes::StripesGuard;
pub use survey::ReadSurvey;
pub use table_details::TableDetails;
pub use table_store::TableStore;
pub use virtual_table::{VirtualRow, VirtualTable};
