//! What callers of the log rely on, asked of real files and of the in-memory disk.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;

use ilion_commitlog::{
    CommitLog, Envelope, Error, Kind, Mode, Options, Origin, Position, Record, ReplayReport,
};
use ilion_env::{Env, MemEnv, RealEnv};

const MODES: [Mode; 3] = [
    Mode::Batch,
    Mode::Group { window_millis: 1 },
    Mode::Periodic {
        period_millis: 10_000,
    },
];

fn small(mode: Mode) -> Options {
    Options {
        segment_bytes: 4096,
        mode,
        ..Options::default()
    }
}

fn open(env: Arc<dyn Env>, options: Options) -> (CommitLog, Vec<(Position, Record)>, ReplayReport) {
    let mut replayed = Vec::new();
    let (log, report) = CommitLog::open(env, Path::new("log"), options, &mut |position, envelope| {
        replayed.push((position, envelope.to_record()));
        Ok(())
    })
    .unwrap();
    (log, replayed, report)
}

fn bodies(records: &[(Position, Record)]) -> Vec<Vec<u8>> {
    records.iter().map(|(_, record)| record.body.to_vec()).collect()
}

fn body(number: u32) -> Vec<u8> {
    [
        &number.to_be_bytes()[..],
        &vec![number as u8; (number * 13 % 700) as usize],
    ]
    .concat()
}

#[test]
fn what_was_appended_is_replayed_in_order_over_many_segments() {
    for mode in MODES {
        let env = MemEnv::new(1);
        let (log, replayed, _) = open(env.shared(), small(mode));
        assert!(replayed.is_empty());
        let mut last = Position::START;
        for number in 0..200 {
            let position = log.append(&Envelope::mutation(&body(number))).unwrap();
            assert!(position > last);
            last = position;
        }
        log.wait_durable(last).unwrap();
        assert!(log.stats().segments > 5);
        log.close().unwrap();
        let (_, replayed, report) = open(env.shared(), small(mode));
        assert_eq!(bodies(&replayed), (0..200).map(body).collect::<Vec<_>>());
        assert!(replayed.is_sorted_by_key(|(position, _)| *position));
        assert_eq!(
            (report.records, report.torn_tail, report.skipped.len()),
            (200, None, 0)
        );
        assert!(replayed.last().unwrap().0 == last);
    }
}

#[test]
fn every_field_survives_on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = RealEnv::new();
    let origin = Origin {
        node: 1,
        incarnation: 2,
        seq: 3,
    };
    let written = Envelope {
        kind: Kind::Counter,
        tablet: 4,
        schema_epoch: 5,
        origin,
        time_micros: 6,
        is_captured: true,
        body: b"body",
    };
    let open = || {
        let mut replayed = Vec::new();
        let (log, _) = CommitLog::open(
            Arc::clone(&env),
            dir.path(),
            Options::default(),
            &mut |position, envelope| {
                replayed.push((position, envelope.to_record()));
                Ok(())
            },
        )
        .unwrap();
        (log, replayed)
    };
    let (log, _) = open();
    let id = log.log_id();
    let position = log.append(&written).unwrap();
    log.wait_durable(position).unwrap();
    log.sync().unwrap();
    drop(log);
    let (log, replayed) = open();
    assert_eq!(replayed, [(position, written.to_record())]);
    assert_eq!(log.log_id(), id);
}

#[test]
fn one_write_serves_all_records_appended_before_it() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), Options::default());
    let bodies: Vec<Vec<u8>> = (0..100).map(body).collect();
    let envelopes: Vec<Envelope<'_>> = bodies.iter().map(|body| Envelope::mutation(body)).collect();
    let positions = log.append_many(&envelopes).unwrap();
    for position in &positions {
        log.written(*position).unwrap();
    }
    assert_eq!(
        (positions.len(), log.stats().appends, log.stats().writes),
        (100, 100, 1)
    );
    assert_eq!(log.stats().pending_bytes, 0);
}

#[test]
fn nothing_is_written_before_somebody_asks_but_the_pending_bytes_are_bounded() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), Options::default());
    log.append(&Envelope::mutation(&[1; 1000])).unwrap();
    assert!(log.stats().pending_bytes > 1000);
    for _ in 0..3000 {
        log.append(&Envelope::mutation(&[1; 1000])).unwrap();
    }
    assert!(log.stats().pending_bytes <= 1 << 20);
}

#[test]
fn many_threads_share_the_log() {
    for mode in MODES {
        let env = MemEnv::new(1);
        let (log, ..) = open(env.shared(), small(mode));
        std::thread::scope(|scope| {
            for thread in 0..8_u32 {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..50 {
                        let position = log
                            .append(&Envelope::mutation(&body(thread * 1000 + number)))
                            .unwrap();
                        log.wait_durable(position).unwrap();
                    }
                });
            }
        });
        drop(log);
        let (_, replayed, _) = open(env.shared(), small(mode));
        let mut found = bodies(&replayed);
        let mut expected: Vec<_> = (0..8)
            .flat_map(|thread| (0..50).map(move |number| body(thread * 1000 + number)))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn callbacks_are_called_when_the_record_is_durable() {
    for mode in MODES {
        let env = MemEnv::new(1);
        let (log, ..) = open(env.shared(), small(mode));
        let (sender, answers) = mpsc::channel();
        for number in 0..50_u32 {
            let position = log.append(&Envelope::mutation(&body(number))).unwrap();
            let sender = sender.clone();
            log.on_durable(
                position,
                Box::new(move |outcome| sender.send((number, outcome.is_ok())).unwrap()),
            );
        }
        let mut answered: Vec<(u32, bool)> = answers.iter().take(50).collect();
        answered.sort_unstable();
        assert_eq!(answered, (0..50).map(|number| (number, true)).collect::<Vec<_>>());
    }
}

#[test]
fn callbacks_still_waiting_are_answered_by_close() {
    let env = MemEnv::new(1);
    let (log, ..) = open(
        env.shared(),
        small(Mode::Group {
            window_millis: 3_600_000,
        }),
    );
    let position = log.append(&Envelope::mutation(b"x")).unwrap();
    let (sender, answers) = mpsc::channel();
    log.on_durable(
        position,
        Box::new(move |outcome| sender.send(outcome.is_ok()).unwrap()),
    );
    log.close().unwrap();
    assert_eq!(answers.recv(), Ok(true));
}

#[test]
fn a_tail_follows_the_log_over_segments_and_goes_on_later() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), small(Mode::Batch));
    let mut tail = log.tail(Position::START);
    assert!(tail.next().is_none());
    let mut expected = Vec::new();
    for number in 0..100 {
        let position = log.append(&Envelope::mutation(&body(number))).unwrap();
        expected.push((position, body(number)));
        if number % 10 == 9 {
            log.written(position).unwrap();
            let seen: Vec<_> = tail
                .by_ref()
                .map(Result::unwrap)
                .map(|(at, record)| (at, record.body.to_vec()))
                .collect();
            assert_eq!(seen, std::mem::take(&mut expected));
        }
    }
    let (position, _) = log.tail(Position::START).nth(60).unwrap().unwrap();
    let from_there = log
        .tail(position)
        .map(|next| next.unwrap().1.body.to_vec())
        .collect::<Vec<_>>();
    assert_eq!(from_there, (60..100).map(body).collect::<Vec<_>>());
}

#[test]
fn a_barrier_divides_the_log_and_trim_lets_go_of_what_is_below() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), small(Mode::Batch));
    let before: Vec<Position> = (0..50)
        .map(|number| log.append(&Envelope::mutation(&body(number))).unwrap())
        .collect();
    let barrier = log.barrier();
    assert!(before.iter().all(|position| *position < barrier));
    for number in 50..60 {
        assert!(log.append(&Envelope::mutation(&body(number))).unwrap() >= barrier);
    }
    log.trim(barrier).unwrap();
    assert!(
        log.stats().segments > 5,
        "nothing was synced, so nothing was trimmed"
    );
    log.sync().unwrap();
    log.trim(barrier).unwrap();
    let left = log
        .tail(Position::START)
        .map(|next| next.unwrap().0)
        .collect::<Vec<_>>();
    assert_eq!(left[0].segment, barrier.segment);
    drop(log);
    let (log, replayed, _) = open(env.shared(), small(Mode::Batch));
    assert_eq!(
        replayed.iter().map(|(position, _)| *position).collect::<Vec<_>>(),
        left
    );
    log.rotate().unwrap();
    log.trim(log.barrier()).unwrap();
    assert_eq!(log.tail(Position::START).count(), 0);
}

#[test]
fn rotation_makes_all_that_was_written_trimmable() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), small(Mode::Batch));
    log.append(&Envelope::mutation(b"x")).unwrap();
    log.rotate().unwrap();
    log.rotate().unwrap();
    log.append(&Envelope::mutation(b"y")).unwrap();
    log.sync().unwrap();
    log.trim(log.barrier()).unwrap();
    assert_eq!(log.tail(Position::START).count(), 1);
}

#[test]
fn positions_are_never_used_twice() {
    let env = MemEnv::new(1);
    let mut last = Position::START;
    for _ in 0..5 {
        env.set_micros(1_000_000);
        let (log, ..) = open(env.shared(), small(Mode::Batch));
        let position = log.append(&Envelope::mutation(b"x")).unwrap();
        assert!(position > last);
        last = position;
        log.rotate().unwrap();
        log.sync().unwrap();
        log.trim(log.barrier()).unwrap();
    }
}

#[test]
fn a_record_that_no_segment_has_room_for_makes_one_larger() {
    let env = MemEnv::new(1);
    let options = |mode| Options {
        record_bytes_max: Some(20_000),
        ..small(mode)
    };
    let (log, ..) = open(env.shared(), options(Mode::Batch));
    let mut tail = log.tail(Position::START);
    let lens = [100, 3900, 20_000 - 40, 10, 5000, 5000, 3900];
    let bodies_of = || lens.map(|len: usize| vec![len as u8; len]);
    for body in bodies_of() {
        let position = log.append(&Envelope::mutation(&body)).unwrap();
        log.wait_durable(position).unwrap();
        let (found_at, record) = tail.next().unwrap().unwrap();
        assert_eq!((found_at, record.body.to_vec()), (position, body));
    }
    let before = log.stats();
    let all: usize = lens.iter().sum();
    assert!(before.size_bytes as usize >= all, "{before:?}");
    let error = log.append(&Envelope::mutation(&[0; 20_000])).unwrap_err();
    assert!(error.to_string().contains("at most 20000 bytes"), "{error}");
    log.close().unwrap();
    // A log that would not take them now still reads them.
    let (log, found, _) = open(env.shared(), small(Mode::Batch));
    assert_eq!(bodies(&found), bodies_of());
    log.trim(log.barrier()).unwrap();
    log.rotate().unwrap();
    assert!(log.stats().size_bytes <= 3 * 4096, "{:?}", log.stats());
}

#[test]
fn what_the_log_cannot_hold_is_refused_with_the_rule() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), small(Mode::Batch));
    let error = log.append(&Envelope::mutation(&[0; 4000])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the commit log refuses this: a record has at most 4020 bytes, this one has 4040"
    );
    log.append(&Envelope::mutation(&[0; 3980])).unwrap();
    assert!(matches!(
        log.written(Position::new(u64::MAX, 0)),
        Err(Error::Refused { .. })
    ));
    drop(log);
    let refused = |options: Options| {
        let opened = CommitLog::open(env.shared(), Path::new("log"), options, &mut |_, _| Ok(()));
        matches!(opened.map(drop), Err(Error::Refused { .. }))
    };
    assert!(refused(Options {
        segment_bytes: 100,
        ..Options::default()
    }));
    assert!(refused(Options {
        record_bytes_max: Some(u32::MAX),
        ..Options::default()
    }));
    assert!(refused(Options {
        log_id: Some(env.random_uuid()),
        ..Options::default()
    }));
    env.create(Path::new("log/CommitLog-7-1700000000000.log"))
        .unwrap();
    assert!(refused(Options::default()));
}

#[test]
fn a_receiver_that_fails_stops_the_replay_and_changes_nothing() {
    let env = MemEnv::new(1);
    let (log, ..) = open(env.shared(), small(Mode::Batch));
    log.append(&Envelope::mutation(b"x")).unwrap();
    drop(log);
    let opened = CommitLog::open(env.shared(), Path::new("log"), small(Mode::Batch), &mut |_, _| {
        Err("no".into())
    });
    assert!(matches!(opened.map(drop), Err(Error::Replay { .. })));
    assert_eq!(bodies(&open(env.shared(), small(Mode::Batch)).1), [b"x"]);
}
