//! How far a search goes, and whether it walks the graph at all: pure decisions.

use crate::{OptimizeFor, Options};

/// How far a search goes on before it takes its results for the nearest.
///
/// It ends when the next node to look at is farther than the `breadth` nearest nodes seen, and farther, by `slack`, than the
/// last wanted result. The breadth leads out of dead ends; the slack makes a search as long as its data are hard: among points
/// that lie in clusters few are about as near as the tenth, among random ones many are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// How many nodes are looked at at least.
    pub breadth: usize,
    /// The part by which a node that is still looked at may be farther than the last wanted result.
    pub slack: f32,
    /// The same as a part of the way from that result to any vector: where all are about as far, little slack is much.
    pub spread: f32,
}

impl Reach {
    /// What the options of an index ask for.
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

/// How the nearest are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Along the links.
    Walk,
    /// All that are accepted are measured.
    Scan,
}

/// Nodes measured for each one that is looked at: its links, less those seen already.
const MEASURED_PER_HOP: u64 = 12;
/// What it costs to ask whether an ordinal is accepted, in parts of a distance.
const ASKED_PER_DISTANCE: u64 = 10;

/// Walk or scan? `accepted` is how many ordinals pass the filter, as far as that is known; nothing: all.
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

/// How far a node that is still looked at may be, where the last wanted result is at `distance`, and any vector at `typical`.
pub(crate) fn farther(distance: f32, typical: f32, reach: Reach) -> f32 {
    let by_slack = distance * (1.0 + reach.slack);
    let by_spread = distance + (typical - distance).max(0.0) * reach.spread;
    by_slack.min(by_spread)
}

/// Whether a walk that has measured so many nodes is better ended by a scan, which measures one for half the cost. So a search
/// never costs more than about two scans, whatever its data and its filter.
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
