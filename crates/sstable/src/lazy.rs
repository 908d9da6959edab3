//! A part of an SSTable that is opened when it is first needed.

use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::Result;

/// Opened at most once; a failure is told, and tried again the next time.
pub(crate) struct Lazy<T> {
    value: OnceLock<T>,
    /// Held while it is opened, so that many threads do it once.
    opening: Mutex<()>,
}

impl<T> Lazy<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: OnceLock::new(),
            opening: Mutex::new(()),
        }
    }

    /// What was opened, if it was.
    pub(crate) fn opened(&self) -> Option<&T> {
        self.value.get()
    }

    #[inline]
    pub(crate) fn get_or_open(&self, open: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.value.get() {
            Some(value) => Ok(value),
            None => self.open_now(open),
        }
    }

    #[cold]
    fn open_now(&self, open: impl FnOnce() -> Result<T>) -> Result<&T> {
        let _opening = self.opening.lock();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = open()?;
        Ok(self.value.get_or_init(|| value))
    }
}
