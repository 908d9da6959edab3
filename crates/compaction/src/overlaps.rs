//! Sets of SSTables that may have the same key.
//!
//! A walk along the ring meets a set of SSTables at each key. Each set that is not part of a neighbouring set is a *section*.
//! Compat: `org.apache.cassandra.utils.Overlaps`.

use std::collections::BTreeSet;

use crate::Candidate;

/// Which neighbours of a due section are compacted with it (`overlap_inclusion_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inclusion {
    /// No neighbour.
    None,
    /// Neighbours that share an SSTable with the due section.
    Single,
    /// Also neighbours that share an SSTable with those, and so on.
    Transitive,
}

/// Indexes of SSTables that may have the same key.
pub(crate) type Section = BTreeSet<usize>;

/// The sections of these SSTables, by key.
pub(crate) fn sections(candidates: &[&Candidate]) -> Vec<Section> {
    let mut by_first: Vec<usize> = (0..candidates.len()).collect();
    by_first.sort_by(|a, b| candidates[*a].first.cmp(&candidates[*b].first));
    let rank_of_last = ranks(candidates);
    let mut sections = Vec::new();
    // Ordered by the rank of the last key: the first element is the SSTable that ends first.
    let mut active: BTreeSet<(usize, usize)> = BTreeSet::new();
    for index in by_first {
        let ends_before = |active: &BTreeSet<(usize, usize)>| {
            active
                .first()
                .is_some_and(|(_, other)| candidates[*other].last < candidates[index].first)
        };
        if ends_before(&active) {
            sections.push(members(&active));
            while ends_before(&active) {
                active.pop_first();
            }
        }
        active.insert((rank_of_last[index], index));
    }
    if !active.is_empty() {
        sections.push(members(&active));
    }
    sections
}

fn ranks(candidates: &[&Candidate]) -> Vec<usize> {
    let mut by_last: Vec<usize> = (0..candidates.len()).collect();
    by_last.sort_by(|a, b| candidates[*a].last.cmp(&candidates[*b].last));
    let mut ranks = vec![0; candidates.len()];
    for (rank, index) in by_last.into_iter().enumerate() {
        ranks[index] = rank;
    }
    ranks
}

fn members(active: &BTreeSet<(usize, usize)>) -> Section {
    active.iter().map(|(_, index)| *index).collect()
}

/// The SSTables of a section.
pub(crate) fn pick<'a>(candidates: &[&'a Candidate], section: &Section) -> Vec<&'a Candidate> {
    section.iter().map(|index| candidates[*index]).collect()
}

/// The largest number of SSTables that may have the same key.
pub fn deepest(candidates: &[Candidate]) -> usize {
    let all: Vec<&Candidate> = candidates.iter().collect();
    sections(&all).iter().map(BTreeSet::len).max().unwrap_or(0)
}

/// Runs of consecutive sections: each due section (with at least `threshold` SSTables), and the neighbours that `inclusion` adds.
pub(crate) fn runs(sections: &[Section], threshold: usize, inclusion: Inclusion) -> Vec<&[Section]> {
    let mut runs = Vec::new();
    let mut taken = 0;
    let mut at = 0;
    while at < sections.len() {
        if sections[at].len() < threshold {
            at += 1;
            continue;
        }
        let (mut start, mut end) = (at, at + 1);
        if inclusion != Inclusion::None {
            let mut reached = sections[at].clone();
            let mut joins = |next: &Section| {
                let is_joined = !next.is_disjoint(&reached);
                if is_joined && inclusion == Inclusion::Transitive {
                    reached.extend(next);
                }
                is_joined
            };
            while start > taken && joins(&sections[start - 1]) {
                start -= 1;
            }
            while end < sections.len() && joins(&sections[end]) {
                end += 1;
            }
        }
        runs.push(&sections[start..end]);
        taken = end;
        at = end;
    }
    runs
}

/// Groups of SSTables that have no key in common.
pub(crate) fn separate_groups(candidates: &[&Candidate]) -> Vec<Section> {
    let mut groups: Vec<Section> = Vec::new();
    for section in sections(candidates) {
        match groups.last_mut() {
            Some(group) if !group.is_disjoint(&section) => group.extend(section),
            _ => groups.push(section),
        }
    }
    groups
}
