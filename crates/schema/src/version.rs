//! The version that identifies a schema: equal schemas have equal versions, on every node and after every restart.
//!
//! It is made from the sum of the digests of all rows (`digests`), except those of the node's own keyspaces. With a sum, the cost of a
//! schema change does not depend on the size of the schema: the old rows are subtracted and the new ones added. The order in which
//! objects were created has no effect.

use crate::Schema;
use crate::digests::RowDigests;
use crate::rows::{ChangedRows, encode_keyspace};
use crate::system::Own;

impl Schema {
    /// This schema with a new epoch; its version is computed from all rows.
    pub(crate) fn sealed(mut self, epoch: u64) -> Schema {
        let own = Own::of(self.release);
        let sums = self.keyspaces.values().map(|keyspace| match own.known(keyspace) {
            Some(known) => known.digests,
            None => RowDigests::of(&encode_keyspace(keyspace)),
        });
        self.digests = sums.fold(RowDigests::default(), RowDigests::plus);
        self.with_version(epoch)
    }

    /// This schema as the successor of `old`, from which it differs by these rows.
    pub(crate) fn sealed_after(mut self, old: &Schema, rows: &ChangedRows) -> Schema {
        let (before, after) = (RowDigests::of(rows.before()), RowDigests::of(rows.after()));
        self.digests = old.digests.minus(before).plus(after);
        self.with_version(old.epoch + 1)
    }

    fn with_version(mut self, epoch: u64) -> Schema {
        self.epoch = epoch;
        self.version = self.digests.version();
        self
    }
}
