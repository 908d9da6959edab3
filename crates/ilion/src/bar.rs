//! Progress bars: of a backup, a load, or the compactions and checks of a node.

use std::time::Duration;

use ilion_backup::Progress;
use ilion_server::admin::{AdminClient, CompactionReport};
use ilion_tools::Bar;
use parking_lot::Mutex;

/// Time between two requests for a node's progress: each may need a login.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The bar of one step after another.
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

/// Waits for a request to a node, while a bar shows the progress of its compactions, builds of indexes and checks.
pub fn while_node_works<T>(label: &str, node: &AdminClient, request: impl FnOnce() -> T) -> T {
    // Empty while nothing is known.
    let bar = Bar::of_bytes(label, 1);
    let look = |bar: &Bar| {
        // A node that does not answer now may do so the next time.
        if let Ok(report) = node.get::<CompactionReport>("/admin/compactions") {
            let total: u64 = report.running.iter().map(|running| running.total_bytes).sum();
            bar.of(total.max(1));
            bar.at(report.running.iter().map(|running| running.done_bytes).sum());
        }
    };
    bar.during(LOOK_PAUSE, look, request)
}
