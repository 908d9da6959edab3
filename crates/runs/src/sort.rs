//! Sorts records.
//!
//! By their heads first, which are numbers; those of one head by their second numbers; and only what is left is compared byte by byte.

use std::borrow::Borrow;

use crate::run::Run;
use crate::{Order, Record, radix};

/// Memory to sort in.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    by_head: Vec<u128>,
    spare: Vec<u128>,
    by_second: Vec<u128>,
    alike: Vec<u64>,
}

/// Where a record is: the number of its run and its own in it. The highest bit says that no number told it from the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64);

const AS_BEFORE: u64 = 1 << 63;

impl Place {
    #[inline]
    pub(crate) fn record<R: Borrow<Run>>(self, runs: &[R]) -> Record<'_> {
        record_at(self.0 & !AS_BEFORE, runs)
    }

    /// True if it may be equal to the record before.
    #[inline]
    pub(crate) fn may_be_as_before(self) -> bool {
        self.0 & AS_BEFORE != 0
    }
}

#[inline]
fn record_at<R: Borrow<Run>>(place: u64, runs: &[R]) -> Record<'_> {
    let (run, number) = (place >> 32, place & u64::from(u32::MAX));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both are numbers of what is in memory"
    )]
    let (run, number) = (run as usize, number as usize);
    runs[run].borrow().record(number)
}

/// A key and the place of a record, whose order is that of both.
#[inline]
fn keyed(key: u64, place: u64) -> u128 {
    u128::from(key) << 64 | u128::from(place)
}

#[inline]
fn key_of(keyed: u128) -> u64 {
    (keyed >> 64) as u64
}

#[inline]
fn place_of(keyed: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of it")]
    let place = keyed as u64;
    place
}

impl Sorter {
    /// The records of some runs in their order, equal ones as one. Those that may be equal are to come in the older run first.
    pub(crate) fn sort<R: Borrow<Run>>(&mut self, order: &impl Order, runs: &[R]) -> Run {
        let records = runs.iter().map(|run| run.borrow().len()).sum();
        let bytes = runs.iter().map(|run| run.borrow().bytes_len()).sum();
        let mut sorted = Run::with_capacity(records, bytes);
        let places = self.arrange(order, runs);
        let (mut rest, mut room) = (&places[..], Vec::new());
        while let Some((first, others)) = rest.split_first() {
            let first = first.record(runs);
            let alike = others.iter().take_while(|next| next.may_be_as_before());
            let alike = alike.map(|next| next.record(runs).bytes);
            let (joined, bytes) = join(order, first.bytes, alike, &mut room);
            sorted.push_record(Record { bytes, ..first });
            rest = &others[joined..];
        }
        sorted
    }

    /// The places of all records in their order, equal ones as they came.
    pub(crate) fn arrange<R: Borrow<Run>>(&mut self, order: &impl Order, runs: &[R]) -> Vec<Place> {
        let mut by_head = std::mem::take(&mut self.by_head);
        by_head.clear();
        for (number, run) in (0_u64..).zip(runs) {
            let places = number << 32..;
            let heads = run.borrow().heads().iter();
            by_head.extend(heads.zip(places).map(|(head, place)| keyed(*head, place)));
        }
        // Stable: of equal heads the lower place stays first.
        radix::sort_by_key(&mut by_head, &mut self.spare, |head| key_of(*head));
        let mut places = Vec::with_capacity(by_head.len());
        for group in by_head.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => places.push(Place(place_of(*only))),
                several => self.arrange_one_head(order, runs, several, &mut places),
            }
        }
        self.by_head = by_head;
        places
    }

    fn arrange_one_head<R: Borrow<Run>>(
        &mut self,
        order: &impl Order,
        runs: &[R],
        group: &[u128],
        places: &mut Vec<Place>,
    ) {
        let mut by_second = std::mem::take(&mut self.by_second);
        by_second.clear();
        by_second.extend(group.iter().map(|head| {
            let place = place_of(*head);
            keyed(order.second(record_at(place, runs).bytes), place)
        }));
        by_second.sort_unstable();
        for group in by_second.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => places.push(Place(place_of(*only))),
                several => self.arrange_alike(order, runs, several, places),
            }
        }
        self.by_second = by_second;
    }

    /// Sorts what no number tells apart.
    fn arrange_alike<R: Borrow<Run>>(
        &mut self,
        order: &impl Order,
        runs: &[R],
        group: &[u128],
        places: &mut Vec<Place>,
    ) {
        let of = |place: &u64| record_at(*place, runs).bytes;
        self.alike.clear();
        self.alike.extend(group.iter().map(|second| place_of(*second)));
        // Stable: of equal ones the older stays first.
        self.alike.sort_by(|a, b| order.compare(of(a), of(b)));
        let (first, rest) = self.alike.split_at(1);
        places.extend(first.iter().map(|place| Place(*place)));
        places.extend(rest.iter().map(|place| Place(*place | AS_BEFORE)));
    }
}

/// Joins the records that are equal to the first. Returns how many, and what they all mean together: where the first lies if it is alone, or
/// in `room`, which is memory to use.
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
