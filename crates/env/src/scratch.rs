//! Bytes that are kept in files without a name rather than in memory: of rows that are larger than what may be held.
//!
//! What is kept is read as memory. The kernel writes it out when memory is short, and frees the space with the last reader, also
//! if the process is killed. Whoever has read a part for the last time calls [`release`], so that it does not count as memory
//! of the process either.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use memmap2::{MmapOptions, MmapRaw, UncheckedAdvice};
use parking_lot::Mutex;

use crate::account::{FileTag, Place, Timer};
use crate::{Error, Operation, Result};

/// How fault rules call a file, which has no name.
const NAME: &str = "scratch";
/// What is smaller shares a file with others.
const SEGMENT_BYTES: usize = 16 << 20;

/// Keeps bytes, for one thread.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Where files are made; nothing: everything is kept in memory.
    directory: Option<PathBuf>,
    open: Option<OpenSegment>,
    /// Asked before each file is made and each write.
    faults: Option<Faults>,
}

/// What a fault rule says to an operation.
#[derive(Clone)]
pub(crate) struct Faults(pub(crate) Arc<AskRules>);

type AskRules = dyn Fn(Operation, &Path) -> Result<()> + Send + Sync;

impl Faults {
    fn ask(faults: Option<&Self>, operation: Operation, directory: &Path) -> Result<()> {
        faults.map_or(Ok(()), |faults| (faults.0)(operation, &directory.join(NAME)))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// A file that may have room left.
#[derive(Debug)]
struct OpenSegment {
    file: File,
    segment: Arc<Segment>,
    used: usize,
}

/// The mapping of a file, which has its length from the start. Invariant: what was given away is not written any more.
struct Segment(MmapRaw);

/// Bytes that are being kept.
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
    },
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
    /// Makes files in this directory, where nobody sees them.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_path_buf()),
            open: None,
            faults: None,
        }
    }

    /// The same with fault rules: a file that cannot be made is done without, a write that fails is an error.
    pub(crate) fn with_faults(self, faults: Faults) -> Self {
        Self {
            faults: Some(faults),
            ..self
        }
    }

    /// Begins to keep so many bytes: in memory where no file can be made, as of files that may only be read.
    pub fn begin(&mut self, len: usize) -> Keeping<'_> {
        let into = self.file_for(len).unwrap_or_else(|| Target::Memory(Vec::new()));
        Keeping { len, into }
    }

    fn file_for(&mut self, len: usize) -> Option<Target<'_>> {
        let directory = self.directory.as_deref()?;
        let has_room = |open: &mut OpenSegment| open.segment.0.len() - open.used >= len;
        let open = match self.open.take_if(has_room) {
            Some(open) => open,
            None => {
                Faults::ask(self.faults.as_ref(), Operation::Create, directory).ok()?;
                OpenSegment::create(directory, len.max(SEGMENT_BYTES)).ok()?
            }
        };
        let open = self.open.insert(open);
        let start = open.used;
        Some(Target::File {
            directory,
            open,
            start,
            faults: self.faults.as_ref(),
        })
    }
}

impl OpenSegment {
    fn create(directory: &Path, len: usize) -> io::Result<Self> {
        // Never has a name, where the file system can do that: a crash leaves nothing.
        let file = tempfile::tempfile_in(directory)?;
        file.set_len(len as u64)?;
        let map = MmapOptions::new().len(len).map_raw_read_only(&file);
        let segment = Arc::new(Segment(map?));
        let address = segment.0.as_ptr() as usize;
        SEGMENTS.lock().insert(address, Arc::downgrade(&segment));
        COUNT.fetch_add(1, Relaxed);
        Ok(Self {
            file,
            segment,
            used: 0,
        })
    }
}

impl Keeping<'_> {
    /// Adds bytes.
    ///
    /// # Errors
    /// They cannot be written: the disk is full.
    ///
    /// # Panics
    /// They are more than was said in the beginning.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.into {
            Target::Memory(kept) => {
                assert!(bytes.len() <= self.len - kept.len(), "no more than was said");
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Target::File {
                directory,
                open,
                start,
                faults,
            } => {
                assert!(
                    bytes.len() <= self.len - (open.used - *start),
                    "no more than was said"
                );
                Faults::ask(*faults, Operation::Write, directory)?;
                let timer = Timer::start();
                let offset = open.used as u64;
                let written = open.file.write_all_at(bytes, offset);
                let place = Place {
                    file: FileTag::of(directory),
                    path: directory,
                    offset,
                };
                timer.write_done(place, bytes.len());
                open.used += bytes.len();
                written.map_err(|source| Error::new("keep a part of a row in", directory, source))
            }
        }
    }

    /// What was appended.
    pub fn finish(self) -> Kept {
        Kept(match self.into {
            Target::Memory(kept) => Where::Memory(kept),
            Target::File { open, start, .. } => Where::File {
                segment: open.segment.clone(),
                start,
                len: open.used - start,
            },
        })
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Where::Memory(bytes) => bytes,
            #[expect(unsafe_code, reason = "memory maps cannot be had without")]
            Where::File { segment, start, len } => {
                // Safety: `start + len` is at most the length of the map, which lives as long as `segment`. Nobody but us has the
                // file, which has no name, and these bytes of it are not written any more.
                unsafe { slice::from_raw_parts(segment.0.as_ptr().add(*start), *len) }
            }
        }
    }
}

/// The mappings there are, by address; and how many, so that most who ask need not wait.
static SEGMENTS: Mutex<BTreeMap<usize, Weak<Segment>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Takes bytes that were kept, if these are, out of the memory of the process until they are read again.
pub fn release(bytes: &[u8]) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let Some((segment, offset)) = segment_of(bytes) else {
        return;
    };
    #[expect(unsafe_code, reason = "memory maps cannot be had without")]
    // Safety: the pages are those of a file that is shared, which they are read from again.
    let released = unsafe {
        segment
            .0
            .unchecked_advise_range(UncheckedAdvice::DontNeed, offset, bytes.len())
    };
    // A hint: without it they stay until they are dropped.
    drop(released);
}

/// The segment that has the bytes, and where.
fn segment_of(bytes: &[u8]) -> Option<(Arc<Segment>, usize)> {
    let address = bytes.as_ptr() as usize;
    let segments = SEGMENTS.lock();
    let (start, segment) = segments.range(..=address).next_back()?;
    let (segment, offset) = (segment.upgrade(), address - start);
    // If ours is the last reference, the segment's end takes the lock.
    drop(segments);
    let is_in = |segment: &Arc<Segment>| bytes.len() <= segment.0.len().saturating_sub(offset);
    Some((segment.filter(is_in)?, offset))
}

impl Drop for Segment {
    fn drop(&mut self) {
        SEGMENTS.lock().remove(&(self.0.as_ptr() as usize));
        COUNT.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({} bytes)", self.0.len())
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
                release(kept.as_ref());
                assert!(kept.as_ref() == part);
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
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
        release(&others);
        assert!(others.iter().all(|byte| *byte == 7));
    }
}
