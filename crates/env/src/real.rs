//! The operating system's files, clock and randomness.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::account::{FileTag, IoTarget, Timer};
use crate::door::{Access, DirEntry, Env, FileLock, ReadFile, SyncFile, WriteFile, missing_dirs, parent_of};
use crate::error::{SYNC, SYNC_DIRECTORY};
use crate::mapped_writes::MappedWrites;
use crate::{Error, Ids, Result, Scratch};

/// Niceness of background threads: they get a tenth of a processor that request threads compete for.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 10;

/// The operating system.
#[derive(Debug)]
pub struct RealEnv {
    ids: Ids,
    started: Instant,
    umask: AtomicU32,
}

/// By default, files and directories are accessible to their owner only.
const UMASK_DEFAULT: u32 = 0o077;

impl RealEnv {
    /// Access to the operating system.
    pub fn new() -> Arc<Self> {
        let mut node = [0; 8];
        fill_random(&mut node);
        Arc::new(Self {
            ids: Ids::new(node),
            started: Instant::now(),
            umask: AtomicU32::new(UMASK_DEFAULT),
        })
    }

    /// Permissions to remove from new files and directories, beside the umask of the process. Owner, group and others have
    /// three bits each.
    pub fn set_umask(&self, umask: u32) {
        self.umask.store(umask, Relaxed);
    }

    fn to_write(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.mode(0o666 & !self.umask.load(Relaxed));
        options
    }
}

impl Env for RealEnv {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let file = File::open(path).map_err(|source| Error::new("open", path, source))?;
        let size_bytes = file
            .metadata()
            .map_err(|source| Error::new("read the size of", path, source))?
            .len();
        Ok(Arc::new(RealReadFile {
            file,
            size_bytes,
            file_tag: FileTag::of(path),
            path: path.to_path_buf(),
        }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.to_write().create_new(true).open(path);
        writer(file, "create", path)
    }

    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.to_write().create(true).truncate(true).open(path);
        writer(file, "create", path)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let file = self.to_write().create(true).truncate(false).open(path);
        writer(file, "open", path)
    }

    fn open_append_private(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let mut options = self.to_write();
        options.mode(0o600);
        writer(options.create(true).truncate(false).open(path), "open", path)
    }

    fn write_private(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        // An existing file would keep its permissions, so it is removed first.
        let _ = fs::remove_file(&temporary);
        let mut options = self.to_write();
        options.mode(0o600);
        let mut file = writer(options.create_new(true).open(&temporary), "create", &temporary)?;
        file.append(content)?;
        file.sync()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(parent_of(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|source| Error::new("rename", from, source))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|source| Error::new("link", to, source))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|source| Error::new("remove", path, source))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|source| Error::new("remove", path, source))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        fs::remove_dir_all(path).map_err(|source| Error::new("remove", path, source))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let missing = missing_dirs(path, Path::is_dir);
        let mut made = fs::DirBuilder::new();
        made.recursive(true).mode(0o777 & !self.umask.load(Relaxed));
        made.create(path)
            .map_err(|source| Error::new("create directory", path, source))?;
        missing.iter().try_for_each(|dir| self.sync_dir(parent_of(dir)))
    }

    fn create_private_dir_all(&self, path: &Path) -> Result<()> {
        let parent = parent_of(path);
        self.create_dir_all(parent)?;
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => self.sync_dir(parent),
            Err(_) if path.is_dir() => Ok(()),
            Err(source) => Err(Error::new("create directory", path, source)),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let failed = |source| Error::new("list", path, source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match fs::metadata(entry.path()) {
                Ok(found) if found.is_dir() => entries.push(DirEntry {
                    name,
                    is_dir: true,
                    size_bytes: 0,
                }),
                Ok(found) => entries.push(DirEntry {
                    name,
                    is_dir: false,
                    size_bytes: found.len(),
                }),
                // The file was removed during the listing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        Ok(fs::metadata(path)
            .map_err(|source| Error::new("read the size of", path, source))?
            .len())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let timer = Timer::start();
        // If the directory cannot be opened, no sync was attempted: the caller may try again.
        let dir = File::open(path).map_err(|source| Error::new("open", path, source))?;
        let synced = dir.sync_all();
        timer.sync_done(FileTag::directory(), path);
        synced.map_err(|source| Error::new(SYNC_DIRECTORY, path, source))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let file = self.to_write().create(true).truncate(false).open(path);
        let file = file.map_err(|source| Error::new("open", path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(Error::new("lock", path, io::ErrorKind::WouldBlock.into())),
            Err(TryLockError::Error(source)) => Err(Error::new("lock", path, source)),
        }
    }

    fn modified_secs(&self, path: &Path) -> Result<i64> {
        let modified = std::fs::metadata(path).and_then(|found| found.modified());
        let modified =
            modified.map_err(|source| Error::new("read the modification time of", path, source))?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    fn free_space_bytes(&self, path: &Path) -> Result<u64> {
        let found = rustix::fs::statvfs(path)
            .map_err(|errno| Error::new("read the free space of", path, errno.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn total_space_bytes(&self, path: &Path) -> Result<u64> {
        let found =
            rustix::fs::statvfs(path).map_err(|errno| Error::new("read the size of", path, errno.into()))?;
        Ok(found.f_blocks.saturating_mul(found.f_frsize))
    }

    fn scratch(&self, directory: &Path) -> Scratch {
        Scratch::in_directory(directory)
    }

    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    #[cfg(target_os = "linux")]
    fn thread_cpu_nanos(&self) -> u64 {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        u64::try_from(used.tv_sec * 1_000_000_000 + used.tv_nsec).unwrap_or(0)
    }

    fn unique_micros(&self) -> i64 {
        self.ids.unique_micros(self.now_micros())
    }

    fn last_unique_micros(&self) -> i64 {
        self.ids.last_micros()
    }

    fn raise_unique_micros(&self, floor_micros: i64) {
        self.ids.raise(floor_micros);
    }

    fn time_uuid(&self) -> Uuid {
        self.ids.time_uuid(self.now_micros())
    }

    fn random_bytes(&self, into: &mut [u8]) {
        fill_random(into);
    }

    fn yield_to_others(&self) {
        // Elsewhere, `nice` would slow the whole process. If it is forbidden, the thread keeps its priority.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(BACKGROUND_NICENESS);
    }
}

/// Version 4 UUIDs are random bytes of the system, with fixed bits in bytes 6 and 8; the other fourteen bytes are used here.
fn fill_random(into: &mut [u8]) {
    for part in into.chunks_mut(14) {
        let id = Uuid::new_v4().into_bytes();
        let random = [&id[..6], &id[7..8], &id[9..]].concat();
        part.copy_from_slice(&random[..part.len()]);
    }
}

struct RealReadFile {
    file: File,
    size_bytes: u64,
    file_tag: FileTag,
    path: PathBuf,
}

impl RealReadFile {
    fn target(&self, offset: u64) -> IoTarget<'_> {
        IoTarget {
            file: self.file_tag,
            path: &self.path,
            offset,
        }
    }
}

impl ReadFile for RealReadFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let timer = Timer::start();
        let read = loop {
            match self.file.read_at(into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        timer.read_done(self.target(offset), *read.as_ref().unwrap_or(&0));
        read.map_err(|source| Error::new("read", &self.path, source))
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(target_os = "linux")]
    fn read_at_once(&self, offset: u64, into: &mut [u8]) -> Result<bool> {
        let timer = Timer::start();
        let read = rustix::io::preadv2(
            &self.file,
            &mut [io::IoSliceMut::new(into)],
            offset,
            rustix::io::ReadWriteFlags::NOWAIT,
        );
        match read {
            Ok(count) if count == into.len() => {
                timer.read_done(self.target(offset), count);
                Ok(true)
            }
            // The file has too few bytes, or some of them are not in memory.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(false),
            // The file system does not know the flag, or the disk has failed.
            Err(_) => self.read_exact_at(offset, into).map(|()| true),
        }
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn count_read(&self, began: Instant, offset: u64, bytes: usize) {
        Timer::started_at(began).read_done(self.target(offset), bytes);
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn data_from(&self, offset: u64) -> Result<Option<u64>> {
        use rustix::io::Errno;
        // Changes the position of the file, which is not used.
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                Ok((offset < self.size_bytes).then_some(offset))
            }
            Err(errno) => Err(Error::new("look for data in", &self.path, errno.into())),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn advise(&self, access: Access) {
        use rustix::fs::Advice;
        let advice = match access {
            Access::Random => Advice::Random,
            Access::Sequential => Advice::Sequential,
            Access::Done => Advice::DontNeed,
        };
        let _ = rustix::fs::fadvise(&self.file, 0, None, advice);
    }
}

fn writer(file: io::Result<File>, action: &'static str, path: &Path) -> Result<Box<dyn WriteFile>> {
    let failed = |source| Error::new(action, path, source);
    let file = file.map_err(failed)?;
    let position = file.metadata().map_err(failed)?.len();
    let shared = Arc::new(RealShared {
        file,
        file_tag: FileTag::of(path),
        path: path.to_path_buf(),
    });
    Ok(Box::new(RealWriteFile {
        shared,
        position,
        reserved_bytes: 0,
        mapped: None,
    }))
}

/// True for a file system on which writes to reserved space never fail for lack of space. Other file systems write to a new place: there,
/// a write through memory could meet a full disk, which kills the process.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn keeps_reserved_space(file: &File) -> bool {
    /// ext2 to ext4, XFS and tmpfs. Not overlayfs: it hides the file system below.
    const MAGIC_NUMBERS: [u64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];
    let found = rustix::fs::fstatfs(file).ok();
    let magic = found.and_then(|found| u64::try_from(found.f_type).ok());
    magic.is_some_and(|magic| MAGIC_NUMBERS.contains(&magic))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn keeps_reserved_space(_file: &File) -> bool {
    false
}

struct RealShared {
    file: File,
    file_tag: FileTag,
    path: PathBuf,
}

impl SyncFile for RealShared {
    fn sync(&self) -> Result<()> {
        let timer = Timer::start();
        let synced = self.file.sync_data();
        timer.sync_done(self.file_tag, &self.path);
        synced.map_err(|source| Error::new(SYNC, &self.path, source))
    }
}

struct RealWriteFile {
    shared: Arc<RealShared>,
    position: u64,
    /// The file system has reserved this many bytes from the start of the file.
    reserved_bytes: u64,
    mapped: Option<MappedWrites>,
}

impl RealWriteFile {
    fn put(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = &self.shared.file;
        match &mut self.mapped {
            // Falls back to write(2) if the mapping fails.
            Some(mapped) if mapped.reach(offset, bytes.len()) => {
                mapped.check_not_cut(file)?;
                mapped
                    .write(file, offset, bytes)
                    .or_else(|_| file.write_all_at(bytes, offset))
            }
            _ => file.write_all_at(bytes, offset),
        }
    }
}

impl WriteFile for RealWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(self.position, bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let timer = Timer::start();
        let written = self.put(offset, bytes);
        let target = IoTarget {
            file: self.shared.file_tag,
            path: &self.shared.path,
            offset,
        };
        timer.write_done(target, bytes.len());
        written.map_err(|source| Error::new("write", &self.shared.path, source))
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.sync()
    }

    fn preallocate(&mut self, size_bytes: u64) -> Result<()> {
        let failed = |source| Error::new("reserve space for", &self.shared.path, source);
        let file = &self.shared.file;
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size_bytes) {
            Ok(()) => {
                if keeps_reserved_space(file) {
                    self.reserved_bytes = self.reserved_bytes.max(size_bytes);
                }
                Ok(())
            }
            // File systems that cannot reserve space at least get a file of zeros.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                if file.metadata().map_err(failed)?.len() < size_bytes {
                    file.set_len(size_bytes).map_err(failed)?;
                }
                Ok(())
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    fn write_by_memory(&mut self) {
        if self.reserved_bytes > 0 {
            self.mapped = Some(MappedWrites::new(self.reserved_bytes));
        }
    }

    fn truncate(&mut self, size_bytes: u64) -> Result<()> {
        // No mapping may exist beyond the end of the file.
        self.mapped = None;
        self.reserved_bytes = self.reserved_bytes.min(size_bytes);
        let failed = |source| Error::new("truncate", &self.shared.path, source);
        self.shared.file.set_len(size_bytes).map_err(failed)?;
        self.position = self.position.min(size_bytes);
        Ok(())
    }

    fn sync_handle(&self) -> Arc<dyn SyncFile> {
        Arc::clone(&self.shared) as Arc<dyn SyncFile>
    }

    fn path(&self) -> &Path {
        &self.shared.path
    }
}

/// The operating system holds the lock while the file is open.
struct RealLock {
    _file: File,
}

impl FileLock for RealLock {}
