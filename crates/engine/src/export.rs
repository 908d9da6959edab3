//! Export: links the SSTables of a table into a directory, with the statements that create the table.

use std::path::{Path, PathBuf};

use ilion_schema::TableId;
use ilion_sstable::Component;

use crate::link::link_or_copy;
use crate::progress::AwaitedKind;
use crate::snapshots::{SCHEMA_FILE, statements_of};
use crate::{Engine, Error, Result};

impl Engine {
    /// Flushes a table and puts all its SSTables into a directory, which must be empty or absent: as hard links, or as copies if
    /// it is on another file system. `schema.cql` beside them creates the table, with its types. Returns the paths of their
    /// Data.db when all files are durable.
    ///
    /// Concurrent writes may be in the export or not.
    ///
    /// # Errors
    /// The table does not exist, the directory is not empty, or the operating system returned an error. Files that were exported
    /// before the error stay in the directory.
    pub fn export(&self, table: TableId, directory: &Path) -> Result<Vec<PathBuf>> {
        let shared = &self.shared;
        let env = &*shared.env;
        let store = shared
            .table(table)
            .ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        env.create_dir_all(directory)?;
        if let Some(entry) = env.list(directory)?.first() {
            return Err(Error::Refused(format!(
                "{} is not empty ({} is in it); export to a new directory",
                directory.display(),
                entry.name
            )));
        }
        let shown = shared.awaited.begin(AwaitedKind::Flush, [&store]);
        shared.flush_table(&store)?;
        drop(shown);
        // Held until the end, so that files of an SSTable that is compacted meanwhile are not removed.
        let sstables = store.view().sstables.clone();
        let mut exported = Vec::with_capacity(sstables.len());
        for live in &sstables {
            for file in live.descriptor().files(env)? {
                let Some(name) = file.file_name().filter(|_| !is_temporary(&file)) else {
                    continue;
                };
                link_or_copy(env, &file, &directory.join(name))?;
            }
            exported.push(directory.join(live.descriptor().file_name(&Component::Data)));
        }
        let statements = statements_of(&self.schema(), &store.schema());
        env.write_atomically(&directory.join(SCHEMA_FILE), statements.as_bytes())?;
        env.sync_dir(directory)?;
        Ok(exported)
    }
}

fn is_temporary(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "tmp")
}
