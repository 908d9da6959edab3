//! The digest that identifies a schema: equal schemas have equal versions, on every node and after every restart.
//!
//! ```text
//! row     := MD5(every part of the row, with its length before it)
//! version := UUID v3 of MD5(sum of `row`, over every row of every keyspace but the node's own, modulo 2^128)
//! ```
//!
//! It is a sum, so that a schema change costs what it changes: it subtracts the old rows and adds the new ones. The order in
//! which objects were created has no effect.

use md5::{Digest, Md5};
use uuid::Uuid;

use crate::Schema;
use crate::names::LOCAL_KEYSPACES;
use crate::rows::{ChangedRows, SchemaRow, encode_keyspace};

/// The sum of the digests of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowDigests(u128);

impl RowDigests {
    fn of<'a>(rows: impl IntoIterator<Item = &'a SchemaRow>) -> Self {
        let counted = rows
            .into_iter()
            .filter(|row| !LOCAL_KEYSPACES.contains(&row.keyspace.as_str()));
        Self(counted.fold(0, |sum: u128, row| sum.wrapping_add(digest(row))))
    }

    fn version(self) -> Uuid {
        let digest = Md5::digest(self.0.to_be_bytes());
        uuid::Builder::from_md5_bytes(digest.into()).into_uuid()
    }
}

impl Schema {
    /// This schema with a new epoch; its version is computed from all rows.
    pub(crate) fn sealed(mut self, epoch: u64) -> Schema {
        let keyspaces = self.keyspaces.values();
        let counted = keyspaces.filter(|keyspace| !LOCAL_KEYSPACES.contains(&keyspace.name.as_str()));
        let sums = counted.map(|keyspace| RowDigests::of(&encode_keyspace(keyspace)).0);
        self.digests = RowDigests(sums.fold(0, u128::wrapping_add));
        self.with_version(epoch)
    }

    /// This schema as the successor of `old`, from which it differs by these rows.
    pub(crate) fn sealed_after(mut self, old: &Schema, rows: &ChangedRows) -> Schema {
        let (before, after) = (RowDigests::of(rows.before()), RowDigests::of(rows.after()));
        self.digests = RowDigests(old.digests.0.wrapping_sub(before.0).wrapping_add(after.0));
        self.with_version(old.epoch + 1)
    }

    fn with_version(mut self, epoch: u64) -> Schema {
        self.epoch = epoch;
        self.version = self.digests.version();
        self
    }
}

/// Each part is preceded by its length, so that different rows have different input.
fn digest(row: &SchemaRow) -> u128 {
    let mut md5 = Md5::new();
    let mut part = |bytes: &[u8]| {
        md5.update((bytes.len() as u64).to_be_bytes());
        md5.update(bytes);
    };
    part(row.table.as_bytes());
    part(row.keyspace.as_bytes());
    row.clustering.iter().for_each(|bytes| part(bytes));
    for (name, value) in row
        .cells
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)))
    {
        part(name.as_bytes());
        part(value);
    }
    u128::from_be_bytes(md5.finalize().into())
}
