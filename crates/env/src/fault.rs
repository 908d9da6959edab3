//! Fault injection for any other `Env`: the n-th call that matches a rule fails, is delayed, torn or corrupted.

mod rule;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustix::io::Errno;
use uuid::Uuid;

pub use rule::{Effect, Operation, Rule, RuleError};

use crate::door::{Access, DirEntry, Env, FileLock, ReadFile, SyncFile, WriteFile};
use crate::error::{SYNC, SYNC_DIRECTORY};
use crate::scratch::Faults;
use crate::{Error, Result, Scratch};

/// An `Env` with fault rules, which may be added at any time.
pub struct FaultEnv {
    inner: Arc<dyn Env>,
    rules: Arc<Rules>,
}

impl FaultEnv {
    /// Passes all calls through until a rule is added.
    pub fn new(inner: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            rules: Arc::default(),
        })
    }

    /// Adds a rule such as `fail write "*-Index.db" at 3` (see [`Rule::parse`]); it counts the calls from now on.
    pub fn add(&self, rule: &str) -> std::result::Result<(), RuleError> {
        self.rules.list.write().push(Rule::parse(rule)?);
        Ok(())
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules.list.write().clear();
    }

    fn pass(&self, operation: Operation, action: &'static str, path: &Path) -> Result<()> {
        match self.rules.effect(operation, path) {
            None => Ok(()),
            Some(effect) => effect_without_bytes(effect, action, path),
        }
    }
}

#[derive(Default)]
struct Rules {
    list: RwLock<Vec<Rule>>,
}

impl Rules {
    /// The effect of the first rule that is due. Every matching rule counts the call.
    fn effect(&self, operation: Operation, path: &Path) -> Option<Effect> {
        let mut due = None;
        for rule in self.list.read().iter() {
            let hit = rule.hit(operation, path);
            due = due.or(hit);
        }
        due
    }
}

/// Torn writes and flipped bits need bytes; for other operations they are simple failures.
fn effect_without_bytes(effect: Effect, action: &'static str, path: &Path) -> Result<()> {
    match effect {
        Effect::Delay { millis } => {
            std::thread::sleep(Duration::from_millis(millis));
            Ok(())
        }
        Effect::Wait => Ok(()),
        Effect::NoSpace | Effect::FullMidway => Err(refusal(action, path, Errno::NOSPC)),
        // The call that needs a descriptor is the open, even for a sync or listing of a directory.
        Effect::NoDescriptors => Err(refusal("open", path, Errno::MFILE)),
        Effect::NoMemory => Err(refusal(action, path, Errno::NOMEM)),
        Effect::Fail | Effect::ShortWrite | Effect::BitFlip => Err(failure(action, path)),
    }
}

fn failure(action: &'static str, path: &Path) -> Error {
    refusal(action, path, Errno::IO)
}

fn refusal(action: &'static str, path: &Path, errno: Errno) -> Error {
    Error::new(action, path, errno.into())
}

fn flip_middle_bit(bytes: &mut [u8]) {
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 0x10;
    }
}

impl Env for FaultEnv {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.pass(Operation::Open, "open", path)?;
        Ok(Arc::new(FaultReadFile {
            inner: self.inner.open_read(path)?,
            rules: Arc::clone(&self.rules),
        }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.pass(Operation::Create, "create", path)?;
        Ok(self.wrap(self.inner.create(path)?))
    }

    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.pass(Operation::Create, "create", path)?;
        Ok(self.wrap(self.inner.create_or_truncate(path)?))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.pass(Operation::Open, "open", path)?;
        Ok(self.wrap(self.inner.open_append(path)?))
    }

    fn open_append_private(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.pass(Operation::Open, "open", path)?;
        Ok(self.wrap(self.inner.open_append_private(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.pass(Operation::Rename, "rename", from)?;
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.pass(Operation::Link, "link", to)?;
        self.inner.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.pass(Operation::Remove, "remove", path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.pass(Operation::Remove, "remove", path)?;
        self.inner.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.pass(Operation::Remove, "remove", path)?;
        self.inner.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.pass(Operation::Create, "create directory", path)?;
        self.inner.create_dir_all(path)
    }

    fn create_private_dir_all(&self, path: &Path) -> Result<()> {
        self.pass(Operation::Create, "create directory", path)?;
        self.inner.create_private_dir_all(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.pass(Operation::List, "list", path)?;
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.inner.file_size(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.pass(Operation::SyncDir, SYNC_DIRECTORY, path)?;
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.pass(Operation::Lock, "lock", path)?;
        self.inner.lock(path)
    }

    fn modified_secs(&self, path: &Path) -> Result<i64> {
        self.inner.modified_secs(path)
    }

    fn free_space_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.free_space_bytes(path)
    }

    fn total_space_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.total_space_bytes(path)
    }

    fn scratch(&self, directory: &Path) -> Scratch {
        let rules = Arc::clone(&self.rules);
        let ask = move |operation, path: &Path| match rules.effect(operation, path) {
            None => Ok(()),
            Some(effect) => effect_without_bytes(effect, "write a part of a row to a scratch file in", path),
        };
        self.inner.scratch(directory).with_faults(Faults(Arc::new(ask)))
    }

    fn now_micros(&self) -> i64 {
        self.inner.now_micros()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.inner.monotonic_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.inner.thread_cpu_nanos()
    }

    fn unique_micros(&self) -> i64 {
        self.inner.unique_micros()
    }

    fn last_unique_micros(&self) -> i64 {
        self.inner.last_unique_micros()
    }

    fn raise_unique_micros(&self, floor_micros: i64) {
        self.inner.raise_unique_micros(floor_micros);
    }

    fn time_uuid(&self) -> Uuid {
        self.inner.time_uuid()
    }

    fn random_bytes(&self, into: &mut [u8]) {
        self.inner.random_bytes(into);
    }

    fn yield_to_others(&self) {
        self.inner.yield_to_others();
    }
}

impl FaultEnv {
    fn wrap(&self, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        let path = inner.path().to_path_buf();
        Box::new(FaultWriteFile {
            inner,
            path,
            rules: Arc::clone(&self.rules),
        })
    }
}

struct FaultReadFile {
    inner: Arc<dyn ReadFile>,
    rules: Arc<Rules>,
}

impl ReadFile for FaultReadFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        match self.rules.effect(Operation::Read, self.path()) {
            None => self.inner.read_at(offset, into),
            Some(Effect::BitFlip) => {
                let count = self.inner.read_at(offset, into)?;
                flip_middle_bit(&mut into[..count]);
                Ok(count)
            }
            Some(effect) => {
                effect_without_bytes(effect, "read", self.path())?;
                self.inner.read_at(offset, into)
            }
        }
    }

    fn read_at_once(&self, offset: u64, into: &mut [u8]) -> Result<bool> {
        let list = self.rules.list.read();
        if list.iter().any(|rule| rule.makes_wait(self.path())) {
            return Ok(false);
        }
        drop(list);
        self.read_exact_at(offset, into).map(|()| true)
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        // No descriptor if there is a rule that does more than make this file wait: it may affect the read, and only `read_at` applies it.
        let list = self.rules.list.read();
        match list.iter().all(|rule| rule.makes_wait(self.path())) {
            true => self.inner.descriptor(),
            false => None,
        }
    }

    fn count_read(&self, began: std::time::Instant, offset: u64, bytes: usize) {
        self.inner.count_read(began, offset, bytes);
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn data_from(&self, offset: u64) -> Result<Option<u64>> {
        self.inner.data_from(offset)
    }

    fn advise(&self, access: Access) {
        self.inner.advise(access);
    }
}

struct FaultWriteFile {
    inner: Box<dyn WriteFile>,
    path: PathBuf,
    rules: Arc<Rules>,
}

impl FaultWriteFile {
    /// Writes what the rules allow: all bytes, a changed copy, or the first half followed by an error.
    fn bend(&mut self, bytes: &[u8], write: impl Fn(&mut dyn WriteFile, &[u8]) -> Result<()>) -> Result<()> {
        match self.rules.effect(Operation::Write, &self.path) {
            None => write(&mut *self.inner, bytes),
            Some(Effect::BitFlip) => {
                let mut changed = bytes.to_vec();
                flip_middle_bit(&mut changed);
                write(&mut *self.inner, &changed)
            }
            Some(Effect::ShortWrite) => {
                write(&mut *self.inner, &bytes[..bytes.len() / 2])?;
                Err(failure("write", &self.path))
            }
            Some(Effect::FullMidway) => {
                write(&mut *self.inner, &bytes[..bytes.len() / 2])?;
                Err(refusal("write", &self.path, Errno::NOSPC))
            }
            Some(effect) => {
                effect_without_bytes(effect, "write", &self.path)?;
                write(&mut *self.inner, bytes)
            }
        }
    }
}

impl WriteFile for FaultWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bend(bytes, |file, bytes| file.append(bytes))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.bend(bytes, |file, bytes| file.write_at(offset, bytes))
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn sync(&mut self) -> Result<()> {
        self.sync_handle().sync()
    }

    fn preallocate(&mut self, size_bytes: u64) -> Result<()> {
        if let Some(effect) = self.rules.effect(Operation::Preallocate, &self.path) {
            effect_without_bytes(effect, "reserve space for", &self.path)?;
        }
        self.inner.preallocate(size_bytes)
    }

    fn truncate(&mut self, size_bytes: u64) -> Result<()> {
        self.inner.truncate(size_bytes)
    }

    fn sync_handle(&self) -> Arc<dyn SyncFile> {
        let inner = self.inner.sync_handle();
        Arc::new(FaultSyncFile {
            inner,
            path: self.path.clone(),
            rules: Arc::clone(&self.rules),
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct FaultSyncFile {
    inner: Arc<dyn SyncFile>,
    path: PathBuf,
    rules: Arc<Rules>,
}

impl SyncFile for FaultSyncFile {
    fn sync(&self) -> Result<()> {
        if let Some(effect) = self.rules.effect(Operation::Sync, &self.path) {
            effect_without_bytes(effect, SYNC, &self.path)?;
        }
        self.inner.sync()
    }
}
