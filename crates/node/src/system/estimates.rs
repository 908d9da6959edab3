//! `system.size_estimates` and `system.table_estimates`: size of each table by range of the ring, for clients that read tables in
//! splits (Spark).
//!
//! Compat: as `SizeEstimatesRecorder`, but computed when read. Memtables are not counted, and partitions are assumed to be
//! spread evenly over the ring.

use ilion_cluster::{ClusterView, Strategy};
use ilion_engine::{Engine, VirtualRow};
use ilion_types::Partitioner;

use crate::values::{bigint, cell, text};

/// Start token, end token, and the share of the node's data between them.
pub(super) type Range = (i64, i64, f64);

/// The token at which the ring begins and ends.
const MIN: i64 = i64::MIN;

/// The ranges of a ring with one node, in order. Empty unless the partitioner is Murmur3: tokens of others are no 64-bit numbers.
pub(super) fn ranges_of(partitioner: Partitioner, tokens: &[String]) -> Vec<Range> {
    let mut tokens: Vec<i64> = tokens.iter().filter_map(|token| token.parse().ok()).collect();
    if partitioner != Partitioner::Murmur3 || tokens.is_empty() {
        return Vec::new();
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens.retain(|token| *token != MIN);
    let starts = std::iter::once(MIN).chain(tokens.iter().copied());
    let ends = tokens.iter().copied().chain([MIN]);
    starts
        .zip(ends)
        .map(|(start, end)| {
            // Equal ends mean the whole ring.
            let width = match end.wrapping_sub(start).cast_unsigned() {
                0 => u64::MAX,
                width => width,
            };
            #[expect(clippy::cast_precision_loss, reason = "a share, for an estimate")]
            let share = width as f64 / u64::MAX as f64;
            (start, end, share)
        })
        .collect()
}

/// The ranges that a node of a cluster owns, in order. As a replica, the node also has data of ranges that other nodes own.
pub(super) fn ranges_in(view: &ClusterView, strategy: &Strategy) -> Vec<Range> {
    let own_share = view.shares(strategy).get(&view.own).copied().unwrap_or_default();
    let ring = view.ring();
    let ends = ring.tokens();
    // The highest token of the ring is `i64::MAX`, so the first range begins behind it, at the lowest token, which no key has.
    let starts = std::iter::once(MIN).chain(ends.iter().map(|(end, _)| *end));
    let owned = starts.zip(ends).filter(|(_, (_, owner))| *owner == view.own);
    owned
        .map(|(start, (end, _))| {
            #[expect(clippy::cast_precision_loss, reason = "a share, for an estimate")]
            let share = end.wrapping_sub(start).cast_unsigned() as f64 / u64::MAX as f64;
            (start, *end, share / own_share.max(f64::MIN_POSITIVE))
        })
        .collect()
}

pub(super) fn of_sizes(engine: &Engine, ranges: &dyn Fn(&str) -> Vec<Range>) -> Vec<VirtualRow> {
    rows(engine, ranges, &[None])
}

pub(super) fn of_tables(engine: &Engine, ranges: &dyn Fn(&str) -> Vec<Range>) -> Vec<VirtualRow> {
    rows(engine, ranges, &[Some("local_primary"), Some("primary")])
}

fn rows(engine: &Engine, ranges: &dyn Fn(&str) -> Vec<Range>, kinds: &[Option<&str>]) -> Vec<VirtualRow> {
    let mut rows = Vec::new();
    for store in engine.tables() {
        let table = store.schema();
        // Compat: keyspaces that are not replicated have no estimates.
        if matches!(table.keyspace.as_str(), "system" | "system_schema") {
            continue;
        }
        let Ok(details) = engine.table_details(table.id) else {
            continue;
        };
        let partitions = details.partition_bytes.count();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let mean = details.partition_bytes.mean() as u64;
        let ranges = ranges(&table.keyspace);
        for kind in kinds {
            for (start, end, share) in &ranges {
                let mut clustering = vec![text(&table.name)];
                clustering.extend(kind.map(text));
                clustering.extend([text(&start.to_string()), text(&end.to_string())]);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "an estimate"
                )]
                let count = (partitions as f64 * share).round() as u64;
                rows.push(VirtualRow {
                    partition_key: vec![text(&table.keyspace)],
                    clustering,
                    cells: vec![
                        cell("mean_partition_size", bigint(mean)),
                        cell("partitions_count", bigint(count)),
                    ],
                });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_of_a_node_are_the_whole_ring() {
        let ranges = |tokens: &[&str]| {
            let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
            ranges_of(Partitioner::Murmur3, &tokens)
        };
        assert_eq!(ranges(&["0"]), [(MIN, 0, 0.5), (0, MIN, 0.5)]);
        assert_eq!(ranges(&["-9223372036854775808"]), [(MIN, MIN, 1.0)]);
        let three = ranges(&["100", "-5"]);
        assert_eq!(
            three.iter().map(|range| range.0).collect::<Vec<_>>(),
            [MIN, -5, 100]
        );
        let shares: f64 = three.iter().map(|range| range.2).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        assert!(ranges(&[]).is_empty());
    }
}
