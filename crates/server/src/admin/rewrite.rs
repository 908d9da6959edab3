//! SSTables of tables in use, written anew or checked: `nodetool upgradesstables`, `recompress_sstables` and `verify`.

use std::fmt;

use ilion_engine::{CheckedSSTable, Rewrite};
use serde::{Deserialize, Serialize};

use super::TableChoice;

/// Tables whose SSTables are written anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RewriteOrder {
    /// Only tables of this keyspace.
    keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    table: Option<String>,
    /// Also SSTables of the format that is written.
    #[serde(default)]
    all: bool,
    /// Those of another compression than their table's.
    #[serde(default)]
    compression: bool,
}

impl RewriteOrder {
    pub(super) fn tables(&self) -> TableChoice {
        TableChoice {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
        }
    }

    pub(super) fn choice(&self) -> Rewrite {
        match (self.all, self.compression) {
            (true, _) => Rewrite::All,
            (false, true) => Rewrite::OtherCompression,
            (false, false) => Rewrite::OtherFormats,
        }
    }
}

/// SSTables that were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// One for each SSTable.
    pub sstables: Vec<VerifiedSSTable>,
}

/// An SSTable that was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedSSTable {
    /// Path of its Data.db.
    pub path: String,
    /// Its damage; empty if there is none.
    pub damage: Vec<String>,
}

impl VerifyReport {
    pub(super) fn add(&mut self, checked: Vec<CheckedSSTable>) {
        self.sstables
            .extend(checked.into_iter().map(|sstable| VerifiedSSTable {
                path: sstable.path.display().to_string(),
                damage: sstable.damage,
            }));
    }

    /// Number of damaged SSTables.
    pub fn damaged(&self) -> usize {
        self.sstables
            .iter()
            .filter(|sstable| !sstable.damage.is_empty())
            .count()
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sstable in self.sstables.iter().filter(|sstable| !sstable.damage.is_empty()) {
            writeln!(f, "{} is damaged:", sstable.path)?;
            for damage in &sstable.damage {
                writeln!(f, "  {damage}")?;
            }
        }
        write!(
            f,
            "verify: {} SSTables, {} damaged",
            self.sstables.len(),
            self.damaged()
        )
    }
}
