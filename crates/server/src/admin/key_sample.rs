//! Tokens of a sample of partitions, of all tables except those of `system` and `system_schema`: `nodetool rangekeysample`.

use ilion_engine::Engine;
use ilion_types::Token;
use serde::{Deserialize, Serialize};

use super::AdminError;
use super::handling::failed;

/// Most partitions that are sampled in one SSTable: each costs a read of its key.
const OF_SSTABLE_MAX: u64 = 1000;

/// A sample of the node's partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySampleReport {
    /// Their tokens, in the order of the ring.
    pub tokens: Vec<String>,
}

impl KeySampleReport {
    pub(super) fn of(engine: &Engine) -> Result<Self, AdminError> {
        let mut tokens: Vec<Token> = Vec::new();
        for store in engine.tables() {
            let table = store.schema();
            // Compat: keyspaces of LocalStrategy have no part of the ring.
            if !["system", "system_schema"].contains(&&*table.keyspace) {
                tokens.extend(engine.sample_tokens(table.id, OF_SSTABLE_MAX).map_err(failed)?);
            }
        }
        tokens.sort();
        tokens.dedup();
        Ok(Self {
            tokens: tokens.iter().map(ToString::to_string).collect(),
        })
    }
}
