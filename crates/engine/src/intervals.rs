//! The stretches of this node's commit log that an SSTable covers.

use ilion_commitlog::Position;
use ilion_sstable::{CommitLogInterval, SSTable};
use uuid::Uuid;

/// The stretches of this node's log whose records the SSTable has; empty if another node wrote it.
pub(crate) fn intervals_of(sstable: &SSTable, id: Uuid) -> Vec<CommitLogInterval> {
    let stats = sstable.stats();
    match stats.originating_host == Some(id) {
        true => stats.covered_intervals(),
        false => Vec::new(),
    }
}

/// True if a stretch covers the record.
pub(crate) fn is_on_disk(intervals: &[CommitLogInterval], position: Position) -> bool {
    let place = (position.segment.0, position.offset);
    intervals
        .iter()
        .any(|(start, end)| *start <= place && place < *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_on_disk_from_the_start_of_an_interval_to_before_its_end() {
        let intervals = [((1, 10), (2, 0)), ((3, 0), (3, 7))];
        let at = |segment, offset| is_on_disk(&intervals, Position::new(segment, offset));
        assert!(!at(1, 9) && at(1, 10) && at(1, 999) && !at(2, 0));
        assert!(at(3, 0) && at(3, 6) && !at(3, 7));
    }
}
