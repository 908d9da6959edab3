//! A replica whose data is not that of the others, as after a disk that has lost a write.

use ilion_env::CrashRule;
use ilion_query::Consistency;

use crate::world::{World, run, wait};

const TABLETS: u32 = 4;
const ROWS: i64 = 20;
const INSERT: &str = "INSERT INTO ks.t (k, n) VALUES (?, ?) IF NOT EXISTS";
const SELECT: &str = "SELECT n FROM ks.t WHERE k = ?";
const WRONG: usize = 1;

/// Inserts rows through a node if they do not exist. Returns which did not.
fn insert(world: &World, place: usize, keys: impl Iterator<Item = i64>) -> Vec<i64> {
    let node = world.at(place).unwrap();
    let is_applied = |key: &i64| {
        let rows = run(&node.processor, INSERT, &[*key, *key], Consistency::QUORUM).unwrap();
        rows[0][0] == Some(1)
    };
    keys.filter(is_applied).collect()
}

fn halted(world: &World) -> Vec<usize> {
    let places = 0..3;
    let is_halted = |place: &usize| {
        world
            .at(*place)
            .is_some_and(|node| node.member.halted_tablet().is_some())
    };
    places.filter(is_halted).collect()
}

/// A cluster of so many members with all rows each. The disk of one of them has lost its rows.
fn cluster_with_a_wrong_replica(count: usize) -> World {
    let world = World::with_room(count, 3, TABLETS);
    let keyspace = format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {count}}}"
    );
    for text in [
        keyspace.as_str(),
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint)",
    ] {
        run(&world.at(0).unwrap().processor, text, &[], Consistency::ONE).unwrap();
    }
    let rows: Vec<i64> = (0..ROWS).collect();
    assert_eq!(insert(&world, 0, 0..ROWS), rows);
    let wrong = world.at(WRONG).unwrap();
    for key in rows {
        let has = || run(&wrong.local, SELECT, &[key], Consistency::ONE).unwrap() == [[Some(key)]];
        wait("a replica does not have a row", has);
        let delete = "DELETE FROM ks.t USING TIMESTAMP 4000000000000000 WHERE k = ?";
        run(&wrong.local, delete, &[key], Consistency::ONE).unwrap();
        assert!(!has());
    }
    assert!(halted(&world).is_empty(), "nobody can know it yet");
    world
}

#[test]
fn a_replica_with_other_data_stops_the_tablet_and_copies_it_when_it_starts_again() {
    let world = cluster_with_a_wrong_replica(3);
    assert!(insert(&world, 0, 0..ROWS).is_empty());
    // Blocks end.
    let mut next = ROWS;
    wait("the wrong replica goes on", || {
        insert(&world, 0, next..next + 1);
        next += 1;
        halted(&world) == [WRONG]
    });
    // Its clients get the answers of the others.
    assert!(insert(&world, WRONG, 0..ROWS).is_empty());
    world.crash(WRONG, CrashRule::LoseUnsynced);
    assert!(halted(&world).is_empty());
    let copied = world.at(WRONG).unwrap();
    for key in 0..next {
        let found = run(&copied.local, SELECT, &[key], Consistency::ONE).unwrap();
        assert_eq!(found, [[Some(key)]], "row {key}");
    }
    // From now on it agrees, and the cluster knows.
    let node = copied.member.wait_joined(crate::world::PATIENCE).unwrap();
    wait("the cluster does not know that the tablet is copied", || {
        insert(&world, WRONG, 0..ROWS);
        let state = world.at(0).unwrap().member.state().unwrap();
        state.differing(node).is_empty()
    });
    for key in next..next + ROWS {
        assert_eq!(insert(&world, WRONG, key..key + 1), [key]);
    }
    assert!(halted(&world).is_empty());
}

#[test]
fn two_replicas_that_differ_both_go_on_and_say_so() {
    let world = cluster_with_a_wrong_replica(2);
    let mut next = 0;
    let disputed = |place: usize| world.at(place).unwrap().member.facts().disputed;
    wait("nobody notices that they differ", || {
        insert(&world, 0, next..next + 1);
        next += 1;
        disputed(0) > 0 && disputed(WRONG) > 0
    });
    assert!(halted(&world).is_empty());
}
