//! Archived segments of the commit log at a destination, for a restore to a moment between or after backups.
//!
//! A segment consists of chunks, like the files of a backup; one object per segment names them. `reached.json` has the time up to which the
//! segments are complete, since an idle node logs no records that would show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ilion_commitlog::{SegmentFacts, SegmentId};
use ilion_engine::{ArchivedLog, print_instant};
use ilion_env::Env;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::manifest::{FORMAT, FileEntry, file_problem, seal, unseal};
use crate::running::Running;
use crate::upload::Uploads;
use crate::{Catalogue, CreateOptions, Error, Hash, Place, Result};

const ENTRY_BYTES_MAX: u64 = 4 << 20;

/// The upload of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shipped {
    /// Segments.
    pub segments: u64,
    /// Their bytes, without those that the destination had.
    pub bytes: u64,
    /// The newest segment at the destination.
    pub last: Option<u64>,
}

/// An archived segment at a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchivedSegment {
    format: u32,
    pub segment: u64,
    /// When it was created: its records were logged later.
    pub created_micros: i64,
    /// The archived segment before it; `None` if the archive began with it.
    pub before: Option<u64>,
    pub chunk_bytes: u32,
    pub file: FileEntry,
}

impl ArchivedSegment {
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Hash, u64)> + '_ {
        let chunks = self.file.chunks.iter().enumerate();
        chunks.map(|(index, hash)| (*hash, self.file.chunk_len(index, self.chunk_bytes)))
    }
}

/// How far the archived segments of a node reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    format: u32,
    /// The last segment; `None` if there is none.
    pub last: Option<u64>,
    /// All writes that were acknowledged before this time, microseconds since 1970, are in these segments.
    pub covered_micros: i64,
}

/// Uploads the archive of a node, whose log `begin` has archived.
///
/// # Errors
/// See [`Error`]. What was uploaded stays.
pub fn ship_log(
    env: &Arc<dyn Env>,
    place: &dyn Place,
    options: &CreateOptions<'_>,
    begin: &mut dyn FnMut() -> Result<ArchivedLog>,
) -> Result<Shipped> {
    let catalogue = Catalogue::open_or_begin(place)?;
    let archived = begin()?;
    let since = print_instant(env.now_micros().div_euclid(1000));
    let running = Running::add(place, archived.id, &since)?;
    let objects = Mutex::new(catalogue.objects()?);
    let uploads = options.uploads(env, place, &objects);
    let shipped = ship_archive(&uploads, archived.id, &archived.directory, options.prunes_archive)?;
    let reached = Reached {
        format: FORMAT,
        last: shipped.last,
        covered_micros: archived.covered_micros,
    };
    place.write(
        &format!("{}/reached.json", directory_of(archived.id)),
        seal(&reached)?,
    )?;
    running.end()?;
    Ok(shipped)
}

/// Uploads the segments of an archive that the destination does not have. Requires: a mark of [`Running::add`].
pub(crate) fn ship_archive(
    uploads: &Uploads<'_>,
    node: Uuid,
    archive: &Path,
    prunes: bool,
) -> Result<Shipped> {
    let env = &**uploads.env;
    let mut known = BTreeSet::new();
    uploads.place.list(&directory_of(node), &mut |key, _| {
        known.extend(segment_of(key));
    })?;
    let mut wanted = Vec::new();
    let mut beginnings = BTreeSet::new();
    for entry in env.list(archive)? {
        beginnings.extend(SegmentId::of_beginning(&entry.name));
        if let Some(id) = SegmentId::of_file_name(&entry.name) {
            let path = archive.join(&entry.name);
            let bytes = match known.contains(&id.0) {
                true => 0,
                false => written_bytes(env, &path)?,
            };
            wanted.push((id, path, bytes));
        }
    }
    wanted.sort_by_key(|(id, ..)| *id);
    let bytes = wanted.iter().map(|(.., bytes)| bytes).sum();
    uploads.progress.begin("uploading the log", bytes);
    let mut shipped = Shipped::default();
    for (id, path, bytes) in wanted {
        if !known.contains(&id.0) {
            let facts = SegmentFacts::read(env, &path)?;
            if facts.log_id != node {
                return Err(Error::Refused(format!(
                    "{} belongs to the log {}, not to that of this node, {node}; give each node an archive of its own",
                    path.display(),
                    facts.log_id
                )));
            }
            let (chunks, moved) = uploads.run(&[(&path, bytes)])?;
            let entry = ArchivedSegment {
                format: FORMAT,
                segment: id.0,
                created_micros: facts.created_micros,
                before: known
                    .range(..id.0)
                    .next_back()
                    .copied()
                    .filter(|_| !beginnings.contains(&id)),
                chunk_bytes: uploads.chunk_bytes,
                file: FileEntry {
                    path: id.file_name(),
                    bytes,
                    modified: env.modified_secs(&path)?,
                    chunks: chunks.into_iter().flatten().collect(),
                },
            };
            uploads.place.write(&key_of(node, id.0), seal(&entry)?)?;
            known.insert(id.0);
            shipped.segments += 1;
            shipped.bytes += moved.bytes;
        }
        if prunes {
            env.remove_file_if_any(&path)?;
        }
    }
    uploads.progress.finish();
    shipped.last = known.last().copied();
    Ok(shipped)
}

/// The archived segments of a node from the segment `from` on, by number.
pub(crate) fn archived_segments(
    place: &dyn Place,
    node: Uuid,
    from: u64,
) -> Result<BTreeMap<u64, ArchivedSegment>> {
    let mut numbers = Vec::new();
    place.list(&directory_of(node), &mut |key, _| {
        numbers.extend(segment_of(key).filter(|number| *number >= from));
    })?;
    let mut segments = BTreeMap::new();
    for number in numbers {
        let key = key_of(node, number);
        // Another tool has removed it since it was listed.
        let Some(bytes) = place.read(&key, ENTRY_BYTES_MAX)? else {
            continue;
        };
        let entry: ArchivedSegment = unseal(&key, &bytes)?;
        let is_named = entry.segment == number && entry.file.path == SegmentId(number).file_name();
        if !is_named || entry.chunk_bytes == 0 {
            return Err(Error::damaged(key, "is that of another segment"));
        }
        if let Some(problem) = file_problem(&entry.file, entry.chunk_bytes) {
            return Err(Error::damaged(key, problem));
        }
        segments.insert(number, entry);
    }
    Ok(segments)
}

/// The nodes that have archived segments.
pub(crate) fn nodes(place: &dyn Place) -> Result<Vec<Uuid>> {
    let mut nodes = Vec::new();
    place.list("log", &mut |key, _| {
        nodes.extend(key.split('/').nth(1).and_then(|node| node.parse::<Uuid>().ok()));
    })?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// Removes the archived segments of a node below a segment; `None` removes all of them, and `reached.json`.
pub(crate) fn remove_segments(place: &dyn Place, node: Uuid, below: Option<u64>) -> Result<u64> {
    let mut keys = Vec::new();
    place.list(&directory_of(node), &mut |key, _| {
        let is_below = match (segment_of(key), below) {
            (_, None) => true,
            (Some(number), Some(below)) => number < below,
            (None, Some(_)) => false,
        };
        if is_below {
            keys.push(key.to_owned());
        }
    })?;
    for key in &keys {
        place.remove(key)?;
    }
    Ok(keys.len() as u64)
}

/// How far archived segments reach; `None` without `reached.json`.
pub(crate) fn reached(place: &dyn Place, node: Uuid) -> Result<Option<Reached>> {
    let key = format!("{}/reached.json", directory_of(node));
    let Some(bytes) = place.read(&key, ENTRY_BYTES_MAX)? else {
        return Ok(None);
    };
    Ok(Some(unseal(&key, &bytes)?))
}

/// The length of a sealed segment without most of the zeros behind the seal. A few are kept, since the seal itself may end with zeros.
pub(crate) fn written_bytes(env: &dyn Env, path: &Path) -> Result<u64> {
    const BLOCK_BYTES: u64 = 1 << 20;
    const LEFT_BYTES: u64 = 64;
    let file = env.open_read(path)?;
    let size = file.size_bytes();
    let mut end = size;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        block.resize(usize::try_from(end - start).unwrap_or(0), 0);
        file.read_exact_at(start, &mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte != 0) {
            return Ok((start + last as u64 + 1 + LEFT_BYTES).min(size));
        }
        end = start;
    }
    Ok(size.min(LEFT_BYTES))
}

fn directory_of(node: Uuid) -> String {
    format!("log/{node}")
}

fn key_of(node: Uuid, segment: u64) -> String {
    format!("{}/{segment:020}.json", directory_of(node))
}

fn segment_of(key: &str) -> Option<u64> {
    key.rsplit('/').next()?.strip_suffix(".json")?.parse().ok()
}
