//! A replica copies tablets from another one while that one goes on, and is then as if it had read their logs.
//!
//! Records are those of `tablets`: one that is applied twice, not at all, or out of its order is seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_engine::{HeldTable, SliceRanges};
use ilion_env::{CrashRule, Seeded};
use ilion_rows::KeyRange;

use crate::model::strategy;
use crate::stepped::stepped;
use crate::support::{Store, decorated, new_store, open};
use crate::tablets::{Log, TABLES, TABLETS, apply_next, check_tablet, flush_one, key_of, random_record};

/// The partition of each of these tablets.
fn slices_of(tablets: &[u32]) -> SliceRanges {
    let mut keys: Vec<_> = tablets.iter().map(|tablet| decorated(&key_of(*tablet))).collect();
    keys.sort();
    SliceRanges {
        tablets: tablets.iter().copied().collect(),
        ranges: keys.iter().map(KeyRange::exactly).collect(),
        of_tablets: TABLETS,
    }
}

/// Copies what a held table has; in pieces, as over a network.
fn copy_table(random: &mut Seeded, from: &Store, held: &HeldTable, to: &Store, slices: &SliceRanges) -> bool {
    let schema = from.engine.schema();
    let name = &schema.table_by_id(held.id()).unwrap().name;
    let Some(slice) = held.write_slice(slices).unwrap() else {
        return false;
    };
    let components: Vec<(String, u64)> = slice.components().collect();
    let sizes: Vec<(&str, u64)> = components
        .iter()
        .map(|(name, bytes)| (name.as_str(), *bytes))
        .collect();
    let tablets = Arc::new(slices.tablets.clone());
    let table = to.table_named(name).id;
    let mut load = to
        .engine
        .begin_copy(&tablets, table, &slice.name(), &sizes)
        .unwrap();
    for (number, (name, bytes)) in components.iter().enumerate() {
        let mut offset = 0;
        loop {
            let length = (bytes - offset).min(random.below(300) + 1);
            let part = slice.read(number, offset, length as usize).unwrap();
            load.receive(name, offset, crc32(&part), &part).unwrap();
            offset += length;
            if offset == *bytes {
                break;
            }
        }
    }
    to.engine.finish_load(&load).unwrap();
    true
}

struct Replica {
    store: Store,
    /// Up to where each tablet is saved; `None`: it has none of it.
    saved: [Option<u64>; TABLETS as usize],
}

impl Replica {
    fn new(seed: u64, random: &mut Seeded) -> Self {
        let store = new_store(seed, stepped(random));
        store.add_table("u");
        store.add_table("v");
        store.alter(&strategy(random));
        let saved = [None; TABLETS as usize];
        Self { store, saved }
    }

    fn crash(&mut self, random: &mut Seeded) {
        let after = self.store.env.crash(CrashRule::Seeded(random.next_u64()));
        self.store = open(&after, stepped(random)).unwrap();
        for (tablet, end) in (0..).zip(self.saved) {
            self.store.engine.resume_tablet(tablet, end.unwrap_or(0));
        }
    }

    fn save(&mut self, tablet: u32) {
        if let Some(end) = &mut self.saved[tablet as usize] {
            *end = self.store.engine.tablet_needed(tablet);
        }
    }
}

/// Copies these tablets. Returns false if the receiver lost its power in between.
fn copy(random: &mut Seeded, logs: &[Log], from: &mut Replica, to: &mut Replica, tablets: &[u32]) -> bool {
    for tablet in tablets {
        from.save(*tablet);
        let seen = to.store.engine.tablet_seen(*tablet);
        if from.saved[*tablet as usize] < Some(seen) {
            // The receiver was ahead, or a table of a copy that was broken off is.
            while from.store.engine.tablet_end(*tablet) < seen {
                assert!(apply_next(&from.store, logs, *tablet));
            }
            for table in TABLES {
                let table = from.store.table_named(table).id;
                from.store.engine.flush(table).unwrap();
            }
            from.save(*tablet);
        }
    }
    let ends: Vec<u64> = tablets
        .iter()
        .map(|tablet| from.saved[*tablet as usize].unwrap())
        .collect();
    // What comes from now on may be in the copy or not.
    step(random, logs, &from.store, tablets);
    let held = from.store.engine.hold_tables();
    let slices = slices_of(tablets);
    to.store.engine.clear_ranges(&slices).unwrap();
    for table in &held {
        step(random, logs, &from.store, tablets);
        copy_table(random, &from.store, table, &to.store, &slices);
        if random.one_in(10) {
            to.crash(random);
            return false;
        }
    }
    for (tablet, end) in tablets.iter().zip(ends) {
        to.saved[*tablet as usize] = Some(end);
        to.store.engine.resume_tablet(*tablet, end);
    }
    true
}

fn step(random: &mut Seeded, logs: &[Log], store: &Store, tablets: &[u32]) {
    for _ in 0..random.below(6) {
        let tablet = tablets[random.below(tablets.len() as u64) as usize];
        match random.below(4) {
            0 => flush_one(random, store),
            1 => drop(store.engine.step()),
            _ => drop(apply_next(store, logs, tablet)),
        }
    }
}

/// Checks a tablet. Its tables may be ahead of what the replica has applied.
fn check(seed: u64, store: &Store, logs: &[Log], tablet: u32) {
    while store.engine.tablet_end(tablet) < store.engine.tablet_seen(tablet) {
        assert!(apply_next(store, logs, tablet));
    }
    check_tablet(seed, store, logs, tablet);
}

fn life(seed: u64) -> u32 {
    let random = &mut Seeded::new(seed);
    let mut replicas = [Replica::new(seed, random), Replica::new(seed + 1000, random)];
    replicas[0].saved = [Some(0); TABLETS as usize];
    let mut logs = vec![Log::new(); TABLETS as usize];
    let mut copies = 0;
    for _ in 0..300 {
        let tablet = random.below(u64::from(TABLETS)) as u32;
        let place = random.below(2) as usize;
        let is_followed = replicas[place].saved[tablet as usize].is_some();
        match random.below(40) {
            0 => flush_one(random, &replicas[place].store),
            1 => replicas[place].save(tablet),
            2 if is_followed => check(seed, &replicas[place].store, &logs, tablet),
            3 => replicas[place].crash(random),
            4 | 5 => {
                let [one, other] = &mut replicas;
                let (from, to) = match place {
                    0 => (one, other),
                    _ => (other, one),
                };
                let all: BTreeSet<u32> = (0..TABLETS).filter(|_| random.one_in(2)).collect();
                let has = |tablet: &u32| from.saved[*tablet as usize].is_some();
                let tablets: Vec<u32> = all.into_iter().filter(has).collect();
                if tablets.is_empty() {
                    continue;
                }
                // What it had of them is of no use any more.
                for tablet in &tablets {
                    to.saved[*tablet as usize] = None;
                }
                if copy(random, &logs, from, to, &tablets) {
                    copies += 1;
                } else {
                    // Else a tablet may be nowhere.
                    while !copy(random, &logs, from, to, &tablets) {}
                }
            }
            6..12 => drop(replicas[place].store.engine.step()),
            12..20 => {
                let log = &mut logs[tablet as usize];
                let above = log.last_key_value().map_or(0, |(offset, _)| offset + 1);
                log.insert(above + random.below(2), random_record(random));
            }
            _ if is_followed => drop(apply_next(&replicas[place].store, &logs, tablet)),
            _ => {}
        }
    }
    for replica in &replicas {
        for tablet in (0..TABLETS).filter(|tablet| replica.saved[*tablet as usize].is_some()) {
            while apply_next(&replica.store, &logs, tablet) {}
            check(seed, &replica.store, &logs, tablet);
        }
    }
    copies
}

#[test]
fn a_copy_goes_on_as_if_it_had_read_the_logs() {
    let copies: u32 = (0..4).map(life).sum();
    assert!(copies > 20, "copies: {copies}");
}

#[test]
fn clearing_leaves_other_partitions_and_lets_nothing_come_back() {
    let random = &mut Seeded::new(1);
    let mut replica = Replica::new(1, random);
    replica.saved = [Some(0); TABLETS as usize];
    let mut logs = vec![Log::new(); TABLETS as usize];
    for _ in 0..20 {
        for tablet in 0..TABLETS {
            let log = &mut logs[tablet as usize];
            log.insert(log.len() as u64, random_record(random));
            apply_next(&replica.store, &logs, tablet);
        }
        if random.one_in(3) {
            flush_one(random, &replica.store);
        }
    }
    replica.store.engine.clear_ranges(&slices_of(&[1])).unwrap();
    let rows = |store: &Store, tablet| -> usize {
        let of = |table: &&str| store.rows_of(&store.table_named(table), &key_of(tablet)).len();
        TABLES.iter().map(of).sum()
    };
    check_tablet(1, &replica.store, &logs, 0);
    check_tablet(1, &replica.store, &logs, 2);
    assert_eq!(rows(&replica.store, 1), 0);
    replica.crash(random);
    assert_eq!(rows(&replica.store, 1), 0, "it is durable");
    assert!(rows(&replica.store, 0) > 0);
}
