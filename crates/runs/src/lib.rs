//! Many small records in memory, written far more often than they are asked for: entries of indexes.
//!
//! A record is appended to an unsorted tail. A full tail is sorted into a run, and runs of one size are merged into a larger one,
//! up to a size from which they are left as they are: so a write copies its bytes once and a record is moved a few times
//! more, always beside its neighbours, where a tree would touch one cold place after another for each. Whoever reads
//! has the tail sorted first and keeps the runs, which do not change; writes go on meanwhile.
//!
//! Records that are equal by their [`Order`] are one: what they mean together [`Order::merge`] says, the older first.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | [`Run`]: sorted records |
//! | `runs` | [`Runs`]: the tail and the runs |
//! | `walk` | [`Walk`]: several runs read as one |

mod run;
mod runs;
#[cfg(test)]
mod tests;
mod walk;

use std::cmp::Ordering;

pub use run::{Record, Run};
pub use runs::Runs;
pub use walk::Walk;

/// How records stand to each other. Heads, which are numbers, are compared first, so that most records are never looked into.
pub trait Order {
    /// Orders two records of the same head.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Appends what two equal records mean together; `older` was put in first. Associative.
    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>);

    /// True if a record means nothing once there is no older one that it is equal to: it may be dropped.
    fn is_void(&self, _record: &[u8]) -> bool {
        false
    }
}

/// Orders two records.
#[inline]
pub(crate) fn compare(order: &impl Order, a: Record<'_>, b: Record<'_>) -> Ordering {
    a.head.cmp(&b.head).then_with(|| order.compare(a.bytes, b.bytes))
}
