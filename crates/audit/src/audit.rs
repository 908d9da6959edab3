//! The audit log of a node, on or off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use ilion_env::{Env, Result};
use parking_lot::Mutex;

use crate::counts::Counts;
use crate::log::{AuditLog, Options};

/// The audit log of a node, on or off.
pub struct Audit {
    env: Arc<dyn Env>,
    counts: Arc<Counts>,
    /// Lets callers find out with one load that the log is off.
    is_on: AtomicBool,
    running: ArcSwapOption<AuditLog>,
    /// The thread that writes. Held while the log is switched on or off.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Audit {
    /// An audit log that is off.
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self {
            env,
            counts: Arc::default(),
            is_on: AtomicBool::new(false),
            running: ArcSwapOption::empty(),
            thread: Mutex::new(None),
        }
    }

    /// The log, while it is on.
    #[inline]
    pub fn running(&self) -> Option<Arc<AuditLog>> {
        match self.is_on.load(Relaxed) {
            false => None,
            true => self.running.load_full(),
        }
    }

    /// Switches the log on. If it is on, only the filter changes.
    ///
    /// # Errors
    /// The directory or its files cannot be opened.
    pub fn switch_on(&self, options: &Options) -> Result<()> {
        let mut thread = self.thread.lock();
        if let Some(log) = self.running.load_full() {
            log.set_filter(options.filter.clone());
            return Ok(());
        }
        let (log, writer) = AuditLog::start(&self.env, options, self.counts.clone())?;
        *thread = Some(writer);
        self.running.store(Some(Arc::new(log)));
        self.is_on.store(true, Relaxed);
        Ok(())
    }

    /// Switches the log off, and waits until all entries are written.
    pub fn switch_off(&self) {
        let mut thread = self.thread.lock();
        self.is_on.store(false, Relaxed);
        if let Some(log) = self.running.swap(None) {
            log.close();
        }
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the audit log has panicked");
        }
    }

    /// Counts of entries.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Bytes of entries that are not written yet.
    pub fn queued_bytes(&self) -> usize {
        self.running.load().as_ref().map_or(0, |log| log.queued_bytes())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.switch_off();
    }
}
