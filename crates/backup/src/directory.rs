//! [`Directory`]: a destination in a directory.
//!
//! It uses `env` and not the local store of `object_store`: chunks must be durable before a manifest names them, and that store does not
//! sync. With `env`, the tests of this crate can also cut the power at each sync.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;

use crate::{Error, Place, Result};

/// Files that are not complete yet.
const TEMPORARY: &str = "tmp";

/// Objects are files; the parts of a key are directories.
pub struct Directory {
    env: Arc<dyn Env>,
    root: PathBuf,
}

impl Directory {
    /// A destination in this directory, which is created when something is written.
    pub fn new(env: Arc<dyn Env>, root: PathBuf) -> Self {
        Self { env, root }
    }

    fn path_of(&self, key: &str) -> PathBuf {
        debug_assert!(key.split('/').all(|part| !part.is_empty() && part != ".."));
        self.root.join(key)
    }

    /// Writes a durable file under a temporary name.
    fn write_temporary(&self, bytes: &[u8]) -> Result<PathBuf> {
        let env = &*self.env;
        let directory = self.root.join(TEMPORARY);
        env.create_dir_all(&directory)?;
        let path = directory.join(format!("{:016x}", env.random_u64()));
        let mut file = env.create(&path)?;
        let written = file.append(bytes).and_then(|()| file.sync());
        drop(file);
        if let Err(error) = written {
            let _ = env.remove_file_if_any(&path);
            return Err(error.into());
        }
        Ok(path)
    }

    /// Gives the file its name.
    fn name_it(
        &self,
        temporary: &Path,
        key: &str,
        name: impl Fn(&Path, &Path) -> ilion_env::Result<()>,
    ) -> ilion_env::Result<()> {
        let path = self.path_of(key);
        let parent = path.parent().unwrap_or(&self.root);
        self.env.create_dir_all(parent)?;
        name(temporary, &path)?;
        self.env.sync_dir(parent)
    }

    fn list_below(&self, directory: &Path, key: &str, found: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let entries = match self.env.list(directory) {
            Err(error) if error.is_not_found() => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let key = format!("{key}/{}", entry.name);
            match entry.is_dir {
                true => self.list_below(&directory.join(&entry.name), &key, found)?,
                false => found(&key, entry.size_bytes),
            }
        }
        Ok(())
    }
}

impl Place for Directory {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn list(&self, prefix: &str, found: &mut dyn FnMut(&str, u64)) -> Result<()> {
        self.list_below(&self.path_of(prefix), prefix, found)
    }

    fn read(&self, key: &str, bytes_max: u64) -> Result<Option<Bytes>> {
        let path = self.path_of(key);
        let size_bytes = match self.env.file_size(&path) {
            Err(error) if error.is_not_found() => return Ok(None),
            size => size?,
        };
        if size_bytes > bytes_max {
            let problem = format!("has {size_bytes} bytes, more than {bytes_max}");
            return Err(Error::damaged(key, problem));
        }
        match self.env.read_all(&path, bytes_max) {
            Err(error) if error.is_not_found() => Ok(None),
            bytes => Ok(Some(Bytes::from(bytes?))),
        }
    }

    fn write(&self, key: &str, bytes: Bytes) -> Result<()> {
        let temporary = self.write_temporary(&bytes)?;
        Ok(self.name_it(&temporary, key, |from, to| self.env.rename(from, to))?)
    }

    fn write_new(&self, key: &str, bytes: Bytes) -> Result<bool> {
        let temporary = self.write_temporary(&bytes)?;
        let linked = self.name_it(&temporary, key, |from, to| self.env.hard_link(from, to));
        self.env.remove_file_if_any(&temporary)?;
        match linked {
            Err(error) if error.is_already_exists() => Ok(false),
            linked => Ok(linked.map(|()| true)?),
        }
    }

    fn remove(&self, key: &str) -> Result<()> {
        let path = self.path_of(key);
        self.env.remove_file_if_any(&path)?;
        match self.env.sync_dir(path.parent().unwrap_or(&self.root)) {
            Err(error) if error.is_not_found() => Ok(()),
            synced => Ok(synced?),
        }
    }
}
