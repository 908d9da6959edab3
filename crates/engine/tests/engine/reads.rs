//! Which files a read touches: seen by the reads that are charged to it.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use ilion_engine::SSTableVersion;
use ilion_env::IoVerb;
use ilion_env::account::{self, IoEvent};
use ilion_rows::{Bound, BoundKind, ClusteringFilter, KeyRange, Slice};

use crate::support::{Store, clustering_of, delete_partition, new_store, small_options};

/// The reads of Data.db files that `read` causes.
fn data_reads_of<T>(read: impl FnOnce() -> T) -> Vec<IoEvent> {
    account::begin_trace();
    read();
    let mut events = account::finish_trace();
    events.retain(|event| event.path.to_string_lossy().ends_with("Data.db"));
    events
}

/// Names of the Data.db files that `read` reads.
fn data_files_of<T>(read: impl FnOnce() -> T) -> BTreeSet<String> {
    let events = data_reads_of(read);
    let names = events.iter().filter_map(|event| event.path.file_name()?.to_str());
    names.map(str::to_owned).collect()
}

#[test]
fn a_row_by_its_key_is_read_from_the_newest_file_that_has_all_of_it() {
    let store = new_store(31, small_options());
    for timestamp in [10, 20, 30] {
        store.put("a", 1, &format!("written at {timestamp}"), timestamp);
        store.put("a", 2, "x", timestamp);
        store.flush();
    }
    let store = store.cold();
    let files = data_files_of(|| assert_eq!(store.row("a", 1).as_deref(), Some("written at 30")));
    assert_eq!(files.len(), 1, "{files:?}");
    let others = data_files_of(|| store.partition("a", false));
    assert_eq!(others.len(), 2, "the first is cached: {others:?}");
}

#[test]
fn files_older_than_a_deletion_of_the_partition_are_left_alone() {
    let store = new_store(32, small_options());
    for timestamp in [10, 20] {
        store.put("a", 1, "old", timestamp);
        store.flush();
    }
    store.write(delete_partition(&store.table(), "a", 25));
    store.put("a", 2, "new", 30);
    store.flush();
    let store = store.cold();
    let files = data_files_of(|| assert_eq!(store.partition("a", false), [(2, "new".to_owned())]));
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn files_whose_rows_lie_elsewhere_in_the_partition_are_left_alone() {
    let store = new_store(33, small_options());
    for clustering in 0..4 {
        store.put("a", clustering * 10, "v", 10);
        store.put("a", clustering * 10 + 5, "v", 10);
        store.flush();
    }
    let store = store.cold();
    let files = data_files_of(|| assert_eq!(store.row("a", 25).as_deref(), Some("v")));
    assert_eq!(files.len(), 1, "{files:?}");
    let files = data_files_of(|| assert_eq!(store.row("a", 27), None));
    assert!(files.len() <= 1, "{files:?}");
}

#[test]
fn a_short_range_read_touches_the_files_that_have_its_partitions_only() {
    let store = new_store(34, small_options());
    for file in 0..40 {
        store.put(&format!("key {file}"), 1, "v", 10);
        store.flush();
    }
    let store = store.cold();
    let files = data_files_of(|| {
        let table = store.table();
        let all = ClusteringFilter::all();
        let mut cursor = store.engine.read_range(&table, &KeyRange::all(), &all).unwrap();
        for _ in 0..2 {
            cursor.next_partition().unwrap().unwrap();
            cursor.next_unfiltered().unwrap().unwrap();
        }
    });
    assert!(files.len() <= 3, "{files:?}");
}

/// One partition of 2,000 rows of a kilobyte, in one file.
fn wide_partition(seed: u64, version: SSTableVersion) -> Store {
    let mut options = small_options();
    options.sstable_version = version;
    let store = new_store(seed, options);
    let mut random = ilion_env::Seeded::new(seed);
    for clustering in 0..2000 {
        let value: String = (0..125)
            .map(|_| format!("{:08x}", random.below(1 << 32)))
            .collect();
        store.put("a", clustering, &value, 10);
    }
    store.flush();
    store.cold()
}

fn bytes_of(events: &[IoEvent]) -> u64 {
    events.iter().map(|event| event.bytes).sum()
}

#[test]
fn a_few_rows_of_a_wide_partition_cost_a_few_chunks() {
    for version in [SSTableVersion::NB, SSTableVersion::DA] {
        let store = wide_partition(35, version);
        let slice = Slice {
            start: Bound::new(BoundKind::InclStart, clustering_of(1000).values().clone()),
            end: Bound::new(BoundKind::InclEnd, clustering_of(1003).values().clone()),
        };
        for reversed in [false, true] {
            let filter = ClusteringFilter {
                slices: vec![slice.clone()],
                reversed,
                ..ClusteringFilter::all()
            };
            let reads = data_reads_of(|| assert_eq!(store.rows("a", &filter).len(), 4));
            assert!(bytes_of(&reads) < 128 << 10, "{version} {reads:?}");
        }
    }
}

#[test]
fn the_last_row_of_a_wide_partition_is_read_from_its_end() {
    for version in [SSTableVersion::NB, SSTableVersion::DA] {
        let store = wide_partition(36, version);
        let table = store.table();
        let filter = ClusteringFilter {
            reversed: true,
            ..ClusteringFilter::all()
        };
        let reads = data_reads_of(|| {
            let key = crate::support::decorated("a");
            let mut cursor = store.engine.read_partition(&table, &key, &filter).unwrap();
            cursor.next_partition().unwrap().unwrap();
            cursor.next_unfiltered().unwrap().unwrap();
        });
        assert!(bytes_of(&reads) < 128 << 10, "{version} {reads:?}");
    }
}

#[test]
fn a_long_scan_reads_many_chunks_at_once_and_a_second_one_none() {
    let store = wide_partition(37, SSTableVersion::NB);
    let reads = data_reads_of(|| assert_eq!(store.partition("a", false).len(), 2000));
    let chunks = bytes_of(&reads) / (16 << 10);
    assert!(
        reads.len() as u64 * 3 < chunks,
        "{} reads of {chunks} chunks",
        reads.len()
    );
    let again = data_reads_of(|| store.partition("a", false));
    assert_eq!(again.len(), 0);
}

#[test]
fn a_thread_that_a_client_waits_for_removes_no_files() {
    let store = new_store(9, small_options());
    let (table, all) = (store.table(), ClusteringFilter::all());
    for waits in [false, true] {
        for key in ["a", "b"] {
            store.put(key, 1, "v", 10);
            store.flush();
        }
        let read = store.files();
        let is_left = || store.files().iter().any(|name| read.contains(name));
        let waits = waits.then(ilion_env::client_waits);
        let mut cursor = store.engine.read_range(&table, &KeyRange::all(), &all).unwrap();
        assert!(cursor.next_partition().unwrap().is_some());
        store.engine.compact(table.id).unwrap();
        assert!(is_left(), "the read has them open");
        account::begin_trace();
        drop(cursor);
        // Removing files syncs the directory.
        let mut events = account::finish_trace().into_iter();
        assert_eq!(events.any(|event| event.verb == IoVerb::Synced), waits.is_none());
        let deadline = Instant::now() + Duration::from_secs(60);
        while is_left() {
            assert!(Instant::now() < deadline, "the files stay");
            thread::yield_now();
        }
    }
    let contents = store.contents();
    assert_eq!(store.restart(small_options()).contents(), contents);
}
