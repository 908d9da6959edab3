//! Members leave, join, crash and are replaced while clients write. Nothing that was acknowledged is lost, and counters count once.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ilion_env::{CrashRule, MemEnv, Seeded};
use ilion_member::{JoinError, Replaced, RingError};
use ilion_query::{Consistency, Error};

use crate::world::{Running, World, is_passing, run, wait};

const TABLETS: u32 = 8;
const MEMBERS: usize = 3;
const CLIENTS: i64 = 3;
const ROUNDS: u64 = 8;
const KEYS: i64 = 24;

#[derive(Default)]
struct Written {
    rows: BTreeSet<(i64, i64)>,
    /// What was added to the counter and acknowledged, and what was tried.
    added: i64,
    tried: i64,
}

struct Chaos {
    world: World,
    written: Mutex<Written>,
    next: AtomicI64,
    is_over: AtomicBool,
}

impl Chaos {
    /// A member that runs. The first one always does, unless the test has failed.
    fn someone(&self, random: &mut Seeded) -> Arc<Running> {
        loop {
            if let Some(running) = self.world.at(random.below(MEMBERS as u64) as usize) {
                return running;
            }
            thread::yield_now();
        }
    }

    fn client(&self, number: i64) {
        let mut random = Seeded::new(number.cast_unsigned() + 900);
        while !self.is_over.load(SeqCst) {
            thread::sleep(Duration::from_millis(2));
            let node = self.someone(&mut random);
            let row = (random.below(KEYS as u64) as i64, self.next.fetch_add(1, SeqCst));
            let insert = "INSERT INTO ks.rows (k, c) VALUES (?, ?)";
            if is_made(run(&node.processor, insert, &[row.0, row.1], Consistency::QUORUM)) {
                self.written.lock().unwrap().rows.insert(row);
            }
            self.written.lock().unwrap().tried += 1;
            let add = "UPDATE ks.counters SET n = n + 1 WHERE k = 1";
            if is_made(run(&node.processor, add, &[], Consistency::QUORUM)) {
                self.written.lock().unwrap().added += 1;
            }
        }
    }

    /// Waits until clients have written some more.
    fn go_on(&self, rows: usize) {
        let goal = self.written.lock().unwrap().rows.len() + rows;
        wait("writes do not go on", || {
            self.written.lock().unwrap().rows.len() >= goal
        });
    }

    /// One member after the other is treated badly.
    fn operate(&self) {
        let _over = Over(&self.is_over);
        let mut random = Seeded::new(17);
        // The first one stays: it is asked.
        for round in 0..ROUNDS {
            self.go_on(40);
            let place = 1 + random.below(MEMBERS as u64 - 1) as usize;
            let host = 1000 + u128::from(round);
            let disk = MemEnv::new(200 + round);
            match round % 4 {
                0 => {
                    self.leave(place);
                    self.world.start_as(place, disk, host, None).unwrap();
                }
                1 => {
                    // It crashes while it gives its data away, and comes back to do so.
                    let leaving = self.world.at(place).unwrap();
                    leaving.member.ring().leave(true).unwrap();
                    drop(leaving);
                    let disk = self
                        .world
                        .lose(place, CrashRule::Seeded(random.next_u64()))
                        .unwrap();
                    self.cancel();
                    match self.world.start_again(place, disk) {
                        Ok(()) => {
                            let again = self.world.at(place).unwrap();
                            self.settle();
                            let ring = again.member.ring();
                            wait("the ring is still changing", || {
                                ring.has_left() || ring.current().is_none()
                            });
                        }
                        // The others were faster than the cancellation.
                        Err(JoinError::Refused(reason)) => {
                            assert!(reason.contains("has left it"), "{reason}");
                        }
                        Err(error) => panic!("{error}"),
                    }
                    let has_left = match self.world.at(place) {
                        Some(again) => again.member.ring().has_left(),
                        None => true,
                    };
                    if has_left {
                        if self.world.at(place).is_some() {
                            self.world.stop(place);
                        }
                        let disk = MemEnv::new(300 + round);
                        self.world.start_as(place, disk, host, None).unwrap();
                    }
                }
                2 => {
                    drop(self.world.lose(place, CrashRule::LoseUnsynced));
                    self.replace(place, &disk, host);
                }
                _ => {
                    // The one that copies crashes.
                    self.leave(place);
                    let other = 3 - place;
                    thread::scope(|scope| {
                        let joining = scope.spawn(|| self.world.start_as(place, disk, host, None));
                        self.world.crash(other, CrashRule::LoseUnsynced);
                        joining.join().unwrap().unwrap();
                    });
                }
            }
            let first = self.world.at(0).unwrap();
            let rebalanced = first.member.ring().rebalance();
            assert!(
                matches!(rebalanced, Ok(_) | Err(RingError::Refused(_))),
                "{rebalanced:?}"
            );
            self.settle();
            for place in 0..MEMBERS {
                self.world.at(place).unwrap().member.ring().clean().unwrap();
            }
        }
        self.go_on(40);
    }

    fn leave(&self, place: usize) {
        let leaving = self.world.at(place).unwrap();
        leaving.member.ring().leave(true).unwrap();
        wait("it does not leave", || leaving.member.ring().has_left());
        drop(leaving);
        self.world.stop(place);
    }

    fn cancel(&self) {
        match self.world.at(0).unwrap().member.ring().cancel() {
            Ok(()) | Err(RingError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a member in the place of one that is thought to be down.
    fn replace(&self, place: usize, disk: &MemEnv, host: u128) {
        let address = Replaced::Address(IpAddr::from([127, 0, 0, place as u8 + 1]));
        wait("it is not replaced", || {
            match self
                .world
                .start_as(place, disk.crash(CrashRule::KeepAll), host, Some(address))
            {
                Ok(()) => true,
                Err(JoinError::Refused(reason)) if reason.contains("Cannot replace a live node") => false,
                Err(error) => panic!("{error}"),
            }
        });
    }

    /// Waits until no change of the ring is under way.
    fn settle(&self) {
        let first = self.world.at(0).unwrap();
        wait("the ring is still changing", || {
            first.member.ring().current().is_none()
        });
    }
}

/// Clients end when this is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Whether a write is acknowledged; else its outcome is open.
fn is_made<T>(answer: Result<T, Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(error) if is_passing(&error) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_is_lost_while_members_leave_join_crash_and_are_replaced() {
    let chaos = Chaos {
        world: World::new(MEMBERS, TABLETS),
        written: Mutex::default(),
        next: AtomicI64::new(1),
        is_over: AtomicBool::new(false),
    };
    let first = chaos.world.at(0).unwrap();
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
        "CREATE TABLE ks.rows (k bigint, c bigint, PRIMARY KEY (k, c))",
        "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter)",
    ] {
        run(&first.processor, statement, &[], Consistency::ONE).unwrap();
    }
    drop(first);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let chaos = &chaos;
            scope.spawn(move || chaos.client(number));
        }
        scope.spawn(|| chaos.operate());
    });
    chaos.world.check_states(&[0, 1, 2]);
    let written = chaos.written.lock().unwrap();
    let mut own = 0;
    for place in 0..MEMBERS {
        let node = chaos.world.at(place).unwrap();
        assert_eq!(node.member.halted(), None);
        let rows = run(
            &node.processor,
            "SELECT k, c FROM ks.rows",
            &[],
            Consistency::QUORUM,
        )
        .unwrap();
        let found: BTreeSet<(i64, i64)> = rows
            .iter()
            .map(|row| (row[0].unwrap(), row[1].unwrap()))
            .collect();
        let lost: Vec<_> = written.rows.difference(&found).collect();
        assert!(
            lost.is_empty(),
            "{} of {} rows are lost: {lost:?}",
            lost.len(),
            written.rows.len()
        );
        let counted = run(
            &node.processor,
            "SELECT n FROM ks.counters",
            &[],
            Consistency::QUORUM,
        )
        .unwrap();
        let counted = counted[0][0].unwrap();
        assert!(
            (written.added..=written.tried).contains(&counted),
            "{counted} of {} to {}",
            written.added,
            written.tried
        );
        let of_own = run(&node.local, "SELECT count(*) FROM ks.rows", &[], Consistency::ONE).unwrap();
        own += of_own[0][0].unwrap();
        if place + 1 == MEMBERS {
            assert_eq!(own, 2 * found.len() as i64, "each row is on two disks");
        }
    }
}
