//! Copies of sealed segments, kept for a restore to a point in time.
//!
//! After each sync, every segment that is sealed and synced gets a second name in the archive directory (a copy, if that
//! is another file system). A segment that could not be archived stays in the log and is tried again after the next sync.
//! [`crate::read_segments`] reads an archive.
//!
//! While a log is open without an archive, it may trim segments that no archive contains. So a log with an archive creates a file
//! `archived` in its directory, and a log without an archive removes that file. If a log with an archive does not find the file, a new
//! archive begins: the file `ilion-1-<number>.log.begin` beside the segments names its first segment.

use std::path::Path;

use ilion_env::Env;

use crate::state::Shared;
use crate::{SegmentId, options, segment};

const SEGMENT_BYTES_MAX: u64 = options::SEGMENT_BYTES_MAX as u64;

impl Shared {
    /// Archives the segments that are due, if the options have an archive. A failure is logged; it delays trimming, but no writer.
    pub(crate) fn archive_sealed(&self) {
        if let Err(error) = self.archive_due() {
            tracing::warn!(%error, "a segment could not be archived");
        }
    }

    /// Does the same as [`Self::archive_sealed`], and returns the failure. Several threads may call it at the same time.
    pub(crate) fn archive_due(&self) -> Result<(), ilion_env::Error> {
        let Some(archive_dir) = &self.options.archive_dir else {
            return Ok(());
        };
        while let Some(id) = self.next_to_archive() {
            archive(&*self.env, &segment::path_of(&self.dir, id), archive_dir)?;
            let mut state = self.state.lock();
            state.archived = state.archived.max(Some(id));
        }
        Ok(())
    }

    fn next_to_archive(&self) -> Option<SegmentId> {
        let state = self.state.lock();
        let is_due = |id: &SegmentId| Some(*id) > state.archived && *id < state.synced.segment;
        state.sealed.iter().map(|(id, _)| *id).find(is_due)
    }
}

/// Name of the file in the directory of a log whose trimmed segments are all in the archive.
const ARCHIVED: &str = "archived";

/// With an archive: records that it has all segments from `first` on, unless an earlier start has recorded this for an older segment.
/// Without (`None`): removes the record in the log's directory.
pub(crate) fn begin(
    env: &dyn Env,
    dir: &Path,
    archive_dir: Option<&Path>,
    first: SegmentId,
) -> Result<(), ilion_env::Error> {
    let mark = dir.join(ARCHIVED);
    match archive_dir {
        Some(_) if env.exists(&mark) => Ok(()),
        Some(archive_dir) => {
            env.create_dir_all(archive_dir)?;
            env.write_atomically(&archive_dir.join(first.beginning_name()), &[])?;
            env.write_atomically(&mark, &[])
        }
        None if env.exists(&mark) => {
            env.remove_file(&mark)?;
            env.sync_dir(dir)
        }
        None => Ok(()),
    }
}

/// Gives a sealed, synced segment a second name in a directory.
pub(crate) fn archive(env: &dyn Env, file: &Path, archive_dir: &Path) -> Result<(), ilion_env::Error> {
    env.create_dir_all(archive_dir)?;
    let target = archive_dir.join(file.file_name().unwrap_or_default());
    match env.hard_link(file, &target) {
        Ok(()) => env.sync_dir(archive_dir),
        // A restart archives all segments that it finds, also those that are already in the archive.
        Err(error) if error.is_already_exists() => Ok(()),
        // Another thread has archived the segment, and the log has trimmed it.
        Err(error) if error.is_not_found() && env.exists(&target) => Ok(()),
        Err(error) if error.is_other_file_system() => {
            env.write_atomically(&target, &env.read_all(file, SEGMENT_BYTES_MAX)?)
        }
        Err(error) => Err(error),
    }
}
