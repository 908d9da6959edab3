//! Snapshots that are taken without being asked for: before data is removed, and before compactions.
//!
//! If the disk is full, TRUNCATE and DROP go on without a snapshot, since they may be what makes room again; the log warns. Any other
//! failure refuses the statement: nothing is changed then.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_schema::{Diff, TableKind, TableSchema, Transition};

use super::{SnapshotMemtables, directory_of_snapshots};
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Error, Result};

/// Automatic snapshots of a statement that may still be refused.
#[derive(Default)]
#[must_use]
pub(crate) struct AutoSnapshot(Vec<PathBuf>);

impl Shared {
    /// Takes a snapshot of a table that is about to be emptied, if its settings ask for it.
    pub(crate) fn snapshot_before_truncate(&self, store: &Arc<TableStore>) -> Result<AutoSnapshot> {
        // A view is filled from its table again.
        match store.schema().kind {
            TableKind::View => Ok(AutoSnapshot::default()),
            _ => self.auto_snapshot(&[store.clone()], "truncated"),
        }
    }

    /// Takes snapshots of the tables that a change of the schema drops, if their settings ask for it.
    pub(crate) fn snapshot_before_drop(&self, diffs: &[Diff]) -> Result<AutoSnapshot> {
        let dropped = diffs.iter().filter_map(|diff| match diff {
            Diff::Table(Transition::Dropped(table)) => self.table(table.id),
            _ => None,
        });
        self.auto_snapshot(&dropped.collect::<Vec<_>>(), "dropped")
    }

    fn auto_snapshot(&self, stores: &[Arc<TableStore>], prefix: &str) -> Result<AutoSnapshot> {
        let options = &self.options.snapshots;
        let is_due = |store: &&Arc<TableStore>| {
            options.is_automatic && store.schema().options.allow_auto_snapshot && self.has_data(store)
        };
        let due: Vec<&Arc<TableStore>> = stores.iter().filter(is_due).collect();
        if due.is_empty() {
            return Ok(AutoSnapshot::default());
        }
        let _changing = self.snapshots.changing.lock();
        let tables: Vec<_> = due
            .into_iter()
            .map(|store| {
                (
                    store,
                    self.free_tag(store, |millis, table| format!("{prefix}-{millis}-{table}")),
                )
            })
            .collect();
        match self.take_snapshots(&tables, options.automatic_ttl_secs, SnapshotMemtables::Flushed) {
            Ok(places) => Ok(AutoSnapshot(places)),
            Err(error) if error.is_no_space() => {
                tracing::warn!(%error, "the disk is full: data is removed without a snapshot");
                Ok(AutoSnapshot::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Compat: a snapshot of an empty table would only have its statements, so there is none.
    fn has_data(&self, store: &TableStore) -> bool {
        !store.is_empty() || store.set_aside_reason().is_some()
    }

    /// Removes automatic snapshots of a statement that was refused afterwards. They stay if the statement may be in the log all the same.
    pub(crate) fn take_back(&self, taken: AutoSnapshot, error: &Error) {
        if !error.is_shortage() && !matches!(error, Error::Refused(_)) {
            return;
        }
        let _changing = self.snapshots.changing.lock();
        for directory in taken.0 {
            if let Err(error) = self.remove_snapshot(&directory) {
                tracing::warn!(directory = %directory.display(), %error, "the snapshot of a refused statement cannot be removed");
            }
        }
    }

    /// Takes a snapshot before a compaction, if the settings ask for it.
    pub(crate) fn snapshot_before_compaction(&self, store: &Arc<TableStore>) -> Result<()> {
        // Hidden tables are in the snapshots of their tables.
        if !self.options.snapshots.is_before_compaction || self.table(store.id).is_none() {
            return Ok(());
        }
        let _changing = self.snapshots.changing.lock();
        let tag = self.free_tag(store, |millis, table| format!("{millis}-compact-{table}"));
        self.take_snapshots(&[(store, tag)], None, SnapshotMemtables::LeftOut)?;
        Ok(())
    }

    /// The first tag from now on that the table has no snapshot of.
    fn free_tag(&self, store: &TableStore, tag: impl Fn(i64, &str) -> String) -> String {
        let table: Arc<TableSchema> = store.schema();
        let now_millis = self.env.now_micros().div_euclid(1000);
        let snapshots = directory_of_snapshots(&store.directory);
        let mut tags = (now_millis..).map(|millis| tag(millis, &table.name));
        let free = tags.find(|tag| !self.env.exists(&snapshots.join(tag)));
        free.unwrap_or_default()
    }
}
