//! [`Watcher`]: a thread that observes a run until the run is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};

/// See the module.
pub struct Watcher<T> {
    is_over: IsOver,
    thread: thread::JoinHandle<T>,
}

/// Tells the thread whether the run is over.
#[derive(Clone, Default)]
pub struct IsOver(Arc<AtomicBool>);

impl IsOver {
    /// True once the run is over.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits, at most until the run is over.
    pub fn wait(&self, most: Duration) {
        if !self.get() {
            thread::park_timeout(most);
        }
    }
}

impl<T: Send + 'static> Watcher<T> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(watch: impl FnOnce(&IsOver) -> T + Send + 'static) -> anyhow::Result<Self> {
        let is_over = IsOver::default();
        let seen = is_over.clone();
        let thread = thread::Builder::new()
            .name("bench-watch".to_owned())
            .spawn(move || watch(&seen))
            .context("starting a thread")?;
        Ok(Self { is_over, thread })
    }

    /// Ends the thread, since the run is over, and returns its result.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn stop(self) -> anyhow::Result<T> {
        self.is_over.0.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread
            .join()
            .map_err(|_| anyhow!("the watching thread panicked"))
    }
}
