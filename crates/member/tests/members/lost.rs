//! The only replica of a slice is lost.

use std::thread;

use ilion_cluster::{META_TABLET, Phase};
use ilion_env::{CrashRule, MemEnv};
use ilion_member::Replaced;
use ilion_query::Consistency;
use uuid::Uuid;

use crate::copies::{ROWS, check, create, fill};
use crate::world::{World, run, wait};

const TABLETS: u32 = 4;

fn wait_for_trimming(world: &World) {
    wait("the logs are not trimmed", || {
        (0..TABLETS).all(|tablet| world.logs.start(tablet) > 0)
    });
}

#[test]
fn a_node_in_the_place_of_an_only_replica_waits_until_the_keyspaces_that_are_lost_are_dropped() {
    let world = World::with_room(2, 3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 1);
    fill(&first, 0);
    wait_for_trimming(&world);
    let lost = first.member.view().unwrap().members[1].host;
    drop(world.lose(1, CrashRule::LoseUnsynced));
    wait("the lost node is not seen to be down", || {
        !first.member.view().unwrap().members[1].is_up
    });
    let is_joining = || {
        let view = first.member.view().unwrap();
        view.members.iter().any(|member| member.phase == Phase::Joining)
    };
    thread::scope(|scope| {
        let joining = scope.spawn(|| world.start_as(2, MemEnv::new(60), 102, Some(Replaced::Host(lost))));
        wait("the new node does not join", is_joining);
        let end = world.logs.end(META_TABLET);
        wait("the meta log does not go on", || {
            world.logs.end(META_TABLET) > end + 40
        });
        assert!(is_joining(), "it cannot have what is lost");
        run(&first.processor, "DROP KEYSPACE ks", &[], Consistency::ONE).unwrap();
        joining.join().unwrap().unwrap();
    });
    let hosts: Vec<Uuid> = first
        .member
        .view()
        .unwrap()
        .members
        .iter()
        .map(|member| member.host)
        .collect();
    assert_eq!(hosts, [Uuid::from_u128(100), Uuid::from_u128(102)]);
    // As from a backup.
    create(&first, 2);
    fill(&world.at(2).unwrap(), 0);
    check(&first, ROWS);
    check(&world.at(2).unwrap(), ROWS);
}

#[test]
fn a_keyspace_can_be_used_that_is_created_after_the_last_one_was_dropped() {
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 3);
    fill(&first, 0);
    wait_for_trimming(&world);
    run(&first.processor, "DROP KEYSPACE ks", &[], Consistency::ONE).unwrap();
    // Statements on the old tables are still in the logs, and the new ones have the same names.
    create(&first, 3);
    world.crash(1, CrashRule::LoseUnsynced);
    fill(&world.at(2).unwrap(), 0);
    for place in 0..3 {
        check(&world.at(place).unwrap(), ROWS);
    }
    world.crash(1, CrashRule::LoseUnsynced);
    check(&world.at(1).unwrap(), ROWS);
}
