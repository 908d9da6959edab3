//! A disk in memory that can lose power.
//!
//! Files keep their synced content beside their written content, and directories their synced names; [`MemEnv::crash`] returns
//! a new disk with what survives. The clock is set by hand, and advances one microsecond per call; randomness comes from a
//! seed. So a single-threaded test runs the same way each time.

mod crash;
mod disk;
mod file;
mod handle;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

pub use crash::CrashRule;
use disk::{Disk, Node};
use file::MemFile;
use handle::{MemReadFile, MemWriteFile};

use crate::account::{FileTag, Timer};
use crate::door::{DirEntry, Env, FileLock, ReadFile, WriteFile};
use crate::{Error, Ids, Result, Seeded};

const START_MICROS: i64 = 1_700_000_000_000_000;

/// An in-memory disk; clones are handles to the same disk.
#[derive(Clone)]
pub struct MemEnv {
    shared: Arc<Shared>,
}

/// A sync before or after it takes effect, or a rename; passed to the hook of [`MemEnv::on_sync`].
#[derive(Clone, Debug)]
pub struct SyncEvent {
    /// Number of syncs started so far, including this one.
    pub number: u64,
    /// Before or after it takes effect.
    pub moment: Moment,
    /// The file or directory.
    pub path: PathBuf,
}

/// When the hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The sync has not made anything durable yet.
    BeforeSync,
    /// The sync has taken effect, but has not returned.
    AfterSync,
    /// A file was renamed, which is not durable yet. The number is that of the last sync.
    AfterRename,
}

type SyncHook = Arc<dyn Fn(&MemEnv, &SyncEvent) + Send + Sync>;

/// Counts the reads of a disk.
#[derive(Default)]
struct Served {
    reads: AtomicU64,
    bytes: AtomicU64,
}

struct Shared {
    disk: Mutex<Disk>,
    /// Held shared by every change of a file, and exclusively while a crash copies all of them, so that a power loss is one
    /// instant.
    instant: RwLock<()>,
    locked: Mutex<BTreeSet<PathBuf>>,
    hook: Mutex<Option<SyncHook>>,
    syncs: AtomicU64,
    served: Arc<Served>,
    capacity_bytes: AtomicU64,
    /// Advances by itself; the wall clock is this plus `steps_micros`.
    clock_micros: AtomicI64,
    steps_micros: AtomicI64,
    random: Mutex<Seeded>,
    ids: Ids,
}

impl MemEnv {
    /// An empty disk; `seed` determines its randomness.
    pub fn new(seed: u64) -> Self {
        Self::with_disk(Disk::default(), Seeded::new(seed), START_MICROS)
    }

    fn with_disk(disk: Disk, mut random: Seeded, now_micros: i64) -> Self {
        let shared = Shared {
            disk: Mutex::new(disk),
            instant: RwLock::new(()),
            locked: Mutex::default(),
            hook: Mutex::default(),
            syncs: AtomicU64::new(0),
            served: Arc::default(),
            capacity_bytes: AtomicU64::new(u64::MAX),
            clock_micros: AtomicI64::new(now_micros),
            steps_micros: AtomicI64::new(0),
            ids: Ids::new(random.next_u64().to_be_bytes()),
            random: Mutex::new(random),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// This disk as an `Arc<dyn Env>`.
    pub fn shared(&self) -> Arc<dyn Env> {
        Arc::new(self.clone())
    }

    /// The disk as a power loss at this instant would leave it. This disk stays as it is; the new one has no locks and no hook.
    pub fn crash(&self, rule: CrashRule) -> Self {
        let instant = self.shared.instant.write();
        let disk = crash::survivors(&self.shared.disk.lock(), rule);
        drop(instant);
        let now_micros = self.shared.clock_micros.load(Relaxed) + 1_000_000;
        let mut random = self.shared.random.lock().clone();
        random.next_u64();
        let after = Self::with_disk(disk, random, now_micros);
        after.step_clock(self.shared.steps_micros.load(Relaxed));
        after.shared.capacity_bytes.store(self.capacity_bytes(), Relaxed);
        after
    }

    /// Calls the hook before and after every sync of a file or directory, and after every rename. It runs on the calling thread
    /// without locks, so it may call [`MemEnv::crash`].
    pub fn on_sync(&self, hook: impl Fn(&Self, &SyncEvent) + Send + Sync + 'static) {
        *self.shared.hook.lock() = Some(Arc::new(hook));
    }

    /// Number of syncs started.
    pub fn sync_count(&self) -> u64 {
        self.shared.syncs.load(Relaxed)
    }

    /// Number of reads of files on this disk, and their bytes. Counted independently of [`crate::account`], so that tests can
    /// compare.
    pub fn served(&self) -> (u64, u64) {
        let served = &self.shared.served;
        (served.reads.load(Relaxed), served.bytes.load(Relaxed))
    }

    /// Steps the wall clock, as an operator or a time server does; the monotonic clock does not step.
    pub fn step_clock(&self, by_micros: i64) {
        self.shared.steps_micros.fetch_add(by_micros, Relaxed);
    }

    /// Sets both clocks.
    pub fn set_micros(&self, now_micros: i64) {
        self.shared.clock_micros.store(now_micros, Relaxed);
    }

    /// Advances both clocks.
    pub fn advance_micros(&self, by_micros: i64) {
        self.shared.clock_micros.fetch_add(by_micros, Relaxed);
    }

    /// Sets the capacity of the disk; writes beyond it fail with no space left.
    pub fn set_capacity_bytes(&self, capacity_bytes: u64) {
        self.shared.capacity_bytes.store(capacity_bytes, Relaxed);
    }

    /// The capacity of the disk; [`u64::MAX`] if it has no limit.
    pub fn capacity_bytes(&self) -> u64 {
        self.shared.capacity_bytes.load(Relaxed)
    }

    /// Changes a byte of a file, durably: bit rot.
    pub fn corrupt_byte(&self, path: &Path, offset: u64, xor: u8) -> Result<()> {
        self.find_file(path, "corrupt")?.corrupt_byte(offset, xor);
        Ok(())
    }

    /// Runs a sync between the two calls of the hook.
    fn syncing(&self, file_tag: FileTag, path: &Path, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let timer = Timer::start();
        let number = self.shared.syncs.fetch_add(1, Relaxed) + 1;
        self.call_hook(number, Moment::BeforeSync, path);
        let synced = sync();
        self.call_hook(number, Moment::AfterSync, path);
        timer.sync_done(file_tag, path);
        synced
    }

    fn call_hook(&self, number: u64, moment: Moment, path: &Path) {
        let hook = self.shared.hook.lock().clone();
        if let Some(hook) = hook {
            let path = path.to_path_buf();
            hook(self, &SyncEvent { number, moment, path });
        }
    }

    /// Runs a change or sync of a file, but not during a crash.
    fn changing(&self, change: impl FnOnce()) {
        let _instant = self.shared.instant.read();
        change();
    }

    fn has_space(&self, more_bytes: u64) -> bool {
        let capacity = self.capacity_bytes();
        capacity == u64::MAX || self.shared.disk.lock().used_bytes().saturating_add(more_bytes) <= capacity
    }

    fn find_file(&self, path: &Path, action: &'static str) -> Result<Arc<MemFile>> {
        match self.shared.disk.lock().find(path) {
            Ok(Node::File(file)) => Ok(file),
            Ok(Node::Dir(_)) => Err(Error::new(action, path, std::io::ErrorKind::IsADirectory.into())),
            Err(kind) => Err(Error::new(action, path, kind.into())),
        }
    }

    fn on_disk<T>(
        &self,
        action: &'static str,
        path: &Path,
        run: impl FnOnce(&mut Disk) -> disk::Outcome<T>,
    ) -> Result<T> {
        run(&mut self.shared.disk.lock()).map_err(|kind| Error::new(action, path, kind.into()))
    }

    fn writer(&self, file: Arc<MemFile>, path: &Path) -> Box<dyn WriteFile> {
        Box::new(MemWriteFile::new(self.clone(), file, path))
    }
}

impl Env for MemEnv {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let file = self.find_file(path, "open")?;
        Ok(Arc::new(MemReadFile::new(file, path, &self.shared.served)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.on_disk("create", path, |disk| disk.create_new(path))?;
        Ok(self.writer(file, path))
    }

    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.on_disk("create", path, |disk| disk.create(path))?;
        self.changing(|| file.truncate(0));
        Ok(self.writer(file, path))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.on_disk("open", path, |disk| disk.create(path))?;
        Ok(self.writer(file, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.on_disk("rename", from, |disk| disk.rename(from, to))?;
        self.call_hook(self.sync_count(), Moment::AfterRename, to);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.on_disk("link", to, |disk| disk.hard_link(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.on_disk("remove", path, |disk| disk.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.on_disk("remove", path, |disk| disk.remove_dir(path))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.on_disk("remove", path, |disk| disk.remove_dir_all(path))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.on_disk("create directory", path, |disk| disk.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.on_disk("list", path, |disk| disk.list(path))
    }

    fn exists(&self, path: &Path) -> bool {
        self.shared.disk.lock().find(path).is_ok()
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        Ok(self.find_file(path, "read the size of")?.size_bytes())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.syncing(FileTag::directory(), path, || {
            self.on_disk("sync directory", path, |disk| disk.sync_dir(path))
        })
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.on_disk("open", path, |disk| disk.create(path))?;
        if !self.shared.locked.lock().insert(path.to_path_buf()) {
            return Err(Error::new("lock", path, std::io::ErrorKind::WouldBlock.into()));
        }
        Ok(Box::new(MemLock {
            shared: Arc::clone(&self.shared),
            path: path.to_path_buf(),
        }))
    }

    fn free_space_bytes(&self, _path: &Path) -> Result<u64> {
        let used = self.shared.disk.lock().used_bytes();
        Ok(self.shared.capacity_bytes.load(Relaxed).saturating_sub(used))
    }

    fn total_space_bytes(&self, _path: &Path) -> Result<u64> {
        Ok(self.shared.capacity_bytes.load(Relaxed))
    }

    fn now_micros(&self) -> i64 {
        let now_micros = self.shared.clock_micros.fetch_add(1, Relaxed);
        now_micros.saturating_add(self.shared.steps_micros.load(Relaxed))
    }

    fn monotonic_nanos(&self) -> u64 {
        let now_micros = self.shared.clock_micros.fetch_add(1, Relaxed);
        let since = now_micros.saturating_sub(START_MICROS);
        u64::try_from(since).unwrap_or(0).saturating_mul(1000)
    }

    fn unique_micros(&self) -> i64 {
        self.shared.ids.unique_micros(self.now_micros())
    }

    fn last_unique_micros(&self) -> i64 {
        self.shared.ids.last_micros()
    }

    fn raise_unique_micros(&self, floor_micros: i64) {
        self.shared.ids.raise(floor_micros);
    }

    fn time_uuid(&self) -> Uuid {
        self.shared.ids.time_uuid(self.now_micros())
    }

    fn random_bytes(&self, into: &mut [u8]) {
        self.shared.random.lock().fill(into);
    }
}

struct MemLock {
    shared: Arc<Shared>,
    path: PathBuf,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.shared.locked.lock().remove(&self.path);
    }
}
