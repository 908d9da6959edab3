//! The arithmetic of consistency levels: how many replicas must answer, and whether enough of them are there.
//!
//! Compat: `ConsistencyLevel.blockFor` and `ReplicaPlans.assureSufficientLiveReplicas` of Cassandra 5.0. `needs` is tested against
//! the answers of Cassandra's own class (`testdata-cassandra`).

use std::collections::BTreeMap;

use ilion_protocol::Consistency;

use crate::placement::Strategy;

/// Too few replicas are alive; with the numbers of Cassandra's UNAVAILABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Cannot achieve consistency level: {required} replicas are required, {alive} are alive")]
pub struct Unavailable {
    /// How many must be alive.
    pub required: u32,
    /// How many are alive.
    pub alive: u32,
}

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

/// Whether enough replicas are alive. `alive` has their number for each data center.
///
/// # Errors
/// The required and the live number of replicas; for `EACH_QUORUM`, those of the first data center with too few.
pub fn suffices(
    level: Consistency,
    strategy: &Strategy,
    local: &str,
    alive: &BTreeMap<String, u32>,
) -> Result<(), Unavailable> {
    let check = |required, alive| {
        if alive >= required {
            Ok(())
        } else {
            Err(Unavailable { required, alive })
        }
    };
    let alive_in = |datacenter: &str| alive.get(datacenter).copied().unwrap_or(0);
    let required = needs(level, strategy, local);
    match (level, strategy) {
        // ANY is satisfied by a record in the log, which needs no replica.
        (Consistency::Any, _) => Ok(()),
        (Consistency::LocalOne | Consistency::LocalQuorum | Consistency::LocalSerial, _) => {
            check(required, alive_in(local))
        }
        (Consistency::EachQuorum, Strategy::Network(factors)) => factors
            .iter()
            .try_for_each(|(datacenter, factor)| check(majority(*factor), alive_in(datacenter))),
        _ => check(required, alive.values().copied().fold(0, u32::saturating_add)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Consistency, Strategy, Unavailable, suffices};

    fn network() -> Strategy {
        Strategy::Network([("a".to_owned(), 3), ("b".to_owned(), 1)].into())
    }

    #[test]
    fn each_data_center_counts_where_the_level_says_so() {
        let alive = |a, b| [("a".to_owned(), a), ("b".to_owned(), b)].into();
        let check = |level, a, b| suffices(level, &network(), "a", &alive(a, b));
        let missing = |required, alive| Err(Unavailable { required, alive });
        assert_eq!(check(Consistency::EachQuorum, 2, 1), Ok(()));
        assert_eq!(check(Consistency::EachQuorum, 3, 0), missing(1, 0));
        assert_eq!(check(Consistency::EachQuorum, 1, 1), missing(2, 1));
        assert_eq!(check(Consistency::LocalQuorum, 2, 0), Ok(()));
        assert_eq!(check(Consistency::LocalQuorum, 1, 1), missing(2, 1));
        assert_eq!(check(Consistency::Quorum, 2, 1), Ok(()));
        assert_eq!(check(Consistency::Quorum, 2, 0), missing(3, 2));
        assert_eq!(check(Consistency::LocalOne, 0, 1), missing(1, 0));
        assert_eq!(check(Consistency::One, 0, 1), Ok(()));
        assert_eq!(check(Consistency::All, 3, 0), missing(4, 3));
        assert_eq!(check(Consistency::Any, 0, 0), Ok(()));
    }
}
