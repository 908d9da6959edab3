//! The answers and states of a run without an attack.

use std::ops::RangeInclusive;

use ilion_env::MemEnv;

use crate::node::Node;
use crate::workload::{QUERIES, Step, steps};

pub struct Reference {
    pub steps: Vec<Step>,
    /// The answer of each step.
    pub answers: Vec<String>,
    /// The state before the first step and after each step.
    pub states: Vec<Vec<String>>,
}

impl Reference {
    pub fn of(seed: u64, count: u64) -> Self {
        let steps = steps(seed, count);
        let mut node = Node::open(MemEnv::new(seed).shared()).unwrap();
        let mut states = vec![node.state()];
        let mut answers = Vec::new();
        for step in &steps {
            answers.push(node.step(step));
            states.push(node.state());
        }
        Self {
            steps,
            answers,
            states,
        }
    }

    /// Fails unless the state is that after one of these numbers of steps.
    pub fn check(&self, state: &[String], done: RangeInclusive<usize>, trial: &str) {
        if self.states[done.clone()].iter().any(|allowed| allowed == state) {
            return;
        }
        let (query, shown, allowed) = self.first_difference(state, *done.start());
        panic!(
            "{trial}: after {done:?} steps, the last {:?}\n{query}\nshows\n{shown}\ninstead of\n{allowed}",
            self.steps[..(*done.end()).min(self.steps.len())].last()
        );
    }

    fn first_difference<'r>(&'r self, state: &'r [String], done: usize) -> (&'r str, &'r str, &'r str) {
        let differs = state
            .iter()
            .zip(&self.states[done])
            .position(|(shown, allowed)| shown != allowed)
            .unwrap_or(0);
        (QUERIES[differs], &state[differs], &self.states[done][differs])
    }
}
