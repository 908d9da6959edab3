//! Tests that rows with the same layout are shown in batches, with the right values.

use std::path::Path;
use std::sync::Arc;

use crate::shown::{compare, read, watch};
use crate::support::write_all;
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::{
    AlikeRows, Bound, BoundKind, Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData,
    Cursor, Data, DecoratedKey, Flow, KeyRange, Liveness, Partition, PartitionUpdate, PlainRow, PlainVisitor,
    Row,
};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_sstable::{
    Component, Descriptor, EncodingStats, Format, OpenOptions, SSTable, SSTableId, Scan, Version,
    WriterOptions,
};
use ilion_types::{CqlType, Partitioner, Uuid};

const MICROS: i64 = 1_700_000_000_000_000;
const ROWS: i32 = 2000;

/// Partition key, clustering value (if any), timestamp, int and text of a row.
type Shown = (Vec<u8>, Option<i32>, i64, i32, String);

fn table(is_clustered: bool) -> Arc<TableSchema> {
    let mut table =
        TableBuilder::new("ks", "t", TableId(Uuid::from_u128(1))).partition_key("k", CqlType::Int);
    if is_clustered {
        table = table.clustering("c", CqlType::Int, ClusteringOrder::Asc);
    }
    table
        .regular("i", CqlType::Int)
        .regular("t", CqlType::Text)
        .build()
}

fn row(table: &TableSchema, clustering: Option<i32>, number: i32, text: String) -> Row {
    let micros = MICROS + i64::from(number) * 1000;
    let cell = |name: &str, value: Bytes| ColumnData {
        column: table.column_named(name).unwrap().id,
        data: Data::Simple(Cell::live(micros, value)),
    };
    let clustering = clustering.map(|value| Bytes::copy_from_slice(&value.to_be_bytes()));
    Row {
        liveness: Liveness::live(micros),
        columns: vec![
            cell("i", Bytes::copy_from_slice(&(number * 7).to_be_bytes())),
            cell("t", text.into()),
        ],
        ..Row::empty(clustering.map_or(Clustering::empty(), |value| Clustering::of([value])))
    }
}

/// A table with this many rows, in one partition or each in its own, and the rows in order.
fn written(
    env: &Arc<dyn Env>,
    table: &Arc<TableSchema>,
    text: impl Fn(i32) -> String,
) -> (Arc<SSTable>, Vec<Shown>) {
    let is_clustered = table.clustering().next().is_some();
    let key = |number: i32| {
        let key = Bytes::copy_from_slice(&number.to_be_bytes());
        DecoratedKey::new(Partitioner::Murmur3, key)
    };
    let mut shown = Vec::new();
    let mut show = |key: &DecoratedKey, clustering, number: i32| {
        let micros = MICROS + i64::from(number) * 1000;
        shown.push((key.key.to_vec(), clustering, micros, number * 7, text(number)));
        row(table, clustering, number, text(number))
    };
    let partition = |key: DecoratedKey, rows: Vec<Row>| {
        let update = PartitionUpdate {
            rows,
            ..PartitionUpdate::default()
        };
        Partition::of(key, update, &ClusteringComparator::of(table))
    };
    let partitions = if is_clustered {
        let key = key(0);
        let rows = (0..ROWS).map(|number| show(&key, Some(number), number)).collect();
        vec![partition(key, rows)]
    } else {
        let mut keys: Vec<_> = (0..ROWS).map(|number| (key(number), number)).collect();
        keys.sort();
        let keys = keys.into_iter();
        keys.map(|(key, number)| {
            let row = show(&key, None, number);
            partition(key, vec![row])
        })
        .collect()
    };
    let id = SSTableId::Sequence(1);
    let descriptor = Descriptor::new(Path::new("d"), Version::NB, id, Format::Big);
    env.create_dir_all(Path::new("d")).unwrap();
    let options = WriterOptions {
        encoding_stats: EncodingStats {
            min_timestamp_micros: MICROS,
            ..EncodingStats::NONE
        },
        ..WriterOptions::default()
    };
    write_all(env, &descriptor, table, options, &partitions);
    let sstable = SSTable::open(env, &descriptor, &OpenOptions::default()).unwrap();
    (Arc::new(sstable), shown)
}

/// Keeps the rows that it is shown, and counts those in batches. Refuses some rows, and stops after some.
#[derive(Default)]
struct Visitor {
    shown: Vec<Shown>,
    alike: usize,
    every: usize,
}

impl PlainVisitor for Visitor {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let int = |value: &[u8]| i32::from_be_bytes(value.try_into().unwrap());
        let clustering = row.clustering.first();
        self.shown.push((
            row.key.to_vec(),
            clustering.map(|value| int(value.unwrap())),
            row.timestamp_micros.unwrap(),
            int(row.cells[0].1),
            String::from_utf8(row.cells[1].1.to_vec()).unwrap(),
        ));
        // The stored cells: each has a flag first, and the text its length.
        let text = row.cells[1].1.len();
        let len_len = if text < 0x80 { 1 } else { 2 };
        assert_eq!(row.stored.unwrap().len(), 6 + len_len + text);
        match self.every != 0 && self.shown.len().is_multiple_of(self.every) {
            true => Flow::Last,
            false => Flow::Next,
        }
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let (taken, flow) = rows.each(|row| self.row(row));
        self.alike += taken;
        (taken, flow)
    }
}

fn visit(sstable: &Arc<SSTable>, table: &Arc<TableSchema>, before: Option<&Bound>, visitor: &mut Visitor) {
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(table, KeyRange::all(), filter, Scan::Sequential);
    let head = cursor.next_partition().unwrap().unwrap();
    if table.clustering().next().is_none() {
        cursor.next_unfiltered().unwrap();
        while cursor.plain_partitions(None, visitor).unwrap().is_some() {}
        return;
    }
    while cursor.plain_rows(&head.key, before, visitor).unwrap() > 0 {}
}

fn word(number: i32) -> String {
    format!("word {number:06}")
}

#[test]
fn rows_laid_out_alike_are_shown_many_at_once() {
    for is_clustered in [true, false] {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let table = table(is_clustered);
        let (sstable, rows) = written(&env, &table, word);
        // Except in wide tables, the first row was read one by one.
        let rows = &rows[usize::from(!is_clustered)..];
        for every in [0, 1, 7, 100, 101] {
            let mut visitor = Visitor {
                every,
                ..Visitor::default()
            };
            visit(&sstable, &table, None, &mut visitor);
            assert_eq!(visitor.shown, rows, "clustered {is_clustered}, every {every}");
            assert!(visitor.alike > rows.len() * 8 / 10, "{}", visitor.alike);
        }
    }
}

#[test]
fn they_end_where_they_are_to() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
    let table = table(true);
    let (sstable, rows) = written(&env, &table, word);
    for end in [0, 1, 2, 3, 9, 10, 11, 12, 500, ROWS - 1, ROWS] {
        for (kind, more) in [(BoundKind::ExclEnd, 0), (BoundKind::InclEnd, 1)] {
            let bound = Bound::new(kind, [Some(Bytes::copy_from_slice(&end.to_be_bytes()))].into());
            let mut visitor = Visitor::default();
            visit(&sstable, &table, Some(&bound), &mut visitor);
            let count = usize::try_from((end + more).min(ROWS)).unwrap();
            assert_eq!(visitor.shown, rows[..count], "{kind:?} {end}");
        }
    }
}

#[test]
fn rows_of_any_length_are_shown_as_they_are() {
    let length = |number: i32| number.unsigned_abs() as usize;
    let texts: [&dyn Fn(i32) -> String; 4] = [
        &|number| "x".repeat(1 + length(number) * 7 % 13),
        // Some are longer, so that their length has two bytes.
        &|number| "x".repeat(if number % 50 == 49 { 200 } else { 20 }),
        // Two of each length.
        &|number| "x".repeat(1 + length(number) / 2 % 90),
        // Also among rows whose size has two bytes.
        &|number| "x".repeat(60 + length(number) % 67),
    ];
    for is_clustered in [true, false] {
        for (index, text) in texts.iter().enumerate() {
            let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
            let table = table(is_clustered);
            let (sstable, rows) = written(&env, &table, text);
            for every in [0, 7] {
                let mut visitor = Visitor {
                    every,
                    ..Visitor::default()
                };
                visit(&sstable, &table, None, &mut visitor);
                assert_eq!(visitor.shown, rows[usize::from(!is_clustered)..]);
                // In partitions with clustering columns, only the last value differs in length.
                let least = if is_clustered { rows.len() * 7 / 10 } else { 0 };
                assert!(visitor.alike >= least, "{index}: {}", visitor.alike);
            }
            let bound = Bound::new(
                BoundKind::ExclEnd,
                [Some(Bytes::copy_from_slice(&777_i32.to_be_bytes()))].into(),
            );
            if is_clustered {
                let mut visitor = Visitor::default();
                visit(&sstable, &table, Some(&bound), &mut visitor);
                assert_eq!(visitor.shown, rows[..777]);
            }
        }
    }
}

#[test]
fn what_comes_before_a_damaged_chunk_is_shown() {
    for is_clustered in [true, false] {
        let disk = MemEnv::new(1);
        let env: Arc<dyn Env> = Arc::new(disk.clone());
        let table = table(is_clustered);
        let (sstable, rows) = written(&env, &table, word);
        let path = sstable.descriptor().path(&Component::Data);
        let filter = Arc::new(ClusteringFilter::all());
        let middle = env.file_size(&path).unwrap() / 2;
        disk.corrupt_byte(&path, middle, 1).unwrap();
        let cursor = || sstable.cursor(&table, KeyRange::all(), filter.clone(), Scan::Sequential);
        let seen = watch(&mut cursor(), || Flow::Next);
        assert!(seen.1, "it fails");
        let shown = compare(seen, read(&mut cursor()), &filter).unwrap();
        assert!(shown > 100 && shown < rows.len(), "{shown}");
    }
}

/// Rows with such a clustering have the same layout, too, but not that of rows which store each value.
#[test]
fn rows_with_an_empty_or_null_clustering_value_are_shown_with_the_values_that_they_have() {
    for first in [
        Some(Bytes::new()),
        None,
        Some(Bytes::from_static(b"\x09longer than that")),
    ] {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let table = TableBuilder::new("ks", "t", TableId(Uuid::from_u128(1)))
            .partition_key("k", CqlType::Int)
            .clustering("a", CqlType::Text, ClusteringOrder::Asc)
            .clustering("b", CqlType::Int, ClusteringOrder::Asc)
            .regular("i", CqlType::Int)
            .regular("t", CqlType::Text)
            .build();
        let rows = (0..200).map(|number: i32| Row {
            clustering: Clustering::new(
                [first.clone(), Some(Bytes::copy_from_slice(&number.to_be_bytes()))]
                    .into_iter()
                    .collect(),
            ),
            ..row(&table, None, number, word(7))
        });
        let update = PartitionUpdate {
            rows: rows.collect(),
            ..PartitionUpdate::default()
        };
        let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(&[0; 4]));
        let partition = Partition::of(key, update, &ClusteringComparator::of(&table));
        let descriptor = Descriptor::new(Path::new("d"), Version::NB, SSTableId::Sequence(1), Format::Big);
        env.create_dir_all(Path::new("d")).unwrap();
        write_all(&env, &descriptor, &table, WriterOptions::default(), &[partition]);
        let sstable = SSTable::open(&env, &descriptor, &OpenOptions::default()).unwrap();
        let sstable = Arc::new(sstable);
        let filter = Arc::new(ClusteringFilter::all());
        let cursor = || sstable.cursor(&table, KeyRange::all(), filter.clone(), Scan::Sequential);
        let seen = watch(&mut cursor(), || Flow::Next);
        let shown = compare(seen, read(&mut cursor()), &filter).unwrap();
        assert!(shown >= 200, "{shown}");
    }
}
