//! Finds the files of a backup, and those of them that need not be read because the previous backup has them.
//!
//! The files of a complete SSTable do not change, so a file with the same name, size and time of the last write as in the previous backup
//! is not read again. But the name of a removed SSTable may be used again. So Statistics.db is always read and must be the same: it has
//! the stretch of the commit log and the timestamps of the SSTable's data.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::Env;
use ilion_sstable::{Component, Descriptor};
use uuid::Uuid;

use crate::catalogue::Objects;
use crate::log::written_bytes;
use crate::manifest::{FileEntry, Manifest, TableEntry};
use crate::moment::MomentTable;
use crate::{Hash, Moment, Result};

const STATEMENTS: &str = "schema.cql";
const STATEMENTS_BYTES_MAX: u64 = 64 << 20;
const STATISTICS_BYTES_MAX: u64 = 256 << 20;

/// A file whose chunks must be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Where it is.
    pub source: PathBuf,
    pub bytes: u64,
    pub place: InManifest,
}

/// The entry of the manifest that gets the chunks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InManifest {
    /// Table and file.
    Table(usize, usize),
    /// Segment of the log.
    Log(usize),
}

/// The files of a backup.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub tables: Vec<TableEntry>,
    pub segments: Vec<FileEntry>,
    pub wanted: Vec<Wanted>,
    /// Bytes of files that the previous backup has.
    pub known_bytes: u64,
}

impl Plan {
    pub(crate) fn file_mut(&mut self, place: InManifest) -> Option<&mut FileEntry> {
        match place {
            InManifest::Table(table, file) => self.tables.get_mut(table)?.files.get_mut(file),
            InManifest::Log(file) => self.segments.get_mut(file),
        }
    }
}

/// The files of the previous backup, by table and path.
struct Before<'a> {
    files: HashMap<(Uuid, &'a str), &'a FileEntry>,
    chunk_bytes: u32,
    objects: &'a Objects,
}

impl<'a> Before<'a> {
    fn new(manifest: Option<&'a Manifest>, objects: &'a Objects) -> Self {
        let tables = manifest.into_iter().flat_map(|manifest| &manifest.tables);
        let files = tables.flat_map(|table| table.files.iter().map(|file| ((table.id, &*file.path), file)));
        Self {
            files: files.collect(),
            chunk_bytes: manifest.map_or(0, |manifest| manifest.chunk_bytes),
            objects,
        }
    }

    /// The entry of this file in the previous backup, if the file is unchanged and all its chunks are at the destination.
    fn same(&self, table: Uuid, file: &FileEntry) -> Option<&'a FileEntry> {
        let before = *self.files.get(&(table, &*file.path))?;
        if before.bytes != file.bytes || before.modified != file.modified {
            return None;
        }
        let mut chunks = before.chunks.iter().enumerate();
        let are_there = chunks
            .all(|(index, hash)| self.objects.get(hash) == Some(&before.chunk_len(index, self.chunk_bytes)));
        are_there.then_some(before)
    }
}

/// Finds the files of a moment.
pub(crate) fn plan(
    env: &dyn Env,
    moment: &Moment,
    before: Option<&Manifest>,
    objects: &Objects,
    chunk_bytes: u32,
) -> Result<Plan> {
    // With another chunk size the chunks differ.
    let before = before.filter(|before| before.chunk_bytes == chunk_bytes);
    let before = Before::new(before, objects);
    let mut plan = Plan::default();
    for table in &moment.tables {
        plan_table(env, table, &before, &mut plan)?;
    }
    for (path, mut entry) in files_in(env, &moment.log_directory, "")? {
        entry.bytes = written_bytes(env, &path)?;
        plan.wanted.push(Wanted {
            source: path,
            bytes: entry.bytes,
            place: InManifest::Log(plan.segments.len()),
        });
        plan.segments.push(entry);
    }
    Ok(plan)
}

fn plan_table(env: &dyn Env, table: &MomentTable, before: &Before<'_>, plan: &mut Plan) -> Result<()> {
    let directory = &table.directory;
    let statements = env.read_all(&directory.join(STATEMENTS), STATEMENTS_BYTES_MAX)?;
    let mut entry = TableEntry {
        keyspace: table.keyspace.clone(),
        name: table.name.clone(),
        id: table.id,
        statements: String::from_utf8_lossy(&statements).into_owned(),
        files: Vec::new(),
    };
    let mut found = files_in(env, directory, "")?;
    for hidden in env.list(directory)? {
        if hidden.is_dir && hidden.name.starts_with('.') {
            let prefix = format!("{}/", hidden.name);
            found.extend(files_in(env, &directory.join(&hidden.name), &prefix)?);
        }
    }
    // By SSTable: the part of the name between directory and component.
    let mut sstables: BTreeMap<(String, String), Vec<(PathBuf, FileEntry)>> = BTreeMap::new();
    let here: Arc<Path> = directory.as_path().into();
    for (path, file) in found {
        let (prefix, name) = match file.path.rsplit_once('/') {
            Some((prefix, name)) => (prefix, name),
            None => ("", &*file.path),
        };
        let Some((descriptor, _)) = Descriptor::parse(&here, name) else {
            continue;
        };
        let sstable = (prefix.to_owned(), descriptor.base_name());
        sstables.entry(sstable).or_default().push((path, file));
    }
    for files in sstables.into_values() {
        let is_same = has_same_statistics(env, table.id, &files, before)?;
        for (path, mut file) in files {
            let known = is_same.then(|| before.same(table.id, &file)).flatten();
            match known {
                Some(known) => {
                    plan.known_bytes += file.bytes;
                    file.chunks.clone_from(&known.chunks);
                }
                None => plan.wanted.push(Wanted {
                    source: path,
                    bytes: file.bytes,
                    place: InManifest::Table(plan.tables.len(), entry.files.len()),
                }),
            }
            entry.files.push(file);
        }
    }
    plan.tables.push(entry);
    Ok(())
}

/// Whether the Statistics.db of an SSTable is the same as in the previous backup.
fn has_same_statistics(
    env: &dyn Env,
    table: Uuid,
    files: &[(PathBuf, FileEntry)],
    before: &Before<'_>,
) -> Result<bool> {
    let suffix = format!("-{}", Component::Statistics);
    let statistics = files.iter().find(|(_, file)| file.path.ends_with(&suffix));
    let Some((path, file)) = statistics else {
        return Ok(false);
    };
    let Some(known) = before.same(table, file) else {
        return Ok(false);
    };
    let bytes = env.read_all(path, STATISTICS_BYTES_MAX)?;
    let chunk_bytes = usize::try_from(before.chunk_bytes).unwrap_or(usize::MAX);
    Ok(bytes
        .chunks(chunk_bytes)
        .map(Hash::of)
        .eq(known.chunks.iter().copied()))
}

/// The files in a directory, without their chunks.
fn files_in(env: &dyn Env, directory: &Path, prefix: &str) -> Result<Vec<(PathBuf, FileEntry)>> {
    let mut files = Vec::new();
    for entry in env.list(directory)? {
        if entry.is_dir {
            continue;
        }
        let path = directory.join(&entry.name);
        let file = FileEntry {
            path: format!("{prefix}{}", entry.name),
            bytes: entry.size_bytes,
            modified: env.modified_secs(&path)?,
            chunks: Vec::new(),
        };
        files.push((path, file));
    }
    Ok(files)
}
