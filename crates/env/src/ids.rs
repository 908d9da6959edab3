//! Unique timestamps and version 1 UUIDs from a wall clock that may stand still or step back.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use uuid::Uuid;

/// Ticks of 100 ns between 1582-10-15, where version 1 UUIDs start, and 1970.
const GREGORIAN_OFFSET_TICKS: u64 = 0x01B2_1DD2_1381_4000;
const MAX_TICKS: u64 = (1 << 60) - 1;

/// Hands out timestamps and time UUIDs, each larger than the one before.
#[derive(Debug)]
pub struct Ids {
    last_micros: AtomicI64,
    last_ticks: AtomicU64,
    /// Clock sequence and node of our UUIDs: random per process, so that two processes never give out the
    /// same one.
    node: [u8; 8],
}

impl Ids {
    /// Takes eight random bytes that tell this process from all others.
    pub fn new(mut node: [u8; 8]) -> Self {
        node[0] = node[0] & 0x3f | 0x80; // RFC 9562: the variant, in the upper bits of the clock sequence.
        node[2] |= 0x01; // The multicast bit: a node id that is no network card's address.
        Self {
            last_micros: AtomicI64::new(i64::MIN),
            last_ticks: AtomicU64::new(0),
            node,
        }
    }

    /// The clock's time, or one more than the last answer if the clock did not move on.
    pub fn unique_micros(&self, now_micros: i64) -> i64 {
        let next = |last: i64| now_micros.max(last.saturating_add(1));
        let last = self
            .last_micros
            .fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }

    /// A version 1 UUID of the clock's time, or one tick after the last answer.
    pub fn time_uuid(&self, now_micros: i64) -> Uuid {
        let since_1970 = u64::try_from(now_micros).unwrap_or(0).saturating_mul(10);
        let now_ticks = since_1970.saturating_add(GREGORIAN_OFFSET_TICKS).min(MAX_TICKS);
        let next = |last: u64| now_ticks.max(last + 1);
        let last = self
            .last_ticks
            .fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        self.uuid_at(next(last.unwrap_or_else(|last| last)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fields of a version 1 UUID are slices of the ticks"
    )]
    fn uuid_at(&self, ticks: u64) -> Uuid {
        let version_1 = 0x1000 | ((ticks >> 48) as u16 & 0x0fff);
        Uuid::from_fields(ticks as u32, (ticks >> 32) as u16, version_1, &self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn timestamps_grow_while_the_clock_stands_or_steps_back() {
        let ids = Ids::new([7; 8]);
        let given: Vec<i64> = [100, 100, 90, 200].map(|now| ids.unique_micros(now)).to_vec();
        assert_eq!(given, [100, 101, 102, 200]);
    }

    #[test]
    fn time_uuids_are_version_1_unique_and_carry_the_time() {
        let ids = Ids::new([0xff; 8]);
        let first = ids.time_uuid(1_700_000_000_000_000);
        let second = ids.time_uuid(1_700_000_000_000_000);
        assert_eq!(first.get_version_num(), 1);
        assert_eq!(first.get_variant(), uuid::Variant::RFC4122);
        let ticks = |id: uuid::Uuid| id.get_timestamp().unwrap().to_gregorian().0;
        assert_eq!(ticks(second), ticks(first) + 1);
        assert_eq!(first.get_timestamp().unwrap().to_unix().0, 1_700_000_000);
    }
}
