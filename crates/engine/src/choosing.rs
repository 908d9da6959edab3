//! State of a table that its choices of compactions share.

use std::path::{Path, PathBuf};

use ilion_compaction::Memory;

/// How long the inputs of a compaction that failed, or had no space, are excluded from choices.
const SUSPECT_NANOS: u64 = 60 * 1_000_000_000;

/// Memory of the choices of a table. Its lock is held from a choice until its inputs are registered.
#[derive(Default)]
pub(crate) struct Choosing {
    /// State of the strategy.
    pub memory: Memory,
    /// Number of running requests for compactions; while it is above 0, no compaction starts in the background.
    pub pauses: usize,
    /// Inputs of compactions that failed, and the time until which they are excluded.
    suspects: Vec<(PathBuf, u64)>,
}

impl Choosing {
    /// Excludes the files from choices for a while.
    pub(crate) fn suspect(&mut self, paths: Vec<PathBuf>, now_nanos: u64) {
        self.suspect_until(paths, now_nanos.saturating_add(SUSPECT_NANOS));
    }

    /// Excludes the files from choices until the next start.
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
