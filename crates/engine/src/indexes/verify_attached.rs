//! Compares an attached index with its table: writes its files once more from the rows of each SSTable, under other names,
//! and compares the bytes.
//!
//! An index of vectors is a graph. Many graphs are right for the same rows, so its vectors are compared with those of the rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_sstable::{Descriptor, verify};

use super::attached::files_beside;
use super::verify::{IndexRepair, IndexVerification};
use crate::Result;
use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::table_store::{LiveIndex, TableStore};
use crate::tasks::Checking;

/// Prefix of the names of files that are written to be compared.
const WRITTEN_ANEW: &str = "verify-";
/// Bytes that are compared at once.
const COMPARED_BYTES: usize = 1 << 18;

impl Shared {
    /// Compares the files of an attached index beside each SSTable.
    pub(super) fn verify_attached(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        repair: IndexRepair,
        checking: &mut Checking<'_>,
    ) -> Result<IndexVerification> {
        // A build removes files with the same names, so none may run meanwhile.
        let _building = live.state.building.lock();
        let mut found = IndexVerification::default();
        let view = store.view().clone();
        for sstable in &view.sstables {
            if sstable.index(live.name()).is_none() {
                found.missing += 1;
                continue;
            }
            found.entries += 1;
            let (rows, is_same) = match self.compare_rows(store, live, sstable)? {
                Some(compared) => compared,
                None => self.compare_beside(store, live, sstable)?,
            };
            found.rows += rows;
            checking.pass(verify::work_bytes(&*self.env, sstable.descriptor()));
            if !is_same {
                found.stale += 1;
                if repair == IndexRepair::Repair {
                    sstable.set_index(live.name(), None);
                }
            }
        }
        let wrong = found.missing + found.stale;
        if wrong > 0 && repair == IndexRepair::Repair && self.build_attached(store, live)? {
            found.repaired = wrong;
        }
        Ok(found)
    }

    /// Returns the number of rows, and whether the index matches them.
    fn compare_beside(
        &self,
        store: &Arc<TableStore>,
        live: &Arc<LiveIndex>,
        sstable: &Arc<LiveSSTable>,
    ) -> Result<(u64, bool)> {
        let descriptor = sstable.descriptor();
        let prefix = format!("{WRITTEN_ANEW}{}-Index+{}+", descriptor.base_name(), live.name());
        let written = || self.named(&descriptor.directory, &prefix);
        // Remove files of an interrupted verification.
        self.remove_all(&written()?)?;
        let compared = self
            .write_beside(store, live, sstable, WRITTEN_ANEW)
            .and_then(|rows| Ok((rows, self.are_same(descriptor, live.name(), &written()?)?)));
        self.remove_all(&written()?)?;
        compared
    }

    fn named(&self, directory: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
        let entries = self.env.list(directory)?;
        let names = entries.iter().filter(|entry| entry.name.starts_with(prefix));
        Ok(names.map(|entry| directory.join(&entry.name)).collect())
    }

    fn remove_all(&self, files: &[PathBuf]) -> Result<()> {
        for file in files {
            self.env.remove_file(file)?;
        }
        Ok(())
    }

    /// True if the files of the index have the same bytes as the files that were written now.
    fn are_same(&self, descriptor: &Descriptor, index: &str, anew: &[PathBuf]) -> Result<bool> {
        let beside = files_beside(&*self.env, descriptor, index)?;
        if beside.len() != anew.len() {
            return Ok(false);
        }
        for path in &beside {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let other = path.with_file_name(format!("{WRITTEN_ANEW}{name}"));
            if !anew.contains(&other) || !self.has_same_bytes(path, &other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_same_bytes(&self, one: &Path, other: &Path) -> Result<bool> {
        let (one, other) = (self.env.open_read(one)?, self.env.open_read(other)?);
        let size = one.size_bytes();
        if size != other.size_bytes() {
            return Ok(false);
        }
        let (mut ours, mut theirs) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
        let mut at = 0;
        while at < size {
            let len = usize::try_from(size - at).map_or(COMPARED_BYTES, |left| left.min(COMPARED_BYTES));
            one.read_exact_at(at, &mut ours[..len])?;
            other.read_exact_at(at, &mut theirs[..len])?;
            if ours[..len] != theirs[..len] {
                return Ok(false);
            }
            at += len as u64;
        }
        Ok(true)
    }
}
