//! The storage engine: tables, the write path, the read path, and background work.
//!
//! **A write** ([`Engine::apply`]) is encoded, appended to the commit log and merged into the memtable while the
//! table's `active` lock is held shared, so that a memtable is frozen together with the log position that it covers. The write
//! is visible at once, and durable when the log reports it ([`Engine::on_durable`]).
//! **A read** takes the table's `View` (memtables and SSTables behind one `Arc`), opens a cursor per source that
//! may have wanted data, and merges them.
//! **Flush** writes a frozen memtable as an SSTable under a transaction log, swaps the view, and trims the commit log.
//! **Compaction** merges SSTables the same way.
//! **Start** ([`Engine::open`]) opens the SSTables, loads the schema from `system_schema`, replays the records of the log that
//! no SSTable has, and finishes the transactions that a crash left.
//!
//! | module | contents |
//! | --- | --- |
//! | `engine`, `lifecycle` | [`Engine`]: the public calls; opening and closing it |
//! | `shared` | the state that the parts and threads of an engine share |
//! | `adjust` | options that an operator changes while it runs |
//! | `options`, `error` | the options of an engine; its errors |
//! | `recovery`, `parallel` | opening a data directory; work that a start divides among threads |
//! | `origin` | the release of Cassandra whose rules the directory follows |
//! | `replay`, `log_losses` | records of the log back into memtables; the parts of the log that could not be read |
//! | `table_store` | [`TableStore`]: one table, its indexes, and (`memtables`) its memtables |
//! | `view`, `live_sstable` | the memtables and SSTables that a read sees |
//! | `write`, `read` | the two hot paths |
//! | `source` | an SSTable as a source of a read |
//! | `sorted`, `sorted_making`, `sorted_scan` | the sorted view of a table's SSTables, how it is made, and range reads by it |
//! | `chain` | SSTables that a read of one partition opens only when it reaches their clusterings |
//! | `survey` | which sources a read would use, found without reading |
//! | `settle` | rows read source after source, until older sources can add nothing |
//! | `row_cache`, `cached_read` | heads of partitions in memory, and reads through them |
//! | `counter_cache` | this node's shards of counters, in memory |
//! | `saved_caches`, `cache_saving` | the keys of caches over restarts; when they are saved, and how many |
//! | `budget` | memory of all memtables; slowing writers |
//! | `flush`, `flush_pace` | memtable to SSTable; the pace of a flush that no caller waits for |
//! | `handover` | passes obsolete values to a thread that drops them |
//! | `releaser` | a thread that frees the memory of flushed memtables |
//! | `remover` | a thread that removes the files of obsolete SSTables |
//! | `stall`, `retry` | work that failed for a shortage; retrying it |
//! | `maintenance` | locks for changes of a table's files |
//! | `compact` | compactions: chosen, run, requested and stopped |
//! | `choosing`, `tasks`, `pace` | the state of a table between choices; running compactions; how fast they read |
//! | `progress` | the progress of flushes and snapshots that an operator waits for |
//! | `backlog` | how far compactions are behind; slowing writers accordingly |
//! | `indexes` | secondary indexes: opened, searched, built |
//! | `memtable_indexes` | the indexes of a memtable, which see each changed row |
//! | `token_maps`, `index_summaries` | token maps that are missing; summaries within their memory budget |
//! | `work`, `background` | queues of work; the threads that take it |
//! | `set_aside`, `faults` | tables that a start could not open; objects of the schema that do not decode |
//! | `affected` | which tables a schema change touches |
//! | `schema_check` | a schema change, tried out before it is logged |
//! | `schema_store` | the schema in `system_schema`, and changes of it |
//! | `rewrite` | SSTables rewritten one by one, or checked |
//! | `truncate` | removing all data of a table |
//! | `export`, `import`, `load` | SSTables for other programs; SSTables from elsewhere, whole or in pieces |
//! | `load_rows` | rows of SSTables from elsewhere, for the logs of a cluster |
//! | `backups` | links of flushed SSTables |
//! | `backup_point` | a moment of the whole node, for a backup |
//! | `new_log` | which log a restored directory belongs to: first that of the original, then one of its own |
//! | `snapshots` | hard links of a table's SSTables under a tag |
//! | `sampler` | which partitions are used most |
//! | `large` | warnings of large partitions, rows and cells |
//! | `link` | files under a second name |
//! | `intervals` | which stretches of the log an SSTable covers |
//! | `purged` | the file with the stretches whose data was purged without an SSTable being left |
//! | `crc_lines` | the form of small text files with a checksum |
//! | `tablets`, `tablet_ends` | records of shared logs, and the positions up to which they are applied |
//! | `slices`, `over_ranges` | the data that tables have of some tablets, for another replica; several ranges as one cursor |
//! | `clock`, `timestamps`, `reached` | now, in the unit of deletion times; timestamps that never step back; the file that ensures this |
//! | `virtual_table` | tables that are computed when they are read |
//! | `capture` | change data capture: which writes are kept for consumers, and how these read them |
//! | `stripes` | locks for partitions that are read before they are written |
//! | `facts`, `table_details`, `counters` | counts for operators |
//!
//! Lock order, first to last: schema change, the build of an index, stripes, `Shared::large_write`, `TableStore::manual`,
//! `Snapshots::changing`, `TableStore::maintenance` (the turn of a flush, then the files), `TableStore::choosing`, `TableStore::active`
//! (of several tables by ascending table id), `TableStore::swap`, the log's own. A lock of a hidden table comes after the same lock of
//! its table. No lock but that of snapshots, the build's, `manual` and `maintenance` is held during file I/O (the log writes under its
//! own rules; `Shared::reached` and `Shared::purged` guard their files). One exception: TRUNCATE holds `active` while it writes the
//! latest rows into its snapshot.

mod adjust;
mod affected;
mod background;
mod backlog;
mod backup_point;
mod backups;
mod budget;
mod cache_saving;
mod cached_read;
mod capture;
mod chain;
mod choosing;
mod clock;
mod compact;
mod counter_cache;
mod counters;
mod crc_lines;
mod engine;
mod error;
mod export;
mod facts;
mod faults;
mod flush;
mod flush_pace;
mod handover;
mod import;
mod index_summaries;
mod indexes;
mod intervals;
mod large;
mod lifecycle;
mod link;
mod live_sstable;
mod load;
mod load_rows;
mod log_losses;
mod maintenance;
mod memtable_indexes;
mod new_log;
mod options;
mod origin;
mod over_ranges;
mod pace;
mod parallel;
mod progress;
mod purged;
mod reached;
mod read;
mod recovery;
mod releaser;
mod remover;
mod replay;
mod retry;
mod rewrite;
mod row_cache;
mod sampler;
mod saved_caches;
mod schema_check;
mod schema_store;
mod scrub;
mod set_aside;
mod settle;
mod shared;
mod slices;
mod snapshots;
mod sorted;
mod sorted_making;
mod sorted_scan;
mod source;
mod stall;
mod stripes;
mod survey;
mod table_details;
mod table_store;
mod tablet_ends;
mod tablets;
mod tasks;
mod timestamps;
mod token_maps;
mod truncate;
mod view;
mod virtual_table;
mod work;
mod write;

pub use backup_point::{ArchivedLog, BackupKeyspace, BackupPoint, BackupTable};
pub use compact::CompactionRequest;
pub use counter_cache::{CounterCache, CounterKey, OwnCount, deletes_counters};
pub use engine::Engine;
pub use error::{Error, Result};
pub use facts::{CacheFacts, EngineFacts, TableFacts};
pub use faults::SetAside;
pub use ilion_compaction::MajorOutput;
pub use ilion_rows::Granularity;
pub use ilion_sstable::{EstimatedHistogram, Finding, LookupCounts, Version as SSTableVersion};
pub use import::{ImportReport, ImportSource, check_fit};
pub use indexes::{IndexBuildFacts, IndexRepair, IndexVerification, OpenIndex, SSTableIndexFacts};
pub use large::LargeLimits;
pub use load::Load;
pub use log_losses::LogLosses;
pub use new_log::{begin_new_log, continue_log};
pub use options::{CacheOptions, EngineOptions, SnapshotOptions};
pub use progress::AwaitedFacts;
pub use rewrite::{CheckedSSTable, Rewrite};
pub use sampler::{TopPartition, TopPartitions};
pub use scrub::{Salvage, ScrubOptions, ScrubbedSSTable};
pub use slices::{HeldTable, Slice, SliceRanges};
pub use snapshots::{
    SnapshotChoice, SnapshotFacts, SnapshotMemtables, SnapshotOrder, parse_instant, print_instant,
};
pub use stripes::StripesGuard;
pub use survey::ReadSurvey;
pub use table_details::TableDetails;
pub use table_store::TableStore;
pub use tablet_ends::TabletPosition;
pub use tablets::{TABLETS_FILE, is_cluster_directory};
pub use tasks::{CompactionFacts, TaskChoice};
pub use virtual_table::{VirtualRow, VirtualTable};
