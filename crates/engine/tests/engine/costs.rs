//! What a read is charged: what the disk served, and which SSTables were asked and why others were not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env as _;
use ilion_env::cost::{self, Cost, Count};
use ilion_env::trace;
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringFilter, ColumnData, Cursor as _, Data, DecoratedKey,
    KeyBound, KeyRange, Mutation, PartitionUpdate, Row, Slice, Unfiltered, Values,
};
use ilion_schema::{CreateTable, NewColumn, SchemaChange, TableSchema};
use ilion_types::CqlType;

use crate::support::{
    Store, add_column, clustering_of, decorated, delete_partition, new_store, put, small_options,
};

/// What `read` costs; the disk must say the same.
fn cost_of<T>(store: &Store, read: impl FnOnce() -> T) -> Cost {
    store.engine.wait_idle();
    let (reads, bytes) = store.env.served();
    let scope = cost::begin();
    read();
    let cost = scope.so_far();
    let (reads_after, bytes_after) = store.env.served();
    assert_eq!(
        (cost.io.reads, cost.io.bytes_read),
        (reads_after - reads, bytes_after - bytes),
        "the account is what the disk served"
    );
    cost
}

/// Considered, skipped by each reason, touched.
fn sstables_of(cost: &Cost) -> [u64; 7] {
    [
        Count::SSTablesConsidered,
        Count::SkippedByKeyRange,
        Count::SkippedByFilter,
        Count::SkippedByClustering,
        Count::SkippedByTimestamp,
        Count::SkippedByDeletion,
        Count::SSTablesTouched,
    ]
    .map(|count| cost.of(count))
}

#[test]
fn a_read_is_charged_what_the_disk_served_once() {
    let store = new_store(71, small_options());
    for clustering in 0..2000 {
        store.write_without_waiting("a", clustering, &format!("value of row {clustering}"), 10);
    }
    store.flush();
    let store = store.cold();
    let first = cost_of(&store, || store.partition("a", false));
    assert!(first.io.reads > 0 && first.io.bytes_read > 10_000, "{first:?}");
    let again = cost_of(&store, || store.partition("a", false));
    assert_eq!(again.io.reads, 0, "the chunks are cached: {again:?}");
    assert!(again.of(Count::CachedBytes) > 40_000, "{again:?}");
    cost_of(&store, || store.contents());
    cost_of(&store, || store.partition("a", true));
}

#[test]
fn newer_rows_make_older_sstables_needless() {
    let store = new_store(72, small_options());
    for timestamp in [10, 20, 30] {
        store.put("a", 1, "v", timestamp);
        store.flush();
    }
    let store = store.cold();
    let cost = cost_of(&store, || store.row("a", 1));
    assert_eq!(sstables_of(&cost), [3, 0, 0, 0, 2, 0, 1]);
    assert_eq!(cost.of(Count::Memtables), 0);
}

/// A row by its key is read twice if its newest cell, read in place of all that are not wanted, turns out to be deleted.
#[test]
fn an_sstable_that_is_read_twice_counts_once() {
    let store = new_store(74, small_options());
    store.alter(&add_column("w"));
    store.alter(&add_column("x"));
    let table = store.table();
    let cells = |cells: &[(&str, Cell)]| {
        let cell = |(name, cell): &(&str, Cell)| ColumnData {
            column: table.column_named(name).unwrap().id,
            data: Data::Simple(cell.clone()),
        };
        let row = Row {
            columns: cells.iter().map(cell).collect(),
            ..Row::empty(clustering_of(1))
        };
        Mutation {
            table: table.clone(),
            key: decorated("a"),
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        }
    };
    store.put("a", 2, "so that v is in the file", 1);
    let large = Bytes::from(vec![b'w'; 20_000]);
    let (newest, live) = (Cell::live(25, large), Cell::live(20, Bytes::from("x")));
    store.write(cells(&[("w", newest), ("x", live)]));
    store.flush();
    let now_secs = u32::try_from(store.env.now_secs()).unwrap();
    store.write(cells(&[("w", Cell::tombstone(30, now_secs))]));
    store.flush();
    let store = store.cold();
    let mut rows = Vec::new();
    let mut reading = Vec::new();
    let cost = cost_of(&store, || {
        trace::begin();
        rows = store.rows(
            "a",
            &ClusteringFilter {
                slices: vec![Slice::exactly(&clustering_of(1))],
                columns: Some([table.column_named("v").unwrap().id].into()),
                ..ClusteringFilter::all()
            },
        );
        let steps = trace::finish().into_iter().map(|event| event.activity);
        reading = steps.filter(|step| step.starts_with("Reading")).collect();
    });
    assert_eq!(rows.len(), 1, "x shows that the row lives");
    assert_eq!(reading.len(), 4, "both files were read twice: {reading:?}");
    assert_eq!(sstables_of(&cost), [2, 0, 0, 0, 0, 0, 2]);
}

#[test]
fn each_sstable_that_is_left_alone_says_why() {
    let store = new_store(73, small_options());
    store.put("a", 1, "elsewhere in the partition", 10);
    store.put("c", 1, "v", 10);
    store.put("e", 1, "v", 10);
    store.flush();
    store.put("b", 1, "v", 20);
    store.flush();
    store.put("a", 7, "wanted", 30);
    store.flush();
    let store = store.cold();
    let cost = cost_of(&store, || {
        assert_eq!(store.row("a", 7).as_deref(), Some("wanted"))
    });
    let [
        considered,
        by_key,
        by_filter,
        by_clustering,
        by_timestamp,
        by_deletion,
        touched,
    ] = sstables_of(&cost);
    assert_eq!((considered, touched, by_deletion), (3, 1, 0));
    assert_eq!(by_timestamp, 2, "the newest has all that is wanted");
    assert_eq!(by_key + by_filter + by_clustering, 0);

    let cost = cost_of(&store, || assert_eq!(store.row("a", 8), None));
    let [_, by_key, by_filter, by_clustering, by_timestamp, _, touched] = sstables_of(&cost);
    assert_eq!(by_clustering, 2, "no row of theirs is there");
    assert_eq!(by_key + by_filter, 1, "one does not have the partition");
    assert_eq!((by_timestamp, touched), (0, 0));

    let cost = cost_of(&store, || store.partition("d", false));
    let [considered, by_key, by_filter, .., touched] = sstables_of(&cost);
    assert_eq!((considered, by_key + by_filter, touched), (3, 3, 0));
}

#[test]
fn a_deleted_partition_makes_what_is_older_needless() {
    let store = new_store(74, small_options());
    for timestamp in [10, 20] {
        store.put("a", 1, "old", timestamp);
        store.flush();
    }
    store.write(delete_partition(&store.table(), "a", 25));
    store.put("a", 2, "new", 30);
    let cost = cost_of(&store, || store.partition("a", false));
    assert_eq!(sstables_of(&cost), [2, 0, 0, 0, 0, 2, 0]);
    assert_eq!(cost.of(Count::Memtables), 1);
    let cost = cost_of(&store, || store.row("a", 1));
    assert_eq!(sstables_of(&cost), [2, 0, 0, 0, 0, 2, 0]);
}

#[test]
fn a_range_read_touches_only_the_sstables_it_comes_to() {
    let store = new_store(75, small_options());
    for file in 0..10 {
        store.put(&format!("key {file}"), 1, "v", 10);
        store.flush();
    }
    let store = store.cold();
    let cost = cost_of(&store, || store.contents());
    let [considered, by_key, .., touched] = sstables_of(&cost);
    assert_eq!((considered, by_key, touched), (10, 0, 10));
}

#[test]
fn a_traced_read_tells_its_steps() {
    let store = new_store(76, small_options());
    store.put("a", 1, "old", 10);
    store.flush();
    store.put("a", 1, "new", 20);
    store.flush();
    let store = store.cold();
    trace::begin();
    store.row("a", 1);
    let told: Vec<String> = trace::finish().into_iter().map(|event| event.activity).collect();
    let has = |what: &str| told.iter().any(|activity| activity.contains(what));
    assert!(has("Reading sstable nb-2-big"), "{told:#?}");
    assert!(has("bytes of nb-2-big-Data.db at 0 in"), "{told:#?}");
    assert!(has("Newer data makes sstable nb-1-big needless"), "{told:#?}");
    assert!(has("Merged data from memtables and 1 sstables"), "{told:#?}");
}

/// How many SSTables there are in the tests of short reads: as many as a burst may leave.
const BURST: i32 = 108;

/// A table without static columns: those are part of the head of a partition.
fn plain_table(store: &Store) -> Arc<TableSchema> {
    let column = |name: &str, ty| NewColumn {
        name: name.to_owned(),
        ty,
        is_static: false,
        mask: None,
    };
    store.alter(&SchemaChange::CreateTable(Box::new(CreateTable {
        keyspace: "ks".to_owned(),
        name: "plain".to_owned(),
        columns: vec![
            column("k", CqlType::Text),
            column("c", CqlType::Int),
            column("v", CqlType::Text),
        ],
        partition_key: vec!["k".to_owned()],
        clustering: vec!["c".to_owned()],
        ..CreateTable::default()
    })));
    store.table_named("plain")
}

/// The clusterings of the first rows of a partition, and what they cost.
fn first_rows(
    store: &Store,
    table: &Arc<TableSchema>,
    filter: &ClusteringFilter,
    limit: usize,
) -> (Vec<Clustering>, Cost) {
    let mut found = Vec::new();
    let cost = cost_of(store, || {
        let mut cursor = store
            .engine
            .read_partition(table, &decorated("a"), filter)
            .unwrap();
        cursor.next_partition().unwrap().unwrap();
        while found.len() < limit
            && let Some(Unfiltered::Row(row)) = cursor.next_unfiltered().unwrap()
        {
            found.push(row.clustering);
        }
    });
    (found, cost)
}

#[test]
fn two_partitions_of_many_sstables_touch_those_that_have_them() {
    let store = new_store(77, small_options());
    let mut random = ilion_env::Seeded::new(77);
    let mut files_of: BTreeMap<DecoratedKey, BTreeSet<i32>> = BTreeMap::new();
    for file in 0..BURST {
        for _ in 0..30 {
            let key = format!("key {}", random.below(2000));
            store.write_without_waiting(&key, file, "v", 10);
            files_of.entry(decorated(&key)).or_default().insert(file);
        }
        store.flush();
    }
    let store = store.cold();
    let table = store.table();
    for limit in [1, 2] {
        let winners: BTreeSet<i32> = files_of.values().take(limit).flatten().copied().collect();
        assert!(winners.len() < 10);
        let all = ClusteringFilter::all();
        let cost = cost_of(&store, || {
            let mut cursor = store.engine.read_range(&table, &KeyRange::all(), &all).unwrap();
            for _ in 0..limit {
                cursor.next_partition().unwrap().unwrap();
                while cursor.next_unfiltered().unwrap().is_some() {}
            }
        });
        let [considered, .., touched] = sstables_of(&cost);
        // The token map has tokens only as far as they tell its own apart: one more may look as if it had the next key.
        let winners = winners.len() as u64;
        assert_eq!(considered, 108);
        assert!(
            (winners..=winners + 2).contains(&touched),
            "{touched} for {winners}"
        );
    }
    // From the middle of the ring, the same.
    let (start, _) = files_of.iter().nth(1000).unwrap();
    let winners: BTreeSet<i32> = files_of.values().skip(1000).take(2).flatten().copied().collect();
    let range = KeyRange {
        start: KeyBound::Before(start.clone()),
        end: KeyBound::End,
    };
    let cost = cost_of(&store, || {
        let mut cursor = store
            .engine
            .read_range(&table, &range, &ClusteringFilter::all())
            .unwrap();
        for _ in 0..2 {
            cursor.next_partition().unwrap().unwrap();
            while cursor.next_unfiltered().unwrap().is_some() {}
        }
    });
    let [considered, .., touched] = sstables_of(&cost);
    assert!(
        considered == 108 && touched <= winners.len() as u64 + 2,
        "{cost:?}"
    );
}

/// One partition, whose rows lie in one SSTable after another.
fn partition_over_files(seed: u64) -> (Store, Arc<TableSchema>) {
    let store = new_store(seed, small_options());
    let table = plain_table(&store);
    for file in 0..BURST {
        for clustering in 0..5 {
            let row = put(&table, "a", file * 10 + clustering, "v", 10);
            store.engine.apply(&[row]).unwrap();
        }
        store.engine.flush(table.id).unwrap();
    }
    (store.cold(), table)
}

#[test]
fn two_rows_of_a_partition_in_many_sstables_touch_those_that_win_also_reversed() {
    let (store, table) = partition_over_files(78);
    for (reversed, expected) in [(false, [0, 1]), (true, [1074, 1073])] {
        let filter = ClusteringFilter {
            reversed,
            ..ClusteringFilter::all()
        };
        let (found, cost) = first_rows(&store, &table, &filter, 2);
        assert_eq!(found, expected.map(clustering_of));
        assert_eq!(sstables_of(&cost), [108, 0, 0, 0, 0, 0, 1]);
        // All of it is all of them.
        let (found, cost) = first_rows(&store, &table, &filter, usize::MAX);
        assert_eq!((found.len(), sstables_of(&cost)[6]), (540, 108));
        let mut sorted = found.clone();
        sorted.sort_by_key(|clustering| {
            let value = clustering.values()[0].as_ref().unwrap();
            let value = i32::from_be_bytes(value[..].try_into().unwrap());
            if reversed { -value } else { value }
        });
        assert_eq!(found, sorted);
    }
}

#[test]
fn a_slice_of_a_partition_leaves_the_sstables_alone_that_have_nothing_of_it() {
    let (store, table) = partition_over_files(79);
    let bound = |kind, clustering: i32| {
        Bound::new(
            kind,
            Values::from_iter(clustering_of(clustering).values().clone()),
        )
    };
    for reversed in [false, true] {
        let filter = ClusteringFilter {
            slices: vec![Slice {
                start: bound(BoundKind::InclStart, 501),
                end: bound(BoundKind::InclEnd, 512),
            }],
            reversed,
            ..ClusteringFilter::all()
        };
        let (found, cost) = first_rows(&store, &table, &filter, usize::MAX);
        assert_eq!(found.len(), 7);
        let [considered, _, _, by_clustering, .., touched] = sstables_of(&cost);
        assert_eq!((considered, by_clustering, touched), (108, 106, 2));
        let (_, cost) = first_rows(&store, &table, &filter, 2);
        assert_eq!(sstables_of(&cost)[6], 1);
    }
}
