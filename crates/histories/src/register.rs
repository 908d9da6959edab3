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
    /// No order explains them. These operations alone are a contradiction, whatever the others did.
    Wrong(Vec<Operation>),
    /// The search reached its limit. Make histories shorter, with fewer clients or fewer unknown outcomes.
    Undecided {
        /// The register.
        key: u64,
    },
}

/// Looks for an order of all operations that explains every answer, register by register. An operation that returned before another
/// was called must come before it. The search gives up after `configurations_max` configurations of a register.
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
