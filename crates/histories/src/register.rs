//! The verdict about a history of registers with compare-and-set.

use std::collections::BTreeMap;
use std::fmt;

use crate::operation::Operation;
use crate::search::{Found, Limit, search};
use crate::shrink::shrink;

/// What is known about a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains every answer.
    Linearizable,
    /// No order does: these operations cannot be explained, even if every operation that is not shown happened or not as it likes.
    Wrong(Vec<Operation>),
    /// The search was given up. Make histories shorter, with fewer clients or fewer unknown outcomes.
    Undecided {
        /// The register.
        key: u64,
    },
}

/// Looks for an order of all operations that explains every answer, register by register: the order of two operations is free only if
/// each was called before the other returned. It remembers at most `configurations_max` configurations of a register.
pub fn check_registers(history: &[Operation], configurations_max: usize) -> Verdict {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        keys.entry(operation.key).or_default().push(*operation);
    }
    let mut verdict = Verdict::Linearizable;
    for (key, operations) in keys {
        match search(&operations, Limit(configurations_max)) {
            Found::Order => {}
            Found::None => return Verdict::Wrong(shrink(operations, Limit(configurations_max))),
            Found::Undecided => verdict = Verdict::Undecided { key },
        }
    }
    verdict
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linearizable => write!(out, "linearizable"),
            Self::Undecided { key } => {
                write!(out, "undecided: too many orders of the operations of key {key}")
            }
            Self::Wrong(operations) => {
                writeln!(out, "not linearizable, by these operations alone:")?;
                operations
                    .iter()
                    .try_for_each(|operation| writeln!(out, "  {operation}"))
            }
        }
    }
}
