//! Reads at QUORUM: the logs know their ends, or a no-op is appended, or the read fails.

use std::time::Duration;

use ilion_query::{Consistency, Error};

use crate::world::{PATIENCE, World, run, wait};

const TABLETS: u32 = 4;
const READ: &str = "SELECT n FROM ks.t WHERE k = ?";

fn world() -> World {
    let world = World::new(3, TABLETS);
    let node = world.at(0).unwrap();
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint)",
    ] {
        run(&node.processor, text, &[], Consistency::QUORUM).unwrap();
    }
    world
}

/// Writes a row through one node, and reads it through another one.
fn write_and_read(world: &World, key: i64) {
    let [writer, reader] = [0, 1].map(|place| world.at(place).unwrap());
    let text = "INSERT INTO ks.t (k, n) VALUES (?, ?)";
    run(&writer.processor, text, &[key, key], Consistency::QUORUM).unwrap();
    let read = run(&reader.processor, READ, &[key], Consistency::QUORUM).unwrap();
    assert_eq!(read, [[Some(key)]]);
}

fn records(world: &World) -> u64 {
    (0..TABLETS).map(|tablet| world.logs.end(tablet)).sum()
}

#[test]
fn a_read_whose_end_is_known_appends_nothing() {
    let world = world();
    (0..20).for_each(|key| write_and_read(&world, key));
    // Nodes append no-ops until they have caught up.
    wait("members do not catch up", || {
        let members = [0, 1, 2].map(|place| world.at(place).unwrap());
        let mut tablets = members.iter().flat_map(|node| node.member.facts().tablets);
        tablets.all(|tablet| tablet.is_ready)
    });
    let before = records(&world);
    let reader = world.at(2).unwrap();
    for key in 0..20 {
        let read = run(&reader.processor, READ, &[key], Consistency::QUORUM).unwrap();
        assert_eq!(read, [[Some(key)]]);
    }
    assert_eq!(records(&world), before);
    assert_eq!(reader.member.facts().barriers_appended, 0);
}

#[test]
fn a_read_whose_end_is_not_known_appends_a_no_op() {
    let world = world();
    world.logs.hide_ends(true);
    (0..20).for_each(|key| write_and_read(&world, key));
    let reader = world.at(1).unwrap();
    assert_eq!(reader.member.facts().barriers_appended, 20);
}

#[test]
fn a_read_without_a_log_fails_and_the_next_one_succeeds() {
    let world = world();
    write_and_read(&world, 1);
    world.logs.cut_off(0..TABLETS);
    let reader = world.at(1).unwrap();
    let failed = run(&reader.processor, READ, &[1], Consistency::QUORUM);
    assert!(matches!(failed, Err(Error::ReadTimeout { .. })), "{failed:?}");
    world.logs.cut_off([]);
    write_and_read(&world, 2);
}

#[test]
fn a_member_that_has_caught_up_has_all_acknowledged_writes_on_itself() {
    let world = world();
    let [writer, other] = [0, 1].map(|place| world.at(place).unwrap());
    let insert = "INSERT INTO ks.t (k, n) VALUES (?, ?)";
    for key in 0..200 {
        run(&writer.processor, insert, &[key, key], Consistency::QUORUM).unwrap();
        other.member.catch_up(PATIENCE).unwrap();
        let own = run(&other.local, READ, &[key], Consistency::ONE).unwrap();
        assert_eq!(own, [[Some(key)]]);
    }
    world.logs.hide_ends(true);
    world.logs.cut_off([1]);
    let refused = other.member.catch_up(Duration::from_secs(2)).unwrap_err();
    assert!(refused.contains("does not reach the log"), "{refused}");
    world.logs.cut_off([]);
    other.member.catch_up(PATIENCE).unwrap();
}
