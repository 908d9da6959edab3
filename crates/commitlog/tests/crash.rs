//! Power loss and kill -9 at every sync: what was promised is there, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;

use ilion_commitlog::{CommitLog, Envelope, Kind, Mode, Options, ReplayReport};
use ilion_env::{CrashRule, Env, MemEnv, Seeded};
use parking_lot::Mutex;

fn options(mode: Mode) -> Options {
    Options {
        segment_bytes: 4096,
        record_bytes_max: Some(64 << 10),
        mode,
        ..Options::default()
    }
}

fn body(number: u64) -> Vec<u8> {
    // Some do not fit into a segment, but for those that grow.
    let extra = if number % 9 == 5 { 8000 } else { 0 };
    [
        &number.to_be_bytes()[..],
        &vec![number as u8; (number * 37 % 900) as usize + extra],
    ]
    .concat()
}

/// The numbers of the records that a restart finds; checks that each is whole.
fn recover(env: &MemEnv, mode: Mode, context: &str) -> (Vec<u64>, ReplayReport) {
    let mut found = Vec::new();
    let opened = CommitLog::open(
        env.shared(),
        Path::new("log"),
        options(mode),
        &mut |_, envelope| {
            // In the place of records that a crash tore.
            if envelope.kind == Kind::Noop {
                return Ok(());
            }
            let number = u64::from_be_bytes(*envelope.body.first_chunk().unwrap());
            assert_eq!(envelope.body, body(number), "{context}");
            found.push(number);
            Ok(())
        },
    );
    let (_, report) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
    (found, report)
}

/// One thread appends 0, 1, 2, ...; at each sync the disk is cloned as a crash would leave it, with how far
/// the promises went.
fn crashes(
    mode: Mode,
    rules: impl Fn(u64) -> Vec<CrashRule> + Send + Sync + 'static,
) -> Vec<(MemEnv, u64, String)> {
    let env = MemEnv::new(1);
    let promised = Arc::new(Mutex::new(0_u64));
    let clones = Arc::new(Mutex::new(Vec::new()));
    let (promises, sink) = (Arc::clone(&promised), Arc::clone(&clones));
    env.on_sync(move |env, event| {
        for rule in rules(event.number) {
            // Read before the crash: a promise made meanwhile may be kept, one made before must be.
            let promised = *promises.lock();
            sink.lock()
                .push((env.crash(rule), promised, format!("{rule:?} at {event:?}")));
        }
    });
    let (log, _) =
        CommitLog::open(env.shared(), Path::new("log"), options(mode), &mut |_, _| Ok(())).unwrap();
    let mut choice = Seeded::new(7);
    for number in 0..60 {
        let position = log.append(&Envelope::mutation(&body(number))).unwrap();
        if choice.one_in(3) {
            log.wait_durable(position).unwrap();
            *promised.lock() = number + 1;
        }
        if choice.one_in(10) {
            log.sync().unwrap();
        }
    }
    log.close().unwrap();
    Arc::try_unwrap(clones).map_or_else(|shared| std::mem::take(&mut *shared.lock()), Mutex::into_inner)
}

#[test]
fn a_power_loss_keeps_every_promise_of_batch_and_group_mode() {
    for mode in [Mode::Batch, Mode::Group { window_millis: 1 }] {
        let rules = |sync| {
            vec![
                CrashRule::LoseUnsynced,
                CrashRule::KeepAll,
                CrashRule::Seeded(sync),
            ]
        };
        let clones = crashes(mode, rules);
        assert!(clones.len() > 100);
        for (env, promised, context) in clones {
            let (found, report) = recover(&env, mode, &context);
            assert!(
                found.is_sorted_by(|a, b| a < b),
                "{context}: in order, none twice"
            );
            assert!(
                found
                    .iter()
                    .copied()
                    .take_while(|number| *number < promised)
                    .eq(0..promised),
                "{context}: {promised} promised, found {found:?}",
            );
            // What a restart found stays found, whatever happens to it at once.
            let again = env.crash(CrashRule::LoseUnsynced);
            assert_eq!(recover(&again, mode, &context).0, found, "{context} {report:?}");
        }
    }
}

#[test]
fn kill_keeps_every_promise_of_periodic_mode() {
    let mode = Mode::Periodic {
        period_millis: 10_000,
    };
    for (env, promised, context) in crashes(mode, |_| vec![CrashRule::KeepAll]) {
        let (found, report) = recover(&env, mode, &context);
        assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "{context}");
        assert!(found.len() as u64 >= promised, "{context}");
        assert_eq!(report.torn_tail, None, "{context}");
    }
}

#[test]
fn a_power_loss_in_periodic_mode_leaves_whole_records_and_never_a_log_that_does_not_open() {
    let mode = Mode::Periodic {
        period_millis: 10_000,
    };
    let (mut torn, mut read_on) = (0, 0);
    for (env, _, context) in crashes(mode, |sync| {
        (0..5).map(|more| CrashRule::Seeded(sync * 10 + more)).collect()
    }) {
        let (found, report) = recover(&env, mode, &context);
        let is_prefix = found.iter().copied().eq(0..found.len() as u64);
        assert!(
            found.is_sorted_by(|a, b| a < b),
            "{context}: in order, none twice"
        );
        assert!(
            is_prefix || !report.holes.is_empty(),
            "{context} {report:?}: each loss is told"
        );
        torn += usize::from(report.torn_tail.is_some());
        read_on += usize::from(!is_prefix);
        let again = env.crash(CrashRule::LoseUnsynced);
        assert_eq!(recover(&again, mode, &context).0, found, "{context} {report:?}");
    }
    assert!(torn > 0, "some crash tears a record");
    assert!(read_on > 0, "some crash leaves a hole");
}

#[test]
fn a_crash_during_recovery_recovers_the_same() {
    let mode = Mode::Batch;
    for (env, _, context) in crashes(mode, |sync| vec![CrashRule::Seeded(sync)])
        .into_iter()
        .step_by(5)
    {
        let (found, _) = recover(&env.crash(CrashRule::KeepAll), mode, &context);
        let clones = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&clones);
        env.on_sync(move |env, event| {
            sink.lock().push((
                env.crash(CrashRule::Seeded(event.number)),
                format!("then {event:?}"),
            ));
        });
        recover(&env, mode, &context);
        env.on_sync(|_, _| {});
        for (env, then) in std::mem::take(&mut *clones.lock()) {
            assert_eq!(
                recover(&env, mode, &format!("{context} {then}")).0,
                found,
                "{context} {then}"
            );
        }
    }
}

#[test]
fn a_log_without_records_comes_back_empty_and_leaves_no_files_behind() {
    let env = MemEnv::new(1);
    for _ in 0..3 {
        let (found, report) = recover(&env, Mode::Batch, "");
        assert!(found.is_empty() && report == ReplayReport::default());
    }
    assert_eq!(env.list(Path::new("log")).unwrap().len(), 1);
}

#[test]
fn a_power_loss_under_many_writers_keeps_every_promise_to_each() {
    const THREADS: u64 = 4;
    let env = MemEnv::new(1);
    let promised: Arc<Mutex<[u64; THREADS as usize]>> = Arc::default();
    let clones = Arc::new(Mutex::new(Vec::new()));
    let (promises, sink) = (Arc::clone(&promised), Arc::clone(&clones));
    env.on_sync(move |env, event| {
        let promised = *promises.lock();
        sink.lock().push((
            env.crash(CrashRule::Seeded(event.number)),
            promised,
            format!("{event:?}"),
        ));
    });
    let mode = Mode::Batch;
    let (log, _) =
        CommitLog::open(env.shared(), Path::new("log"), options(mode), &mut |_, _| Ok(())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, promised) = (&log, &promised);
            scope.spawn(move || {
                for count in 0..30 {
                    let position = log
                        .append(&Envelope::mutation(&body(count * THREADS + thread)))
                        .unwrap();
                    if count % 3 == 0 {
                        log.wait_durable(position).unwrap();
                        promised.lock()[thread as usize] = count + 1;
                    }
                }
            });
        }
    });
    log.close().unwrap();
    for (env, promised, context) in std::mem::take(&mut *clones.lock()) {
        let (found, _) = recover(&env, mode, &context);
        for thread in 0..THREADS {
            let of_thread: Vec<u64> = found
                .iter()
                .filter(|number| *number % THREADS == thread)
                .map(|number| number / THREADS)
                .collect();
            let promised = promised[thread as usize];
            assert!(of_thread.is_sorted_by(|a, b| a < b), "{context}");
            assert!(
                of_thread
                    .iter()
                    .copied()
                    .take_while(|number| *number < promised)
                    .eq(0..promised),
                "{context}"
            );
        }
    }
}
