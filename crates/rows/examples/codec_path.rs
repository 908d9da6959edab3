//! Measures the codec of mutations and the merge, in instructions:
//!
//! ```text
//! cargo build --release -p ilion-rows --example codec_path
//! for path in encode decode merge; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*codec_path::measured*' \
//!         target/release/examples/codec_path $path 20000
//! done
//! ```
//! Divide the instructions collected by the count: that is the cost of one mutation, or of one row of five values.

#![expect(clippy::unwrap_used, reason = "a tool for developers")]

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ColumnData, Cursor, Data, DecoratedKey, Direction, Liveness,
    MergeCursor, Mutation, MutationReader, Partition, PartitionUpdate, Row, VecCursor, encode_mutation,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

fn row(table: &TableSchema, c: u64, micros: i64) -> Row {
    let columns = table.regulars().map(|column| ColumnData {
        column: column.id,
        data: Data::Simple(Cell::live(micros, Bytes::from(vec![7; 34]))),
    });
    Row {
        liveness: Liveness::live(micros),
        columns: columns.collect(),
        ..Row::empty(Clustering::of([Bytes::copy_from_slice(&c.to_be_bytes())]))
    }
}

fn update(rows: Vec<Row>) -> PartitionUpdate {
    PartitionUpdate {
        rows,
        ..PartitionUpdate::default()
    }
}

#[inline(never)]
fn measured_encode(mutation: &Mutation, out: &mut Vec<u8>) {
    encode_mutation(mutation, out);
}

#[inline(never)]
fn measured_decode(record: &Bytes, table: &Arc<TableSchema>) {
    let mut reader = MutationReader::new(record.clone());
    black_box(reader.next_mutation(&|_| Some(table.clone())).unwrap());
}

#[inline(never)]
fn measured_merge(cursor: &mut MergeCursor) {
    while let Some(head) = cursor.next_partition().unwrap() {
        black_box(head);
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            black_box(unfiltered);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let count: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000);
    let table = parse_table("k bigint pk, c bigint ck, a blob, b blob, d blob, e blob, f blob").unwrap();
    let key = DecoratedKey::new(
        Partitioner::Murmur3,
        Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 1]),
    );
    let mutation = Mutation {
        table: table.clone(),
        key: key.clone(),
        update: update(vec![row(&table, 1, 1_700_000_000_000_000)]),
    };
    let mut record = Vec::new();
    encode_mutation(&mutation, &mut record);
    match path.as_str() {
        "encode" => {
            let mut out = Vec::with_capacity(record.len());
            for _ in 0..count {
                out.clear();
                measured_encode(black_box(&mutation), &mut out);
            }
        }
        "decode" => {
            let record = Bytes::from(record);
            (0..count).for_each(|_| measured_decode(black_box(&record), &table));
        }
        "merge" => {
            let comparator = ClusteringComparator::of(&table);
            // Three sources; each row is in two of them.
            let source = |skipped: u64| -> Box<dyn Cursor> {
                let rows = (0..count).filter(|c| c % 3 != skipped);
                let rows = rows.map(|c| row(&table, c, 10 + skipped.cast_signed())).collect();
                Box::new(VecCursor::new(vec![Partition::of(
                    key.clone(),
                    update(rows),
                    &comparator,
                )]))
            };
            let sources = (0..3).map(source).collect();
            measured_merge(&mut MergeCursor::new(sources, table.clone(), Direction::Forward));
        }
        _ => eprintln!("codec_path encode|decode|merge [count]"),
    }
}
