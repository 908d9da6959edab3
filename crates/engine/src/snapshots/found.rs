//! Finds snapshots by the directories on disk, including those of dropped tables, and those that Cassandra made.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ilion_env::Env;
use ilion_schema::TableId;
use uuid::Uuid;

use super::manifest::Manifest;
use super::{MANIFEST_BYTES_MAX, MANIFEST_FILE, SCHEMA_FILE, directory_of_snapshots};
use crate::Result;
use crate::shared::Shared;

/// A snapshot of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// Its keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// The id of the table, which may have been dropped since.
    pub table_id: TableId,
    /// Its tag.
    pub tag: String,
    /// Its directory.
    pub directory: PathBuf,
    /// When it was taken, milliseconds since 1970.
    pub created_millis: i64,
    /// When it expires, milliseconds since 1970; `None` is never.
    pub expires_millis: Option<i64>,
    /// It was taken for a repair of Cassandra.
    pub is_ephemeral: bool,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// Bytes of its files that the table does not have any more.
    pub true_size_bytes: u64,
}

/// A directory in `snapshots`.
pub(super) struct SnapshotDirectory {
    pub keyspace: String,
    pub table: String,
    pub table_id: TableId,
    /// The directory of the table.
    pub directory: PathBuf,
    /// The name of the snapshot's directory: a tag, or a hidden name.
    pub name: String,
}

impl SnapshotDirectory {
    pub(super) fn path(&self) -> PathBuf {
        directory_of_snapshots(&self.directory).join(&self.name)
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.name.starts_with('.')
    }

    /// The manifest, and the time when the snapshot was made, in milliseconds since 1970.
    pub(super) fn manifest(&self, env: &dyn Env) -> (Manifest, i64) {
        let path = self.path().join(MANIFEST_FILE);
        let text = env.read_all(&path, MANIFEST_BYTES_MAX);
        let decoded = text.as_ref().ok().and_then(|text| Manifest::decode(text));
        if text.is_ok() && decoded.is_none() {
            tracing::warn!(path = %path.display(), "the manifest of a snapshot cannot be read; it does not expire");
        }
        let manifest = decoded.unwrap_or_default();
        let created_millis = manifest.created_millis.unwrap_or_else(|| {
            let modified = env.modified_secs(&self.path());
            modified.unwrap_or_else(|_| env.now_secs()).saturating_mul(1000)
        });
        (manifest, created_millis)
    }
}

/// Sizes of files in bytes, by their names below the table's directory.
type FileSizes = HashMap<String, u64>;

impl Shared {
    /// All directories in `snapshots` directories, ordered by keyspace, table and name.
    pub(super) fn snapshot_entries(&self) -> Result<Vec<SnapshotDirectory>> {
        let env = &*self.env;
        let data_dir = &self.options.data_dir;
        let mut entries = Vec::new();
        for keyspace in directories(env, data_dir)? {
            for directory in directories(env, &data_dir.join(&keyspace))? {
                let Some((table, id)) = table_of(&directory) else {
                    continue;
                };
                let directory = data_dir.join(&keyspace).join(&directory);
                let names = directories(env, &directory_of_snapshots(&directory))?;
                entries.extend(names.into_iter().map(|name| SnapshotDirectory {
                    keyspace: keyspace.clone(),
                    table: table.to_owned(),
                    table_id: id,
                    directory: directory.clone(),
                    name,
                }));
            }
        }
        Ok(entries)
    }

    /// All snapshots with their sizes.
    pub(super) fn measured_snapshots(&self) -> Result<Vec<SnapshotFacts>> {
        let env = &*self.env;
        let mut live: BTreeMap<PathBuf, FileSizes> = BTreeMap::new();
        let mut facts = Vec::new();
        for entry in self
            .snapshot_entries()?
            .into_iter()
            .filter(|entry| !entry.is_hidden())
        {
            let (manifest, created_millis) = entry.manifest(env);
            let Some(files) = files_below(env, &entry.path())? else {
                continue;
            };
            if !live.contains_key(&entry.directory) {
                let of_table = files_below(env, &entry.directory)?.unwrap_or_default();
                live.insert(entry.directory.clone(), of_table);
            }
            let shared = &live[&entry.directory];
            let own = files
                .iter()
                .filter(|(name, bytes)| shared.get(*name) != Some(*bytes));
            facts.push(SnapshotFacts {
                size_bytes: files.values().sum(),
                true_size_bytes: own.map(|(_, bytes)| bytes).sum(),
                directory: entry.path(),
                keyspace: entry.keyspace,
                table: entry.table,
                table_id: entry.table_id,
                tag: entry.name,
                created_millis,
                expires_millis: manifest.expires_millis,
                is_ephemeral: manifest.is_ephemeral,
            });
        }
        Ok(facts)
    }

    /// Bytes of the SSTables that only snapshots have, by table; an SSTable in several snapshots of a table counts once.
    pub(super) fn snapshots_only_bytes(&self) -> Result<BTreeMap<TableId, u64>> {
        let env = &*self.env;
        let mut own: BTreeMap<(TableId, PathBuf), FileSizes> = BTreeMap::new();
        let entries = self.snapshot_entries()?.into_iter();
        for entry in entries.filter(|entry| !entry.is_hidden()) {
            let files = files_below(env, &entry.path())?.unwrap_or_default();
            own.entry((entry.table_id, entry.directory))
                .or_default()
                .extend(files);
        }
        let mut bytes = BTreeMap::new();
        for ((table, directory), files) in own {
            let live = files_below(env, &directory)?.unwrap_or_default();
            let is_own = |(name, bytes): &(&String, &u64)| {
                ![MANIFEST_FILE, SCHEMA_FILE].contains(&name.as_str()) && live.get(*name) != Some(*bytes)
            };
            let only: u64 = files.iter().filter(is_own).map(|(_, bytes)| bytes).sum();
            *bytes.entry(table).or_default() += only;
        }
        Ok(bytes)
    }
}

/// Name and id of a table from the name of its directory, `<table>-<id without dashes>`.
fn table_of(directory: &str) -> Option<(&str, TableId)> {
    let (table, id) = directory.rsplit_once('-')?;
    let id = Uuid::try_parse(id).ok().filter(|_| id.len() == 32)?;
    (!table.is_empty()).then_some((table, TableId(id)))
}

/// The names of the directories in a directory; empty if it does not exist.
fn directories(env: &dyn Env, directory: &Path) -> Result<Vec<String>> {
    let entries = match env.list(directory) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        entries => entries?,
    };
    let directories = entries.into_iter().filter(|entry| entry.is_dir);
    Ok(directories.map(|entry| entry.name).collect())
}

/// The files in a directory, and in the directories of hidden tables in it; `None` if the directory was just removed.
fn files_below(env: &dyn Env, directory: &Path) -> Result<Option<FileSizes>> {
    let entries = match env.list(directory) {
        Err(error) if error.is_not_found() => return Ok(None),
        entries => entries?,
    };
    let mut files = FileSizes::new();
    for entry in entries {
        if !entry.is_dir {
            files.insert(entry.name, entry.size_bytes);
            continue;
        }
        if !entry.name.starts_with('.') {
            continue;
        }
        let in_hidden = match env.list(&directory.join(&entry.name)) {
            Err(error) if error.is_not_found() => Vec::new(),
            in_hidden => in_hidden?,
        };
        let in_hidden = in_hidden.into_iter().filter(|file| !file.is_dir);
        files.extend(in_hidden.map(|file| (format!("{}/{}", entry.name, file.name), file.size_bytes)));
    }
    Ok(Some(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_names_its_table() {
        let id = "f0ff2da0e79311f184a5f7c67726edb8";
        let (table, found) = table_of("t-f0ff2da0e79311f184a5f7c67726edb8").unwrap();
        assert_eq!((table, found.0.simple().to_string()), ("t", id.to_owned()));
        for name in [
            "t",
            "t-1",
            "-f0ff2da0e79311f184a5f7c67726edb8",
            "t-f0ff2da0-e793-11f1-84a5-f7c67726edb8",
            "",
        ] {
            assert!(table_of(name).is_none(), "{name}");
        }
    }
}
