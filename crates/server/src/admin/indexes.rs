//! Requests and reports about secondary indexes.

use std::fmt;

use ilion_engine::{IndexRepair, IndexVerification};
use serde::{Deserialize, Serialize};

/// Names an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IndexOrder {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub index: String,
    /// Whether a verification also repairs the index.
    #[serde(default)]
    pub repair: bool,
}

impl IndexOrder {
    pub(super) fn repair(&self) -> IndexRepair {
        match self.repair {
            true => IndexRepair::Repair,
            false => IndexRepair::None,
        }
    }
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Rows of the table that were checked.
    pub rows: u64,
    /// Number of checked entries; for an attached index, of its SSTables.
    pub entries: u64,
    /// Entries that the index should have, but has not.
    pub missing: u64,
    /// Entries of rows that no longer have the value. They are harmless: a search that finds one removes it.
    pub stale: u64,
    /// How many missing and stale entries were repaired.
    pub repaired: u64,
}

impl From<IndexVerification> for IndexReport {
    fn from(found: IndexVerification) -> Self {
        Self {
            rows: found.rows,
            entries: found.entries,
            missing: found.missing,
            stale: found.stale,
            repaired: found.repaired,
        }
    }
}

impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            entries,
            missing,
            stale,
            repaired,
        } = self;
        writeln!(f, "rows      {rows}")?;
        writeln!(f, "entries   {entries}")?;
        writeln!(f, "missing   {missing}")?;
        writeln!(
            f,
            "stale     {stale} (harmless: removed when a search meets them)"
        )?;
        write!(f, "repaired  {repaired}")
    }
}
