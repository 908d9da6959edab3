//! What a power loss leaves of the in-memory disk.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;

use ilion_env::{CrashRule, Env, MemEnv, Moment};

fn read(env: &MemEnv, path: &str) -> Option<Vec<u8>> {
    env.read_all(Path::new(path), 1 << 20).ok()
}

fn create(env: &MemEnv, path: &str, bytes: &[u8]) -> Box<dyn ilion_env::WriteFile> {
    let mut file = env.create(Path::new(path)).unwrap();
    file.append(bytes).unwrap();
    file
}

#[test]
fn unsynced_bytes_and_names_are_lost() {
    let env = MemEnv::new(1);
    env.create_dir_all(Path::new("d")).unwrap();
    let mut synced = create(&env, "d/a", b"synced");
    synced.sync().unwrap();
    env.sync_dir(Path::new("d")).unwrap();
    synced.append(b" and not").unwrap();
    create(&env, "d/nameless", b"x").sync().unwrap();
    let after = env.crash(CrashRule::LoseUnsynced);
    assert_eq!(read(&after, "d/a").unwrap(), b"synced");
    assert!(!after.exists(Path::new("d/nameless")));
    let killed = env.crash(CrashRule::KeepAll);
    assert_eq!(read(&killed, "d/a").unwrap(), b"synced and not");
    assert_eq!(read(&killed, "d/nameless").unwrap(), b"x");
}

#[test]
fn an_unsynced_rename_leaves_the_old_or_the_new_name() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let env = MemEnv::new(1);
        create(&env, "old", b"new content").sync().unwrap();
        create(&env, "target", b"old content").sync().unwrap();
        env.sync_dir(Path::new("")).unwrap();
        env.rename(Path::new("old"), Path::new("target")).unwrap();
        let after = env.crash(CrashRule::Seeded(seed));
        let target = read(&after, "target").unwrap();
        assert_eq!(
            after.exists(Path::new("old")),
            target == b"old content",
            "seed {seed}"
        );
        seen.insert(target);
    }
    assert_eq!(seen.len(), 2, "some seeds keep the rename and some lose it");
}

#[test]
fn a_replaced_file_is_old_or_new_at_every_sync_and_seed() {
    let env = MemEnv::new(1);
    env.write_atomically(Path::new("a"), &[1; 9000]).unwrap();
    env.on_sync(|env, _| {
        for seed in 0..200 {
            let content = read(&env.crash(CrashRule::Seeded(seed)), "a").unwrap();
            assert!(content == [1; 9000] || content == [2; 9000], "seed {seed}");
        }
    });
    env.write_atomically(Path::new("a"), &[2; 9000]).unwrap();
    assert_eq!(read(&env.crash(CrashRule::LoseUnsynced), "a").unwrap(), [2; 9000]);
}

#[test]
fn torn_pages_mix_old_and_new_sectors_but_never_touch_synced_pages() {
    let mut torn = 0;
    for seed in 0..200 {
        let env = MemEnv::new(1);
        let mut file = create(&env, "a", &[1; 8192]);
        file.sync().unwrap();
        env.sync_dir(Path::new("")).unwrap();
        file.write_at(4096, &[2; 4096]).unwrap();
        let after = read(&env.crash(CrashRule::Seeded(seed)), "a").unwrap();
        assert_eq!(after[..4096], [1; 4096]);
        let sectors: Vec<u8> = after[4096..].chunks(512).map(|sector| sector[0]).collect();
        assert!(after[4096..].chunks(512).all(|sector| sector == [sector[0]; 512]));
        torn += usize::from(sectors.contains(&1) && sectors.contains(&2));
    }
    assert!(torn > 0, "some seed tears the page");
}

#[test]
fn the_hook_sees_each_sync_before_and_after_it_takes_effect() {
    let env = MemEnv::new(1);
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    env.on_sync(move |env, event| {
        let survived = read(&env.crash(CrashRule::LoseUnsynced), "a").unwrap_or_default();
        sink.lock().push((event.number, event.moment, survived));
    });
    let mut file = create(&env, "a", b"x");
    env.sync_dir(Path::new("")).unwrap();
    file.sync().unwrap();
    let expected = [
        (1, Moment::BeforeSync, vec![]),
        (1, Moment::AfterSync, vec![]),
        (2, Moment::BeforeSync, vec![]),
        (2, Moment::AfterSync, b"x".to_vec()),
    ];
    assert_eq!(*seen.lock(), expected);
    assert_eq!(env.sync_count(), 2);
}

#[test]
fn a_shortened_file_comes_back_with_its_old_or_new_size_and_zeros_beyond() {
    for seed in 0..50 {
        let env = MemEnv::new(1);
        let mut file = create(&env, "a", &[1; 6000]);
        file.sync().unwrap();
        env.sync_dir(Path::new("")).unwrap();
        file.truncate(100).unwrap();
        let after = env.crash(CrashRule::Seeded(seed));
        let size = read(&after, "a").unwrap().len();
        assert!((100..=6000).contains(&size));
        after
            .open_append(Path::new("a"))
            .unwrap()
            .preallocate(7000)
            .unwrap();
        assert_eq!(read(&after, "a").unwrap()[size.max(6000)..], [0; 1000][..]);
    }
}

#[test]
fn the_hook_sees_each_rename_before_it_is_durable() {
    let env = MemEnv::new(1);
    create(&env, "a", b"x").sync().unwrap();
    env.sync_dir(Path::new("")).unwrap();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    env.on_sync(move |env, event| {
        let old_name_survives = read(&env.crash(CrashRule::LoseUnsynced), "a").is_some();
        let new_name_is_there = read(env, "b").is_some();
        sink.lock()
            .push((event.moment, old_name_survives, new_name_is_there));
    });
    env.rename(Path::new("a"), Path::new("b")).unwrap();
    assert_eq!(*seen.lock(), [(Moment::AfterRename, true, true)]);
}
