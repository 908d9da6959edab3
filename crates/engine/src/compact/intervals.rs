//! Which stretches of the commit log SSTables cover.

use ilion_sstable::{CommitLogInterval, CommitLogPosition, SSTable};
use uuid::Uuid;

/// What of this node's commit log an SSTable holds; nothing of one that another node wrote.
pub(crate) fn intervals_of(sstable: &SSTable, id: Uuid) -> Vec<CommitLogInterval> {
    if sstable.stats().originating_host != Some(id) {
        return Vec::new();
    }
    let place = |position: &CommitLogPosition| {
        let segment = u64::try_from(position.segment).unwrap_or(0);
        (segment, u32::try_from(position.offset).unwrap_or(0))
    };
    let intervals = sstable.stats().commit_log_intervals.iter();
    intervals.map(|(start, end)| (place(start), place(end))).collect()
}

/// Joins intervals that touch or overlap. Pure.
pub(crate) fn union(mut intervals: Vec<CommitLogInterval>) -> Vec<CommitLogInterval> {
    intervals.sort_unstable();
    let mut joined: Vec<CommitLogInterval> = Vec::new();
    for (start, end) in intervals {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn touching_intervals_become_one() {
        let intervals = vec![((2, 0), (3, 5)), ((1, 0), (2, 0)), ((4, 0), (4, 9))];
        assert_eq!(union(intervals), [((1, 0), (3, 5)), ((4, 0), (4, 9))]);
        assert_eq!(union(vec![]), []);
    }
}
