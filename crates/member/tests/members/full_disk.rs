//! A member whose disk is full applies no records. Clients that ask it get their answers from the other replicas.

use ilion_env::{CrashRule, MemEnv};
use ilion_query::Consistency;

use crate::world::{Running, World, run, wait};

const TABLETS: u32 = 4;
const KEYS: i64 = 64;
const TEXT_BYTES: usize = 8 << 10;

/// Whether a member has applied the logs of all tablets, or has copied those that were trimmed meanwhile.
fn is_ready(node: &Running) -> bool {
    let tablets = node.member.facts().tablets;
    tablets.len() == TABLETS as usize && tablets.iter().all(|tablet| tablet.is_ready)
}

fn write(node: &Running, from: i64, count: i64) {
    for number in from..from + count {
        let insert = format!(
            "INSERT INTO ks.cells (k, c, v, w) VALUES (?, ?, ?, '{}')",
            "w".repeat(TEXT_BYTES)
        );
        let values = [number % KEYS, number, number];
        run(&node.processor, &insert, &values, Consistency::QUORUM).unwrap();
    }
}

fn count(node: &Running, level: Consistency) -> i64 {
    let rows = run(&node.processor, "SELECT count(*) FROM ks.cells", &[], level).unwrap();
    rows[0][0].unwrap()
}

#[test]
fn a_member_with_a_full_disk_answers_by_others_and_applies_later_what_it_lacks() {
    let mut world = World::with_room(2, 3, TABLETS);
    // Its memtables are soon full.
    world.memtable_bytes = 256 << 10;
    world.start(2, MemEnv::new(9));
    let (first, full) = (world.at(0).unwrap(), world.at(2).unwrap());
    let statements = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE ks.cells (k bigint, c bigint, v bigint, w text, PRIMARY KEY (k, c))",
    ];
    for statement in statements {
        run(&first.processor, statement, &[], Consistency::ONE).unwrap();
    }
    write(&first, 0, 10);
    wait("the third member is not ready", || is_ready(&full));
    full.env.set_capacity_bytes(0);
    let mut written = 10;
    wait("the full disk is not noticed", || {
        write(&first, written, 10);
        written += 10;
        !is_ready(&full)
    });
    // All that clients ask the full member for.
    write(&full, written, 10);
    written += 10;
    let condition = "UPDATE ks.cells SET v = 7 WHERE k = 0 AND c = 0 IF v = 0";
    let applied = run(&full.processor, condition, &[], Consistency::QUORUM).unwrap();
    assert_eq!(applied, [[Some(1)]]);
    for level in [Consistency::ONE, Consistency::QUORUM] {
        assert_eq!(count(&full, level), written, "at {level:?}");
    }
    full.env.set_capacity_bytes(u64::MAX);
    wait("the member does not catch up", || is_ready(&full));
    let local = run(
        &full.local,
        "SELECT count(*) FROM ks.cells",
        &[],
        Consistency::ONE,
    )
    .unwrap();
    assert_eq!(local, [[Some(written)]]);
    drop(full);
    world.crash(2, CrashRule::LoseUnsynced);
    assert_eq!(count(&world.at(2).unwrap(), Consistency::QUORUM), written);
}
