//! Runs without a defect keep all laws; each defect breaks one. The seed is printed; `SEED=n` runs one, `SEEDS=n` that many. Runs of real
//! nodes also take `STEPS=n` and `WITHOUT=Fault,Fault` (see `Plan`), as the shrunk plan of a violation prints them.

use ilion_env::turns::stay_on_core;
use ilion_histories::Violation;
use ilion_simulation::{Fault, Mutant, Plan, Ran, run, run_members};

/// A variable of the environment as a number.
fn number(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok()?;
    let number = given.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={given} is no number")))
}

/// Runs these seeds, or those that the environment names. Returns `None` for the latter: nobody knows how much happens in them.
fn run_all(seeds: std::ops::Range<u64>, run: impl Fn(u64) -> Result<Ran, Violation>) -> Option<Ran> {
    let one = number("SEED").map(|seed| seed..seed + 1);
    let given = one.or(number("SEEDS").map(|count| 0..count));
    let seeds = given.clone().unwrap_or(seeds);
    let mut total = Ran::default();
    for seed in seeds {
        println!("SEED={seed}");
        let ran = run(seed).unwrap_or_else(|violation| panic!("{violation}"));
        total.add(&ran);
    }
    println!("{total:?}");
    given.is_none().then_some(total)
}

/// The plan of a seed, as the environment changes it.
fn plan(seed: u64) -> Plan {
    let mut plan = Plan::of(seed);
    plan.steps = number("STEPS").unwrap_or(plan.steps);
    for name in std::env::var("WITHOUT").iter().flat_map(|names| names.split(',')) {
        let fault = Fault::named(name).unwrap_or_else(|| panic!("WITHOUT: {name} is no fault"));
        plan.without.insert(fault);
    }
    plan
}

#[test]
fn a_hundred_runs_of_toys_keep_the_laws() {
    let Some(total) = run_all(0..100, |seed| run(seed, None)) else {
        return;
    };
    let Ran {
        answered,
        unknown,
        crashes,
        copies,
        isolations,
        ..
    } = total;
    assert!(
        answered > 5000 && unknown > 200 && crashes > 300 && copies > 20 && isolations > 300,
        "{total:?}"
    );
}

#[test]
fn runs_of_real_nodes_keep_the_laws() {
    stay_on_core(0);
    let Some(total) = run_all(0..20, |seed| run_members(&plan(seed))) else {
        return;
    };
    assert!(
        total.answered > 500
            && total.unknown > 30
            && total.crashes > 40
            && total.isolations > 20
            && total.schemas > 10
            && total.roles > 3
            && total.scans > 5,
        "{total:?}"
    );
    assert!(total.joins > 5 && total.leaves > 2, "{total:?}");
    assert!(
        total.outages > 5 && total.retentions > 5 && total.full_disks > 10 && total.nearest > 10,
        "{total:?}"
    );
}

#[test]
fn a_seed_is_one_run() {
    let runs =
        [4, 4, 5].map(|seed| run_members(&Plan::of(seed)).unwrap_or_else(|violation| panic!("{violation}")));
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0].fingerprint, runs[2].fingerprint);
}

#[test]
fn each_defect_is_caught() {
    let mutants = [
        (Mutant::NoBarrier, "stale"),
        (Mutant::BarrierOfEndOffset, "stale"),
        (Mutant::BarrierNotAwaited, "stale"),
        (Mutant::NoWindows, "counter"),
        (Mutant::WindowsNotSaved, "replicas"),
        (Mutant::WindowsOffByOne, "not linearizable"),
        (Mutant::NewNumberForRetry, "counter"),
        (Mutant::SameIncarnation, "not linearizable"),
        (Mutant::PositionSavedEarly, "replicas"),
        (Mutant::PositionSavedLate, "replicas"),
        (Mutant::DecidedByCoordinator, "not linearizable"),
        (Mutant::AcknowledgedWhenSent, "stale"),
        (Mutant::UnknownIsAcknowledged, "counter"),
        (Mutant::GapPassedOver, "replicas"),
        (Mutant::OutcomeOfAnotherPlace, "not linearizable"),
    ];
    for (mutant, law) in mutants {
        let found = (0..200).filter_map(|seed| Some((seed, run(seed, Some(mutant)).err()?)));
        let mut found = found.map(|(seed, violation)| (seed, violation.to_string()));
        let by_law = found.find(|(_, violation)| violation.starts_with(law));
        let (seed, violation) =
            by_law.unwrap_or_else(|| panic!("no run with {mutant:?} was found by '{law}'"));
        println!(
            "{mutant:?}: seed {seed}: {}",
            violation.lines().next().unwrap_or_default()
        );
    }
}
