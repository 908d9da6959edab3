//! Runs seeds for as long as asked, or as many as asked, one at a time on each core, and shrinks the first run that breaks a law:
//! `cargo run --release -p ilion-simulation -- simulate --minutes 10 [--from SEED] [--steps N] [--cores N] [--toys] [--whole]`.
//!
//! `… growth` prints how throughput grows with the number of nodes: see `growth_table`.

mod growth_table;

use std::num::NonZero;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::available_parallelism;

use ilion_env::turns::stay_on_core;
use ilion_env::{Env as _, RealEnv};
use ilion_histories::Violation;
use ilion_simulation::{Plan, Ran, run, run_members, shrink};

const USAGE: &str = "usage: simulate (--minutes N | --runs N) [--from SEED] [--steps N] [--cores N] [--toys] [--whole]; --whole: does not \
                     shrink a run";
/// Each run that breaks a law leaves threads behind.
const RUNS_TO_SHRINK: usize = 100;
const CORES_MAX: u64 = 1024;

struct Wanted {
    minutes: Option<u64>,
    runs: Option<u64>,
    from: u64,
    steps: Option<u64>,
    /// How many runs are under way at a time.
    cores: usize,
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
        cores: available_parallelism().map_or(1, NonZero::get),
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
            "--cores" => wanted.cores = number()?.clamp(1, CORES_MAX) as usize,
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
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("growth").is_some() {
        return match growth_table::print(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("{message}");
                ExitCode::from(2)
            }
        };
    }
    let wanted = match wanted(arguments) {
        Ok(wanted) => wanted,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let env = RealEnv::new();
    let begun_nanos = env.monotonic_nanos();
    let secs = || (env.monotonic_nanos() - begun_nanos) / 1_000_000_000;
    let (next, is_broken) = (AtomicU64::new(0), AtomicBool::new(false));
    let [ran, answered, unknown] = [(); 3].map(|()| AtomicU64::new(0));
    let is_in_time = || {
        wanted
            .minutes
            .is_none_or(|minutes| secs() < minutes.saturating_mul(60))
    };
    let work = &|core| {
        stay_on_core(core);
        while is_in_time() && !is_broken.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if wanted.runs.is_some_and(|runs| number >= runs) {
                break;
            }
            let mut plan = Plan::of(wanted.from + number);
            plan.steps = wanted.steps.unwrap_or(plan.steps);
            match run_plan(&plan, wanted.are_toys) {
                Ok(of_run) => {
                    ran.fetch_add(1, Relaxed);
                    answered.fetch_add(u64::from(of_run.answered), Relaxed);
                    unknown.fetch_add(u64::from(of_run.unknown), Relaxed);
                }
                Err(violation) => {
                    is_broken.store(true, Relaxed);
                    eprintln!("run {}: {plan}: {violation}", number + 1);
                    if !wanted.are_toys && !wanted.is_whole {
                        let again = |plan: &Plan| run_plan(plan, false).map(drop);
                        let (plan, violation) = shrink(plan, violation, RUNS_TO_SHRINK, again);
                        eprintln!("shrunk to {plan}: {violation}");
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for core in 0..wanted.cores {
            scope.spawn(move || work(core));
        }
    });
    if is_broken.into_inner() {
        return ExitCode::FAILURE;
    }
    println!(
        "{} runs from seed {} in {} s on {} cores, {} answers, {} without: all laws hold",
        ran.into_inner(),
        wanted.from,
        secs(),
        wanted.cores,
        answered.into_inner(),
        unknown.into_inner()
    );
    ExitCode::SUCCESS
}
