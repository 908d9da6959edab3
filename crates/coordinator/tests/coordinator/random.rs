//! The cluster answers as a node with all data does.

use ilion_coordinator::testing::Shape;
use ilion_coordinator::{PageSize, ReadOptions};
use ilion_query::Consistency;
use ilion_rows::random::Dice;

use crate::statements::Table;
use crate::world::{How, NOW_SECS, World, run};

/// Options with pages of any size, tiny ones too.
pub fn random_options(dice: &mut Dice) -> ReadOptions {
    let mut page = |rows: usize, bytes: usize| PageSize {
        rows: 1 + dice.below(rows) as u32,
        bytes: 1 + dice.below(bytes) as u32,
    };
    let default = ReadOptions::default();
    let tiny = ReadOptions {
        page_first: page(4, 2000),
        page_max: page(20, 20_000),
        ranges_max: 1 + dice.below(5),
        ..default
    };
    match dice.one_in(4) {
        true => default,
        false => tiny,
    }
}

pub fn random_how(dice: &mut Dice) -> How {
    How {
        level: *dice.pick(&[Consistency::QUORUM, Consistency::ALL, Consistency::SERIAL]),
        page_size: dice
            .pick(&[None, Some(1), Some(2), Some(3), Some(7), Some(100)])
            .to_owned(),
        timestamp_micros: 1 + dice.below(40) as i64,
        now_secs: NOW_SECS + *dice.pick(&[0, 0, 50, 200]),
    }
}

/// What the SELECTs of some histories gave.
#[derive(Debug, Default)]
struct Tally {
    refused: u32,
    empty: u32,
    pages: usize,
    rows: u32,
}

fn history(seed: u64, tally: &mut Tally) {
    let mut dice = Dice::new(seed);
    let factor = 1 + dice.below(3) as u32;
    let mut shape = Shape::random(&mut dice, 3, factor);
    let is_late = dice.one_in(2);
    shape.lateness = is_late.then(|| dice.next_u64());
    let options = random_options(&mut dice);
    let world = World::new(&shape, options);
    let mut table = Table::random(&mut dice);
    world.write(0, &table.create, &How::default());
    for index in &table.indexes {
        world.write(0, index, &How::default());
    }
    world.wait_built();
    for _ in 0..4 {
        if dice.one_in(2) {
            world.write(dice.below(3), &table.alter(), &How::default());
        }
        for _ in 0..50 {
            let how = How {
                now_secs: NOW_SECS,
                ..random_how(&mut dice)
            };
            world.write(dice.below(3), &table.write(&mut dice), &how);
            if dice.one_in(25) {
                world.move_data(&mut dice);
            }
        }
        for _ in 0..30 {
            let text = table.select(&mut dice);
            let mut how = random_how(&mut dice);
            if !is_late && dice.one_in(2) {
                how.level = *dice.pick(&[Consistency::ONE, Consistency::LOCAL_ONE]);
            }
            let expected = run(&world.single, &text, &how);
            match &expected {
                Err(_) => tally.refused += 1,
                Ok(answered) => {
                    tally.empty += u32::from(answered.rows() == 0);
                    tally.rows += answered.rows();
                    tally.pages += answered.pages.len();
                }
            }
            for (at, coordinator) in world.coordinators.iter().enumerate() {
                let answered = run(coordinator, &text, &how);
                assert_eq!(
                    answered,
                    expected,
                    "seed {seed}, node {}, replicas {factor}, {how:?}, {options:?}\n{}\n{:?}\n{text}",
                    at + 1,
                    table.create,
                    table.indexes
                );
            }
        }
    }
}

#[test]
fn any_select_is_answered_as_by_a_node_with_all_data() {
    let mut tally = Tally::default();
    let count = histories();
    let first = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(0);
    for seed in first..first + count {
        history(seed, &mut tally);
    }
    println!("{count} histories: {tally:?}");
    let asked = u32::try_from(count).unwrap() * 120;
    assert!(tally.refused < asked / 2 && tally.empty < asked / 2, "{tally:?}");
    assert!(tally.rows > asked && tally.pages > asked as usize, "{tally:?}");
}

/// Number of histories: `HISTORIES` in the environment, or a few.
pub fn histories() -> u64 {
    let asked = std::env::var("HISTORIES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(12)
}
