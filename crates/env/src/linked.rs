//! [`LinkedEnv`]: a directory in memory, in which some files are those of another environment, which are only read.
//!
//! So an engine can open files that must not change, such as the SSTables of a backup on a read-only disk: whatever it creates, renames or
//! removes is in memory. Each linked file has an empty file of its name in memory; so names are kept in one place only.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::door::{DirEntry, Env, FileLock, ReadFile, WriteFile};
use crate::{Error, MemEnv, Result};

/// A directory in memory with links to files of another environment. Paths outside of the directory are those of the other environment,
/// for reads only.
pub struct LinkedEnv {
    root: PathBuf,
    memory: MemEnv,
    below: Arc<dyn Env>,
    /// Path in memory -> path below. Held only for look-ups and changes, never during I/O.
    links: Mutex<BTreeMap<PathBuf, PathBuf>>,
}

impl LinkedEnv {
    /// An empty directory of this name, which needs not exist.
    pub fn new(root: &Path, below: Arc<dyn Env>) -> Self {
        Self {
            root: root.to_path_buf(),
            memory: MemEnv::new(below.random_u64()),
            below,
            links: Mutex::default(),
        }
    }

    /// Gives a file of the other environment a name in this directory.
    ///
    /// # Errors
    /// The name exists, or has no parent.
    pub fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.check("link", to)?;
        drop(self.memory.create(to)?);
        self.links.lock().insert(to.to_path_buf(), from.to_path_buf());
        Ok(())
    }

    fn linked(&self, path: &Path) -> Option<PathBuf> {
        self.links.lock().get(path).cloned()
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    /// Refuses a change of a file outside of the directory.
    fn check(&self, action: &'static str, path: &Path) -> Result<()> {
        match self.is_ours(path) {
            true => Ok(()),
            false => Err(Error::new(action, path, io::ErrorKind::ReadOnlyFilesystem.into())),
        }
    }

    /// The path in memory of a file that is about to be written. A linked one is refused.
    fn check_written(&self, action: &'static str, path: &Path) -> Result<()> {
        self.check(action, path)?;
        match self.linked(path) {
            None => Ok(()),
            Some(_) => Err(Error::new(action, path, io::ErrorKind::ReadOnlyFilesystem.into())),
        }
    }

    /// Renames a linked file, or all linked files below a directory.
    fn move_links(&self, from: &Path, to: &Path) {
        let mut links = self.links.lock();
        // A file that had the new name is replaced.
        links.remove(to);
        let moved: Vec<PathBuf> = links
            .keys()
            .filter(|path| path.starts_with(from))
            .cloned()
            .collect();
        for old in moved {
            let rest = old.strip_prefix(from).unwrap_or(Path::new(""));
            let new = match rest.as_os_str().is_empty() {
                true => to.to_path_buf(),
                false => to.join(rest),
            };
            if let Some(target) = links.remove(&old) {
                links.insert(new, target);
            }
        }
    }
}

impl Env for LinkedEnv {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        match self.linked(path) {
            Some(path) => self.below.open_read(&path),
            None if self.is_ours(path) => self.memory.open_read(path),
            None => self.below.open_read(path),
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.check_written("create", path)?;
        self.memory.create(path)
    }

    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.check_written("create", path)?;
        self.memory.create_or_truncate(path)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.check_written("open", path)?;
        self.memory.open_append(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.check("rename", from)?;
        self.check("rename", to)?;
        self.memory.rename(from, to)?;
        self.move_links(from, to);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.check("link", to)?;
        self.memory.hard_link(from, to)?;
        if let Some(target) = self.linked(from) {
            self.links.lock().insert(to.to_path_buf(), target);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.check("remove", path)?;
        self.memory.remove_file(path)?;
        self.links.lock().remove(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.check("remove", path)?;
        self.memory.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.check("remove", path)?;
        self.memory.remove_dir_all(path)?;
        self.links.lock().retain(|linked, _| !linked.starts_with(path));
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.check("create directory", path)?;
        self.memory.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>> {
        match self.is_ours(path) {
            true => self.memory.list(path),
            false => self.below.list(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        match self.is_ours(path) {
            true => self.memory.exists(path),
            false => self.below.exists(path),
        }
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        match self.linked(path) {
            Some(path) => self.below.file_size(&path),
            None if self.is_ours(path) => self.memory.file_size(path),
            None => self.below.file_size(path),
        }
    }

    fn modified_secs(&self, path: &Path) -> Result<i64> {
        match self.linked(path) {
            Some(path) => self.below.modified_secs(&path),
            None if self.is_ours(path) => Ok(self.now_secs()),
            None => self.below.modified_secs(path),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.check("sync directory", path)?;
        self.memory.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.check_written("lock", path)?;
        self.memory.lock(path)
    }

    fn free_space_bytes(&self, path: &Path) -> Result<u64> {
        self.memory.free_space_bytes(path)
    }

    fn total_space_bytes(&self, path: &Path) -> Result<u64> {
        self.memory.total_space_bytes(path)
    }

    fn now_micros(&self) -> i64 {
        self.below.now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.below.monotonic_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.below.thread_cpu_nanos()
    }

    fn unique_micros(&self) -> i64 {
        self.below.unique_micros()
    }

    fn last_unique_micros(&self) -> i64 {
        self.below.last_unique_micros()
    }

    fn raise_unique_micros(&self, floor_micros: i64) {
        self.below.raise_unique_micros(floor_micros);
    }

    fn time_uuid(&self) -> Uuid {
        self.below.time_uuid()
    }

    fn random_bytes(&self, into: &mut [u8]) {
        self.below.random_bytes(into);
    }

    fn yield_to_others(&self) {
        self.below.yield_to_others();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

    use super::*;

    fn write(env: &dyn Env, path: &str, text: &str) {
        let mut file = env.create(Path::new(path)).unwrap();
        file.append(text.as_bytes()).unwrap();
        file.sync().unwrap();
    }

    fn read(env: &dyn Env, path: &str) -> String {
        String::from_utf8(env.read_all(Path::new(path), 100).unwrap()).unwrap()
    }

    fn names(env: &dyn Env, path: &str) -> Vec<String> {
        let entries = env.list(Path::new(path)).unwrap().into_iter();
        entries.map(|entry| entry.name).collect()
    }

    /// A disk with `/foreign/a`, and a directory `/own` in which it is `/own/x/a`.
    fn linked() -> (MemEnv, LinkedEnv) {
        let below = MemEnv::new(1);
        below.create_dir_all(Path::new("/foreign")).unwrap();
        write(&below, "/foreign/a", "of below");
        let env = LinkedEnv::new(Path::new("/own"), below.shared());
        env.create_dir_all(Path::new("/own/x")).unwrap();
        env.link(Path::new("/foreign/a"), Path::new("/own/x/a")).unwrap();
        (below, env)
    }

    #[test]
    fn a_linked_file_is_read_and_other_files_are_in_memory() {
        let (below, env) = linked();
        write(&env, "/own/x/b", "own");
        assert_eq!(names(&env, "/own/x"), ["a", "b"]);
        assert_eq!(read(&env, "/own/x/a"), "of below");
        assert_eq!(env.file_size(Path::new("/own/x/a")).unwrap(), 8);
        assert_eq!(read(&env, "/own/x/b"), "own");
        assert!(!below.exists(Path::new("/own")));
    }

    #[test]
    fn renames_links_and_removals_change_names_only() {
        let (below, env) = linked();
        env.hard_link(Path::new("/own/x/a"), Path::new("/own/x/b"))
            .unwrap();
        env.rename(Path::new("/own/x/a"), Path::new("/own/x/c")).unwrap();
        env.rename(Path::new("/own/x"), Path::new("/own/y")).unwrap();
        assert_eq!(names(&env, "/own/y"), ["b", "c"]);
        assert_eq!(read(&env, "/own/y/b"), "of below");
        assert_eq!(read(&env, "/own/y/c"), "of below");
        env.remove_file(Path::new("/own/y/b")).unwrap();
        write(&env, "/own/y/b", "own");
        assert_eq!(read(&env, "/own/y/b"), "own");
        env.rename(Path::new("/own/y/b"), Path::new("/own/y/c")).unwrap();
        assert_eq!(read(&env, "/own/y/c"), "own");
        env.remove_dir_all(Path::new("/own/y")).unwrap();
        assert_eq!(read(&below, "/foreign/a"), "of below");
    }

    #[test]
    fn what_would_change_the_other_environment_is_refused() {
        let (below, env) = linked();
        let of_below = Path::new("/foreign/a");
        for linked in [Path::new("/own/x/a"), of_below] {
            assert!(env.create_or_truncate(linked).is_err());
            assert!(env.open_append(linked).is_err());
            assert!(env.write_atomically(of_below, b"new").is_err());
        }
        assert!(env.remove_file(of_below).is_err());
        assert!(env.rename(of_below, Path::new("/own/x/z")).is_err());
        assert!(env.rename(Path::new("/own/x/a"), of_below).is_err());
        assert!(env.create_dir_all(Path::new("/foreign/b")).is_err());
        assert!(env.remove_dir_all(Path::new("/foreign")).is_err());
        assert_eq!(read(&env, "/foreign/a"), "of below");
        assert_eq!(names(&below, "/foreign"), ["a"]);
    }
}
