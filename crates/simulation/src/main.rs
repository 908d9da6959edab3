//! Runs seeds for as long as asked, one at a time on each core, and shrinks the first run that breaks a law:
//! `cargo run --release -p ilion-simulation -- simulate --minutes 10 [--from SEED] [--steps N] [--cores N] [--toys]`.

use std::num::NonZero;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::available_parallelism;

use ilion_env::turns::stay_on_core;
use ilion_env::{Env as _, RealEnv};
use ilion_histories::Violation;
use ilion_simulation::{Plan, Ran, run, run_members, shrink};

const USAGE: &str = "usage: simulate --minutes N [--from SEED] [--steps N] [--cores N] [--toys]";
/// Each run that breaks a law leaves threads behind.
const RUNS_TO_SHRINK: usize = 100;

const CORES_MAX: usize = 1024;

struct Wanted {
    minutes: u64,
    from: u64,
    steps: Option<u64>,
    /// How many runs are under way at a time.
    cores: usize,
    are_toys: bool,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    if arguments.next().as_deref() != Some("simulate") {
        return Err(USAGE.to_owned());
    }
    let (mut minutes, mut from, mut steps, mut are_toys) = (None, 0, None, false);
    let mut cores = available_parallelism().map_or(1, NonZero::get);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| format!("{argument} needs a number; {USAGE}"))
        };
        match argument.as_str() {
            "--minutes" => minutes = Some(number()?),
            "--from" => from = number()?,
            "--steps" => steps = Some(number()?),
            "--cores" => {
                cores = usize::try_from(number()?)
                    .unwrap_or(usize::MAX)
                    .clamp(1, CORES_MAX)
            }
            "--toys" => are_toys = true,
            _ => return Err(format!("{argument} is not known; {USAGE}")),
        }
    }
    let minutes = minutes.ok_or(USAGE)?;
    Ok(Wanted {
        minutes,
        from,
        steps,
        cores,
        are_toys,
    })
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
    let (next, broken) = (AtomicU64::new(wanted.from), AtomicU64::new(0));
    let (answered, unknown) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = &|core| {
        stay_on_core(core);
        while secs() < 60 * wanted.minutes && broken.load(Relaxed) == 0 {
            let mut plan = Plan::of(next.fetch_add(1, Relaxed));
            plan.steps = wanted.steps.unwrap_or(plan.steps);
            match run_plan(&plan, wanted.are_toys) {
                Ok(ran) => {
                    answered.fetch_add(u64::from(ran.answered), Relaxed);
                    unknown.fetch_add(u64::from(ran.unknown), Relaxed);
                }
                Err(violation) => {
                    broken.fetch_add(1, Relaxed);
                    tell(plan, violation, wanted.are_toys);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for core in 0..wanted.cores {
            scope.spawn(move || work(core));
        }
    });
    if broken.into_inner() > 0 {
        return ExitCode::FAILURE;
    }
    let (runs, secs) = (next.into_inner() - wanted.from, secs());
    println!(
        "{runs} runs from seed {} in {secs} s on {} cores, {} answers, {} without: all laws hold",
        wanted.from,
        wanted.cores,
        answered.into_inner(),
        unknown.into_inner()
    );
    ExitCode::SUCCESS
}

/// Prints a run that breaks a law, then the smallest one that does.
fn tell(plan: Plan, violation: Violation, are_toys: bool) {
    eprintln!("{plan}: {violation}");
    if !are_toys {
        let again = |plan: &Plan| run_plan(plan, false).map(drop);
        let (plan, violation) = shrink(plan, violation, RUNS_TO_SHRINK, again);
        eprintln!("shrunk to {plan}: {violation}");
    }
}
