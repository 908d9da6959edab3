//! [`Stage`]: the directory in which a restore works.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_commitlog::{Cut, Position, cut_after};
use ilion_engine::{Engine, EngineOptions, continue_log};
use ilion_env::{Env, parent_of};
use ilion_schema::is_system_keyspace;
use ilion_types::Partitioner;
use serde::{Deserialize, Serialize};

use super::choose::Chosen;
use crate::download::{Downloads, Order};
use crate::manifest::TableEntry;
use crate::{Error, Place, RestoreOptions, Result};

/// Name of the file with the state of the restore.
const MARK: &str = "restore.json";
const MARK_BYTES_MAX: u64 = 1 << 20;
/// Memory of the engine that replays.
const MEMTABLE_BYTES: usize = 256 << 20;
/// The replay needs additional room: the size of the files divided by this.
const ROOM_PART: u64 = 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    backup: String,
    to_micros: Option<i64>,
    keyspaces: Vec<String>,
    /// True after an engine has opened the directory. It may have changed files, so the next try begins with an empty directory.
    is_opened: bool,
}

/// Whether a directory has at most an incomplete mark.
fn is_begun(env: &dyn Env, root: &Path) -> Result<bool> {
    let entries = env.list(root)?;
    Ok(entries.iter().all(|entry| entry.name.starts_with(MARK)))
}

/// `data`, `commitlog` and `restore.json` in a directory.
pub(super) struct Stage<'a> {
    env: &'a Arc<dyn Env>,
    root: PathBuf,
    options: EngineOptions,
    partitioner: String,
    mark: Mark,
}

impl<'a> Stage<'a> {
    /// Creates the directory, or resumes the same restore in a directory that a stopped one left. `keyspaces` are restored beside the
    /// schema; an empty list is all.
    pub(super) fn open(
        env: &'a Arc<dyn Env>,
        root: &Path,
        chosen: &Chosen,
        keyspaces: &[&str],
    ) -> Result<Self> {
        let mark = Mark {
            backup: chosen.base.name.clone(),
            to_micros: chosen.to_micros,
            keyspaces: keyspaces.iter().map(|name| (*name).to_owned()).collect(),
            is_opened: false,
        };
        let path = root.join(MARK);
        if env.exists(root) {
            let left = match env.exists(&path) {
                true => serde_json::from_slice::<Mark>(&env.read_all(&path, MARK_BYTES_MAX)?).ok(),
                false => None,
            };
            match left {
                Some(left) if left == mark => {}
                Some(_) => env.remove_dir_all(root)?,
                None if is_begun(&**env, root)? => {}
                None => {
                    return Err(Error::Refused(format!(
                        "{} is not a directory of a restore; remove it",
                        root.display()
                    )));
                }
            }
        }
        let options = EngineOptions::below(root);
        env.create_dir_all(root)?;
        let stage = Self {
            env,
            root: root.to_path_buf(),
            options,
            partitioner: chosen.base.partitioner.clone(),
            mark,
        };
        stage.write_mark()?;
        Ok(stage)
    }

    fn write_mark(&self) -> Result<()> {
        let text = serde_json::to_vec(&self.mark).unwrap_or_default();
        Ok(self.env.write_atomically(&self.root.join(MARK), &text)?)
    }

    /// The options of the engine that opens it.
    pub(super) fn engine_options(&self) -> Result<EngineOptions> {
        let partitioner = Partitioner::from_class(&self.partitioner)
            .map_err(|error| Error::damaged("the manifest", format!("has a wrong partitioner: {error}")))?;
        Ok(EngineOptions {
            partitioner,
            is_compacting: false,
            memtable_bytes_max: MEMTABLE_BYTES,
            ..self.options.clone()
        })
    }

    /// Whether the tables of this keyspace are restored.
    fn wants(&self, table: &TableEntry) -> bool {
        let chosen = &self.mark.keyspaces;
        chosen.is_empty() || is_system_keyspace(&table.keyspace) || chosen.contains(&table.keyspace)
    }

    /// Downloads the files that are missing. Returns the size of all files, those included that were there.
    pub(super) fn download(
        &self,
        place: &dyn Place,
        options: &RestoreOptions<'_>,
        chosen: &Chosen,
    ) -> Result<u64> {
        let env = &**self.env;
        let base = &chosen.base;
        let mut orders = Vec::new();
        for table in base.tables.iter().filter(|table| self.wants(table)) {
            let directory = self
                .options
                .data_dir
                .join(&table.keyspace)
                .join(table.directory_name());
            env.create_dir_all(&directory)?;
            for file in &table.files {
                let target = directory.join(&file.path);
                if let Some((hidden, _)) = file.path.split_once('/') {
                    env.create_dir_all(&directory.join(hidden))?;
                }
                orders.push(Order {
                    file,
                    chunk_bytes: base.chunk_bytes,
                    target,
                });
            }
        }
        // An earlier try may have cut the segments, which their names do not show: download all of them again.
        if env.exists(&self.options.commitlog_dir) {
            env.remove_dir_all(&self.options.commitlog_dir)?;
        }
        env.create_dir_all(&self.options.commitlog_dir)?;
        let own = base.log.segments.iter().map(|file| (file, base.chunk_bytes));
        let later = chosen
            .later
            .iter()
            .map(|(file, chunk_bytes)| (file, *chunk_bytes));
        for (file, chunk_bytes) in own.chain(later) {
            orders.push(Order {
                file,
                chunk_bytes,
                target: self.options.commitlog_dir.join(&file.path),
            });
        }
        let bytes: u64 = orders.iter().map(|order| order.file.bytes).sum();
        self.check_room(&orders, bytes)?;
        options.progress.begin("downloading", bytes);
        let downloads = Downloads {
            env: self.env,
            place,
            pace: &options.pace,
            progress: options.progress,
            threads: options.threads,
        };
        downloads.run(orders)?;
        options.progress.finish();
        Ok(bytes)
    }

    fn check_room(&self, orders: &[Order<'_>], bytes: u64) -> Result<()> {
        let is_there = |order: &&Order<'_>| self.env.exists(&order.target);
        let there: u64 = orders.iter().filter(is_there).map(|order| order.file.bytes).sum();
        let needed = bytes.saturating_sub(there).saturating_add(bytes / ROOM_PART);
        let free = self.env.free_space_bytes(&self.root)?;
        match free >= needed {
            true => Ok(()),
            false => Err(Error::Refused(format!(
                "the restore needs {needed} bytes at {}, and {free} are free",
                self.root.display()
            ))),
        }
    }

    /// Checks the log and cuts it at the moment.
    pub(super) fn cut(&self, env: &dyn Env, chosen: &Chosen) -> Result<Cut> {
        let from = Position::new(chosen.base.log.to, 0);
        let to_micros = chosen.to_micros.unwrap_or(i64::MAX);
        Ok(cut_after(env, &self.options.commitlog_dir, from, to_micros)?)
    }

    /// Opens an engine in it, which replays the log.
    pub(super) fn open_engine(&self) -> Result<Engine> {
        let mark = Mark {
            is_opened: true,
            backup: self.mark.backup.clone(),
            to_micros: self.mark.to_micros,
            keyspaces: self.mark.keyspaces.clone(),
        };
        let text = serde_json::to_vec(&mark).unwrap_or_default();
        self.env.write_atomically(&self.root.join(MARK), &text)?;
        let engine = Engine::open(self.env.clone(), self.engine_options()?)?;
        if let Some(table) = engine.set_aside().first() {
            return Err(Error::Refused(format!(
                "the backup has a table that cannot be opened: {table}"
            )));
        }
        let losses = engine.facts().log_losses;
        if losses.is_any() {
            return Err(Error::Refused(format!(
                "the log of the backup is not whole: {losses:?}"
            )));
        }
        Ok(engine)
    }

    /// Makes the directory continue the log of the node that was backed up, since its SSTables name the stretches of that log that they
    /// cover.
    pub(super) fn continue_log(&self, chosen: &Chosen) -> Result<()> {
        let base = &chosen.base;
        Ok(continue_log(
            &**self.env,
            &self.options.data_dir,
            base.node,
            &base.log.purged,
        )?)
    }

    /// The directory that a table is exported to.
    pub(super) fn export_directory(&self, table: &str) -> PathBuf {
        self.root.join("export").join(table)
    }

    /// Gives the directory its final name, and then removes the mark: a directory with the old name and without a mark would be refused by the
    /// next restore. After a crash in between, the node has a file `restore.json` that nobody reads.
    pub(super) fn become_node(self, target: &Path) -> Result<()> {
        self.env.rename(&self.root, target)?;
        self.env.sync_dir(parent_of(target))?;
        self.env.remove_file(&target.join(MARK))?;
        Ok(self.env.sync_dir(target)?)
    }

    /// Removes the whole directory.
    pub(super) fn remove(self) -> Result<()> {
        Ok(self.env.remove_dir_all(&self.root)?)
    }
}
