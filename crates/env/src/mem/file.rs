//! The pages of a file: as written, and as synced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

pub(super) const PAGE_BYTES: usize = 4096;
/// A disk writes whole sectors; a page reaches it sector by sector.
pub(super) const SECTOR_BYTES: usize = 512;

pub(super) type Page = [u8; PAGE_BYTES];

/// Pages by number; a missing page is all zeros.
#[derive(Clone, Default)]
pub(super) struct Image {
    pub size_bytes: u64,
    pub pages: BTreeMap<u64, Arc<Page>>,
}

/// The content of a file, shared by its names and handles.
#[derive(Default)]
pub(super) struct MemFile {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Image,
    durable: Image,
    /// Numbers of the pages that may differ between `live` and `durable`.
    dirty: BTreeSet<u64>,
}

/// The versions of a file that a crash chooses from.
pub(super) struct AtRisk {
    pub live: Image,
    pub durable: Image,
    pub dirty: BTreeSet<u64>,
}

impl MemFile {
    /// A file whose content is durable.
    pub(super) fn survived(image: Image) -> Self {
        Self {
            state: Mutex::new(State {
                live: image.clone(),
                durable: image,
                dirty: BTreeSet::new(),
            }),
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.state.lock().live.size_bytes
    }

    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let state = self.state.lock();
        let left = state.live.size_bytes.saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        for (page, range, at) in page_parts(offset, count) {
            match state.live.pages.get(&page) {
                Some(bytes) => into[at..at + range.len()].copy_from_slice(&bytes[range]),
                None => into[at..at + range.len()].fill(0),
            }
        }
        count
    }

    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) {
        let mut state = self.state.lock();
        for (page, range, at) in page_parts(offset, bytes.len()) {
            let count = range.len();
            state.page_mut(page)[range].copy_from_slice(&bytes[at..at + count]);
        }
        state.live.size_bytes = state.live.size_bytes.max(offset + bytes.len() as u64);
    }

    pub(super) fn truncate(&self, size_bytes: u64) {
        let mut state = self.state.lock();
        if size_bytes < state.live.size_bytes {
            let first_gone = size_bytes.div_ceil(PAGE_BYTES as u64);
            let gone = state.live.pages.split_off(&first_gone);
            state.dirty.extend(gone.into_keys());
            let (page, at) = page_of(size_bytes);
            if at > 0 && state.live.pages.contains_key(&page) {
                state.page_mut(page)[at..].fill(0);
            }
        }
        state.live.size_bytes = size_bytes;
    }

    pub(super) fn grow(&self, size_bytes: u64) {
        let mut state = self.state.lock();
        state.live.size_bytes = state.live.size_bytes.max(size_bytes);
    }

    pub(super) fn sync(&self) {
        let state = &mut *self.state.lock();
        for page in std::mem::take(&mut state.dirty) {
            match state.live.pages.get(&page) {
                Some(bytes) => state.durable.pages.insert(page, Arc::clone(bytes)),
                None => state.durable.pages.remove(&page),
            };
        }
        state.durable.size_bytes = state.live.size_bytes;
    }

    pub(super) fn corrupt_byte(&self, offset: u64, xor: u8) {
        let state = &mut *self.state.lock();
        let (page, at) = page_of(offset);
        for image in [&mut state.live, &mut state.durable] {
            if offset < image.size_bytes {
                Arc::make_mut(image.pages.entry(page).or_insert_with(zeros))[at] ^= xor;
            }
        }
    }

    pub(super) fn at_risk(&self) -> AtRisk {
        let state = self.state.lock();
        AtRisk {
            live: state.live.clone(),
            durable: state.durable.clone(),
            dirty: state.dirty.clone(),
        }
    }
}

impl State {
    fn page_mut(&mut self, page: u64) -> &mut Page {
        self.dirty.insert(page);
        Arc::make_mut(self.live.pages.entry(page).or_insert_with(zeros))
    }
}

fn zeros() -> Arc<Page> {
    Arc::new([0; PAGE_BYTES])
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the remainder is below PAGE_BYTES"
)]
fn page_of(offset: u64) -> (u64, usize) {
    (offset / PAGE_BYTES as u64, (offset % PAGE_BYTES as u64) as usize)
}

/// Cuts a range of the file at page borders: page number, range within the page, and offset in the buffer.
fn page_parts(offset: u64, count: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == count {
            return None;
        }
        let (page, start) = page_of(offset + done as u64);
        let length = (PAGE_BYTES - start).min(count - done);
        let part = (page, start..start + length, done);
        done += length;
        Some(part)
    })
}
