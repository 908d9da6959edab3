//! Runs seeds for as long as asked, or as many as asked, and shrinks the first run that breaks a law:
//! `cargo run --release -p ilion-simulation -- simulate --minutes 10 [--from SEED] [--steps N] [--toys] [--whole]`.

use std::panic::catch_unwind;
use std::process::ExitCode;

use ilion_env::{Env as _, RealEnv};
use ilion_histories::Violation;
use ilion_simulation::{Plan, Ran, run, run_members, shrink};

const USAGE: &str = "usage: simulate (--minutes N | --runs N) [--from SEED] [--steps N] [--toys] [--whole]; --whole: does not shrink a run";
/// Each run that breaks a law leaves threads behind.
const RUNS_TO_SHRINK: usize = 100;

struct Wanted {
    minutes: Option<u64>,
    runs: Option<u64>,
    from: u64,
    steps: Option<u64>,
    are_toys: bool,
    /// A run that breaks a law is not shrunk.
    is_whole: bool,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    if arguments.next().as_deref() != Some("simulate") {
        return Err(USAGE.to_owned());
    }
    let mut wanted = Wanted {
        minutes: None,
        runs: None,
        from: 0,
        steps: None,
        are_toys: false,
        is_whole: false,
    };
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| format!("{argument} needs a number; {USAGE}"))
        };
        match argument.as_str() {
            "--minutes" => wanted.minutes = Some(number()?),
            "--runs" => wanted.runs = Some(number()?),
            "--from" => wanted.from = number()?,
            "--steps" => wanted.steps = Some(number()?),
            "--toys" => wanted.are_toys = true,
            "--whole" => wanted.is_whole = true,
            _ => return Err(format!("{argument} is not known; {USAGE}")),
        }
    }
    match (wanted.minutes, wanted.runs) {
        (None, None) => Err(USAGE.to_owned()),
        _ => Ok(wanted),
    }
}

/// Runs a plan; a panic breaks a law, too.
fn run_plan(plan: &Plan, are_toys: bool) -> Result<Ran, Violation> {
    let ran = catch_unwind(|| match are_toys {
        true => run(plan.seed, None),
        false => run_members(plan),
    });
    ran.unwrap_or_else(|_| Err(Violation("panic: see above".to_owned())))
}

fn main() -> ExitCode {
    let wanted = match wanted(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let env = RealEnv::new();
    let begun_nanos = env.monotonic_nanos();
    let secs = || (env.monotonic_nanos() - begun_nanos) / 1_000_000_000;
    let (mut seed, mut answered, mut unknown) = (wanted.from, 0, 0);
    let is_over = |runs: u64| {
        wanted.runs.is_some_and(|wanted| runs >= wanted)
            || wanted
                .minutes
                .is_some_and(|minutes| secs() >= minutes.saturating_mul(60))
    };
    while !is_over(seed - wanted.from) {
        let mut plan = Plan::of(seed);
        plan.steps = wanted.steps.unwrap_or(plan.steps);
        match run_plan(&plan, wanted.are_toys) {
            Ok(ran) => {
                answered += ran.answered;
                unknown += ran.unknown;
            }
            Err(violation) => {
                eprintln!("run {}: {plan}: {violation}", seed - wanted.from + 1);
                if !wanted.are_toys && !wanted.is_whole {
                    let again = |plan: &Plan| run_plan(plan, false).map(drop);
                    let (plan, violation) = shrink(plan, violation, RUNS_TO_SHRINK, again);
                    eprintln!("shrunk to {plan}: {violation}");
                }
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    let (runs, secs) = (seed - wanted.from, secs());
    println!(
        "{runs} runs from seed {} in {secs} s, {answered} answers, {unknown} without: all laws hold",
        wanted.from
    );
    ExitCode::SUCCESS
}
