//! The damage of an SSTable.

use std::path::Path;

use crate::{Error, Result};

/// Maximum number of findings that are kept; further ones are counted.
const KEPT_MAX: usize = 100;

/// Damage, with files and offsets.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Error>,
    more: u64,
}

impl Findings {
    /// True if there is no damage.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The first findings, at most a hundred.
    pub fn kept(&self) -> &[Error] {
        &self.kept
    }

    /// Number of findings beyond those that are kept.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Adds damage at `offset` of `file`.
    pub(super) fn add(&mut self, file: &Path, offset: u64, expected: impl Into<String>) {
        self.push(Error::corrupt(file, offset, expected));
    }

    /// Adds that a file is missing.
    pub(super) fn missing(&mut self, file: &Path) {
        self.push(Error::Refused(format!("missing file {}", file.display())));
    }

    pub(crate) fn push(&mut self, error: Error) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(error);
        } else {
            self.more += 1;
        }
    }

    /// The value that was read. If the file is damaged, missing or refused, adds a finding and returns `None`.
    ///
    /// # Errors
    /// Any other error, such as a failed read.
    pub(super) fn take<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ (Error::Corrupt { .. } | Error::Refused(_))) => {
                self.push(error);
                Ok(None)
            }
            Err(Error::Io(error)) if error.is_not_found() => {
                self.missing(&error.path);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
