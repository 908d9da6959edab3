//! A folder of SSTables and a schema, opened for reading.
//!
//! The node is in memory ([`LinkedEnv`]): it executes the statements of the schema, ends, gets the files of the folder as links in the
//! directories of its tables, and starts again, as on a data directory of Cassandra. Nothing in the folder is changed, and no file is
//! written elsewhere. What is needed beside the SSTables, such as token maps, is made in memory.

mod folder;
mod schema_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_engine::check_fit;
use ilion_env::{Env, LinkedEnv};
use ilion_node::{Node, Opening};
use ilion_query::{ClientState, ExecuteOptions};
use ilion_schema::{TableSchema, is_system_keyspace};
use ilion_settings::{Settings, Size};
use ilion_sstable::{Component, Descriptor, Statistics};
use ilion_types::Partitioner;

use crate::embedded::Embedded;
use crate::read_only::ReadOnly;
use folder::{Wanted, assign, find_directories};
use schema_file::read_schema;

/// Where the node is, in memory.
const ROOT: &str = "/sstables";
const SCHEMA_BYTES_MAX: u64 = 64 << 20;
/// The log has only the schema.
const SEGMENT_BYTES: u64 = 4 << 20;
/// A note names this many directories that no table has.
const NAMED_MAX: usize = 5;

/// A session on the SSTables of a folder, and what its user should know.
pub struct SSTables {
    /// The session, which only reads.
    pub session: ReadOnly<Embedded>,
    /// Sentences for people: statements and directories that were left out, tables without SSTables.
    pub notes: Vec<String>,
}

/// An empty table of the schema.
struct Made {
    schema: Arc<TableSchema>,
    directory: PathBuf,
}

/// Opens the SSTables of the tables that a file of CQL statements creates.
///
/// # Errors
/// The schema is wrong, no SSTable is of its tables, an SSTable does not fit its table, or the operating system refuses.
pub fn open_sstables(
    env: &Arc<dyn Env>,
    folder: &Path,
    schema: &Path,
    settings: &Settings,
) -> anyhow::Result<SSTables> {
    let text = env.read_all(schema, SCHEMA_BYTES_MAX)?;
    let text = String::from_utf8(text).with_context(|| format!("{} is no text", schema.display()))?;
    let file = read_schema(&text)
        .map_err(anyhow::Error::msg)
        .with_context(|| schema.display().to_string())?;
    let found = find_directories(&**env, folder)?;
    let Some(first) = found.first() else {
        bail!("there are no SSTables in {}", folder.display());
    };
    let settings = Settings {
        directory: ROOT.into(),
        partitioner: partitioner_in(&**env, &first.path)?.unwrap_or(settings.partitioner),
        commitlog_segment_size: Size(SEGMENT_BYTES),
        ..settings.clone()
    };
    let linked = Arc::new(LinkedEnv::new(Path::new(ROOT), env.clone()));
    let tables =
        make_tables(&linked, &settings, &file.statements).with_context(|| schema.display().to_string())?;
    let wanted: Vec<Wanted> = tables.iter().map(wanted).collect();
    let assigned = assign(&found, &wanted).map_err(anyhow::Error::msg)?;
    if assigned.of_tables.is_empty() {
        bail!(
            "no table of {} has SSTables in {}: there are {}",
            schema.display(),
            folder.display(),
            some_of(&assigned.others)
        );
    }
    let mut notes: Vec<String> = Vec::new();
    notes.extend(file.left_out.iter().map(|text| format!("left out: {text}")));
    if !assigned.others.is_empty() {
        notes.push(format!(
            "not of a table of the schema: {}",
            some_of(&assigned.others)
        ));
    }
    if env.exists(&folder.join("commitlog")) {
        notes.push("the commit log is not read: rows that were not flushed are missing".to_owned());
    }
    for (index, table) in tables.iter().enumerate() {
        match assigned.of_tables.get(&index) {
            Some(directory) => link_all(env, &linked, directory, table, settings.partitioner)?,
            None => notes.push(format!(
                "no SSTables: {}.{}",
                table.schema.keyspace, table.schema.name
            )),
        }
    }
    let node = Node::open_alone(linked, &settings, without_compactions())?;
    Ok(SSTables {
        session: ReadOnly::new(Embedded::of(node, folder.display().to_string())),
        notes,
    })
}

/// Options for a node that compacts nothing, since it must not replace the linked SSTables.
fn without_compactions() -> Opening {
    Opening {
        is_compacting: false,
        ..Opening::default()
    }
}

/// Executes the statements of the schema; returns the tables, which are empty.
fn make_tables(
    env: &Arc<LinkedEnv>,
    settings: &Settings,
    statements: &[String],
) -> anyhow::Result<Vec<Made>> {
    let node = Node::open_alone(env.clone(), settings, without_compactions())?;
    let mut client = ClientState::default();
    for statement in statements {
        let executed = node
            .processor()
            .query(&mut client, statement, &ExecuteOptions::default());
        let executed = executed.map_err(|error| anyhow::anyhow!("{}: {statement}", error.message()))?;
        node.wait_durable(&executed)?;
    }
    let stores = node.engine().tables();
    let made = stores.iter().map(|store| Made {
        schema: store.schema(),
        directory: store.directory().to_path_buf(),
    });
    Ok(made
        .filter(|table| !is_system_keyspace(&table.schema.keyspace))
        .collect())
}

fn wanted(table: &Made) -> Wanted {
    Wanted {
        keyspace: table.schema.keyspace.clone(),
        name: table.schema.name.clone(),
        id: table.schema.id.0,
    }
}

/// Gives the files of a directory names in the directory of their table. SSTables of another table are refused.
fn link_all(
    env: &Arc<dyn Env>,
    linked: &LinkedEnv,
    from: &Path,
    table: &Made,
    partitioner: Partitioner,
) -> anyhow::Result<()> {
    linked.create_dir_all(&table.directory)?;
    let directory: Arc<Path> = from.into();
    for entry in env.list(from)?.iter().filter(|entry| !entry.is_dir) {
        let parsed = Descriptor::parse(&directory, &entry.name);
        if let Some((descriptor, Component::Data)) = &parsed {
            check_fit(&**env, descriptor, &table.schema, partitioner).with_context(|| {
                let path = descriptor.path(&Component::Data);
                format!(
                    "{} is not of {}.{} of the schema",
                    path.display(),
                    table.schema.keyspace,
                    table.schema.name
                )
            })?;
        }
        // A transaction log says which SSTables are not complete yet, or not needed any more.
        if parsed.is_some() || entry.name.ends_with(".log") {
            linked.link(&from.join(&entry.name), &table.directory.join(&entry.name))?;
        }
    }
    Ok(linked.sync_dir(&table.directory)?)
}

/// The partitioner of the first SSTable in a directory, if its Statistics.db tells.
fn partitioner_in(env: &dyn Env, directory: &Path) -> anyhow::Result<Option<Partitioner>> {
    let shared: Arc<Path> = directory.into();
    let entries = env.list(directory)?;
    let mut parsed = entries
        .iter()
        .filter_map(|entry| Descriptor::parse(&shared, &entry.name));
    let Some((descriptor, _)) = parsed.find(|(_, component)| *component == Component::Statistics) else {
        return Ok(None);
    };
    descriptor.version.check_readable()?;
    let statistics = Statistics::read(env, &descriptor)?;
    let validation = statistics.and_then(|statistics| statistics.validation);
    Ok(validation
        .map(|validation| Partitioner::from_class(&validation.partitioner))
        .transpose()?)
}

fn some_of(paths: &[PathBuf]) -> String {
    let named: Vec<String> = paths
        .iter()
        .take(NAMED_MAX)
        .map(|path| path.display().to_string())
        .collect();
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
