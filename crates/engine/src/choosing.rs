//! What a table remembers from one choice of a compaction to the next.

use std::path::{Path, PathBuf};

use ilion_compaction::Memory;

/// How long the inputs of a compaction that failed, or had no space, are left out.
const SUSPECT_NANOS: u64 = 60 * 1_000_000_000;

/// Memory of the choices of a table. Its lock is held from a choice until its inputs are registered.
#[derive(Default)]
pub(crate) struct Choosing {
    /// What the strategy remembers.
    pub memory: Memory,
    /// Requests for compactions that are running; while there is one, no compaction starts in the background.
    pub pauses: usize,
    /// Inputs of compactions that failed, and until when they are left out.
    suspects: Vec<(PathBuf, u64)>,
}

impl Choosing {
    /// Leaves the files out for a while.
    pub(crate) fn suspect(&mut self, paths: Vec<PathBuf>, now_nanos: u64) {
        self.suspect_until(paths, now_nanos.saturating_add(SUSPECT_NANOS));
    }

    /// Leaves the files out until the next start.
    pub(crate) fn suspect_for_good(&mut self, paths: Vec<PathBuf>) {
        self.suspect_until(paths, u64::MAX);
    }

    fn suspect_until(&mut self, paths: Vec<PathBuf>, until_nanos: u64) {
        self.suspects
            .extend(paths.into_iter().map(|path| (path, until_nanos)));
    }

    /// Forgets suspects whose time is over.
    pub(crate) fn expire_suspects(&mut self, now_nanos: u64) {
        self.suspects.retain(|(_, until_nanos)| *until_nanos > now_nanos);
    }

    pub(crate) fn is_suspect(&self, path: &Path) -> bool {
        self.suspects.iter().any(|(suspect, _)| suspect == path)
    }
}
