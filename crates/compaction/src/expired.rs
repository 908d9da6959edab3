//! SSTables that can be dropped without being read, and SSTables that are worth a compaction of their own.

use crate::{Candidate, Common, Situation, space};

/// SSTables whose data is all dead and past gc grace, and older than all data of the memtables and of the SSTables that they overlap
/// and that are not expired themselves. Compat: `CompactionController.getFullyExpiredSSTables`.
pub(crate) fn fully_expired(situation: &Situation) -> Vec<&Candidate> {
    let gc_before = situation.gc_before_secs;
    let (expired, others): (Vec<_>, Vec<_>) = situation
        .candidates
        .iter()
        .partition(|candidate| candidate.is_expired(gc_before) && !candidate.is_compacting);
    let is_hiding_nothing = |expired: &&Candidate| {
        let overlapping = others.iter().filter(|other| other.overlaps(expired));
        let oldest = overlapping
            .map(|other| other.min_timestamp)
            .chain([situation.memtable_min_timestamp])
            .min();
        oldest.is_none_or(|oldest| expired.max_timestamp < oldest)
    };
    expired.into_iter().filter(is_hiding_nothing).collect()
}

/// True if a compaction of this SSTable alone would purge enough tombstones. Compat:
/// `AbstractCompactionStrategy.worthDroppingTombstones`. Unlike there, the part of the ring that only this SSTable covers estimates the
/// share of partitions that no other SSTable has; Cassandra samples the index.
pub(crate) fn is_worth_purging(candidate: &Candidate, situation: &Situation, common: &Common) -> bool {
    let age_secs = situation.now_secs.saturating_sub(candidate.created_secs);
    if candidate.is_compacting || age_secs < common.tombstone_compaction_interval_secs {
        return false;
    }
    if candidate.droppable_ratio <= common.tombstone_threshold {
        return false;
    }
    if common.unchecked_tombstone_compaction {
        return true;
    }
    share_alone(candidate, &situation.candidates) * candidate.droppable_ratio > common.tombstone_threshold
}

/// Share of the candidate's span that no other SSTable covers.
fn share_alone(candidate: &Candidate, all: &[Candidate]) -> f64 {
    let mut covers: Vec<_> = all
        .iter()
        .filter(|other| other.id != candidate.id && other.overlaps(candidate))
        .map(|other| {
            let first = (&other.first).max(&candidate.first);
            let last = (&other.last).min(&candidate.last);
            (first, last)
        })
        .collect();
    if covers.is_empty() {
        return 1.0;
    }
    covers.sort();
    let mut covered = 0.0;
    let mut upto = None;
    for (first, last) in covers {
        let start = upto.map_or(first, |upto| first.max(upto));
        if start <= last {
            covered += space::share(start, last);
            upto = Some(last);
        }
    }
    (1.0 - covered / space::share(&candidate.first, &candidate.last)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Picture;

    fn share(picture: &str) -> f64 {
        let picture = Picture::parse(picture);
        (share_alone(&picture.candidates[0], &picture.candidates) * 100.0).round() / 100.0
    }

    #[test]
    fn what_others_cover_twice_counts_once() {
        assert!(share("a [##########]").to_bits() == 1.0_f64.to_bits());
        assert!((share("a [##########]\nb [#####.....]") - 0.5).abs() < 0.06);
        assert!((share("a [##########]\nb [#####.....]\nc [..###.....]") - 0.5).abs() < 0.06);
        assert!(share("a [##########]\nb [##########]").abs() < 0.06);
    }
}
