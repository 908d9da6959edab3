//! The bytes of a segment, read as far as they are needed.
//!
//! Space is reserved for a segment before it is written, so most of the last segments is zeros that were never written. Records
//! are only taken from bytes that were read. Where zeros stand in place of a record, the file system says whether written
//! bytes follow; if none do, the rest is not read.

use std::path::Path;
use std::sync::Arc;

use ilion_env::{Access, Env, ReadFile};

use crate::{Error, Result, SegmentId, options, segment};

const SEGMENT_BYTES_MAX: u64 = options::SEGMENT_BYTES_MAX as u64;
const FIRST_READ_BYTES: usize = 64 << 10;
const READ_BYTES_MAX: usize = 8 << 20;

pub(crate) struct SegmentFile {
    file: Arc<dyn ReadFile>,
    bytes: Vec<u8>,
}

impl SegmentFile {
    /// Opens a segment and reads its first bytes. `memory`: of a segment that was read before, since the kernel fills new memory with zeros.
    pub(crate) fn open(env: &dyn Env, dir: &Path, id: SegmentId, memory: Vec<u8>) -> Result<Self> {
        let path = segment::path_of(dir, id);
        let file = env.open_read(&path)?;
        if file.size_bytes() > SEGMENT_BYTES_MAX {
            return Err(Error::refused(format!(
                "{} has {} bytes, and no segment has more than {SEGMENT_BYTES_MAX}",
                path.display(),
                file.size_bytes()
            )));
        }
        // Reading ahead would turn pages of reserved space into data, which this start and the next would read.
        file.advise(Access::Random);
        let mut bytes = memory;
        bytes.clear();
        let mut opened = Self { file, bytes };
        opened.read_more()?;
        Ok(opened)
    }

    /// Opens a segment and reads it up to where only zeros follow that were never written.
    pub(crate) fn open_whole(env: &dyn Env, dir: &Path, id: SegmentId) -> Result<Self> {
        let mut opened = Self::open(env, dir, id, Vec::new())?;
        while !opened.is_rest_unwritten()? {
            opened.read_more()?;
        }
        Ok(opened)
    }

    /// The bytes that were read, from the start of the segment on.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory, for the next segment.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// Size of the whole file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.file.size_bytes()
    }

    /// True if the whole file was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    /// True if the file system knows that only zeros follow behind the bytes that were read.
    pub(crate) fn is_rest_unwritten(&self) -> Result<bool> {
        Ok(self.is_at_end() || self.file.data_from(self.bytes.len() as u64)?.is_none())
    }

    /// Reads further: as many bytes as were read so far, within limits.
    pub(crate) fn read_more(&mut self) -> Result<()> {
        let from = self.bytes.len();
        let count = from.clamp(FIRST_READ_BYTES, READ_BYTES_MAX).min(self.left());
        self.bytes.resize(from + count, 0);
        Ok(self.file.read_exact_at(from as u64, &mut self.bytes[from..])?)
    }

    fn left(&self) -> usize {
        let size_bytes = usize::try_from(self.file.size_bytes()).unwrap_or(usize::MAX);
        size_bytes.saturating_sub(self.bytes.len())
    }
}
