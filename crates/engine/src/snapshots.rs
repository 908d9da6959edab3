//! Snapshots: hard links of a table's SSTables under a tag, as in Cassandra.
//!
//! ```text
//! <table directory>/snapshots/TAG/nb-1-big-Data.db ...      links, with the files of attached indexes
//!                                /.<index>/nb-1-big-Data.db links of an index in a hidden table
//!                                /manifest.json             names of the Data.db files, times
//!                                /schema.cql                the statements that create the table
//!                           /.TAG.making, .TAG.remove       unfinished; removed by the next check for expired snapshots
//! ```
//!
//! A snapshot is made under a hidden name, synced, and renamed; it is removed in the reverse order. So a directory with a tag is a
//! whole snapshot, also after a crash. A snapshot of a table has its data at one moment: the turn of the flush is held
//! (`maintenance`) from the flush until the SSTables of the table and of its indexes are known.
//!
//! | module | contents |
//! | --- | --- |
//! | `tag` | which names a snapshot may have |
//! | `manifest`, `instant` | `manifest.json` and its times |
//! | `state` | the state that an engine keeps about snapshots |
//! | `take` | making snapshots, several tables at a time |
//! | `frozen` | several tables at one moment, in a cluster |
//! | `automatic` | snapshots before TRUNCATE, DROP and compactions |
//! | `found` | which snapshots exist, and their sizes |
//! | `clear` | removing them: on request, expired, unfinished |

mod automatic;
mod clear;
mod found;
mod frozen;
mod instant;
mod manifest;
mod state;
mod tag;
mod take;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ilion_schema::TableId;

use crate::progress::AwaitedKind;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result};

pub use clear::SnapshotChoice;
pub use found::SnapshotFacts;
pub use instant::{parse_instant, print_instant};
pub(crate) use state::Snapshots;
pub(crate) use take::{link, statements_of};

/// Compat: `Directories.SNAPSHOT_SUBDIR`, `BACKUPS_SUBDIR`.
const SNAPSHOTS_DIRECTORY: &str = "snapshots";
pub(crate) const BACKUPS_DIRECTORY: &str = "backups";
const MANIFEST_FILE: &str = "manifest.json";
/// Compat: snapshots of Cassandra have a file with this name, too.
pub(crate) const SCHEMA_FILE: &str = "schema.cql";
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// Suffixes of hidden names. With the longest automatic tag (of a table whose name has 222 bytes) and a dot, a name has at most 255 bytes.
const MAKING: &str = ".making";
const REMOVING: &str = ".remove";
/// Compat: `SNAPSHOT_MIN_ALLOWED_TTL_SECONDS`.
const TTL_SECS_MIN: u64 = 60;

/// A snapshot to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotOrder {
    /// Its tag.
    pub tag: String,
    /// The tables.
    pub tables: Vec<TableId>,
    /// How long it is kept; `None` keeps it until it is cleared.
    pub ttl_secs: Option<u64>,
    /// What happens to data that is only in memory.
    pub memtables: SnapshotMemtables,
}

/// How a snapshot treats data that is only in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotMemtables {
    /// The data is flushed first, and is in the snapshot.
    #[default]
    Flushed,
    /// The data is left out.
    LeftOut,
}

impl Engine {
    /// Takes snapshots of tables under a tag: of all of them, or of none. Each is the table at one moment: everything that was
    /// acknowledged before the call is in it. On a node of a cluster all of the tables are flushed as of the same moment, between two records.
    ///
    /// # Errors
    /// The tag is not valid, a table does not exist or has a snapshot of this tag, or the operating system returned an error. Then
    /// there is no new snapshot.
    pub fn snapshot(&self, order: &SnapshotOrder) -> Result<()> {
        let shared = &self.shared;
        tag::check(&order.tag).map_err(Error::Refused)?;
        if order.ttl_secs.is_some_and(|ttl| ttl < TTL_SECS_MIN) {
            return Err(Error::Refused(format!(
                "ttl for snapshot must be at least {TTL_SECS_MIN} seconds"
            )));
        }
        if order.memtables == SnapshotMemtables::Flushed {
            shared.check_writable()?;
        }
        let mut stores = Vec::with_capacity(order.tables.len());
        for table in &order.tables {
            let store = shared.table(*table);
            stores.push(store.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?);
        }
        let _changing = shared.snapshots.changing.lock();
        let kind = match order.memtables {
            SnapshotMemtables::Flushed => AwaitedKind::Snapshot,
            SnapshotMemtables::LeftOut => AwaitedKind::SnapshotOfFiles,
        };
        let _shown = shared.awaited.begin(kind, &stores);
        let tables: Vec<_> = stores.iter().map(|store| (store, order.tag.clone())).collect();
        shared.take_snapshots(&tables, order.ttl_secs, order.memtables)?;
        Ok(())
    }

    /// All snapshots, including those of dropped tables; ordered by keyspace, table and tag.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn snapshots(&self) -> Result<Vec<SnapshotFacts>> {
        self.shared.measured_snapshots()
    }

    /// Bytes of SSTables that only snapshots have, by table, including dropped tables. An SSTable in several snapshots counts once.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn snapshots_only_bytes(&self) -> Result<BTreeMap<TableId, u64>> {
        self.shared.snapshots_only_bytes()
    }

    /// Removes the chosen snapshots; returns their number.
    ///
    /// # Errors
    /// A directory cannot be listed or removed. Snapshots that were removed before stay removed.
    pub fn clear_snapshots(&self, choice: &SnapshotChoice) -> Result<u64> {
        self.shared.clear_snapshots(choice)
    }

    /// Removes expired snapshots; returns their number. The tick does the same when a snapshot expires. For tests.
    ///
    /// # Errors
    /// Those of [`Self::clear_snapshots`].
    pub fn clear_expired_snapshots(&self) -> Result<u64> {
        let _changing = self.shared.snapshots.changing.lock();
        self.shared.clear_expired()
    }
}

/// Whether a directory of this name in a table's directory stays when the table is dropped.
pub(crate) fn is_kept_by_drop(name: &str) -> bool {
    [SNAPSHOTS_DIRECTORY, BACKUPS_DIRECTORY].contains(&name)
}

fn directory_of_snapshots(table: &Path) -> PathBuf {
    table.join(SNAPSHOTS_DIRECTORY)
}

/// The name of a hidden table's directory: `.` and the index.
fn subdirectory_of(hidden: &TableStore) -> String {
    let name = hidden.directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
