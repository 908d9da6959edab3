//! Bytes that are kept in unnamed files instead of memory, for rows that are larger than the memory they may take.
//!
//! The kernel writes the files out when memory is short, and frees their space with the last reader, even if the process is
//! killed. [`each_piece`] reads all bytes from the file through a small buffer and checks their checksums, so a failing disk is
//! an error. The bytes can also be read as memory, through a mapping of the file. That is for the rare readers of single bytes
//! (two versions of a value with the same timestamp, a column that is being indexed); there, a failing disk kills the process.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use crc32fast::Hasher;
use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;

use crate::account::{FileTag, IoTarget, Timer};
use crate::{Error, Operation, Result};

/// The name of a file in fault rules.
const NAME: &str = "scratch";
/// Smaller values share a file of this size.
const SEGMENT_BYTES: usize = 16 << 20;
/// Size of a block, which has one checksum and is read at once.
const BLOCK_BYTES: usize = 128 << 10;

/// Keeps bytes in files. Used by one thread.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The directory of the files; `None` keeps all bytes in memory.
    directory: Option<PathBuf>,
    open: Option<OpenSegment>,
    /// Called before each file is created, read or written.
    faults: Option<Faults>,
}

/// Applies fault rules to an operation.
#[derive(Clone)]
pub(crate) struct Faults(pub(crate) Arc<ApplyRules>);

type ApplyRules = dyn Fn(Operation, &Path) -> Result<()> + Send + Sync;

impl Faults {
    fn apply(faults: Option<&Self>, operation: Operation, directory: &Path) -> Result<()> {
        faults.map_or(Ok(()), |faults| (faults.0)(operation, &directory.join(NAME)))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// A file that may have free space.
#[derive(Debug)]
struct OpenSegment {
    segment: Arc<Segment>,
    used: usize,
}

/// A file, created with its final length. Invariant: allocated bytes that were written are not written again.
struct Segment {
    file: File,
    map: MmapRaw,
    directory: PathBuf,
    faults: Option<Faults>,
    /// The finished allocations by their start.
    allocations: Mutex<BTreeMap<usize, Arc<Allocation>>>,
}

/// A range of the file that was kept.
#[derive(Debug)]
struct Allocation {
    start: usize,
    len: usize,
    /// One checksum per block of [`BLOCK_BYTES`].
    checksums: Vec<u32>,
}

/// Bytes that are being written.
pub struct Keeping<'s> {
    len: usize,
    into: Target<'s>,
}

enum Target<'s> {
    Memory(Vec<u8>),
    File {
        directory: &'s Path,
        open: &'s mut OpenSegment,
        start: usize,
        faults: Option<&'s Faults>,
        checksums: Checksums,
    },
}

/// Computes the checksums of bytes that come piece by piece.
#[derive(Default)]
struct Checksums {
    done: Vec<u32>,
    /// The checksum so far of the block that is not full yet.
    open: Hasher,
    open_bytes: usize,
}

impl Checksums {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = bytes.len().min(BLOCK_BYTES - self.open_bytes);
            let (of_block, rest) = bytes.split_at(count);
            self.open.update(of_block);
            self.open_bytes += count;
            if self.open_bytes == BLOCK_BYTES {
                self.end_block();
            }
            bytes = rest;
        }
    }

    fn end_block(&mut self) {
        self.done.push(std::mem::take(&mut self.open).finalize());
        self.open_bytes = 0;
    }

    fn finish(mut self) -> Vec<u32> {
        if self.open_bytes > 0 {
            self.end_block();
        }
        self.done
    }
}

/// Bytes that were kept.
pub struct Kept(Where);

enum Where {
    Memory(Vec<u8>),
    File {
        segment: Arc<Segment>,
        start: usize,
        len: usize,
    },
}

impl Scratch {
    /// Creates unnamed files in this directory.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_path_buf()),
            open: None,
            faults: None,
        }
    }

    /// Adds fault rules: if creating a file fails, bytes are kept in memory; if a write fails, that is an error.
    pub(crate) fn with_faults(self, faults: Faults) -> Self {
        Self {
            faults: Some(faults),
            ..self
        }
    }

    /// Starts to keep `len` bytes. They are kept in memory if no file can be created, for example on a read-only disk.
    pub fn begin(&mut self, len: usize) -> Keeping<'_> {
        let into = self.file_for(len).unwrap_or_else(|| Target::Memory(Vec::new()));
        Keeping { len, into }
    }

    fn file_for(&mut self, len: usize) -> Option<Target<'_>> {
        let directory = self.directory.as_deref()?;
        let has_room = |open: &mut OpenSegment| open.segment.map.len() - open.used >= len;
        let open = match self.open.take_if(has_room) {
            Some(open) => open,
            None => {
                Faults::apply(self.faults.as_ref(), Operation::Create, directory).ok()?;
                OpenSegment::create(directory, len.max(SEGMENT_BYTES), self.faults.clone()).ok()?
            }
        };
        let open = self.open.insert(open);
        let start = open.used;
        Some(Target::File {
            directory,
            open,
            start,
            faults: self.faults.as_ref(),
            checksums: Checksums::default(),
        })
    }
}

impl OpenSegment {
    fn create(directory: &Path, len: usize, faults: Option<Faults>) -> io::Result<Self> {
        // Unnamed if the file system supports it, so a crash leaves no file.
        let file = tempfile::tempfile_in(directory)?;
        file.set_len(len as u64)?;
        let map = MmapOptions::new().len(len).map_raw_read_only(&file)?;
        let segment = Arc::new(Segment {
            file,
            map,
            directory: directory.to_path_buf(),
            faults,
            allocations: Mutex::default(),
        });
        let address = segment.map.as_ptr() as usize;
        SEGMENTS.lock().insert(address, Arc::downgrade(&segment));
        COUNT.fetch_add(1, Relaxed);
        Ok(Self { segment, used: 0 })
    }
}

impl Keeping<'_> {
    /// Appends bytes.
    ///
    /// # Errors
    /// The bytes cannot be written, for example because the disk is full.
    ///
    /// # Panics
    /// If more bytes are appended than `begin` announced.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.into {
            Target::Memory(kept) => {
                assert!(
                    bytes.len() <= self.len - kept.len(),
                    "at most the announced length"
                );
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Target::File {
                directory,
                open,
                start,
                faults,
                checksums,
            } => {
                assert!(
                    bytes.len() <= self.len - (open.used - *start),
                    "at most the announced length"
                );
                Faults::apply(*faults, Operation::Write, directory)?;
                let timer = Timer::start();
                let offset = open.used as u64;
                let written = open.segment.file.write_all_at(bytes, offset);
                let target = IoTarget {
                    file: FileTag::of(directory),
                    path: directory,
                    offset,
                };
                timer.write_done(target, bytes.len());
                open.used += bytes.len();
                checksums.add(bytes);
                written.map_err(|source| {
                    Error::new("write a part of a row to a scratch file in", directory, source)
                })
            }
        }
    }

    /// Ends the writing; returns the bytes.
    pub fn finish(self) -> Kept {
        Kept(match self.into {
            Target::Memory(kept) => Where::Memory(kept),
            Target::File {
                open,
                start,
                checksums,
                ..
            } => {
                let len = open.used - start;
                let part = Allocation {
                    start,
                    len,
                    checksums: checksums.finish(),
                };
                if len > 0 {
                    open.segment.allocations.lock().insert(start, Arc::new(part));
                }
                let segment = open.segment.clone();
                Where::File { segment, start, len }
            }
        })
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Where::Memory(bytes) => bytes,
            #[expect(unsafe_code, reason = "memory maps cannot be had without")]
            Where::File { segment, start, len } => {
                // Safety: `start + len` is at most the length of the map, which lives as long as `segment`. The file has no
                // name, so only this process has it, and these bytes of it are not written again.
                unsafe { slice::from_raw_parts(segment.map.as_ptr().add(*start), *len) }
            }
        }
    }
}

/// All mappings by address, and their number: if it is 0, the lock is not needed.
static SEGMENTS: Mutex<BTreeMap<usize, Weak<Segment>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Calls `show` with the bytes piece by piece, in order. If they were kept in a file, reads them from the file and checks them.
///
/// # Errors
/// Those of `show`, and failed reads.
pub fn each_piece<E: From<Error>>(
    bytes: &[u8],
    mut show: impl FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let kept = match COUNT.load(Relaxed) {
        0 => None,
        _ => segment_of(bytes),
    };
    let Some((segment, start)) = kept else {
        return show(bytes);
    };
    let Some(part) = segment.part_of(start, bytes.len()) else {
        return show(bytes);
    };
    let (mut from, end) = (start - part.start, start - part.start + bytes.len());
    let mut buffer = vec![0; part.len.min(BLOCK_BYTES)];
    while from < end {
        let block = from / BLOCK_BYTES;
        let block_start = block * BLOCK_BYTES;
        let block_end = (block_start + BLOCK_BYTES).min(part.len);
        let into = &mut buffer[..block_end - block_start];
        segment.read(part.start + block_start, into, part.checksums[block])?;
        let upto = block_end.min(end);
        show(&into[from - block_start..upto - block_start])?;
        from = upto;
    }
    Ok(())
}

impl Segment {
    /// The allocation that contains these bytes.
    fn part_of(&self, start: usize, len: usize) -> Option<Arc<Allocation>> {
        let parts = self.allocations.lock();
        let (_, part) = parts.range(..=start).next_back()?;
        (start + len <= part.start + part.len).then(|| part.clone())
    }

    /// Reads a block and compares its checksum.
    fn read(&self, start: usize, into: &mut [u8], checksum: u32) -> Result<()> {
        Faults::apply(self.faults.as_ref(), Operation::Read, &self.directory)?;
        let timer = Timer::start();
        let offset = start as u64;
        let read = self.file.read_exact_at(into, offset);
        let target = IoTarget {
            file: FileTag::of(&self.directory),
            path: &self.directory,
            offset,
        };
        timer.read_done(target, into.len());
        let wrong = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the disk returned other bytes than were written",
            )
        };
        read.and_then(|()| match crc32fast::hash(into) == checksum {
            true => Ok(()),
            false => Err(wrong()),
        })
        .map_err(|source| {
            Error::new(
                "read a part of a row from a scratch file in",
                &self.directory,
                source,
            )
        })
    }
}

/// The segment that has the bytes, and their offset in it.
fn segment_of(bytes: &[u8]) -> Option<(Arc<Segment>, usize)> {
    let address = bytes.as_ptr() as usize;
    let segments = SEGMENTS.lock();
    let (start, segment) = segments.range(..=address).next_back()?;
    let (segment, offset) = (segment.upgrade(), address - start);
    // Dropping the last reference of a segment takes the lock, so release it first.
    drop(segments);
    let is_in = |segment: &Arc<Segment>| bytes.len() <= segment.map.len().saturating_sub(offset);
    Some((segment.filter(is_in)?, offset))
}

impl Drop for Segment {
    fn drop(&mut self) {
        SEGMENTS.lock().remove(&(self.map.as_ptr() as usize));
        COUNT.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({} bytes)", self.map.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(scratch: &mut Scratch, bytes: &[u8]) -> Kept {
        let mut keeping = scratch.begin(bytes.len());
        bytes
            .chunks(1000)
            .for_each(|piece| keeping.append(piece).unwrap());
        keeping.finish()
    }

    #[test]
    fn what_is_kept_outlives_who_kept_it_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path(), Path::new("/nowhere")].map(Scratch::in_directory);
        for mut scratch in places.into_iter().chain([Scratch::default()]) {
            let large = vec![3; SEGMENT_BYTES + 1];
            let parts = [&[1; 10_000][..], &[2; 5], &[], &large, &[4; 9]];
            let kept = parts.map(|part| keep(&mut scratch, part));
            drop(scratch);
            for (kept, part) in kept.iter().zip(parts) {
                assert!(kept.as_ref() == part);
                assert!(pieces_of(kept.as_ref()).unwrap() == part);
            }
            let (some, wanted) = (&kept[3].as_ref()[1000..300_000], &large[1000..300_000]);
            assert!(pieces_of(some).unwrap() == wanted);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn pieces_of(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        each_piece(bytes, |piece| {
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn other_bytes_than_were_kept_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::in_directory(directory.path());
        let kept = keep(&mut scratch, &[1; 300_000]);
        let Kept(Where::File { segment, .. }) = &kept else {
            panic!("there is a file")
        };
        segment.file.write_all_at(&[2], 200_000).unwrap();
        assert_eq!(pieces_of(&kept.as_ref()[..100_000]).unwrap(), [1; 100_000]);
        let error = pieces_of(kept.as_ref()).unwrap_err().to_string();
        assert!(error.contains("other bytes than were written"), "{error}");
    }

    #[test]
    fn fault_rules_reach_what_is_kept() {
        use crate::{Env as _, FaultEnv, RealEnv};
        let directory = tempfile::tempdir().unwrap();
        let env = FaultEnv::new(RealEnv::new());
        env.add("no_space write \"scratch\" at 2").unwrap();
        let mut scratch = env.scratch(directory.path());
        let mut keeping = scratch.begin(10);
        keeping.append(&[1; 5]).unwrap();
        assert!(keeping.append(&[1; 5]).unwrap_err().is_no_space());
        let kept = keep(&mut scratch, &[3; 2000]);
        env.add("fail read \"scratch\" at 1").unwrap();
        assert!(pieces_of(kept.as_ref()).is_err());
        assert_eq!(pieces_of(kept.as_ref()).unwrap(), [3; 2000]);
        env.add("fail create \"scratch\"").unwrap();
        let mut scratch = env.scratch(directory.path());
        assert_eq!(keep(&mut scratch, &[3; 2000]).as_ref(), [3; 2000], "in memory");
    }

    #[test]
    fn bytes_of_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::in_directory(directory.path());
        let _kept = keep(&mut scratch, &[1; 100]);
        let others = vec![7; 1 << 20];
        assert!(pieces_of(&others).unwrap() == others);
    }
}
