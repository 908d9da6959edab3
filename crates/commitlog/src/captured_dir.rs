//! The directory of captured segments, and what a log remembers about it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ilion_env::Env;
use parking_lot::Mutex;

use crate::options::Capture;
use crate::{SegmentId, segment};

/// Name of the file that contains the number of the newest segment that was dropped.
pub(crate) const DROPPED: &str = "dropped";
const DROPPED_BYTES_MAX: u64 = 64;

/// What a log remembers about its captured segments.
#[derive(Default)]
pub(crate) struct Capturing {
    /// Bytes of the segments in the directory when they were last counted.
    pub kept_bytes: AtomicU64,
    pub is_full: AtomicBool,
    /// No captured record is appended: the space and the excess are used up.
    pub is_overfull: AtomicBool,
    pub checked_nanos: AtomicU64,
    pub kept: AtomicU64,
    pub dropped: AtomicU64,
    pub refused: AtomicU64,
    /// Held while segments are kept, counted or dropped.
    pub keeping: Mutex<()>,
}

impl Capturing {
    pub(crate) fn open(env: &dyn Env, capture: Option<&Capture>) -> Result<Self, ilion_env::Error> {
        let capturing = Self::default();
        if let Some(capture) = capture {
            env.create_dir_all(&capture.dir)?;
            let kept_bytes = sizes(env, &capture.dir)?.iter().map(|(_, size)| size).sum();
            capturing.kept_bytes.store(kept_bytes, Ordering::Relaxed);
        }
        Ok(capturing)
    }
}

/// The segments in a directory, oldest first, with their sizes. Those that a consumer removes meanwhile are left out.
pub(crate) fn sizes(env: &dyn Env, dir: &Path) -> Result<Vec<(SegmentId, u64)>, ilion_env::Error> {
    let mut found = Vec::new();
    for id in kept_segments(env, dir)? {
        match env.file_size(&segment::path_of(dir, id)) {
            Ok(size) => found.push((id, size)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The segments in a directory, oldest first.
pub(crate) fn kept_segments(env: &dyn Env, dir: &Path) -> Result<Vec<SegmentId>, ilion_env::Error> {
    let mut found: Vec<_> = env
        .list(dir)?
        .iter()
        .filter_map(|entry| segment::id_of(&entry.name))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// The newest segment that must be dropped so that the rest has at most this size; `None` if all can stay. Pure.
pub(crate) fn last_to_drop(sizes: &[(SegmentId, u64)], bytes_max: u64) -> Option<SegmentId> {
    let mut left: u64 = sizes.iter().map(|(_, size)| size).sum();
    let mut last = None;
    for (id, size) in sizes {
        if left <= bytes_max {
            break;
        }
        left -= size;
        last = Some(*id);
    }
    last
}

/// The newest segment that was dropped; `None` if no segment was.
pub(crate) fn dropped_upto(env: &dyn Env, dir: &Path) -> Result<Option<SegmentId>, ilion_env::Error> {
    match env.read_all(&dir.join(DROPPED), DROPPED_BYTES_MAX) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().parse().ok().map(SegmentId)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
