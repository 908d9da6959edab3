//! [`Bar`]: the progress of long work, on stderr if that is a terminal.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BYTES: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const OPERATIONS: &str = "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}";
const MILLISECONDS: &str = "{msg} {wide_bar} {elapsed} {eta}";
const REDRAW: Duration = Duration::from_millis(250);

/// A bar; dropping it removes it from the terminal.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// Counts bytes.
    pub fn of_bytes(label: &str, total: u64) -> Self {
        Self::new(label, total, BYTES)
    }

    /// Counts operations.
    pub fn of_operations(label: &str, total: u64) -> Self {
        Self::new(label, total, OPERATIONS)
    }

    /// Counts milliseconds of work that takes a given time.
    pub fn of_milliseconds(label: &str, total: u64) -> Self {
        Self::new(label, total, MILLISECONDS)
    }

    fn new(label: &str, total: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(label.to_owned());
        // Without a terminal the bar is hidden and needs no thread to redraw it.
        if !bar.is_hidden() {
            bar.enable_steady_tick(REDRAW);
        }
        Self(bar)
    }

    /// Adds to the finished amount.
    pub fn add(&self, more: u64) {
        self.0.inc(more);
    }

    /// Sets the finished amount.
    pub fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Sets the total amount, as far as it is known now.
    pub fn of(&self, total: u64) {
        self.0.set_length(total);
    }

    /// Runs `work`; meanwhile another thread calls `look` every `pause` to update the bar. Without a terminal `look` is not called.
    pub fn during<T>(&self, pause: Duration, look: impl Fn(&Self) + Send, work: impl FnOnce() -> T) -> T {
        if self.0.is_hidden() {
            return work();
        }
        std::thread::scope(|scope| {
            // Dropped when the work is finished, also if it panics.
            let (_working, done) = channel::<()>();
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = done.recv_timeout(pause) {
                    look(self);
                }
            });
            work()
        })
    }
}

/// Runs `work` with a bar of operations; `done` returns the number of finished ones.
pub(crate) fn while_counting<T>(
    label: &str,
    total: u64,
    done: impl Fn() -> u64 + Send,
    work: impl FnOnce() -> T,
) -> T {
    let bar = Bar::of_operations(label, total);
    bar.during(REDRAW, move |bar| bar.at(done().min(total)), work)
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
