//! The arithmetic of consistency levels: how many replicas must answer.
//!
//! Compat: `ConsistencyLevel.blockFor` of Cassandra 5.0. [`needs`] is tested against the answers of
//! Cassandra's own class (`testdata-cassandra`).

use ilion_protocol::Consistency;

use crate::placement::Strategy;

impl Strategy {
    /// Number of replicas of a partition.
    pub fn factor(&self) -> u32 {
        match self {
            Self::Local => 1,
            Self::Simple(factor) => *factor,
            Self::Network(factors) => factors.values().copied().fold(0, u32::saturating_add),
        }
    }

    /// Number of replicas in a data center. A strategy without data centers counts all replicas.
    fn factor_in(&self, datacenter: &str) -> u32 {
        match self {
            Self::Network(factors) => factors.get(datacenter).copied().unwrap_or(0),
            Self::Local | Self::Simple(_) => self.factor(),
        }
    }
}

fn majority(factor: u32) -> u32 {
    factor / 2 + 1
}

/// Number of replicas that must answer, for a coordinator in the data center `local`.
pub fn needs(level: Consistency, strategy: &Strategy, local: &str) -> u32 {
    match level {
        Consistency::Any | Consistency::One | Consistency::LocalOne => 1,
        Consistency::Two => 2,
        Consistency::Three => 3,
        Consistency::Quorum | Consistency::Serial => majority(strategy.factor()),
        Consistency::All => strategy.factor(),
        Consistency::LocalQuorum | Consistency::LocalSerial => majority(strategy.factor_in(local)),
        Consistency::EachQuorum => match strategy {
            Strategy::Network(factors) => factors
                .values()
                .map(|factor| majority(*factor))
                .fold(0, u32::saturating_add),
            Strategy::Local | Strategy::Simple(_) => majority(strategy.factor()),
        },
    }
}
