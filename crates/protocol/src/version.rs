//! Protocol versions.

use std::fmt;

/// A version of the native protocol that Ilion speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Cassandra 2.1.
    V3,
    /// Cassandra 2.2 and later; most drivers.
    V4,
    /// Cassandra 4.0 and later: segments, metadata ids, per-request keyspace.
    V5,
}

impl Version {
    /// The newest version. Errors about unknown versions have this version.
    pub const NEWEST: Self = Self::V5;
    /// All supported versions, oldest first.
    pub const SUPPORTED: [Self; 3] = [Self::V3, Self::V4, Self::V5];

    /// The version with this number, without the direction bit.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            3 => Some(Self::V3),
            4 => Some(Self::V4),
            5 => Some(Self::V5),
            _ => None,
        }
    }

    /// The number in the first byte of an envelope.
    #[inline]
    pub fn number(self) -> u8 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V5 => 5,
        }
    }

    /// The message about an unsupported version. Compat: the words of Cassandra 5.0, which drivers look for.
    pub(crate) fn unsupported_message(number: u8) -> String {
        format!(
            "Invalid or unsupported protocol version ({number}); supported versions are ({})",
            Self::SUPPORTED.map(|version| version.to_string()).join(", ")
        )
    }

    /// The message for a client that requests a version in development. Cassandra's sstableloader is such a client. It shows this
    /// text to its user, since the first two words of the other message are missing. Drivers find the remaining words, and take an older
    /// version.
    pub(crate) fn unsupported_beta_message(number: u8) -> String {
        format!(
            "{number} is an unsupported protocol version; supported versions are ({}). \
             Instead of sstableloader use `ilion sstable load --host ADDRESS DIR`, which sends SSTables to the admin_port",
            Self::SUPPORTED.map(|version| version.to_string()).join(", ")
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{0}/v{0}", self.number())
    }
}
