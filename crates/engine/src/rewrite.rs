//! Rewriting the SSTables of a table one by one, and checking them, while the table is in use.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_schema::TableId;
use ilion_sstable::{Component, verify::verify};

use crate::compact::CompactionRequest;
use crate::{Engine, Error, Result, TableStore};

/// Which SSTables to rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Those that are not in the format that is written.
    OtherFormats,
    /// All.
    All,
}

/// An SSTable that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSSTable {
    /// Path of its Data.db.
    pub path: PathBuf,
    /// Uncompressed bytes of its rows.
    pub data_bytes: u64,
    /// Its damage, with files and offsets; empty if there is none.
    pub damage: Vec<String>,
}

impl Engine {
    /// Writes each chosen SSTable of a table anew, in the format and with the compression that are written now; returns their number.
    /// What a compaction of the SSTable would leave out is left out.
    ///
    /// # Errors
    /// A file cannot be read or written, or the work was stopped; SSTables so far are rewritten.
    pub fn rewrite(&self, table: TableId, choice: Rewrite) -> Result<u64> {
        let mut count = 0;
        for path in self.chosen(table, choice)? {
            // One that a compaction has replaced meanwhile is new already.
            count += self.compact_as(table, &CompactionRequest::Files(vec![path]))? as u64;
        }
        Ok(count)
    }

    fn chosen(&self, table: TableId, choice: Rewrite) -> Result<Vec<PathBuf>> {
        let store = self.usable_store(table)?;
        let view = store.view();
        let version = self.shared.options.sstable_version;
        let is_chosen = |found: ilion_sstable::Version| choice == Rewrite::All || found != version;
        let chosen = view.sstables.iter().map(|live| live.descriptor());
        let chosen = chosen.filter(|descriptor| is_chosen(descriptor.version));
        Ok(chosen
            .map(|descriptor| descriptor.path(&Component::Data))
            .collect())
    }

    /// Checks all SSTables of a table against themselves, component by component.
    ///
    /// # Errors
    /// A file cannot be read. Damage is in the report.
    pub fn check_sstables(&self, table: TableId) -> Result<Vec<CheckedSSTable>> {
        let store = self.usable_store(table)?;
        let view = store.view();
        let mut checked = Vec::new();
        // The view keeps the files of SSTables that are replaced meanwhile.
        for live in &view.sstables {
            let descriptor = live.descriptor();
            let found = verify(&*self.shared.env, descriptor, &mut |_| {})?;
            let mut damage: Vec<String> = found.findings.kept().iter().map(ToString::to_string).collect();
            if found.findings.more() > 0 {
                damage.push(format!("and {} more", found.findings.more()));
            }
            checked.push(CheckedSSTable {
                path: descriptor.path(&Component::Data),
                data_bytes: live.sstable.data_length(),
                damage,
            });
        }
        Ok(checked)
    }

    fn usable_store(&self, table: TableId) -> Result<Arc<TableStore>> {
        let found = self.shared.any_table(table);
        let (store, owner) = found.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        owner.check_usable()?;
        Ok(store)
    }
}
