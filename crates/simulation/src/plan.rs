//! [`Plan`]: what a run of members is: its seed, its length, and the faults that may happen in it. [`shrink`] finds a shorter run that
//! breaks the same law.

use std::collections::BTreeSet;
use std::fmt;

use ilion_histories::Violation;

/// Steps of a run.
pub const STEPS: u64 = 1100;
/// Shorter runs are not looked for.
const STEPS_MIN: u64 = 10;

/// Kinds of faults and events. A plan may leave them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Logs lose requests and answers.
    Loss,
    /// Logs append a record again, up to a second later.
    Repeat,
    /// Requests of nodes arrive late at the logs, answers of logs at the nodes, and new records at those that read a log.
    Lateness,
    /// The leader of a log is cut off, and some nodes do not notice.
    Isolation,
    /// Logs delete records that a node has not read which is down.
    Retention,
    /// A node loses its power, at any sync or between two steps.
    PowerLoss,
    /// A node that has lost its power stays down for a while.
    Outage,
    /// A disk is full for a while.
    FullDisk,
    /// The clocks of nodes differ by up to an hour.
    Clocks,
    /// In half of the runs, nodes begin with an older feature level, and are upgraded when they start again.
    OldLevel,
    /// Nodes join, leave, lose their disk, and are replaced.
    Ring,
    /// Clients change the schema.
    Schema,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Loss,
        Self::Repeat,
        Self::Lateness,
        Self::Isolation,
        Self::Retention,
        Self::PowerLoss,
        Self::Outage,
        Self::FullDisk,
        Self::Clocks,
        Self::OldLevel,
        Self::Ring,
        Self::Schema,
    ];

    /// The fault of this name, as [`Plan`] prints it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| format!("{fault:?}") == name)
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything else.
    pub seed: u64,
    /// Steps with faults; afterwards the cluster comes to rest.
    pub steps: u64,
    /// What does not happen.
    pub without: BTreeSet<Fault>,
}

impl Plan {
    /// The usual run of a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            steps: STEPS,
            without: BTreeSet::new(),
        }
    }

    /// Whether this may happen.
    pub fn has(&self, fault: Fault) -> bool {
        !self.without.contains(&fault)
    }

    /// Simpler plans, the simplest ones first.
    fn simpler(&self) -> Vec<Self> {
        let shorter = [
            self.steps / 4,
            self.steps / 2,
            self.steps * 3 / 4,
            self.steps * 9 / 10,
        ]
        .into_iter()
        .filter(|steps| *steps >= STEPS_MIN && *steps < self.steps)
        .map(|steps| Self {
            steps,
            ..self.clone()
        });
        let present = Fault::ALL.into_iter().filter(|fault| self.has(*fault));
        let fewer = present.map(|fault| {
            let mut plan = self.clone();
            plan.without.insert(fault);
            plan
        });
        shorter.chain(fewer).collect()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SEED={} STEPS={}", self.seed, self.steps)?;
        if !self.without.is_empty() {
            let names = self.without.iter().map(|fault| format!("{fault:?}"));
            write!(f, " WITHOUT={}", names.collect::<Vec<String>>().join(","))?;
        }
        Ok(())
    }
}

/// The law that a violation names: its first word.
fn law(violation: &Violation) -> &str {
    let mut words = violation.0.split(|letter: char| !letter.is_alphabetic());
    words.next().unwrap_or_default()
}

/// The simplest plan that breaks the same law as this one, as far as steps in one direction lead. `run` is called at most `runs_max` times.
pub fn shrink(
    plan: Plan,
    violation: Violation,
    runs_max: usize,
    run: impl Fn(&Plan) -> Result<(), Violation>,
) -> (Plan, Violation) {
    let (mut found, mut left) = ((plan, violation), runs_max);
    'simpler: loop {
        for plan in found.0.simpler() {
            if left == 0 {
                return found;
            }
            left -= 1;
            match run(&plan) {
                Err(violation) if law(&violation) == law(&found.1) => {
                    found = (plan, violation);
                    continue 'simpler;
                }
                _ => {}
            }
        }
        return found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_shrinks_to_what_the_law_needs() {
        // Breaks "a" from step 100 on if power can be lost, else "b".
        let run = |plan: &Plan| match plan.has(Fault::PowerLoss) {
            true if plan.steps < 100 => Ok(()),
            true => Err(Violation(format!("a: {} steps", plan.steps))),
            false => Err(Violation("b: always".to_owned())),
        };
        let plan = Plan::of(3);
        let violation = run(&plan).unwrap_err();
        let (plan, violation) = shrink(plan, violation, 1000, run);
        assert!((100..112).contains(&plan.steps), "{plan}");
        assert_eq!(law(&violation), "a");
        let present: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| plan.has(*fault)).collect();
        assert_eq!(present, [Fault::PowerLoss]);
        assert!(plan.to_string().starts_with("SEED=3 STEPS=1"), "{plan}");
        let (same, _) = shrink(Plan::of(3), Violation("a: 1100 steps".to_owned()), 0, run);
        assert_eq!(same, Plan::of(3));
    }
}
