//! Secondary indexes: opened, searched, built. Writes reach them through `memtable_indexes`.
//!
//! Entries of hidden tables are made from the table's memtable while its `active` lock is held, so that the memtable of a
//! hidden table is frozen together with that of its table. Entries are not logged: a replay of the table makes them again. So they
//! are flushed before the table's memtable: a crash in between leaves stale entries, but no entry is missing.
//!
//! | module | contents |
//! | --- | --- |
//! | `open` | opening and dropping indexes as the schema changes |
//! | `search` | candidates from a hidden table; removing stale entries |
//! | `beside` | writing and removing single entries of a hidden table |
//! | `indexed_writer` | an SSTable that is written with its attached indexes |
//! | `older_rows` | removed entries that need not be written |
//! | `attached` | attached indexes: opened and built beside SSTables |
//! | `search_attached` | candidates and ranks from attached indexes |
//! | `build` | building an index over existing data |
//! | `built` | `system."IndexInfo"`: which indexes are built |
//! | `facts` | files of attached indexes, for operators |
//! | `verify` | comparing an index in a hidden table with its table, and repairing it |
//! | `verify_attached` | comparing an attached index with its table, and repairing it |

mod attached;
mod beside;
mod build;
mod built;
mod facts;
mod indexed_writer;
mod older_rows;
mod open;
mod search;
mod search_attached;
mod verify;
mod verify_attached;

use std::sync::Arc;

use ilion_index::{Candidates, Estimate, IndexClasses, Predicate, Ranked, SecondaryIndex, Storage};
use ilion_schema::{TableId, TableSchema};

use crate::table_store::{LiveIndex, TableStore};
use crate::{Engine, Error, Result};
use search_attached::AttachedSources;

pub use facts::SSTableIndexFacts;
pub(crate) use indexed_writer::IndexedWriter;
pub(crate) use older_rows::OlderRows;
pub(crate) use open::directory_of;
pub use verify::{IndexRepair, IndexVerification};

/// An index of a table.
#[derive(Clone)]
pub struct OpenIndex {
    /// The index.
    pub index: Arc<dyn SecondaryIndex>,
    /// The index covers all data of the table. An index that does not is not used.
    pub is_built: bool,
    /// Number of SSTables of its table: a search reads files of at most this many.
    pub sstables: u64,
}

/// A build of an index that is running or waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexBuildFacts {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// Bytes of the table that were read.
    pub done_bytes: u64,
    /// Bytes of the table that the build reads in all.
    pub total_bytes: u64,
}

impl Engine {
    /// The known classes of indexes.
    pub fn index_classes(&self) -> &IndexClasses {
        &self.shared.options.index_classes
    }

    /// The indexes of a table.
    pub fn indexes_of(&self, table: TableId) -> Vec<OpenIndex> {
        let Some(store) = self.shared.table(table) else {
            return Vec::new();
        };
        let sstables = store.view().sstables.len() as u64;
        let open = |live: &Arc<LiveIndex>| OpenIndex {
            sstables,
            index: live.index.clone(),
            is_built: live.is_built()
                && (live.hidden.is_some() || self.shared.is_attached_everywhere(&store, live)),
        };
        store.indexes().0.iter().map(open).collect()
    }

    /// Rows of the table that may match, from all its sources. Stale entries that the caller reports
    /// ([`Candidates::met`]) are removed when the candidates are dropped.
    ///
    /// # Errors
    /// There is no such index, it is not built, it does not serve the predicate, or a source cannot be read.
    pub fn index_search(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Box<dyn Candidates>> {
        let (store, live) = self.asked_index(table, index)?;
        match live.index.storage() {
            Storage::HiddenTable(_) => self.shared.search_hidden(&store, &live, predicate),
            Storage::Attached(_) => AttachedSources::of(&store, &live)?.search(&live, predicate),
        }
    }

    /// About how many rows [`Self::index_search`] returns.
    ///
    /// # Errors
    /// Those of [`Self::index_search`].
    pub fn index_estimate(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        predicate: &Predicate,
    ) -> Result<Estimate> {
        let (store, live) = self.asked_index(table, index)?;
        match live.index.storage() {
            Storage::HiddenTable(_) => self.shared.estimate_hidden(&live, predicate),
            Storage::Attached(_) => Ok(AttachedSources::of(&store, &live)?.estimate(predicate)),
        }
    }

    /// Rows of the table by the distance of their vectors, the nearest first within each source. Several sources may return the same
    /// row.
    ///
    /// # Errors
    /// Those of [`Self::index_search`]; also if the index does not rank.
    pub fn index_nearest(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        vector: &[f32],
    ) -> Result<Box<dyn Ranked>> {
        let (store, live) = self.asked_index(table, index)?;
        AttachedSources::of(&store, &live)?.nearest(&live, vector)
    }

    /// Rebuilds an index from its table, and returns when it is built. It is not used meanwhile.
    ///
    /// # Errors
    /// There is no such index, writes are refused, or the table cannot be read.
    pub fn rebuild_index(&self, table: &Arc<TableSchema>, index: &str) -> Result<()> {
        let (store, live) = self.shared.index_of(table, index)?;
        self.shared.rebuild(&store, &live)
    }

    /// Running and waiting builds of indexes.
    pub fn index_builds(&self) -> Vec<IndexBuildFacts> {
        self.shared.build_facts()
    }

    fn asked_index(&self, table: &TableSchema, index: &str) -> Result<(Arc<TableStore>, Arc<LiveIndex>)> {
        let (store, live) = self.shared.index_of(table, index)?;
        match live.is_built() {
            true => Ok((store, live)),
            false => Err(not_built(&live)),
        }
    }
}

fn not_built(live: &LiveIndex) -> Error {
    let definition = live.index.definition();
    let table = &definition.table;
    Error::Refused(format!(
        "The secondary index '{}' is not yet available: it is being built over {}.{}",
        definition.schema.name, table.keyspace, table.name
    ))
}

fn no_such_index(table: &TableSchema, index: &str) -> Error {
    Error::Refused(format!(
        "table {}.{} has no index {index}",
        table.keyspace, table.name
    ))
}
