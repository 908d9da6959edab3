//! The traits through which all files, time and randomness go.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::{Error, Result, Scratch};

/// Files, clock and randomness. Used as `Arc<dyn Env>`.
pub trait Env: Send + Sync + 'static {
    /// Opens a file to be read at offsets by many threads.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Creates a file to be written; fails if the name is taken.
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Creates a file to be written, or empties the one that is there.
    fn create_or_truncate(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Opens a file (created if absent) to be written from its end on.
    fn open_append(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// Gives a file or directory another name, replacing a file that had it. Durable after `sync_dir` of
    /// both parents.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Gives a file a second name. Fails if the name is taken.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file's name; open handles stay usable.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Removes a directory and everything below it.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;
    /// Creates a directory and its parents. Durable when it returns; no error if it is there already.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<DirEntry>>;
    /// Whether the path names a file or directory.
    fn exists(&self, path: &Path) -> bool;
    /// The size of a file.
    fn file_size(&self, path: &Path) -> Result<u64>;
    /// When a file was last written, in seconds since 1970 by the clock of its file system; now where that is not known.
    fn modified_secs(&self, _path: &Path) -> Result<i64> {
        Ok(self.now_secs())
    }
    /// Makes the creates, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Takes an exclusive lock on a file (created if absent), held until dropped; an error
    /// ([`Error::is_locked`]) if somebody else holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;
    /// How much an ordinary user may still write to the file system of the path.
    fn free_space_bytes(&self, path: &Path) -> Result<u64>;

    /// Keeps bytes in the file system of a directory rather than in memory, where there is one.
    fn scratch(&self, _directory: &Path) -> Scratch {
        Scratch::default()
    }

    /// Wall clock, in microseconds since 1970.
    fn now_micros(&self) -> i64;
    /// A clock that never steps back, for measuring.
    fn monotonic_nanos(&self) -> u64;
    /// The wall clock made strictly increasing within this process: two writes never get the same timestamp.
    fn unique_micros(&self) -> i64;
    /// The newest of these so far, or the floor; `i64::MIN` if there is none.
    fn last_unique_micros(&self) -> i64;
    /// From now on unique timestamps and time UUIDs are above this one, which another process gave.
    fn raise_unique_micros(&self, floor_micros: i64);
    /// A version 1 UUID, unique and increasing within this process.
    fn time_uuid(&self) -> Uuid;
    /// Fills the buffer with randomness good enough for salts and keys.
    fn random_bytes(&self, into: &mut [u8]);

    /// From now on this thread works only as far as others leave it time: for what nobody waits for. Does nothing where the
    /// operating system does not tell threads apart.
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

    /// Reads a whole file, which must not be larger than the limit.
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

    /// Replaces a small file so that a crash leaves the old or the new content, durable when it returns.
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
    /// The size when the file was opened.
    fn size_bytes(&self) -> u64;
    /// The path by which it was opened.
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

    /// Where bytes may be found that are not zeros, at the offset or behind it; `None` if the file system knows that only zeros
    /// follow, since nobody wrote there. One that does not know says the offset.
    fn data_from(&self, offset: u64) -> Result<Option<u64>> {
        Ok((offset < self.size_bytes()).then_some(offset))
    }

    /// Tells the kernel how the file will be read. A hint: failures are ignored.
    fn advise(&self, _access: Access) {}
}

/// How a file is about to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Point reads: no read-ahead.
    Random,
    /// From start to end: much read-ahead.
    Sequential,
    /// Not any more: its pages may leave the page cache.
    Done,
}

/// A file open for writing by one thread.
pub trait WriteFile: Send {
    /// Writes all of it at the position and moves the position. The bytes have reached the kernel when it
    /// returns.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Writes all of it at the offset; the position stays.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Where the next append goes.
    fn position(&self) -> u64;
    /// Makes what was written durable (fdatasync).
    fn sync(&mut self) -> Result<()>;
    /// Reserves space, and grows the file to this size with zeros where it is shorter. The position stays.
    fn preallocate(&mut self, size_bytes: u64) -> Result<()>;
    /// From now on writes within what was preallocated cost no system call each. As before, their bytes have reached the kernel when they
    /// return. A wish: it is not heard where space cannot be reserved.
    fn write_by_memory(&mut self) {}
    /// Cuts (or grows with zeros) the file, and the position to at most its new end.
    fn truncate(&mut self, size_bytes: u64) -> Result<()>;
    /// A handle by which another thread syncs while this one appends.
    fn sync_handle(&self) -> Arc<dyn SyncFile>;
    /// The path by which it was opened.
    fn path(&self) -> &Path;
}

/// The syncing half of a [`WriteFile`].
pub trait SyncFile: Send + Sync {
    /// Makes durable what was written before the call.
    fn sync(&self) -> Result<()>;
}

/// An exclusive lock, released when dropped.
pub trait FileLock: Send + Sync {}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name without its directory. Names that are not UTF-8 are not listed: nothing of ours has one.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// The size of a file, 0 of a directory.
    pub size_bytes: u64,
}

/// The directory to sync for a path; `.` for a bare name.
pub(crate) fn parent_of(path: &Path) -> &Path {
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
