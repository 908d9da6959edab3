//! Power losses: before and after each sync, and at each rename; also during a start after one.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use ilion_env::{CrashRule, MemEnv};
use parking_lot::Mutex;

use crate::node::Node;
use crate::random::Random;
use crate::reference::Reference;
use crate::{first_seed, tell, trials};

const STEPS: u64 = 40;
/// Without a number of trials, one in this many crashes is checked.
const SHORT_SHARE: u64 = 12;
const SHORT_TRIALS: u64 = 20;

/// A disk after a power loss, with bounds for the number of steps done.
struct Crash {
    env: MemEnv,
    done: RangeInclusive<usize>,
    trial: String,
}

#[derive(Default)]
struct Progress {
    /// Steps that were answered, and steps that were started.
    answered: AtomicUsize,
    begun: AtomicUsize,
    crashes: Mutex<Vec<Crash>>,
}

#[test]
fn a_power_loss_at_any_sync_or_rename_takes_nothing_that_was_acknowledged() {
    let share = match std::env::var_os("ILION_CAMPAIGN_TRIALS") {
        Some(_) => 1,
        None => SHORT_SHARE,
    };
    let wanted = trials(SHORT_TRIALS);
    let (mut checked, mut seed) = (0, first_seed());
    while checked < wanted {
        checked += run(seed, share, wanted - checked);
        seed += 1;
    }
    tell(
        "crash",
        checked,
        "nothing acknowledged is lost, nothing is invented",
    );
}

/// Returns the number of crashes that were checked.
fn run(seed: u64, share: u64, wanted: u64) -> u64 {
    let reference = Reference::of(seed, STEPS);
    let env = MemEnv::new(seed);
    let progress = watch(&env, seed, share);
    let mut node = Node::open(env.shared()).unwrap();
    let mut checked = 0;
    for (index, step) in reference.steps.iter().enumerate() {
        progress.begun.store(index + 1, SeqCst);
        let answer = node.step(step);
        assert_eq!(answer, reference.answers[index], "seed {seed}, {step:?}");
        progress.answered.store(index + 1, SeqCst);
        node.settle();
        for crash in std::mem::take(&mut *progress.crashes.lock()) {
            if checked < wanted {
                check(&reference, &crash, &mut Random::new(seed * 1_000_000 + checked));
                checked += 1;
            }
        }
        if checked >= wanted {
            break;
        }
    }
    env.on_sync(|_, _| ());
    checked
}

/// Collects crashes while a node runs on this disk.
fn watch(env: &MemEnv, seed: u64, share: u64) -> Arc<Progress> {
    let progress = Arc::<Progress>::default();
    let seen = progress.clone();
    let random = Mutex::new(Random::new(seed));
    env.on_sync(move |env, event| {
        let mut random = random.lock();
        if !random.one_in(share) {
            return;
        }
        let rule = match random.below(4) {
            0 => CrashRule::LoseUnsynced,
            1 => CrashRule::KeepAll,
            _ => CrashRule::Seeded(random.next()),
        };
        // The count is read before the image: steps answered after the crash may be lost.
        let answered = seen.answered.load(SeqCst);
        let after = env.crash(rule);
        let done = answered..=seen.begun.load(SeqCst);
        let trial = format!("seed {seed}, {event:?}, {rule:?}");
        seen.crashes.lock().push(Crash {
            env: after,
            done,
            trial,
        });
    });
    progress
}

fn check(reference: &Reference, crash: &Crash, random: &mut Random) {
    let Crash { env, done, trial } = crash;
    let again = random.one_in(4).then(|| crash_in_recovery(env, random)).flatten();
    if let Some(env) = again {
        check_disk(
            reference,
            &env,
            done,
            &format!("{trial}, and again in its recovery"),
        );
    }
    check_disk(reference, env, done, trial);
}

/// The disk after a power loss during a start on a copy of this one.
fn crash_in_recovery(env: &MemEnv, random: &mut Random) -> Option<MemEnv> {
    let copy = env.crash(CrashRule::KeepAll);
    let (left, rule) = (
        AtomicUsize::new(usize::try_from(random.below(12)).unwrap()),
        CrashRule::Seeded(random.next()),
    );
    let crashed = Arc::<Mutex<Option<MemEnv>>>::default();
    let seen = crashed.clone();
    copy.on_sync(move |env, _| {
        if left.fetch_sub(1, SeqCst) == 0 {
            *seen.lock() = Some(env.crash(rule));
        }
    });
    let started = Node::open(copy.shared());
    copy.on_sync(|_, _| ());
    drop(started);
    crashed.lock().take()
}

fn check_disk(reference: &Reference, env: &MemEnv, done: &RangeInclusive<usize>, trial: &str) {
    let open = || Node::open(env.shared()).unwrap_or_else(|error| panic!("{trial}: {error}"));
    let node = open();
    let state = node.state();
    reference.check(&state, done.clone(), trial);
    // The node accepts further statements.
    let goes_on =
        "CREATE KEYSPACE after WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    assert!(!node.statement(goes_on).starts_with("error"), "{trial}");
    drop(node);
    assert_eq!(open().state(), state, "{trial}: after another restart");
}
