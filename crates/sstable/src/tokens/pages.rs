//! The body of the token map, mapped: each page is checked against its CRC when it is first touched.
//!
//! That first time it is read through the file, so that what the disk cannot give is an error and what it gives is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_codec::crc32;
use ilion_env::{FileMap, ReadFile};

use super::u64_at;
use crate::{Error, Result};

pub(super) const PAGE_LEN: usize = 4096;
pub(super) const CRC_LEN: usize = 4;

pub(super) struct Pages {
    file: Arc<dyn ReadFile>,
    map: FileMap,
    body_length: usize,
    /// A bit for each page that passed.
    checked: Box<[AtomicU64]>,
}

impl Pages {
    /// The pages of the first `body_length` bytes, and their CRCs after them; nothing if the file is shorter.
    pub(super) fn of(file: Arc<dyn ReadFile>, map: FileMap, body_length: u64) -> Option<Self> {
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
    pub(super) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes() + self.checked.len() * 8
    }

    /// Bytes of the whole file.
    pub(super) fn file_length(&self) -> u64 {
        self.map.len() as u64
    }

    /// `len` bytes of the body from `at` on.
    #[inline]
    pub(super) fn bytes(&self, at: u64, len: usize) -> Result<&[u8]> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.checked_add(len).filter(|end| *end <= self.body_length);
        let Some(end) = end else {
            return Err(self.corrupt(at, "a place in the body of the token map"));
        };
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            if self.checked[page / 64].load(Relaxed) >> (page % 64) & 1 == 0 {
                self.check(page)?;
            }
        }
        Ok(&self.map[start..end])
    }

    /// A number of the body.
    #[inline]
    pub(super) fn u64_at(&self, at: u64) -> Result<u64> {
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
            return Err(self.corrupt(start as u64, "a page with the CRC that the token map has for it"));
        }
        self.checked[page / 64].fetch_or(1 << (page % 64), Relaxed);
        Ok(())
    }

    /// Damage at `at`.
    #[cold]
    pub(super) fn corrupt(&self, at: u64, expected: &'static str) -> Error {
        Error::corrupt(self.file.path(), at, expected)
    }
}
