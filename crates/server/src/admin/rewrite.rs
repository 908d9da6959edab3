//! Rewrites and checks SSTables of a running node: `nodetool upgradesstables`, `recompress_sstables`, `scrub` and `verify`.

use std::fmt;

use ilion_engine::{CheckedSSTable, Rewrite, ScrubOptions, ScrubbedSSTable};
use serde::{Deserialize, Serialize};

use super::TableChoice;

/// Selects SSTables to rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RewriteOrder {
    /// Only tables of this keyspace.
    keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    table: Option<String>,
    /// Includes SSTables that already have the current format.
    #[serde(default)]
    all: bool,
    /// Only SSTables with another compression than their table.
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

/// Selects tables whose damaged SSTables are replaced by new ones with the readable rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ScrubOrder {
    /// Only tables of this keyspace.
    keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    table: Option<String>,
    /// Does not take a snapshot first.
    #[serde(default)]
    without_snapshot: bool,
    /// Includes tables of counters.
    #[serde(default)]
    skips_corrupted: bool,
}

impl ScrubOrder {
    pub(super) fn tables(&self) -> TableChoice {
        TableChoice {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
        }
    }

    pub(super) fn options(&self) -> ScrubOptions {
        ScrubOptions {
            without_snapshot: self.without_snapshot,
            skips_corrupted: self.skips_corrupted,
        }
    }
}

/// SSTables that were scrubbed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubReport {
    /// Number of undamaged SSTables.
    pub sound: u64,
    /// The damaged ones.
    pub damaged: Vec<DamagedSSTable>,
}

/// An SSTable that is or was damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedSSTable {
    /// Path of its Data.db.
    pub path: String,
    /// Its damage.
    pub damage: Vec<String>,
    /// Messages about the rows that could be read.
    pub told: Vec<String>,
    /// Paths of the SSTables that replace it.
    pub replaced_by: Vec<String>,
    /// Why it was not replaced; `None` if it was.
    pub refused: Option<String>,
}

impl ScrubReport {
    pub(super) fn add(&mut self, scrubbed: Vec<ScrubbedSSTable>) {
        for sstable in scrubbed {
            if sstable.damage.is_empty() {
                self.sound += 1;
                continue;
            }
            let paths = sstable.replaced_by.iter().map(|path| path.display().to_string());
            self.damaged.push(DamagedSSTable {
                path: sstable.path.display().to_string(),
                damage: sstable.damage,
                told: sstable.told,
                replaced_by: paths.collect(),
                refused: sstable.refused,
            });
        }
    }

    /// Number of SSTables that are still damaged.
    pub fn refused(&self) -> usize {
        self.damaged
            .iter()
            .filter(|sstable| sstable.refused.is_some())
            .count()
    }
}

impl fmt::Display for ScrubReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sstable in &self.damaged {
            writeln!(f, "{} was damaged:", sstable.path)?;
            for line in sstable.damage.iter().chain(&sstable.told) {
                writeln!(f, "  {}", line.trim_start())?;
            }
            match (&sstable.refused, &sstable.replaced_by[..]) {
                (Some(reason), _) => writeln!(f, "  it is still there: {reason}")?,
                (None, []) => writeln!(f, "  nothing could be read of it; the snapshot has it")?,
                (None, paths) => writeln!(f, "  now there is {}", paths.join(", "))?,
            }
        }
        write!(
            f,
            "scrub: {} SSTables, {} damaged, {} of them still",
            self.sound + self.damaged.len() as u64,
            self.damaged.len(),
            self.refused()
        )
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
