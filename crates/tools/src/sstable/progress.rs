//! A progress bar: one line on stderr that is overwritten, if stderr is a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use ilion_compaction::Watch;
use ilion_rows::ReadError;

/// Smaller runs have no bar.
const SHOWN_FROM_BYTES: u64 = 16 << 20;
const BAR_WIDTH: usize = 30;

/// A bar for the bytes that are done.
pub(super) struct Progress {
    label: String,
    total_bytes: u64,
    done_bytes: u64,
    /// The shown progress in thousandths; `None` without a bar.
    shown: Option<u64>,
}

impl Progress {
    /// A bar for work on `total_bytes`.
    pub(super) fn new(label: impl Into<String>, total_bytes: u64) -> Self {
        let is_shown = total_bytes >= SHOWN_FROM_BYTES && io::stderr().is_terminal();
        Self {
            label: label.into(),
            total_bytes,
            done_bytes: 0,
            shown: is_shown.then_some(u64::MAX),
        }
    }

    /// So many bytes are done.
    pub(super) fn at(&mut self, done_bytes: u64) {
        self.done_bytes = done_bytes;
        let Some(shown) = &mut self.shown else {
            return;
        };
        let thousandths = done_bytes.min(self.total_bytes).saturating_mul(1000) / self.total_bytes.max(1);
        if *shown != thousandths {
            *shown = thousandths;
            // A failure to draw the bar does not matter.
            let _ = io::stderr().write_all(bar(&self.label, thousandths).as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
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
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done_bytes = progress.done_bytes.saturating_add(bytes);
        progress.at(done_bytes);
        Ok(())
    }
}

fn bar(label: &str, thousandths: u64) -> String {
    let full = usize::try_from(thousandths).unwrap_or(1000) * BAR_WIDTH / 1000;
    format!(
        "\r{label} [{}{}] {}.{} %\x1b[K",
        "#".repeat(full),
        "-".repeat(BAR_WIDTH - full),
        thousandths / 10,
        thousandths % 10
    )
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_fill_up() {
        assert_eq!(bar("dump", 0), format!("\rdump [{}] 0.0 %\x1b[K", "-".repeat(30)));
        assert_eq!(
            bar("dump", 1000),
            format!("\rdump [{}] 100.0 %\x1b[K", "#".repeat(30))
        );
    }
}
