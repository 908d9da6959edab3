//! Replicas that fail at random: an answer is right, or it is an error. It is never short.

use std::sync::Arc;

use ilion_coordinator::testing::Shape;
use ilion_query::Error;
use ilion_rows::random::Dice;
use parking_lot::Mutex;

use crate::client::{Failing, Garbling, Trouble, Troubles};
use crate::random::{histories, random_how, random_options};
use crate::statements::Table;
use crate::world::{How, NOW_SECS, World, run};

#[derive(Debug, Default)]
struct Tally {
    right: u32,
    errors: u32,
}

/// A world whose commands fail, with some random data.
fn troubled(dice: &mut Dice, factor: u32) -> (World, Troubles, Table) {
    let shape = Shape::random(dice, 3, factor);
    let troubles = Troubles::new(dice.next_u64(), 3);
    let world = World::with_client(&shape, random_options(dice), |client| {
        let troubles = troubles.clone();
        Arc::new(Failing { troubles, client })
    });
    let table = Table::random(dice);
    world.write(0, &table.create, &How::default());
    for index in &table.indexes {
        world.write(0, index, &How::default());
    }
    world.wait_built();
    for _ in 0..120 {
        let how = How {
            now_secs: NOW_SECS,
            ..random_how(dice)
        };
        world.write(dice.below(3), &table.write(dice), &how);
    }
    (world, troubles, table)
}

fn check(seed: u64, world: &World, table: &Table, dice: &mut Dice, tally: &mut Tally) {
    let text = table.select(dice);
    let how = random_how(dice);
    let Ok(expected) = run(&world.single, &text, &how) else {
        return;
    };
    for (at, coordinator) in world.coordinators.iter().enumerate() {
        match run(coordinator, &text, &how) {
            Ok(answered) => {
                assert_eq!(
                    answered,
                    expected,
                    "seed {seed}, node {}, {how:?}\n{}\n{text}",
                    at + 1,
                    table.create
                );
                tally.right += 1;
            }
            Err(Error::Unavailable { .. } | Error::ReadTimeout { .. } | Error::ReadFailure { .. }) => {
                tally.errors += 1;
            }
            Err(other) => panic!("seed {seed}: {text}: {other:?}"),
        }
    }
}

#[test]
fn an_answer_is_right_or_an_error_and_never_short() {
    let mut tally = Tally::default();
    for seed in 0..histories() {
        let mut dice = Dice::new(1000 + seed);
        let factor = 1 + dice.below(3) as u32;
        let (world, troubles, table) = troubled(&mut dice, factor);
        for node in 1..=3 {
            troubles.set(node, Trouble::OneIn(2 + dice.below(6)));
        }
        for _ in 0..40 {
            check(seed, &world, &table, &mut dice, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.right > 100 && tally.errors > 50, "{tally:?}");
}

#[test]
fn the_loss_of_one_replica_of_three_costs_no_answer() {
    let mut tally = Tally::default();
    for seed in 0..histories() / 2 {
        let mut dice = Dice::new(2000 + seed);
        let (world, troubles, table) = troubled(&mut dice, 3);
        // The node reads nothing of its own, so that it always asks others.
        let lost = 1 + dice.below(3) as u32;
        world.cluster.set_ready(lost, false);
        troubles.set(1 + lost % 3, Trouble::Always);
        for _ in 0..30 {
            check(seed, &world, &table, &mut dice, &mut tally);
        }
    }
    println!("{tally:?}");
    assert_eq!(tally.errors, 0, "{tally:?}");
    assert!(tally.right > 100, "{tally:?}");
}

/// Values may be wrong then, since the transport has the checksums. But a read ends, without a panic.
#[test]
fn answers_whose_bytes_were_changed_end_a_read_or_not_but_never_the_process() {
    let (mut answered, mut refused) = (0, 0);
    for seed in 0..histories() / 2 {
        let mut dice = Dice::new(3000 + seed);
        let shape = Shape::random(&mut dice, 3, 2);
        let garbled = Arc::new(Mutex::new(Dice::new(seed)));
        let world = World::with_client(&shape, random_options(&mut dice), |client| {
            let dice = garbled.clone();
            Arc::new(Garbling { dice, client })
        });
        let table = Table::random(&mut dice);
        for text in [&table.create].into_iter().chain(&table.indexes) {
            world.write(0, text, &How::default());
        }
        world.wait_built();
        for _ in 0..80 {
            let how = How {
                now_secs: NOW_SECS,
                ..random_how(&mut dice)
            };
            world.write(dice.below(3), &table.write(&mut dice), &how);
        }
        for _ in 0..30 {
            let text = table.select(&mut dice);
            // All at once: a paging state goes to the client and comes back.
            let how = How {
                page_size: None,
                ..random_how(&mut dice)
            };
            match run(&world.coordinators[0], &text, &how) {
                Ok(_) => answered += 1,
                Err(_) => refused += 1,
            }
        }
    }
    println!("{answered} answered, {refused} refused");
    assert!(answered > 20 && refused > 20);
}
