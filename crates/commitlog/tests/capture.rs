//! Captured records: consumers read what was promised and nothing else, over restarts, power losses and both policies of space.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_commitlog::{Capture, CommitLog, Envelope, Error, Mode, Options, Position, WhenFull};
use ilion_env::{CrashRule, MemEnv};
use parking_lot::Mutex;

const SEGMENT_BYTES: u32 = 4096;
const RAW: &str = "raw";

fn open(env: &MemEnv, segments_max: u64, when_full: WhenFull) -> CommitLog {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        mode: Mode::Batch,
        capture: Some(Capture {
            dir: RAW.into(),
            bytes_max: segments_max * u64::from(SEGMENT_BYTES),
            excess_bytes: 0,
            when_full,
            check_interval_millis: 0,
        }),
        ..Options::default()
    };
    let opened = CommitLog::open(env.shared(), Path::new("log"), options, &mut |_, _| Ok(()));
    opened.unwrap().0
}

fn is_captured(number: u64) -> bool {
    !number.is_multiple_of(3)
}

fn try_append(log: &CommitLog, number: u64, is_captured: bool) -> Result<Position, Error> {
    let body = [&number.to_be_bytes()[..], &[7; 400]].concat();
    let envelope = Envelope {
        is_captured,
        ..Envelope::mutation(&body)
    };
    let position = log.append(&envelope)?;
    log.wait_durable(position).unwrap();
    Ok(position)
}

fn append(log: &CommitLog, number: u64, is_captured: bool) -> Position {
    try_append(log, number, is_captured).unwrap()
}

/// The numbers of the captured records from a position on, and where to go on behind each.
fn read(log: &CommitLog, from: Position) -> Vec<(u64, Position)> {
    log.sync().unwrap();
    let changes = log.changes(from).unwrap();
    let number = |body: &[u8]| u64::from_be_bytes(*body.first_chunk().unwrap());
    changes
        .map(Result::unwrap)
        .map(|(_, record, next)| (number(&record.body), next))
        .collect()
}

fn kept_files(env: &MemEnv) -> Vec<std::path::PathBuf> {
    let entries = env.shared().list(Path::new(RAW)).unwrap().into_iter();
    let logs = entries.filter(|entry| entry.name.ends_with(".log"));
    logs.map(|entry| Path::new(RAW).join(entry.name)).collect()
}

#[test]
fn a_power_loss_at_any_sync_loses_no_change_and_adds_none() {
    let env = MemEnv::new(1);
    // How many records were acknowledged, or were read by a consumer.
    let promised = Arc::new(Mutex::new(0_u64));
    let crashes = Arc::new(Mutex::new(Vec::new()));
    let (promises, sink) = (Arc::clone(&promised), Arc::clone(&crashes));
    env.on_sync(move |env, event| {
        let promised = *promises.lock();
        for rule in [
            CrashRule::LoseUnsynced,
            CrashRule::KeepAll,
            CrashRule::Seeded(event.number),
        ] {
            sink.lock()
                .push((env.crash(rule), promised, format!("{rule:?} at {event:?}")));
        }
    });
    for _ in 0..2 {
        let log = open(&env, 1000, WhenFull::Block);
        let first = *promised.lock();
        for number in first..first + 40 {
            append(&log, number, is_captured(number));
            *promised.lock() = number + 1;
            let seen = read(&log, Position::START)
                .last()
                .map_or(0, |(number, _)| number + 1);
            assert!(seen <= number + 1);
            if number % 10 == 9 {
                log.trim(log.barrier()).unwrap();
            }
        }
    }
    env.on_sync(|_, _| ());
    let crashes = std::mem::take(&mut *crashes.lock());
    assert!(crashes.len() > 200);
    for (env, promised, context) in crashes {
        let log = open(&env, 1000, WhenFull::Block);
        let found: Vec<u64> = read(&log, Position::START)
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        let end = found.last().map_or(0, |last| last + 1).max(promised);
        let expected: Vec<u64> = (0..end).filter(|number| is_captured(*number)).collect();
        assert_eq!(found, expected, "{context}");
        assert!(end <= 80, "{context}");
    }
}

#[test]
fn a_consumer_goes_on_at_each_position_after_a_restart() {
    let env = MemEnv::new(2);
    let log = open(&env, 1000, WhenFull::Block);
    for number in 0..60 {
        append(&log, number, is_captured(number));
    }
    let all = read(&log, Position::START);
    assert_eq!(all.len(), 40);
    drop(log);
    let log = open(&env, 1000, WhenFull::Block);
    // Now most of it is in the directory of kept segments only.
    log.trim(log.barrier()).unwrap();
    for (index, (number, next)) in all.iter().enumerate() {
        assert_eq!(read(&log, *next), all[index + 1..], "behind {number}");
    }
}

#[test]
fn segments_without_captured_records_are_not_kept() {
    let env = MemEnv::new(3);
    let log = open(&env, 1000, WhenFull::Block);
    for number in 0..60 {
        append(&log, number, number < 5);
    }
    drop(log);
    let log = open(&env, 1000, WhenFull::Block);
    assert_eq!(kept_files(&env).len(), 1);
    log.trim(log.barrier()).unwrap();
    assert_eq!(read(&log, Position::START).len(), 5);
}

#[test]
fn captured_writes_are_refused_until_a_consumer_makes_room() {
    let env = MemEnv::new(4);
    let log = open(&env, 3, WhenFull::Block);
    let mut accepted = 0;
    let used = loop {
        match try_append(&log, accepted, true) {
            Ok(_) => {}
            Err(Error::CaptureFull { used_bytes }) => break used_bytes,
            Err(other) => panic!("{other}"),
        }
        accepted += 1;
        assert!(accepted < 100, "there is no end");
    };
    assert_eq!(used, 3 * u64::from(SEGMENT_BYTES));
    // Others are not refused.
    for number in 0..20 {
        append(&log, number, false);
    }
    drop(log);
    let log = open(&env, 3, WhenFull::Block);
    assert!(log.admit_captured().is_err());
    assert_eq!(read(&log, Position::START).len() as u64, accepted);
    env.shared().remove_file(&kept_files(&env)[0]).unwrap();
    log.admit_captured().unwrap();
    append(&log, accepted, true);
    assert_eq!(log.capture_stats().unwrap().dropped, 0);
}

#[test]
fn the_oldest_changes_are_dropped_and_a_consumer_is_told() {
    let env = MemEnv::new(5);
    let log = open(&env, 3, WhenFull::DropOldest);
    let first = append(&log, 0, true);
    for number in 1..100 {
        log.admit_captured().unwrap();
        append(&log, number, true);
    }
    drop(log);
    let log = open(&env, 3, WhenFull::DropOldest);
    assert_eq!(kept_files(&env).len(), 3);
    log.trim(log.barrier()).unwrap();
    let left = read(&log, Position::START);
    let numbers: Vec<u64> = left.iter().map(|(number, _)| *number).collect();
    assert!(numbers.len() > 10 && numbers.is_sorted());
    assert_eq!(numbers.last(), Some(&99));
    let told = log.changes(first).err().unwrap().to_string();
    assert!(told.contains("were removed"), "{told}");
}

#[test]
fn a_damaged_segment_is_an_error_with_file_and_offset() {
    let env = MemEnv::new(6);
    let log = open(&env, 1000, WhenFull::Block);
    let positions: Vec<Position> = (0..20).map(|number| append(&log, number, true)).collect();
    drop(log);
    let log = open(&env, 1000, WhenFull::Block);
    log.trim(log.barrier()).unwrap();
    let damaged = &kept_files(&env)[0];
    env.corrupt_byte(damaged, u64::from(positions[3].offset) + 100, 1)
        .unwrap();
    let mut changes = log.changes(Position::START).unwrap();
    assert_eq!(changes.by_ref().take(3).filter(Result::is_ok).count(), 3);
    match changes.next() {
        Some(Err(Error::Corrupt { file, offset, .. })) => {
            assert_eq!((&file, offset), (damaged, u64::from(positions[3].offset)));
        }
        other => panic!("{other:?}"),
    }
    assert!(changes.next().is_none());
}

#[test]
fn released_segments_make_room_and_who_was_behind_is_told() {
    let env = MemEnv::new(6);
    let log = open(&env, 3, WhenFull::Block);
    let mut accepted = 0;
    while try_append(&log, accepted, true).is_ok() {
        accepted += 1;
    }
    let all = read(&log, Position::START);
    let behind = all[0].1;
    let last = all[all.len() - 1].1;
    let (segments, bytes) = log.release_captured(last.segment).unwrap();
    assert!(
        segments >= 1 && bytes >= segments * u64::from(SEGMENT_BYTES),
        "{segments}, {bytes}"
    );
    log.admit_captured().unwrap();
    let Err(refused) = log.changes(behind) else {
        panic!("changes behind {behind} are gone")
    };
    assert!(refused.to_string().contains("or they were released"), "{refused}");
    let left = read(&log, Position::START);
    assert!(left.iter().all(|(_, next)| next.segment >= last.segment));
    assert_eq!(log.release_captured(last.segment).unwrap(), (0, 0));
}

#[test]
fn a_planned_sync_comes_although_nobody_waits_for_it() {
    let log = open(&MemEnv::new(1), 100, WhenFull::Block);
    for number in 0..3u64 {
        let body = number.to_be_bytes();
        let envelope = Envelope {
            is_captured: true,
            ..Envelope::mutation(&body)
        };
        let position = log.append(&envelope).unwrap();
        log.sync_later();
        log.wait_for_changes(position, Duration::from_secs(60));
        assert!(log.synced() > position);
    }
}
