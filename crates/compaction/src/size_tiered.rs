//! SizeTieredCompactionStrategy: merge files of like size when there are enough of them.
//!
//! Source of the rules and defaults: `org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy`. Files are put
//! into buckets whose average size they are near to (`bucket_low` to `bucket_high`, or all below `min_sstable_size`); of the
//! buckets with at least `min_threshold` files the one with the smallest files is merged first, at most
//! `max_threshold` of its files at once.

use std::collections::BTreeMap;

use crate::{Candidate, Choice};

/// Options of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeTiered {
    /// Fewest files worth a merge.
    pub min_threshold: usize,
    /// Most files merged at once.
    pub max_threshold: usize,
    /// A file is in a bucket if it is larger than average times this ...
    pub bucket_low: f64,
    /// ... and smaller than average times this.
    pub bucket_high: f64,
    /// Files below this are all of like size.
    pub min_sstable_bytes: u64,
    /// Share of droppable tombstones from which a file is compacted alone.
    pub tombstone_threshold: f64,
}

impl Default for SizeTiered {
    fn default() -> Self {
        Self {
            min_threshold: 4,
            max_threshold: 32,
            bucket_low: 0.5,
            bucket_high: 1.5,
            min_sstable_bytes: 50 << 20,
            tombstone_threshold: 0.2,
        }
    }
}

impl SizeTiered {
    /// Reads the table option `compaction`; what the schema has validated is trusted, anything else keeps its default.
    pub fn of_options(options: &BTreeMap<String, String>) -> Self {
        fn parse<T: std::str::FromStr>(options: &BTreeMap<String, String>, name: &str, default: T) -> T {
            options
                .get(name)
                .and_then(|text| text.parse().ok())
                .unwrap_or(default)
        }
        let default = Self::default();
        Self {
            min_threshold: parse(options, "min_threshold", default.min_threshold).max(2),
            max_threshold: parse(options, "max_threshold", default.max_threshold).max(2),
            bucket_low: parse(options, "bucket_low", default.bucket_low),
            bucket_high: parse(options, "bucket_high", default.bucket_high),
            min_sstable_bytes: parse(options, "min_sstable_size", default.min_sstable_bytes),
            tombstone_threshold: parse(options, "tombstone_threshold", default.tombstone_threshold),
        }
    }
}

struct Bucket<'a> {
    average_bytes: f64,
    members: Vec<&'a Candidate>,
}

/// Picks the next compaction. Pure: it reads descriptors and touches nothing.
pub fn choose(candidates: &[Candidate], options: &SizeTiered) -> Choice {
    let fullest = buckets(candidates, options)
        .into_iter()
        .filter(|bucket| bucket.members.len() >= options.min_threshold)
        .min_by(|a, b| a.average_bytes.total_cmp(&b.average_bytes));
    if let Some(bucket) = fullest {
        let ids = bucket
            .members
            .iter()
            .take(options.max_threshold)
            .map(|member| member.id.clone());
        return Choice::Merge(ids.collect());
    }
    let most_dead = candidates
        .iter()
        .filter(|candidate| candidate.droppable_ratio > options.tombstone_threshold)
        .max_by(|a, b| a.droppable_ratio.total_cmp(&b.droppable_ratio));
    most_dead.map_or(Choice::Nothing, |candidate| {
        Choice::Merge(vec![candidate.id.clone()])
    })
}

fn buckets<'a>(candidates: &'a [Candidate], options: &SizeTiered) -> Vec<Bucket<'a>> {
    let mut by_size: Vec<&Candidate> = candidates.iter().collect();
    by_size.sort_by(|a, b| (a.size_bytes, &a.id).cmp(&(b.size_bytes, &b.id)));
    let mut buckets: Vec<Bucket<'a>> = Vec::new();
    for candidate in by_size {
        let size = candidate.size_bytes as f64;
        let small = options.min_sstable_bytes as f64;
        let fits = |bucket: &Bucket<'_>| {
            (size > bucket.average_bytes * options.bucket_low
                && size < bucket.average_bytes * options.bucket_high)
                || (size < small && bucket.average_bytes < small)
        };
        match buckets.iter_mut().find(|bucket| fits(bucket)) {
            Some(bucket) => {
                let count = bucket.members.len() as f64;
                bucket.average_bytes = (bucket.average_bytes * count + size) / (count + 1.0);
                bucket.members.push(candidate);
            }
            None => buckets.push(Bucket {
                average_bytes: size,
                members: vec![candidate],
            }),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture such as `60 61 62 63 500`: sizes in MiB, ids by place.
    fn picture(text: &str) -> Vec<Candidate> {
        text.split_whitespace()
            .enumerate()
            .map(|(index, size)| Candidate {
                id: PathBuf::from(index.to_string()),
                size_bytes: size.parse::<u64>().unwrap() << 20,
                max_timestamp_micros: 0,
                droppable_ratio: 0.0,
            })
            .collect()
    }

    use std::path::PathBuf;

    fn chosen(text: &str) -> String {
        match choose(&picture(text), &SizeTiered::default()) {
            Choice::Nothing => "nothing".to_owned(),
            Choice::Merge(ids) => ids
                .iter()
                .map(|id| id.display().to_string())
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    #[test]
    fn files_of_like_size_are_merged_when_there_are_four() {
        assert_eq!(chosen("60 61 62"), "nothing");
        assert_eq!(chosen("60 61 62 63"), "0 1 2 3");
        assert_eq!(chosen("60 500 61 62 63 2000"), "0 2 3 4");
    }

    #[test]
    fn small_files_share_a_bucket_whatever_their_size() {
        assert_eq!(chosen("1 2 20 40"), "0 1 2 3");
    }

    #[test]
    fn the_bucket_of_smallest_files_goes_first() {
        assert_eq!(chosen("500 500 500 500 60 60 60 60"), "4 5 6 7");
    }

    #[test]
    fn a_file_full_of_dead_cells_is_compacted_alone() {
        let mut candidates = picture("60 500");
        candidates[1].droppable_ratio = 0.5;
        assert_eq!(
            choose(&candidates, &SizeTiered::default()),
            Choice::Merge(vec!["1".into()])
        );
    }
}
