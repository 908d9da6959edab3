//! Keeps the index summaries of all SSTables within their memory budget: summaries that are used little are sampled more sparsely, and
//! more densely again when there is room or they are used more (Cassandra: IndexSummaryRedistribution).
//!
//! SSTables with a token map have no summary in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_sstable::SummaryShare;

use crate::live_sstable::LiveSSTable;
use crate::shared::Shared;
use crate::work::Work;

/// The level of a whole summary.
const FULL_LEVEL: u64 = 128;

/// A summary whose level is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    share: SummaryShare,
    /// The lowest level that the table's `max_index_interval` allows.
    least_level: u64,
}

impl Candidate {
    fn bytes_at(&self, level: u64) -> u64 {
        self.share.full_bytes * level / FULL_LEVEL
    }
}

/// The level of each summary, by its use, so that all together take `capacity_bytes`. Pure.
fn choose_levels(candidates: &[Candidate], capacity_bytes: u64) -> Vec<u64> {
    let all: u64 = candidates
        .iter()
        .map(|candidate| candidate.share.full_bytes)
        .sum();
    if all <= capacity_bytes {
        return vec![FULL_LEVEL; candidates.len()];
    }
    // Plus one, so that no summary has weight 0.
    let weight = |candidate: &Candidate| candidate.share.lookups + 1;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| weight(&candidates[*at]));
    let mut weights_left: u64 = candidates.iter().map(weight).sum();
    let mut bytes_left = capacity_bytes;
    let mut levels = vec![FULL_LEVEL; candidates.len()];
    for at in order {
        let candidate = &candidates[at];
        let ideal = u128::from(bytes_left) * u128::from(weight(candidate)) / u128::from(weights_left.max(1));
        let level = ideal * u128::from(FULL_LEVEL) / u128::from(candidate.share.full_bytes.max(1));
        let level = u64::try_from(level).unwrap_or(FULL_LEVEL).min(FULL_LEVEL);
        levels[at] = steady(u64::from(candidate.share.level), level.max(candidate.least_level));
        weights_left -= weight(candidate);
        bytes_left = bytes_left.saturating_sub(candidate.bytes_at(levels[at]));
    }
    levels
}

/// The level to change to. A larger summary must be read again, so it must grow by half or become whole; else the level stays.
fn steady(current: u64, wanted: u64) -> u64 {
    if wanted > current && wanted < FULL_LEVEL && wanted * 2 < current * 3 {
        current
    } else {
        wanted
    }
}

impl Shared {
    /// Requests a resampling if it is due.
    pub(crate) fn resample_summaries_if_due(&self) {
        let Some(interval_secs) = self.options.index_summary_resize_interval_secs else {
            return;
        };
        let now_nanos = self.env.monotonic_nanos();
        let last_nanos = self.background.summaries_resampled_nanos.load(Ordering::Relaxed);
        if now_nanos.saturating_sub(last_nanos) >= interval_secs.saturating_mul(1_000_000_000) {
            let at = &self.background.summaries_resampled_nanos;
            at.store(now_nanos, Ordering::Relaxed);
            self.background.send(Work::ResampleSummaries);
        }
    }

    /// Resamples the summaries of all SSTables. A failure is logged, and the summary stays as it is.
    pub(crate) fn resample_summaries(&self) {
        let mut summaries: Vec<(Arc<LiveSSTable>, Candidate)> = Vec::new();
        for store in self.stores() {
            let options = store.schema().options.clone();
            let ratio = FULL_LEVEL * u64::from(options.min_index_interval)
                / u64::from(options.max_index_interval.max(1));
            let least_level = ratio.clamp(1, FULL_LEVEL);
            for live in &store.view().sstables {
                if let Some(share) = live.sstable.take_summary_share() {
                    summaries.push((live.clone(), Candidate { share, least_level }));
                }
            }
        }
        let candidates: Vec<Candidate> = summaries.iter().map(|(_, candidate)| *candidate).collect();
        let levels = choose_levels(&candidates, self.options.index_summary_bytes);
        for ((live, candidate), level) in summaries.iter().zip(levels) {
            if level == u64::from(candidate.share.level) {
                continue;
            }
            let level = u8::try_from(level).unwrap_or(u8::MAX);
            if let Err(error) = live.sstable.resample_summary(level) {
                tracing::warn!(sstable = %live.descriptor(), %error, "its index summary stays as it is");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(full_bytes: u64, level: u8, lookups: u64) -> Candidate {
        Candidate {
            share: SummaryShare {
                bytes: full_bytes * u64::from(level) / 128,
                full_bytes,
                level,
                lookups,
            },
            least_level: 8,
        }
    }

    #[test]
    fn with_room_for_all_nothing_is_left_out() {
        let candidates = [candidate(1000, 128, 0), candidate(1000, 16, 5)];
        assert_eq!(choose_levels(&candidates, 2000), [128, 128]);
    }

    #[test]
    fn those_that_are_asked_little_are_thinned_out_first() {
        let candidates = [candidate(1000, 128, 0), candidate(1000, 128, 999)];
        assert_eq!(choose_levels(&candidates, 1100), [8, 128]);
        let equal = [candidate(1000, 128, 7), candidate(1000, 128, 7)];
        assert_eq!(choose_levels(&equal, 1000), [64, 64]);
    }

    #[test]
    fn none_goes_below_what_the_table_allows() {
        let candidates = [candidate(1000, 128, 1), candidate(1000, 128, 1)];
        assert_eq!(choose_levels(&candidates, 10), [8, 8]);
    }

    #[test]
    fn a_little_more_is_not_worth_it() {
        let candidates = [candidate(1000, 60, 7), candidate(1000, 40, 7)];
        assert_eq!(choose_levels(&candidates, 1000), [60, 68]);
    }
}
