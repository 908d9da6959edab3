//! The shortest part of a wrong history that is wrong by itself.
//!
//! No step can make a linearizable history wrong. So if the result of a step is wrong, the history before it was, too:
//! - A history is cut at a time. Operations that were not answered by then become unknown; such reads are left out.
//! - A read is left out, also a compare-and-set that did not set.
//! - The outcome of a write becomes unknown.
//! - An unknown write whose value nobody sees is left out ([`seen_only`]).

use crate::operation::{Action, Operation, Outcome};
use crate::search::{Found, Limit, search, seen_only};

/// A step is skipped if its check costs more than this: writes with unknown outcomes have many orders.
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

/// The history as it was known at this time, inclusive.
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
