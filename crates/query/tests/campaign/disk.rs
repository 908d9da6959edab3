//! Disks that fail or are full: at the n-th call of a kind, from then on, or after a number of written bytes.

use std::sync::Arc;

use ilion_env::{FaultEnv, MemEnv};

use crate::node::Node;
use crate::random::Random;
use crate::reference::Reference;
use crate::{first_seed, tell, trials};

const STEPS: u64 = 30;
/// Trials for each run of statements.
const TRIALS_OF_RUN: u64 = 8;
const SHORT_TRIALS: u64 = 8;

const OPERATIONS: [&str; 11] = [
    "open", "create", "read", "write", "write", "sync", "sync_dir", "rename", "link", "remove", "any",
];
const PATTERNS: [&str; 9] = [
    "*",
    "*",
    "*.log",
    "*-Data.db",
    "*-Index.db",
    "*-Statistics.db",
    "*-TOC.txt",
    "*_txn_*",
    "*Index+*",
];

/// The outcome of a run.
struct Outcome {
    /// Number of steps that were answered as without a fault.
    answered: usize,
    /// True if the next step failed.
    has_failed: bool,
}

#[test]
fn a_disk_that_fails_gives_errors_and_takes_nothing_that_was_acknowledged() {
    let (failed, done) = each_trial(|reference, seed, random| {
        let effect = random.one_of(&["fail", "fail", "no_space", "short_write"]);
        let (operation, pattern) = (random.one_of(&OPERATIONS), random.one_of(&PATTERNS));
        let (when, n) = (random.one_of(&["at", "from"]), 1 + random.below(80));
        let rule = format!("{effect} {operation} \"{pattern}\" {when} {n}");
        let trial = format!("seed {seed}, {rule}");
        let env = MemEnv::new(seed);
        let faulty = FaultEnv::new(env.shared());
        faulty.add(&rule).unwrap();
        let outcome = run(reference, faulty.clone(), &trial);
        faulty.clear();
        check(reference, &env, &outcome, &trial);
        outcome.has_failed
    });
    tell(
        "failing disk",
        done,
        format!("{failed} ended with an error, nothing acknowledged is lost"),
    );
}

#[test]
fn a_full_disk_gives_errors_and_takes_nothing_that_was_acknowledged() {
    let (failed, done) = each_trial(|reference, seed, random| {
        let room = 1 + random.below(2 << 20);
        let trial = format!("seed {seed}, a disk of {room} bytes");
        let env = MemEnv::new(seed);
        env.set_capacity_bytes(room);
        let outcome = run(reference, env.shared(), &trial);
        env.set_capacity_bytes(u64::MAX);
        check(reference, &env, &outcome, &trial);
        outcome.has_failed
    });
    tell(
        "full disk",
        done,
        format!("{failed} ended with an error, nothing acknowledged is lost"),
    );
}

/// Returns the number of trials that met their fault, and of all trials.
fn each_trial(trial: impl Fn(&Reference, u64, &mut Random) -> bool) -> (u64, u64) {
    let wanted = trials(SHORT_TRIALS);
    let (mut failed, mut done, mut seed) = (0, 0, first_seed());
    while done < wanted {
        let reference = Reference::of(seed, STEPS);
        let mut random = Random::new(seed.wrapping_mul(77));
        for _ in 0..TRIALS_OF_RUN.min(wanted - done) {
            failed += u64::from(trial(&reference, seed, &mut random));
            done += 1;
        }
        seed += 1;
    }
    (failed, done)
}

/// Runs steps until one fails.
fn run(reference: &Reference, env: Arc<dyn ilion_env::Env>, trial: &str) -> Outcome {
    let Ok(mut node) = Node::open(env) else {
        return Outcome {
            answered: 0,
            has_failed: true,
        };
    };
    for (answered, step) in reference.steps.iter().enumerate() {
        let answer = node.step(step);
        let is_as_expected = answer == reference.answers[answered];
        if !is_as_expected {
            assert!(answer.contains("error"), "{trial}: {step:?} answers {answer}");
            return Outcome {
                answered,
                has_failed: true,
            };
        }
        let shown = node.state().into_iter().zip(&reference.states[answered + 1]);
        for (shown, right) in shown {
            let is_error = shown.starts_with("error");
            assert!(
                is_error || shown == *right,
                "{trial}: after {step:?}\n{shown}\ninstead of\n{right}"
            );
        }
    }
    Outcome {
        answered: reference.steps.len(),
        has_failed: false,
    }
}

fn check(reference: &Reference, env: &MemEnv, outcome: &Outcome, trial: &str) {
    let node = Node::open(env.shared()).unwrap_or_else(|error| panic!("{trial}: afterwards {error}"));
    let last = outcome.answered + usize::from(outcome.has_failed);
    let last = last.min(reference.steps.len());
    reference.check(&node.state(), outcome.answered..=last, trial);
}
