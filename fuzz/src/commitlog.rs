//! Directories of commit log segments.

use std::path::Path;

use ilion_commitlog::{CommitLog, Damage, Envelope, Error, Kind, Mode, Options, read_segments};
use ilion_env::{Env, MemEnv};

use crate::split_choice;

const DIR: &str = "log";
const SEGMENT_BYTES: u32 = 8192;

/// Builds segments out of the pieces that `data` describes, and replays them.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = split_choice(data) else {
        return;
    };
    let env = MemEnv::new(1);
    build(&env, data);
    let damage = if choice & 1 == 0 {
        Damage::Refuse
    } else {
        Damage::Skip
    };
    let read = read(&env, damage);
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        mode: Mode::Batch,
        damage,
        ..Options::default()
    };
    let mut bodies = Vec::new();
    let opened = CommitLog::open(env.shared(), Path::new(DIR), options, &mut |_, envelope| {
        bodies.extend(body_of(envelope));
        Ok(())
    });
    match (opened, read) {
        (Ok((log, _)), Some(expected)) => {
            assert_eq!(bodies, expected, "opening and reading give the same records");
            log.close().expect("closes");
            // What was opened once has neither damage nor a torn tail, unless damage was skipped and is still there.
            assert_eq!(self::read(&env, damage).as_ref(), Some(&expected));
        }
        (Err(error), None) => assert!(is_about_bytes(&error), "{error}"),
        (Ok(_), None) => panic!("opened what could not be read"),
        (Err(error), Some(_)) => assert!(is_about_bytes(&error), "{error}"),
    }
}

/// The body of a record; `None` for those that an open puts where bytes cannot be read.
fn body_of(envelope: Envelope<'_>) -> Option<Vec<u8>> {
    (envelope.kind != Kind::Noop).then(|| envelope.body.to_vec())
}

fn is_about_bytes(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Refused { .. })
}

fn read(env: &MemEnv, damage: Damage) -> Option<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    read_segments(env, Path::new(DIR), damage, &mut |_, envelope| {
        bodies.extend(body_of(envelope));
        Ok(())
    })
    .ok()
    .map(|_| bodies)
}

fn build(env: &MemEnv, mut data: &[u8]) {
    env.create_dir_all(Path::new(DIR)).expect("a directory");
    let mut number = 1;
    let mut segment = header(number);
    while let Some((choice, rest)) = split_choice(data) {
        let Some((size, rest)) = split_choice(rest) else {
            break;
        };
        data = rest;
        let synced = synced(choice, segment.len());
        match choice % 8 {
            0..=2 => record(&mut segment, number, synced, size),
            3 => head(&mut segment, number, u32::MAX, synced),
            4 => segment.extend(std::iter::repeat_n(0, size * 4)),
            5 => {
                let (raw, rest) = data.split_at(size.min(data.len()));
                segment.extend_from_slice(raw);
                data = rest;
            }
            6 => {
                let at = size * 7 % segment.len();
                segment[at] ^= choice.to_le_bytes()[0] | 1;
            }
            _ => {
                write(env, number, &segment);
                number += 1 + u64::from(size == 255);
                segment = header(number);
                if size & 3 == 3 {
                    segment.truncate(size % 48);
                }
            }
        }
        if segment.len() > SEGMENT_BYTES as usize {
            break;
        }
    }
    write(env, number, &segment);
}

fn synced(choice: usize, here: usize) -> u32 {
    match (choice >> 3) & 3 {
        0 => 0,
        1 => 48,
        2 => here as u32,
        _ => (choice >> 5) as u32 * 1000,
    }
}

fn header(number: u64) -> Vec<u8> {
    let mut bytes = b"ILCL".to_vec();
    bytes.extend([0, 1, 0, 0]);
    bytes.extend(number.to_be_bytes());
    bytes.extend([7; 16]);
    bytes.extend(SEGMENT_BYTES.to_be_bytes());
    bytes.extend(0_i64.to_be_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn head(segment: &mut Vec<u8>, number: u64, length: u32, synced: u32) {
    let mut covered = number.to_be_bytes().to_vec();
    covered.extend((segment.len() as u32).to_be_bytes());
    covered.extend(length.to_be_bytes());
    covered.extend(synced.to_be_bytes());
    segment.extend_from_slice(&covered[12..]);
    segment.extend(crc32fast::hash(&covered).to_be_bytes());
}

fn record(segment: &mut Vec<u8>, number: u64, synced: u32, size: usize) {
    let mut payload = vec![0; 40];
    payload[0] = 1;
    payload[1] = 1 + (size % 8) as u8;
    payload.extend(std::iter::repeat_n(size as u8, size));
    head(segment, number, payload.len() as u32, synced);
    segment.extend_from_slice(&payload);
    segment.extend(crc32fast::hash(&payload).to_be_bytes());
}

fn write(env: &MemEnv, number: u64, bytes: &[u8]) {
    let path = Path::new(DIR).join(format!("ilion-1-{number}.log"));
    let mut file = env.create(&path).expect("a file");
    file.append(bytes).expect("bytes");
    file.sync().expect("synced");
    env.sync_dir(Path::new(DIR)).expect("synced");
}
