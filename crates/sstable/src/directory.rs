//! The SSTables of a table's directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{DirEntry, Env};

use crate::transaction::{doomed, is_log};
use crate::{Component, Descriptor, Result};

/// An SSTable in a directory: it has a Data.db, or a TOC.txt that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSSTable {
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Its existing components, with their sizes.
    pub components: Vec<(Component, u64)>,
}

impl ListedSSTable {
    /// The size of a component; `None` if it does not exist.
    pub fn size_of(&self, component: &Component) -> Option<u64> {
        let mut all = self.components.iter();
        all.find_map(|(found, size)| (found == component).then_some(*size))
    }

    /// Size in bytes of the known components; components of Cassandra's secondary indexes do not count.
    pub fn size_bytes(&self) -> u64 {
        let known = self.components.iter();
        known
            .filter(|(component, _)| !matches!(component, Component::Other(_)))
            .map(|(_, size)| size)
            .sum()
    }
}

/// The content of a table's directory, from one listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFiles {
    /// The SSTables, oldest id first, without those that an unfinished transaction removes.
    pub sstables: Vec<ListedSSTable>,
    /// SSTables that a crash left incomplete, or that were replaced but not yet removed: see [`crate::finish_transactions`].
    pub unfinished: Vec<Descriptor>,
    /// True if a crash left transaction logs.
    pub has_transactions: bool,
    /// Names of the subdirectories.
    pub directories: Vec<String>,
}

impl TableFiles {
    /// Lists a directory; `None` if it does not exist. Ignores files with other names, temporary files, and sets without
    /// Data.db and TOC.txt.
    ///
    /// # Errors
    /// The directory cannot be listed, a transaction log is damaged, or an SSTable has an unsupported version.
    pub fn list(env: &dyn Env, directory: &Path) -> Result<Option<Self>> {
        let entries = match env.list(directory) {
            Err(error) if error.is_not_found() => return Ok(None),
            entries => entries?,
        };
        let directory: Arc<Path> = directory.into();
        let mut files = Self {
            sstables: whole_sets(&directory, &entries)?,
            ..Self::default()
        };
        for entry in entries {
            if entry.is_dir {
                files.directories.push(entry.name);
            } else if is_log(&entry.name) {
                files.has_transactions = true;
                files
                    .unfinished
                    .extend(doomed(env, &directory, &directory.join(entry.name))?);
            }
        }
        let unfinished = &files.unfinished;
        files
            .sstables
            .retain(|found| !unfinished.contains(&found.descriptor));
        Ok(Some(files))
    }
}

/// The SSTables of a directory, oldest id first. Includes SSTables that a crash left incomplete, if they have a Data.db or TOC.txt.
///
/// # Errors
/// The directory cannot be listed, or an SSTable has an unsupported version.
pub fn list_directory(env: &dyn Env, directory: &Path) -> Result<Vec<ListedSSTable>> {
    whole_sets(&directory.into(), &env.list(directory)?)
}

/// Sets of files with a Data.db or TOC.txt, oldest id first. A set with a TOC.txt was complete once: without Data.db, it is damaged.
fn whole_sets(directory: &Arc<Path>, entries: &[DirEntry]) -> Result<Vec<ListedSSTable>> {
    let mut sets: BTreeMap<Descriptor, Vec<(Component, u64)>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        if let Some((descriptor, component)) = Descriptor::parse(directory, &entry.name) {
            sets.entry(descriptor)
                .or_default()
                .push((component, entry.size_bytes));
        }
    }
    let found = sets.into_iter().map(|(descriptor, components)| ListedSSTable {
        descriptor,
        components,
    });
    let mut found: Vec<ListedSSTable> = found
        .filter(|found| {
            let has = |component: Component| found.size_of(&component).is_some();
            has(Component::Data) || has(Component::Toc)
        })
        .collect();
    found.sort_by_key(|found| found.descriptor.id);
    for found in &found {
        found.descriptor.version.check_readable()?;
    }
    Ok(found)
}

impl Descriptor {
    /// The paths of all existing files of this SSTable, including temporary ones.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn files(&self, env: &dyn Env) -> Result<Vec<PathBuf>> {
        let prefix = format!("{}-", self.base_name());
        let entries = env.list(&self.directory)?;
        let ours = entries
            .into_iter()
            .filter(|entry| !entry.is_dir && entry.name.starts_with(&prefix));
        Ok(ours.map(|entry| self.directory.join(entry.name)).collect())
    }

    /// Removes all files of this SSTable, Data.db first: without it, the rest is not an SSTable.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_files(&self, env: &dyn Env) -> Result<()> {
        let data = self.path(&Component::Data);
        let mut files = self.files(env)?;
        files.sort_by_key(|file| *file != data);
        for file in files {
            env.remove_file_if_any(&file)?;
        }
        Ok(())
    }
}
