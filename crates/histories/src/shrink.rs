//! The shortest part of a wrong history that is wrong by itself.
//!
//! Each step leaves a history that must be linearizable if the one before it is; so if it is still wrong, nothing was invented:
//! - A history is cut at a time. What was not answered then is unknown; reads that were not answered are left out.
//! - A read is left out, also a compare-and-set that did not set.
//! - The outcome of a write becomes unknown.
//! - An unknown write whose value nobody sees is left out ([`seen_only`]).

use crate::operation::{Action, Operation, Outcome};
use crate::search::{Found, Limit, search, seen_only};

/// A step is not taken if it costs more than this: writes whose outcome is made unknown have many orders.
const STEP: Limit = Limit(1000);

/// Shrinks a history that is wrong.
pub(crate) fn shrink(mut operations: Vec<Operation>, limit: Limit) -> Vec<Operation> {
    operations.sort_by_key(|operation| (operation.called, operation.returned()));
    operations = shortest_prefix(operations, &|operations| search(operations, limit) == Found::None);
    for index in (0..operations.len()).rev() {
        let mut fewer = operations.clone();
        if operations[index].only_reads() {
            fewer.remove(index);
        } else {
            fewer[index].outcome = Outcome::Unknown;
        }
        if search(&fewer, STEP) == Found::None {
            operations = fewer;
        }
    }
    seen_only(&operations)
}

fn shortest_prefix(operations: Vec<Operation>, is_wrong: &dyn Fn(&[Operation]) -> bool) -> Vec<Operation> {
    let mut returns: Vec<u64> = operations.iter().map(Operation::returned).collect();
    returns.retain(|returned| *returned != u64::MAX);
    returns.sort_unstable();
    let first = returns.partition_point(|time| !is_wrong(&cut(&operations, *time)));
    returns
        .get(first)
        .map_or(operations.clone(), |time| cut(&operations, *time))
}

/// What was known at a time, that time included.
fn cut(operations: &[Operation], time: u64) -> Vec<Operation> {
    let called = operations.iter().filter(|operation| operation.called <= time);
    let known = called.map(|operation| match operation.returned() <= time {
        true => *operation,
        false => Operation {
            outcome: Outcome::Unknown,
            ..*operation
        },
    });
    known
        .filter(|operation| operation.action != Action::Read || operation.outcome != Outcome::Unknown)
        .collect()
}
