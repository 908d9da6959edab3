//! Version 1 UUIDs: their time, and the lowest and highest UUID of a time.
//!
//! Ticks are units of 100 nanoseconds since 1582-10-15. Not here: clock and node, which the environment has.

use uuid::Uuid;

/// 1970-01-01 in ticks.
const EPOCH_TICKS: i64 = 0x01B2_1DD2_1381_4000;
const TICKS_PER_MICRO: i64 = 10;
const TICKS_PER_MILLI: i64 = 10_000;
/// The lower halves of UUIDs that sort first and last: their bytes are compared as signed. The variant bits are those of
/// Cassandra's `minTimeuuid` and `maxTimeuuid`.
const CLOCK_AND_NODE_MIN: u64 = 0x8080_8080_8080_8080;
const CLOCK_AND_NODE_MAX: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// A version 1 UUID of `ticks` (100 ns since 1582-10-15, 60 bits). `clock_and_node` is its lower half: variant and clock sequence in
/// the upper 16 bits, node in the lower 48.
pub fn time_uuid_from_ticks(ticks: u64, clock_and_node: u64) -> Uuid {
    let low = ticks & 0xFFFF_FFFF;
    let mid = (ticks >> 32) & 0xFFFF;
    let high = (ticks >> 48) & 0x0FFF;
    Uuid::from_u64_pair((low << 32) | (mid << 16) | 0x1000 | high, clock_and_node)
}

/// Converts microseconds since 1970 to ticks since 1582-10-15.
pub fn ticks_of_unix_micros(micros: i64) -> u64 {
    micros
        .saturating_mul(TICKS_PER_MICRO)
        .saturating_add(EPOCH_TICKS)
        .cast_unsigned()
}

/// Ticks since 1582-10-15 of a version 1 UUID.
pub fn time_uuid_ticks(uuid: &Uuid) -> u64 {
    let (msb, _) = uuid.as_u64_pair();
    (msb >> 32) | ((msb & 0xFFFF_0000) << 16) | ((msb & 0x0FFF) << 48)
}

/// The timestamp of a version 1 UUID with the version first: version, time_hi, time_mid, time_low.
#[inline(always)]
pub(crate) fn time_first(bits: u128) -> u64 {
    let msb = (bits >> 64) as u64;
    (msb << 48) | ((msb << 16) & 0xFFFF_0000_0000) | (msb >> 32)
}

/// Microseconds since 1970 of a version 1 UUID, rounded down.
pub(crate) fn time_uuid_unix_micros(uuid: &Uuid) -> i64 {
    (time_uuid_ticks(uuid).cast_signed() - EPOCH_TICKS).div_euclid(TICKS_PER_MICRO)
}

/// Milliseconds since 1970 of a version 1 UUID, rounded down.
pub fn time_uuid_unix_millis(uuid: &Uuid) -> i64 {
    time_uuid_unix_micros(uuid).div_euclid(1000)
}

/// The smallest timeuuid of a millisecond (`minTimeuuid`).
pub fn min_time_uuid(unix_millis: i64) -> Uuid {
    time_uuid_from_ticks(ticks_of_unix_millis(unix_millis), CLOCK_AND_NODE_MIN)
}

/// The greatest timeuuid of a millisecond (`maxTimeuuid`), in its last tick.
pub fn max_time_uuid(unix_millis: i64) -> Uuid {
    let last = ticks_of_unix_millis(unix_millis.saturating_add(1)).wrapping_sub(1);
    time_uuid_from_ticks(last, CLOCK_AND_NODE_MAX)
}

fn ticks_of_unix_millis(millis: i64) -> u64 {
    millis
        .saturating_mul(TICKS_PER_MILLI)
        .saturating_add(EPOCH_TICKS)
        .cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CqlType;

    #[test]
    fn the_time_of_a_uuid_reads_back() {
        let micros = 1_700_000_000_123_456;
        let uuid = time_uuid_from_ticks(ticks_of_unix_micros(micros) + 9, 0x8001_0203_0405_0607);
        assert_eq!(uuid.get_version_num(), 1);
        assert_eq!(time_uuid_unix_micros(&uuid), micros);
        assert_eq!(time_uuid_unix_millis(&uuid), micros / 1000);
        let known: Uuid = "5fc762a0-6832-11ee-840f-16802ed7ebc5".parse().unwrap();
        assert_eq!(
            time_uuid_unix_millis(&known),
            known
                .get_timestamp()
                .map(|t| {
                    let (secs, nanos) = t.to_unix();
                    i64::try_from(secs * 1000 + u64::from(nanos) / 1_000_000).unwrap()
                })
                .unwrap()
        );
    }

    #[test]
    fn bounds_of_a_millisecond_enclose_it_and_no_other() {
        let millis = 1_700_000_000_123;
        let compare = |a: Uuid, b: Uuid| CqlType::TimeUuid.compare(a.as_bytes(), b.as_bytes());
        let (low, high) = (min_time_uuid(millis), max_time_uuid(millis));
        assert_eq!(time_uuid_unix_millis(&low), millis);
        assert_eq!(time_uuid_unix_millis(&high), millis);
        for clock_and_node in [
            0x8080_8080_8080_8080,
            0x8001_FFFF_7F7F_0000,
            0xBFFF_FFFF_FFFF_FFFF,
        ] {
            let inside = time_uuid_from_ticks(ticks_of_unix_millis(millis), clock_and_node);
            assert!(compare(low, inside).is_le());
            assert!(compare(high, inside).is_ge());
        }
        assert!(compare(high, min_time_uuid(millis + 1)).is_lt());
    }
}
