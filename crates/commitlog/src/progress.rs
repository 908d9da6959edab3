//! [`ReplayProgress`]: how far a replay is, for those who wait for it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the segments that a replay has read.
#[derive(Debug, Default)]
pub struct ReplayProgress {
    read: AtomicUsize,
    all: AtomicUsize,
}

impl ReplayProgress {
    /// The segments that were read, and all that there are; both are 0 before the replay.
    pub fn segments(&self) -> (usize, usize) {
        (self.read.load(Relaxed), self.all.load(Relaxed))
    }

    pub(crate) fn begin(&self, all: usize) {
        self.all.store(all, Relaxed);
    }

    pub(crate) fn count_segment(&self) {
        self.read.fetch_add(1, Relaxed);
    }
}

/// What a node that starts is doing.
impl fmt::Display for ReplayProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.segments() {
            (_, 0) => f.write_str("it opens its data directory"),
            (read, all) if read < all => {
                write!(f, "it replays its commit log, segment {} of {all}", read + 1)
            }
            _ => f.write_str("it has replayed its commit log"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReplayProgress;

    #[test]
    fn segments_are_counted() {
        let progress = ReplayProgress::default();
        assert_eq!(progress.to_string(), "it opens its data directory");
        progress.begin(2);
        assert_eq!(progress.to_string(), "it replays its commit log, segment 1 of 2");
        progress.count_segment();
        assert_eq!(progress.to_string(), "it replays its commit log, segment 2 of 2");
        progress.count_segment();
        assert_eq!(progress.to_string(), "it has replayed its commit log");
    }
}
