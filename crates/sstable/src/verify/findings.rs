//! What is wrong with an SSTable.

use std::path::Path;

use crate::{Error, Result};

/// Findings that are kept; more are counted.
const KEPT_MAX: usize = 100;

/// What is wrong: corrupt files with offsets.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Error>,
    more: u64,
}

impl Findings {
    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The first findings, at most a hundred.
    pub fn kept(&self) -> &[Error] {
        &self.kept
    }

    /// How many there were beyond those that were kept.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Adds damage at `offset` of `file`.
    pub(super) fn add(&mut self, file: &Path, offset: u64, expected: impl Into<String>) {
        self.push(Error::corrupt(file, offset, expected));
    }

    pub(crate) fn push(&mut self, error: Error) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(error);
        } else {
            self.more += 1;
        }
    }

    /// What was read; damage is a finding and gives nothing.
    ///
    /// # Errors
    /// Those that are not damage to a file that is there.
    pub(super) fn take<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ (Error::Corrupt { .. } | Error::Refused(_))) => {
                self.push(error);
                Ok(None)
            }
            Err(Error::Io(error)) if error.is_not_found() => {
                self.add(&error.path, 0, "the file");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
