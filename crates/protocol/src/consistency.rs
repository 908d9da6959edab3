//! Consistency levels.

use std::fmt;

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Consistency {
    /// A hint is enough (writes).
    Any = 0,
    /// One replica.
    #[default]
    One = 1,
    /// Two replicas.
    Two = 2,
    /// Three replicas.
    Three = 3,
    /// A majority.
    Quorum = 4,
    /// All replicas.
    All = 5,
    /// A majority in the local data center.
    LocalQuorum = 6,
    /// A majority in each data center.
    EachQuorum = 7,
    /// Linearizable (lightweight transactions).
    Serial = 8,
    /// Linearizable in the local data center.
    LocalSerial = 9,
    /// One replica in the local data center.
    LocalOne = 10,
}

impl Consistency {
    /// All levels, by number.
    pub const ALL: [Self; 11] = [
        Self::Any,
        Self::One,
        Self::Two,
        Self::Three,
        Self::Quorum,
        Self::All,
        Self::LocalQuorum,
        Self::EachQuorum,
        Self::Serial,
        Self::LocalSerial,
        Self::LocalOne,
    ];

    /// The level with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The number on the wire.
    #[inline]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// True for the two levels of lightweight transactions.
    pub fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "ANY",
            Self::One => "ONE",
            Self::Two => "TWO",
            Self::Three => "THREE",
            Self::Quorum => "QUORUM",
            Self::All => "ALL",
            Self::LocalQuorum => "LOCAL_QUORUM",
            Self::EachQuorum => "EACH_QUORUM",
            Self::Serial => "SERIAL",
            Self::LocalSerial => "LOCAL_SERIAL",
            Self::LocalOne => "LOCAL_ONE",
        })
    }
}
