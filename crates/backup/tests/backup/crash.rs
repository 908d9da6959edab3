//! A power loss, or kill -9, at any sync of a backup, a delete and a restore; then the tool runs again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_backup::{Catalogue, Directory, delete};
use ilion_env::{CrashRule, Env, MemEnv, Moment};
use parking_lot::Mutex;

use crate::node::{Node, Rows, of, restore, verify_all};

/// Crashes that are looked at; there are more syncs.
const CRASHES_MAX: usize = 36;

struct World {
    env: MemEnv,
    node: Node,
    rows_of_one: Rows,
    rows_of_two: Rows,
}

fn disk(env: &MemEnv) -> Arc<dyn Env> {
    env.shared()
}

fn destination(env: &MemEnv) -> Directory {
    Directory::new(disk(env), PathBuf::from("/backups"))
}

/// A node with the backup `one`, and rows behind it.
fn world() -> World {
    let env = MemEnv::new(24);
    let node = Node::open(&disk(&env), Path::new("/node")).with_table();
    for i in 0..20 {
        node.put(i % 5, i / 5, &format!("value {i}"));
    }
    node.create(&destination(&env), "one").unwrap();
    let rows_of_one = node.rows();
    node.put(1, 1, "two");
    node.put(7, 7, "two");
    let rows_of_two = node.rows();
    World {
        env,
        node,
        rows_of_one,
        rows_of_two,
    }
}

/// What the disk may be if the machine stops while `work` is done.
fn crashes(env: &MemEnv, work: impl FnOnce()) -> Vec<MemEnv> {
    let noted: Arc<Mutex<Vec<MemEnv>>> = Arc::default();
    let notes = noted.clone();
    let number = Mutex::new(0_u64);
    env.on_sync(move |env, event| {
        if event.moment == Moment::BeforeSync {
            let mut number = number.lock();
            *number += 1;
            let rule = match *number % 3 {
                0 => CrashRule::LoseUnsynced,
                1 => CrashRule::KeepAll,
                _ => CrashRule::Seeded(*number),
            };
            notes.lock().push(env.crash(rule));
        }
    });
    work();
    env.on_sync(|_, _| {});
    let all = std::mem::take(&mut *noted.lock());
    assert!(all.len() > 10, "{}", all.len());
    let stride = all.len().div_ceil(CRASHES_MAX);
    // The last ones are where most is decided.
    let last = all.len().saturating_sub(6);
    let chosen = all.into_iter().enumerate();
    let chosen = chosen.filter(|(index, _)| index % stride == 0 || *index >= last);
    chosen.map(|(_, env)| env).collect()
}

fn names(env: &MemEnv) -> Vec<String> {
    let destination = destination(env);
    let backups = Catalogue::open(&destination).unwrap().backups().unwrap();
    backups.into_iter().map(|backup| backup.name).collect()
}

fn check_whole(env: &MemEnv, number: usize) {
    let findings = verify_all(&disk(env), &destination(env)).findings;
    assert_eq!(findings, [], "crash {number}");
}

fn check_restore(env: &MemEnv, name: &str, expected: &Rows, number: usize) {
    let target = Path::new("/restored");
    restore(&disk(env), &destination(env), of(name), target)
        .unwrap_or_else(|error| panic!("crash {number}: {error}"));
    let mut node = Node::open(&disk(env), target);
    assert_eq!(node.rows(), *expected, "crash {number}");
    node.close();
    env.remove_dir_all(target).unwrap();
}

#[test]
fn a_backup_that_was_cut_off_is_not_there_and_harms_no_other() {
    let world = world();
    let crashes = crashes(&world.env, || {
        world.node.create(&destination(&world.env), "two").unwrap();
    });
    for (number, env) in crashes.iter().enumerate() {
        check_whole(env, number);
        let is_there = names(env) == ["one", "two"];
        assert!(is_there || names(env) == ["one"], "crash {number}");
        check_restore(env, "one", &world.rows_of_one, number);
        let mut node = Node::open(&disk(env), Path::new("/node"));
        assert_eq!(node.rows(), world.rows_of_two, "crash {number}");
        let name = if is_there { "three" } else { "two" };
        node.create(&destination(env), name).unwrap();
        assert!(node.engine().snapshots().unwrap().is_empty(), "crash {number}");
        node.close();
        check_whole(env, number);
        check_restore(env, name, &world.rows_of_two, number);
    }
}

#[test]
fn a_delete_that_was_cut_off_takes_nothing_of_other_backups_and_can_be_repeated() {
    let mut world = world();
    world.node.create(&destination(&world.env), "two").unwrap();
    world.node.close();
    let one = ["one".to_owned()];
    let crashes = crashes(&world.env, || {
        delete(&disk(&world.env), &destination(&world.env), &one, false).unwrap();
    });
    for (number, env) in crashes.iter().enumerate() {
        check_whole(env, number);
        let is_there = names(env) == ["one", "two"];
        assert!(is_there || names(env) == ["two"], "crash {number}");
        let names: &[String] = if is_there { &one } else { &[] };
        delete(&disk(env), &destination(env), names, false).unwrap();
        check_whole(env, number);
        let again = delete(&disk(env), &destination(env), &[], false).unwrap();
        assert_eq!(again.objects, 0, "crash {number}");
        check_restore(env, "two", &world.rows_of_two, number);
    }
}

#[test]
fn a_restore_that_was_cut_off_leaves_no_node_or_a_whole_one() {
    let mut world = world();
    world.node.close();
    let target = Path::new("/restored");
    let crashes = crashes(&world.env, || {
        restore(&disk(&world.env), &destination(&world.env), of("one"), target).unwrap();
    });
    let mut whole = 0;
    for (number, env) in crashes.iter().enumerate() {
        if env.exists(target) {
            whole += 1;
            let mut node = Node::open(&disk(env), target);
            assert_eq!(node.rows(), world.rows_of_one, "crash {number}");
            node.close();
            env.remove_dir_all(target).unwrap();
        }
        check_restore(env, "one", &world.rows_of_one, number);
    }
    assert!(whole < crashes.len());
}
