//! Removes backups, and the objects that no other backup needs.
//!
//! The manifests are removed first, then archived segments that no restore can use any more, then chunks without a reference. So a crash in
//! between leaves unused chunks, which the next call removes, but never a manifest without its chunks. No chunk is removed as long as a
//! manifest cannot be read.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ilion_engine::print_instant;
use ilion_env::Env;
use uuid::Uuid;

use crate::log::{archived_segments, nodes, remove_segments};
use crate::running::Running;
use crate::{Catalogue, Error, Hash, Place, Result};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Backups.
    pub backups: u64,
    /// Archived segments from before the oldest backup of their node.
    pub segments: u64,
    /// Chunks.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes these backups, and whatever no backup needs. With `is_forced`, marks of running backups are removed.
///
/// # Errors
/// A backup does not exist, another process adds or removes backups, or a manifest cannot be read: then all backups stay as they are. If
/// the destination fails in the middle, a part is removed; call it again for the rest.
pub fn delete(env: &Arc<dyn Env>, place: &dyn Place, names: &[String], is_forced: bool) -> Result<Deleted> {
    let catalogue = Catalogue::open(place)?;
    let since = print_instant(env.now_micros().div_euclid(1000));
    let running = Running::remove(place, &since, is_forced)?;
    let deleted = delete_marked(&catalogue, names);
    if deleted.is_ok() || matches!(deleted, Err(Error::Refused(_) | Error::Damaged { .. })) {
        running.end()?;
    }
    deleted
}

/// Requires: a mark of [`Running::remove`].
fn delete_marked(catalogue: &Catalogue<'_>, names: &[String]) -> Result<Deleted> {
    let place = catalogue.place();
    let backups = catalogue.backups()?;
    let mut kept = Vec::new();
    let mut doomed = HashSet::new();
    for backup in backups {
        match (names.contains(&backup.name), backup.manifest) {
            // A damaged backup can be removed; its chunks are then not needed.
            (true, _) => {
                doomed.insert(backup.name);
            }
            (false, Ok(manifest)) => kept.push(manifest),
            (false, Err(error)) => {
                return Err(Error::Refused(format!(
                    "nothing is removed, since what the backup {} has cannot be known: {error}; delete it, too",
                    backup.name
                )));
            }
        }
    }
    if let Some(unknown) = names.iter().find(|name| !doomed.contains(*name)) {
        return Err(Error::Refused(format!(
            "there is no backup {unknown} at {}",
            place.name()
        )));
    }
    // Read before anything is removed: damage in them is an error.
    let nodes = nodes(place)?;
    let mut oldest: BTreeMap<Uuid, u64> = BTreeMap::new();
    for manifest in &kept {
        let from = oldest.entry(manifest.node).or_insert(manifest.log.to);
        *from = (*from).min(manifest.log.to);
    }
    let mut used: HashSet<Hash> = HashSet::new();
    for node in &nodes {
        if let Some(from) = oldest.get(node) {
            let segments = archived_segments(place, *node, *from)?;
            used.extend(segments.values().flat_map(|segment| &segment.file.chunks));
        }
    }
    used.extend(
        kept.iter()
            .flat_map(|manifest| manifest.chunks().map(|(hash, _)| hash)),
    );

    let mut deleted = Deleted {
        backups: doomed.len() as u64,
        ..Deleted::default()
    };
    for name in &doomed {
        catalogue.remove(name)?;
    }
    for node in nodes {
        deleted.segments += remove_segments(place, node, oldest.get(&node).copied())?;
    }
    for (hash, bytes) in catalogue.objects()? {
        if !used.contains(&hash) {
            place.remove(&hash.key())?;
            deleted.objects += 1;
            deleted.bytes += bytes;
        }
    }
    Ok(deleted)
}
