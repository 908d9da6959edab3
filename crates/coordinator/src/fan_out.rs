//! Reads that ask every node that is needed at once: each range at exactly one replica.

use std::collections::BTreeMap;
use std::ops::Range;

use ilion_cluster::Node;
use ilion_engine::TabletPosition;
use ilion_index::{Estimate, Place, Predicate};
use ilion_rows::{KeyRange, ReadError};
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError};
use crate::command::Read;
use crate::membership::Versions;
use crate::reads::Reads;
use crate::route::Failures;

/// The ranges that one node answers.
pub(crate) struct Share {
    pub node: Node,
    pub ranges: Vec<KeyRange>,
    /// The tablets of each range.
    pub tablets: Vec<Range<u32>>,
    /// What the ranges were planned for.
    pub versions: Versions,
}

impl Share {
    pub fn contains(&self, place: &Place) -> bool {
        self.ranges.iter().any(|range| range.contains(&place.key))
    }

    /// The records that the node must have applied before it answers.
    pub fn barrier(&self, reads: &Reads, table: &TableSchema) -> Result<Vec<TabletPosition>, ReadError> {
        let mut reached = Vec::new();
        for tablets in &self.tablets {
            reached.extend(reads.barrier(table, tablets.clone())?);
        }
        Ok(reached)
    }
}

/// Cuts ranges into shares, by node.
pub(crate) fn shares(
    reads: &Reads,
    table: &TableSchema,
    ranges: &[KeyRange],
    failures: &Failures,
) -> Result<Vec<Share>, ReadError> {
    let mut shares: BTreeMap<Node, Share> = BTreeMap::new();
    for range in ranges {
        for part in reads.parts(table, range, failures)? {
            let share = shares.entry(part.node).or_insert_with(|| Share {
                node: part.node,
                ranges: Vec::new(),
                tablets: Vec::new(),
                versions: part.versions,
            });
            share.ranges.push(part.range);
            share.tablets.push(part.tablets);
        }
    }
    Ok(shares.into_values().collect())
}

/// The sum of the estimates of all shares. Estimates need no barrier.
pub(crate) fn estimate(
    reads: &Reads,
    table: &TableSchema,
    index: &str,
    predicate: &Predicate,
) -> Result<Estimate, ReadError> {
    let mut sum = Estimate::default();
    let mut failures = Failures::new();
    let mut ranges = vec![KeyRange::all()];
    while !ranges.is_empty() {
        let sent: Vec<_> = shares(reads, table, &ranges, &failures)?
            .into_iter()
            .map(|share| {
                let read = Read::Estimate {
                    index: index.to_owned(),
                    predicate: predicate.clone(),
                    ranges: share.ranges.clone(),
                };
                let page = reads.shared.options.page_first;
                let pending = reads.send(share.node, table.id, Vec::new(), page, read);
                (share, pending)
            })
            .collect();
        ranges.clear();
        for (share, pending) in sent {
            let answered = reads.wait(pending)?.and_then(|answer| match answer {
                Answer::Estimate(estimate) => Ok(estimate),
                _ => Err(ReplicaError::Failed("an estimate was asked for".to_owned())),
            });
            match answered {
                Ok(estimate) => {
                    sum.rows = sum.rows.saturating_add(estimate.rows);
                    sum.files = sum.files.saturating_add(estimate.files);
                }
                Err(error) => {
                    reads.lose(&mut failures, share.node, share.versions, error);
                    ranges.extend(share.ranges);
                }
            }
        }
    }
    Ok(sum)
}
