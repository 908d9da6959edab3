//! How eagerly memory is written to disk while nobody waits for it.
//!
//! A flush that frees memory begins long before writers need it, and shares the processors with reads. So it rests between two
//! stretches, the longer the more room there is; as writers come nearer to where they would be slowed, it rests less and at last
//! not at all. The rate of flushes settles where it is that of the writes, as ScyllaDB's controller of memtables has it.

use std::time::Duration;

use ilion_rows::ReadError;

use crate::engine::Shared;
use crate::maintenance::Maintenance;
use crate::watched::Watch;

/// Up to this share of the memory, in thousandths, flushes rest longest.
const RESTS_UPTO: usize = 500;
/// From this share on they do not rest; writers are slowed from 700 on (`budget`).
const WORKS_FROM: usize = 650;
/// Longest rest, to the work before it.
const REST_TO_WORK: u32 = 4;
/// No rest is longer, so that a wish to hurry is soon felt.
const REST_MAX: Duration = Duration::from_millis(100);

/// Whether a flush may rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Somebody asked for it.
    Now,
    /// It frees memory that is not needed yet.
    WithRests,
}

/// How long to rest after some work, with so much of the memory taken. Pure.
fn rest(work: Duration, used: usize, limit: usize) -> Duration {
    let taken = used.saturating_mul(1000) / limit.max(1);
    let room = WORKS_FROM.saturating_sub(taken).min(WORKS_FROM - RESTS_UPTO);
    let share = u32::try_from(room).unwrap_or(0);
    let whole = u32::try_from(WORKS_FROM - RESTS_UPTO).unwrap_or(1);
    (work * (REST_TO_WORK * share) / whole).min(REST_MAX)
}

/// Has a flush rest.
pub(crate) struct FlushPace<'a> {
    shared: &'a Shared,
    /// Of the tables that are being flushed: the one that was asked for, and the one that is written.
    tables: [&'a Maintenance; 2],
    haste: Haste,
    since_nanos: u64,
}

impl<'a> FlushPace<'a> {
    /// For a flush that begins to write.
    pub(crate) fn begin(shared: &'a Shared, tables: [&'a Maintenance; 2], haste: Haste) -> Self {
        Self {
            shared,
            tables,
            haste,
            since_nanos: shared.env.monotonic_nanos(),
        }
    }

    fn must_hurry(&self) -> bool {
        self.haste == Haste::Now
            || self.tables.iter().any(|table| table.is_awaited())
            || self.shared.background.is_flush_awaited()
    }
}

impl Watch for FlushPace<'_> {
    fn look(&mut self, _: u64) -> Result<(), ReadError> {
        if self.must_hurry() {
            return Ok(());
        }
        let env = &self.shared.env;
        let work = Duration::from_nanos(env.monotonic_nanos().saturating_sub(self.since_nanos));
        let budget = &self.shared.budget;
        let rest = rest(work, budget.used(), budget.limit());
        if !rest.is_zero() {
            self.shared.background.pause(rest);
        }
        self.since_nanos = env.monotonic_nanos();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_rests_while_there_is_room_and_works_before_writers_are_slowed() {
        let work = Duration::from_millis(10);
        let at = |used| rest(work, used, 1000);
        assert_eq!(at(400), work * REST_TO_WORK);
        assert_eq!(at(500), work * REST_TO_WORK);
        assert!(at(501) < at(500) && at(600) < at(550));
        assert_eq!(at(650), Duration::ZERO);
        assert_eq!(at(1200), Duration::ZERO);
        assert_eq!(rest(Duration::from_secs(9), 0, 1000), REST_MAX);
        assert_eq!(rest(work, 10, 0), Duration::ZERO);
    }
}
