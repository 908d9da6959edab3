//! The thread-local counters of a request: I/O for `account`, everything else for `cost`.

use std::cell::Cell;

use crate::count::{COMMON, COUNTS};
use crate::request_io::RequestIo;

/// The counters of one thread.
pub(crate) struct Books {
    /// The thread's I/O since its start.
    charged: Cell<RequestIo>,
    /// `charged` before the first I/O since [`Books::clear`]; `None` if there was no I/O, as for most requests.
    charged_before: Cell<Option<RequestIo>>,
    /// The counts since [`Books::clear`].
    pub(crate) counts: [Cell<u64>; COUNTS],
    /// True if a count that is not common was increased. Invariant: while false, these counts are zero.
    is_uncommon: Cell<bool>,
    /// True while a scope is open, to which the counts belong.
    pub(crate) is_open: Cell<bool>,
}

thread_local! {
    pub(crate) static BOOKS: Books = const {
        Books {
            charged: Cell::new(RequestIo::NONE),
            charged_before: Cell::new(None),
            counts: [const { Cell::new(0) }; COUNTS],
            is_uncommon: Cell::new(false),
            is_open: Cell::new(false),
        }
    };
}

impl Books {
    pub(crate) fn charged(&self) -> RequestIo {
        self.charged.get()
    }

    pub(crate) fn charge(&self, io: RequestIo) {
        let before = self.charged.get();
        if self.charged_before.get().is_none() {
            self.charged_before.set(Some(before));
        }
        self.charged.set(before + io);
    }

    /// Sets all counts to zero.
    #[inline]
    pub(crate) fn clear(&self) {
        for place in 0..COMMON {
            self.counts[place].set(0);
        }
        if self.is_uncommon.replace(false) {
            self.counts[COMMON..].iter().for_each(|count| count.set(0));
        }
        self.charged_before.set(None);
    }

    #[inline]
    pub(crate) fn add(&self, place: usize, amount: u64) {
        let count = &self.counts[place];
        count.set(count.get().wrapping_add(amount));
        if place >= COMMON {
            self.is_uncommon.set(true);
        }
    }

    /// Adds the counts since [`Books::clear`]; returns the I/O since then, if there was any.
    #[inline]
    #[expect(
        clippy::needless_range_loop,
        reason = "of iterators over both the compiler makes calls"
    )]
    pub(crate) fn add_to(&self, sums: &mut [u64; COUNTS]) -> Option<RequestIo> {
        for place in 0..COMMON {
            sums[place] = sums[place].wrapping_add(self.counts[place].get());
        }
        if self.is_uncommon.get() {
            for place in COMMON..COUNTS {
                sums[place] = sums[place].wrapping_add(self.counts[place].get());
            }
        }
        let before = self.charged_before.get()?;
        Some(self.charged.get() - before)
    }
}
