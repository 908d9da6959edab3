//! The search for an order of the operations of one register: the algorithm of Wing and Gong, with Lowe's cache of configurations.
//!
//! A configuration is the set of operations that are already in order, and the register's value after them. The next operation may be
//! any of the rest that was called before the earliest return among the rest. A configuration that was visited before is not tried
//! again. A write with an unknown outcome is tried like any other, but need not be in the order at the end.

use std::collections::HashSet;

use crate::operation::{Action, Operation, Outcome, Value};

/// Maximum number of configurations that the search remembers; then it gives up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub usize);

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An order that explains all answers.
    Order,
    /// No such order exists.
    None,
    /// The limit was reached.
    Undecided,
}

/// A set of operations, by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Set(Vec<u64>);

impl Set {
    fn has(&self, index: usize) -> bool {
        self.0[index / 64] & (1 << (index % 64)) != 0
    }

    fn with(&self, index: usize) -> Self {
        let mut with = self.clone();
        with.0[index / 64] |= 1 << (index % 64);
        with
    }
}

/// Looks for an order of the operations of one register.
pub(crate) fn search(operations: &[Operation], limit: Limit) -> Found {
    let mut operations = seen_only(operations);
    operations.sort_by_key(|operation| (operation.called, operation.returned()));
    let empty = Set(vec![0; operations.len().div_ceil(64)]);
    let mut seen: HashSet<(Set, Value)> = HashSet::new();
    let mut left = vec![(empty, None)];
    while let Some((done, value)) = left.pop() {
        let rest = |index: &usize| !done.has(*index);
        let rest = || (0..operations.len()).filter(rest);
        let Some(first_return) = rest()
            .map(|index| &operations[index])
            .filter(|operation| operation.outcome != Outcome::Unknown)
            .map(Operation::returned)
            .min()
        else {
            return Found::Order;
        };
        // A read that fits here can always come first, since it changes no value.
        let is_fitting = |index: &usize| {
            let operation = &operations[*index];
            let may_be_first = operation.called <= first_return;
            may_be_first && operation.only_reads() && operation.apply(value).is_some()
        };
        if let Some(index) = rest().find(is_fitting) {
            left.push((done.with(index), value));
            continue;
        }
        for index in rest() {
            let operation = &operations[index];
            if operation.called > first_return {
                break;
            }
            let Some(next) = operation.apply(value) else {
                continue;
            };
            let configuration = (done.with(index), next);
            if seen.contains(&configuration) {
                continue;
            }
            if seen.len() >= limit.0 {
                return Found::Undecided;
            }
            seen.insert(configuration.clone());
            left.push(configuration);
        }
    }
    Found::None
}

/// The operations without the unknown writes whose value no other operation names. Leaving these out changes no verdict: an order with
/// such a write is also valid without it, since no operation sees its value.
pub(crate) fn seen_only(operations: &[Operation]) -> Vec<Operation> {
    let is_seen = |index: &usize| {
        let (Action::Write(new) | Action::CompareAndSet(_, new), Outcome::Unknown) =
            (operations[*index].action, operations[*index].outcome)
        else {
            return true;
        };
        let others = operations.iter().enumerate().filter(|(at, _)| at != index);
        others.into_iter().any(|(_, other)| other.names(new))
    };
    let indexes = (0..operations.len()).filter(is_seen);
    indexes.map(|index| operations[index]).collect()
}
