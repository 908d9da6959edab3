//! Compactions for nodetool other than `compact`: of garbage and of given partitions. Also the thresholds of compactions.

use bytes::Bytes;
use ilion_engine::{Engine, Granularity};
use ilion_schema::TableSchema;
use serde::{Deserialize, Serialize};

use super::handling::failed;
use super::paths::key_of;
use super::{AdminError, TableChoice};

/// Selects tables, from whose SSTables the data is removed that newer SSTables have deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GarbageOrder {
    /// Only tables of this keyspace.
    keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    table: Option<String>,
    /// Also removes cells that were deleted or overwritten one by one.
    #[serde(default)]
    cells: bool,
}

impl GarbageOrder {
    pub(super) fn tables(&self) -> TableChoice {
        TableChoice {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
        }
    }

    pub(super) fn granularity(&self) -> Granularity {
        match self.cells {
            true => Granularity::Cell,
            false => Granularity::Row,
        }
    }
}

/// Partitions of a table that are compacted without gc grace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KeysOrder {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Their keys as text, one per line; components are joined by colons.
    pub keys: String,
}

impl KeysOrder {
    pub(super) fn execute(&self, engine: &Engine, table: &TableSchema) -> Result<u64, AdminError> {
        let keys: Result<Vec<Bytes>, AdminError> = self.keys.lines().map(|key| key_of(table, key)).collect();
        engine.compact_keys(table.id, &keys?).map_err(failed)
    }
}

/// Thresholds of the compaction of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ThresholdsOrder {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The smallest number of SSTables. Both thresholds are set together, until the next start.
    pub min: Option<u32>,
    /// The largest number of SSTables.
    pub max: Option<u32>,
}

/// Fewest and most SSTables that a compaction merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdsReport {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
}

impl ThresholdsOrder {
    pub(super) fn execute(
        &self,
        engine: &Engine,
        table: &TableSchema,
    ) -> Result<ThresholdsReport, AdminError> {
        match (self.min, self.max) {
            (Some(min), Some(max)) => engine
                .set_compaction_thresholds(table.id, min, max)
                .map_err(failed)?,
            (None, None) => {}
            _ => {
                return Err(AdminError::Refused(
                    "name both thresholds: min and max".to_owned(),
                ));
            }
        }
        let (min, max) = engine.compaction_thresholds(table.id).map_err(failed)?;
        Ok(ThresholdsReport { min, max })
    }
}
