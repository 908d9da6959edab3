//! Files whose body is in pages, each with a CRC: side components of SSTables and files of attached indexes.
//!
//! ```text
//! file := body  page_crc:u32 *  tail          little-endian; a page has 4096 bytes of the body, the last one what is left
//! ```
//!
//! It is mapped to be read. A page is checked when it is first touched: that time it is read through the file, so that what the
//! disk cannot give is an error and what it gives is counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_codec::crc32;
use ilion_env::{FileMap, ReadFile, WriteFile};

/// Why a body could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are damaged, or a place that is no part of the body was asked for.
    #[error("corrupt file {}: at byte {offset}: expected {expected}", file.display())]
    Corrupt {
        /// Damaged file.
        file: PathBuf,
        /// Offset in the body.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
    },
    /// The operating system refused.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
}

/// The result of an operation on pages.
pub type Result<T> = std::result::Result<T, Error>;

/// Bytes of a page.
pub const PAGE_LEN: usize = 4096;
/// Bytes of the CRC of a page.
pub const CRC_LEN: usize = 4;
/// Bytes that are gathered before they go to the file.
pub const APPEND_BYTES: usize = 64 * PAGE_LEN;

/// Bytes of a body and of the CRCs of its pages; nothing if there are too many.
pub fn paged_length(body_length: u64) -> Option<u64> {
    let crcs = body_length
        .div_ceil(PAGE_LEN as u64)
        .checked_mul(CRC_LEN as u64)?;
    crcs.checked_add(body_length)
}

/// The number at `at`; zeros beyond the end.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        return u64::from_le_bytes(*chunk);
    }
    let mut padded = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    padded[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(padded)
}

/// The body of an open component.
pub struct Pages {
    file: Arc<dyn ReadFile>,
    map: FileMap,
    body_length: usize,
    /// A bit for each page that passed.
    checked: Box<[AtomicU64]>,
}

impl Pages {
    /// The pages of the first `body_length` bytes, and their CRCs after them; nothing if the file is shorter.
    pub fn of(file: Arc<dyn ReadFile>, map: FileMap, body_length: u64) -> Option<Self> {
        let body_length = usize::try_from(body_length).ok()?;
        let pages = body_length.div_ceil(PAGE_LEN);
        let end = pages
            .checked_mul(CRC_LEN)
            .and_then(|crcs| crcs.checked_add(body_length));
        end.filter(|end| *end <= map.len())?;
        Some(Self {
            file,
            map,
            body_length,
            checked: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Memory that it takes: what is mapped is the page cache's.
    pub fn memory_bytes(&self) -> usize {
        self.map.memory_bytes() + self.checked.len() * 8
    }

    /// Bytes of the whole file.
    pub fn file_length(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes of the body.
    pub fn body_length(&self) -> u64 {
        self.body_length as u64
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// `len` bytes of the body from `at` on.
    ///
    /// # Errors
    /// They are damaged, no part of the body, or cannot be read.
    #[inline]
    pub fn bytes(&self, at: u64, len: usize) -> Result<&[u8]> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.checked_add(len).filter(|end| *end <= self.body_length);
        let Some(end) = end else {
            return Err(self.corrupt(at, "a place in the body of the file"));
        };
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            if self.checked[page / 64].load(Relaxed) >> (page % 64) & 1 == 0 {
                self.check(page)?;
            }
        }
        Ok(&self.map[start..end])
    }

    /// A number of the body.
    ///
    /// # Errors
    /// As for [`Self::bytes`].
    #[inline]
    pub fn u64_at(&self, at: u64) -> Result<u64> {
        Ok(u64_at(self.bytes(at, 8)?, 0))
    }

    #[cold]
    fn check(&self, page: usize) -> Result<()> {
        let mut buffer = [0; PAGE_LEN];
        let start = page * PAGE_LEN;
        let bytes = &mut buffer[..PAGE_LEN.min(self.body_length - start)];
        self.file.read_exact_at(start as u64, bytes)?;
        let crc_at = self.body_length + page * CRC_LEN;
        if crc32(bytes).to_le_bytes() != self.map[crc_at..crc_at + CRC_LEN] {
            return Err(self.corrupt(start as u64, "a page with the CRC that the file has for it"));
        }
        self.checked[page / 64].fetch_or(1 << (page % 64), Relaxed);
        Ok(())
    }

    /// Damage at `at`.
    #[cold]
    pub fn corrupt(&self, at: u64, expected: &'static str) -> Error {
        Error::Corrupt {
            file: self.path().to_path_buf(),
            offset: at,
            expected,
        }
    }
}

/// A component being written. Without [`PagesWriter::finish`] it leaves a file that is none.
pub struct PagesWriter {
    file: Box<dyn WriteFile>,
    /// Bytes of the body that the file does not have yet.
    buffer: Vec<u8>,
    flushed: u64,
    page_crcs: Vec<u8>,
}

impl PagesWriter {
    /// Writes to a file that is empty.
    pub fn new(file: Box<dyn WriteFile>) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            flushed: 0,
            page_crcs: Vec::new(),
        }
    }

    /// Where in the body the next byte goes.
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// The end of the body, to be appended to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Zeros up to a multiple of 8: a number of 64 bits that is put there lies in one page.
    pub fn align(&mut self) {
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
    }

    /// Gives whole pages to the file if there are many bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush_if_large(&mut self) -> Result<()> {
        if self.buffer.len() < APPEND_BYTES {
            return Ok(());
        }
        self.write(self.buffer.len() / PAGE_LEN * PAGE_LEN)
    }

    /// Gives the first bytes of the buffer to the file.
    fn write(&mut self, len: usize) -> Result<()> {
        for page in self.buffer[..len].chunks(PAGE_LEN) {
            self.page_crcs.extend_from_slice(&crc32(page).to_le_bytes());
        }
        self.file.append(&self.buffer[..len])?;
        self.buffer.drain(..len);
        self.flushed += len as u64;
        Ok(())
    }

    /// Writes what is left and the tail, and makes it durable.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, tail: &[u8]) -> Result<()> {
        self.write(self.buffer.len())?;
        self.page_crcs.extend_from_slice(tail);
        self.file.append(&self.page_crcs)?;
        Ok(self.file.sync()?)
    }
}
