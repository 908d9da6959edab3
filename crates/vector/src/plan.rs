//! Decides the extent of a search, and between walk and scan. Pure.

use crate::{OptimizeFor, Options};

/// The extent of a search.
///
/// It ends when the next node to visit is farther than the `breadth` nearest nodes visited, and farther, by `slack`, than the
/// last wanted result. The breadth leads out of dead ends. The slack makes a search longer if its data are harder: among
/// clustered points, few are about as near as the tenth; among random ones, many are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Minimum number of nodes to visit.
    pub breadth: usize,
    /// How much farther than the last wanted result a visited node may be, as a fraction of that distance.
    pub slack: f32,
    /// The slack as a fraction of the way from that result to a typical vector: if all vectors are about equally far, a small
    /// `slack` already covers many of them.
    pub spread: f32,
}

impl Reach {
    /// The extent for the options of an index.
    pub fn of(options: &Options) -> Self {
        match options.optimize_for {
            OptimizeFor::Latency => Self {
                breadth: 100,
                slack: 0.11,
                spread: 0.5,
            },
            OptimizeFor::Recall => Self {
                breadth: 300,
                slack: 0.15,
                spread: 0.7,
            },
        }
    }
}

/// How the nearest vectors are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By following links.
    Walk,
    /// By measuring all accepted vectors.
    Scan,
}

/// Number of nodes measured per visited node: its new neighbours.
const MEASURED_PER_HOP: u64 = 12;
/// Number of calls of the filter that cost as much as one distance.
const ASKED_PER_DISTANCE: u64 = 10;

/// Decides between walk and scan. `accepted` is the number of accepted ordinals, if it is known; `None` means all.
pub fn choose(nodes: u32, accepted: Option<u32>, limit: usize, reach: Reach) -> Way {
    let nodes = u64::from(nodes);
    let accepted = accepted.map_or(nodes, u64::from).min(nodes);
    let scan = accepted + nodes / ASKED_PER_DISTANCE;
    let hops = (limit.max(reach.breadth) as u64).saturating_mul(nodes) / accepted.max(1);
    if scan <= hops.saturating_mul(MEASURED_PER_HOP) {
        Way::Scan
    } else {
        Way::Walk
    }
}

/// The maximum distance of a node to visit, if the last wanted result is at `distance`, and a typical vector at `typical`.
pub(crate) fn farther(distance: f32, typical: f32, reach: Reach) -> f32 {
    let by_slack = distance * (1.0 + reach.slack);
    let by_spread = distance + (typical - distance).max(0.0) * reach.spread;
    by_slack.min(by_spread)
}

/// True if a scan should end a walk that has measured this many nodes. A scan measures a node for half the cost, so a search
/// never costs more than about two scans, whatever its data and filter.
pub(crate) fn gives_up(measured: usize, nodes: u32) -> bool {
    measured as u64 * 2 > u64::from(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: Reach = Reach {
        breadth: 100,
        slack: 0.0,
        spread: 0.0,
    };

    #[test]
    fn few_nodes_and_few_accepted_ones_are_scanned() {
        assert_eq!(choose(0, None, 10, REACH), Way::Scan);
        assert_eq!(choose(1000, None, 10, REACH), Way::Scan);
        assert_eq!(choose(100_000, None, 10, REACH), Way::Walk);
        assert_eq!(choose(100_000, Some(50_000), 10, REACH), Way::Walk);
        assert_eq!(choose(100_000, Some(500), 10, REACH), Way::Scan);
        assert_eq!(choose(100_000, Some(0), 10, REACH), Way::Scan);
    }

    #[test]
    fn slack_is_less_where_all_are_about_as_far() {
        let reach = Reach {
            breadth: 100,
            slack: 0.5,
            spread: 0.25,
        };
        assert_eq!(farther(4.0, 100.0, reach), 6.0);
        assert_eq!(farther(4.0, 8.0, reach), 5.0);
        assert_eq!(farther(4.0, 3.0, reach), 4.0);
    }

    #[test]
    fn a_walk_that_has_measured_half_of_all_gives_up() {
        assert!(gives_up(51, 100));
        assert!(!gives_up(50, 100));
    }
}
