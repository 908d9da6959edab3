//! Tests of the law: whatever functions a body calls, it ends within its fuel and soon after its deadline.
//!
//! `ILION_CAMPAIGN_TRIALS` is the number of bodies, `ILION_CAMPAIGN_SEED` the first seed. If the number is given, the tests also
//! measure by how much calls exceed their deadlines; for this use a release build on an idle machine.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_types::CqlType;

use crate::fuel::{Limits, rungs, spent_of};
use crate::machine::Machine;
use crate::message::reason;

#[path = "../tests/bodies/mod.rs"]
mod bodies;

/// By how much a call on a thread of its own may exceed its deadline. Its caller does not wait for that.
const LATE_MAX: Duration = Duration::from_millis(100);

fn trials() -> Option<u64> {
    let trials = std::env::var("ILION_CAMPAIGN_TRIALS").ok()?;
    Some(trials.parse().unwrap())
}

fn seeds(trials: u64) -> Range<u64> {
    let first = std::env::var("ILION_CAMPAIGN_SEED").map_or(1, |seed| seed.parse().unwrap());
    first..first + trials
}

fn limits() -> Limits {
    Limits {
        instructions: 300_000,
        memory_bytes: 1 << 20,
        time: Duration::from_secs(3600),
    }
}

fn nested_lists() -> CqlType {
    (0..5).fold(CqlType::Text, |element, _| CqlType::List {
        element: Arc::new(element),
        frozen: true,
    })
}

/// Runs a body on a rung; returns its result and the largest number of steps that was paid for at once.
fn run(body: &str, rung: usize) -> (Result<usize, String>, u32) {
    let limits = limits();
    let rung = rungs(&limits)[rung];
    let mut machine = Machine::new(body, limits.memory_bytes).unwrap();
    let until = (Instant::now() + limits.time, limits.time);
    let result = machine.run(&[], &[], &nested_lists(), &rung, until);
    let result = match result {
        Ok(value) => Ok(value.map_or(0, |value| value.len())),
        Err(error) => Err(match spent_of(&error) {
            Some(spent) => spent.to_string(),
            None => reason(&error),
        }),
    };
    (result, machine.largest_payment())
}

#[test]
fn whatever_a_body_calls_ends_within_its_fuel_and_is_watched_on_the_way() {
    for seed in seeds(trials().unwrap_or(300)) {
        let body = bodies::body(&mut bodies::Chance::new(seed));
        for (index, rung) in rungs(&limits()).iter().enumerate() {
            let (result, largest) = run(&body, index);
            if let Ok(bytes) = &result {
                assert!(*bytes <= rung.memory_bytes, "seed {seed}: {bytes} bytes\n{body}");
            }
            if let Err(message) = &result {
                assert!(!message.contains("0x"), "seed {seed}: {message}\n{body}");
                assert!(!message.contains("library"), "seed {seed}: {message}\n{body}");
            }
            let largest_bytes = usize::try_from(largest).unwrap();
            assert!(
                largest_bytes <= rung.memory_bytes,
                "seed {seed}: {largest} steps were granted at once\n{body}"
            );
        }
    }
}

#[test]
fn no_call_outlives_its_deadline_by_more_than_a_tenth_of_a_second() {
    let Some(trials) = trials() else {
        return;
    };
    let (mut late, mut above, mut count) = ((Duration::ZERO, 0, 0), 0, 0);
    for seed in seeds(trials) {
        let mut chance = bodies::Chance::new(seed);
        let body = bodies::body(&mut chance);
        let time = Duration::from_millis([5, 50, 200][chance.below(3)]);
        for (index, rung) in rungs(&Limits::default()).iter().enumerate() {
            let mut machine = Machine::new(&body, rung.memory_bytes).unwrap();
            let started = Instant::now();
            let _ = machine.run(&[], &[], &nested_lists(), rung, (started + time, time));
            let over = started.elapsed().saturating_sub(time);
            late = late.max((over, seed, index));
            above += u32::from(over > LATE_MAX);
            count += 1;
        }
    }
    let (worst, seed, rung) = late;
    println!(
        "campaign | functions under deadlines | {count} | latest {} ms after its deadline (seed {seed}, rung {rung}), {above} above {} ms",
        worst.as_millis(),
        LATE_MAX.as_millis()
    );
    assert_eq!(above, 0, "calls outlived their deadline");
}
