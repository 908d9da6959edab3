//! [`Bar`]: the progress of long work on a terminal.

use std::time::Duration;

use ilion_backup::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

const TEMPLATE: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const REDRAW: Duration = Duration::from_millis(250);

/// A bar on stderr, if that is a terminal.
#[derive(Default)]
pub struct Bar(Mutex<Option<ProgressBar>>);

impl Progress for Bar {
    fn begin(&self, step: &str, bytes: u64) {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(step.to_owned());
        bar.enable_steady_tick(REDRAW);
        *self.0.lock() = Some(bar);
    }

    fn done(&self, bytes: u64) {
        if let Some(bar) = &*self.0.lock() {
            bar.inc(bytes);
        }
    }

    fn finish(&self) {
        if let Some(bar) = self.0.lock().take() {
            bar.finish_and_clear();
        }
    }
}
