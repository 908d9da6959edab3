//! The search for an order of the operations of one register: Wing and Gong's, with Lowe's memory of configurations.
//!
//! A configuration is the set of operations that were put in order, and the value after them. From it the search goes on with any
//! operation that was called before the first return among those that are left. A configuration that was seen before is not tried again.
//! Operations whose outcome is unknown may be left over at the end. A write that is unknown and was called is tried like any other.

use std::collections::HashSet;

use crate::operation::{Action, Operation, Outcome, Value};

/// How many configurations are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub usize);

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An order that explains all answers.
    Order,
    /// There is none.
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
        // A read that fits here may as well come first: it changes nothing.
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

/// The operations without unknown writes whose value no other operation names. To leave these out changes no verdict: an order that has
/// one is as good without it, since what follows it directly does not see it.
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
