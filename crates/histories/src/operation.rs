//! [`Operation`]: a request of a client to a register, and the answer.

use std::fmt;

/// The value of a register. `None` before the first write.
pub type Value = Option<u64>;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Read the value.
    Read,
    /// Set the value.
    Write(u64),
    /// Set the value to the second argument, if it equals the first.
    CompareAndSet(Value, u64),
}

/// The answer that a client got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It took effect between call and return.
    Done {
        /// When the answer came.
        returned: u64,
        /// The value that was found by a read, or by a compare-and-set that did not set; otherwise `None`.
        found: Option<Value>,
    },
    /// A timeout, or no answer: the request may have taken effect, or may do so later, or never.
    Unknown,
}

/// One operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// The client.
    pub client: u32,
    /// The register.
    pub key: u64,
    /// When it was called.
    pub called: u64,
    /// The request.
    pub action: Action,
    /// The answer.
    pub outcome: Outcome,
}

impl Operation {
    /// When it returned; `u64::MAX` if that is unknown.
    pub(crate) fn returned(&self) -> u64 {
        match self.outcome {
            Outcome::Done { returned, .. } => returned,
            Outcome::Unknown => u64::MAX,
        }
    }

    /// The value after the operation; `None` if it cannot have had its outcome at this value.
    pub(crate) fn apply(&self, value: Value) -> Option<Value> {
        let found = match self.outcome {
            Outcome::Done { found, .. } => found,
            Outcome::Unknown => None,
        };
        match (self.action, found) {
            (Action::Read, Some(found)) => (found == value).then_some(value),
            (Action::Read, None) => Some(value),
            (Action::Write(new), _) => Some(Some(new)),
            (Action::CompareAndSet(expected, new), None) => (expected == value).then_some(Some(new)),
            (Action::CompareAndSet(expected, _), Some(found)) => {
                (found == value && found != expected).then_some(value)
            }
        }
    }

    /// True if its answer may depend on whether the register had this value.
    pub(crate) fn names(&self, value: u64) -> bool {
        let found = matches!(self.outcome, Outcome::Done { found: Some(found), .. } if found == Some(value));
        found || matches!(self.action, Action::CompareAndSet(expected, _) if expected == Some(value))
    }

    /// True if it changes no value, wherever it is in the order.
    pub(crate) fn only_reads(&self) -> bool {
        let found = matches!(self.outcome, Outcome::Done { found: Some(_), .. });
        self.action == Action::Read || found
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "client {} key {}: ", self.client, self.key)?;
        let print = |value: Value| value.map_or("none".to_owned(), |value| value.to_string());
        match self.action {
            Action::Read => write!(out, "read")?,
            Action::Write(new) => write!(out, "write {new}")?,
            Action::CompareAndSet(expected, new) => write!(out, "cas {} {new}", print(expected))?,
        }
        match self.outcome {
            Outcome::Done { returned, found } => {
                if let Some(found) = found {
                    write!(out, " found {}", print(found))?;
                }
                write!(out, " @{}-{returned}", self.called)
            }
            Outcome::Unknown => write!(out, " @{}-?", self.called),
        }
    }
}
