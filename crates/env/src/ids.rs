//! Unique timestamps and version 1 UUIDs from a wall clock that may stop or step back.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use uuid::Uuid;

/// Ticks of 100 ns from 1582-10-15, the epoch of version 1 UUIDs, to 1970.
const GREGORIAN_OFFSET_TICKS: u64 = 0x01B2_1DD2_1381_4000;
const MAX_TICKS: u64 = (1 << 60) - 1;

/// Returns timestamps and time UUIDs, each larger than the one before.
#[derive(Debug)]
pub struct Ids {
    last_micros: AtomicI64,
    last_ticks: AtomicU64,
    /// Clock sequence and node of the UUIDs: random per process, so that two processes never return the same one.
    node: [u8; 8],
}

impl Ids {
    /// `node` has eight random bytes that distinguish this process from all others.
    pub fn new(mut node: [u8; 8]) -> Self {
        node[0] = node[0] & 0x3f | 0x80; // RFC 9562: the variant, in the upper bits of the clock sequence.
        node[2] |= 0x01; // The multicast bit: a node id that is no network card's address.
        Self {
            last_micros: AtomicI64::new(i64::MIN),
            last_ticks: AtomicU64::new(0),
            node,
        }
    }

    /// Raises the floor: all later timestamps and UUIDs are above this time, which another process gave out.
    pub fn raise(&self, floor_micros: i64) {
        self.last_micros.fetch_max(floor_micros, Relaxed);
        // The last tick of that microsecond.
        self.last_ticks.fetch_max(
            ticks_of(floor_micros).saturating_add(9).min(MAX_TICKS - 1),
            Relaxed,
        );
    }

    /// The newest timestamp so far, or the floor; `i64::MIN` if there is none.
    pub fn last_micros(&self) -> i64 {
        self.last_micros.load(Relaxed)
    }

    /// The clock's time, or the last timestamp plus one if the clock did not advance.
    pub fn unique_micros(&self, now_micros: i64) -> i64 {
        let next = |last: i64| now_micros.max(last.saturating_add(1));
        let last = self
            .last_micros
            .fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }

    /// A version 1 UUID of the clock's time, or of one tick after the last one.
    pub fn time_uuid(&self, now_micros: i64) -> Uuid {
        let now_ticks = ticks_of(now_micros);
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

/// The first tick of a microsecond since 1970.
fn ticks_of(micros: i64) -> u64 {
    let since_1970 = u64::try_from(micros).unwrap_or(0).saturating_mul(10);
    since_1970.saturating_add(GREGORIAN_OFFSET_TICKS).min(MAX_TICKS)
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
    fn whatever_is_given_is_above_what_another_process_gave() {
        let before = Ids::new([7; 8]);
        let (last, uuid) = (before.unique_micros(5_000), before.time_uuid(5_000));
        let after = Ids::new([7; 8]);
        after.raise(last);
        assert_eq!(after.last_micros(), 5_000);
        assert_eq!([10, 11].map(|now| after.unique_micros(now)), [5_001, 5_002]);
        let ticks = |id: uuid::Uuid| id.get_timestamp().unwrap().to_gregorian().0;
        assert!(ticks(after.time_uuid(10)) > ticks(uuid));
        after.raise(3);
        assert_eq!(after.last_micros(), 5_002, "a floor never lowers what was given");
    }

    #[test]
    fn threads_never_get_the_same_timestamp_while_the_clock_steps_back() {
        let ids = Ids::new([7; 8]);
        let mut given: Vec<i64> = std::thread::scope(|scope| {
            let take = |start: i64| {
                (0..10_000)
                    .map(|step| ids.unique_micros(start - step))
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|start| scope.spawn(move || take(start))).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 40_000);
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
