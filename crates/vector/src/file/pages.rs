//! The body: each page is checked against its CRC when it is first read.
//!
//! Later reads use the page that the source keeps; a page that it does not keep is read and checked each time.

use std::sync::Arc;

use ilion_codec::crc32;

use super::Source;
use crate::Error;

pub(super) const PAGE_LEN: usize = 4096;
pub(super) const CRC_LEN: usize = 4;

pub(super) struct Pages {
    source: Arc<dyn Source>,
    body_length: usize,
}

/// Length of a body with the CRCs of its pages.
pub(super) fn checked_length(body_length: u64) -> Option<u64> {
    let pages = body_length.div_ceil(PAGE_LEN as u64);
    pages.checked_mul(CRC_LEN as u64)?.checked_add(body_length)
}

impl Pages {
    /// The pages of the first `body_length` bytes. Requires: the source has them and their CRCs.
    pub(super) fn of(source: Arc<dyn Source>, body_length: usize) -> Self {
        Self { source, body_length }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    /// `len` bytes of the body from offset `at`; copied to `scratch` if they are not kept.
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
            return Err(Error::corrupt(at, "an offset in the body"));
        };
        if let Some(bytes) = self.source.kept(start, end) {
            return Ok(bytes);
        }
        self.read(start, end, scratch)?;
        Ok(scratch)
    }

    /// The number of the body at offset `at`.
    #[inline]
    pub(super) fn u32_at(&self, at: u64, scratch: &mut Vec<u8>) -> Result<u32, Error> {
        let bytes = self.bytes(at, 4, scratch)?;
        Ok(u32_of(bytes, 0))
    }

    /// Reads and checks the pages of a range of the body.
    #[cold]
    fn read(&self, start: usize, end: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let mut buffer = [0; PAGE_LEN];
        into.clear();
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            let page_start = page * PAGE_LEN;
            let bytes = &mut buffer[..PAGE_LEN.min(self.body_length - page_start)];
            self.source.read_exact_at(page_start as u64, bytes)?;
            let mut crc = [0; CRC_LEN];
            self.source
                .read_exact_at((self.body_length + page * CRC_LEN) as u64, &mut crc)?;
            if crc32(bytes).to_le_bytes() != crc {
                return Err(Error::corrupt(
                    page_start as u64,
                    "a page with the CRC that the file has for it",
                ));
            }
            self.source.keep(page, bytes);
            let wanted = start.max(page_start) - page_start..end.min(page_start + bytes.len()) - page_start;
            into.extend_from_slice(&bytes[wanted]);
        }
        Ok(())
    }
}

/// The number at `at`; zero beyond the end.
#[inline]
pub(super) fn u32_of(bytes: &[u8], at: usize) -> u32 {
    let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk());
    chunk.copied().map_or(0, u32::from_le_bytes)
}
