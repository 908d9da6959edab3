//! The digest that tells schemas apart: equal schemas have equal versions, on every node and after every restart.
//!
//! ```text
//! version := UUID v3 of MD5(every row of every keyspace but the node's own, in the order of their names)
//! ```

use md5::{Digest, Md5};
use uuid::Uuid;

use crate::Schema;
use crate::names::LOCAL_KEYSPACES;
use crate::rows::{SchemaRow, encode_keyspace};

impl Schema {
    /// This schema as the next one: its epoch set, its version computed.
    pub(crate) fn sealed(mut self, epoch: u64) -> Schema {
        self.epoch = epoch;
        self.version = self.digest();
        self
    }

    fn digest(&self) -> Uuid {
        let mut md5 = Md5::new();
        for (name, keyspace) in &self.keyspaces {
            if !LOCAL_KEYSPACES.contains(&name.as_str()) {
                for row in encode_keyspace(keyspace) {
                    absorb(&mut md5, &row);
                }
            }
        }
        uuid::Builder::from_md5_bytes(md5.finalize().into()).into_uuid()
    }
}

/// Every part goes in with its length, so that no two rows look alike.
fn absorb(md5: &mut Md5, row: &SchemaRow) {
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
}
