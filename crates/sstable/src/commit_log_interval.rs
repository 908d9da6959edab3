//! The intervals of the commit log that SSTables cover.

use crate::{CommitLogPosition, StatsMetadata};

/// An interval of the commit log whose mutations are in the SSTable: start and end, each as segment id and offset.
pub type CommitLogInterval = ((u64, u32), (u64, u32));

impl StatsMetadata {
    /// The intervals of the commit log that the SSTable covers, in the log of `originating_host`.
    pub fn covered_intervals(&self) -> Vec<CommitLogInterval> {
        let place = |position: &CommitLogPosition| {
            let segment = u64::try_from(position.segment).unwrap_or(0);
            (segment, u32::try_from(position.offset).unwrap_or(0))
        };
        let intervals = self.commit_log_intervals.iter();
        intervals.map(|(start, end)| (place(start), place(end))).collect()
    }

    /// Sets the intervals that [`Self::covered_intervals`] returns.
    pub fn cover<'a>(&mut self, intervals: impl IntoIterator<Item = &'a CommitLogInterval>) {
        let position = |(segment, offset): (u64, u32)| CommitLogPosition {
            segment: segment.cast_signed(),
            offset: i32::try_from(offset).unwrap_or(i32::MAX),
        };
        let intervals = intervals.into_iter();
        self.commit_log_intervals = intervals
            .map(|(start, end)| (position(*start), position(*end)))
            .collect();
    }
}

/// Joins intervals that touch or overlap. Pure.
pub fn union_intervals(mut intervals: Vec<CommitLogInterval>) -> Vec<CommitLogInterval> {
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
    use super::union_intervals;

    #[test]
    fn touching_intervals_become_one() {
        let intervals = vec![((2, 0), (3, 5)), ((1, 0), (2, 0)), ((4, 0), (4, 9))];
        assert_eq!(union_intervals(intervals), [((1, 0), (3, 5)), ((4, 0), (4, 9))]);
        assert_eq!(union_intervals(vec![]), []);
    }
}
