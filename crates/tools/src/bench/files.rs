//! The files of a table in Cassandra's layout, and their state in the page cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use ilion_env::{Access, Env};
use serde::Serialize;

/// Size of the reads that fill the page cache.
const PIECE: usize = 1 << 20;

/// The files of one table.
#[derive(Clone, Debug)]
pub struct TableFiles {
    keyspace: PathBuf,
    /// Prefix of the directory's name: `<table>-`. The id of the table follows.
    prefix: String,
}

/// How much of some files is in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cached {
    /// Bytes of the files.
    pub size_bytes: u64,
    /// Bytes in the page cache; `None` without the tool `fincore`.
    pub cached_bytes: Option<u64>,
}

impl TableFiles {
    /// The files in a node's directory (which contains `data`), or in the `data` directory itself.
    pub fn new(directory: &Path, keyspace: &str, table: &str) -> Self {
        let below = directory.join("data");
        let data = if below.is_dir() {
            below
        } else {
            directory.to_path_buf()
        };
        Self {
            keyspace: data.join(keyspace),
            prefix: format!("{table}-"),
        }
    }

    /// All files, without snapshots and backups.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&self, env: &dyn Env) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        if !env.exists(&self.keyspace) {
            return Ok(files);
        }
        for directory in env.list(&self.keyspace)? {
            if directory.is_dir && directory.name.starts_with(&self.prefix) {
                let path = self.keyspace.join(&directory.name);
                let entries = env.list(&path)?.into_iter().filter(|entry| !entry.is_dir);
                files.extend(entries.map(|entry| path.join(entry.name)));
            }
        }
        Ok(files)
    }

    /// Number of SSTables.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn sstables(&self, env: &dyn Env) -> anyhow::Result<u64> {
        let is_data = |path: &&PathBuf| path.to_string_lossy().ends_with("-Data.db");
        Ok(self.list(env)?.iter().filter(is_data).count() as u64)
    }

    /// Bytes of all files.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn size_bytes(&self, env: &dyn Env) -> anyhow::Result<u64> {
        Ok(size_bytes(env, &self.list(env)?))
    }

    /// Asks the kernel to drop the pages of the files, and returns how much is still cached: mapped and dirty pages stay.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn drop_page_cache(&self, env: &dyn Env) -> anyhow::Result<Cached> {
        Ok(drop_page_cache(env, &self.list(env)?))
    }

    /// Reads the files into the page cache, and returns how much is cached. The kernel may have dropped pages that were not read for a
    /// while (DAMON), even if memory is free.
    ///
    /// # Errors
    /// The directory or a file cannot be read.
    pub fn fill_page_cache(&self, env: &dyn Env) -> anyhow::Result<Cached> {
        let files = self.list(env)?;
        for path in &files {
            read_through(env, path)?;
        }
        Ok(cached(env, &files))
    }
}

/// All files below a directory.
#[derive(Clone, Debug)]
pub struct Tree(PathBuf);

impl Tree {
    /// The files below this directory.
    pub fn new(directory: &Path) -> Self {
        Self(directory.to_path_buf())
    }

    /// Bytes of all files; 0 if the directory does not exist.
    pub fn size_bytes(&self, env: &dyn Env) -> u64 {
        size_bytes(env, &self.list(env).unwrap_or_default())
    }

    /// As [`TableFiles::drop_page_cache`].
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn drop_page_cache(&self, env: &dyn Env) -> anyhow::Result<Cached> {
        Ok(drop_page_cache(env, &self.list(env)?))
    }

    fn list(&self, env: &dyn Env) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut directories = vec![self.0.clone()];
        while let Some(directory) = directories.pop() {
            for entry in env.list(&directory)? {
                let path = directory.join(entry.name);
                match entry.is_dir {
                    true => directories.push(path),
                    false => files.push(path),
                }
            }
        }
        Ok(files)
    }
}

fn drop_page_cache(env: &dyn Env, files: &[PathBuf]) -> Cached {
    for path in files {
        // A compaction may have removed the file meanwhile.
        if let Ok(file) = env.open_read(path) {
            file.advise(Access::Done);
        }
    }
    cached(env, files)
}

/// Reads a file and drops its content.
fn read_through(env: &dyn Env, path: &Path) -> anyhow::Result<()> {
    // A compaction may have removed the file meanwhile.
    let Ok(file) = env.open_read(path) else {
        return Ok(());
    };
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    loop {
        match file.read_at(offset, &mut piece)? {
            0 => return Ok(()),
            count => offset += count as u64,
        }
    }
}

fn cached(env: &dyn Env, files: &[PathBuf]) -> Cached {
    Cached {
        size_bytes: size_bytes(env, files),
        cached_bytes: fincore(files),
    }
}

fn size_bytes(env: &dyn Env, files: &[PathBuf]) -> u64 {
    files.iter().map(|path| env.file_size(path).unwrap_or(0)).sum()
}

/// Bytes in the page cache, by `fincore` of util-linux.
fn fincore(files: &[PathBuf]) -> Option<u64> {
    if files.is_empty() {
        return Some(0);
    }
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--output", "RES"])
        .args(files)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let sizes = text.lines().map(|line| line.trim().parse::<u64>().ok());
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn sstables_are_counted_without_snapshots_and_other_tables() {
        let env = MemEnv::new(1);
        for name in [
            "/d/ks/t-1/nb-1-big-Data.db",
            "/d/ks/t-1/nb-1-big-Index.db",
            "/d/ks/t-1/nb-2-big-Data.db",
            "/d/ks/t-1/snapshots/s/nb-1-big-Data.db",
            "/d/ks/tt-1/nb-1-big-Data.db",
        ] {
            let path = Path::new(name);
            env.create_dir_all(path.parent().unwrap()).unwrap();
            env.create(path).unwrap();
        }
        let files = TableFiles::new(Path::new("/d"), "ks", "t");
        assert_eq!(files.sstables(&env).unwrap(), 2);
        assert_eq!(files.list(&env).unwrap().len(), 3);
        let nothing = TableFiles::new(Path::new("/d"), "other", "t");
        assert_eq!(nothing.sstables(&env).unwrap(), 0);
    }
}
