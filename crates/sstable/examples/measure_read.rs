//! What rows cost to read, for a profiler: `measure_read SHAPE ROWS ROUNDS`, shapes `blobs` (one row of five blobs of 34
//! bytes a partition), `words` (the same of words), `kilobyte` (a text of 1 KiB), `rows` (1000 rows of 34 bytes a partition);
//! `chunks-blobs` and so on are the bytes of these without any rows, `plain-blobs` and so on the rows seen where they lie.
//!
//! The difference of two numbers of rounds is what reading costs; `read_rows` is what a profiler may be told to count alone.

#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

mod shapes;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ilion_env::{Env, RealEnv};
use ilion_rows::{AlikeRows, ClusteringFilter, Cursor, Flow, KeyRange, PlainRow, PlainVisitor};
use ilion_schema::TableSchema;
use ilion_sstable::{
    ChunkReader, DataStream, Descriptor, Format, OpenOptions, RangeCursor, SSTable, SSTableId, SSTableWriter,
    Scan, Version, chunks,
};

use shapes::Shape;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let shape = arguments.next().unwrap_or_else(|| "blobs".to_owned());
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (partitions, rounds) = (number(50_000), number(10));
    let (how, name) = shape.split_once('-').unwrap_or(("rows", &shape));
    let shape = Shape::named(name);
    let directory = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = RealEnv::new();
    let descriptor = Descriptor::new(directory.path(), Version::NB, SSTableId::Sequence(1), Format::Big);
    let rows = partitions / shape.rows_each * shape.rows_each;
    write(&env, &descriptor, &shape, partitions / shape.rows_each);
    let options = OpenOptions {
        chunk_cache: None,
        ..OpenOptions::default()
    };
    let sstable = Arc::new(SSTable::open(&env, &descriptor, &options).unwrap());
    let mut best = u128::MAX;
    for _ in 0..rounds {
        let started = Instant::now();
        match how {
            "chunks" => read_chunks(&env, &descriptor),
            "plain" => assert_eq!(see_rows(&sstable, &shape.table), rows),
            _ => assert_eq!(read_rows(&sstable, &shape.table), rows),
        }
        best = best.min(started.elapsed().as_nanos());
    }
    println!(
        "{how} of {name}: {rows} rows, {:.1} ns a row at best",
        best as f64 / rows.max(1) as f64
    );
}

fn scan(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> RangeCursor {
    let filter = Arc::new(ClusteringFilter::all());
    sstable.cursor(table, KeyRange::all(), filter, Scan::Sequential)
}

#[inline(never)]
fn read_rows(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> u64 {
    let mut cursor = scan(sstable, table);
    let mut rows = 0;
    while let Some(head) = cursor.next_partition().unwrap() {
        black_box(&head);
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            black_box(&unfiltered);
            rows += 1;
        }
    }
    rows
}

/// Counts plain rows.
struct Count(u64);

impl PlainVisitor for Count {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        black_box(row);
        self.0 += 1;
        Flow::Next
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let layout = rows.layout();
        let cells = layout.cells.iter().map(|(_, place)| place);
        for place in layout.clustering.iter().chain(cells) {
            rows.values(place, |value| {
                black_box(value);
            });
        }
        self.0 += rows.count() as u64;
        (rows.count(), Flow::Next)
    }
}

#[inline(never)]
fn see_rows(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> u64 {
    let mut cursor = scan(sstable, table);
    let mut count = Count(0);
    loop {
        cursor.plain_partitions(None, &mut count).unwrap();
        let Some(head) = cursor.next_partition().unwrap() else {
            return count.0;
        };
        black_box(&head);
        loop {
            cursor.plain_rows(&head.key, None, &mut count).unwrap();
            let Some(unfiltered) = cursor.next_unfiltered().unwrap() else {
                break;
            };
            black_box(&unfiltered);
            count.0 += 1;
        }
    }
}

#[inline(never)]
fn read_chunks(env: &Arc<dyn Env>, descriptor: &Descriptor) {
    let chunks = ChunkReader::open(&**env, descriptor, None).unwrap();
    let chunks = Arc::new(chunks.reopen_for_scan(&**env).unwrap());
    let mut stream = DataStream::sequential(chunks, 0, chunks::READ_AHEAD_BYTES);
    while !stream.is_at_end() {
        stream.require(1).unwrap();
        stream.consume(black_box(stream.rest()).len());
    }
}

fn write(env: &Arc<dyn Env>, descriptor: &Descriptor, shape: &Shape, partitions: u64) {
    let options = Shape::options(partitions);
    let mut writer = SSTableWriter::new(env, descriptor, &shape.table, options).unwrap();
    let mut state = 1_u64;
    for head in shape.heads(partitions) {
        writer.begin_partition(&head).unwrap();
        for row in 0..shape.rows_each {
            writer.add(&shape.row(row, &mut state)).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
}
