//! Replicas that are late: levels with a barrier see every acknowledged write, others may not.

use ilion_coordinator::testing::Shape;
use ilion_coordinator::{BarrierError, ReadOptions};
use ilion_env::parking::{self, Attempt, Given, Parks};
use ilion_query::{Consistency, Error, QueryProcessor};
use ilion_rows::random::Dice;

use crate::world::{Answered, How, World, run};

fn at(level: Consistency) -> How {
    How {
        level,
        ..How::default()
    }
}

/// Writes one of five rows, each time through another node. Returns how.
fn write(world: &World, round: i64) -> How {
    let how = How {
        timestamp_micros: 10 + round,
        ..How::default()
    };
    let text = format!("INSERT INTO ks.t (k, v) VALUES ({}, {round})", round % 5);
    world.write(round as usize % 3, &text, &how);
    how
}

/// Executes a statement as the server does: it is parked while it waits for a barrier. Returns how often it was parked, too.
fn run_parked(processor: &QueryProcessor, text: &str, how: &How) -> (Result<Answered, Error>, usize) {
    let (mut given, mut parked) = (Given::default(), 0);
    loop {
        match parking::attempt(given, Parks::Events, || run(processor, text, how)) {
            Attempt::Done(answered) => return (answered, parked),
            Attempt::WaitsFor(event) => {
                parked += 1;
                given = event.wait();
            }
            Attempt::Waits(read) => panic!("{read:?} was to be read without waiting"),
        }
    }
}

fn world(lateness: Option<u64>) -> World {
    let mut shape = Shape::random(&mut Dice::new(3), 3, 3);
    shape.lateness = lateness;
    let world = World::new(&shape, ReadOptions::default());
    world.write(0, "CREATE TABLE ks.t (k int PRIMARY KEY, v int)", &How::default());
    world
}

#[test]
fn quorum_sees_what_was_acknowledged_before_and_one_may_not() {
    let world = world(Some(5));
    let barriers = [
        Consistency::QUORUM,
        Consistency::ALL,
        Consistency::LOCAL_QUORUM,
        Consistency(7),
        Consistency::SERIAL,
        Consistency::LOCAL_SERIAL,
    ];
    let mut stale = 0;
    for round in 0..60 {
        let how = write(&world, round);
        for (text, reader) in [
            (format!("SELECT * FROM ks.t WHERE k = {}", round % 5), round + 1),
            ("SELECT * FROM ks.t".to_owned(), round + 2),
        ] {
            let coordinator = &world.coordinators[reader as usize % 3];
            let expected = run(&world.single, &text, &how);
            let nearest = run(coordinator, &text, &at(Consistency::ONE));
            stale += u32::from(nearest != expected);
            let level = barriers[round as usize % barriers.len()];
            assert_eq!(
                run(coordinator, &text, &at(level)),
                expected,
                "round {round}, {level}, {text}"
            );
        }
    }
    assert!(stale > 10, "replicas were late: {stale} stale reads at ONE");
}

#[test]
fn a_read_of_a_partition_costs_one_no_op_and_one_of_the_nearest_replica_none() {
    let world = world(None);
    let cost = |level, text| {
        let before = world.cluster.barriers();
        run(&world.coordinators[0], text, &at(level)).unwrap();
        world.cluster.barriers() - before
    };
    let by_key = "SELECT * FROM ks.t WHERE k = 1";
    assert_eq!(cost(Consistency::QUORUM, by_key), 1);
    for level in [Consistency::ONE, Consistency::LOCAL_ONE, Consistency(2)] {
        assert_eq!(cost(level, by_key), 0, "{level}");
        assert_eq!(cost(level, "SELECT * FROM ks.t"), 0, "{level}");
    }
    assert_eq!(cost(Consistency(3), by_key), 1, "THREE is all replicas");
    let tablets = u64::from(world.cluster.topology().tablets().count());
    assert_eq!(cost(Consistency::QUORUM, "SELECT * FROM ks.t"), tablets);
}

#[test]
fn a_range_read_that_ends_early_costs_few_no_ops() {
    let world = world(None);
    for key in 0..200 {
        world.write(
            0,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 1)"),
            &How::default(),
        );
    }
    let before = world.cluster.barriers();
    run(
        &world.coordinators[0],
        "SELECT * FROM ks.t LIMIT 3",
        &at(Consistency::QUORUM),
    )
    .unwrap();
    let raised = world.cluster.barriers() - before;
    assert!((1..=4).contains(&raised), "{raised} no-ops for three rows");
}

#[test]
fn without_a_log_barriers_fail_and_reads_at_one_go_on() {
    let world = world(None);
    let ask = |level, text| run(&world.coordinators[1], text, &at(level)).map(|_| ());
    for text in ["SELECT * FROM ks.t WHERE k = 1", "SELECT * FROM ks.t"] {
        world.cluster.break_log(Some(BarrierError::TimedOut));
        let timed_out = ask(Consistency::QUORUM, text);
        assert!(
            matches!(timed_out, Err(Error::ReadTimeout { .. })),
            "{timed_out:?}"
        );
        let reason = "the log has no leader".to_owned();
        world.cluster.break_log(Some(BarrierError::Unavailable(reason)));
        let unavailable = Error::Unavailable {
            consistency: Consistency::QUORUM,
            required: 2,
            alive: 1,
        };
        assert_eq!(ask(Consistency::QUORUM, text), Err(unavailable));
        assert_eq!(ask(Consistency::ONE, text), Ok(()));
    }
}

#[test]
fn a_read_that_is_parked_for_its_barrier_answers_as_one_that_waits() {
    let world = world(Some(5));
    let mut parked = 0;
    for round in 0..60 {
        let how = write(&world, round);
        let coordinator = &world.coordinators[round as usize % 2];
        let text = format!("SELECT * FROM ks.t WHERE k = {}", round % 5);
        let (answered, times) = run_parked(coordinator, &text, &at(Consistency::QUORUM));
        assert_eq!(answered, run(&world.single, &text, &how), "round {round}");
        parked += times;
        let one = run_parked(coordinator, &text, &at(Consistency::ONE));
        assert_eq!(one.1, 0, "there is no barrier");
    }
    assert_eq!(parked, 60, "each read was parked once");
    let scan = run_parked(
        &world.coordinators[0],
        "SELECT * FROM ks.t",
        &at(Consistency::QUORUM),
    );
    assert_eq!(scan.1, 0, "a scan waits on its thread");
}

#[test]
fn a_parked_read_fails_as_one_that_waits() {
    let world = world(None);
    let text = "SELECT * FROM ks.t WHERE k = 1";
    let coordinator = &world.coordinators[1];
    let how = at(Consistency::QUORUM);
    let reason = "the log has no leader".to_owned();
    for broken in [BarrierError::TimedOut, BarrierError::Unavailable(reason)] {
        world.cluster.break_log(Some(broken));
        let (answered, parked) = run_parked(coordinator, text, &how);
        assert_eq!(parked, 1);
        assert!(answered.is_err());
        assert_eq!(answered, run(coordinator, text, &how));
    }
    world.cluster.break_log(None);
    for left in 1..=3 {
        world.cluster.leave_tablets(left);
        let (answered, _) = run_parked(coordinator, text, &how);
        assert_eq!(answered, run(coordinator, text, &how), "{left} have left");
        assert_eq!(answered.is_err(), left == 3);
    }
}

#[test]
fn a_condition_is_decided_on_every_acknowledged_write() {
    let world = world(Some(11));
    world.write(0, "INSERT INTO ks.t (k, v) VALUES (1, 0)", &How::default());
    for round in 0..30 {
        let text = format!("UPDATE ks.t SET v = {} WHERE k = 1 IF v = {round}", round + 1);
        let at = (round as usize * 7) % 3;
        let how = How::default();
        let outcome = run(&world.coordinators[at], &text, &how).unwrap();
        assert_eq!(outcome.pages[0].cells, [0, 0, 0, 1, 1], "round {round}: applied");
    }
}

#[test]
fn a_node_that_does_not_follow_its_tablets_any_more_asks_others() {
    let world = world(None);
    for statement in [
        "CREATE TABLE ks.p (k int PRIMARY KEY, v int, p vector<float, 2>)",
        "CREATE INDEX ON ks.p (v)",
        "CREATE CUSTOM INDEX ON ks.p (p) USING 'StorageAttachedIndex'",
    ] {
        world.write(0, statement, &How::default());
    }
    for key in 0..30 {
        let text = format!(
            "INSERT INTO ks.p (k, v, p) VALUES ({key}, {}, [{key}, 1])",
            key % 3
        );
        world.write(0, &text, &How::default());
    }
    world.wait_built();
    let texts = [
        "SELECT * FROM ks.p WHERE k = 7",
        "SELECT * FROM ks.p",
        "SELECT * FROM ks.p WHERE v = 1",
        "SELECT k FROM ks.p ORDER BY p ANN OF [3, 1] LIMIT 4",
    ];
    let how = at(Consistency::QUORUM);
    for left in 1..=3 {
        world.cluster.leave_tablets(left);
        for text in texts {
            let answered = run(&world.coordinators[0], text, &how);
            match left {
                3 => assert!(
                    matches!(answered, Err(Error::Unavailable { .. })),
                    "{text}: {answered:?}"
                ),
                _ => assert_eq!(
                    answered,
                    run(&world.single, text, &how),
                    "{left} have left: {text}"
                ),
            }
        }
    }
}
