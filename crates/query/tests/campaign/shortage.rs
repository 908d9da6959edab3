//! Something is used up for a while: file descriptors, memory, space on the disk. Afterwards the node continues without a
//! restart.

use std::time::{Duration, Instant};

use ilion_env::{FaultEnv, MemEnv};

use crate::node::Node;
use crate::random::Random;
use crate::reference::Reference;
use crate::workload::Step;
use crate::{first_seed, tell, trials};

const STEPS: u64 = 30;
/// Trials for each run of statements.
const TRIALS_OF_RUN: u64 = 4;
const SHORT_TRIALS: u64 = 6;
/// A shortage starts before one in this many steps.
const SHARE: u64 = 8;
/// Far longer than the node needs to retry what failed.
const PATIENCE: Duration = Duration::from_secs(60);

const PATTERNS: [&str; 9] = [
    "*",
    "*",
    "*.log",
    "*-Data.db",
    "*-Statistics.db",
    "*-TOC.txt",
    "*_txn_*",
    "*Index+*",
    "ilion.*",
];

/// A shortage, with the calls that fail. No sync is among them, since a failed sync is final.
struct Shortage {
    name: &'static str,
    effects: &'static [&'static str],
    operations: &'static [&'static str],
}

#[test]
fn too_few_descriptors_for_a_while_cost_errors_and_no_restart() {
    each_trial(&Shortage {
        name: "too few descriptors for a while",
        effects: &["no_descriptors"],
        operations: &["open", "create", "list", "sync_dir", "any", "any"],
    });
}

#[test]
fn too_little_memory_for_a_while_costs_errors_and_no_restart() {
    each_trial(&Shortage {
        name: "too little memory for a while",
        effects: &["no_memory"],
        operations: &[
            "open",
            "create",
            "read",
            "write",
            "preallocate",
            "list",
            "link",
            "rename",
        ],
    });
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_errors_and_no_restart() {
    each_trial(&Shortage {
        name: "a disk that is full for a while",
        effects: &["no_space", "full_midway"],
        operations: &["write", "write", "create", "preallocate", "link", "rename"],
    });
}

fn each_trial(shortage: &Shortage) {
    let wanted = trials(SHORT_TRIALS);
    let (mut errors, mut done, mut seed) = (0, 0, first_seed());
    while done < wanted {
        let reference = Reference::of(seed, STEPS);
        let mut random = Random::new(seed.wrapping_mul(7919));
        for _ in 0..TRIALS_OF_RUN.min(wanted - done) {
            errors += run(shortage, &reference, seed, &mut random);
            done += 1;
        }
        seed += 1;
    }
    let outcome = format!("{errors} statements refused, nothing acknowledged is lost, no restart was needed");
    tell(shortage.name, done, outcome);
}

/// Returns the number of refused steps.
fn run(shortage: &Shortage, reference: &Reference, seed: u64, random: &mut Random) -> u64 {
    let env = MemEnv::new(seed);
    let faulty = FaultEnv::new(env.shared());
    let mut node = Node::open(faulty.clone()).unwrap();
    let mut trial = format!("seed {seed}");
    let (mut step, mut refused) = (0, 0);
    let mut is_short = false;
    while step < reference.steps.len() {
        if random.one_in(SHARE) {
            let rule = shortage.rule(random);
            faulty.add(&rule).unwrap();
            is_short = true;
            trial = format!("{trial}, {step}: {rule}");
        }
        let answer = node.step(&reference.steps[step]);
        if answer == reference.answers[step] {
            step += 1;
            check_shown(&node, reference, step, &trial);
            continue;
        }
        assert!(
            is_short && answer.contains("error"),
            "{trial}: with enough of everything: {is_short}, {step} {:?} answers {answer} instead of {}",
            reference.steps[step],
            reference.answers[step]
        );
        refused += 1;
        faulty.clear();
        is_short = false;
        if !node.is_running() {
            // A start failed.
            assert_eq!(node.step(&Step::Restart), "", "{trial}");
        }
        step = steps_done(&node, reference, step, &trial);
    }
    faulty.clear();
    for last in [Step::Flush, Step::Drain, Step::Restart] {
        let done = reference.steps.len();
        assert_eq!(steps_done(&node, reference, done, &trial), done);
        assert_eq!(node.step(&last), "", "{trial}: {last:?}");
    }
    reference.check(
        &node.state(),
        reference.steps.len()..=reference.steps.len(),
        &trial,
    );
    refused
}

impl Shortage {
    fn rule(&self, random: &mut Random) -> String {
        let (effect, operation) = (random.one_of(self.effects), random.one_of(self.operations));
        let (pattern, first) = (random.one_of(&PATTERNS), 1 + random.below(40));
        let last = first + random.below(60);
        format!("{effect} {operation} \"{pattern}\" from {first} to {last}")
    }
}

/// Checks that each answer is right or an error.
fn check_shown(node: &Node, reference: &Reference, done: usize, trial: &str) {
    for (shown, right) in node.state().into_iter().zip(&reference.states[done]) {
        assert!(
            shown.starts_with("error") || shown == *right,
            "{trial}: after {:?}\n{shown}\ninstead of\n{right}",
            reference.steps[done - 1]
        );
    }
}

/// The number of steps in the node's state after the shortage: those before the refused step, or one more.
fn steps_done(node: &Node, reference: &Reference, before: usize, trial: &str) -> usize {
    let last = (before + 1).min(reference.steps.len());
    let began = Instant::now();
    loop {
        let state = node.state();
        if let Some(done) = (before..=last).find(|done| reference.states[*done] == state) {
            return done;
        }
        // Indexes and views whose builds failed are built later.
        if began.elapsed() > PATIENCE {
            reference.check(&state, before..=last, &format!("{trial}, and long afterwards"));
        }
        std::thread::yield_now();
    }
}
