//! [`Turn`]: the right to change roles and grants.

use parking_lot::MutexGuard;

use super::AccessControl;
use super::tables::Changes;
use crate::overtaken::again_if_overtaken;
use crate::{Awaited, Error};

/// The right to change roles and grants. One statement of a node has it at a time, from its first read to its write; the write fails if
/// another node of the cluster has changed roles or the schema in between.
pub(super) struct Turn<'a> {
    access: &'a AccessControl,
    version: u64,
    _held: MutexGuard<'a, ()>,
}

impl AccessControl {
    /// Waits for the turn. Take it before you read what the change depends on.
    pub(super) fn take_turn(&self) -> Turn<'_> {
        let held = self.turn.lock();
        Turn {
            access: self,
            version: self.tables.version(),
            _held: held,
        }
    }

    /// Reads and changes roles and grants; several times if other nodes change them, too.
    ///
    /// # Errors
    /// Those of `change`; [`Error::Overloaded`] if other changes always came first.
    pub(super) fn in_turn<T>(&self, change: impl Fn(&Turn<'_>) -> Result<T, Error>) -> Result<T, Error> {
        again_if_overtaken(|| change(&self.take_turn()))
    }
}

impl Turn<'_> {
    /// Writes to `system_auth`, and makes all cached rights and hashes invalid.
    ///
    /// # Errors
    /// `system_auth` cannot be written; [`Error::Overtaken`]: nothing was written, since what was read is not current.
    pub fn write(&self, changes: Changes) -> Result<Option<Awaited>, Error> {
        if changes.is_empty() {
            return Ok(None);
        }
        let written = self.access.tables.write(changes, self.version);
        self.access.forget();
        written
    }
}
