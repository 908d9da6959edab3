//! Many small records in memory, written far more often than they are asked for: entries of indexes.
//!
//! A record is appended to an unsorted tail: so a write copies its bytes, and touches no cold place after another as in a tree.
//! Whoever reads a stretch keeps the runs, which do not change, and picks what it wants of what is unsorted; writes go on meanwhile. Once
//! readers have spent as much on that as sorting takes, a tail becomes a run: so nobody waits for all to be sorted.
//! Runs of one level are merged into one of the next, up to a size from which they are left as they are. What nobody reads is
//! never sorted, unless records are written again and again, which sorting makes one.
//!
//! Records that are equal by their [`Order`] are one: what they mean together [`Order::merge`] says, the older first.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | [`Run`]: sorted records |
//! | `runs` | [`Runs`]: the tail and the runs |
//! | `sort` | unsorted tails to a run |
//! | `ordered` | [`Ordered`]: all records, once nobody writes any more |
//! | `stretch` | [`Stretch`]: which records a reader wants |
//! | [`radix`] | sorting by numbers |
//! | `shared` | [`SharedRuns`]: the same behind a lock |
//! | `walk` | [`Walk`]: several runs read as one |

mod ordered;
pub mod radix;
mod run;
mod runs;
mod shared;
mod sort;
mod stretch;
#[cfg(test)]
mod tests;
mod walk;

use std::cmp::Ordering;

pub use ordered::Ordered;
pub use run::{Record, Room, Run};
pub use runs::{Coming, Kind, Runs};
pub use shared::SharedRuns;
pub use stretch::{All, Stretch};
pub use walk::Walk;

/// How records stand to each other. Heads, which are numbers, are compared first, so that most records are never looked into.
pub trait Order {
    /// Orders two records of the same head.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Appends what two equal records mean together; `older` was put in first. Associative.
    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>);

    /// A number by which records of the same head are compared before they are looked into: if it is less, so is the record.
    fn second(&self, _record: &[u8]) -> u64 {
        0
    }

    /// True if a record means nothing once there is no older one that it is equal to: it may be dropped.
    fn is_void(&self, _record: &[u8]) -> bool {
        false
    }
}

/// The first eight bytes as a number, with zeros for what is missing: a head that orders as the bytes do.
#[inline]
pub fn head_of(bytes: &[u8]) -> u64 {
    if let Some(head) = bytes.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let missing_bits = 8 * (size_of::<u64>() - bytes.len());
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Where they overlap they are the same.
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        return u64::from(first) << 32 | u64::from(last) << missing_bits;
    }
    match bytes {
        [] => 0,
        few => few.iter().fold(0, |head, byte| head << 8 | u64::from(*byte)) << missing_bits,
    }
}

/// Orders two records.
#[inline]
pub(crate) fn compare(order: &impl Order, a: Record<'_>, b: Record<'_>) -> Ordering {
    a.head.cmp(&b.head).then_with(|| order.compare(a.bytes, b.bytes))
}
