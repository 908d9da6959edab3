//! What is not understood in a directory of another program is refused before anything is changed, so that this program can
//! still open it; what does not concern us is left alone. Of a directory of ours: `set_aside`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_engine::{Engine, Error};
use ilion_env::{Env, MemEnv};
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, Mutation, PartitionUpdate, Row,
};
use ilion_schema::TableId;
use ilion_sstable::{Statistics, Transaction, TransactionKind, Version};

use crate::support::{Store, new_store, open, put, small_options};

/// Held by whoever tried last; says nothing.
const LOCK: &str = "ilion.lock";

fn tree(env: &MemEnv, directory: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in env.list(directory).unwrap() {
        let path = directory.join(&entry.name);
        if entry.is_dir {
            into.insert(path.clone(), Vec::new());
            tree(env, &path, into);
        } else if entry.name != LOCK {
            into.insert(path.clone(), env.read_all(&path, 64 << 20).unwrap());
        }
    }
}

fn everything(env: &MemEnv) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    tree(env, Path::new("/ilion"), &mut all);
    all
}

fn put_file(env: &MemEnv, path: &Path, content: &[u8]) {
    let mut file = env.create_or_truncate(path).unwrap();
    file.append(content).unwrap();
    file.sync().unwrap();
}

/// A disk as Cassandra might leave it: an SSTable, a transaction that was not finished, no log and no id of ours. With the
/// directory of the table.
fn left_by_cassandra(seed: u64) -> (MemEnv, PathBuf) {
    let store = new_store(seed, small_options());
    store.put("a", 1, "x", 10);
    store.engine.drain().unwrap();
    let directory = store.directory();
    let env = without_our_marks(store);
    let token_map = directory.join("nb-1-big-Tokens.db");
    if env.exists(&token_map) {
        env.remove_file(&token_map).unwrap();
    }
    leave_unfinished(&env, &directory);
    (env, directory)
}

/// Closed, without a log and without an id of ours.
fn without_our_marks(store: Store) -> MemEnv {
    let env = store.close();
    for entry in env.list(Path::new("/ilion/commitlog")).unwrap() {
        env.remove_file(&Path::new("/ilion/commitlog").join(entry.name))
            .unwrap();
    }
    env.remove_file(Path::new("/ilion/data/ilion.id")).unwrap();
    env
}

fn leave_unfinished(env: &MemEnv, directory: &Path) {
    let mut transaction = Transaction::begin(env.shared(), directory, TransactionKind::Flush).unwrap();
    let unfinished = directory.join("nb-77-big-Data.db");
    let (descriptor, _) = ilion_sstable::Descriptor::from_path(&unfinished).unwrap();
    transaction.add(&descriptor).unwrap();
    put_file(env, &unfinished, b"half of it");
}

fn refusal(env: &MemEnv) -> String {
    let before = everything(env);
    let refused = Engine::open(env.shared(), small_options()).err().unwrap();
    let after = everything(env);
    let changed = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let paths: Vec<_> = before.keys().chain(after.keys()).filter(changed).collect();
    assert!(paths.is_empty(), "{paths:?} changed, though: {refused}");
    refused.to_string()
}

fn edit_statistics(env: &MemEnv, directory: &Path, edit: impl FnOnce(&mut Statistics)) {
    let path = directory.join("nb-1-big-Statistics.db");
    let bytes = env.read_all(&path, 1 << 20).unwrap();
    let mut statistics = Statistics::decode(&bytes, Version::NB, &path).unwrap();
    edit(&mut statistics);
    put_file(env, &path, &statistics.encode(Version::NB));
}

#[test]
fn what_cassandra_left_is_opened_and_its_unfinished_transactions_are_finished() {
    let (env, directory) = left_by_cassandra(1);
    let store = open(&env, small_options()).unwrap();
    assert_eq!(store.partition("a", false), [(1, "x".to_owned())]);
    assert!(!env.exists(&directory.join("nb-77-big-Data.db")));
    assert!(env.exists(Path::new("/ilion/data/ilion.id")));
}

#[test]
fn an_sstable_of_an_unknown_version_is_refused_before_anything_is_changed() {
    let (env, directory) = left_by_cassandra(2);
    put_file(&env, &directory.join("zz-5-big-Data.db"), b"?");
    assert!(refusal(&env).contains("SSTable version zz is not supported"));
}

#[test]
fn an_unknown_compressor_is_refused_before_anything_is_changed() {
    let (env, directory) = left_by_cassandra(3);
    let path = directory.join("nb-1-big-CompressionInfo.db");
    let mut bytes = env.read_all(&path, 1 << 20).unwrap();
    assert_eq!(&bytes[2..15], b"LZ4Compressor");
    bytes[2..5].copy_from_slice(b"FOO");
    put_file(&env, &path, &bytes);
    assert!(refusal(&env).contains("FOOCompressor"));
}

#[test]
fn an_unknown_type_in_a_file_is_refused_before_anything_is_changed() {
    let (env, directory) = left_by_cassandra(4);
    edit_statistics(&env, &directory, |statistics| {
        let column = statistics.header.regulars.first_mut().unwrap();
        column.class.text = "com.example.StrangeType".to_owned();
    });
    assert!(refusal(&env).contains("com.example.StrangeType"));
}

#[test]
fn an_unknown_partitioner_is_refused_before_anything_is_changed() {
    let (env, directory) = left_by_cassandra(5);
    edit_statistics(&env, &directory, |statistics| {
        statistics.validation.as_mut().unwrap().partitioner = "com.example.Partitioner".to_owned();
    });
    assert!(refusal(&env).contains("com.example.Partitioner"));
}

#[test]
fn a_commit_log_of_cassandra_with_writes_is_refused_before_anything_is_changed() {
    let (env, _) = left_by_cassandra(6);
    let mut segment = vec![
        0, 0, 0, 7, 0, 0, 1, 161, 253, 233, 90, 103, 0, 2, b'{', b'}', 1, 2, 3, 4,
    ];
    segment.extend_from_slice(&500u32.to_be_bytes());
    segment.extend_from_slice(&[9; 600]);
    put_file(&env, Path::new("/ilion/commitlog/CommitLog-7-1.log"), &segment);
    assert!(refusal(&env).contains("nodetool drain"));
}

#[test]
fn a_damaged_transaction_log_is_refused_before_anything_is_changed() {
    let (env, directory) = left_by_cassandra(7);
    let log = directory.join("nb_txn_flush_c9a271e4-8a85-11ea-b5bc-4efbe6aa03f4.log");
    put_file(&env, &log, b"ADD:[x,0,0][1]\nCOMMIT:[,5,0][1]\n");
    let another = env.read_all(&unfinished_log(&env, &directory), 1 << 20).unwrap();
    put_file(&env, &log, &[b"ADD:[x,0,0][1]\n", &another[..]].concat());
    assert!(refusal(&env).contains("a transaction record with a valid checksum"));
}

fn unfinished_log(env: &MemEnv, directory: &Path) -> PathBuf {
    let entries = env.list(directory).unwrap();
    let named = entries
        .into_iter()
        .find(|entry| entry.name.contains("_txn_") && !entry.name.contains("c9a271e4"));
    directory.join(named.unwrap().name)
}

#[test]
fn an_unknown_type_in_the_schema_is_refused_before_anything_is_changed() {
    let store = new_store(8, small_options());
    let schema = store.engine.schema();
    let columns = TableId::of_system_table("system_schema", "columns");
    let table = schema.keyspaces["system_schema"].tables["columns"].clone();
    let row = Row {
        liveness: Liveness::live(i64::MAX / 2),
        columns: vec![ColumnData {
            column: table.column_named("type").unwrap().id,
            data: Data::Simple(Cell::live(i64::MAX / 2, Bytes::from("hologram"))),
        }],
        ..Row::empty(Clustering::of([Bytes::from("t"), Bytes::from("v")]))
    };
    let key = DecoratedKey::new(ilion_types::Partitioner::Murmur3, Bytes::from("ks"));
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    store.write(Mutation { key, table, update });
    store.engine.flush(columns).unwrap();
    store.engine.drain().unwrap();
    let env = without_our_marks(store);
    assert!(refusal(&env).contains("hologram"));
}

#[test]
fn files_of_others_are_left_alone() {
    let (env, directory) = left_by_cassandra(9);
    let foreign = [
        "nb-1-big-SAI+aa+idx+Meta.db",
        "x-Foo.db",
        "manifest.json",
        "snapshots/before/nb-1-big-Data.db",
        "snapshots/before/zz-1-big-Data.db",
        "backups/nb-9-big-Data.db",
    ];
    let unknown_table = Path::new("/ilion/data/other/gone-123/zz-1-big-Data.db");
    let paths: Vec<PathBuf> = foreign
        .iter()
        .map(|name| directory.join(name))
        .chain([unknown_table.to_path_buf()])
        .collect();
    for path in &paths {
        env.create_dir_all(path.parent().unwrap()).unwrap();
        put_file(&env, path, b"of somebody else");
    }
    let store = open(&env, small_options()).unwrap();
    store.put("a", 2, "y", 11);
    store.flush();
    let store = store.restart(small_options());
    assert_eq!(store.partition("a", false).len(), 2);
    for path in &paths {
        assert_eq!(env.read_all(path, 100).unwrap(), b"of somebody else", "{path:?}");
    }
}

#[test]
fn a_directory_in_use_is_not_looked_into() {
    let store = new_store(10, small_options());
    let second = Engine::open(store.env.shared(), small_options());
    assert!(matches!(second, Err(Error::InUse(_))));
}

#[test]
fn a_row_and_its_view_may_each_have_half_a_segment_and_no_row_more() {
    let store = new_store(40, small_options());
    let half = (small_options().commit_log.segment_bytes / 2) as usize;
    let of = |key: &str, bytes: usize| put(&store.table(), key, 1, &"x".repeat(bytes), 10);
    // What a write to a table with a view is: one record of two mutations.
    let both = [of("a", half - 1024), of("b", half - 1024)];
    let position = store.engine.apply(&both).unwrap().unwrap();
    store.engine.wait_durable(position).unwrap();
    let refused = store.engine.apply(&[of("c", half)]).unwrap_err();
    assert!(
        refused.to_string().contains("is too large for the maximum size"),
        "{refused}"
    );
    assert!(refused.to_string().contains("of ks.t"), "{refused}");
    let store = store.restart(small_options());
    let lens = ["a", "b", "c"].map(|key| store.row(key, 1).map(|value| value.len()));
    assert_eq!(lens, [Some(half - 1024), Some(half - 1024), None]);
}
