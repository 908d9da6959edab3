//! [`Copies`]: which tablets are copied, in both directions; and how a node begins to follow a tablet. Pure.

use std::collections::BTreeSet;

use crossbeam_channel::Sender as Channel;
use ilion_cluster::Node;
use ilion_replica::CopiedState;

use super::Asked;

/// What this node copies, and what others copy from it.
#[derive(Default)]
pub(crate) struct Copies {
    /// Tablets that are to be copied.
    pub wanted: BTreeSet<u32>,
    /// Attempts that have failed since the last one that gave all, or since a tablet became wanted.
    pub refusals: u32,
    /// Wanted tablets that are being copied.
    pub running: BTreeSet<u32>,
    /// Tablets that are in the tables already; their [`CopiedState`] is not saved yet.
    pub arrived: Vec<CopiedState>,
    /// Requests of others that wait until this node has applied more.
    pub asked: Vec<Asked>,
    /// Requests that wait for the next saving, and requests that wait for the current one.
    pub unsaved: Vec<Asked>,
    pub saving: Vec<Asked>,
    /// Tablets that this node does not hold and whose data is being removed, and the callers that wait for that.
    pub clearing: BTreeSet<u32>,
    pub cleaning: Vec<Channel<Result<(), String>>>,
}

/// How a node begins to follow a tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// From where this node had it before, or from the beginning of the log.
    OfLog,
    /// With the first record that the log still has, and without what belongs to an older schema.
    OfRest,
    /// It copies the tablet.
    Copied,
}

/// Which other nodes have a tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holders {
    /// Another node may have it.
    Others,
    /// No other node has it.
    Nobody,
    /// No node had it until now, since there was no keyspace. The log may have records of dropped keyspaces.
    New,
}

/// `own`: up to where it has the tablet. `trimmed`: where the log begins. Pure.
pub(crate) fn beginning_of(own: Option<u64>, trimmed: u64, holders: Holders) -> Beginning {
    match (own, holders) {
        (Some(end), _) if end >= trimmed => Beginning::OfLog,
        (_, Holders::New) => Beginning::OfRest,
        (None, Holders::Nobody) if trimmed == 0 => Beginning::OfLog,
        _ => Beginning::Copied,
    }
}

/// The other nodes that may have a tablet: those that are up come first, and each tablet begins with another node. Pure.
pub(crate) fn sources_of(
    replicas: &BTreeSet<Node>,
    own: Node,
    tablet: u32,
    is_up: impl Fn(&Node) -> bool,
) -> Vec<Node> {
    let mut others: Vec<Node> = replicas.iter().copied().filter(|node| *node != own).collect();
    if !others.is_empty() {
        let first = tablet as usize % others.len();
        others.rotate_left(first);
    }
    others.sort_by_key(|node| !is_up(node));
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_on_where_it_has_what_comes_next_and_else_the_tablet_is_copied() {
        use Holders::{New, Nobody, Others};
        assert_eq!(beginning_of(Some(10), 10, Others), Beginning::OfLog);
        assert_eq!(beginning_of(Some(10), 11, Others), Beginning::Copied);
        assert_eq!(beginning_of(None, 0, Nobody), Beginning::OfLog);
        assert_eq!(beginning_of(None, 0, New), Beginning::OfRest);
        assert_eq!(beginning_of(None, 1, New), Beginning::OfRest);
        assert_eq!(beginning_of(None, 0, Others), Beginning::Copied, "it may be long");
        assert_eq!(
            beginning_of(None, 1, Nobody),
            Beginning::Copied,
            "it waits for a node"
        );
    }

    #[test]
    fn nodes_that_are_up_come_first_and_tablets_are_spread_over_them() {
        let replicas = BTreeSet::from([1, 2, 3, 4]);
        assert_eq!(sources_of(&replicas, 1, 0, |_| true), [2, 3, 4]);
        assert_eq!(sources_of(&replicas, 1, 1, |_| true), [3, 4, 2]);
        assert_eq!(sources_of(&replicas, 1, 1, |node| *node != 3), [4, 2, 3]);
        assert_eq!(
            sources_of(&BTreeSet::from([1]), 1, 5, |_| true),
            Vec::<Node>::new()
        );
    }
}
