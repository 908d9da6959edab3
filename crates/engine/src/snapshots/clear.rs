//! Removes snapshots: on request, when they have expired, and those that a crash left unfinished.
//!
//! A snapshot is renamed first, then removed: so it is either whole or has no tag.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::found::SnapshotDirectory;
use super::{MAKING, REMOVING, SNAPSHOTS_DIRECTORY};
use crate::shared::Shared;
use crate::{Error, Result};

/// Which snapshots to remove. All conditions must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotChoice {
    /// Snapshots with this tag; `None` selects all tags.
    pub tag: Option<String>,
    /// Snapshots of tables in these keyspaces; empty selects all keyspaces.
    pub keyspaces: Vec<String>,
    /// Snapshots that were taken before this time, milliseconds since 1970.
    pub before_millis: Option<i64>,
}

impl Shared {
    pub(super) fn clear_snapshots(&self, choice: &SnapshotChoice) -> Result<u64> {
        let _changing = self.snapshots.changing.lock();
        self.clear_those(|entry| {
            let is_tagged = choice.tag.as_ref().is_none_or(|tag| *tag == entry.name);
            let is_in = choice.keyspaces.is_empty() || choice.keyspaces.contains(&entry.keyspace);
            let is_old = |millis| entry.manifest(&*self.env).1 < millis;
            is_tagged && is_in && choice.before_millis.is_none_or(is_old)
        })
    }

    /// Removes the chosen snapshots, and unfinished ones. Requires: `Snapshots::changing` is held.
    fn clear_those(&self, is_chosen: impl Fn(&SnapshotDirectory) -> bool) -> Result<u64> {
        let mut count = 0;
        let mut failed = None;
        for entry in self.snapshot_entries()? {
            let is_left =
                entry.is_hidden() && (entry.name.ends_with(MAKING) || entry.name.ends_with(REMOVING));
            let removed = match (is_left, entry.is_hidden()) {
                (true, _) => self.env.remove_dir_all(&entry.path()).map_err(Error::from),
                (false, false) if is_chosen(&entry) => {
                    count += 1;
                    self.remove_snapshot(&entry.path())
                }
                _ => continue,
            };
            match removed {
                Ok(()) if !is_left => {
                    tracing::info!(keyspace = %entry.keyspace, table = %entry.table, tag = %entry.name, "a snapshot was removed");
                }
                Ok(()) => {}
                Err(error) => {
                    // Returned at the end: the other snapshots are removed all the same.
                    let _ = failed.get_or_insert(error);
                    continue;
                }
            }
            if self.table(entry.table_id).is_none() {
                self.remove_if_empty(&entry.directory);
            }
        }
        failed.map_or(Ok(count), Err)
    }

    /// Removes a snapshot. Readers and a start see it whole or not at all.
    pub(super) fn remove_snapshot(&self, directory: &Path) -> Result<()> {
        let env = &*self.env;
        let parent = directory.parent().unwrap_or(Path::new("."));
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            return Ok(env.remove_dir_all(directory)?);
        }
        let hidden = parent.join(format!(".{name}{REMOVING}"));
        if env.exists(&hidden) {
            env.remove_dir_all(&hidden)?;
        }
        env.rename(directory, &hidden)?;
        env.sync_dir(parent)?;
        Ok(env.remove_dir_all(&hidden)?)
    }

    /// Removes the directory of a dropped table once it has no snapshots and backups. Both calls fail otherwise.
    fn remove_if_empty(&self, table: &Path) {
        let _ = self.env.remove_dir(&table.join(SNAPSHOTS_DIRECTORY));
        let _ = self.env.remove_dir(table);
    }

    /// Removes expired snapshots if one is due. A failure is logged, and a later tick tries again.
    pub(crate) fn expire_snapshots(&self) {
        let now_millis = self.env.now_micros().div_euclid(1000);
        if now_millis < self.snapshots.next_expiry_millis.load(Ordering::Relaxed) {
            return;
        }
        // Does not wait, since the current holder may take long; the next tick tries again.
        let Some(_changing) = self.snapshots.changing.try_lock() else {
            return;
        };
        if let Err(error) = self.clear_expired() {
            tracing::warn!(%error, "expired snapshots cannot be removed; this is tried again");
            let later_millis = now_millis.saturating_add(RETRY_MILLIS);
            self.snapshots
                .next_expiry_millis
                .store(later_millis, Ordering::Relaxed);
        }
    }

    /// Requires: `Snapshots::changing` is held.
    pub(super) fn clear_expired(&self) -> Result<u64> {
        let now_millis = self.env.now_micros().div_euclid(1000);
        let expiry = |entry: &SnapshotDirectory| entry.manifest(&*self.env).0.expires_millis;
        let removed = self.clear_those(|entry| expiry(entry).is_some_and(|millis| millis < now_millis))?;
        let left = self.snapshot_entries()?;
        let next = left
            .iter()
            .filter(|entry| !entry.is_hidden())
            .filter_map(expiry)
            .min();
        // Plus one: a snapshot is kept to the end of the millisecond that its manifest names.
        let next = next.map_or(i64::MAX, |millis| millis.saturating_add(1));
        self.snapshots.next_expiry_millis.store(next, Ordering::Relaxed);
        Ok(removed)
    }
}

/// Time between two tries to remove expired snapshots.
const RETRY_MILLIS: i64 = 60_000;
