//! Tests: each record that was written is read once, in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Records are four bytes of a key and a number. The merge of equal keys adds the high halves and keeps the last low half.
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

    fn is_removal(&self, record: &[u8]) -> bool {
        is_removal(number(record))
    }
}

/// Seven of eight numbers are removals.
fn is_removal(value: u64) -> bool {
    !value.is_multiple_of(8)
}

fn number(record: &[u8]) -> u64 {
    u64::from_be_bytes(record[4..].try_into().unwrap())
}

fn head_of(key: u32) -> u64 {
    u64::from(key / 7)
}

fn coming(key: u32, kind: Kind) -> Coming {
    Coming {
        head: head_of(key),
        kind,
        len: 12,
    }
}

fn write(key: u32, value: u64, room: &mut Room<'_>) {
    room.array(key.to_be_bytes());
    room.array(value.to_be_bytes());
}

fn put(runs: &mut Runs, key: u32, value: u64) -> isize {
    let kind = if value.is_multiple_of(3) {
        Kind::First
    } else {
        Kind::Again
    };
    runs.push(&Sums, coming(key, kind), |room| write(key, value, room))
}

/// Selects the records of these keys.
struct Keys(std::ops::Range<u32>);

impl Stretch for Keys {
    fn heads(&self) -> std::ops::RangeInclusive<u64> {
        head_of(self.0.start)..=head_of(self.0.end)
    }

    fn is_before_start(&self, record: Record<'_>) -> bool {
        key(record.bytes) < self.0.start
    }

    fn is_before_end(&self, record: Record<'_>) -> bool {
        key(record.bytes) < self.0.end
    }
}

fn key(record: &[u8]) -> u32 {
    u32::from_be_bytes(record[..4].try_into().unwrap())
}

/// Keys and numbers of all records that `take` appends.
fn taken(mut take: impl FnMut(&mut Vec<u8>) -> bool) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    let mut record = Vec::new();
    while take(&mut record) {
        all.push((key(&record), number(&record)));
        record.clear();
    }
    all
}

fn take_all(walk: &mut Walk) -> Vec<(u32, u64)> {
    taken(|record| walk.take(&Sums, record))
}

fn take_living(walk: &mut Walk) -> Vec<(u32, u64)> {
    taken(|record| walk.take_living(&Sums, record))
}

fn merged_value(known: Option<u64>, value: u64) -> u64 {
    known.map_or(value, |known| (known >> 32 << 32).wrapping_add(value))
}

/// Sorts all unsorted records; returns the growth of memory in bytes.
fn sort_all(runs: &mut Runs) -> isize {
    let mut grown = 0;
    while !runs.is_closed() {
        grown += runs.sort_next(&Sums).0;
    }
    grown
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
                grown += sort_all(&mut runs);
            }
        }
        grown += sort_all(&mut runs);
        prop_assert_eq!(grown, runs.runs().map(|run| run.size_bytes().cast_signed()).sum::<isize>());
        let mut walk = Walk::all(&Sums, runs.runs().cloned());
        prop_assert_eq!(take_all(&mut walk), model.clone().into_iter().collect::<Vec<_>>());
        let mut walk = Walk::all(&Sums, runs.runs().cloned());
        let living = model.iter().map(|(key, value)| (*key, *value)).filter(|(_, value)| !is_removal(*value));
        prop_assert_eq!(take_living(&mut walk), living.collect::<Vec<_>>());
        let mut walk = Walk::between(&Sums, runs.runs().cloned(), &Keys(from..from + 900));
        let between: Vec<_> = model.range(from..from + 900).map(|(key, value)| (*key, *value)).collect();
        prop_assert_eq!(take_all(&mut walk), between);
        let mut walk = Walk::all(&Sums, runs.runs().cloned());
        walk.step(&Sums);
        walk.seek(&Sums, |record| key(record.bytes) < from);
        let first = walk.peek().map(|record| key(record.bytes));
        // Otherwise, `step` passed the record that is sought.
        if model.first_key_value().is_none_or(|(least, _)| *least < from) {
            prop_assert_eq!(first, model.range(from..).next().map(|(key, _)| *key));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn readers_see_what_is_there_sorted_or_not(
        count in 0_u32..40_000,
        keys in prop::sample::select(vec![3_u32, 5000, 1_000_000]),
        reads in prop::collection::vec((0_u32..40_000, 0_u32..6000, prop::sample::select(vec![0_u32, 1, 30, 5000])), 0..12),
        seed in any::<u64>(),
    ) {
        let shared: SharedRuns<()> = SharedRuns::default();
        let (mut model, mut state) = (BTreeMap::new(), seed | 1);
        for round in 0..count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let key = (state >> 33) as u32 % keys;
            let known = model.get(&key).copied();
            model.insert(key, merged_value(known, state));
            let kind = if state.is_multiple_of(3) { Kind::First } else { Kind::Again };
            shared.push(&Sums, coming(key, kind), |()| {}, |room| write(key, state, room));
            for (_, from, len) in reads.iter().filter(|(at, ..)| *at == round) {
                // Often enough that tails are sorted in between.
                for read in 0..70 {
                    let stretch = Keys(*from..from + len);
                    let runs = shared.snapshot(&Sums, &stretch);
                    let walk = || Walk::between(&Sums, runs.iter().cloned(), &stretch);
                    let here: Vec<_> = model.range(stretch.0.clone()).map(|(key, value)| (*key, *value)).collect();
                    let living: Vec<_> = here.iter().copied().filter(|(_, value)| !is_removal(*value)).collect();
                    prop_assert_eq!(take_all(&mut walk()), here.clone());
                    if read % 10 > 0 {
                        continue;
                    }
                    prop_assert_eq!(take_living(&mut walk()), living.clone());
                    // The second read knows by the bits what the first one found.
                    prop_assert_eq!(take_living(&mut walk()), living.clone());
                    let (mut skipping, middle) = (walk(), from + len / 2);
                    skipping.skip_removed(&Sums, |record| self::key(record.bytes) < middle);
                    prop_assert!(walk().len_living() >= living.len());
                    let rest = take_all(&mut skipping);
                    prop_assert!(here.ends_with(&rest));
                    let skipped = &here[..here.len() - rest.len()];
                    prop_assert!(skipped.iter().all(|(key, value)| *key < middle && is_removal(*value)));
                }
            }
        }
        let all: Vec<_> = model.into_iter().collect();
        let mut ordered = Ordered::of(&Sums, shared.all());
        let (mut written, mut room) = (Vec::new(), Vec::new());
        while let Some(record) = ordered.next(&Sums, &mut room) {
            written.push((key(record), number(record)));
        }
        prop_assert_eq!(&written, &all);
        prop_assert_eq!(take_all(&mut Walk::all(&Sums, shared.snapshot(&Sums, &All))), all);
    }
}

/// Records of many keys, none of them sorted.
fn unsorted(count: u32) -> SharedRuns<()> {
    let shared: SharedRuns<()> = SharedRuns::default();
    for number in 0..count {
        let key = number.wrapping_mul(0x9E37_79B9);
        let coming = coming(key, Kind::First);
        shared.push(&Sums, coming, |()| {}, |room| write(key, number.into(), room));
    }
    shared
}

#[test]
fn one_who_wants_few_records_does_not_have_all_sorted() {
    let shared = unsorted(100_000);
    let one = Keys(0..1);
    let mut shown: Vec<usize> = Vec::new();
    for _ in 0..2000 {
        let runs = shared.snapshot(&Sums, &one);
        assert_eq!(Walk::between(&Sums, runs.iter().cloned(), &one).len(), 1);
        shown.push(runs.iter().map(|run| run.len()).sum());
    }
    assert_eq!(shown[0], 1);
    // Never much at once, but all of it in the end.
    let most = shown.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
    assert!(most <= Some(8192), "{most:?} records at once");
    assert_eq!(shown.last(), Some(&100_000));
}

#[test]
fn one_who_wants_all_has_all_sorted() {
    let runs = unsorted(100_000).snapshot(&Sums, &All);
    assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), 100_000);
}

/// Number of runs after `count` writes, with a snapshot after every `shown_after` writes.
fn runs_after(count: u32, shown_after: usize) -> usize {
    let mut runs = Runs::default();
    for number in 0..count {
        put(&mut runs, number.wrapping_mul(0x9E37_79B9), 1);
        if (number as usize).is_multiple_of(shown_after) {
            sort_all(&mut runs);
        }
    }
    sort_all(&mut runs);
    assert_eq!(runs.len(), count as usize);
    runs.runs().count()
}

#[test]
fn removed_records_are_passed_in_few_steps() {
    let shared: SharedRuns<()> = SharedRuns::default();
    let put = |key: u32, value: u64| {
        shared.push(
            &Sums,
            coming(key, Kind::First),
            |()| {},
            |room| write(key, value, room),
        );
    };
    const LIVING: u64 = 8;
    const REMOVAL: u64 = 9;
    // In another order than theirs, so that each run has records of all parts.
    let key = |number: u32| number.wrapping_mul(0x9E37_79B9) >> 8;
    for value in [LIVING, REMOVAL] {
        (0..100_000).for_each(|number| put(key(number), value));
    }
    put(key(100_000), LIVING);
    let runs = shared.snapshot(&Sums, &All);
    let read = || {
        let mut walk = Walk::all(&Sums, runs.iter().cloned());
        let before = walk.len_living();
        (take_living(&mut walk), before)
    };
    let living = vec![(key(100_000), LIVING)];
    let (first, before) = read();
    assert!(
        first == living && before > 50_000,
        "{before} of 200,001 records may be there"
    );
    // The first read found the removals.
    assert_eq!(read(), (living, 1));
}

/// Records are a key of four bytes and a state: 1 if the key is there, and 2 if it was not there before.
struct Toggles<const KEEPS: bool>;

impl<const KEEPS: bool> Order for Toggles<KEEPS> {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a[..4].cmp(&b[..4])
    }

    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&newer[..4]);
        out.push(older[4] & 2 | newer[4] & 1);
    }

    fn is_removal(&self, record: &[u8]) -> bool {
        record[4] & 1 == 0
    }

    fn is_void(&self, record: &[u8]) -> bool {
        record[4] == 2
    }

    const KEEPS_VOID: bool = KEEPS;
}

/// Adds and removes keys, the same ones `rounds` times, and leaves every tenth. Returns the number of records that readers see, and of all.
fn toggle<const KEEPS: bool>(keys: u32, rounds: u32) -> (usize, usize) {
    let order = Toggles::<KEEPS>;
    let mut runs = Runs::default();
    let mut put = |key: u32, state: u8| {
        let coming = Coming {
            head: key.into(),
            kind: if state == 0 { Kind::Again } else { Kind::First },
            len: 5,
        };
        runs.push(&order, coming, |room| {
            room.array(key.to_be_bytes());
            room.array([state]);
        });
    };
    for round in 1..=rounds {
        for key in 0..keys {
            put(key, 3);
            if round < rounds || key % 10 > 0 {
                put(key, 0);
            }
        }
    }
    while !runs.is_closed() {
        runs.sort_next(&order);
    }
    (runs.runs().map(|run| run.len()).sum(), runs.len())
}

#[test]
fn what_came_and_went_leaves_the_runs() {
    assert_eq!(toggle::<false>(20_000, 1), (2000, 2000));
    assert_eq!(toggle::<true>(20_000, 1), (2000, 20_000));
    // The same keys over and over do not pile up among those that are kept aside.
    let (seen, all) = toggle::<true>(100, 2000);
    assert!(seen <= 100 && all < 2000, "{seen} of {all}");
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
    grown += sort_all(&mut runs);
    assert!(grown < 4000, "{grown} bytes");
    let capacity: usize = runs.runs().map(|run| run.capacity_bytes()).sum();
    assert_eq!(grown.cast_unsigned(), capacity);
}

#[test]
fn records_written_again_and_again_do_not_pile_up() {
    let mut runs = Runs::default();
    let (mut held, mut most) = (0, 0);
    for round in 0..600_000 {
        held += put(&mut runs, round % 1000, u64::from(round));
        most = most.max(held);
    }
    assert!(most < 2 << 20, "{most} bytes of 1000 records");
}

#[test]
fn a_head_is_the_first_bytes_with_zeros_for_what_is_missing() {
    let bytes = [0x81, 2, 0xF3, 4, 0x85, 6, 0, 8, 9];
    for len in 0..=bytes.len() {
        let mut padded = [0; 8];
        let shown = len.min(padded.len());
        padded[..shown].copy_from_slice(&bytes[..shown]);
        assert_eq!(
            super::head_of(&bytes[..len]),
            u64::from_be_bytes(padded),
            "{len} bytes"
        );
    }
}

#[test]
fn tails_hold_little_memory_that_they_do_not_use() {
    // Bytes of a record, and the number of records that fill a tail.
    for (len, count) in [(55, 8192), (120, 4370), (900, 583)] {
        let mut run = Run::default();
        for _ in 0..count {
            run.push(7, len, |room| room.bytes(&vec![1; len]));
        }
        let (used, held) = (run.size_bytes(), run.capacity_bytes());
        assert!(held < used * 5 / 4, "{held} for {used} bytes");
    }
}
