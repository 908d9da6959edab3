//! Bytes that changed: the same records, a clear error, or a torn tail. Never other records, never a panic.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;

use ilion_commitlog::{CommitLog, Damage, Envelope, Error, Mode, Options, Report};
use ilion_env::{CrashRule, Env, MemEnv};

fn options(damage: Damage) -> Options {
    Options {
        segment_bytes: 4096,
        mode: Mode::Batch,
        damage,
        ..Options::default()
    }
}

fn replay(env: &MemEnv, damage: Damage) -> Result<(Vec<Vec<u8>>, Report), Error> {
    let mut found = Vec::new();
    let opened = CommitLog::open(
        env.shared(),
        Path::new("log"),
        options(damage),
        &mut |_, envelope| {
            found.push(envelope.body.to_vec());
            Ok(())
        },
    );
    opened.map(|(_, report)| (found, report))
}

fn body(number: u8) -> Vec<u8> {
    vec![number; 20 + number as usize * 7]
}

/// A disk with some records, each synced; closed, or as kill -9 leaves it.
fn disk(records: u8, is_closed: bool) -> MemEnv {
    let env = MemEnv::new(1);
    let (log, _) = CommitLog::open(
        env.shared(),
        Path::new("log"),
        options(Damage::Refuse),
        &mut |_, _| Ok(()),
    )
    .unwrap();
    for number in 0..records {
        let position = log.append(&Envelope::mutation(&body(number))).unwrap();
        log.wait_durable(position).unwrap();
    }
    if is_closed {
        log.close().unwrap();
        return env;
    }
    env.crash(CrashRule::KeepAll)
}

fn segments(env: &MemEnv) -> Vec<(String, u64)> {
    env.list(Path::new("log"))
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.size_bytes))
        .collect()
}

#[test]
fn each_byte_flipped_is_noticed_or_harmless() {
    for (is_closed, xor) in [(true, 0x01), (false, 0x80), (false, 0xff)] {
        let original = disk(6, is_closed);
        let all: Vec<_> = (0..6).map(body).collect();
        let (name, _) = segments(&original).remove(0);
        let path = Path::new("log").join(name);
        let size = original.file_size(&path).unwrap();
        // Behind the records there are only zeros, one like the other.
        for offset in (0..size.min(700)).chain((700..size).step_by(101)) {
            let env = original.crash(CrashRule::KeepAll);
            env.corrupt_byte(&path, offset, xor).unwrap();
            match replay(&env, Damage::Refuse) {
                Ok((found, report)) => {
                    assert!(all.starts_with(&found), "offset {offset}");
                    // Only the last record has nothing behind it that vouches for it, and only in a log
                    // that was killed.
                    assert!(
                        found.len() >= all.len() - usize::from(!is_closed),
                        "offset {offset} {report:?}"
                    );
                    assert!(
                        found.len() == all.len() || report.torn_tail.is_some(),
                        "offset {offset}"
                    );
                }
                Err(Error::Corrupt { offset: at, .. }) => assert!(at <= offset, "offset {offset}"),
                Err(error) => panic!("offset {offset}: {error}"),
            }
            let (found, _) = replay(&env, Damage::Skip).unwrap();
            assert!(
                found.len() >= all.len() - 1,
                "offset {offset}: one byte costs one record at most"
            );
            assert!(found.iter().all(|body| all.contains(body)), "offset {offset}");
        }
    }
}

#[test]
fn damage_in_an_older_segment_is_refused_with_file_and_offset_or_skipped() {
    let env = disk(60, true);
    let files = segments(&env);
    assert!(files.len() > 3);
    let path = Path::new("log").join(&files[1].0);
    env.corrupt_byte(&path, 100, 1).unwrap();
    let error = replay(&env, Damage::Refuse).unwrap_err();
    let expected = format!(
        "commit log {} is damaged at offset 48: expected a payload that has the checksum that follows it",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(segments(&env), files, "a log that does not open is not changed");
    let (found, report) = replay(&env, Damage::Skip).unwrap();
    assert_eq!((found.len(), report.skipped), (59, vec![(path, 48)]));
}

#[test]
fn a_segment_cut_short_anywhere_is_noticed() {
    let original = disk(60, true);
    let files = segments(&original);
    let all: Vec<_> = (0..60).map(body).collect();
    for (number, (name, size)) in files.iter().enumerate() {
        for cut in (0..*size).step_by(97) {
            let env = original.crash(CrashRule::KeepAll);
            env.open_append(&Path::new("log").join(name))
                .unwrap()
                .truncate(cut)
                .unwrap();
            match replay(&env, Damage::Refuse) {
                Ok((found, _)) if found.len() == all.len() => assert_eq!(found, all),
                Ok((found, _)) => assert!(
                    number + 1 == files.len() && all.starts_with(&found),
                    "{name} cut at {cut}"
                ),
                Err(error) => assert!(
                    matches!(error, Error::Corrupt { .. }),
                    "{name} cut at {cut}: {error}"
                ),
            }
        }
    }
}

#[test]
fn random_bytes_are_no_log_and_no_panic() {
    let mut random = ilion_env::Seeded::new(3);
    for _ in 0..200 {
        let env = MemEnv::new(1);
        env.create_dir_all(Path::new("log")).unwrap();
        for segment in 0..3 {
            let mut bytes = vec![0; random.below(5000) as usize];
            random.fill(&mut bytes);
            let path = format!("log/ilion-1-{segment}.log");
            env.create(Path::new(&path)).unwrap().append(&bytes).unwrap();
        }
        assert!(replay(&env, Damage::Skip).is_ok_and(|(found, _)| found.is_empty()));
    }
}

#[test]
fn records_given_up_behind_skipped_damage_stay_given_up() {
    let env = MemEnv::new(1);
    let unhurried = Options {
        mode: Mode::Periodic {
            period_millis: 1_000_000,
        },
        ..options(Damage::Refuse)
    };
    let (log, _) = CommitLog::open(env.shared(), Path::new("log"), unhurried, &mut |_, _| Ok(())).unwrap();
    let append = |number| log.append(&Envelope::mutation(&body(number))).unwrap();
    let synced: Vec<_> = (0..3)
        .map(|number| {
            let position = append(number);
            log.sync().unwrap();
            position
        })
        .collect();
    let torn = append(3);
    log.written(append(4)).unwrap();

    let env = env.crash(CrashRule::KeepAll);
    let (name, _) = segments(&env).remove(0);
    for position in [synced[1], torn] {
        let path = Path::new("log").join(&name);
        env.corrupt_byte(&path, u64::from(position.offset), 1).unwrap();
    }
    let (first, report) = replay(&env, Damage::Skip).unwrap();
    assert_eq!(first, [body(0), body(2)]);
    assert_eq!(report.torn_tail.unwrap().records_given_up, 1);
    assert_eq!(replay(&env, Damage::Skip).unwrap().0, first);
}

fn spacious(damage: Damage) -> Options {
    Options {
        segment_bytes: 8 << 20,
        ..options(damage)
    }
}

/// As kill -9 leaves it: a segment of 8 MiB with records of 200 KiB, and a spare one.
fn mostly_empty() -> (MemEnv, std::path::PathBuf) {
    let env = MemEnv::new(1);
    let (log, _) = CommitLog::open(
        env.shared(),
        Path::new("log"),
        spacious(Damage::Refuse),
        &mut |_, _| Ok(()),
    )
    .unwrap();
    for number in 0..200 {
        let position = log.append(&Envelope::mutation(&[number; 1000])).unwrap();
        log.wait_durable(position).unwrap();
    }
    let env = env.crash(CrashRule::KeepAll);
    let (name, _) = segments(&env).remove(0);
    (env, Path::new("log").join(name))
}

fn replay_spacious(env: &MemEnv) -> Result<usize, Error> {
    let mut records = 0;
    let opened = CommitLog::open(
        env.shared(),
        Path::new("log"),
        spacious(Damage::Refuse),
        &mut |_, _| {
            records += 1;
            Ok(())
        },
    );
    opened.map(|_| records)
}

#[test]
fn space_that_was_reserved_and_never_written_is_not_read() {
    let (env, _) = mostly_empty();
    let (_, before) = env.served();
    assert_eq!(replay_spacious(&env).unwrap(), 200);
    let (_, after) = env.served();
    assert!(after - before < 600 << 10, "{} bytes read", after - before);
}

#[test]
fn a_hole_before_records_is_damage_and_stray_bytes_far_behind_them_are_none() {
    let (env, path) = mostly_empty();
    let zeros = vec![0; 90_000];
    env.open_append(&path).unwrap().write_at(40_000, &zeros).unwrap();
    assert!(matches!(replay_spacious(&env), Err(Error::Corrupt { offset, .. }) if offset < 40_000));
    let (env, path) = mostly_empty();
    env.corrupt_byte(&path, 5 << 20, 1).unwrap();
    assert_eq!(replay_spacious(&env).unwrap(), 200);
}
