//! SizeTieredCompactionStrategy: merge files of similar size when there are enough of them.
//!
//! Compat: rules and defaults of `org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy`. A bucket has files near its
//! average size (`bucket_low` to `bucket_high`), or all files below `min_sstable_size`. Of the
//! buckets with at least `min_threshold` files, the one with the smallest files is merged first, at most
//! `max_threshold` of its files at once. Cassandra prefers the bucket that is read most; Ilion does not count reads of files.

use crate::common::{Common, Options, number};
use crate::expired::is_worth_purging;
use crate::{Candidate, Choice, Situation};

/// Options of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizeTiered {
    /// Fewest files worth a merge.
    pub min_threshold: usize,
    /// Most files merged at once.
    pub max_threshold: usize,
    /// The files of a bucket are larger than their average size times this ...
    pub bucket_low: f64,
    /// ... and smaller than the average times this.
    pub bucket_high: f64,
    /// All files below this size share one bucket.
    pub min_sstable_bytes: u64,
}

impl Default for SizeTiered {
    fn default() -> Self {
        Self {
            min_threshold: 4,
            max_threshold: 32,
            bucket_low: 0.5,
            bucket_high: 1.5,
            min_sstable_bytes: 50 << 20,
        }
    }
}

pub(crate) struct Bucket<'a> {
    average_bytes: f64,
    pub members: Vec<&'a Candidate>,
}

impl SizeTiered {
    pub(crate) fn of_options(options: &Options) -> Self {
        let default = Self::default();
        Self {
            min_threshold: number(options, "min_threshold", default.min_threshold).max(2),
            max_threshold: number(options, "max_threshold", default.max_threshold).max(2),
            bucket_low: number(options, "bucket_low", default.bucket_low),
            bucket_high: number(options, "bucket_high", default.bucket_high),
            min_sstable_bytes: number(options, "min_sstable_size", default.min_sstable_bytes),
        }
    }

    pub(crate) fn choose(&self, situation: &Situation, common: &Common) -> Option<Choice> {
        let idle: Vec<&Candidate> = situation.idle().collect();
        if let Some(bucket) = self.due_bucket(&idle) {
            return Some(Choice::merge(bucket));
        }
        // Compat: the largest of the files that are worth a compaction of their own.
        let worth = idle
            .into_iter()
            .filter(|candidate| is_worth_purging(candidate, situation, common));
        worth
            .max_by_key(|candidate| candidate.size_bytes)
            .map(|candidate| Choice::merge([candidate]))
    }

    /// Of the buckets with enough files, the one whose average size is smallest.
    pub(crate) fn due_bucket<'a>(&self, idle: &[&'a Candidate]) -> Option<Vec<&'a Candidate>> {
        let smallest = self
            .due_buckets(idle)
            .min_by(|a, b| a.average_bytes.total_cmp(&b.average_bytes))?;
        Some(smallest.members.into_iter().take(self.max_threshold).collect())
    }

    fn due_buckets<'a>(&self, idle: &[&'a Candidate]) -> impl Iterator<Item = Bucket<'a>> {
        let buckets = self.buckets(idle).into_iter();
        buckets.filter(|bucket| bucket.members.len() >= self.min_threshold)
    }

    pub(crate) fn pending(&self, situation: &Situation) -> usize {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        let tasks = |bucket: Bucket<'_>| bucket.members.len().div_ceil(self.max_threshold);
        self.due_buckets(&all).map(tasks).sum()
    }

    pub(crate) fn debt(&self, situation: &Situation) -> usize {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        self.debt_of(&all)
    }

    pub(crate) fn debt_of(&self, files: &[&Candidate]) -> usize {
        let excess = |bucket: Bucket<'_>| bucket.members.len() + 1 - self.min_threshold;
        self.due_buckets(files).map(excess).sum()
    }

    fn buckets<'a>(&self, files: &[&'a Candidate]) -> Vec<Bucket<'a>> {
        let mut by_size = files.to_vec();
        by_size.sort_by(|a, b| (a.size_bytes, &a.id).cmp(&(b.size_bytes, &b.id)));
        let mut buckets: Vec<Bucket<'a>> = Vec::new();
        for candidate in by_size {
            let size = candidate.size_bytes as f64;
            match buckets.iter_mut().find(|bucket| self.fits(size, bucket)) {
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

    fn fits(&self, size: f64, bucket: &Bucket<'_>) -> bool {
        let small = self.min_sstable_bytes as f64;
        let average = bucket.average_bytes;
        (size > average * self.bucket_low && size < average * self.bucket_high)
            || (size < small && average < small)
    }
}
