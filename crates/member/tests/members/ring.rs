//! Members leave, are lost and removed or replaced, and slices are spread anew.

use std::net::IpAddr;

use ilion_cluster::META_TABLET;
use ilion_commitlog::SharedLogs;
use ilion_env::{CrashRule, MemEnv};
use ilion_member::{JoinError, Replaced, RingError};
use ilion_query::Consistency;
use uuid::Uuid;

use crate::copies::{ROWS, check, create, fill};
use crate::world::{Running, World, run, wait};

const TABLETS: u32 = 8;

/// Waits until these members see so many members, and no change of the ring that is under way.
fn wait_for_members(world: &World, places: &[usize], members: usize) {
    for place in places {
        let node = world.at(*place).unwrap();
        wait("the ring is still changing", || {
            let state = node.member.state().unwrap();
            state.members.len() == members && state.transition.is_none()
        });
    }
}

/// How many rows this node has itself.
fn own_rows(node: &Running) -> i64 {
    let counted = run(
        &node.local,
        "SELECT count(*) FROM ks.cells",
        &[],
        Consistency::ONE,
    );
    counted.unwrap()[0][0].unwrap()
}

fn slices_of(node: &Running) -> Vec<usize> {
    let state = node.member.state().unwrap();
    let members = state.members.keys();
    members.map(|member| state.tokens(*member).len()).collect()
}

#[test]
fn a_member_that_leaves_gives_its_data_to_the_others() {
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 2);
    fill(&first, 0);
    let third = world.at(2).unwrap();
    let ring = third.member.ring();
    ring.leave(false).unwrap();
    wait("it does not leave", || ring.has_left());
    wait_for_members(&world, &[0, 1], 2);
    assert_eq!(slices_of(&first), [4, 4]);
    let reason = third.member.halted().unwrap();
    assert!(
        reason.contains("not a member of the cluster any more"),
        "{reason}"
    );
    let disk = world.stop(2);
    for place in 0..2 {
        check(&world.at(place).unwrap(), ROWS);
        assert_eq!(own_rows(&world.at(place).unwrap()), ROWS * 4 / 5);
    }
    // Two nodes are as many as the replicas.
    let refused = world.at(1).unwrap().member.ring().leave(false).unwrap_err();
    let RingError::Refused(reason) = refused else {
        panic!("{refused}");
    };
    assert!(
        reason.starts_with(
            "Not enough live nodes to maintain replication factor in keyspace ks (RF = 2, N = 2)"
        ),
        "{reason}"
    );
    // Its directory is of no use any more; an empty one is.
    let back = world.start_as(2, disk, 102, None).unwrap_err();
    assert!(
        back.to_string()
            .contains("has left it: start it with an empty data directory"),
        "{back}"
    );
    world.start_as(2, MemEnv::new(60), 202, None).unwrap();
    wait_for_members(&world, &[0, 1, 2], 3);
    check(&world.at(2).unwrap(), ROWS);
}

#[test]
fn a_lost_member_is_removed_and_another_one_replaced() {
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 2);
    fill(&first, 0);
    let lost = Uuid::from_u128(102);
    let ring = first.member.ring();
    let refused = |error: RingError| match error {
        RingError::Refused(reason) => reason,
        unknown => panic!("{unknown}"),
    };
    assert!(refused(ring.remove(lost).unwrap_err()).contains("is alive and owns this ID"));
    assert_eq!(
        refused(ring.remove(Uuid::from_u128(9)).unwrap_err()),
        "Host ID not found."
    );
    assert_eq!(
        refused(ring.cancel().unwrap_err()),
        "No change of the ring is under way."
    );
    drop(world.lose(2, CrashRule::LoseUnsynced));
    fill(&first, ROWS);
    let address = Replaced::Address(IpAddr::from([127, 0, 0, 3]));
    let is_down = || match ring.remove(lost) {
        Ok(_) => true,
        Err(error) => {
            assert!(refused(error).contains("is alive"));
            false
        }
    };
    wait("it is not thought to be down", is_down);
    wait_for_members(&world, &[0, 1], 2);
    assert_eq!(slices_of(&first), [4, 4]);
    check(&first, 2 * ROWS);
    check(&world.at(1).unwrap(), 2 * ROWS);
    // A new one, which is lost, and whose place another one takes.
    world.start_as(2, MemEnv::new(61), 202, None).unwrap();
    wait_for_members(&world, &[0, 1, 2], 3);
    drop(world.lose(2, CrashRule::LoseUnsynced));
    let taken = world.start_as(2, MemEnv::new(62), 302, None).unwrap_err();
    assert!(
        taken
            .to_string()
            .contains("A node with address 127.0.0.3:7000 already exists"),
        "{taken}"
    );
    let start = || world.start_as(2, MemEnv::new(63), 402, Some(address));
    wait("it is not replaced", || match start() {
        Ok(()) => true,
        Err(JoinError::Refused(reason)) => {
            assert!(reason.contains("Cannot replace a live node"), "{reason}");
            false
        }
        Err(error) => panic!("{error}"),
    });
    let expected: Vec<Uuid> = [100, 101, 402].map(Uuid::from_u128).to_vec();
    wait("the lost one is still there", || {
        let state = first.member.state().unwrap();
        let mut hosts: Vec<Uuid> = state.members.values().map(|member| member.host).collect();
        hosts.sort();
        hosts == expected
    });
    for place in 0..3 {
        check(&world.at(place).unwrap(), 2 * ROWS);
    }
}

#[test]
fn slices_are_spread_evenly_and_what_a_member_does_not_hold_any_more_is_removed() {
    let world = World::with_room(1, 3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 1);
    fill(&first, 0);
    world.start(1, MemEnv::new(70));
    world.start(2, MemEnv::new(71));
    wait_for_members(&world, &[0, 1, 2], 3);
    let rows = ROWS * 4 / 5;
    assert_eq!(own_rows(&first), rows, "what it gave away is still there");
    first.member.ring().clean().unwrap();
    let second = world.at(1).unwrap();
    second.member.ring().clean().unwrap();
    let all = |world: &World| {
        (0..3)
            .map(|place| own_rows(&world.at(place).unwrap()))
            .sum::<i64>()
    };
    assert_eq!(all(&world), rows);
    check(&first, ROWS);
    check(&second, ROWS);
    assert_eq!(first.member.ring().rebalance().unwrap(), None, "they are even");
    // There is one replica only, so a keyspace would lose it: leaving must be forced. (The slices are copied first all the same.)
    let third = world.at(2).unwrap();
    third.member.ring().leave(true).unwrap();
    wait("it does not leave", || third.member.ring().has_left());
    wait_for_members(&world, &[0, 1], 2);
    drop(third);
    world.stop(2);
    assert_eq!(slices_of(&first), [4, 4]);
    check(&second, ROWS);
    // What was cleaned comes back if the slices do.
    world.start_as(2, MemEnv::new(72), 302, None).unwrap();
    wait_for_members(&world, &[0, 1, 2], 3);
    check(&world.at(2).unwrap(), ROWS);
    for place in 0..3 {
        world.at(place).unwrap().member.ring().clean().unwrap();
    }
    assert_eq!(all(&world), rows);
    world.crash(0, CrashRule::LoseUnsynced);
    world.crash(1, CrashRule::LoseUnsynced);
    check(&world.at(0).unwrap(), ROWS);
    assert_eq!(all(&world), rows);
}

#[test]
fn a_member_whose_log_begins_with_its_next_record_reads_that_record() {
    let world = World::new(2, TABLETS);
    let second = world.at(1).unwrap();
    let disk = world.stop(1);
    let saved = second.member.state().unwrap().position.segment.0;
    wait("the first member logs nothing", || {
        world.logs.end(META_TABLET) > saved + 2
    });
    let logs: &dyn SharedLogs = &world.logs;
    logs.delete_below(META_TABLET, saved + 1).unwrap();
    world.start(1, disk);
    world.check_states(&[0, 1]);
}
