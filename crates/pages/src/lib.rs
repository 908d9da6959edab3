//! Files whose body consists of pages, each with a CRC: side components of SSTables, and files of attached indexes.
//!
//! ```text
//! file := body  page_crc:u32 *  tail          little-endian; a page has 4096 bytes of the body, the last one what is left
//! ```
//!
//! Files are read with pread. A page is checked when it is first read, and then kept in memory while the file is open. Pages
//! beyond the memory budget are read and checked each time. So disk errors and truncated files are errors here, never a crash.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ilion_codec::crc32;
use ilion_env::{PageBudget, PageMemory, ReadFile, WriteFile};

/// Why reading or writing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are damaged, or the requested range is not inside the body.
    #[error("corrupt file {}: at byte {offset}: expected {expected}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Offset in the body.
        offset: u64,
        /// What the format requires at this offset.
        expected: &'static str,
    },
    /// The operating system returned an error.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
}

/// The result of an operation on pages.
pub type Result<T> = std::result::Result<T, Error>;

/// Size of a page in bytes.
pub const PAGE_LEN: usize = ilion_env::PAGE_BYTES;
/// Size of the CRC of a page in bytes.
pub const CRC_LEN: usize = 4;
/// Number of bytes that are collected before they are written.
pub const APPEND_BYTES: usize = 64 * PAGE_LEN;

/// Size of a body with the CRCs of its pages; `None` if it overflows.
pub fn paged_length(body_length: u64) -> Option<u64> {
    let crcs = body_length
        .div_ceil(PAGE_LEN as u64)
        .checked_mul(CRC_LEN as u64)?;
    crcs.checked_add(body_length)
}

/// The little-endian number of 64 bits at `at`; bytes beyond the end count as zeros.
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

/// Number of CRCs that are read at once.
const CRC_GROUP: usize = 1024;

/// The body of an open file.
pub struct Pages {
    file: Arc<dyn ReadFile>,
    memory: PageMemory,
    /// The CRCs of the pages, in groups. A group is read when one of its CRCs is first needed.
    crcs: Box<[OnceLock<Box<[u8]>>]>,
}

/// Bytes of a body: borrowed from kept pages, or a copy.
#[derive(Clone, Debug)]
pub struct PageBytes<'p>(Cow<'p, [u8]>);

impl Deref for PageBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Pages {
    /// The body of `file`, which is its first `body_length` bytes, followed by the CRCs; `None` if the file is shorter.
    pub fn of(file: Arc<dyn ReadFile>, body_length: u64) -> Option<Self> {
        Self::within(file, body_length, PageBudget::of_process())
    }

    /// As [`Self::of`], with another memory budget than that of the process.
    pub fn within(file: Arc<dyn ReadFile>, body_length: u64, budget: &'static PageBudget) -> Option<Self> {
        paged_length(body_length).filter(|end| *end <= file.size_bytes())?;
        let body_length = usize::try_from(body_length).ok()?;
        let groups = body_length.div_ceil(PAGE_LEN).div_ceil(CRC_GROUP);
        Some(Self {
            file,
            memory: PageMemory::reserve(body_length, budget),
            crcs: (0..groups).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.crcs.iter().filter_map(OnceLock::get);
        self.memory.memory_bytes() + size_of_val(&*self.crcs) + groups.map(|group| group.len()).sum::<usize>()
    }

    /// Size of the whole file.
    pub fn file_length(&self) -> u64 {
        self.file.size_bytes()
    }

    /// Size of the body.
    pub fn body_length(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// `len` bytes of the body, from offset `at`.
    ///
    /// # Errors
    /// The bytes are damaged, outside of the body, or cannot be read.
    #[inline]
    pub fn bytes(&self, at: u64, len: usize) -> Result<PageBytes<'_>> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.saturating_add(len);
        match self.memory.get(start, end) {
            Some(bytes) => Ok(PageBytes(Cow::Borrowed(bytes))),
            None => self.read(at, start, end),
        }
    }

    /// The little-endian number of 64 bits at offset `at` of the body.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    #[inline]
    pub fn u64_at(&self, at: u64) -> Result<u64> {
        Ok(u64_at(&self.bytes(at, 8)?, 0))
    }

    /// Reads the pages that are not kept; keeps them if the budget allows.
    #[cold]
    fn read(&self, at: u64, start: usize, end: usize) -> Result<PageBytes<'_>> {
        if end > self.memory.len() {
            return Err(self.corrupt(at, "an offset in the body of the file"));
        }
        let mut buffer = [0; PAGE_LEN];
        // `None` as long as all pages are kept.
        let mut copy: Option<Vec<u8>> = None;
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            let page_start = page * PAGE_LEN;
            let page_end = self.memory.len().min(page_start + PAGE_LEN);
            let bytes = match self.memory.get(page_start, page_end) {
                Some(_) if copy.is_none() => continue,
                Some(bytes) => bytes,
                None => {
                    let bytes = self.checked_page(page, &mut buffer)?;
                    if self.memory.keep(page, bytes) && copy.is_none() {
                        continue;
                    }
                    bytes
                }
            };
            let copy = copy.get_or_insert_with(|| {
                let mut copy = Vec::with_capacity(end - start);
                let before = self.memory.get(start, page_start.max(start));
                copy.extend_from_slice(before.unwrap_or_default());
                assert_eq!(
                    copy.len(),
                    page_start.saturating_sub(start),
                    "earlier pages are kept"
                );
                copy
            });
            let (from, to) = (start.max(page_start), end.min(page_end));
            copy.extend_from_slice(&bytes[from - page_start..to - page_start]);
        }
        match copy {
            Some(copy) => Ok(PageBytes(Cow::Owned(copy))),
            None => {
                let bytes = self.memory.get(start, end).unwrap_or_default();
                Ok(PageBytes(Cow::Borrowed(bytes)))
            }
        }
    }

    /// Reads a page and checks its CRC.
    fn checked_page<'b>(&self, page: usize, buffer: &'b mut [u8; PAGE_LEN]) -> Result<&'b [u8]> {
        let start = page * PAGE_LEN;
        let bytes = &mut buffer[..PAGE_LEN.min(self.memory.len() - start)];
        self.read_exact(start, bytes)?;
        if crc32(bytes).to_le_bytes() != self.crc_of(page)? {
            return Err(self.corrupt(start as u64, "a page with the CRC that the file has for it"));
        }
        Ok(bytes)
    }

    fn crc_of(&self, page: usize) -> Result<[u8; CRC_LEN]> {
        let (number, at) = (page / CRC_GROUP, page % CRC_GROUP);
        let group = match self.crcs.get(number).and_then(OnceLock::get) {
            Some(group) => &**group,
            None => self.read_crcs(number)?,
        };
        let crc = group.as_chunks().0.get(at).copied();
        crc.ok_or_else(|| self.corrupt((page * PAGE_LEN) as u64, "a CRC for each page"))
    }

    fn read_crcs(&self, number: usize) -> Result<&[u8]> {
        let first = number * CRC_GROUP;
        let count = (self.memory.len().div_ceil(PAGE_LEN) - first).min(CRC_GROUP);
        let mut group = vec![0; count * CRC_LEN];
        self.read_exact(self.memory.len() + first * CRC_LEN, &mut group)?;
        Ok(self.crcs[number].get_or_init(|| group.into()))
    }

    /// Reads bytes of the file; a file that became shorter is reported as damaged.
    fn read_exact(&self, start: usize, into: &mut [u8]) -> Result<()> {
        let read = self.file.read_exact_at(start as u64, into);
        read.map_err(|error| match error.is_unexpected_end() {
            true => self.corrupt(start as u64, "a file of its full length"),
            false => error.into(),
        })
    }

    /// An error about damage at offset `at`.
    #[cold]
    pub fn corrupt(&self, at: u64, expected: &'static str) -> Error {
        Error::Corrupt {
            file: self.path().to_path_buf(),
            offset: at,
            expected,
        }
    }
}

/// Writes a file of pages. Until [`PagesWriter::finish`], the file is not valid.
pub struct PagesWriter {
    file: Box<dyn WriteFile>,
    /// Bytes of the body that are not written yet.
    buffer: Vec<u8>,
    flushed: u64,
    page_crcs: Vec<u8>,
}

impl PagesWriter {
    /// Writes to an empty file.
    pub fn new(file: Box<dyn WriteFile>) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            flushed: 0,
            page_crcs: Vec::new(),
        }
    }

    /// Offset in the body of the next byte.
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// The unwritten end of the body, for appending.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends zeros up to a multiple of 8, so that no page border cuts a number of 64 bits that follows.
    pub fn align(&mut self) {
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
    }

    /// Writes whole pages to the file if enough bytes are collected.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush_if_large(&mut self) -> Result<()> {
        if self.buffer.len() < APPEND_BYTES {
            return Ok(());
        }
        self.write(self.buffer.len() / PAGE_LEN * PAGE_LEN)
    }

    /// Writes the first `len` bytes of the buffer to the file.
    fn write(&mut self, len: usize) -> Result<()> {
        for page in self.buffer[..len].chunks(PAGE_LEN) {
            self.page_crcs.extend_from_slice(&crc32(page).to_le_bytes());
        }
        self.file.append(&self.buffer[..len])?;
        self.buffer.drain(..len);
        self.flushed += len as u64;
        Ok(())
    }

    /// Writes the rest of the body, the CRCs and `tail`, and syncs the file.
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

#[cfg(test)]
mod tests {
    use ilion_env::{Env, FaultEnv, MemEnv};

    use super::*;

    fn written(env: &dyn Env, path: &Path, body: &[u8]) -> Arc<dyn ReadFile> {
        let mut writer = PagesWriter::new(env.create(path).unwrap());
        writer.buffer().extend_from_slice(body);
        writer.finish(b"tail").unwrap();
        env.open_read(path).unwrap()
    }

    fn budget(pages: usize) -> &'static PageBudget {
        Box::leak(Box::new(PageBudget::of((pages * PAGE_LEN) as u64)))
    }

    fn body() -> Vec<u8> {
        (0..5 * PAGE_LEN + 100)
            .map(|at| (at % 251).to_le_bytes()[0])
            .collect()
    }

    #[test]
    fn bytes_are_the_same_whether_there_is_memory_for_them_or_not() {
        let env = MemEnv::new(1);
        let body = body();
        let file = written(&env, Path::new("pages"), &body);
        for room in [0, 1, 3, 6] {
            let pages = Pages::within(file.clone(), body.len() as u64, budget(room)).unwrap();
            for (start, end) in [
                (0, 1),
                (4090, 4100),
                (0, body.len()),
                (8192, 8192),
                (3 * PAGE_LEN, body.len()),
                (body.len(), body.len()),
            ] {
                let found = pages.bytes(start as u64, end - start).unwrap();
                assert!(*found == body[start..end], "{room} pages, {start} to {end}");
            }
            assert!(pages.bytes(0, body.len() + 1).is_err());
            assert!(pages.bytes(u64::MAX, 2).is_err());
            assert!(pages.memory_bytes() < (room + 2) * PAGE_LEN);
        }
    }

    #[test]
    fn a_page_that_was_read_is_not_read_again() {
        let mem = MemEnv::new(1);
        let body = body();
        let path = Path::new("pages");
        let pages = Pages::within(written(&mem, path, &body), body.len() as u64, budget(9)).unwrap();
        assert!(*pages.bytes(10, 20).unwrap() == body[10..30]);
        mem.corrupt_byte(path, 15, 1).unwrap();
        assert!(*pages.bytes(10, 20).unwrap() == body[10..30]);
        // Without memory, it is read and checked each time.
        let pages = Pages::within(mem.open_read(path).unwrap(), body.len() as u64, budget(0)).unwrap();
        assert!(matches!(
            pages.bytes(10, 20),
            Err(Error::Corrupt { offset: 0, .. })
        ));
        mem.corrupt_byte(path, 15, 1).unwrap();
        assert!(pages.bytes(10, 20).is_ok());
    }

    #[test]
    fn a_file_that_is_cut_and_a_disk_that_fails_are_errors() {
        let mem = MemEnv::new(1);
        let env = FaultEnv::new(mem.shared());
        let body = body();
        let path = Path::new("pages");
        let pages = Pages::within(written(&*env, path, &body), body.len() as u64, budget(9)).unwrap();
        assert!(pages.bytes(0, 1).is_ok());
        env.add("fail read \"pages\"").unwrap();
        assert!(matches!(pages.bytes(4096, 1), Err(Error::Env(_))));
        env.clear();
        mem.open_append(path).unwrap().truncate(4100).unwrap();
        assert!(pages.bytes(0, 4096).is_ok());
        assert!(matches!(
            pages.bytes(4096, 1),
            Err(Error::Corrupt { offset: 4096, .. })
        ));
    }
}
