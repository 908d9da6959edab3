//! Sorts records.
//!
//! By their heads first, which are numbers; those of one head by their second numbers; and only what is left is compared byte by byte.

use crate::run::Run;
use crate::{Order, Record, radix};

/// Memory to sort in.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    by_head: Vec<u128>,
    spare: Vec<u128>,
    by_second: Vec<u128>,
    numbers: Vec<u32>,
}

/// A key and the number of a record, whose order is that of both.
fn keyed(key: u64, number: u32) -> u128 {
    u128::from(key) << 32 | u128::from(number)
}

fn key_of(keyed: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "96 bits are used")]
    let key = (keyed >> 32) as u64;
    key
}

fn number_of(keyed: u128) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of it")]
    let number = keyed as u32;
    number
}

impl Sorter {
    /// The records in their order, equal ones as one.
    pub(crate) fn sort(&mut self, order: &impl Order, tail: &Run) -> Run {
        let mut run = Run::with_capacity(tail.len(), tail.bytes_len());
        let mut by_head = std::mem::take(&mut self.by_head);
        by_head.clear();
        by_head.extend((0..).zip(tail.heads()).map(|(number, head)| keyed(*head, number)));
        // Stable: of equal heads the lower number stays first.
        radix::sort_by_key(&mut by_head, &mut self.spare, |head| key_of(*head));
        for group in by_head.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => run.push_record(tail.record(number_of(*only) as usize)),
                several => self.sort_one_head(order, tail, several, &mut run),
            }
        }
        self.by_head = by_head;
        run
    }

    fn sort_one_head(&mut self, order: &impl Order, tail: &Run, group: &[u128], run: &mut Run) {
        let mut by_second = std::mem::take(&mut self.by_second);
        by_second.clear();
        by_second.extend(group.iter().map(|head| {
            let number = number_of(*head);
            keyed(order.second(tail.record(number as usize).bytes), number)
        }));
        by_second.sort_unstable();
        for group in by_second.chunk_by(|a, b| key_of(*a) == key_of(*b)) {
            match group {
                [only] => run.push_record(tail.record(number_of(*only) as usize)),
                several => self.sort_alike(order, tail, several, run),
            }
        }
        self.by_second = by_second;
    }

    /// Sorts what no number tells apart.
    fn sort_alike(&mut self, order: &impl Order, tail: &Run, group: &[u128], run: &mut Run) {
        let of = |number: &u32| tail.record(*number as usize);
        self.numbers.clear();
        self.numbers.extend(group.iter().map(|second| number_of(*second)));
        // Stable: of equal ones the older stays first.
        self.numbers
            .sort_by(|a, b| order.compare(of(a).bytes, of(b).bytes));
        let is_equal = |a: &u32, b: &u32| order.compare(of(a).bytes, of(b).bytes).is_eq();
        for equal in self.numbers.chunk_by(is_equal) {
            match equal {
                [only] => run.push_record(of(only)),
                [first, rest @ ..] => push_merged(order, of(first), rest.iter().map(of), run),
                [] => {}
            }
        }
    }
}

fn push_merged<'r>(
    order: &impl Order,
    first: Record<'r>,
    rest: impl Iterator<Item = Record<'r>>,
    run: &mut Run,
) {
    let merged = rest.fold(first.bytes.to_vec(), |older, newer| {
        let mut together = Vec::with_capacity(newer.bytes.len());
        order.merge(&older, newer.bytes, &mut together);
        together
    });
    run.push(first.head, |out| out.extend_from_slice(&merged));
}
