//! SSTables that come in pieces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_engine::{Engine, Result};
use ilion_env::{CrashRule, Env, MemEnv};
use ilion_schema::TableId;
use ilion_sstable::{Component, Descriptor};

use crate::support::{Contents, Store, add_column, new_store, open, small_options};
use crate::transfer::{export, filled, neighbour, neighbour_options};

const DATA_DIR: &str = "/neighbour/data";

/// The components of an SSTable, Statistics.db first.
fn components(env: &MemEnv, data: &Path) -> (String, Vec<(String, Vec<u8>)>) {
    let (descriptor, _) = Descriptor::from_path(data).unwrap();
    let paths = descriptor.files(env).unwrap();
    let mut found: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|path| {
            let (_, component) = Descriptor::from_path(path).unwrap();
            (component.name().to_owned(), env.read_all(path, 1 << 20).unwrap())
        })
        .collect();
    found.sort_by_key(|(name, _)| name != Component::Statistics.name());
    (descriptor.base_name(), found)
}

/// Sends an SSTable in pieces of this many bytes.
fn send(engine: &Engine, table: TableId, env: &MemEnv, data: &Path, piece: usize) -> Result<PathBuf> {
    let (name, components) = components(env, data);
    let sizes: Vec<(&str, u64)> = components
        .iter()
        .map(|(name, bytes)| (&**name, bytes.len() as u64))
        .collect();
    let mut load = engine.begin_load(table, &name, &sizes)?;
    for (component, bytes) in &components {
        let mut offset = 0;
        for bytes in bytes.chunks(piece) {
            load.receive(component, offset, crc32(bytes), bytes)?;
            // Its answer was lost.
            load.receive(component, offset, crc32(bytes), bytes)?;
            offset += bytes.len() as u64;
        }
        if bytes.is_empty() {
            load.receive(component, 0, crc32(b""), b"")?;
        }
    }
    engine.finish_load(&load)
}

fn refusal(other: &Store, data: &Path) -> String {
    let sent = send(&other.engine, other.table().id, &other.env, data, 100);
    let reason = sent.unwrap_err().to_string();
    check_clean(&other.env);
    reason
}

fn check_clean(env: &MemEnv) {
    let entries = env.list(Path::new(DATA_DIR)).unwrap();
    let left = entries.iter().find(|entry| entry.name.starts_with("ilion.load-"));
    assert!(left.is_none(), "{left:?}");
}

#[test]
fn pieces_of_any_size_become_the_rows_that_they_were() {
    let store = filled(31);
    let exported = export(&store, "/out");
    for piece in [1, 7, 4096, 1 << 20] {
        let other = neighbour(&MemEnv::new(32));
        for data in &exported {
            // The machine of the sender is another one.
            let path = send(&other.engine, other.table().id, &store.env, data, piece).unwrap();
            assert!(other.env.exists(&path), "{}", path.display());
        }
        assert_eq!(other.contents(), store.contents());
        check_clean(&other.env);
        assert_eq!(other.restart(neighbour_options()).contents(), store.contents());
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_statistics() {
    let store = new_store(33, small_options());
    store.alter(&add_column("extra"));
    store.put("a", 1, "v", 10);
    let exported = export(&store, "/out");
    let other = neighbour(&store.env);
    let (name, components) = components(&store.env, &exported[0]);
    let sizes: Vec<_> = components
        .iter()
        .map(|(name, bytes)| (&**name, bytes.len() as u64))
        .collect();
    let mut load = other.engine.begin_load(other.table().id, &name, &sizes).unwrap();
    let (component, bytes) = &components[0];
    let error = load.receive(component, 0, crc32(bytes), bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the table has no column extra, and has not dropped one"
    );
    drop(load);
    check_clean(&other.env);
    // With the column, it is loaded.
    other.alter(&add_column("extra"));
    send(&other.engine, other.table().id, &store.env, &exported[0], 4096).unwrap();
    assert_eq!(other.contents(), store.contents());
}

#[test]
fn damage_is_named_without_the_directory_of_the_node() {
    let store = filled(34);
    let exported = export(&store, "/out");
    let other = neighbour(&store.env);
    store.env.corrupt_byte(&exported[0], 20, 1).unwrap();
    let reason = refusal(&other, &exported[0]);
    assert!(reason.contains("corrupt file nb-"), "{reason}");
    assert_eq!((other.contents(), other.sstables()), (Contents::new(), 0));
}

#[test]
fn what_is_not_announced_or_not_in_order_is_refused() {
    let store = filled(35);
    let (engine, table) = (&store.engine, store.table().id);
    let sizes = [("Statistics.db", 4), ("Data.db", 4)];
    for (name, components, expected) in [
        ("nb-1-big", &[("Data.db", 4)][..], "nb-1-big has no Statistics.db"),
        ("nb-1-big", &[("Statistics.db", 4)], "nb-1-big has no Data.db"),
        ("nb-1-big", &[], "nb-1-big has no Statistics.db"),
        (
            "nb-1-big",
            &[("../x", 4)],
            "nb-1-big-../x is not the name of a component of an SSTable",
        ),
        (
            "../nb-1-big",
            &sizes,
            "../nb-1-big-Statistics.db is not the name of a component of an SSTable",
        ),
        (
            "nb-1",
            &[("big-Data.db", 4)],
            "nb-1-big-Data.db is not the name of a component of an SSTable",
        ),
        ("zz-1-big", &sizes, "SSTable version zz is not supported"),
    ] {
        let error = engine
            .begin_load(table, name, components)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let begin = || engine.begin_load(table, "nb-1-big", &sizes).unwrap();
    for (component, offset, crc, bytes, expected) in [
        (
            "Data.db",
            0,
            crc32(b"abcd"),
            &b"abcd"[..],
            "Statistics.db comes first",
        ),
        (
            "Index.db",
            0,
            crc32(b"abcd"),
            b"abcd",
            "Statistics.db comes first",
        ),
        (
            "Statistics.db",
            1,
            crc32(b"a"),
            b"a",
            "expected bytes from 0 to 4",
        ),
        (
            "Statistics.db",
            0,
            crc32(b"abcde"),
            b"abcde",
            "expected bytes from 0 to 4",
        ),
        ("Statistics.db", 0, 1, b"a", "were changed on their way"),
        (
            "Statistics.db",
            0,
            crc32(b"abcd"),
            b"abcd",
            "corrupt file nb-1-big-Statistics.db",
        ),
    ] {
        let error = begin()
            .receive(component, offset, crc, bytes)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = engine.finish_load(&begin()).unwrap_err().to_string();
    assert_eq!(
        error,
        "nb-1-big-Statistics.db is incomplete: 0 of 4 bytes were received"
    );
}

#[test]
fn a_full_disk_refuses_and_has_its_space_again() {
    let store = filled(36);
    let exported = export(&store, "/out");
    let other = neighbour(&MemEnv::new(37));
    let env = &other.env;
    let used = u64::MAX - {
        env.set_capacity_bytes(u64::MAX);
        env.free_space_bytes(Path::new(DATA_DIR)).unwrap()
    };
    let send = || send(&other.engine, other.table().id, &store.env, &exported[0], 64);
    env.set_capacity_bytes(used + 100);
    let error = send().unwrap_err().to_string();
    assert!(error.contains("the node's disk has 100 bytes left"), "{error}");
    // The announced bytes fit; the files that the import makes do not.
    let (_, components) = components(&store.env, &exported[0]);
    let bytes: usize = components.iter().map(|(_, bytes)| bytes.len()).sum();
    env.set_capacity_bytes(used + bytes as u64 + 10);
    let error = send().unwrap_err();
    assert!(error.is_shortage(), "{error}");
    check_clean(env);
    assert_eq!((other.contents(), other.sstables()), (Contents::new(), 0));
    env.set_capacity_bytes(u64::MAX);
    send().unwrap();
    assert_eq!(other.sstables(), 1);
}

/// A crash leaves the table with all of the SSTable or without it; the next start removes the rest.
#[test]
fn a_load_survives_a_crash_at_each_sync() {
    let store = filled(38);
    let exported = export(&store, "/out");
    let other = neighbour(&MemEnv::new(39));
    let crashes: Arc<parking_lot::Mutex<Vec<MemEnv>>> = Arc::default();
    let seen = crashes.clone();
    other
        .env
        .on_sync(move |env, event| seen.lock().push(env.crash(CrashRule::Seeded(event.number))));
    send(&other.engine, other.table().id, &store.env, &exported[0], 4096).unwrap();
    other.env.on_sync(|_, _| {});
    let loaded = other.contents();
    let crashes = std::mem::take(&mut *crashes.lock());
    assert!(crashes.len() > 20, "{}", crashes.len());
    let mut outcomes = [0, 0];
    for (number, env) in crashes.iter().enumerate() {
        let store = open(env, neighbour_options()).unwrap();
        check_clean(env);
        let contents = store.contents();
        assert!(
            contents.is_empty() || contents == loaded,
            "crash {number}: {contents:?}"
        );
        outcomes[usize::from(contents == loaded)] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}
