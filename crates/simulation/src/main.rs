//! Runs seeds for as long as asked: `cargo run --release -p ilion-simulation -- simulate --minutes 10 [--from SEED] [--toys]`.

use std::panic::catch_unwind;
use std::process::ExitCode;

use ilion_env::{Env as _, RealEnv};
use ilion_simulation::{run, run_members};

const USAGE: &str = "usage: simulate --minutes N [--from SEED] [--toys]";

struct Wanted {
    minutes: u64,
    from: u64,
    are_toys: bool,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Result<Wanted, String> {
    if arguments.next().as_deref() != Some("simulate") {
        return Err(USAGE.to_owned());
    }
    let (mut minutes, mut from, mut are_toys) = (None, 0, false);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| format!("{argument} needs a number; {USAGE}"))
        };
        match argument.as_str() {
            "--minutes" => minutes = Some(number()?),
            "--from" => from = number()?,
            "--toys" => are_toys = true,
            _ => return Err(format!("{argument} is not known; {USAGE}")),
        }
    }
    let minutes = minutes.ok_or(USAGE)?;
    Ok(Wanted {
        minutes,
        from,
        are_toys,
    })
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
    while secs() < 60 * wanted.minutes {
        let ran = catch_unwind(|| match wanted.are_toys {
            true => run(seed, None),
            false => run_members(seed),
        });
        let Ok(ran) = ran else {
            eprintln!("SEED={seed} panicked");
            return ExitCode::FAILURE;
        };
        match ran {
            Ok(ran) => {
                answered += ran.answered;
                unknown += ran.unknown;
            }
            Err(violation) => {
                eprintln!("SEED={seed}: {violation}");
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
