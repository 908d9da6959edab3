//! Snapshots: what is in them, who makes and removes them, and what failures and power losses leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use ilion_engine::{
    Engine, EngineOptions, Error, ImportSource, SnapshotChoice, SnapshotFacts, SnapshotMemtables,
    SnapshotOrder, TabletPosition,
};
use ilion_env::{CrashRule, Env, MemEnv, Moment, Seeded};
use ilion_schema::{PropertyValue, SchemaChange, TableAlteration};
use parking_lot::Mutex;

use crate::support::{
    Contents, Store, add_column, create_keyspace, create_table, delete_row, drop_table, new_faulty_store,
    new_store, open, put, small_options,
};

fn order(store: &Store, tag: &str) -> SnapshotOrder {
    SnapshotOrder {
        tag: tag.to_owned(),
        tables: vec![store.table().id],
        ..SnapshotOrder::default()
    }
}

fn snapshot(store: &Store, tag: &str) {
    store.engine.snapshot(&order(store, tag)).unwrap();
}

/// Tags of all snapshots.
fn tags(engine: &Engine) -> Vec<String> {
    let all = engine.snapshots().unwrap();
    all.into_iter().map(|facts| facts.tag).collect()
}

fn only(store: &Store) -> SnapshotFacts {
    let mut all = store.engine.snapshots().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Names below a directory, those in its directories included.
fn names(env: &dyn Env, directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in env.list(directory).unwrap_or_default() {
        if entry.is_dir {
            let below = self::names(env, &directory.join(&entry.name));
            names.extend(below.into_iter().map(|name| format!("{}/{name}", entry.name)));
        }
        names.push(entry.name);
    }
    names
}

/// What a table has into which the files of a snapshot are imported.
fn restored(env: &MemEnv, directory: &Path) -> Contents {
    let own = EngineOptions::below(Path::new("/restored"));
    for left in [&own.data_dir, &own.commitlog_dir] {
        if env.exists(left) {
            env.remove_dir_all(left).unwrap();
        }
    }
    let options = EngineOptions {
        data_dir: own.data_dir,
        commitlog_dir: own.commitlog_dir,
        ..small_options()
    };
    let store = open(env, options).unwrap();
    store.alter(&create_keyspace("ks"));
    store.alter(&create_table("ks", "t"));
    let table = store.table().id;
    let report = store
        .engine
        .import(table, directory, ImportSource::Copied)
        .unwrap();
    assert_eq!(report.refused, []);
    store.contents()
}

/// Applies records of a cluster, each with a row of the tables `t` and `u`, until it is dropped.
struct Applying {
    is_ended: Arc<AtomicBool>,
    applied: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Applying {
    fn begin(store: &Arc<Store>) -> Self {
        let (is_ended, applied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (store, ended, count) = (store.clone(), is_ended.clone(), applied.clone());
        let thread = std::thread::spawn(move || {
            let tables = ["t", "u"].map(|name| store.table_named(name));
            while !ended.load(Relaxed) {
                let offset = count.load(Relaxed);
                let number = offset as i32;
                let mutations = tables.each_ref().map(|table| put(table, "k", number, "v", 1));
                let position = TabletPosition { tablet: 0, offset };
                store.engine.apply_at(position, &mutations).unwrap();
                count.store(offset + 1, Relaxed);
            }
        });
        Self {
            is_ended,
            applied,
            thread: Some(thread),
        }
    }

    fn wait_for(&self, records: u64) {
        while self.applied.load(Relaxed) < records {
            std::thread::yield_now();
        }
    }
}

impl Drop for Applying {
    fn drop(&mut self) {
        self.is_ended.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn on_a_node_of_a_cluster_the_snapshots_of_several_tables_are_of_one_moment() {
    let store = new_store(1, small_options());
    store.add_table("u");
    store.engine.hold_purge(0);
    let store = Arc::new(store);
    let applying = Applying::begin(&store);
    for round in 0..3 {
        let acknowledged = applying.applied.load(Relaxed) + 100;
        applying.wait_for(acknowledged);
        let tag = format!("round-{round}");
        let order = SnapshotOrder {
            tag: tag.clone(),
            tables: ["t", "u"].map(|name| store.table_named(name).id).to_vec(),
            ..SnapshotOrder::default()
        };
        store.engine.snapshot(&order).unwrap();
        let all = store.engine.snapshots().unwrap();
        let of_round = all.iter().filter(|facts| facts.tag == tag);
        let rows: Vec<usize> = of_round
            .map(|facts| restored(&store.env, &facts.directory)["k"].len())
            .collect();
        assert!(rows[0] as u64 >= acknowledged, "{rows:?} of {acknowledged}");
        assert_eq!(rows, [rows[0]; 2], "round {round}");
    }
}

#[test]
fn a_snapshot_has_everything_that_was_acknowledged_and_nothing_later() {
    let store = new_store(1, small_options());
    store.put("a", 1, "flushed", 10);
    store.flush();
    store.put("a", 2, "in memory", 10);
    let expected = store.contents();
    snapshot(&store, "before");
    store.put("a", 1, "later", 20);
    store.flush();
    store.engine.compact(store.table().id).unwrap();
    let facts = only(&store);
    assert_eq!(
        (&*facts.keyspace, &*facts.table, &*facts.tag),
        ("ks", "t", "before")
    );
    assert_eq!(facts.directory, store.directory().join("snapshots/before"));
    let bytes = store
        .env
        .read_all(&facts.directory.join("manifest.json"), 1 << 20)
        .unwrap();
    let manifest = String::from_utf8(bytes).unwrap();
    let files = "\"files\" : [ \"nb-1-big-Data.db\", \"nb-2-big-Data.db\" ]";
    assert!(manifest.contains(files), "{manifest}");
    let schema = store
        .env
        .read_all(&facts.directory.join("schema.cql"), 1 << 20)
        .unwrap();
    let schema = String::from_utf8(schema).unwrap();
    assert!(
        schema.starts_with("CREATE TABLE IF NOT EXISTS ks.t ("),
        "{schema}"
    );
    assert_eq!(restored(&store.env, &facts.directory), expected);
    let store = store.restart(small_options());
    assert_eq!(only(&store), facts);
    assert_eq!(store.contents()["a"][&1], "later");
}

#[test]
fn memtables_are_left_out_on_request() {
    let store = new_store(2, small_options());
    store.put("a", 1, "flushed", 10);
    store.flush();
    let expected = store.contents();
    store.put("a", 2, "in memory", 10);
    let order = SnapshotOrder {
        memtables: SnapshotMemtables::LeftOut,
        ..order(&store, "s")
    };
    store.engine.snapshot(&order).unwrap();
    assert_eq!(restored(&store.env, &only(&store).directory), expected);
}

#[test]
fn a_snapshot_of_several_tables_is_of_all_or_none() {
    let store = new_store(3, small_options());
    let other = store.add_table("other");
    snapshot(&store, "s");
    let refused = |tables: Vec<_>, tag: &str| {
        let order = SnapshotOrder {
            tag: tag.to_owned(),
            tables,
            ..SnapshotOrder::default()
        };
        store.engine.snapshot(&order).unwrap_err().to_string()
    };
    let both = vec![other.id, store.table().id];
    assert_eq!(refused(both.clone(), "s"), "Snapshot s already exists.");
    assert_eq!(refused(both, "a/b"), "Snapshot name cannot contain /");
    assert_eq!(tags(&store.engine), ["s"]);
    let short = SnapshotOrder {
        ttl_secs: Some(59),
        ..order(&store, "short")
    };
    let error = store.engine.snapshot(&short).unwrap_err();
    assert_eq!(error.to_string(), "ttl for snapshot must be at least 60 seconds");
}

#[test]
fn what_truncate_and_drop_remove_is_in_a_snapshot() {
    let store = new_store(4, small_options());
    store.put("a", 1, "flushed", 10);
    store.flush();
    store.put("a", 2, "in memory", 10);
    let first = store.contents();
    store.engine.truncate(store.table().id).unwrap();
    // Of an empty table there is no snapshot.
    store.engine.truncate(store.table().id).unwrap();
    let truncated = only(&store);
    let millis = truncated.created_millis;
    assert_eq!(truncated.tag, format!("truncated-{millis}-t"));
    store.put("a", 3, "new", 10);
    let second = store.contents();
    store.alter(&drop_table("ks", "t"));
    store.alter(&create_table("ks", "t"));
    let store = store.restart(small_options());
    assert!(store.contents().is_empty());
    let all = store.engine.snapshots().unwrap();
    let [dropped, truncated] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(
        dropped.tag.starts_with("dropped-") && dropped.tag.ends_with("-t"),
        "{dropped:?}"
    );
    assert_eq!(restored(&store.env, &truncated.directory), first);
    assert_eq!(restored(&store.env, &dropped.directory), second);
    // The directory of the dropped table goes with its last snapshot.
    let old = dropped.directory.parent().unwrap().parent().unwrap();
    assert!(store.env.exists(old));
    assert_eq!(
        store.engine.clear_snapshots(&SnapshotChoice::default()).unwrap(),
        2
    );
    assert!(!store.env.exists(old));
    assert!(store.env.exists(&store.directory()));
    assert_eq!(store.engine.snapshots().unwrap(), []);
}

#[test]
fn a_dropped_keyspace_leaves_a_snapshot_of_each_table_that_wants_one() {
    let store = new_store(5, small_options());
    let other = store.add_table("other");
    let without = store.add_table("without");
    store.alter(&SchemaChange::AlterTable {
        keyspace: "ks".to_owned(),
        table: "without".to_owned(),
        if_exists: false,
        alteration: TableAlteration::Options(
            [("allow_auto_snapshot", PropertyValue::from("false"))]
                .into_iter()
                .collect(),
        ),
    });
    for table in [store.table(), other, without] {
        store.write(put(&table, "a", 1, "v", 10));
    }
    store.alter(&SchemaChange::DropKeyspace {
        name: "ks".to_owned(),
        if_exists: false,
    });
    let all = store.engine.snapshots().unwrap();
    let tables: Vec<_> = all.iter().map(|facts| &*facts.table).collect();
    assert_eq!(tables, ["other", "t"]);
}

#[test]
fn no_snapshot_is_taken_if_the_settings_say_so() {
    let mut options = small_options();
    options.snapshots.is_automatic = false;
    let store = new_store(6, options);
    let directory = store.directory();
    store.put("a", 1, "v", 10);
    store.engine.truncate(store.table().id).unwrap();
    store.put("a", 1, "v", 10);
    store.alter(&drop_table("ks", "t"));
    assert_eq!(store.engine.snapshots().unwrap(), []);
    assert!(!store.env.exists(&directory));
}

#[test]
fn snapshots_are_cleared_by_tag_keyspace_and_age() {
    let store = new_store(7, small_options());
    snapshot(&store, "old");
    store.env.advance_micros(10_000_000);
    let middle_millis = store.env.now_micros() / 1000;
    store.env.advance_micros(10_000_000);
    snapshot(&store, "new");
    snapshot(&store, "other");
    let clear = |choice: &SnapshotChoice| store.engine.clear_snapshots(choice).unwrap();
    let in_other = SnapshotChoice {
        keyspaces: vec!["elsewhere".to_owned()],
        ..SnapshotChoice::default()
    };
    assert_eq!(clear(&in_other), 0);
    let before = SnapshotChoice {
        before_millis: Some(middle_millis),
        ..SnapshotChoice::default()
    };
    assert_eq!(clear(&before), 1);
    assert_eq!(tags(&store.engine), ["new", "other"]);
    let tagged = SnapshotChoice {
        tag: Some("new".to_owned()),
        keyspaces: vec!["ks".to_owned()],
        ..SnapshotChoice::default()
    };
    assert_eq!(clear(&tagged), 1);
    assert_eq!(tags(&store.engine), ["other"]);
}

#[test]
fn a_snapshot_expires_also_after_a_restart() {
    let mut options = small_options();
    options.snapshots.automatic_ttl_secs = Some(100);
    let store = new_store(8, options.clone());
    let kept = SnapshotOrder {
        ttl_secs: Some(200),
        ..order(&store, "longer")
    };
    store.engine.snapshot(&kept).unwrap();
    snapshot(&store, "for_ever");
    store.put("a", 1, "v", 10);
    store.engine.truncate(store.table().id).unwrap();
    let store = store.restart(options);
    let clear = || {
        store.engine.clear_expired_snapshots().unwrap();
        tags(&store.engine)
    };
    assert_eq!(clear().len(), 3);
    store.env.advance_micros(101_000_000);
    assert_eq!(clear(), ["for_ever", "longer"]);
    store.env.advance_micros(100_000_000);
    assert_eq!(clear(), ["for_ever"]);
}

#[test]
fn the_true_size_is_what_only_the_snapshot_has() {
    let store = new_store(9, small_options());
    store.put("a", 1, "v", 10);
    snapshot(&store, "s");
    let facts = self::only(&store);
    let own = |name| store.env.file_size(&facts.directory.join(name)).unwrap();
    let own_bytes = own("manifest.json") + own("schema.cql");
    assert_eq!(facts.true_size_bytes, own_bytes);
    assert!(facts.size_bytes > own_bytes);
    let only = || store.engine.snapshots_only_bytes().unwrap()[&store.table().id];
    assert_eq!(only(), 0);
    snapshot(&store, "t");
    store.engine.truncate(store.table().id).unwrap();
    store.engine.wait_idle();
    for facts in store.engine.snapshots().unwrap() {
        assert_eq!(facts.true_size_bytes, facts.size_bytes, "{facts:?}");
    }
    // Three snapshots have the same SSTable.
    let once = facts.size_bytes - own_bytes;
    assert_eq!(only(), once);
}

#[test]
fn a_full_disk_does_not_keep_data_from_being_removed() {
    for statement in ["truncate", "drop"] {
        let (store, faults) = new_faulty_store(10, small_options());
        store.put("a", 1, "v", 10);
        faults.add("no_space create \"*.making\"").unwrap();
        remove(&store, statement).unwrap();
        faults.clear();
        assert_eq!(store.engine.snapshots().unwrap(), [], "{statement}");
        assert!(
            !store.has_table("t") || store.contents().is_empty(),
            "{statement}"
        );
    }
}

fn remove(store: &Store, statement: &str) -> Result<(), Error> {
    match statement {
        "truncate" => store.engine.truncate(store.table().id),
        _ => store.engine.alter_schema(&drop_table("ks", "t")).map(drop),
    }
}

#[test]
fn a_statement_is_refused_if_its_snapshot_fails_and_nothing_is_changed() {
    let rules = [
        "fail link \"*-Data.db\"",
        "fail create \"manifest.json*\"",
        "no_descriptors create \"schema.cql*\"",
        "fail rename \"*.making\"",
        "no_space sync_dir \"*/snapshots\"",
        "fail list \"*/ks/t-*\"",
    ];
    for statement in ["truncate", "drop"] {
        for rule in rules {
            let (store, faults) = new_faulty_store(11, small_options());
            store.put("a", 1, "v", 10);
            store.flush();
            let contents = store.contents();
            faults.add(rule).unwrap();
            assert!(remove(&store, statement).is_err(), "{statement} {rule}");
            faults.clear();
            assert_eq!(store.contents(), contents, "{statement} {rule}");
            store.engine.clear_expired_snapshots().unwrap();
            assert_eq!(
                names(&store.env, &store.directory().join("snapshots")),
                [""; 0],
                "{statement} {rule}"
            );
            remove(&store, statement).unwrap();
            assert_eq!(store.engine.snapshots().unwrap().len(), 1, "{statement} {rule}");
        }
    }
}

#[test]
fn a_snapshot_that_fails_at_any_call_leaves_nothing() {
    for effect in ["fail", "no_space", "no_descriptors"] {
        let mut refused = 0;
        for call in 1.. {
            let (store, faults) = new_faulty_store(12, small_options());
            let other = store.add_table("other");
            store.write(put(&other, "a", 1, "v", 10));
            store.put("a", 1, "v", 10);
            store.engine.flush_all().unwrap();
            store.engine.wait_idle();
            let contents = store.contents();
            let order = SnapshotOrder {
                tables: vec![other.id, store.table().id],
                ..order(&store, "s")
            };
            faults.add(&format!("{effect} any \"*/ks/*\" at {call}")).unwrap();
            let taken = store.engine.snapshot(&order);
            faults.clear();
            store.engine.clear_expired_snapshots().unwrap();
            let found = tags(&store.engine);
            match &taken {
                Ok(()) => assert_eq!(found, ["s", "s"], "{effect} {call}"),
                Err(error) => {
                    refused += 1;
                    assert_eq!(found, [""; 0], "{effect} {call}: {error}");
                    store.engine.snapshot(&order).unwrap();
                }
            }
            if call % 5 == 0 {
                let directory = store.directory().join("snapshots/s");
                assert_eq!(restored(&store.env, &directory), contents, "{effect} {call}");
            }
            assert_eq!(store.contents(), contents);
            assert_eq!(store.engine.failure(), None, "{effect} {call}");
            if taken.is_ok() && call > 20 {
                break;
            }
        }
        assert!(refused > 10, "{effect}: {refused}");
    }
}

#[test]
fn a_truncate_or_drop_that_fails_at_any_call_loses_nothing() {
    for (effect, statement) in [
        ("fail", "truncate"),
        ("fail", "drop"),
        ("no_descriptors", "truncate"),
        ("no_descriptors", "drop"),
        ("no_space", "truncate"),
    ] {
        let (mut refused, mut passed) = (0, 0);
        for call in 1.. {
            let (store, faults) = new_faulty_store(21, small_options());
            store.put("a", 1, "flushed", 10);
            store.flush();
            store.put("a", 2, "in memory", 10);
            store.engine.wait_idle();
            let contents = store.contents();
            faults
                .add(&format!("{effect} any \"*/ks/t-*\" at {call}"))
                .unwrap();
            let removed = remove(&store, statement);
            faults.clear();
            let is_final = store.engine.failure().is_some();
            // A restart has what the log has.
            let store = store.restart(small_options());
            store.engine.clear_expired_snapshots().unwrap();
            let left = match store.has_table("t") {
                true => store.contents(),
                false => Contents::new(),
            };
            let snapshots = store.engine.snapshots().unwrap();
            let told = format!("{statement}, {effect} at {call}: {removed:?}, {left:?}, {snapshots:?}");
            match removed {
                // A full disk does not keep the data.
                Ok(()) => {
                    assert!(
                        left.is_empty() && (snapshots.len() == 1 || effect == "no_space"),
                        "{told}"
                    );
                    passed += 1;
                }
                Err(_) if left == contents => {
                    assert!(snapshots.is_empty() || is_final, "{told}");
                    (refused, passed) = (refused + 1, 0);
                }
                // The files could not be removed.
                Err(_) => assert!(left.is_empty() && snapshots.len() == 1, "{told}"),
            }
            for facts in snapshots.iter().filter(|_| call % 5 == 0) {
                assert_eq!(restored(&store.env, &facts.directory), contents, "{told}");
            }
            // There are fewer calls.
            if passed > 12 {
                break;
            }
        }
        assert!(
            refused > 10 || effect == "no_space",
            "{statement}, {effect}: {refused} were refused"
        );
    }
}

/// What may be on disk after a power loss.
#[derive(Clone, Default)]
struct Promise {
    contents: Contents,
    /// The table is being emptied or dropped.
    is_going: bool,
    /// Tags of snapshots that were acknowledged, with what was in the table then.
    snapshots: BTreeMap<String, Contents>,
    /// What snapshots that are being made have.
    making: Contents,
}

#[test]
fn a_power_loss_at_any_sync_leaves_whole_snapshots_and_no_data_twice_or_lost() {
    let store = new_store(13, small_options());
    let promise: Arc<Mutex<Promise>> = Arc::default();
    let crashes: Arc<Mutex<Vec<(MemEnv, Promise)>>> = Arc::default();
    let (noted, now) = (crashes.clone(), promise.clone());
    store.env.on_sync(move |env, event| {
        if event.moment != Moment::BeforeSync {
            return;
        }
        let rule = match event.number % 3 {
            0 => CrashRule::LoseUnsynced,
            1 => CrashRule::KeepAll,
            _ => CrashRule::Seeded(event.number * 7919),
        };
        let crash = (env.crash(rule), now.lock().clone());
        noted.lock().push(crash);
    });
    for (round, statement) in ["snapshot", "truncate", "snapshot", "drop"]
        .into_iter()
        .enumerate()
    {
        store.put("a", i32::try_from(round).unwrap(), statement, 10);
        let contents = store.contents();
        {
            let mut promise = promise.lock();
            promise.contents.clone_from(&contents);
            promise.making.clone_from(&contents);
            promise.is_going = statement != "snapshot";
        }
        match statement {
            "snapshot" => {
                snapshot(&store, &format!("s{round}"));
                promise.lock().snapshots.insert(format!("s{round}"), contents);
            }
            _ => remove(&store, statement).unwrap(),
        }
        if statement == "truncate" {
            let mut promise = promise.lock();
            promise.contents.clear();
            promise.is_going = false;
            for facts in store.engine.snapshots().unwrap() {
                let making = promise.making.clone();
                promise.snapshots.entry(facts.tag).or_insert(making);
            }
        }
    }
    drop(store);
    let crashes = std::mem::take(&mut *crashes.lock());
    assert!(crashes.len() > 40, "{}", crashes.len());
    for (number, (env, promise)) in crashes.iter().enumerate() {
        check_crash(number, env, promise);
    }
}

fn check_crash(number: usize, env: &MemEnv, promise: &Promise) {
    let store = open(env, small_options()).unwrap_or_else(|error| panic!("crash {number}: {error}"));
    store.engine.clear_expired_snapshots().unwrap();
    let facts = store.engine.snapshots().unwrap();
    let contents = match store.has_table("t") {
        true => store.contents(),
        false => Contents::new(),
    };
    let may_be_gone = promise.is_going && contents.is_empty();
    // Rows of a write that was not acknowledged yet may be there, too.
    let has_all = promise.contents.iter().all(|(key, rows)| {
        let found = contents.get(key);
        rows.iter()
            .all(|(row, value)| found.is_some_and(|found| found.get(row) == Some(value)))
    });
    assert!(has_all || may_be_gone, "crash {number}: {contents:?}");
    let mut found = BTreeMap::new();
    for facts in &facts {
        found.insert(facts.tag.clone(), restored(env, &facts.directory));
    }
    for (tag, contents) in &promise.snapshots {
        assert_eq!(
            found.remove(tag).as_ref(),
            Some(contents),
            "crash {number}: {tag}"
        );
    }
    // One that was being made, or one of a TRUNCATE or DROP.
    for (tag, contents) in &found {
        assert_eq!(*contents, promise.making, "crash {number}: {tag}");
    }
    if may_be_gone && !promise.contents.is_empty() {
        assert!(
            !found.is_empty(),
            "crash {number}: the data is gone, and in no snapshot"
        );
    }
    for facts in &facts {
        let tagged = names(env, facts.directory.parent().unwrap());
        assert!(
            tagged.iter().all(|name| !name.starts_with('.')),
            "crash {number}: {tagged:?}"
        );
    }
}

#[test]
fn any_history_of_writes_snapshots_truncations_and_drops_can_be_restored() {
    for seed in 0..6 {
        let mut random = Seeded::new(seed);
        let mut store = new_store(100 + seed, small_options());
        let mut expected: BTreeMap<PathBuf, Contents> = BTreeMap::new();
        for step in 0..60 {
            let timestamp = 1000 + i64::from(step);
            let row = i32::try_from(random.below(5)).unwrap();
            let before = store.contents();
            match random.below(12) {
                0..5 => store.put(
                    &format!("k{}", random.below(3)),
                    row,
                    &format!("v{step}"),
                    timestamp,
                ),
                5 => store.write(delete_row(&store.table(), "k1", row, timestamp)),
                6 => store.flush(),
                7 => store.engine.compact(store.table().id).unwrap(),
                8 => snapshot(&store, &format!("s{step}")),
                9 => store.engine.truncate(store.table().id).unwrap(),
                10 => {
                    store.alter(&drop_table("ks", "t"));
                    store.alter(&create_table("ks", "t"));
                }
                _ => store = store.restart(small_options()),
            }
            let now: Vec<PathBuf> = (store.engine.snapshots().unwrap().into_iter())
                .map(|facts| facts.directory)
                .collect();
            for directory in &now {
                expected
                    .entry(directory.clone())
                    .or_insert_with(|| before.clone());
            }
            assert_eq!(now.len(), expected.len(), "seed {seed} step {step}");
            if random.below(10) == 0 && !now.is_empty() {
                store.engine.clear_snapshots(&SnapshotChoice::default()).unwrap();
                expected.clear();
            }
        }
        for (directory, contents) in &expected {
            assert_eq!(
                restored(&store.env, directory),
                *contents,
                "seed {seed}: {directory:?}"
            );
        }
    }
}

#[test]
fn a_snapshot_under_writes_is_one_moment() {
    let store = new_store(14, small_options());
    let table = store.table();
    let acknowledged = std::sync::atomic::AtomicI32::new(0);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::SeqCst;
    let mut least = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each row is written after the one before: a moment has all rows up to some.
            for row in 0.. {
                store.write(put(&table, "a", row, "v", 10));
                acknowledged.store(row + 1, relaxed);
                if is_done.load(relaxed) {
                    return;
                }
            }
        });
        for number in 0..8 {
            least.push(acknowledged.load(relaxed));
            snapshot(&store, &format!("s{number}"));
        }
        is_done.store(true, relaxed);
    });
    for (number, least) in least.iter().enumerate() {
        let directory = store.directory().join(format!("snapshots/s{number}"));
        let contents = restored(&store.env, &directory);
        let rows: Vec<i32> = contents.values().flat_map(|rows| rows.keys().copied()).collect();
        let count = i32::try_from(rows.len()).unwrap();
        assert_eq!(rows, (0..count).collect::<Vec<_>>(), "s{number}");
        assert!(
            count >= *least,
            "s{number}: {count} rows, {least} were acknowledged before"
        );
    }
}

#[test]
fn flushed_sstables_are_backed_up() {
    let mut options = small_options();
    options.snapshots.is_backing_up = true;
    let store = new_store(15, options.clone());
    store.put("a", 1, "one", 10);
    store.flush();
    let backups = store.directory().join("backups");
    assert!(names(&store.env, &backups).contains(&"nb-1-big-Data.db".to_owned()));
    let first = store.contents();
    assert_eq!(restored(&store.env, &backups), first);
    store.engine.set_backing_up(false);
    store.put("a", 2, "two", 10);
    store.flush();
    assert_eq!(restored(&store.env, &backups), first);
    // The names of backups are not used again.
    store.engine.truncate(store.table().id).unwrap();
    let store = store.restart(options);
    store.put("a", 3, "three", 10);
    store.flush();
    let in_backups = || {
        restored(&store.env, &backups)["a"]
            .keys()
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(in_backups(), [1, 3]);
    // What is imported is new here, too.
    let snapshots = store.engine.snapshots().unwrap();
    let truncated = snapshots.first().unwrap();
    let table = store.table().id;
    store
        .engine
        .import(table, &truncated.directory, ImportSource::Copied)
        .unwrap();
    assert_eq!(in_backups(), [1, 2, 3]);
}

#[test]
fn a_backup_that_fails_does_not_fail_the_flush() {
    let mut options = small_options();
    options.snapshots.is_backing_up = true;
    let (store, faults) = new_faulty_store(16, options);
    faults.add("fail link \"*\"").unwrap();
    store.put("a", 1, "one", 10);
    store.flush();
    assert_eq!(store.engine.failure(), None);
    assert_eq!(store.sstables(), 1);
}

#[test]
fn a_compaction_comes_after_a_snapshot_if_the_settings_ask_for_one() {
    let mut options = small_options();
    options.snapshots.is_before_compaction = true;
    let store = new_store(17, options);
    store.put("a", 1, "one", 10);
    store.flush();
    store.put("a", 1, "two", 20);
    store.flush();
    store.engine.compact(store.table().id).unwrap();
    let facts = only(&store);
    assert_eq!(facts.tag, format!("{}-compact-t", facts.created_millis));
    let data = names(&store.env, &facts.directory);
    assert_eq!(data.iter().filter(|name| name.ends_with("Data.db")).count(), 2);
}

#[test]
fn a_table_that_was_altered_can_be_restored() {
    let store = new_store(18, small_options());
    store.put("a", 1, "v", 10);
    store.alter(&add_column("more"));
    snapshot(&store, "s");
    let schema = only(&store).directory.join("schema.cql");
    let schema = String::from_utf8(store.env.read_all(&schema, 1 << 20).unwrap()).unwrap();
    assert!(schema.contains("more text"), "{schema}");
}

#[test]
fn directories_of_others_are_no_snapshots() {
    let store = new_store(19, small_options());
    snapshot(&store, "s");
    let snapshots = store.directory().join("snapshots");
    for name in [".s.remove", ".x.making"] {
        let directory = snapshots.join(name);
        store.env.create_dir_all(&directory).unwrap();
        store
            .env
            .write_atomically(&directory.join("nb-1-big-Data.db"), b"?")
            .unwrap();
    }
    // A Cassandra without a manifest.
    store.env.create_dir_all(&snapshots.join("bare")).unwrap();
    assert_eq!(tags(&store.engine), ["bare", "s"]);
    let store = store.restart(small_options());
    store.engine.clear_expired_snapshots().unwrap();
    let found: Vec<_> = store
        .env
        .list(&snapshots)
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(found, ["bare", "s"]);
}

#[test]
fn a_write_beside_a_truncation_is_in_its_snapshot_or_in_the_table_and_never_in_both() {
    let store = new_store(20, small_options());
    let table = store.table();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    let mut written = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut row = 0;
            while !is_done.load(order) {
                store.write(put(&table, "a", row, "v", 10));
                row += 1;
            }
            row
        });
        for _ in 0..8 {
            store.engine.truncate(table.id).unwrap();
        }
        is_done.store(true, order);
        written = writer.join().unwrap();
    });
    let mut found: Vec<i32> = store
        .contents()
        .values()
        .flat_map(|rows| rows.keys().copied())
        .collect();
    for facts in store.engine.snapshots().unwrap() {
        let contents = restored(&store.env, &facts.directory);
        found.extend(contents.values().flat_map(|rows| rows.keys().copied()));
    }
    found.sort_unstable();
    assert_eq!(found, (0..written).collect::<Vec<_>>());
}

#[test]
fn expired_snapshots_are_removed_without_being_asked_for() {
    let store = new_store(22, small_options());
    let short = SnapshotOrder {
        ttl_secs: Some(60),
        ..order(&store, "short")
    };
    store.engine.snapshot(&short).unwrap();
    snapshot(&store, "kept");
    store.env.advance_micros(61_000_000);
    // Its directory, too, is gone in the end.
    let directories = || {
        let names = names(&store.env, &store.directory().join("snapshots"));
        names
            .into_iter()
            .filter(|name| !name.contains('/'))
            .collect::<Vec<_>>()
    };
    while tags(&store.engine) != ["kept"] || directories() != ["kept"] {
        std::thread::yield_now();
    }
}
