//! The pace of flushes that no caller waits for.
//!
//! A flush that frees memory begins long before writers need it, and shares the processors with reads. So it pauses between two
//! stretches of work while it is ahead of writers, that is, while the written share of its memtable is larger than the share that
//! writers have taken of the memory that was free when it began. Thus the rate of flushes approaches that of writes, as with
//! ScyllaDB's controller of memtables.

use std::time::Duration;

use ilion_compaction::Watch;
use ilion_rows::ReadError;

use crate::maintenance::Maintenance;
use crate::shared::Shared;

/// A flush should end before memtables take this share of the memory, in thousandths; writers are slowed from 700 on (`budget`).
const ENDS_BELOW: usize = 650;
/// The longest pause, as a multiple of the work before it.
const REST_TO_WORK: f64 = 4.0;
/// A flush that is ahead by this share of its memtable takes the longest pauses.
const LEAD_MAX: f64 = 0.1;
/// The longest pause, so that a flush soon notices that a caller waits for it.
const REST_MAX: Duration = Duration::from_millis(100);

/// Whether a flush may pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// A caller waits for the flush.
    Now,
    /// The flush frees memory that is not needed yet.
    WithRests,
}

/// Progress of a flush and of writers.
#[derive(Clone, Copy, Debug)]
struct Race {
    /// Bytes of the memtable, and how many of them are written.
    bytes: u64,
    written: u64,
    /// Memory of memtables: when the flush began, now, and the limit.
    used_first: usize,
    used: usize,
    limit: usize,
}

impl Race {
    /// How long to pause after some work. Pure.
    fn rest(self, work: Duration) -> Duration {
        let end = self.limit / 1000 * ENDS_BELOW;
        let Some(room) = end.checked_sub(self.used_first).filter(|room| *room > 0) else {
            return Duration::ZERO;
        };
        let taken = self.used.saturating_sub(self.used_first) as f64 / room as f64;
        let written = self.written as f64 / self.bytes.max(1) as f64;
        let lead = ((written - taken) / LEAD_MAX).clamp(0.0, 1.0);
        work.mul_f64(REST_TO_WORK * lead).min(REST_MAX)
    }
}

/// Makes a flush pause.
pub(crate) struct FlushPace<'a> {
    shared: &'a Shared,
    /// The locks of the table that is flushed, and of the one that is written (the same, or a hidden table).
    tables: [&'a Maintenance; 2],
    haste: Haste,
    race: Race,
    /// When the current stretch of work began.
    since_nanos: u64,
}

impl<'a> FlushPace<'a> {
    /// The pace of a flush that begins to write a memtable of this many bytes.
    pub(crate) fn begin(
        shared: &'a Shared,
        tables: [&'a Maintenance; 2],
        haste: Haste,
        bytes: usize,
    ) -> Self {
        let used = shared.budget.used();
        Self {
            shared,
            tables,
            haste,
            race: Race {
                bytes: bytes as u64,
                written: 0,
                used_first: used,
                used,
                limit: shared.budget.limit(),
            },
            since_nanos: shared.env.monotonic_nanos(),
        }
    }

    fn must_hurry(&self) -> bool {
        self.haste == Haste::Now
            || self.tables.iter().any(|table| table.is_awaited())
            || self.shared.background.is_flush_awaited()
    }
}

impl Drop for FlushPace<'_> {
    /// Counts the bytes of the last stretch, for which `look` is not called.
    fn drop(&mut self) {
        let rest = self.race.bytes.saturating_sub(self.race.written);
        self.tables[0].add_written(rest);
    }
}

impl Watch for FlushPace<'_> {
    fn look(&mut self, bytes: u64) -> Result<(), ReadError> {
        self.race.written += bytes;
        self.tables[0].add_written(bytes);
        if !self.must_hurry() {
            let now_nanos = self.shared.env.monotonic_nanos();
            let work = Duration::from_nanos(now_nanos.saturating_sub(self.since_nanos));
            self.race.used = self.shared.budget.used();
            let rest = self.race.rest(work);
            if !rest.is_zero() {
                self.shared.pause(rest);
            }
        }
        // Time spent without pauses must not lead to a longer pause later.
        self.since_nanos = self.shared.env.monotonic_nanos();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Duration = Duration::from_millis(10);

    /// The rest of a flush that began at 400 of 1000.
    fn rest(written: u64, used: usize) -> Duration {
        let race = Race {
            bytes: 400,
            written,
            used_first: 400,
            used,
            limit: 1000,
        };
        race.rest(WORK)
    }

    #[test]
    fn a_flush_rests_as_long_as_it_is_ahead_of_the_writers() {
        assert_eq!(rest(0, 400), Duration::ZERO);
        assert_eq!(rest(40, 400), WORK * 4);
        assert_eq!(rest(200, 400), WORK * 4);
        assert_eq!(rest(200, 525), Duration::ZERO);
        assert_eq!(rest(240, 525), WORK * 4);
        assert!(rest(220, 525) > Duration::ZERO && rest(220, 525) < WORK * 4);
        assert_eq!(rest(390, 650), Duration::ZERO);
        assert_eq!(rest(390, 300), WORK * 4, "memory was freed meanwhile");
    }

    #[test]
    fn no_flush_rests_that_began_late_and_none_for_long() {
        let race = Race {
            bytes: 400,
            written: 399,
            used_first: 650,
            used: 650,
            limit: 1000,
        };
        assert_eq!(race.rest(WORK), Duration::ZERO);
        let early = Race {
            used_first: 0,
            ..race
        };
        assert_eq!(Race { used: 0, ..early }.rest(Duration::from_secs(9)), REST_MAX);
        assert_eq!(Race { limit: 0, ..early }.rest(WORK), Duration::ZERO);
    }
}
