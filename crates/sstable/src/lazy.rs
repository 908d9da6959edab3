//! A part of an SSTable that is opened on first use.

use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::Result;

/// A value that is opened at most once; after a failure, the next use tries again.
pub(crate) struct Lazy<T> {
    value: OnceLock<T>,
    /// Held while the value is opened, so that only one thread opens it.
    opening: Mutex<()>,
}

impl<T> Lazy<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: OnceLock::new(),
            opening: Mutex::new(()),
        }
    }

    /// The value, if it was opened.
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
