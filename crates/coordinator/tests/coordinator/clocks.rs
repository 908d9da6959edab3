//! Clocks that differ: replicas read for a coordinator whose clock is ahead.

use ilion_coordinator::ReadOptions;
use ilion_coordinator::testing::Shape;
use ilion_query::Consistency;
use ilion_rows::random::Dice;

use crate::world::{How, NOW_SECS, World, run};

#[test]
fn a_row_lives_by_its_older_insert_when_newer_values_have_expired_for_the_coordinator() {
    let world = World::new(&Shape::random(&mut Dice::new(1), 3, 1), ReadOptions::default());
    world.write(
        0,
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b int)",
        &How::default(),
    );
    let at = |timestamp_micros| How {
        timestamp_micros,
        ..How::default()
    };
    for key in 0..20 {
        world.write(0, &format!("INSERT INTO ks.t (k, b) VALUES ({key}, 1)"), &at(1));
    }
    world.flush();
    for key in 0..20 {
        world.write(
            0,
            &format!("UPDATE ks.t USING TTL 10 SET a = 5 WHERE k = {key}"),
            &at(2),
        );
    }
    world.flush();
    // The clocks of the replicas stand at `NOW_SECS`.
    let ahead = How {
        now_secs: NOW_SECS + 60,
        level: Consistency::QUORUM,
        ..How::default()
    };
    for key in 0..20 {
        let text = format!("SELECT a FROM ks.t WHERE k = {key}");
        for coordinator in &world.coordinators {
            let answered = run(coordinator, &text, &ahead).unwrap();
            assert_eq!(answered, run(&world.single, &text, &ahead).unwrap(), "{text}");
            assert_eq!(answered.rows(), 1, "{text}");
        }
    }
}
