//! Whatever was put in comes out once, in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Records are four bytes of a key and a number; of equal keys high halves are added up and the last low half is kept.
struct Sums;

impl Order for Sums {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a[..4].cmp(&b[..4])
    }

    fn second(&self, record: &[u8]) -> u64 {
        u64::from(u32::from_be_bytes(record[..4].try_into().unwrap()) / 2)
    }

    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&older[..4]);
        out.extend_from_slice(&merged_value(Some(number(older)), number(newer)).to_be_bytes());
    }
}

fn number(record: &[u8]) -> u64 {
    u64::from_be_bytes(record[4..].try_into().unwrap())
}

fn head_of(key: u32) -> u64 {
    u64::from(key / 7)
}

fn put(runs: &mut Runs, key: u32, value: u64) -> isize {
    let kind = if value.is_multiple_of(3) {
        Kind::First
    } else {
        Kind::Again
    };
    runs.push(&Sums, head_of(key), kind, |bytes| {
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes.extend_from_slice(&value.to_be_bytes());
    })
}

fn take_all(walk: &mut Walk) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    let mut record = Vec::new();
    while walk.take(&Sums, &mut record) {
        all.push((
            u32::from_be_bytes(record[..4].try_into().unwrap()),
            number(&record),
        ));
        record.clear();
    }
    all
}

fn merged_value(known: Option<u64>, value: u64) -> u64 {
    known.map_or(value, |known| (known >> 32 << 32).wrapping_add(value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn records_come_out_once_and_in_order(
        count in 0_usize..12_000,
        keys in prop::sample::select(vec![3_u32, 50, 5000, 1_000_000]),
        closes in 1_usize..3000,
        seed in any::<u64>(),
        from in 0_u32..6000,
    ) {
        let mut model = BTreeMap::new();
        let mut runs = Runs::default();
        let (mut state, mut grown) = (seed | 1, 0);
        for round in 0..count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let key = (state >> 33) as u32 % keys;
            let known = model.get(&key).copied();
            model.insert(key, merged_value(known, state));
            grown += put(&mut runs, key, state);
            if round % closes == 0 {
                grown += runs.close_tail(&Sums);
            }
        }
        grown += runs.close_tail(&Sums);
        prop_assert_eq!(grown, runs.runs().map(|run| run.size_bytes().cast_signed()).sum::<isize>());
        let mut walk = Walk::all(&Sums, runs.runs().cloned());
        prop_assert_eq!(take_all(&mut walk), model.clone().into_iter().collect::<Vec<_>>());
        let is_before = |limit: u32| move |record: Record<'_>| record.bytes[..4] < limit.to_be_bytes()[..];
        let mut walk = Walk::between(&Sums, runs.runs().cloned(), is_before(from), is_before(from + 900));
        let between: Vec<_> = model.range(from..from + 900).map(|(key, value)| (*key, *value)).collect();
        prop_assert_eq!(take_all(&mut walk), between);
        let mut walk = Walk::all(&Sums, runs.runs().cloned());
        walk.step(&Sums);
        walk.seek(&Sums, is_before(from));
        let first = walk.peek().map(|record| u32::from_be_bytes(record.bytes[..4].try_into().unwrap()));
        // Otherwise the step passed over what is sought.
        if model.first_key_value().is_none_or(|(least, _)| *least < from) {
            prop_assert_eq!(first, model.range(from..).next().map(|(key, _)| *key));
        }
    }
}

/// Runs that stay however often they are shown meanwhile.
fn runs_after(count: u32, shown_after: usize) -> usize {
    let mut runs = Runs::default();
    for number in 0..count {
        put(&mut runs, number.wrapping_mul(0x9E37_79B9), 1);
        if (number as usize).is_multiple_of(shown_after) {
            runs.close_tail(&Sums);
        }
    }
    runs.close_tail(&Sums);
    assert_eq!(runs.len(), count as usize);
    runs.runs().count()
}

#[test]
fn reads_between_writes_do_not_leave_many_small_runs() {
    for shown_after in [1, 2, 7, 100, 600, usize::MAX] {
        let count = runs_after(100_000, shown_after);
        assert!(count < 60, "{count} runs, shown after {shown_after} writes");
    }
}

#[test]
fn records_that_are_one_take_the_memory_of_one() {
    let mut runs = Runs::default();
    let mut grown = 0;
    for round in 0..20_000 {
        grown += put(&mut runs, round % 3, u64::from(round));
    }
    grown += runs.close_tail(&Sums);
    assert!(grown < 4000, "{grown} bytes");
    let capacity: usize = runs.runs().map(|run| run.capacity_bytes()).sum();
    assert_eq!(grown.cast_unsigned(), capacity);
}
