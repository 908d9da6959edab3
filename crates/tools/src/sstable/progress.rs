//! The progress of the work on an SSTable.

use std::sync::Arc;

use ilion_compaction::Watch;
use ilion_rows::ReadError;
use parking_lot::Mutex;

use crate::bar::Bar;

/// Work on fewer bytes has no bar.
const SHOWN_FROM_BYTES: u64 = 16 << 20;

/// A bar for the processed bytes.
pub(super) struct Progress {
    done_bytes: u64,
    bar: Option<Bar>,
}

impl Progress {
    /// A bar for work on `total_bytes`.
    pub(super) fn new(label: impl AsRef<str>, total_bytes: u64) -> Self {
        let is_shown = total_bytes >= SHOWN_FROM_BYTES;
        Self {
            done_bytes: 0,
            bar: is_shown.then(|| Bar::of_bytes(label.as_ref(), total_bytes)),
        }
    }

    /// Shows no bar, for work that no user watches.
    pub(super) fn none() -> Self {
        Self {
            done_bytes: 0,
            bar: None,
        }
    }

    /// Sets the number of processed bytes.
    pub(super) fn at(&mut self, done_bytes: u64) {
        self.done_bytes = done_bytes;
        if let Some(bar) = &self.bar {
            bar.at(done_bytes);
        }
    }
}

/// A bar that several sources share; each adds the bytes that it has read.
#[derive(Clone)]
pub(super) struct SharedProgress(Arc<Mutex<Progress>>);

impl SharedProgress {
    pub(super) fn new(progress: Progress) -> Self {
        Self(Arc::new(Mutex::new(progress)))
    }
}

impl Watch for SharedProgress {
    fn look(&mut self, bytes: u64) -> Result<(), ReadError> {
        let mut progress = self.0.lock();
        let done_bytes = progress.done_bytes.saturating_add(bytes);
        progress.at(done_bytes);
        Ok(())
    }
}
