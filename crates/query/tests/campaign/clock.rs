//! A clock that steps forwards and backwards, while a node runs and between its runs.

use ilion_env::{CrashRule, Env, MemEnv};

use crate::node::Node;
use crate::random::Random;
use crate::reference::Reference;
use crate::{first_seed, tell, trials};

const STEPS: u64 = 40;
const SHORT_TRIALS: u64 = 1;
const DAY_MICROS: i64 = 86_400_000_000;

#[test]
fn a_clock_that_steps_changes_no_answer() {
    let first = first_seed();
    let wanted = trials(SHORT_TRIALS);
    for seed in first..first + wanted {
        let reference = Reference::of(seed, STEPS);
        let mut env = MemEnv::new(seed);
        let mut node = Node::open(env.shared()).unwrap();
        let mut random = Random::new(seed);
        for (index, step) in reference.steps.iter().enumerate() {
            if random.one_in(4) {
                let by = i64::try_from(random.below(2 * DAY_MICROS.unsigned_abs())).unwrap() - DAY_MICROS;
                env.advance_micros(by);
                if random.one_in(2) {
                    // A new process, which has no earlier time except that on the disk.
                    node.settle();
                    drop(node);
                    env = env.crash(CrashRule::KeepAll);
                    node = Node::open(env.shared()).unwrap();
                }
            }
            let answer = node.step(step);
            assert_eq!(
                answer,
                reference.answers[index],
                "seed {seed}, at {} us: {step:?}",
                env.now_micros()
            );
            reference.check(&node.state(), index + 1..=index + 1, &format!("seed {seed}"));
        }
    }
    tell("clock steps", wanted, "no answer changed");
}
