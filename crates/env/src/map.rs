//! A file's bytes as memory.
//!
//! The kernel brings what is touched and takes it back when memory is short, so a large file costs nothing to open. What
//! cannot be brought kills the process: whoever maps a file first reads what it touches through [`crate::ReadFile`], which
//! fails with an error, is counted, and leaves the bytes in the page cache.

use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use crate::{Error, Result};

/// All bytes of a file that nobody changes any more.
pub struct FileMap(Bytes);

enum Bytes {
    Mapped(memmap2::Mmap),
    /// Where there is nothing to map.
    Copied(Box<[u8]>),
}

impl FileMap {
    /// A file's bytes, copied.
    pub fn copied(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(Bytes::Copied(bytes.into()))
    }

    /// Maps an open file.
    pub(crate) fn of(file: &File, path: &Path) -> Result<Self> {
        #[expect(unsafe_code, reason = "memory maps cannot be had without")]
        // Safety: SSTable components are written once, under a name that is taken only when they are whole, and their
        // files are removed, never changed or cut.
        let mapped = unsafe { memmap2::Mmap::map(file) };
        let map = mapped.map_err(|source| Error::new("map", path, source))?;
        // A hint: look-ups touch pages here and there.
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Self(Bytes::Mapped(map)))
    }

    /// Memory of our own that it takes.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Mapped(_) => 0,
            Bytes::Copied(bytes) => bytes.len(),
        }
    }
}

impl Deref for FileMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(map) => map,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

impl fmt::Debug for FileMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileMap({} bytes)", self.len())
    }
}
