//! The cost of a request: its I/O ([`crate::account`]) and the counts of the layers above.
//!
//! Counts are thread-local numbers, so counting is always on and costs one addition. The outermost [`CostScope`] of a thread
//! sets them to zero; an inner one remembers their values at its start.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Instant;

use crate::RequestIo;
use crate::books::{BOOKS, Books};
use crate::count::COUNTS;

pub use crate::count::Count;

/// Adds to a count of this thread's request.
#[inline]
pub fn add(count: Count, amount: u64) {
    BOOKS.with(|books| books.add(count as usize, amount));
}

/// Runs `work`, which may wait, and adds its duration to `count`.
pub fn timed<T>(count: Count, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    add(
        count,
        u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
    );
    done
}

/// The cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Reads, writes and syncs of files, and their duration.
    pub io: RequestIo,
    counts: [u64; COUNTS],
}

impl Cost {
    /// The value of a count.
    #[inline]
    pub fn of(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// The same cost with one count replaced.
    #[must_use]
    pub fn with(mut self, count: Count, amount: u64) -> Self {
        self.counts[count as usize] = amount;
        self
    }

    #[cold]
    fn add_io(&mut self, io: RequestIo) -> u64 {
        self.io = self.io + io;
        io.bytes_read
    }

    /// See [`amplification_percent`].
    pub fn amplification_percent(&self) -> u64 {
        amplification_percent(self.io.bytes_read, self.of(Count::BytesReturned))
    }
}

impl std::ops::AddAssign<&Self> for Cost {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        if other.io != RequestIo::default() {
            self.io = self.io + other.io;
        }
        for (sum, more) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.wrapping_add(*more);
        }
    }
}

/// Starts to measure what this thread does for a request.
#[inline]
pub fn begin() -> CostScope {
    let outer = BOOKS.with(|books| {
        if books.is_open.replace(true) {
            return Some(Box::new(Start::now(books)));
        }
        books.clear();
        None
    });
    CostScope {
        outer,
        this_thread: PhantomData,
    }
}

/// Measures this thread's cost since [`begin`].
#[derive(Debug)]
pub struct CostScope {
    /// The values at its start, if it is inside another scope; an outermost scope starts at zero.
    outer: Option<Box<Start>>,
    this_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Start {
    io: RequestIo,
    counts: [u64; COUNTS],
}

impl Start {
    #[cold]
    fn now(books: &Books) -> Self {
        Self {
            io: books.charged(),
            counts: books.counts.each_ref().map(Cell::get),
        }
    }

    /// Adds the difference between now and this start; returns the I/O.
    #[cold]
    fn add_later_to(&self, sum: &mut Cost) -> RequestIo {
        BOOKS.with(|books| {
            for ((sum, now), before) in sum.counts.iter_mut().zip(&books.counts).zip(&self.counts) {
                *sum = sum.wrapping_add(now.get()).wrapping_sub(*before);
            }
            books.charged() - self.io
        })
    }
}

impl CostScope {
    /// The cost so far.
    pub fn so_far(&self) -> Cost {
        let mut cost = Cost::default();
        self.add_to(&mut cost);
        cost
    }

    /// The value of a count so far.
    #[inline]
    pub fn of(&self, count: Count) -> u64 {
        let now = BOOKS.with(|books| books.counts[count as usize].get());
        match &self.outer {
            None => now,
            Some(outer) => now.wrapping_sub(outer.counts[count as usize]),
        }
    }

    /// Adds the cost so far; returns its bytes read.
    #[inline]
    pub fn add_to(&self, sum: &mut Cost) -> u64 {
        let io = match &self.outer {
            None => BOOKS.with(|books| books.add_to(&mut sum.counts)),
            Some(outer) => Some(outer.add_later_to(sum)),
        };
        match io {
            None => 0,
            Some(io) => sum.add_io(io),
        }
    }
}

impl Drop for CostScope {
    #[inline]
    fn drop(&mut self) {
        if self.outer.is_none() {
            BOOKS.with(|books| books.is_open.set(false));
        }
    }
}

/// Bytes read from disk for each byte of the answer, in hundredths. An answer without bytes counts as one byte.
#[inline]
pub fn amplification_percent(bytes_read: u64, bytes_returned: u64) -> u64 {
    match bytes_read {
        0 => 0,
        read => read.saturating_mul(100) / bytes_returned.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_scope_and_scopes_nest() {
        add(Count::Rows, 5);
        let outer = begin();
        add(Count::Rows, 1);
        let inner = begin();
        add(Count::Rows, 2);
        add(Count::Tombstones, 7);
        assert_eq!(inner.so_far().of(Count::Rows), 2);
        let cost = outer.so_far();
        assert_eq!((cost.of(Count::Rows), cost.of(Count::Tombstones)), (3, 7));
        assert_eq!(cost.of(Count::Memtables), 0);
    }

    #[test]
    fn amplification_is_what_was_read_over_what_was_answered() {
        let mut cost = Cost::default();
        assert_eq!(cost.amplification_percent(), 0);
        cost.io.bytes_read = 300;
        assert_eq!(cost.amplification_percent(), 30_000);
        assert_eq!(cost.with(Count::BytesReturned, 200).amplification_percent(), 150);
    }
}
