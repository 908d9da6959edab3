//! [`CopiedState`]: what a replica has of some tablets beside its tables, for a replica that copies them.

use std::collections::BTreeSet;

use ilion_codec::Error as CodecError;
use uuid::Uuid;

use crate::saved::{self, Saved};

/// What a replica has saved of some tablets: up to where its tables have them on disk, and what depends on the records below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedState(pub(crate) Saved);

impl CopiedState {
    /// Encodes it: the bytes of the file `ilion.tablets`, with these tablets only.
    pub fn encode(&self) -> Vec<u8> {
        saved::encode(&self.0)
    }

    /// Decodes the bytes.
    ///
    /// # Errors
    /// The bytes are damaged, or a newer Ilion wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        saved::decode(bytes).map(Self)
    }

    /// Leaves out all tablets but these.
    pub fn retain(&mut self, tablets: &BTreeSet<u32>) {
        self.0.tablets.retain(|number, _| tablets.contains(number));
    }

    /// The cluster that it is from.
    pub fn cluster(&self) -> Uuid {
        self.0.cluster
    }

    /// The schema of its tables.
    pub fn schema_epoch(&self) -> u64 {
        self.0.schema_epoch
    }

    /// The tablets, and for each the offset from which on its log must be read.
    pub fn ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.tablets.iter().map(|(tablet, saved)| (*tablet, saved.end))
    }
}
