//! A disk that fails under the log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;

use ilion_commitlog::{CommitLog, Damage, Envelope, Error, Mode, Options, Position, read_segments};
use ilion_env::{CrashRule, FaultEnv, MemEnv};

const PERIODIC: Mode = Mode::Periodic {
    period_millis: 3_600_000,
};

fn open(env: &Arc<FaultEnv>, mode: Mode) -> Result<(CommitLog, Vec<Vec<u8>>), Error> {
    open_with(
        env,
        Options {
            mode,
            ..Options::default()
        },
    )
}

fn open_with(env: &Arc<FaultEnv>, options: Options) -> Result<(CommitLog, Vec<Vec<u8>>), Error> {
    let options = Options {
        segment_bytes: 4096,
        ..options
    };
    let mut found = Vec::new();
    let (log, _) = CommitLog::open(
        Arc::<FaultEnv>::clone(env),
        Path::new("log"),
        options,
        &mut |_, envelope| {
            found.push(envelope.body.to_vec());
            Ok(())
        },
    )?;
    Ok((log, found))
}

fn faulty() -> (MemEnv, Arc<FaultEnv>) {
    let mem = MemEnv::new(1);
    let env = FaultEnv::new(mem.shared());
    (mem, env)
}

fn is_shortage<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Io(error)) if error.is_shortage())
}

fn is_poisoned<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Poisoned { .. }))
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    let safe = log.append(&Envelope::mutation(b"safe")).unwrap();
    log.wait_durable(safe).unwrap();
    env.add("fail sync \"ilion-1-*\"").unwrap();
    let lost = log.append(&Envelope::mutation(b"lost")).unwrap();
    let error = log.wait_durable(lost).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the commit log stopped for good: cannot sync log/ilion-1-"),
        "{error}"
    );
    env.clear();
    assert!(
        is_poisoned(log.append(&Envelope::mutation(b"more"))),
        "no second try"
    );
    assert!(is_poisoned(log.sync()) && is_poisoned(log.wait_durable(lost)) && is_poisoned(log.rotate()));
    log.wait_durable(safe).unwrap();
    let (sender, answers) = mpsc::channel();
    log.on_durable(
        lost,
        Box::new(move |outcome| sender.send(is_poisoned(outcome)).unwrap()),
    );
    assert_eq!(answers.recv(), Ok(true));
    assert!(is_poisoned(log.close()));
    assert_eq!(open(&env, Mode::Batch).unwrap().1[0], b"safe");
}

#[test]
fn callbacks_hear_of_a_failed_sync() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    env.add("fail sync \"ilion-1-*\"").unwrap();
    let (sender, answers) = mpsc::channel();
    for _ in 0..10 {
        let position = log
            .append(&Envelope::mutation(b"x"))
            .unwrap_or(Position::new(u64::MAX, 0));
        let sender = sender.clone();
        log.on_durable(
            position,
            Box::new(move |outcome| sender.send(is_poisoned(outcome)).unwrap()),
        );
    }
    assert_eq!(answers.iter().take(10).collect::<Vec<_>>(), [true; 10]);
}

#[test]
fn a_failed_or_short_write_stops_the_log_and_leaves_a_torn_tail_at_most() {
    for rule in ["fail write \"ilion-1-*\"", "short_write write \"ilion-1-*\""] {
        let (_, env) = faulty();
        let (log, _) = open(&env, PERIODIC).unwrap();
        let safe = log.append(&Envelope::mutation(b"safe")).unwrap();
        log.written(safe).unwrap();
        env.add(rule).unwrap();
        let lost = log.append(&Envelope::mutation(&[7; 1000])).unwrap();
        assert!(is_poisoned(log.written(lost)), "{rule}");
        assert!(is_poisoned(log.append(&Envelope::mutation(b"more"))), "{rule}");
        env.clear();
        assert!(is_poisoned(log.close()), "{rule}");
        assert_eq!(open(&env, PERIODIC).unwrap().1, [b"safe"], "{rule}");
    }
}

/// Of file systems that copy on write: they keep no room for a segment.
const NO_ROOM: [&str; 3] = [
    "no_space write \"ilion-1-*\"",
    "full_midway write \"ilion-1-*\"",
    "no_memory write \"ilion-1-*\"",
];

#[test]
fn records_without_room_wait_and_the_log_has_them_all_when_there_is_room_again() {
    for (mode, rule) in [PERIODIC, Mode::Batch]
        .into_iter()
        .flat_map(|mode| NO_ROOM.map(|rule| (mode, rule)))
    {
        let (mem, env) = faulty();
        let (log, _) = open(&env, mode).unwrap();
        let safe = log.append(&Envelope::mutation(b"safe")).unwrap();
        log.wait_durable(safe).unwrap();
        env.add(rule).unwrap();
        let late = log.append(&Envelope::mutation(&[7; 1000])).unwrap();
        assert!(is_shortage(log.wait_durable(late)), "{rule}");
        let (sender, answers) = mpsc::channel();
        log.on_durable(
            late,
            Box::new(move |outcome| sender.send(is_shortage(outcome)).unwrap()),
        );
        assert_eq!(answers.recv(), Ok(true), "{rule}");
        assert!(is_shortage(log.append(&Envelope::mutation(b"refused"))), "{rule}");
        assert!(
            is_shortage(log.append_written(&Envelope::mutation(b"refused"))),
            "{rule}"
        );
        assert!(is_shortage(log.sync()), "{rule}");
        log.wait_durable(safe).unwrap();
        assert_eq!(log.tail(Position::START).count(), 1);

        let after = FaultEnv::new(mem.crash(CrashRule::KeepAll).shared());
        assert_eq!(open(&after, mode).unwrap().1, [b"safe"], "{rule}");

        env.clear();
        let back = log.append(&Envelope::mutation(b"back")).unwrap();
        log.wait_durable(back).unwrap();
        log.wait_durable(late).unwrap();
        log.close().unwrap();
        let (_, found) = open(&env, mode).unwrap();
        assert_eq!(found, [&b"safe"[..], &[7; 1000], b"back"], "{rule}");
    }
}

#[test]
fn a_record_that_must_be_in_the_log_at_once_is_taken_back_if_there_is_no_room() {
    for rule in NO_ROOM {
        let (_, env) = faulty();
        // With threads, the fault might meet the header of the next segment instead.
        let stepped = Options {
            mode: Mode::Batch,
            is_stepped: true,
            ..Options::default()
        };
        let (log, _) = open_with(&env, stepped).unwrap();
        let before = log.append(&Envelope::mutation(b"before")).unwrap();
        env.add(&format!("{rule} at 1")).unwrap();
        let taken_back = log.append_written(&Envelope::mutation(&[1; 700]));
        assert!(is_shortage(taken_back), "{rule}");
        let next = log.append_written(&Envelope::mutation(b"next")).unwrap();
        log.sync_upto(next).unwrap();
        log.wait_durable(before).unwrap();
        log.close().unwrap();
        let (_, found) = open(&env, Mode::Batch).unwrap();
        let bodies: Vec<&[u8]> = found.iter().map(Vec::as_slice).collect();
        assert!(!bodies.contains(&&[1; 700][..]), "{rule}");
        assert!(
            bodies.starts_with(&[b"before"]) && bodies.ends_with(&[b"next"]),
            "{rule}"
        );
    }
}

#[test]
fn writers_go_on_through_many_shortages_and_lose_no_record_that_was_acknowledged() {
    const RECORDS: u16 = 300;
    for mode in [PERIODIC, Mode::Batch] {
        let (_, env) = faulty();
        let (log, _) = open(&env, mode).unwrap();
        let left = AtomicUsize::new(3);
        let write = |thread: u8| {
            let mut acknowledged = Vec::new();
            for number in 0..RECORDS {
                let body = [&[thread][..], &number.to_be_bytes()].concat();
                let appended = log.append(&Envelope::mutation(&body));
                match appended.and_then(|position| log.wait_durable(position)) {
                    Ok(()) => acknowledged.push(body),
                    Err(error) => assert!(is_shortage::<()>(Err(error))),
                }
            }
            left.fetch_sub(1, Relaxed);
            acknowledged
        };
        let acknowledged: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let writers = [0, 1, 2].map(|thread| scope.spawn(move || write(thread)));
            while left.load(Relaxed) > 0 {
                for rule in NO_ROOM {
                    env.add(&format!("{rule} from 2 to 9")).unwrap();
                    std::thread::yield_now();
                    env.clear();
                }
            }
            writers.map(|writer| writer.join().unwrap()).concat()
        });
        log.close().unwrap();
        let (_, found) = open(&env, mode).unwrap();
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0][0] != pair[1][0] || pair[0] < pair[1])
        );
        assert!(acknowledged.iter().all(|body| found.contains(body)));
    }
}

#[test]
fn no_space_for_a_new_segment_refuses_writes_until_there_is_space_again() {
    let (mem, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    mem.set_capacity_bytes(3 * 4096);
    let mut written = Vec::new();
    let error = loop {
        match log.append(&Envelope::mutation(&[written.len() as u8; 1000])) {
            Ok(position) => written.push(position),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, Error::Io(source) if source.is_no_space()),
        "{error}"
    );
    for position in &written {
        log.wait_durable(*position).unwrap();
    }
    assert!(
        matches!(log.append(&Envelope::mutation(&[0; 1000])), Err(Error::Io(_))),
        "still none"
    );
    log.append(&Envelope::mutation(b"what fits in the active segment"))
        .unwrap();
    mem.set_capacity_bytes(u64::MAX);
    log.append(&Envelope::mutation(&[0; 1000])).unwrap();
    let back = log.append(&Envelope::mutation(b"back")).unwrap();
    log.wait_durable(back).unwrap();
    log.close().unwrap();
    let (_, found) = open(&env, Mode::Batch).unwrap();
    assert_eq!(found.last().unwrap(), b"back");
    assert!(found.len() >= written.len() + 2);
}

#[test]
fn no_space_for_a_large_record_refuses_it_and_takes_others() {
    let (mem, env) = faulty();
    let options = Options {
        segment_bytes: 4096,
        record_bytes_max: Some(64 << 10),
        mode: Mode::Batch,
        ..Options::default()
    };
    let mut found = Vec::new();
    let (log, _) = CommitLog::open(env.clone(), Path::new("log"), options, &mut |_, _| Ok(())).unwrap();
    log.wait_durable(log.append(&Envelope::mutation(b"before")).unwrap())
        .unwrap();
    mem.set_capacity_bytes(5 * 4096);
    let large = [7; 40_000];
    for _ in 0..2 {
        let error = log.append(&Envelope::mutation(&large)).unwrap_err();
        assert!(
            matches!(&error, Error::Io(source) if source.is_no_space()),
            "{error}"
        );
        log.wait_durable(log.append(&Envelope::mutation(b"small")).unwrap())
            .unwrap();
    }
    mem.set_capacity_bytes(u64::MAX);
    log.wait_durable(log.append(&Envelope::mutation(&large)).unwrap())
        .unwrap();
    drop(log);
    let (log, _) = CommitLog::open(env, Path::new("log"), Options::default(), &mut |_, envelope| {
        found.push(envelope.body.len());
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [6, 5, 5, 40_000]);
    drop(log);
}

#[test]
fn a_log_starts_on_a_full_disk_and_takes_records_when_there_is_room() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    let kept = log.append(&Envelope::mutation(b"kept")).unwrap();
    log.wait_durable(kept).unwrap();
    log.close().unwrap();
    for rule in [
        "no_space preallocate \"*\"",
        "no_descriptors create \"ilion-1-*\"",
    ] {
        env.add(rule).unwrap();
        let (log, found) = open(&env, Mode::Batch).unwrap();
        assert_eq!(found[0], b"kept");
        let refused = log.append(&Envelope::mutation(b"refused"));
        assert!(
            matches!(&refused, Err(Error::Io(error)) if error.is_shortage()),
            "{refused:?}"
        );
        let barrier = log.barrier();
        log.sync().unwrap();
        assert_eq!(log.tail(Position::START).count(), found.len());
        env.clear();
        let back = log.append(&Envelope::mutation(rule.as_bytes())).unwrap();
        assert!(back >= barrier);
        log.wait_durable(back).unwrap();
        assert_eq!(log.tail(barrier).count(), 1);
        log.close().unwrap();
    }
    env.add("no_space preallocate \"*\"").unwrap();
    open(&env, Mode::Batch).unwrap().0.close().unwrap();
    env.clear();
    let (_, found) = open(&env, Mode::Batch).unwrap();
    assert_eq!(found.len(), 3, "what was there, and one record of each start");
}

#[test]
fn a_log_that_cannot_be_read_or_created_says_what_and_where() {
    let (_, env) = faulty();
    env.add("fail create \"log\" at 1").unwrap();
    let message =
        |outcome: Result<(CommitLog, Vec<Vec<u8>>), Error>| outcome.map(drop).unwrap_err().to_string();
    assert_eq!(
        message(open(&env, Mode::Batch)),
        "cannot create directory log: Input/output error (os error 5)"
    );
    env.add("fail create \"ilion-1-*\" at 1").unwrap();
    assert!(message(open(&env, Mode::Batch)).starts_with("cannot create log/ilion-1-"));
    let (log, _) = open(&env, Mode::Batch).unwrap();
    log.append(&Envelope::mutation(b"x")).unwrap();
    drop(log);
    env.add("fail read \"ilion-1-*\" at 1").unwrap();
    assert!(message(open(&env, Mode::Batch)).starts_with("cannot read log/ilion-1-"));
    assert_eq!(open(&env, Mode::Batch).unwrap().1, [b"x"]);
}

#[test]
fn a_callback_that_panics_stops_the_log_instead_of_hanging_it() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    let position = log.append(&Envelope::mutation(b"x")).unwrap();
    log.on_durable(position, Box::new(|_| panic!("on purpose")));
    let outcome = (0..).find_map(|_| {
        let position = log.append(&Envelope::mutation(b"y")).err()?;
        Some(position)
    });
    assert!(matches!(outcome, Some(Error::Poisoned { .. })));
    assert!(is_poisoned(log.close()));
}

#[test]
fn a_periodic_log_whose_background_sync_fails_stops_too() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Periodic { period_millis: 1 }).unwrap();
    env.add("fail sync \"ilion-1-*\"").unwrap();
    let outcome = (0..).find_map(|_| {
        let appended = log.append(&Envelope::mutation(b"x"));
        let failed = appended.and_then(|position| log.wait_durable(position)).err();
        // New segments are synced as well, but those that fail only make the writer try again.
        failed.filter(|error| !matches!(error, Error::Io(_)))
    });
    assert!(matches!(outcome, Some(Error::Poisoned { .. })), "{outcome:?}");
}

#[test]
fn a_segment_is_archived_before_it_is_trimmed() {
    let (_, env) = faulty();
    let options = Options {
        segment_bytes: 4096,
        mode: Mode::Batch,
        archive_dir: Some("archive".into()),
        ..Options::default()
    };
    let (log, _) = CommitLog::open(
        Arc::<FaultEnv>::clone(&env),
        Path::new("log"),
        options,
        &mut |_, _| Ok(()),
    )
    .unwrap();
    env.add("fail link \"*\"").unwrap();
    let append = |number: u8| {
        let position = log.append(&Envelope::mutation(&[number; 1000])).unwrap();
        log.wait_durable(position).unwrap();
    };
    (0..10).for_each(append);
    log.trim(log.barrier()).unwrap();
    assert_eq!(
        log.tail(Position::START).count(),
        10,
        "what is not archived is not trimmed"
    );
    env.clear();
    (10..20).for_each(append);
    let archived = || {
        let mut found = Vec::new();
        let report = read_segments(&*env, Path::new("archive"), Damage::Refuse, &mut |_, envelope| {
            found.push(envelope.body[0]);
            Ok(())
        });
        report.map_or_else(|_| Vec::new(), |_| found)
    };
    // Archiving follows each sync, on its own thread.
    let all_but_the_last_are_trimmed = || {
        append(99);
        log.rotate().unwrap();
        log.trim(log.barrier()).unwrap();
        log.tail(Position::START)
            .all(|next| next.unwrap().1.body[0] == 99)
    };
    while !all_but_the_last_are_trimmed() {}
    assert_eq!(archived()[..20], (0..20).collect::<Vec<u8>>());
}

#[test]
fn a_segment_that_cannot_be_removed_is_trimmed_the_next_time() {
    let (_, env) = faulty();
    let (log, _) = open(&env, Mode::Batch).unwrap();
    log.append(&Envelope::mutation(b"x")).unwrap();
    log.rotate().unwrap();
    log.append(&Envelope::mutation(b"y")).unwrap();
    log.sync().unwrap();
    env.add("fail remove \"ilion-1-*\" at 1").unwrap();
    assert!(matches!(log.trim(log.barrier()), Err(Error::Io(_))));
    assert_eq!(log.tail(Position::START).count(), 2);
    log.trim(log.barrier()).unwrap();
    assert_eq!(log.tail(Position::START).count(), 1);
}

#[test]
fn a_segment_that_somebody_cuts_stops_the_log_and_not_the_process() {
    use ilion_env::RealEnv;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        mode: PERIODIC,
        ..Options::default()
    };
    let open = || {
        CommitLog::open(RealEnv::new(), directory.path(), options.clone(), &mut |_, _| {
            Ok(())
        })
    };
    let (log, _) = open().unwrap();
    let append = |body: &[u8]| {
        let position = log.append(&Envelope::mutation(body)).unwrap();
        log.wait_durable(position)
    };
    append(b"known").unwrap();
    let files = std::fs::read_dir(directory.path()).unwrap();
    for path in files.map(|file| file.unwrap().path()) {
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(10)
            .unwrap();
    }
    // Elsewhere than on ext4, XFS and in memory it is written by calls, which make the file longer again.
    if let Err(error) = append(b"behind the end of the file") {
        assert!(
            error.to_string().contains("flush all tables, then restart"),
            "{error}"
        );
        assert!(is_poisoned(log.append(&Envelope::mutation(b"more"))));
    }
}
