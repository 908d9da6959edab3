//! Copies of sealed segments, kept for a restore to a point in time.
//!
//! After each sync, every segment that is sealed and synced gets a second name in the archive directory (a copy, if that
//! is another file system). A segment that could not be archived stays in the log and is tried again after the next sync.
//! [`crate::read_segments`] reads an archive.

use std::path::Path;

use ilion_env::Env;

use crate::state::Shared;
use crate::{SegmentId, options, segment};

const SEGMENT_BYTES_MAX: u64 = options::SEGMENT_BYTES_MAX as u64;

impl Shared {
    /// Archives the segments that are due, if the options have an archive. A failure is logged; it delays trimming, but no writer.
    pub(crate) fn archive_sealed(&self) {
        let Some(archive_dir) = &self.options.archive_dir else {
            return;
        };
        while let Some(id) = self.next_to_archive() {
            match archive(&*self.env, &segment::path_of(&self.dir, id), archive_dir) {
                Ok(()) => self.state.lock().archived = Some(id),
                Err(error) => {
                    return tracing::warn!(%error, segment = id.0, "a segment could not be archived");
                }
            }
        }
    }

    fn next_to_archive(&self) -> Option<SegmentId> {
        let state = self.state.lock();
        let is_due = |id: &SegmentId| Some(*id) > state.archived && *id < state.synced.segment;
        state.sealed.iter().map(|(id, _)| *id).find(is_due)
    }
}

fn archive(env: &dyn Env, file: &Path, archive_dir: &Path) -> Result<(), ilion_env::Error> {
    env.create_dir_all(archive_dir)?;
    let target = archive_dir.join(file.file_name().unwrap_or_default());
    match env.hard_link(file, &target) {
        Ok(()) => env.sync_dir(archive_dir),
        // A restart archives all segments that it finds again.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) if error.is_other_file_system() => {
            env.write_atomically(&target, &env.read_all(file, SEGMENT_BYTES_MAX)?)
        }
        Err(error) => Err(error),
    }
}
