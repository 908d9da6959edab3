//! Digests of rows of `system_schema`, and their sum, which identifies a schema (see `version`).
//!
//! ```text
//! row     := MD5(every part of the row, with its length before it)
//! version := UUID v3 of MD5(sum of `row`, modulo 2^128)
//! ```

use md5::{Digest, Md5};
use uuid::Uuid;

use crate::names::LOCAL_KEYSPACES;
use crate::rows::SchemaRow;

/// The sum of the digests of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowDigests(u128);

impl RowDigests {
    /// The sum for these rows, without those of the node's own keyspaces.
    pub(crate) fn of<'a>(rows: impl IntoIterator<Item = &'a SchemaRow>) -> Self {
        let counted = rows
            .into_iter()
            .filter(|row| !LOCAL_KEYSPACES.contains(&row.keyspace.as_str()));
        Self(counted.fold(0, |sum: u128, row| sum.wrapping_add(digest(row))))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }

    pub(crate) fn version(self) -> Uuid {
        let digest = Md5::digest(self.0.to_be_bytes());
        uuid::Builder::from_md5_bytes(digest.into()).into_uuid()
    }
}

/// Hashes the parts of a row, each with its length before it, so that different rows have different input.
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
