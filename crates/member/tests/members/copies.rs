//! Members that join late, or were away while logs were trimmed, copy what they lack from others.

use std::thread;

use ilion_cluster::META_TABLET;
use ilion_env::{CrashRule, MemEnv};
use ilion_query::Consistency;

use crate::world::{DOWN_MAX, PATIENCE, Running, World, run, wait};

pub(crate) const ROWS: i64 = 300;

pub(crate) fn create(node: &Running, replicas: u32) {
    let keyspace = format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    );
    for statement in [
        keyspace.as_str(),
        "CREATE TABLE ks.cells (k bigint, c bigint, v bigint, w bigint, PRIMARY KEY (k, c))",
        "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter)",
        "CREATE INDEX ON ks.cells (w)",
    ] {
        run(&node.processor, statement, &[], Consistency::ONE).unwrap();
    }
}

/// Writes rows, and adds their numbers to counters.
pub(crate) fn fill(node: &Running, from: i64) {
    for row in from..from + ROWS {
        let write = "INSERT INTO ks.cells (k, c, v, w) VALUES (?, ?, ?, ?)";
        run(
            &node.processor,
            write,
            &[row % 40, row, row * 2, row % 7],
            Consistency::QUORUM,
        )
        .unwrap();
        if row % 5 == 0 {
            let delete = "DELETE FROM ks.cells WHERE k = ? AND c = ?";
            run(&node.processor, delete, &[row % 40, row], Consistency::QUORUM).unwrap();
        }
        let add = "UPDATE ks.counters SET n = n + ? WHERE k = ?";
        run(&node.processor, add, &[row, row % 10], Consistency::QUORUM).unwrap();
    }
}

pub(crate) fn rows_of(node: &Running, level: Consistency) -> Vec<Vec<Option<i64>>> {
    let mut rows = run(&node.processor, "SELECT k, c, v, w FROM ks.cells", &[], level).unwrap();
    rows.sort();
    rows
}

/// Checks what clients of a member see of the first `rows` rows, written once each.
pub(crate) fn check(node: &Running, rows: i64) {
    let is_left = |row: &i64| row % 5 != 0;
    let mut expected: Vec<Vec<Option<i64>>> = (0..rows)
        .filter(is_left)
        .map(|row| [row % 40, row, row * 2, row % 7].map(Some).to_vec())
        .collect();
    expected.sort();
    assert_eq!(rows_of(node, Consistency::QUORUM), expected);
    let by_index = "SELECT c FROM ks.cells WHERE w = 3";
    let mut found = run(&node.processor, by_index, &[], Consistency::QUORUM).unwrap();
    found.sort();
    let wanted: Vec<Vec<Option<i64>>> = (0..rows)
        .filter(is_left)
        .filter(|row| row % 7 == 3)
        .map(|row| vec![Some(row)])
        .collect();
    assert_eq!(found, wanted);
    for counter in 0..10 {
        let sum: i64 = (0..rows).filter(|row| row % 10 == counter).sum();
        let found = run(
            &node.processor,
            "SELECT n FROM ks.counters WHERE k = ?",
            &[counter],
            Consistency::QUORUM,
        );
        assert_eq!(found.unwrap(), [[Some(sum)]], "counter {counter}");
    }
}

/// Waits until enough replicas have copied what they lack.
fn wait_for_replicas(node: &Running) {
    wait("too few replicas can be read", || {
        let read = "SELECT k, c, v, w FROM ks.cells";
        run(&node.processor, read, &[], Consistency::QUORUM).is_ok()
    });
}

/// Waits until the logs of tablets do not have their beginnings any more.
fn wait_for_trimming(world: &World, tablets: u32) {
    wait("the logs are not trimmed", || {
        (0..tablets).all(|tablet| world.logs.start(tablet) > 0)
    });
}

#[test]
fn a_member_that_joins_late_copies_what_the_logs_do_not_have_any_more() {
    const TABLETS: u32 = 4;
    let world = World::with_room(1, 3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 3);
    fill(&first, 0);
    wait_for_trimming(&world, TABLETS);
    world.start(1, MemEnv::new(50));
    fill(&first, ROWS);
    world.start(2, MemEnv::new(51));
    for place in 0..3 {
        let member = world.at(place).unwrap();
        check(&member, 2 * ROWS);
        assert_eq!(member.member.halted(), None);
    }
    // They have all of it themselves.
    for place in 0..3 {
        let local = run(
            &world.at(place).unwrap().local,
            "SELECT count(*) FROM ks.cells",
            &[],
            Consistency::ONE,
        );
        assert_eq!(local.unwrap(), [[Some(2 * ROWS * 4 / 5)]], "member {place}");
    }
    // And it is durable.
    world.crash(2, CrashRule::LoseUnsynced);
    world.crash(1, CrashRule::LoseUnsynced);
    check(&world.at(1).unwrap(), 2 * ROWS);
    check(&world.at(2).unwrap(), 2 * ROWS);
}

#[test]
fn a_keyspace_on_all_members_can_be_used_if_others_have_one_replica() {
    // Each member has a third of the tablets, and takes the others from two members.
    let world = World::new(3, 12);
    let first = world.at(0).unwrap();
    let one = "CREATE KEYSPACE one WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    run(&first.processor, one, &[], Consistency::ONE).unwrap();
    create(&first, 3);
    // The member that created the keyspace can read it at once.
    assert!(rows_of(&first, Consistency::QUORUM).is_empty());
    fill(&first, 0);
    for place in 0..3 {
        let member = world.at(place).unwrap();
        wait_for_replicas(&member);
        check(&member, ROWS);
    }
}

#[test]
fn replicas_that_are_added_have_all_rows() {
    let world = World::new(3, 12);
    let first = world.at(0).unwrap();
    create(&first, 1);
    fill(&first, 0);
    let more = "ALTER KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}";
    run(&first.processor, more, &[], Consistency::ONE).unwrap();
    fill(&first, ROWS);
    for place in 0..3 {
        let member = world.at(place).unwrap();
        wait_for_replicas(&member);
        check(&member, 2 * ROWS);
        wait("a member does not have all rows", || {
            let count = "SELECT count(*) FROM ks.cells";
            let local = run(&member.local, count, &[], Consistency::ONE);
            local.unwrap() == [[Some(2 * ROWS * 4 / 5)]]
        });
    }
}

#[test]
fn a_member_that_was_away_while_logs_were_trimmed_copies_and_keeps_nothing_that_was_deleted() {
    const TABLETS: u32 = 4;
    let world = World::new(3, TABLETS);
    let first = world.at(0).unwrap();
    create(&first, 3);
    fill(&first, 0);
    let disk = world.lose(2, CrashRule::KeepAll).unwrap();
    let ends: Vec<u64> = (0..TABLETS).map(|tablet| world.logs.end(tablet)).collect();
    thread::sleep(DOWN_MAX * 2);
    fill(&first, ROWS);
    // Nobody remembers what was deleted.
    run(
        &first.processor,
        "ALTER TABLE ks.cells WITH gc_grace_seconds = 0",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    run(
        &first.processor,
        "DELETE FROM ks.cells WHERE k = 1",
        &[],
        Consistency::QUORUM,
    )
    .unwrap();
    wait("the logs are not trimmed", || {
        (0..TABLETS).all(|tablet| world.logs.start(tablet) > ends[tablet as usize])
    });
    world.start(2, disk);
    let third = world.at(2).unwrap();
    let gone = run(
        &third.processor,
        "SELECT c FROM ks.cells WHERE k = 1",
        &[],
        Consistency::QUORUM,
    );
    assert_eq!(gone.unwrap(), Vec::<Vec<Option<i64>>>::new());
    let others = rows_of(&first, Consistency::QUORUM);
    assert_eq!(rows_of(&third, Consistency::QUORUM), others);
    let mut local = run(
        &third.local,
        "SELECT k, c, v, w FROM ks.cells",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    local.sort();
    assert_eq!(local, others);
}

#[test]
fn a_start_does_not_need_the_beginning_of_the_meta_log() {
    let world = World::new(1, 2);
    let first = world.at(0).unwrap();
    create(&first, 1);
    fill(&first, 0);
    let known = first.member.state().unwrap().position.segment.0;
    drop(first);
    // A stop saves the state of the cluster, which has all records that were read.
    let stopped = world.stop(0);
    let meta = ilion_cluster::META_TABLET;
    assert!(known > 2);
    ilion_commitlog::SharedLogs::delete_below(&world.logs, meta, known).unwrap();
    world.start(0, stopped);
    check(&world.at(0).unwrap(), ROWS);
}

/// Waits until the meta log has lost the records below `offset`, and says where it begins.
fn wait_for_meta_trimming(world: &World, offset: u64) -> u64 {
    let start = || world.logs.start(ilion_cluster::META_TABLET);
    wait("the meta log is not trimmed", || start() > offset);
    start()
}

#[test]
fn a_newcomer_starts_from_a_snapshot_where_the_meta_log_is_trimmed() {
    let world = World::with_room(2, 4, 4);
    let first = world.at(0).unwrap();
    create(&first, 3);
    for statement in [
        "CREATE TABLE ks.gone (k bigint PRIMARY KEY)",
        "ALTER TABLE ks.cells ADD x bigint",
        "TRUNCATE ks.cells",
        "DROP TABLE ks.gone",
        "ALTER TABLE ks.cells DROP x",
    ] {
        run(&first.processor, statement, &[], Consistency::ONE).unwrap();
    }
    fill(&first, 0);
    let changed = world.logs.end(ilion_cluster::META_TABLET);
    let trimmed = wait_for_meta_trimming(&world, changed);
    world.start(2, MemEnv::new(60));
    let third = world.at(2).unwrap();
    check(&third, ROWS);
    run(
        &third.processor,
        "ALTER TABLE ks.cells ADD y bigint",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    fill(&third, ROWS);
    // It logs snapshots, too, when it is the first one.
    world.lose(0, CrashRule::LoseUnsynced);
    world.lose(1, CrashRule::LoseUnsynced);
    let ended = world.logs.end(ilion_cluster::META_TABLET);
    assert!(wait_for_meta_trimming(&world, ended) > trimmed);
    // As does one whose power was lost.
    world.crash(2, CrashRule::LoseUnsynced);
    let third = world.at(2).unwrap();
    assert_eq!(third.member.halted(), None);
    let rows = rows_of(&third, Consistency::ONE);
    assert_eq!(rows.len() as i64, 2 * ROWS * 4 / 5);
}

#[test]
fn a_member_that_was_away_while_the_meta_log_was_trimmed_catches_up_with_a_snapshot() {
    let world = World::new(3, 4);
    let first = world.at(0).unwrap();
    create(&first, 3);
    fill(&first, 0);
    let disk = world.lose(2, CrashRule::LoseUnsynced).unwrap();
    run(
        &first.processor,
        "ALTER TABLE ks.cells ADD x bigint",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    run(
        &first.processor,
        "CREATE TABLE ks.more (k bigint PRIMARY KEY, x bigint)",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    run(
        &first.processor,
        "INSERT INTO ks.more (k, x) VALUES (1, 2)",
        &[],
        Consistency::QUORUM,
    )
    .unwrap();
    fill(&first, ROWS);
    let changed = world.logs.end(ilion_cluster::META_TABLET);
    wait_for_meta_trimming(&world, changed);
    world.start_again(2, disk).unwrap();
    let third = world.at(2).unwrap();
    check(&third, 2 * ROWS);
    let more = run(&third.local, "SELECT k, x FROM ks.more", &[], Consistency::ONE);
    assert_eq!(more.unwrap(), [[Some(1), Some(2)]]);
}

#[test]
fn a_start_with_an_empty_log_writes_nothing_to_it() {
    let world = World::new(1, 2);
    create(&world.at(0).unwrap(), 1);
    let disk = world.stop(0);
    let another = World::with_room(0, 1, 2);
    let refused = another.start_as(0, disk, 100, None).unwrap_err();
    assert!(refused.to_string().contains("belongs to cluster"), "{refused}");
    assert_eq!(another.logs.end(ilion_cluster::META_TABLET), 0);
}

/// Its own data of a table with the columns `k` and `v`, as numbers.
fn own_rows(node: &Running, table: &str) -> Vec<Vec<Option<i64>>> {
    let text = format!("SELECT k, v FROM ks.{table}");
    let mut rows = run(&node.local, &text, &[], Consistency::ONE).unwrap();
    rows.sort();
    rows
}

#[test]
fn a_member_that_joins_while_all_replicas_are_down_waits_for_their_copies() {
    let mut world = World::with_room(0, 3, 4);
    // The log keeps its beginning, so that it could be read from there.
    world.change_options = |options| options.trim_records = 1_000_000;
    for place in [0, 1] {
        world.start(place, MemEnv::new(place as u64 + 1));
    }
    let first = world.at(0).unwrap();
    let execute = |text: &str, values: &[i64]| {
        run(&first.processor, text, values, Consistency::QUORUM).unwrap();
    };
    execute(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        &[],
    );
    execute(
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, v bigint, more bigint)",
        &[],
    );
    execute("CREATE TABLE ks.emptied (k bigint PRIMARY KEY, v bigint)", &[]);
    for key in 0..20 {
        execute(
            "UPDATE ks.t SET v = 1, more = 2 WHERE k = ? IF more = null",
            &[key],
        );
        execute("INSERT INTO ks.emptied (k, v) VALUES (?, 1)", &[key]);
    }
    execute("ALTER TABLE ks.t DROP more", &[]);
    execute("TRUNCATE ks.emptied", &[]);
    let expected: Vec<_> = (0..20).map(|key| vec![Some(key), Some(1)]).collect();
    assert_eq!(own_rows(&first, "t"), expected);
    drop(first);
    let disks = [0, 1].map(|place| world.lose(place, CrashRule::KeepAll).unwrap());
    assert_eq!(world.logs.start(0), 0);
    thread::scope(|scope| {
        let joining = scope.spawn(|| world.start(2, MemEnv::new(60)));
        // Heartbeats, until the others are thought to be down for long.
        let end = world.logs.end(META_TABLET);
        wait("the meta log does not go on", || {
            world.logs.end(META_TABLET) > end + 40
        });
        for (place, disk) in disks.into_iter().enumerate() {
            world.start_again(place, disk).unwrap();
        }
        joining.join().unwrap();
    });
    let joined = world.at(2).unwrap();
    joined.member.catch_up(PATIENCE).unwrap();
    assert_eq!(own_rows(&joined, "t"), expected);
    assert_eq!(own_rows(&joined, "emptied"), Vec::<Vec<Option<i64>>>::new());
}
