//! Files of attached indexes, for operators.

use std::path::PathBuf;

use ilion_index::RowNumbersFile;
use ilion_schema::TableId;
use ilion_sstable::Component;
use ilion_types::Token;

use super::attached::files_beside;
use super::indexed_writer::base_of;
use crate::Engine;

/// An attached index of one SSTable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SSTableIndexFacts {
    /// The SSTable's Data.db.
    pub data_file: PathBuf,
    /// Rows of the SSTable, indexed or not.
    pub rows: u64,
    /// Pairs of a row and a term.
    pub cells: u64,
    /// Token of the first partition.
    pub first_token: Token,
    /// Token of the last partition.
    pub last_token: Token,
    /// The files of the index, with their sizes in bytes.
    pub files: Vec<(PathBuf, u64)>,
    /// Bytes of the files that all attached indexes of the SSTable share.
    pub shared_bytes: u64,
}

impl Engine {
    /// Facts about an attached index for each SSTable that has it.
    pub fn sstable_indexes(&self, table: TableId, index: &str) -> Vec<SSTableIndexFacts> {
        let Some(store) = self.shared.table(table) else {
            return Vec::new();
        };
        let env = &*self.shared.env;
        // A file that was just removed counts 0 bytes.
        let size = |path: PathBuf| {
            let bytes = env.file_size(&path).unwrap_or(0);
            (path, bytes)
        };
        let view = store.view();
        let facts = view.sstables.iter().filter_map(|live| {
            let contents = live.index(index)?.contents();
            let descriptor = live.descriptor();
            let files = files_beside(env, descriptor, index).unwrap_or_default();
            let rows = PathBuf::from(format!("{}{}", base_of(descriptor), RowNumbersFile::NAME));
            Some(SSTableIndexFacts {
                data_file: descriptor.path(&Component::Data),
                rows: contents.rows,
                cells: contents.cells,
                first_token: live.sstable.first_key().token.clone(),
                last_token: live.sstable.last_key().token.clone(),
                files: files.into_iter().map(size).collect(),
                shared_bytes: size(rows).1,
            })
        });
        facts.collect()
    }
}
