//! A table's directory, sorted into SSTables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::Env;

use crate::{Component, Descriptor, Result};

/// An SSTable found in a directory: its Data.db is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub descriptor: Descriptor,
    /// The components that are there.
    pub components: Vec<Component>,
}

/// The SSTables of a directory, oldest id first. Files with other names, temporary files and sets without a Data.db are
/// left alone.
///
/// # Errors
/// The directory cannot be listed, or it holds an SSTable of a version that cannot be read.
pub fn list_directory(env: &dyn Env, directory: &Path) -> Result<Vec<Found>> {
    let directory: Arc<Path> = directory.into();
    let mut sets: BTreeMap<Descriptor, Vec<Component>> = BTreeMap::new();
    for entry in env.list(&directory)?.into_iter().filter(|entry| !entry.is_dir) {
        if let Some((descriptor, component)) = Descriptor::parse(&directory, &entry.name) {
            sets.entry(descriptor).or_default().push(component);
        }
    }
    let mut found: Vec<Found> = sets
        .into_iter()
        .filter(|(_, components)| components.contains(&Component::Data))
        .map(|(descriptor, components)| Found {
            descriptor,
            components,
        })
        .collect();
    found.sort_by_key(|found| found.descriptor.id);
    for found in &found {
        found.descriptor.version.check_readable()?;
    }
    Ok(found)
}

impl Descriptor {
    /// The paths of all files of this SSTable that are there, temporary ones included.
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

    /// Removes all files of this SSTable, Data.db first: without it the rest is not an SSTable any more.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_files(&self, env: &dyn Env) -> Result<()> {
        let data = self.path(&Component::Data);
        let mut files = self.files(env)?;
        files.sort_by_key(|file| *file != data);
        for file in files {
            match env.remove_file(&file) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}
