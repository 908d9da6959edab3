//! The body: each page is checked against its CRC when it is first touched.
//!
//! That first time it is read through the source, so that what the disk cannot give is an error and what it gives is counted.
//! After that it comes from the map, if there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_codec::crc32;

use super::Source;
use crate::Error;

pub(super) const PAGE_LEN: usize = 4096;
pub(super) const CRC_LEN: usize = 4;

pub(super) struct Pages {
    source: Arc<dyn Source>,
    body_length: usize,
    /// A bit for each page that passed.
    checked: Box<[AtomicU64]>,
}

/// Bytes that `body_length` bytes and the CRCs of their pages take.
pub(super) fn checked_length(body_length: u64) -> Option<u64> {
    let pages = body_length.div_ceil(PAGE_LEN as u64);
    pages.checked_mul(CRC_LEN as u64)?.checked_add(body_length)
}

impl Pages {
    /// The pages of the first `body_length` bytes. Requires: the source has them and their CRCs.
    pub(super) fn of(source: Arc<dyn Source>, body_length: usize) -> Self {
        let words = body_length.div_ceil(PAGE_LEN).div_ceil(64);
        Self {
            source,
            body_length,
            checked: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    /// `len` bytes of the body from `at` on; in `scratch`, if they are not mapped.
    #[inline]
    pub(super) fn bytes<'b>(
        &'b self,
        at: u64,
        len: usize,
        scratch: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], Error> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.checked_add(len).filter(|end| *end <= self.body_length);
        let Some(end) = end else {
            return Err(Error::corrupt(at, "a place in the body"));
        };
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            if self.checked[page / 64].load(Relaxed) >> (page % 64) & 1 == 0 {
                self.check(page)?;
            }
        }
        if let Some(bytes) = self.source.mapped().and_then(|map| map.get(start..end)) {
            return Ok(bytes);
        }
        scratch.resize(len, 0);
        self.source.read_exact_at(at, scratch)?;
        Ok(scratch)
    }

    /// A number of the body.
    #[inline]
    pub(super) fn u32_at(&self, at: u64, scratch: &mut Vec<u8>) -> Result<u32, Error> {
        let bytes = self.bytes(at, 4, scratch)?;
        Ok(super::read::u32_of(bytes, 0))
    }

    #[cold]
    fn check(&self, page: usize) -> Result<(), Error> {
        let mut buffer = [0; PAGE_LEN];
        let start = page * PAGE_LEN;
        let bytes = &mut buffer[..PAGE_LEN.min(self.body_length - start)];
        self.source.read_exact_at(start as u64, bytes)?;
        let mut crc = [0; CRC_LEN];
        self.source
            .read_exact_at((self.body_length + page * CRC_LEN) as u64, &mut crc)?;
        if crc32(bytes).to_le_bytes() != crc {
            return Err(Error::corrupt(
                start as u64,
                "a page with the CRC that the file has for it",
            ));
        }
        self.checked[page / 64].fetch_or(1 << (page % 64), Relaxed);
        Ok(())
    }
}
