//! Sorts records.
//!
//! First by their heads, then, in groups of equal heads, by their second numbers. Only the rest is compared by bytes.

use std::borrow::Borrow;

use crate::run::Run;
use crate::{Order, Record, radix};

/// A sort, with memory that is reused.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    by_head: Vec<u128>,
    spare: Vec<u128>,
    by_second: Vec<u128>,
    alike: Vec<u64>,
}

/// The number of a run and of a record in it. The highest bit is set if no number distinguishes the record from the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locator(u64);

const AS_BEFORE: u64 = 1 << 63;

impl Locator {
    #[inline]
    pub(crate) fn record<R: Borrow<Run>>(self, runs: &[R]) -> Record<'_> {
        record_at(self.0 & !AS_BEFORE, runs)
    }

    /// True if it may be equal to the record before it.
    #[inline]
    pub(crate) fn may_be_as_before(self) -> bool {
        self.0 & AS_BEFORE != 0
    }
}

#[inline]
fn record_at<R: Borrow<Run>>(locator: u64, runs: &[R]) -> Record<'_> {
    let (run, number) = (locator >> 32, locator & u64::from(u32::MAX));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both are numbers of what is in memory"
    )]
    let (run, number) = (run as usize, number as usize);
    runs[run].borrow().record(number)
}

/// A key and a locator in one number, ordered by both.
#[inline]
fn keyed(key: u64, locator: u64) -> u128 {
    u128::from(key) << 64 | u128::from(locator)
}

#[inline]
fn key_of(keyed: u128) -> u64 {
    (keyed >> 64) as u64
}

#[inline]
fn locator_of(keyed: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of it")]
    let locator = keyed as u64;
    locator
}

impl Sorter {
    /// Sorts the records of some runs; equal ones become one. Requires: of runs that may have equal records, the older comes
    /// first.
    pub(crate) fn sort<R: Borrow<Run>>(&mut self, order: &impl Order, runs: &[R]) -> Run {
        let records = runs.iter().map(|run| run.borrow().len()).sum();
        let bytes = runs.iter().map(|run| run.borrow().bytes_len()).sum();
        let mut sorted = Run::with_capacity(records, bytes);
        let locators = self.arrange(order, runs);
        let (mut rest, mut room) = (&locators[..], Vec::new());
        while let Some((first, others)) = rest.split_first() {
            let first = first.record(runs);
            let alike = others.iter().take_while(|next| next.may_be_as_before());
            let alike = alike.map(|next| next.record(runs).bytes);
            let (joined, bytes) = join(order, first.bytes, alike, &mut room);
            sorted.push_sorted(order, Record { bytes, ..first });
            rest = &others[joined..];
        }
        sorted
    }

    /// The locators of all records in order, equal records in the order of runs.
    pub(crate) fn arrange<R: Borrow<Run>>(&mut self, order: &impl Order, runs: &[R]) -> Vec<Locator> {
        let mut by_head = std::mem::take(&mut self.by_head);
        by_head.clear();
        for (number, run) in (0_u64..).zip(runs) {
            let locators = number << 32..;
            let heads = run.borrow().heads().iter();
            by_head.extend(heads.zip(locators).map(|(head, locator)| keyed(*head, locator)));
        }
        // Stable: of equal heads, the lower locator stays first.
        radix::sort_by_key(&mut by_head, &mut self.spare, |head| key_of(*head));
        let mut locators = Vec::with_capacity(by_head.len());
        for group in by_head.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => locators.push(Locator(locator_of(*only))),
                several => self.arrange_one_head(order, runs, several, &mut locators),
            }
        }
        self.by_head = by_head;
        locators
    }

    fn arrange_one_head<R: Borrow<Run>>(
        &mut self,
        order: &impl Order,
        runs: &[R],
        group: &[u128],
        locators: &mut Vec<Locator>,
    ) {
        let mut by_second = std::mem::take(&mut self.by_second);
        by_second.clear();
        by_second.extend(group.iter().map(|head| {
            let locator = locator_of(*head);
            keyed(order.second(record_at(locator, runs).bytes), locator)
        }));
        by_second.sort_unstable();
        for group in by_second.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => locators.push(Locator(locator_of(*only))),
                several => self.arrange_alike(order, runs, several, locators),
            }
        }
        self.by_second = by_second;
    }

    /// Sorts records whose numbers are equal, by their bytes.
    fn arrange_alike<R: Borrow<Run>>(
        &mut self,
        order: &impl Order,
        runs: &[R],
        group: &[u128],
        locators: &mut Vec<Locator>,
    ) {
        let of = |locator: &u64| record_at(*locator, runs).bytes;
        self.alike.clear();
        self.alike.extend(group.iter().map(|second| locator_of(*second)));
        // Stable: of equal records, the older one stays first.
        self.alike.sort_by(|a, b| order.compare(of(a), of(b)));
        let (first, rest) = self.alike.split_at(1);
        locators.extend(first.iter().map(|locator| Locator(*locator)));
        locators.extend(rest.iter().map(|locator| Locator(*locator | AS_BEFORE)));
    }
}

/// Merges the records that are equal to the first. Returns their number and their merge: borrowed from the first if it is
/// alone, otherwise built in `room`.
#[inline]
pub(crate) fn join<'r>(
    order: &impl Order,
    first: &'r [u8],
    alike: impl Iterator<Item = &'r [u8]>,
    room: &'r mut Vec<u8>,
) -> (usize, &'r [u8]) {
    let mut joined = 0;
    for next in alike {
        let older = if joined == 0 { first } else { &room[..] };
        if order.compare(older, next).is_ne() {
            break;
        }
        let mut together = Vec::with_capacity(next.len());
        order.merge(older, next, &mut together);
        *room = together;
        joined += 1;
    }
    match joined {
        0 => (0, first),
        _ => (joined, room),
    }
}
