//! Making, building, dropping; what an index costs a write.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use ilion_engine::{CompactionRequest, Engine, EngineOptions, ImportReport, ImportSource, IndexRepair};
use ilion_env::{Env, MemEnv, account};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, KeyRange, Mutation, PartitionUpdate,
    ReadLaw, ReadPurge, Row, Unfiltered,
};

use super::table::{
    INDEXES, Reader, TABLE, create_index, create_table, drop_index, int, key, predicate, table, write_row,
};
use crate::support::{create_keyspace, small_options};

const EXPORTED: &str = "/exported";

fn import(engine: &Engine, source: ImportSource) -> ImportReport {
    let id = table(engine).id;
    engine.import(id, Path::new(EXPORTED), source).unwrap()
}

struct Store {
    env: MemEnv,
    engine: Engine,
}

impl Store {
    fn new(seed: u64, options: EngineOptions) -> Self {
        let store = Self::open(MemEnv::new(seed), options);
        store.engine.alter_schema(&create_keyspace("ks")).unwrap();
        store.engine.alter_schema(&create_table()).unwrap();
        store
    }

    fn open(env: MemEnv, options: EngineOptions) -> Self {
        let engine = Engine::open(env.shared(), options).unwrap();
        Self { env, engine }
    }

    /// Its table has indexes and is empty: all that it had is in the files of an export.
    fn beside_its_export(seed: u64) -> Self {
        let store = Self::new(seed, small_options());
        store.fill(40);
        let id = table(&store.engine).id;
        store.engine.export(id, Path::new(EXPORTED)).unwrap();
        store.engine.truncate(id).unwrap();
        for index in [BY_V, SAI_V] {
            store.engine.alter_schema(&create_index(index)).unwrap();
        }
        store
    }

    fn restart(self) -> Self {
        let Self { env, engine } = self;
        drop(engine);
        Self::open(env, small_options())
    }

    fn write(&self, k: &str, c: i32, v: i32, timestamp: i64) {
        write_row(&self.engine, key(k, 0), c, v, timestamp);
    }

    /// Ends it with everything on disk; tells where its table index has its files.
    fn stop(self) -> (MemEnv, PathBuf) {
        self.engine.drain().unwrap();
        let stores = self.engine.tables();
        let store = stores
            .iter()
            .find(|store| store.schema().name == super::table::TABLE);
        (self.env, store.unwrap().directory().join(".by_v"))
    }

    fn fill(&self, rounds: i32) {
        for round in 0..rounds {
            self.write(&format!("k{}", round % 7), round, round % 5, i64::from(round) + 1);
        }
    }

    fn flush(&self) {
        self.engine.flush(table(&self.engine).id).unwrap();
    }

    fn check(&self, context: &str) {
        self.engine.wait_idle();
        let reader = Reader {
            engine: &self.engine,
            env: &self.env,
        };
        reader.check(context, &[BY_V, SAI_V], 5);
    }

    /// Entries of the hidden table that a search for `v` goes through.
    fn candidates(&self, v: i32) -> usize {
        let table = table(&self.engine);
        let search = self.engine.index_search(&table, BY_V.2, &predicate(BY_V, v));
        let mut search = search.unwrap();
        std::iter::from_fn(|| search.next().unwrap()).count()
    }
}

const BY_V: (&str, ilion_schema::IndexPart, &str) = INDEXES[0];
const SAI_V: (&str, ilion_schema::IndexPart, &str) = INDEXES[9];

#[test]
fn an_index_that_is_made_late_has_what_was_there_before() {
    let store = Store::new(1, small_options());
    store.fill(60);
    store.flush();
    store.fill(90);
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.engine.alter_schema(&create_index(SAI_V)).unwrap();
    store.check("built");
    let store = store.restart();
    assert!(
        store
            .engine
            .indexes_of(table(&store.engine).id)
            .iter()
            .all(|index| index.is_built)
    );
    store.check("after a restart");
    for index in [BY_V, SAI_V] {
        store
            .engine
            .rebuild_index(&table(&store.engine), index.2)
            .unwrap();
    }
    store.check("rebuilt");
}

#[test]
fn nothing_is_asked_of_an_index_that_is_gone_and_its_files_go_with_it() {
    let store = Store::new(2, small_options());
    for index in [BY_V, SAI_V] {
        store.engine.alter_schema(&create_index(index)).unwrap();
    }
    store.fill(20);
    store.flush();
    let stores = store.engine.tables();
    let directory = stores
        .iter()
        .find(|store| store.schema().name == super::table::TABLE);
    let directory = directory.unwrap().directory().to_owned();
    let count = |part: &str| {
        let entries = store.env.list(&directory).unwrap();
        entries.iter().filter(|entry| entry.name.contains(part)).count()
    };
    assert!(count(".by_v") == 1 && count("Index+sai_v+") > 0);
    for index in [BY_V, SAI_V] {
        store.engine.alter_schema(&drop_index(index.2)).unwrap();
        let search = store
            .engine
            .index_search(&table(&store.engine), index.2, &predicate(index, 1));
        assert!(search.is_err());
    }
    assert_eq!((count(".by_v"), count("Index+sai_v+")), (0, 0));
    // Made again under its name, it has nothing of the old one.
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.engine.alter_schema(&create_index(SAI_V)).unwrap();
    store.check("made again");
}

#[test]
fn a_write_to_an_indexed_table_reads_no_file() {
    let store = Store::new(3, small_options());
    for index in [BY_V, SAI_V] {
        store.engine.alter_schema(&create_index(index)).unwrap();
    }
    store.fill(40);
    store.flush();
    let scope = account::begin();
    store.fill(40);
    let io = scope.finish();
    assert_eq!((io.reads, io.bytes_read), (0, 0));
    let scope = account::begin();
    assert!(store.candidates(1) > 0);
    assert!(scope.finish().reads > 0, "reads are counted");
}

#[test]
fn an_entry_that_was_met_stale_is_not_met_again() {
    let store = Store::new(4, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.write("k", 1, 1, 10);
    store.flush();
    store.write("k", 1, 2, 20);
    assert_eq!((store.candidates(1), store.candidates(2)), (1, 1));
    let reader = Reader {
        engine: &store.engine,
        env: &store.env,
    };
    assert!(reader.searched(BY_V, 1).is_empty());
    assert_eq!((store.candidates(1), store.candidates(2)), (0, 1));
    store.flush();
    let store = store.restart();
    assert_eq!((store.candidates(1), store.candidates(2)), (0, 1));
}

#[test]
fn an_entry_goes_with_the_old_value_if_that_is_in_the_memtable() {
    let store = Store::new(5, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.write("k", 1, 1, 10);
    store.write("k", 1, 2, 20);
    assert_eq!((store.candidates(1), store.candidates(2)), (0, 1));
}

#[test]
fn a_value_that_an_index_cannot_hold_is_refused_before_anything_is_written() {
    let store = Store::new(6, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    let table = table(&store.engine);
    let long = bytes::Bytes::from(vec![0; 70_000]);
    let row = Row {
        columns: vec![ColumnData {
            column: table.column_named("v").unwrap().id,
            data: Data::Simple(Cell::live(1, long)),
        }],
        ..Row::empty(Clustering::of([int(1)]))
    };
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    let mutation = Mutation {
        table: Arc::clone(&table),
        key: key("k", 0),
        update,
    };
    let error = store.engine.apply(&[mutation]).unwrap_err().to_string();
    assert!(
        error.contains("Cannot index value of size 70000 for index by_v"),
        "{error}"
    );
    assert_eq!(store.candidates(1), 0);
}

#[test]
fn a_verification_counts_what_is_wrong_and_puts_it_right() {
    let store = Store::new(7, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.fill(30);
    store.flush();
    store.write("k0", 0, 4, 100);
    let table = table(&store.engine);
    let verify = |repair| store.engine.verify_index(&table, BY_V.2, repair).unwrap();
    let found = verify(IndexRepair::None);
    assert_eq!((found.rows, found.entries), (30, 31));
    assert_eq!((found.missing, found.stale, found.repaired), (0, 1, 0));
    assert_eq!(verify(IndexRepair::Repair).repaired, 1);
    let found = verify(IndexRepair::None);
    assert_eq!((found.entries, found.missing, found.stale), (30, 0, 0));
}

#[test]
fn an_attached_index_that_is_not_what_the_rows_say_is_seen_and_written_again() {
    let store = Store::new(12, small_options());
    store.engine.alter_schema(&create_index(SAI_V)).unwrap();
    for v in [1, 2] {
        for c in 0..20 {
            store.write("k0", c, v, i64::from(v));
        }
        store.flush();
    }
    let (env, hidden) = store.stop();
    let directory = hidden.parent().unwrap();
    let names = env.list(directory).unwrap().into_iter().map(|entry| entry.name);
    for name in names.filter(|name| name.starts_with("nb-1-big-Index+sai_v+")) {
        let of_other = env.read_all(&directory.join(&name), 1 << 20).unwrap();
        let name = name.replacen("nb-1", "nb-2", 1);
        env.write_atomically(&directory.join(name), &of_other).unwrap();
    }
    let store = Store::open(env, small_options());
    let table = table(&store.engine);
    let verify = |repair| store.engine.verify_index(&table, SAI_V.2, repair).unwrap();
    for (repair, repaired) in [(IndexRepair::None, 0), (IndexRepair::Repair, 1)] {
        let found = verify(repair);
        assert_eq!((found.rows, found.entries, found.missing), (40, 2, 0));
        assert_eq!((found.stale, found.repaired), (1, repaired));
    }
    assert_eq!(verify(IndexRepair::None).stale, 0);
    let reader = Reader {
        engine: &store.engine,
        env: &store.env,
    };
    reader.check("repaired", &[SAI_V], 5);
    let left = store.env.list(directory).unwrap();
    assert!(left.iter().all(|entry| !entry.name.starts_with("verify-")));
}

#[test]
fn entries_that_were_lost_are_made_again() {
    let store = Store::new(8, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.fill(30);
    let (env, directory) = store.stop();
    env.remove_dir_all(&directory).unwrap();
    let store = Store::open(env, small_options());
    let table = table(&store.engine);
    let verify = |repair| store.engine.verify_index(&table, BY_V.2, repair).unwrap();
    assert_eq!(verify(IndexRepair::None).missing, 30);
    assert_eq!(verify(IndexRepair::Repair).repaired, 30);
    assert_eq!(verify(IndexRepair::None).missing, 0);
    let reader = Reader {
        engine: &store.engine,
        env: &store.env,
    };
    reader.check("repaired", &[BY_V], 5);
}

#[test]
fn what_is_imported_is_found_by_indexes() {
    let store = Store::beside_its_export(9);
    let report = import(&store.engine, ImportSource::Moved);
    assert_eq!((report.imported.len(), report.refused.len()), (1, 0));
    assert!(store.candidates(1) > 0);
    store.check("imported");
    store.restart().check("after a restart");
}

#[test]
fn a_search_amid_an_import_takes_no_entry_for_stale() {
    let Store { env, engine } = Store::beside_its_export(12);
    engine.wait_idle();
    let engine = Arc::new(engine);
    let most = Arc::new(AtomicUsize::new(0));
    let (searcher, seen) = (Arc::downgrade(&engine), most.clone());
    env.on_sync(move |env, _| {
        let Some(engine) = searcher.upgrade() else {
            return;
        };
        let table = table(&engine);
        let mut search = engine.index_search(&table, BY_V.2, &predicate(BY_V, 1)).unwrap();
        let entries = std::iter::from_fn(|| search.next().unwrap()).count();
        let reader = Reader { engine: &engine, env };
        let rows = reader.searched(BY_V, 1).len();
        seen.fetch_max(entries - rows, Ordering::Relaxed);
    });
    import(&engine, ImportSource::Copied);
    env.on_sync(|_, _| ());
    assert!(
        most.load(Ordering::Relaxed) > 0,
        "no search met entries without their rows"
    );
    let engine = Arc::into_inner(engine).unwrap();
    let store = Store { env, engine };
    assert!(store.candidates(1) > 0);
    store.check("imported");
}

#[test]
fn an_index_with_a_damaged_file_is_built_anew_and_does_not_keep_the_node_from_starting() {
    let store = Store::new(10, small_options());
    store.engine.alter_schema(&create_index(BY_V)).unwrap();
    store.fill(30);
    let (env, directory) = store.stop();
    env.remove_file(&directory.join("nb-1-big-Index.db")).unwrap();
    let store = Store::open(env, small_options());
    store.engine.wait_idle();
    let verify = |store: &Store| {
        let found = store
            .engine
            .verify_index(&table(&store.engine), BY_V.2, IndexRepair::None);
        found.unwrap()
    };
    assert_eq!((verify(&store).missing, verify(&store).entries), (0, 30));
    let store = store.restart();
    assert_eq!(store.engine.index_builds(), []);
    assert_eq!((verify(&store).missing, verify(&store).entries), (0, 30));
}

#[test]
fn the_hidden_table_of_an_index_is_counted_compacted_and_mapped_as_others_are() {
    let store = Store::new(91, small_options());
    store.engine.alter_schema(&create_index(INDEXES[0])).unwrap();
    store.engine.wait_idle();
    for _ in 0..3 {
        store.fill(20);
        store.flush();
    }
    let facts = |store: &Store, name: &str| {
        let all = store.engine.table_facts().into_iter();
        all.filter(|facts| facts.keyspace == "ks")
            .find(|facts| facts.table == name)
            .unwrap()
    };
    let hidden = facts(&store, "indexed.by_v");
    assert_eq!(hidden.sstables, 3);
    assert!(hidden.sstable_bytes > 0 && hidden.estimated_partitions >= 5);
    let stores = store.engine.all_tables();
    let by_v = stores
        .iter()
        .find(|store| store.schema().name == "indexed.by_v")
        .unwrap();
    assert_eq!(
        store
            .engine
            .table_details(by_v.schema().id)
            .unwrap()
            .facts
            .sstables,
        3
    );
    store.engine.compact(table(&store.engine).id).unwrap();
    assert_eq!(
        (
            facts(&store, TABLE).sstables,
            facts(&store, "indexed.by_v").sstables
        ),
        (1, 1)
    );

    let (env, directory) = store.stop();
    let maps = || {
        let names = env.list(&directory).unwrap().into_iter().map(|entry| entry.name);
        names
            .filter(|name| name.ends_with("Tokens.db"))
            .collect::<Vec<_>>()
    };
    let map = maps().remove(0);
    env.remove_file(&directory.join(&map)).unwrap();
    let store = Store::open(env.clone(), small_options());
    store.engine.wait_idle();
    assert_eq!(maps(), [map]);
    let data = directory.join(
        env.list(&directory)
            .unwrap()
            .into_iter()
            .find(|entry| entry.name.ends_with("Data.db"))
            .unwrap()
            .name,
    );
    let owner = store.engine.table_with_file(&data).unwrap();
    let alone = CompactionRequest::Files(vec![data.clone()]);
    assert_eq!(store.engine.compact_as(owner, &alone).unwrap(), 1);
    assert!(!env.exists(&data), "it was compacted by itself");
}

/// The indexes that `system."IndexInfo"` lists.
fn listed(engine: &Engine) -> Vec<String> {
    let table = engine.schema().table("system", "IndexInfo").unwrap().clone();
    let range = KeyRange::all();
    let cursor = engine
        .read_range(&table, &range, &ClusteringFilter::all())
        .unwrap();
    let law = ReadLaw::without_limits(0);
    let mut cursor = ReadPurge::new(cursor, table, law);
    let mut names = Vec::new();
    while cursor.next_partition().unwrap().is_some() {
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            if let Unfiltered::Row(row) = unfiltered {
                let name = row.clustering.values()[0].clone().unwrap();
                names.push(String::from_utf8(name.to_vec()).unwrap());
            }
        }
    }
    names
}

#[test]
fn an_index_that_is_listed_as_built_may_be_asked() {
    let Store { env, engine } = Store::new(7, small_options());
    let engine = Arc::new(engine);
    let looks = Arc::new(AtomicUsize::new(0));
    let (looked, at) = (looks.clone(), Arc::downgrade(&engine));
    // While the log is synced, what was written is seen already.
    env.on_sync(move |_, event| {
        let Some(engine) = at
            .upgrade()
            .filter(|_| event.path.starts_with("/ilion/commitlog"))
        else {
            return;
        };
        for name in listed(&engine) {
            let indexes = engine.indexes_of(table(&engine).id);
            let index = indexes
                .iter()
                .find(|open| open.index.definition().schema.name == name);
            assert!(index.is_some_and(|index| index.is_built), "{name}");
            looked.fetch_add(1, Ordering::Relaxed);
        }
    });
    for c in 0..40 {
        write_row(&engine, key("k", 0), c, c % 5, 1);
    }
    for index in [BY_V, SAI_V] {
        engine.alter_schema(&create_index(index)).unwrap();
        engine.wait_idle();
        engine.rebuild_index(&table(&engine), index.2).unwrap();
    }
    assert_eq!(listed(&engine).len(), 2);
    assert!(looks.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_index_that_is_dropped_while_it_is_built_is_not_listed_as_built() {
    for index in [BY_V, SAI_V] {
        let Store { env, engine } = Store::new(8, small_options());
        let engine = Arc::new(engine);
        for c in 0..40 {
            write_row(&engine, key("k", 0), c, c % 5, 1);
        }
        for drop_at in 0..30 {
            engine.flush(table(&engine).id).unwrap();
            write_row(&engine, key("k", 0), 40, drop_at, 2);
            let (tell, told) = std::sync::mpsc::channel();
            let syncs = AtomicI32::new(0);
            let changer = std::thread::current().id();
            // Of the thread that builds it.
            env.on_sync(move |_, _| {
                if std::thread::current().id() != changer && syncs.fetch_add(1, Ordering::AcqRel) == drop_at {
                    let _ = tell.send(());
                }
            });
            engine.alter_schema(&create_index(index)).unwrap();
            std::thread::scope(|threads| {
                let engine = &engine;
                threads.spawn(move || {
                    // If the build has fewer syncs than this, the index is dropped after it is built.
                    let _ = told.recv();
                    engine.alter_schema(&drop_index(index.2)).unwrap();
                });
                engine.wait_idle();
                env.on_sync(|_, _| {});
            });
            engine.wait_idle();
            assert_eq!(listed(&engine), Vec::<String>::new(), "{drop_at}");
        }
    }
}

#[test]
fn a_build_that_goes_on_after_its_index_was_dropped_leaves_no_files() {
    let mut dropped_during_builds = 0;
    for drop_at in 0..16 {
        let Store { env, engine } = Store::new(8, small_options());
        let engine = Arc::new(engine);
        for c in 0..40 {
            write_row(&engine, key("k", 0), c, c % 5, 1);
        }
        engine.flush(table(&engine).id).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let may_go_on = std::sync::Mutex::new(may_go_on);
        let syncs = AtomicI32::new(0);
        let changer = std::thread::current().id();
        let stores = engine.tables();
        let of_table = stores.iter().find(|store| store.schema().name == TABLE);
        let directory = of_table.unwrap().directory().to_owned();
        let of_index = directory.clone();
        // The build stops in a sync or rename of its own files until the index is dropped.
        env.on_sync(move |_, event| {
            if event.path.starts_with(&of_index)
                && std::thread::current().id() != changer
                && syncs.fetch_add(1, Ordering::AcqRel) == drop_at
                && tell.send(()).is_ok()
            {
                let _ = may_go_on.lock().unwrap().recv();
            }
        });
        engine.alter_schema(&create_index(SAI_V)).unwrap();
        std::thread::scope(|threads| {
            let idle = threads.spawn(|| {
                engine.wait_idle();
                env.on_sync(|_, _| {});
            });
            if told.recv().is_ok() {
                dropped_during_builds += 1;
            }
            engine.alter_schema(&drop_index(SAI_V.2)).unwrap();
            let _ = go_on.send(());
            idle.join().unwrap();
        });
        engine.wait_idle();
        let files = env.list(&directory).unwrap();
        let left: Vec<_> = files.iter().filter(|file| file.name.contains("sai_v")).collect();
        assert!(left.is_empty(), "dropped at sync {drop_at}: {left:?}");
    }
    assert!(dropped_during_builds > 2, "{dropped_during_builds}");
}
