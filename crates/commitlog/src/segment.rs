//! Segment files: `ilion-1-<number>.log`.
//!
//! Cassandra ignores files with such names, so it starts on a directory that Ilion has used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ilion_env::{Env, SyncFile, WriteFile};
use parking_lot::Mutex;

use crate::frame::{HEADER_BYTES, Head, Header, SEAL_BYTES, filler};
use crate::{Error, Mode, Result, SegmentId, foreign};

const PREFIX: &str = "ilion-1-";
/// Prefix of the names of Cassandra's segments.
const FOREIGN_PREFIX: &str = "CommitLog-";
const SUFFIX: &str = ".log";

/// A segment that is being written.
pub(crate) struct Segment {
    pub id: SegmentId,
    pub path: PathBuf,
    /// Changed only while `file` is locked.
    size_bytes: AtomicU32,
    /// `None` if there was no space for the first segment of the log.
    file: Option<Open>,
}

struct Open {
    /// Locked by the only thread that is writing (see `write`), or by a thread that makes the file larger.
    file: Mutex<Box<dyn WriteFile>>,
    sync: Arc<dyn SyncFile>,
}

impl Segment {
    /// A segment without a file, which takes no records. A log starts in it if there is no space for a first one.
    pub(crate) fn without_file(dir: &Path, id: SegmentId) -> Self {
        Self {
            id,
            path: path_of(dir, id),
            size_bytes: AtomicU32::new(0),
            file: None,
        }
    }

    /// False for a segment that takes no records.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Creates a segment with its header and reserved space. It is durable when this returns.
    pub(crate) fn create(
        env: &dyn Env,
        dir: &Path,
        header: &Header,
        mode: Mode,
    ) -> std::result::Result<Self, ilion_env::Error> {
        let path = path_of(dir, header.segment);
        let mut file = env.create(&path)?;
        let prepared = prepare(&mut *file, header).and_then(|()| env.sync_dir(dir));
        if let Err(error) = prepared {
            drop(file);
            // If the file cannot be removed, the next start finds it empty and removes it.
            let _ = env.remove_file(&path);
            return Err(error);
        }
        // Mapped, since this mode has many writes between two syncs.
        if matches!(mode, Mode::Periodic { .. }) {
            file.write_by_memory();
        }
        let sync = file.sync_handle();
        Ok(Self {
            id: header.segment,
            path,
            size_bytes: AtomicU32::new(header.segment_bytes),
            file: Some(Open {
                file: Mutex::new(file),
                sync,
            }),
        })
    }

    /// The space that is reserved for the segment.
    pub(crate) fn size_bytes(&self) -> u32 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    /// Reserves this much space for the segment. If the disk has no room, the segment keeps its size and takes the records that fit.
    pub(crate) fn grow(&self, size_bytes: u32) -> std::result::Result<(), ilion_env::Error> {
        let Some(open) = &self.file else {
            return Err(self.no_file("reserve space for"));
        };
        let mut file = open.file.lock();
        let before = self.size_bytes();
        if size_bytes <= before {
            return Ok(());
        }
        if let Err(error) = file.preallocate(u64::from(size_bytes)) {
            // Part of the space may be reserved now. It contains no record, so it is given back.
            file.truncate(u64::from(before))?;
            return Err(error);
        }
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn write_at(&self, offset: u32, bytes: &[u8]) -> std::result::Result<(), ilion_env::Error> {
        match &self.file {
            Some(open) => open.file.lock().write_at(u64::from(offset), bytes),
            None => Err(self.no_file("write")),
        }
    }

    pub(crate) fn sync(&self) -> std::result::Result<(), ilion_env::Error> {
        match &self.file {
            Some(open) => open.sync.sync(),
            None => Err(self.no_file("sync")),
        }
    }

    /// The error of a segment without a file. No record is ever appended to such a segment, so no caller gets this error.
    fn no_file(&self, action: &'static str) -> ilion_env::Error {
        ilion_env::Error::new(action, &self.path, std::io::ErrorKind::NotFound.into())
    }
}

fn prepare(file: &mut dyn WriteFile, header: &Header) -> std::result::Result<(), ilion_env::Error> {
    file.preallocate(u64::from(header.segment_bytes))?;
    file.write_at(0, &header.encode())?;
    file.sync()
}

/// Cuts a segment of an earlier process at the end of its last good record, and seals it there.
pub(crate) fn seal(env: &dyn Env, dir: &Path, id: SegmentId, end: u32) -> Result<u64> {
    debug_assert!(end as usize >= HEADER_BYTES);
    let mut file = env.open_append(&path_of(dir, id))?;
    file.truncate(u64::from(end))?;
    // The seal's `synced` covers all records before it, so they must reach the disk first.
    file.sync()?;
    file.write_at(u64::from(end), &Head::seal(end).encode(id, end))?;
    file.sync()?;
    Ok(u64::from(end) + SEAL_BYTES as u64)
}

/// Writes records of kind `Noop` in place of records that are lost or given up. They are durable when this returns.
pub(crate) fn fill(env: &dyn Env, dir: &Path, id: SegmentId, places: &[(u32, u32)]) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let mut file = env.open_append(&path_of(dir, id))?;
    for (start, end) in places {
        file.write_at(u64::from(*start), &filler(id, *start, end - start))?;
    }
    Ok(file.sync()?)
}

/// Syncs a segment of a killed process, which may have left bytes only in the page cache.
pub(crate) fn sync_again(env: &dyn Env, dir: &Path, id: SegmentId) -> Result<()> {
    Ok(env.open_append(&path_of(dir, id))?.sync()?)
}

pub(crate) fn path_of(dir: &Path, id: SegmentId) -> PathBuf {
    dir.join(format!("{PREFIX}{id}{SUFFIX}"))
}

/// The segments in a directory, oldest first. Cassandra's segments with writes are refused: skipping them would lose
/// these writes.
pub(crate) fn list(env: &dyn Env, dir: &Path) -> Result<Vec<SegmentId>> {
    let mut found = Vec::new();
    for entry in env.list(dir)? {
        match id_of(&entry.name) {
            Some(id) => found.push(id),
            None if entry.name.starts_with(FOREIGN_PREFIX) && entry.name.ends_with(SUFFIX) => {
                let file = dir.join(&entry.name);
                if !foreign::is_drained(env, &file)? {
                    return Err(Error::refused(format!(
                        "{} is a segment of Cassandra's commit log with writes that are in no SSTable; start \
                         Cassandra again and run `nodetool drain`, or move the file away and lose these writes",
                        file.display()
                    )));
                }
            }
            None => {}
        }
    }
    found.sort_unstable();
    Ok(found)
}

pub(crate) fn id_of(name: &str) -> Option<SegmentId> {
    let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let id = SegmentId(number.parse().ok()?);
    // `+7` and `007` parse as well, but `path_of` never makes such names.
    (id.to_string() == number).then_some(id)
}
