//! Many small records in memory that are written far more often than they are read: entries of indexes.
//!
//! A write appends its record to an unsorted tail. So it copies bytes, and does not walk a tree in cold memory. A reader of a
//! stretch takes references to the sorted runs, which never change, and copies the records of the stretch from the unsorted
//! tails; writes continue meanwhile. When readers have spent as much work on a tail as sorting takes, it is sorted to a run, so
//! no reader waits for a sort of everything. Runs of one level are merged to one of the next, up to a limit of size. What is
//! never read is never sorted, unless many records are equal to others: then sorting saves memory.
//!
//! Records that are equal by their [`Order`] become one: [`Order::merge`] merges them, the older first.
//!
//! A record can be the removal of an older, equal record ([`Order::is_removal`]). A sorted run has a bit for each record. It is set if the
//! record is a removal, or if a reader has found a removal of it in a newer run. [`Walk::take_living`] skips 64 such records in a step.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | [`Run`]: sorted records |
//! | `runs` | [`Runs`]: the tail and the runs |
//! | `levels` | which runs are merged |
//! | `sort` | sorts unsorted tails to a run |
//! | `ordered` | [`Ordered`]: all records in order, after the last write |
//! | `stretch` | [`Stretch`]: the range of records that a reader selects |
//! | [`radix`] | sorting by integer keys |
//! | `shared` | [`SharedRuns`]: runs behind a lock |
//! | `walk` | [`Walk`]: several runs read as one |

mod levels;
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

/// The order of records. Their heads, which are numbers, are compared first, so that the bytes of most records need not be
/// read.
pub trait Order {
    /// Orders two records of the same head.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Appends the merge of two equal records; `older` was added first. Associative.
    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>);

    /// A number that orders records of the same head before their bytes are compared: a lower number means a lower record.
    fn second(&self, _record: &[u8]) -> u64 {
        0
    }

    /// True if the record removes older, equal records, and adds nothing. Other records are living.
    fn is_removal(&self, _record: &[u8]) -> bool {
        false
    }

    /// True if a reader sees the same without the record, whatever the older records are. Requires: it is a removal.
    fn is_void(&self, _record: &[u8]) -> bool {
        false
    }

    /// Whether records that are void when they are sorted are put aside for [`SharedRuns::all`]. Otherwise they are dropped.
    const KEEPS_VOID: bool = false;
}

/// The first eight bytes as a number, padded with zeros: a head in the order of the bytes.
#[inline]
pub fn head_of(bytes: &[u8]) -> u64 {
    if let Some(head) = bytes.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let missing_bits = 8 * (size_of::<u64>() - bytes.len());
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Both reads are equal where they overlap.
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
