//! Downloads files from a destination, on several threads. Each thread has one chunk in memory, and checks it before it writes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ilion_env::Env;
use parking_lot::Mutex;

use crate::manifest::FileEntry;
use crate::{Error, Hash, Pace, Place, Progress, Result};

/// Suffix of files that are not complete.
const PART: &str = ".part";

/// A file to download.
pub(crate) struct Order<'a> {
    pub file: &'a FileEntry,
    pub chunk_bytes: u32,
    pub target: PathBuf,
}

/// The parameters of all downloads.
pub(crate) struct Downloads<'a> {
    pub env: &'a Arc<dyn Env>,
    pub place: &'a dyn Place,
    pub pace: &'a Pace,
    pub progress: &'a dyn Progress,
    pub threads: usize,
}

impl Downloads<'_> {
    /// Downloads the files that are not there yet, durably: a file with its name is complete. Requires: the directories exist.
    pub(crate) fn run(&self, mut orders: Vec<Order<'_>>) -> Result<()> {
        // The largest first, so that no thread begins a large one when the others are done.
        orders.sort_by_key(|order| std::cmp::Reverse(order.file.bytes));
        let next = AtomicUsize::new(0);
        let failure: Mutex<Option<Error>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while failure.lock().is_none()
                        && let Some(order) = orders.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        if let Err(error) = self.file(order) {
                            failure.lock().get_or_insert(error);
                        }
                    }
                });
            }
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        let mut directories: Vec<&Path> = orders.iter().filter_map(|order| order.target.parent()).collect();
        directories.sort_unstable();
        directories.dedup();
        Ok(directories
            .into_iter()
            .try_for_each(|directory| self.env.sync_dir(directory))?)
    }

    fn file(&self, order: &Order<'_>) -> Result<()> {
        let env = &**self.env;
        // From an earlier restore that was stopped: a file gets its name when it is complete.
        if env.exists(&order.target) && env.file_size(&order.target)? == order.file.bytes {
            self.progress.done(order.file.bytes);
            return Ok(());
        }
        let mut name = order.target.as_os_str().to_owned();
        name.push(PART);
        let part = PathBuf::from(name);
        let mut out = env.create_or_truncate(&part)?;
        for (index, hash) in order.file.chunks.iter().enumerate() {
            let len = order.file.chunk_len(index, order.chunk_bytes);
            self.pace.wait(len);
            out.append(&read_chunk(self.place, hash, len)?)?;
            self.progress.done(len);
        }
        out.sync()?;
        drop(out);
        Ok(env.rename(&part, &order.target)?)
    }
}

/// The bytes of a chunk.
pub(crate) fn read_chunk(place: &dyn Place, hash: &Hash, bytes: u64) -> Result<Bytes> {
    let key = hash.key();
    let read = match place.read(&key, bytes) {
        Err(Error::Damaged { object, problem }) => return Err(Error::Damaged { object, problem }),
        read => read?,
    };
    let Some(read) = read else {
        return Err(Error::damaged(key, "is missing"));
    };
    if read.len() as u64 != bytes {
        let problem = format!("has {} bytes, not {bytes}", read.len());
        return Err(Error::damaged(key, problem));
    }
    match Hash::of(&read) == *hash {
        true => Ok(read),
        false => Err(Error::damaged(key, "does not have the checksum that is its name")),
    }
}
