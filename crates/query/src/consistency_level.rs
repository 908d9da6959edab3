//! [`Consistency`]: the consistency levels of the protocol.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A consistency level by its code in the protocol. A single node has all data, so it never waits for replicas: it only checks the
/// level and repeats it in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Consistency(pub u16);

impl Consistency {
    /// `ANY`
    pub const ANY: Self = Self(0);
    /// `ONE`
    pub const ONE: Self = Self(1);
    /// `QUORUM`
    pub const QUORUM: Self = Self(4);
    /// `ALL`
    pub const ALL: Self = Self(5);
    /// `LOCAL_QUORUM`
    pub const LOCAL_QUORUM: Self = Self(6);
    /// `SERIAL`
    pub const SERIAL: Self = Self(8);
    /// `LOCAL_SERIAL`
    pub const LOCAL_SERIAL: Self = Self(9);
    /// `LOCAL_ONE`
    pub const LOCAL_ONE: Self = Self(10);

    /// True for `SERIAL` and `LOCAL_SERIAL`.
    pub fn is_serial(self) -> bool {
        self == Self::SERIAL || self == Self::LOCAL_SERIAL
    }
}

impl Default for Consistency {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 12] = [
            "ANY",
            "ONE",
            "TWO",
            "THREE",
            "QUORUM",
            "ALL",
            "LOCAL_QUORUM",
            "EACH_QUORUM",
            "SERIAL",
            "LOCAL_SERIAL",
            "LOCAL_ONE",
            "NODE_LOCAL",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "consistency {}", self.0),
        }
    }
}
