//! Attacks on a node with its disk in memory: CQL on the engine, and a law for each attack.
//!
//! | attack | law |
//! | --- | --- |
//! | `crash` | after a power loss at any sync or rename, the node shows all acknowledged statements, and maybe the one in progress |
//! | `disk` | while the disk fails or is full, answers are right or errors; then as after a power loss |
//! | `shortage` | while something is used up, answers are right or errors; then the node continues without a restart |
//! | `clock` | a clock that steps changes no answer |
//!
//! Statements are generated from a seed. `ILION_CAMPAIGN_TRIALS` is the number of trials (default: a few),
//! `ILION_CAMPAIGN_SEED` the first seed. Each attack prints a line that `scripts/campaign` collects.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod clock;
mod crash;
mod disk;
mod node;
#[path = "../query/print.rs"]
#[allow(dead_code, reason = "the other tests print more")]
mod print;
mod random;
mod reference;
mod shortage;
mod workload;

use std::fmt::Display;

/// The number of trials; `few` is the default.
fn trials(few: u64) -> u64 {
    std::env::var("ILION_CAMPAIGN_TRIALS").map_or(few, |trials| trials.parse().unwrap())
}

fn first_seed() -> u64 {
    std::env::var("ILION_CAMPAIGN_SEED").map_or(1, |seed| seed.parse().unwrap())
}

fn tell(attack: &str, trials: u64, outcome: impl Display) {
    println!("campaign | {attack} | {trials} | {outcome}");
}
