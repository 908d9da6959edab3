//! Progress bars: of a backup, a load, or the compactions, checks, flushes and snapshots of a node.

use std::time::Duration;

use ilion_backup::Progress;
use ilion_env::{Env as _, RealEnv};
use ilion_server::admin::{AdminClient, CompactionReport};
use ilion_tools::Bar;
use parking_lot::Mutex;

/// Time between two requests for a node's progress. Not shorter, since each request may need a login.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Time between two looks at the clock.
const CLOCK_PAUSE: Duration = Duration::from_millis(250);

/// A progress bar for steps that follow each other: each step begins a new bar.
#[derive(Default)]
pub struct Steps(Mutex<Option<Bar>>);

impl Progress for Steps {
    fn begin(&self, step: &str, bytes: u64) {
        *self.0.lock() = Some(Bar::of_bytes(step, bytes));
    }

    fn done(&self, bytes: u64) {
        if let Some(bar) = &*self.0.lock() {
            bar.add(bytes);
        }
    }

    fn finish(&self) {
        self.0.lock().take();
    }
}

/// The work whose progress a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Compactions, builds of indexes and checks that run.
    Compactions,
    /// Flushes and snapshots that operators wait for.
    Flushes,
}

impl Shown {
    /// Bytes done, and total bytes.
    fn of(self, report: &CompactionReport) -> (u64, u64) {
        let pairs: Vec<(u64, u64)> = match self {
            Self::Compactions => {
                let running = report.running.iter();
                running.map(|work| (work.done_bytes, work.total_bytes)).collect()
            }
            Self::Flushes => {
                let awaited = report.awaited.iter();
                awaited.map(|work| (work.done_bytes, work.total_bytes)).collect()
            }
        };
        let (done, total): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        (done.iter().sum(), total.iter().sum())
    }
}

/// Waits for a request to a node, while a bar shows the progress of its work.
pub fn while_node_works<T>(label: &str, node: &AdminClient, shown: Shown, request: impl FnOnce() -> T) -> T {
    // The bar shows no progress until the node has answered.
    let bar = Bar::of_bytes(label, 1);
    let look = |bar: &Bar| {
        // Errors are ignored: the node may answer the next time.
        if let Ok(report) = node.get::<CompactionReport>("/admin/compactions") {
            let (done, total) = shown.of(&report);
            bar.of(total.max(1));
            bar.at(done);
        }
    };
    bar.during(LOOK_PAUSE, look, request)
}

/// Waits for a request whose answer takes a given time, while a bar shows how much of it has passed.
pub fn while_time_passes<T>(label: &str, millis: u64, request: impl FnOnce() -> T) -> T {
    let env = RealEnv::new();
    let began = env.monotonic_nanos();
    let passed = || env.monotonic_nanos().saturating_sub(began) / 1_000_000;
    let bar = Bar::of_milliseconds(label, millis);
    bar.during(CLOCK_PAUSE, |bar| bar.at(passed().min(millis)), request)
}
