//! The laws of the sorted view, against the keys of all sources sorted.

use std::sync::Arc;

use ilion_env::Seeded;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::{Partitioner, Token};

use super::super::tests::{Case, PARTITIONERS};
use super::super::{SortedBudget, SortedView};
use super::{NoView, SOURCES_MAX};

struct Sources {
    cases: Vec<Case>,
    view: SortedView,
}

impl Sources {
    fn of(partitioner: Partitioner, keys: Vec<Vec<Vec<u8>>>, random: &mut Seeded) -> Self {
        let keys = keys.into_iter().filter(|keys| !keys.is_empty());
        let cases: Vec<Case> = keys.map(|keys| Case::write(partitioner, keys, random)).collect();
        let maps = cases.iter().map(|case| Arc::new(case.open().unwrap().unwrap()));
        let view = SortedView::build(maps.collect(), &Arc::default(), &mut || true);
        Self {
            cases,
            view: view.unwrap().unwrap(),
        }
    }

    /// Each partition is in one group, in its source's order, and above all of the groups before.
    fn check_groups(&self) -> usize {
        let view = &self.view;
        let mut counts = vec![0; self.cases.len()];
        let mut greatest: Option<&DecoratedKey> = None;
        let mut spot = view.seek(&KeyBound::Start).unwrap();
        let mut groups = 0;
        while !view.is_end(spot) {
            let floor = view.floor(spot).unwrap().unwrap();
            let mut keys = Vec::new();
            let sources: Vec<usize> = view.sources(spot).collect();
            assert_eq!(view.only_source(spot), (sources.len() == 1).then(|| sources[0]));
            for source in &sources {
                assert_eq!(
                    view.rank(spot, *source),
                    counts[*source] - taken(&sources, keys.len(), *source)
                );
                keys.push(&self.cases[*source].keys[counts[*source] as usize]);
                counts[*source] += 1;
            }
            let least = keys.iter().min().unwrap();
            assert!(floor <= least.token, "{floor} {}", least.token);
            assert!(greatest < Some(least), "{greatest:?} {least:?}");
            greatest = keys.into_iter().max();
            spot = view.next(spot);
            groups += 1;
        }
        assert_eq!(view.floor(spot).unwrap(), None);
        for (case, count) in self.cases.iter().zip(counts) {
            assert_eq!(case.keys.len() as u64, count);
        }
        groups
    }

    /// What is above a bound is not before the place that is found; returns how many partitions before the bound are behind it.
    fn check_bound(&self, bound: &KeyBound) -> u64 {
        let spot = self.view.seek(bound).unwrap();
        let mut early = 0;
        for (source, case) in self.cases.iter().enumerate() {
            let below = case.keys.partition_point(|key| bound.compare(key).is_ge()) as u64;
            let rank = self.view.rank(spot, source);
            assert!(rank <= below, "{bound:?}: {rank} of {below} in {source}");
            early += below - rank;
        }
        early
    }

    /// A partition that has the token is found; returns how many that have not are.
    fn check_token(&self, token: &Token) -> u64 {
        let candidates = self.view.candidates(token).unwrap();
        let mut found = 0;
        for (source, case) in self.cases.iter().enumerate() {
            let place = case.keys.binary_search_by(|key| key.token.cmp(token));
            let ranks = candidates.iter().find(|(other, _)| *other == source);
            found += ranks.map_or(0, |(_, ranks)| ranks.end - ranks.start);
            if let Ok(place) = place {
                let (_, ranks) = ranks.unwrap_or_else(|| panic!("{token} is missed in {source}"));
                assert!(ranks.contains(&(place as u64)), "{token}: {ranks:?}, not {place}");
                found -= 1;
            }
        }
        found
    }

    fn check(&self, random: &mut Seeded) {
        self.check_groups();
        self.check_bound(&KeyBound::Start);
        self.check_bound(&KeyBound::End);
        for _ in 0..100 {
            let case = &self.cases[random.below(self.cases.len() as u64) as usize];
            let key = case.keys[random.below(case.keys.len() as u64) as usize].clone();
            let near = match random.below(3) {
                0 => key.key.to_vec(),
                1 => [&key.key[..], &[random.below(256) as u8]].concat(),
                _ => key.key[..key.key.len() / 2].to_vec(),
            };
            let near = DecoratedKey::new(case.partitioner(), near.into());
            for token in [&key.token, &near.token] {
                self.check_token(token);
                self.check_bound(&KeyBound::BeforeToken(token.clone()));
                self.check_bound(&KeyBound::AfterToken(token.clone()));
            }
            self.check_bound(&KeyBound::Before(near.clone()));
            self.check_bound(&KeyBound::After(near));
            self.check_bound(&KeyBound::Before(key));
        }
    }
}

fn taken(sources: &[usize], upto: usize, source: usize) -> u64 {
    sources[..upto].iter().filter(|other| **other == source).count() as u64
}

/// Keys of one kind, which differ in where and how soon.
fn keys(kind: u64, count: u64, random: &mut Seeded) -> Vec<Vec<u8>> {
    let bytes =
        |random: &mut Seeded, len: u64| (0..len).map(|_| random.below(256) as u8).collect::<Vec<u8>>();
    (0..count)
        .map(|number| match kind {
            0 => bytes(random, 16),
            1 => format!("user:{:08}", random.below(5000)).into_bytes(),
            2 => vec![0; random.below(40) as usize],
            3 => {
                let mut key = vec![7; random.below(30) as usize];
                let len = random.below(4);
                key.extend(bytes(random, len));
                key
            }
            4 => [&[b'p'; 70][..], &bytes(random, 2)[..]].concat(),
            5 => number.to_be_bytes().to_vec(),
            _ => {
                let len = random.below(4);
                bytes(random, len)
            }
        })
        .map(|key| if key.is_empty() { vec![0] } else { key })
        .collect()
}

#[test]
fn a_view_has_every_partition_of_any_sources_in_order() {
    for seed in 0..30 {
        let mut random = Seeded::new(seed);
        for partitioner in PARTITIONERS {
            let sources = 1 + random.below(12);
            let kind = random.below(7);
            let all: Vec<_> = (0..sources)
                .map(|_| {
                    let most = [1, 30, 400][random.below(3) as usize];
                    let count = 1 + random.below(most);
                    keys(kind, count, &mut random)
                })
                .collect();
            Sources::of(partitioner, all, &mut random).check(&mut random);
        }
    }
}

#[test]
fn chunks_anchors_and_blocks_are_crossed() {
    for partitioner in PARTITIONERS {
        for kind in [0, 5] {
            let mut random = Seeded::new(kind);
            let mut all: Vec<_> = (0..34).map(|_| keys(kind, 1100, &mut random)).collect();
            all.push(keys(kind, 1, &mut random));
            all.push(keys(0, 3000, &mut random));
            Sources::of(partitioner, all, &mut random).check(&mut random);
        }
    }
}

#[test]
fn many_sources_of_one_stretch_of_time_each_are_found() {
    let mut random = Seeded::new(5);
    let of_hour = |hour: u64| {
        (0..60)
            .map(|at: u64| (hour * 60 + at).to_be_bytes().to_vec())
            .collect()
    };
    let all: Vec<Vec<Vec<u8>>> = (0..SOURCES_MAX as u64).map(of_hour).collect();
    let sources = Sources::of(Partitioner::ByteOrdered, all, &mut random);
    assert_eq!(sources.check_groups(), 60 * SOURCES_MAX);
    sources.check(&mut random);
}

#[test]
fn hashes_are_mostly_told_apart() {
    let mut random = Seeded::new(6);
    let all: Vec<_> = (0..40).map(|_| keys(0, 2000, &mut random)).collect();
    let sources = Sources::of(Partitioner::Murmur3, all, &mut random);
    let groups = sources.check_groups();
    assert!(groups > 80_000 * 17 / 20, "{groups} groups of 80000");
    let (mut early, mut others) = (0, 0);
    for _ in 0..1000 {
        let token = Token::Murmur3(random.below(u64::MAX).cast_signed());
        early += sources.check_bound(&KeyBound::AfterToken(token.clone()));
        others += sources.check_token(&token);
    }
    assert!(early < 500 && others < 300, "{early} {others}");
}

#[test]
fn a_view_that_cannot_be_is_refused() {
    let mut random = Seeded::new(7);
    let case = Case::write(Partitioner::Murmur3, keys(0, 5000, &mut random), &mut random);
    let map = Arc::new(case.open().unwrap().unwrap());
    let build = |count: usize, bytes: u64, go_on: bool| {
        let budget = Arc::new(SortedBudget::new(bytes));
        let view = SortedView::build(vec![map.clone(); count], &budget, &mut || go_on);
        view.unwrap().err()
    };
    assert_eq!(build(0, 1 << 20, true), Some(NoView::Unfit));
    assert_eq!(build(SOURCES_MAX + 1, 1 << 30, true), Some(NoView::Unfit));
    assert_eq!(build(2, 9999, true), Some(NoView::NoRoom));
    assert_eq!(build(2, 1 << 20, false), Some(NoView::Stopped));
    assert_eq!(build(2, 1 << 20, true), None);
}

#[test]
fn a_partition_takes_a_byte_and_a_half() {
    let mut random = Seeded::new(8);
    for sources in [1, 40, 108] {
        let each = 110_000 / sources;
        let all = (0..sources).map(|_| keys(0, each, &mut random)).collect();
        let view = Sources::of(Partitioner::Murmur3, all, &mut random).view;
        let partitions = view.partition_count() as usize;
        let bytes = view.memory_bytes();
        assert!(
            bytes * 2 < partitions * 3,
            "{bytes} bytes of {partitions} partitions"
        );
    }
}
