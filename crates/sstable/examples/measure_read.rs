//! What rows cost to read, for a profiler: `measure_read SHAPE ROWS ROUNDS`, shapes `blobs` (one row of five blobs of 34
//! bytes a partition), `words` (the same of words), `kilobyte` (a text of 1 KiB), `rows` (1000 rows of 34 bytes a partition);
//! `chunks-blobs` and so on are the bytes of these without any rows, `plain-blobs` and so on the rows seen where they lie.
//!
//! The difference of two numbers of rounds is what reading costs; `read_rows` is what a profiler may be told to count alone.

#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_env::{Env, RealEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, Flow, KeyRange,
    Liveness, PartitionHead, PlainRow, PlainVisitor, Row, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    ChunkReader, DataStream, Descriptor, EncodingStats, Format, OpenOptions, RangeCursor, SSTable, SSTableId,
    SSTableWriter, Scan, Version, WriterOptions, chunks,
};
use ilion_types::Partitioner;

const MICROS: i64 = 1_700_000_000_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let shape = arguments.next().unwrap_or_else(|| "blobs".to_owned());
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (partitions, rounds) = (number(50_000), number(10));
    let (how, shape) = shape.split_once('-').unwrap_or(("rows", &shape));
    let five = "k blob pk, a blob, b blob, c blob, d blob, e blob";
    let (text, rows_each, value) = match shape {
        "blobs" => (five, 1, Value::Random(34)),
        "words" => (five, 1, Value::Words(34)),
        "kilobyte" => ("k blob pk, v blob", 1, Value::Words(1024)),
        "rows" => ("k bigint pk, c bigint ck, v blob", 1000, Value::Random(34)),
        other => panic!("no such shape: {other}"),
    };
    let table = parse_table(text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = RealEnv::new();
    let descriptor = Descriptor::new(directory.path(), Version::NB, SSTableId::Sequence(1), Format::Big);
    write(
        &env,
        &descriptor,
        &table,
        (partitions / rows_each, rows_each),
        value,
    );
    let rows = partitions / rows_each * rows_each;
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
            "plain" => assert_eq!(see_rows(&sstable, &table), rows),
            _ => assert_eq!(read_rows(&sstable, &table), rows),
        }
        best = best.min(started.elapsed().as_nanos());
    }
    println!(
        "{how} of {shape}: {rows} rows, {} ns a row at best",
        best / u128::from(rows.max(1))
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

fn write(
    env: &Arc<dyn Env>,
    descriptor: &Descriptor,
    table: &Arc<TableSchema>,
    (partitions, rows_each): (u64, u64),
    value: Value,
) {
    let mut keys: Vec<DecoratedKey> = (0..partitions)
        .map(|key| DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key.to_be_bytes())))
        .collect();
    keys.sort();
    let options = WriterOptions {
        estimated_partitions: partitions,
        encoding_stats: EncodingStats {
            min_timestamp_micros: MICROS,
            ..EncodingStats::NONE
        },
        ..WriterOptions::default()
    };
    let mut writer = SSTableWriter::new(env, descriptor, table, options).unwrap();
    let mut state = 1_u64;
    for key in keys {
        let head = PartitionHead {
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
        };
        writer.begin_partition(&head).unwrap();
        for row in 0..rows_each {
            let clustering = match rows_each {
                1 => Clustering::empty(),
                _ => Clustering::of([Bytes::copy_from_slice(&row.to_be_bytes())]),
            };
            let row = row_of(clustering, table, value, &mut state);
            writer.add(&Unfiltered::Row(row)).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
}

fn row_of(clustering: Clustering, table: &TableSchema, value: Value, state: &mut u64) -> Row {
    let column = |column: &ilion_schema::Column| ColumnData {
        column: column.id,
        data: Data::Simple(Cell::live(MICROS + 5, value.make(state))),
    };
    Row {
        liveness: Liveness::live(MICROS + 5),
        columns: table.regulars().map(column).collect(),
        ..Row::empty(clustering)
    }
}

/// What values look like.
#[derive(Clone, Copy)]
enum Value {
    Random(usize),
    Words(usize),
}

impl Value {
    fn make(self, state: &mut u64) -> Bytes {
        const WORDS: [&str; 8] = [
            "alder ", "beech ", "dogwood ", "elm ", "fir ", "ginkgo ", "juniper ", "oak ",
        ];
        let (Self::Random(len) | Self::Words(len)) = self;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            match self {
                Self::Random(_) => bytes.extend_from_slice(&state.to_le_bytes()),
                Self::Words(_) => bytes.extend_from_slice(WORDS[(*state >> 61) as usize].as_bytes()),
            }
        }
        bytes.truncate(len);
        Bytes::from(bytes)
    }
}
