//! Memory for the pages of a file, filled as they are read.
//!
//! Files are not mapped for reading: a disk error or a truncated file would kill the process (SIGBUS), and pages that the
//! kernel reads again would not be checked again. Instead, address space is reserved for a file. A page gets memory when its
//! bytes were read and checked, and keeps them while the file is open. A budget limits the memory of all pages of the process;
//! pages beyond it are read each time.

use std::fmt;
use std::slice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// A limit for the memory of pages.
#[derive(Debug)]
pub struct PageBudget {
    limit: AtomicU64,
    taken: AtomicU64,
}

/// The default limit of this process.
const LIMIT_BYTES: u64 = 1 << 30;

static OF_PROCESS: PageBudget = PageBudget::of(LIMIT_BYTES);

impl PageBudget {
    /// A budget of `limit` bytes.
    pub const fn of(limit: u64) -> Self {
        Self {
            limit: AtomicU64::new(limit),
            taken: AtomicU64::new(0),
        }
    }

    /// The budget of this process.
    pub fn of_process() -> &'static Self {
        &OF_PROCESS
    }

    /// Sets the limit. Pages that are already kept stay.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes in use.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before.saturating_add(bytes) <= self.limit();
        if !has_room {
            self.give_back(bytes);
        }
        has_room
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The kept pages of a file.
pub struct PageMemory {
    /// `None` if no address space is available: then no page is kept.
    reserved: Option<MmapRaw>,
    len: usize,
    /// A bit for each page that is kept. Invariant: the bytes of such a page are never written again.
    filled: Box<[AtomicU64]>,
    /// Held while a page is copied.
    filling: Mutex<()>,
    taken: AtomicUsize,
    budget: &'static PageBudget,
}

impl PageMemory {
    /// Reserves address space for a file of `len` bytes. Until pages are kept, this takes one bit of memory per page.
    pub fn reserve(len: usize, budget: &'static PageBudget) -> Self {
        let mut options = MmapOptions::new();
        let mapped = options.len(len.max(1)).no_reserve_swap().map_anon();
        let reserved = mapped.ok().map(MmapRaw::from);
        #[cfg(target_os = "linux")]
        if let Some(reserved) = &reserved {
            // Otherwise the first page of two megabytes may take all of them. A hint: kernels without large pages refuse it.
            let _ = reserved.advise(memmap2::Advice::NoHugePage);
        }
        let words = len.div_ceil(PAGE_BYTES).div_ceil(64);
        Self {
            reserved,
            len,
            filled: (0..words).map(|_| AtomicU64::new(0)).collect(),
            filling: Mutex::new(()),
            taken: AtomicUsize::new(0),
            budget,
        }
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed) + self.filled.len() * 8
    }

    /// Size of the file in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the page is kept.
    #[inline]
    pub fn has(&self, page: usize) -> bool {
        let word = self.filled.get(page / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (page % 64) & 1 == 1)
    }

    /// The bytes from `start` to `end`; `None` if one of their pages is not kept.
    #[inline]
    pub fn get(&self, start: usize, end: usize) -> Option<&[u8]> {
        if start > end || end > self.len {
            return None;
        }
        for page in start / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            if !self.has(page) {
                return None;
            }
        }
        let reserved = self.reserved.as_ref()?;
        #[expect(unsafe_code, reason = "pages get their bytes while others are read")]
        // Safety: `end` is at most the length of the reserved memory, which lives as long as `self`. All pages were filled before
        // (acquire, of the release in `keep`) and are not written any more.
        Some(unsafe { slice::from_raw_parts(reserved.as_ptr().add(start), end - start) })
    }

    /// Keeps a page. Requires: `bytes` are all bytes of the file in this page. False if there is no room.
    pub fn keep(&self, page: usize, bytes: &[u8]) -> bool {
        let start = page.saturating_mul(PAGE_BYTES);
        let Some(rest) = self.len.checked_sub(start).filter(|rest| *rest > 0) else {
            return false;
        };
        assert_eq!(bytes.len(), rest.min(PAGE_BYTES), "a whole page");
        let _filling = self.filling.lock();
        if self.has(page) {
            return true;
        }
        let Some(reserved) = &self.reserved else {
            return false;
        };
        if !self.budget.take(PAGE_BYTES as u64) {
            return false;
        }
        self.taken.fetch_add(PAGE_BYTES, Ordering::Relaxed);
        #[expect(unsafe_code, reason = "pages get their bytes while others are read")]
        // Safety: the page lies in the reserved memory. It has no reader, since its bit is not set, and no other writer, since
        // the lock is held.
        unsafe {
            reserved
                .as_mut_ptr()
                .add(start)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.filled[page / 64].fetch_or(1 << (page % 64), Ordering::Release);
        true
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        self.budget.give_back(*self.taken.get_mut() as u64);
    }
}

impl fmt::Debug for PageMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageMemory({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn budget(pages: usize) -> &'static PageBudget {
        Box::leak(Box::new(PageBudget::of((pages * PAGE_BYTES) as u64)))
    }

    #[test]
    fn pages_are_there_once_they_were_kept() {
        let memory = PageMemory::reserve(2 * PAGE_BYTES + 10, budget(3));
        assert_eq!(memory.get(0, 1), None);
        assert!(memory.keep(0, &[1; PAGE_BYTES]) && memory.keep(2, &[3; 10]));
        assert_eq!(memory.get(0, PAGE_BYTES), Some(&[1; PAGE_BYTES][..]));
        assert_eq!(memory.get(PAGE_BYTES - 1, PAGE_BYTES + 1), None);
        assert_eq!(
            memory.get(2 * PAGE_BYTES, 2 * PAGE_BYTES + 10),
            Some(&[3; 10][..])
        );
        assert_eq!(memory.get(2 * PAGE_BYTES, 2 * PAGE_BYTES + 11), None);
        assert!(memory.keep(1, &[2; PAGE_BYTES]) && memory.keep(1, &[9; PAGE_BYTES]));
        let all = memory.get(0, memory.len()).unwrap();
        assert_eq!([all[0], all[PAGE_BYTES], all[2 * PAGE_BYTES]], [1, 2, 3]);
        assert!(!memory.keep(3, &[]), "no page of the file");
    }

    #[test]
    fn the_budget_is_kept_and_given_back() {
        let budget = budget(2);
        let first = PageMemory::reserve(4 * PAGE_BYTES, budget);
        let kept: Vec<bool> = (0..4).map(|page| first.keep(page, &[7; PAGE_BYTES])).collect();
        assert_eq!(kept, [true, true, false, false]);
        assert_eq!(budget.taken(), 2 * PAGE_BYTES as u64);
        drop(first);
        assert_eq!(budget.taken(), 0);
        assert!(PageMemory::reserve(1, budget).keep(0, &[1]));
    }

    #[test]
    fn a_large_file_takes_only_what_was_touched() {
        let memory = PageMemory::reserve(64 << 30, budget(1));
        assert!(memory.keep(1_000_000, &[5; PAGE_BYTES]));
        assert_eq!(
            memory.get(1_000_000 * PAGE_BYTES, 1_000_000 * PAGE_BYTES + 1),
            Some(&[5][..])
        );
        assert!(memory.memory_bytes() < 4 << 20);
    }

    #[test]
    fn many_threads_fill_and_read_the_same_pages() {
        const PAGES: usize = 200;
        let memory = PageMemory::reserve(PAGES * PAGE_BYTES, budget(PAGES));
        let byte_of = |page: usize| u8::try_from(page % 251).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for page in 0..PAGES {
                        if let Some(bytes) = memory.get(page * PAGE_BYTES, (page + 1) * PAGE_BYTES) {
                            assert!(bytes.iter().all(|byte| *byte == byte_of(page)));
                        }
                        assert!(memory.keep(page, &[byte_of(page); PAGE_BYTES]));
                    }
                });
            }
        });
        assert_eq!(memory.budget.taken(), (PAGES * PAGE_BYTES) as u64);
    }
}
