//! Snapshots that the engine takes by itself: before data is removed, and before compactions.
//!
//! If the disk is full, TRUNCATE and DROP go on without a snapshot, since they may be what makes room again; a warning is logged. After
//! any other error the statement is refused, and data and schema stay as they were.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_schema::{Diff, TableKind, TableSchema, Transition};

use super::take::Making;
use super::{SnapshotMemtables, directory_of_snapshots};
use crate::shared::Shared;
use crate::table_store::{Active, TableStore};
use crate::view::Frozen;
use crate::{Error, Result};

/// Automatic snapshots of a statement that may still be refused.
#[derive(Default)]
#[must_use]
pub(crate) struct AutoSnapshot(Vec<PathBuf>);

/// The snapshot of a truncation.
pub(crate) struct TruncatedSnapshot {
    making: Making,
    /// False at first if the table was empty: it gets a snapshot only if it is written to before it is emptied.
    is_linked: bool,
}

/// Returns `None` for the error that the disk is full.
fn unless_full<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.is_no_space() => {
            tracing::warn!(%error, "the disk is full: data is removed without a snapshot");
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Whether a statement that failed with this error is in no case in the log.
fn is_certainly_refused(error: &Error) -> bool {
    error.is_shortage() || matches!(error, Error::Refused(_))
}

impl Shared {
    /// Flushes a table that is about to be emptied, if its settings require a snapshot; returns false if there will be none.
    pub(crate) fn prepare_truncated(&self, store: &Arc<TableStore>) -> Result<bool> {
        // A view needs no snapshot: it can be filled again from its table.
        if store.schema().kind == TableKind::View || !self.is_auto_snapshot_wanted(store) {
            return Ok(false);
        }
        Ok(store.is_empty() || unless_full(self.flush_table(store))?.is_some())
    }

    /// Links the SSTables of a table that is about to be emptied. Returns `None` if the disk is full. Requires: the caller holds all locks
    /// of the files of the table and of its hidden tables (`maintenance`), and `changing`.
    pub(crate) fn begin_truncated(&self, store: &Arc<TableStore>) -> Result<Option<TruncatedSnapshot>> {
        let tag = self.free_tag(store, |millis, table| format!("truncated-{millis}-{table}"));
        let created_millis = self.env.now_micros().div_euclid(1000);
        let ttl_secs = self.options.snapshots.automatic_ttl_secs;
        let mut making = self.begin_snapshot(store, &tag, created_millis, ttl_secs);
        let is_linked = !store.is_empty();
        if is_linked {
            let linked = self.link_now(store, &mut making);
            if linked.is_err() {
                self.unmake(&making);
            }
            if unless_full(linked)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(TruncatedSnapshot { making, is_linked }))
    }

    /// Writes the rows since the flush into the snapshot, and shows it: it then has all data that the truncation removes. Returns
    /// `None` if the table is empty, or the disk is full.
    ///
    /// Requires: the locks of [`Self::begin_truncated`]; `tables` are the table and its hidden tables, and `active` of each is held
    /// exclusively.
    pub(crate) fn finish_truncated(
        &self,
        store: &Arc<TableStore>,
        snapshot: TruncatedSnapshot,
        tables: &[(&TableStore, &Active)],
    ) -> Result<Option<TruncatedSnapshot>> {
        let TruncatedSnapshot {
            mut making,
            is_linked,
        } = snapshot;
        if !is_linked && store.is_empty() {
            return Ok(None);
        }
        let upto = self.barrier();
        let linked = match is_linked {
            true => Ok(()),
            false => self.link_now(store, &mut making),
        };
        let result = linked
            .and_then(|()| {
                tables.iter().try_for_each(|(store, active)| {
                    let view = store.view();
                    let active = Frozen {
                        memtable: active.memtable.clone(),
                        indexes: active.indexes.clone(),
                        since: active.since,
                        upto,
                        tablets_upto: self.tablets.ends(),
                        tablets: active.tablets.clone(),
                    };
                    let mut rest = view.frozen.iter().map(|frozen| &**frozen).chain([&active]);
                    rest.try_for_each(|rest| match rest.memtable.is_empty() {
                        true => Ok(()),
                        false => self.write_rest(store, &mut making, rest),
                    })
                })
            })
            .and_then(|()| self.show(&making));
        if result.is_err() {
            self.unmake(&making);
        }
        Ok(unless_full(result)?.map(|()| TruncatedSnapshot {
            making,
            is_linked: true,
        }))
    }

    /// Removes the snapshot of a truncation that was refused, unless the truncation may be in the log all the same.
    pub(crate) fn take_back_truncated(&self, snapshot: &TruncatedSnapshot, error: &Error) {
        if is_certainly_refused(error) {
            self.unmake(&snapshot.making);
        }
    }

    /// Takes snapshots of the tables that a schema change drops, if the settings require it.
    pub(crate) fn snapshot_before_drop(&self, diffs: &[Diff]) -> Result<AutoSnapshot> {
        let dropped = diffs.iter().filter_map(|diff| match diff {
            Diff::Table(Transition::Dropped(table)) => self.table(table.id),
            _ => None,
        });
        self.auto_snapshot(&dropped.collect::<Vec<_>>(), "dropped")
    }

    fn auto_snapshot(&self, stores: &[Arc<TableStore>], prefix: &str) -> Result<AutoSnapshot> {
        let options = &self.options.snapshots;
        let due = stores.iter().filter(|store| self.is_auto_snapshot_due(store));
        let due: Vec<&Arc<TableStore>> = due.collect();
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
        let taken = self.take_snapshots(&tables, options.automatic_ttl_secs, SnapshotMemtables::Flushed);
        Ok(unless_full(taken)?.map_or_else(AutoSnapshot::default, AutoSnapshot))
    }

    /// Whether a table gets an automatic snapshot. Compat: an empty table gets none, since it would only have its statements.
    fn is_auto_snapshot_due(&self, store: &TableStore) -> bool {
        let has_data = !store.is_empty() || store.set_aside_reason().is_some();
        self.is_auto_snapshot_wanted(store) && has_data
    }

    fn is_auto_snapshot_wanted(&self, store: &TableStore) -> bool {
        self.options.snapshots.is_automatic && store.schema().options.allow_auto_snapshot
    }

    /// Removes automatic snapshots of a statement that was refused afterwards. They stay if the statement may be in the log all the same.
    pub(crate) fn take_back(&self, taken: AutoSnapshot, error: &Error) {
        if !is_certainly_refused(error) {
            return;
        }
        let _changing = self.snapshots.changing.lock();
        for directory in taken.0 {
            if let Err(error) = self.remove_snapshot(&directory) {
                tracing::warn!(directory = %directory.display(), %error, "the snapshot of a refused statement cannot be removed");
            }
        }
    }

    /// Takes a snapshot before a compaction, if the settings require it.
    pub(crate) fn snapshot_before_compaction(&self, store: &Arc<TableStore>) -> Result<()> {
        // Hidden tables have no snapshots of their own: they are in those of their tables.
        if !self.options.snapshots.is_before_compaction || self.table(store.id).is_none() {
            return Ok(());
        }
        let _changing = self.snapshots.changing.lock();
        let tag = self.free_tag(store, |millis, table| format!("{millis}-compact-{table}"));
        self.take_snapshots(&[(store, tag)], None, SnapshotMemtables::LeftOut)?;
        Ok(())
    }

    /// The first tag with a time from now on for which the table has no snapshot.
    fn free_tag(&self, store: &TableStore, tag: impl Fn(i64, &str) -> String) -> String {
        let table: Arc<TableSchema> = store.schema();
        let now_millis = self.env.now_micros().div_euclid(1000);
        let snapshots = directory_of_snapshots(&store.directory);
        let mut tags = (now_millis..).map(|millis| tag(millis, &table.name));
        let free = tags.find(|tag| !self.env.exists(&snapshots.join(tag)));
        free.unwrap_or_default()
    }
}
