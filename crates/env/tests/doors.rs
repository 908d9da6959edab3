//! The guarantees of every `Env`, tested on the operating system and on the in-memory disk.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::path::Path;
use std::sync::Arc;

use ilion_env::IoVerb;
use ilion_env::{Env, FaultEnv, MemEnv, RealEnv, account};

fn for_each_env(check: impl Fn(&dyn Env, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    check(&*RealEnv::new(), dir.path());
    let mem = MemEnv::new(1);
    mem.create_dir_all(Path::new("/disk")).unwrap();
    check(&mem, Path::new("/disk"));
    mem.create_dir_all(Path::new("/faulty")).unwrap();
    check(&*FaultEnv::new(mem.shared()), Path::new("/faulty"));
}

fn write(env: &dyn Env, path: &Path, bytes: &[u8]) {
    let mut file = env.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    for_each_env(|env, dir| {
        let path = dir.join("a");
        let content: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        write(env, &path, &content);
        let file = env.open_read(&path).unwrap();
        assert_eq!(
            (file.size_bytes(), env.file_size(&path).unwrap()),
            (10_000, 10_000)
        );
        let mut middle = [0; 5000];
        file.read_exact_at(3000, &mut middle).unwrap();
        assert_eq!(middle[..], content[3000..8000]);
        assert_eq!(file.read_at(9_990, &mut middle).unwrap(), 10);
        assert!(
            file.read_exact_at(9_990, &mut middle)
                .unwrap_err()
                .is_unexpected_end()
        );
        assert_eq!(env.read_all(&path, 10_000).unwrap(), content);
        assert!(env.read_all(&path, 9_999).is_err());
    });
}

#[test]
fn what_was_written_is_never_taken_for_space_that_was_not() {
    for_each_env(|env, dir| {
        let path = dir.join("reserved");
        let mut file = env.create(&path).unwrap();
        file.preallocate(1 << 20).unwrap();
        file.write_at(100, b"first").unwrap();
        let file = env.open_read(&path).unwrap();
        assert!(file.data_from(0).unwrap().is_some_and(|at| at <= 100));
        assert_eq!(file.data_from(104).unwrap(), Some(104));
        // A file system that does not know returns the given offset.
        assert!(file.data_from(500_000).unwrap().is_none_or(|at| at == 500_000));
        env.open_append(&path)
            .unwrap()
            .write_at(900_000, b"last")
            .unwrap();
        assert!(file.data_from(500_000).unwrap().is_some_and(|at| at <= 900_000));
        assert_eq!(file.data_from(1 << 20).unwrap(), None);
    });
}

#[test]
fn a_file_goes_on_where_it_ended() {
    for_each_env(|env, dir| {
        let path = dir.join("a");
        write(env, &path, b"one");
        let mut file = env.open_append(&path).unwrap();
        assert_eq!(file.position(), 3);
        file.append(b"two").unwrap();
        file.write_at(0, b"O").unwrap();
        assert_eq!(env.read_all(&path, 99).unwrap(), b"Onetwo");
        file.truncate(4).unwrap();
        file.append(b"!").unwrap();
        assert_eq!(env.read_all(&path, 99).unwrap(), b"Onet!");
        file.preallocate(8).unwrap();
        assert_eq!(env.read_all(&path, 99).unwrap(), b"Onet!\0\0\0");
    });
}

#[test]
fn names_are_taken_renamed_linked_listed_and_removed() {
    for_each_env(|env, dir| {
        let (a, b, sub) = (dir.join("a"), dir.join("b"), dir.join("sub/deep"));
        write(env, &a, b"first");
        assert!(env.create(&a).map(drop).unwrap_err().is_already_exists());
        env.hard_link(&a, &b).unwrap();
        assert!(env.hard_link(&a, &b).unwrap_err().is_already_exists());
        env.create_dir_all(&sub).unwrap();
        env.create_dir_all(&sub).unwrap();
        env.rename(&b, &sub.join("c")).unwrap();
        assert_eq!(env.read_all(&sub.join("c"), 99).unwrap(), b"first");
        let listed: Vec<_> = env
            .list(dir)
            .unwrap()
            .into_iter()
            .map(|e| (e.name, e.is_dir, e.size_bytes))
            .collect();
        assert_eq!(&listed[..1], [("a".to_owned(), false, 5)]);
        assert_eq!(listed.last().unwrap(), &("sub".to_owned(), true, 0));
        assert!(env.remove_dir(&dir.join("sub")).is_err());
        env.remove_dir_all(&dir.join("sub")).unwrap();
        env.remove_file(&a).unwrap();
        assert!(!env.exists(&a) && !env.exists(&sub));
        assert!(env.open_read(&a).map(drop).unwrap_err().is_not_found());
    });
}

#[test]
fn a_lock_is_held_once() {
    for_each_env(|env, dir| {
        let held = env.lock(&dir.join("LOCK")).unwrap();
        assert!(env.lock(&dir.join("LOCK")).map(drop).unwrap_err().is_locked());
        drop(held);
        env.lock(&dir.join("LOCK")).unwrap();
    });
}

#[test]
fn a_small_file_is_replaced_as_a_whole() {
    for_each_env(|env, dir| {
        env.write_atomically(&dir.join("a"), b"one").unwrap();
        env.write_atomically(&dir.join("a"), b"two").unwrap();
        assert_eq!(env.read_all(&dir.join("a"), 99).unwrap(), b"two");
    });
}

#[test]
fn clocks_move_and_ids_are_unique() {
    for_each_env(|env, dir| {
        assert!(env.now_secs() > 1_600_000_000);
        assert!(env.unique_micros() < env.unique_micros());
        assert_ne!(env.time_uuid(), env.time_uuid());
        assert_ne!(env.random_uuid(), env.random_uuid());
        assert_eq!(env.random_uuid().get_version_num(), 4);
        assert!(env.monotonic_nanos() <= env.monotonic_nanos());
        assert!(env.free_space_bytes(dir).unwrap() > 0);
        assert!(env.total_space_bytes(dir).unwrap() >= env.free_space_bytes(dir).unwrap());
    });
}

#[test]
fn io_is_charged_to_the_scope_that_caused_it() {
    for_each_env(|env, dir| {
        let outer = account::begin();
        write(env, &dir.join("nb-1-big-Data.db"), &[7; 100]);
        let file = env.open_read(&dir.join("nb-1-big-Data.db")).unwrap();
        let inner = account::begin();
        file.read_exact_at(0, &mut [0; 60]).unwrap();
        let io = inner.finish();
        assert_eq!((io.reads, io.bytes_read, io.writes, io.syncs), (1, 60, 0, 0));
        let io = outer.finish();
        assert_eq!((io.reads, io.writes, io.bytes_written, io.syncs), (1, 1, 100, 1));
    });
    let (_, of_data) = account::totals()
        .into_iter()
        .find(|(kind, _)| *kind == ilion_env::FileKind::Data)
        .unwrap();
    assert!(of_data.bytes_read >= 60);
}

#[test]
fn a_traced_request_knows_which_file_each_io_went_to() {
    for_each_env(|env, dir| {
        let path = dir.join("nb-1-big-Data.db");
        account::begin_trace();
        write(env, &path, &[7; 100]);
        env.open_read(&path)
            .unwrap()
            .read_exact_at(30, &mut [0; 60])
            .unwrap();
        let events = account::finish_trace();
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event.verb, event.offset, event.bytes))
            .collect();
        assert_eq!(
            seen,
            [
                (IoVerb::Wrote, 0, 100),
                (IoVerb::Synced, 0, 0),
                (IoVerb::Read, 30, 60)
            ]
        );
        assert!(events.iter().all(|event| event.path == path));
        env.open_read(&path)
            .unwrap()
            .read_exact_at(0, &mut [0; 60])
            .unwrap();
        assert!(account::finish_trace().is_empty());
    });
}

#[test]
fn fault_rules_bend_the_calls_they_name() {
    let mem = MemEnv::new(1);
    let env = FaultEnv::new(mem.shared());
    env.add("fail write \"a\" at 2").unwrap();
    env.add("no_space create \"full*\"").unwrap();
    env.add("short_write write \"torn\"").unwrap();
    env.add("bit_flip read \"rot\"").unwrap();
    env.add("fail sync \"a\"").unwrap();
    let mut file = env.create(Path::new("a")).unwrap();
    file.append(b"one").unwrap();
    assert_eq!(
        file.append(b"two").unwrap_err().to_string(),
        "cannot write a: Input/output error (os error 5)"
    );
    file.append(b"three").unwrap();
    assert!(file.sync_handle().sync().is_err());
    assert_eq!(mem.read_all(Path::new("a"), 99).unwrap(), b"onethree");
    assert!(
        env.create(Path::new("full1"))
            .map(drop)
            .unwrap_err()
            .is_no_space()
    );
    env.create(Path::new("torn"))
        .unwrap()
        .append(b"12345678")
        .unwrap_err();
    assert_eq!(mem.read_all(Path::new("torn"), 99).unwrap(), b"1234");
    mem.create(Path::new("rot")).unwrap().append(b"abc").unwrap();
    assert_ne!(env.read_all(Path::new("rot"), 99).unwrap(), b"abc");
    env.clear();
    assert_eq!(env.read_all(Path::new("rot"), 99).unwrap(), b"abc");
}

#[test]
fn a_full_disk_says_so() {
    let env = MemEnv::new(1);
    env.set_capacity_bytes(100);
    let mut file = env.create(Path::new("a")).unwrap();
    file.append(&[0; 90]).unwrap();
    assert!(file.append(&[0; 20]).unwrap_err().is_no_space());
    assert!(file.preallocate(101).unwrap_err().is_no_space());
    assert_eq!(env.free_space_bytes(Path::new("")).unwrap(), 10);
}

#[test]
fn an_env_is_shared_as_a_trait_object() {
    let env: Arc<dyn Env> = RealEnv::new();
    assert!(!env.exists(Path::new("/no/such/file")));
}

#[test]
fn what_is_made_is_its_owners_alone_unless_the_umask_says_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = tempfile::tempdir().unwrap();
    let env = RealEnv::new();
    for (umask, of_files, of_dirs) in [(None, 0o600, 0o700), (Some(0o027), 0o640, 0o750)] {
        if let Some(umask) = umask {
            env.set_umask(umask);
        }
        let made = dir.path().join(format!("{of_dirs:o}/below"));
        env.create_dir_all(&made).unwrap();
        assert_eq!([mode(&made), mode(made.parent().unwrap())], [of_dirs; 2]);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| made.join(name));
        write(&*env, &a, b"x");
        drop(env.create_or_truncate(&b).unwrap());
        drop(env.open_append(&c).unwrap());
        drop(env.lock(&d).unwrap());
        for path in [a, b, c, d] {
            assert_eq!(mode(&path), of_files, "{}", path.display());
        }
        let private = made.join("above/private");
        env.create_private_dir_all(&private).unwrap();
        env.create_private_dir_all(&private).unwrap();
        assert_eq!(
            [mode(private.parent().unwrap()), mode(&private)],
            [of_dirs, 0o700]
        );
        drop(env.open_append_private(&private.join("e")).unwrap());
        assert_eq!(mode(&private.join("e")), 0o600);
        assert!(env.create_private_dir_all(&made.join("a")).is_err());
    }
}
