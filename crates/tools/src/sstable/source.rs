//! The SSTables that the user names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_env::Env;
use ilion_schema::TableSchema;
use ilion_sstable::{Component, Descriptor, OpenOptions, SSTable, Statistics, TableFiles};
use ilion_types::Partitioner;

/// The SSTables that the paths name, without duplicates. A directory stands for all of its SSTables, except those that a crash left
/// unfinished.
pub(super) fn descriptors(env: &dyn Env, paths: &[PathBuf]) -> anyhow::Result<Vec<Descriptor>> {
    let mut found: Vec<Descriptor> = Vec::new();
    for path in paths {
        for descriptor in named_by(env, path)? {
            if !found.contains(&descriptor) {
                found.push(descriptor);
            }
        }
    }
    Ok(found)
}

fn named_by(env: &dyn Env, path: &Path) -> anyhow::Result<Vec<Descriptor>> {
    if let Some((descriptor, _)) = Descriptor::from_path(path) {
        if !env.exists(&descriptor.path(&Component::Data)) && !env.exists(path) {
            bail!("{}: no such file", path.display());
        }
        descriptor.version.check_readable()?;
        return Ok(vec![descriptor]);
    }
    if !env.exists(path) {
        bail!("{}: no such file", path.display());
    }
    if env.list(path).is_err() {
        bail!(
            "{}: neither a component of an SSTable (such as nb-1-big-Data.db) nor a directory of them",
            path.display()
        );
    }
    let files = TableFiles::list(env, path)?.unwrap_or_default();
    if files.sstables.is_empty() {
        bail!("{}: there is no SSTable in it", path.display());
    }
    Ok(files.sstables.into_iter().map(|found| found.descriptor).collect())
}

/// An SSTable with the table that its header describes.
pub(super) struct Source {
    pub(super) sstable: Arc<SSTable>,
    pub(super) table: Arc<TableSchema>,
    pub(super) partitioner: Partitioner,
}

impl Source {
    pub(super) fn open(env: &Arc<dyn Env>, descriptor: &Descriptor) -> anyhow::Result<Self> {
        let statistics = read_statistics(env.as_ref(), descriptor)?;
        let partitioner = partitioner_of(descriptor, &statistics)?;
        let options = OpenOptions {
            partitioner,
            chunk_cache: None,
            ..OpenOptions::default()
        };
        Ok(Self {
            sstable: Arc::new(SSTable::open(env, descriptor, &options)?),
            table: table_of(descriptor, &statistics)?,
            partitioner,
        })
    }
}

pub(super) fn read_statistics(env: &dyn Env, descriptor: &Descriptor) -> anyhow::Result<Statistics> {
    Statistics::read(env, descriptor)?.with_context(|| {
        let path = descriptor.path(&Component::Statistics);
        format!("{} is missing: rows cannot be read without it", path.display())
    })
}

/// The partitioner of an SSTable; the default one if the file does not name it.
pub(super) fn partitioner_of(
    descriptor: &Descriptor,
    statistics: &Statistics,
) -> anyhow::Result<Partitioner> {
    let Some(validation) = &statistics.validation else {
        return Ok(Partitioner::default());
    };
    Partitioner::from_class(&validation.partitioner).with_context(|| format!("{descriptor}"))
}

/// The table that the header describes.
pub(super) fn table_of(descriptor: &Descriptor, statistics: &Statistics) -> anyhow::Result<Arc<TableSchema>> {
    let table = statistics.header.to_table("keyspace", "table");
    table.with_context(|| format!("{descriptor}: the type of its partition key"))
}
