//! The traits for all access to files, time and randomness.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::{Error, Result, Scratch};

/// Files, clock and randomness. Used as `Arc<dyn Env>`.
pub trait Env: Send + Sync + 'static {
    /// Opens a file for reads at offsets by many threads.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Creates a file for writing; fails if the name exists.
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Creates a file for writing; an existing one is emptied.
    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Opens a file (created if absent) for appending.
    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// Renames a file or directory; replaces a file of the new name. Durable after `sync_dir` of both parents.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Gives a file a second name. Fails if the name exists.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file's name; open handles stay usable.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Removes a file's name if it exists. For files that another thread may be removing at the same time.
    fn remove_file_if_any(&self, path: &Path) -> Result<()> {
        match self.remove_file(path) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Removes a directory and everything below it.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;
    /// Creates a directory and its parents. Durable when it returns; an existing directory is no error.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<DirEntry>>;
    /// Whether the path names a file or directory.
    fn exists(&self, path: &Path) -> bool;
    /// The size of a file.
    fn file_size(&self, path: &Path) -> Result<u64>;
    /// Time of the last write, in seconds since 1970 by the clock of the file system; the current time if that is unknown.
    fn modified_secs(&self, _path: &Path) -> Result<i64> {
        Ok(self.now_secs())
    }
    /// Makes the creates, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Takes an exclusive lock on a file (created if absent) until it is dropped. Fails with [`Error::is_locked`] if another
    /// process or handle holds the lock.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;
    /// Space that an ordinary user may still write on the path's file system.
    fn free_space_bytes(&self, path: &Path) -> Result<u64>;
    /// Size of the path's file system.
    fn total_space_bytes(&self, path: &Path) -> Result<u64>;

    /// A [`Scratch`] that keeps bytes in files of this directory's file system, if there is one, instead of in memory.
    fn scratch(&self, _directory: &Path) -> Scratch {
        Scratch::default()
    }

    /// Wall clock, in microseconds since 1970.
    fn now_micros(&self) -> i64;
    /// A clock that never steps back, for measuring durations.
    fn monotonic_nanos(&self) -> u64;
    /// Processor time of this thread, for measuring what work costs beside other work; elapsed time where that is unknown.
    fn thread_cpu_nanos(&self) -> u64 {
        self.monotonic_nanos()
    }
    /// The wall clock, made strictly increasing within this process: two calls never return the same timestamp.
    fn unique_micros(&self) -> i64;
    /// The newest result of `unique_micros`, or the floor; `i64::MIN` if there is none.
    fn last_unique_micros(&self) -> i64;
    /// Raises the floor: all later unique timestamps and time UUIDs are above this one, which another process gave out.
    fn raise_unique_micros(&self, floor_micros: i64);
    /// A version 1 UUID, unique and increasing within this process.
    fn time_uuid(&self) -> Uuid;
    /// Fills the buffer with randomness that is good enough for salts and keys.
    fn random_bytes(&self, into: &mut [u8]);

    /// Lowers this thread's priority, for background work. Does nothing where the operating system has no priorities per
    /// thread.
    fn yield_to_others(&self) {}

    /// Wall clock, in seconds since 1970.
    fn now_secs(&self) -> i64 {
        self.now_micros().div_euclid(1_000_000)
    }

    /// A version 4 UUID.
    fn random_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.random_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Eight random bytes.
    fn random_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.random_bytes(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    /// Reads a whole file; fails if it is larger than the limit.
    fn read_all(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let file = self.open_read(path)?;
        let size = file.size_bytes();
        let fits = usize::try_from(size).ok().filter(|_| size <= limit_bytes);
        let Some(size) = fits else {
            let reason = format!("it has {size} bytes, more than the limit of {limit_bytes}");
            return Err(Error::new(
                "read",
                path,
                io::Error::new(io::ErrorKind::FileTooLarge, reason),
            ));
        };
        let mut bytes = vec![0; size];
        file.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Like [`Env::write_atomically`], for a file that only its owner can read, whatever the umask is.
    fn write_private(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.write_atomically(path, content)
    }

    /// Like [`Env::open_append`]; a new file is accessible to its owner only, whatever the umask is.
    fn open_append_private(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.open_append(path)
    }

    /// Like [`Env::create_dir_all`]; a new directory is accessible to its owner only, whatever the umask is. New parents are not private.
    fn create_private_dir_all(&self, path: &Path) -> Result<()> {
        self.create_dir_all(path)
    }

    /// Replaces a small file. A crash leaves the old or the new content. The new content is durable when this returns.
    fn write_atomically(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        let mut file = self.create_or_truncate(&temporary)?;
        file.append(content)?;
        file.sync()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(parent_of(path))
    }
}

/// A file open for reading. Reads take no lock and allocate nothing.
pub trait ReadFile: Send + Sync {
    /// Reads at most the buffer's length; 0 means the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;
    /// The file's size when it was opened.
    fn size_bytes(&self) -> u64;
    /// The path that it was opened by.
    fn path(&self) -> &Path;

    /// Fills the buffer, or fails with [`Error::is_unexpected_end`].
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.read_at(offset.saturating_add(done as u64), &mut into[done..])? {
                0 => {
                    return Err(Error::new(
                        "read",
                        self.path(),
                        io::ErrorKind::UnexpectedEof.into(),
                    ));
                }
                count => done += count,
            }
        }
        Ok(())
    }

    /// Fills the buffer without waiting for the disk; false if that is not possible.
    fn read_at_once(&self, offset: u64, into: &mut [u8]) -> Result<bool> {
        self.read_exact_at(offset, into).map(|()| true)
    }

    /// The file's descriptor, for reads that the kernel carries out in the background. Count them with [`ReadFile::count_read`].
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Counts a read by the file's descriptor that has just ended.
    fn count_read(&self, _began: std::time::Instant, _offset: u64, _bytes: usize) {}

    /// The offset of the next data at or behind `offset`; `None` if the file system knows that only a hole follows. Returns
    /// `offset` if the file system does not know.
    fn data_from(&self, offset: u64) -> Result<Option<u64>> {
        Ok((offset < self.size_bytes()).then_some(offset))
    }

    /// Passes a hint to the kernel how the file will be read; failures are ignored.
    fn advise(&self, _access: Access) {}
}

/// How a file will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Point reads: no read-ahead.
    Random,
    /// From start to end: much read-ahead.
    Sequential,
    /// Not again: its pages may leave the page cache.
    Done,
}

/// A file open for writing by one thread.
pub trait WriteFile: Send {
    /// Writes all bytes at the position and moves the position. When it returns, the kernel has the bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Writes all bytes at the offset; the position stays.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// The offset of the next append.
    fn position(&self) -> u64;
    /// Makes all written bytes durable (fdatasync).
    fn sync(&mut self) -> Result<()>;
    /// Reserves space; grows a shorter file to this size with zeros. The position stays.
    fn preallocate(&mut self, size_bytes: u64) -> Result<()>;
    /// From now on, writes inside the preallocated space need no system call. When a write returns, the kernel has the
    /// bytes, as before. Has no effect where space cannot be reserved.
    fn write_by_memory(&mut self) {}
    /// Cuts the file, or grows it with zeros; a position beyond the new end moves to it.
    fn truncate(&mut self, size_bytes: u64) -> Result<()>;
    /// A handle for another thread, which syncs while this one appends.
    fn sync_handle(&self) -> Arc<dyn SyncFile>;
    /// The path that it was opened by.
    fn path(&self) -> &Path;
}

/// The syncing half of a [`WriteFile`].
pub trait SyncFile: Send + Sync {
    /// Makes durable all bytes that were written before the call.
    fn sync(&self) -> Result<()>;
}

/// An exclusive lock, released when dropped.
pub trait FileLock: Send + Sync {}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name without its directory. Names that are not UTF-8 are not listed: no file of Ilion has one.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// The size of a file, 0 of a directory.
    pub size_bytes: u64,
}

/// The directory that a path is in, to sync it after the path was made, renamed or removed; `.` for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The directories of `path` that do not exist yet, outermost first.
pub(crate) fn missing_dirs(path: &Path, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let is_named = |dir: &&Path| !dir.as_os_str().is_empty();
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .filter(is_named)
        .take_while(|dir| !exists(dir))
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}
