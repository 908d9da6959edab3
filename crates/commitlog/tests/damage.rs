//! Bytes that changed: the same records, a clear error, or a torn tail. Never other records, never a panic.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;

use ilion_commitlog::{
    CommitLog, Damage, Envelope, Error, Kind, LogStretch, Missing, Mode, Options, Position, ReplayReport,
    SegmentId,
};
use ilion_env::{CrashRule, Env, MemEnv};

fn options(damage: Damage) -> Options {
    Options {
        segment_bytes: 4096,
        mode: Mode::Batch,
        damage,
        ..Options::default()
    }
}

fn replay(env: &MemEnv, damage: Damage) -> Result<(Vec<Vec<u8>>, ReplayReport), Error> {
    let mut found = Vec::new();
    let opened = CommitLog::open(
        env.shared(),
        Path::new("log"),
        options(damage),
        &mut |_, envelope| {
            // In the place of records that were lost or given up.
            if envelope.kind == Kind::Noop {
                return Ok(());
            }
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

/// A log of records that were synced, and others that were only written; as kill -9 leaves it.
fn half_synced(kinds: &[Kind]) -> (MemEnv, Vec<Position>) {
    let env = MemEnv::new(1);
    let unhurried = Options {
        mode: Mode::Periodic {
            period_millis: 1_000_000,
        },
        ..options(Damage::Refuse)
    };
    let open = || {
        CommitLog::open(env.shared(), Path::new("log"), unhurried.clone(), &mut |_, _| {
            Ok(())
        })
        .unwrap()
        .0
    };
    let mut positions = Vec::new();
    let mut log = open();
    for (number, kind) in (0..).zip(kinds) {
        let body = body(number);
        let envelope = Envelope {
            kind: *kind,
            ..Envelope::mutation(&body)
        };
        if number == 3 {
            log.close().unwrap();
            log = open();
        }
        positions.push(log.append(&envelope).unwrap());
    }
    log.written(*positions.last().unwrap()).unwrap();
    (env.crash(CrashRule::KeepAll), positions)
}

fn damage_at(env: &MemEnv, position: Position, offset: u32) {
    let path = format!("log/ilion-1-{}.log", position.segment);
    env.corrupt_byte(Path::new(&path), u64::from(position.offset + offset), 1)
        .unwrap();
}

#[test]
fn a_damaged_record_that_was_not_synced_costs_only_itself() {
    // In the length of a record, in its checksum, in its payload.
    for offset in [0, 9, 30] {
        let (env, positions) = half_synced(&[Kind::Mutation; 40]);
        let segments: Vec<_> = positions.iter().map(|position| position.segment).collect();
        assert!(segments[3] < segments[39], "more than one segment");
        let last_of_first = segments
            .iter()
            .rposition(|segment| *segment == segments[3])
            .unwrap();
        let lost = [5, 6, 11, last_of_first];
        for number in lost {
            damage_at(&env, positions[number], offset);
        }
        let expected: Vec<_> = (0..40)
            .filter(|number| !lost.contains(number))
            .map(|number| body(number as u8))
            .collect();
        let (found, report) = replay(&env, Damage::Refuse).unwrap();
        assert_eq!(found, expected, "byte {offset}");
        assert!((3..=4).contains(&report.holes.len()), "{report:?}");
        assert_eq!(report.holes[0].position, positions[5]);
        let lost_bytes: u64 = lost
            .iter()
            .map(|number| body(*number as u8).len() as u64 + 56)
            .sum();
        assert_eq!(
            report.holes.iter().map(|hole| hole.bytes).sum::<u64>(),
            lost_bytes,
            "{report:?}"
        );
        assert_eq!((report.torn_tail, report.records_given_up), (None, 0));
        // From then on the log is whole.
        let (again, report) = replay(&env.crash(CrashRule::LoseUnsynced), Damage::Refuse).unwrap();
        assert_eq!(again, expected);
        assert_eq!(
            (report.holes, report.torn_tail, report.missing),
            (vec![], None, vec![])
        );
    }
}

/// Flips, zeros and random bytes over stretches of what was not synced.
#[test]
fn any_damage_of_what_was_not_synced_costs_only_the_records_that_it_touches() {
    let (original, positions) = half_synced(&[Kind::Mutation; 40]);
    let end_of = |number: usize| positions[number].offset + 56 + body(number as u8).len() as u32;
    for seed in 0..400 {
        let mut random = ilion_env::Seeded::new(seed);
        let env = original.crash(CrashRule::KeepAll);
        let mut touched = Vec::new();
        for _ in 0..=random.below(3) {
            let first = 3 + random.below(37) as usize;
            let segment = positions[first].segment;
            let from = positions[first].offset
                + random.below(u64::from(end_of(first) - positions[first].offset)) as u32;
            let mut bytes = vec![0; 1 + random.below(600) as usize];
            if random.one_in(2) {
                random.fill(&mut bytes);
            }
            let to = from + bytes.len() as u32;
            let path = format!("log/ilion-1-{segment}.log");
            let mut file = env.open_append(Path::new(&path)).unwrap();
            bytes.truncate((4096 - from) as usize);
            file.write_at(u64::from(from), &bytes).unwrap();
            touched.extend((3..40).filter(|number| {
                let is_there = positions[*number].segment == segment;
                is_there && positions[*number].offset < to && end_of(*number) > from
            }));
        }
        let (found, report) = replay(&env, Damage::Refuse).unwrap();
        let untouched = (0..40).filter(|number| !touched.contains(number));
        let expected: Vec<_> = untouched.map(|number| body(number as u8)).collect();
        assert!(
            found
                .iter()
                .all(|found| (0..40).any(|number| *found == body(number))),
            "seed {seed}"
        );
        // Damage may leave a record as it was: zeros over zeros.
        assert!(
            expected.iter().all(|expected| found.contains(expected)),
            "seed {seed} {report:?}"
        );
        let is_told = !report.holes.is_empty() || report.torn_tail.is_some();
        assert!(is_told || found.len() == 40, "seed {seed} {report:?}");
        let (again, report) = replay(&env.crash(CrashRule::LoseUnsynced), Damage::Refuse).unwrap();
        assert_eq!(
            (again, report.holes, report.torn_tail),
            (found, vec![], None),
            "seed {seed}"
        );
    }
}

#[test]
fn what_was_decided_by_what_was_lost_is_given_up_and_stays_given_up() {
    for kind in [Kind::Cas, Kind::Schema] {
        what_was_decided_is_given_up(kind);
    }
}

fn what_was_decided_is_given_up(kind: Kind) {
    let mut kinds = [Kind::Mutation; 10];
    kinds[4] = kind;
    kinds[8] = kind;
    let (env, positions) = half_synced(&kinds);
    assert_eq!(
        replay(&env.crash(CrashRule::KeepAll), Damage::Refuse)
            .unwrap()
            .0
            .len(),
        10
    );
    damage_at(&env, positions[6], 20);
    let (found, report) = replay(&env, Damage::Refuse).unwrap();
    assert_eq!(found, [0, 1, 2, 3, 4, 5, 7, 9].map(body));
    assert_eq!(report.records_given_up, 1);
    let (again, report) = replay(&env.crash(CrashRule::LoseUnsynced), Damage::Refuse).unwrap();
    assert!(!again.contains(&body(8)) && again.contains(&body(9)));
    assert_eq!((report.records_given_up, report.holes), (0, vec![]));
}

#[test]
fn damage_before_what_was_synced_refuses_the_start_whatever_follows() {
    let (env, positions) = half_synced(&[Kind::Mutation; 10]);
    damage_at(&env, positions[1], 20);
    let Err(Error::Corrupt { offset, .. }) = replay(&env, Damage::Refuse) else {
        panic!("it was opened");
    };
    assert_eq!(offset, u64::from(positions[1].offset));
    damage_at(&env, positions[6], 20);
    let (found, report) = replay(&env, Damage::Skip).unwrap();
    assert_eq!(found, [0, 2, 3, 4, 5, 7, 8, 9].map(body));
    assert_eq!((report.skipped.len(), report.holes.len()), (1, 1));
}

fn replay_known(env: &MemEnv, known: LogStretch) -> ReplayReport {
    let options = Options {
        known: Some(known),
        ..options(Damage::Refuse)
    };
    let opened = CommitLog::open(env.shared(), Path::new("log"), options, &mut |_, _| Ok(()));
    opened.unwrap().1
}

/// What a log knows of itself before it is killed.
fn known_log() -> (MemEnv, LogStretch) {
    let env = MemEnv::new(1);
    let mut known = None;
    for _ in 0..2 {
        let options = options(Damage::Refuse);
        let (log, _) = CommitLog::open(env.shared(), Path::new("log"), options, &mut |_, _| Ok(())).unwrap();
        for number in 0..60 {
            let position = log.append(&Envelope::mutation(&body(number))).unwrap();
            log.wait_durable(position).unwrap();
        }
        known = Some(log.stretch(Position::START));
        log.close().unwrap();
        env.advance_micros(60_000_000);
    }
    (env, known.unwrap())
}

fn remove(env: &MemEnv, name: &str) {
    env.remove_file(&Path::new("log").join(name)).unwrap();
}

#[test]
fn a_segment_that_is_missing_is_told_wherever_it_was() {
    let (original, known) = known_log();
    let names: Vec<String> = segments(&original).into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 6);
    assert_eq!(
        replay_known(&original.crash(CrashRule::KeepAll), known).missing,
        []
    );
    for missing in 0..names.len() {
        let env = original.crash(CrashRule::KeepAll);
        remove(&env, &names[missing]);
        let found = replay_known(&env, known).missing;
        assert_eq!(found.len(), 1, "segment {missing} of {}: {found:?}", names.len());
        let is_last = missing + 1 == names.len();
        assert_eq!(
            matches!(found[0], Missing::Tail { to, .. } if to == known.to),
            is_last,
            "{found:?}"
        );
    }
    // What was trimmed is not missing, also where a power loss brings some of it back.
    let env = original.crash(CrashRule::KeepAll);
    remove(&env, &names[1]);
    let ids = names
        .iter()
        .map(|name| name["ilion-1-".len()..name.len() - 4].parse().unwrap());
    let ids: Vec<SegmentId> = ids.map(SegmentId).collect();
    let trimmed = LogStretch {
        from: ids[3],
        ..known
    };
    assert_eq!(replay_known(&env, trimmed).missing, []);
}

#[test]
fn an_end_that_was_cut_off_or_zeroed_is_told_with_how_much() {
    let (original, known) = known_log();
    let (last, size) = segments(&original).pop().unwrap();
    let path = Path::new("log").join(&last);
    for is_cut in [true, false] {
        let env = original.crash(CrashRule::KeepAll);
        let mut file = env.open_append(&path).unwrap();
        match is_cut {
            true => file.truncate(300).unwrap(),
            false => file.write_at(300, &vec![0; size as usize - 300]).unwrap(),
        }
        drop(file);
        let report = replay_known(&env, known);
        let [Missing::Tail { from, to }] = report.missing[..] else {
            panic!("{report:?}");
        };
        assert_eq!((to, from.segment), (known.to, known.to.segment));
        assert!(from.offset <= 300);
    }
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
