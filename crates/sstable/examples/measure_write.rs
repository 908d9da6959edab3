//! What rows cost to write, for a profiler: `measure_write SHAPE ROWS ROUNDS`, shapes `blobs` (one row of five blobs of 34
//! bytes a partition), `words` (the same of words), `kilobyte` (a text of 1 KiB), `rows` (1000 rows of 34 bytes a partition);
//! `chunks-blobs` and so on are the bytes of these without any rows, `plain-blobs` and so on rows that are written where they lie, as
//! a compaction does.
//!
//! The difference of two numbers of rounds is what writing costs; `write_rows` is what a profiler may be told to count alone.

#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

mod shapes;

use std::sync::Arc;
use std::time::Instant;

use ilion_env::{Env, RealEnv};
use ilion_rows::{Data, DecoratedKey, PartitionHead, PlainRow, Unfiltered};
use ilion_schema::ColumnId;
use ilion_sstable::{
    ChunkReader, ChunkWriter, Compression, DataStream, Descriptor, Format, SSTableId, SSTableWriter, Version,
    chunks,
};

use shapes::{MICROS, Shape};

/// Rows that differ: a chunk has none twice, and all of them stay near the processor.
const DIFFERENT_ROWS: u64 = 100;
/// What writes go through the chunk writer in, when it is measured alone.
const PIECE_BYTES: usize = 64 << 10;

/// What is written.
struct Contents {
    shape: Shape,
    heads: Vec<PartitionHead>,
    /// Of partitions in turn.
    rows: Vec<Vec<Unfiltered>>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let shape = arguments.next().unwrap_or_else(|| "blobs".to_owned());
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (rows, rounds) = (number(50_000), number(10));
    let (how, name) = shape.split_once('-').unwrap_or(("rows", &shape));
    let shape = Shape::named(name);
    let mut state = 1_u64;
    let mut partition = |_| {
        (0..shape.rows_each)
            .map(|row| shape.row(row, &mut state))
            .collect()
    };
    let contents = Contents {
        heads: shape.heads(rows / shape.rows_each),
        rows: (0..(DIFFERENT_ROWS / shape.rows_each).max(1))
            .map(&mut partition)
            .collect(),
        shape,
    };
    let directory = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = RealEnv::new();
    let file = |number| {
        Descriptor::new(
            directory.path(),
            Version::NB,
            SSTableId::Sequence(number),
            Format::Big,
        )
    };
    let first = file(1);
    write_rows(&env, &first, &contents);
    let data = read_data(&env, &first);
    let mut best = u128::MAX;
    for round in 0..rounds {
        let descriptor = file(u32::try_from(round).unwrap() + 2);
        let started = Instant::now();
        match how {
            "chunks" => write_chunks(&env, &descriptor, &contents.shape, &data),
            "plain" => write_plain(&env, &descriptor, &contents),
            _ => write_rows(&env, &descriptor, &contents),
        }
        best = best.min(started.elapsed().as_nanos());
        descriptor.remove_files(&*env).unwrap();
    }
    let rows = contents.heads.len() as u128 * u128::from(contents.shape.rows_each);
    println!(
        "{how} of {name}: {rows} rows, {} ns a row at best",
        best / rows.max(1)
    );
}

fn read_data(env: &Arc<dyn Env>, descriptor: &Descriptor) -> Vec<u8> {
    let chunks = ChunkReader::open(&**env, descriptor, None).unwrap();
    let mut stream = DataStream::sequential(Arc::new(chunks), 0, chunks::READ_AHEAD_BYTES);
    let mut data = Vec::new();
    while !stream.is_at_end() {
        stream.require(1).unwrap();
        data.extend_from_slice(stream.rest());
        stream.consume(stream.rest().len());
    }
    data
}

#[inline(never)]
fn write_chunks(env: &Arc<dyn Env>, descriptor: &Descriptor, shape: &Shape, data: &[u8]) {
    let compression = Compression::from_options(&shape.table.options.compression).unwrap();
    let mut writer = ChunkWriter::create(env.clone(), descriptor.clone(), compression).unwrap();
    for piece in data.chunks(PIECE_BYTES) {
        writer.write(piece).unwrap();
    }
    writer.finish().unwrap();
}

fn writer(env: &Arc<dyn Env>, descriptor: &Descriptor, contents: &Contents) -> SSTableWriter {
    let options = Shape::options(contents.heads.len() as u64);
    SSTableWriter::new(env, descriptor, &contents.shape.table, options).unwrap()
}

#[inline(never)]
fn write_rows(env: &Arc<dyn Env>, descriptor: &Descriptor, contents: &Contents) {
    let mut writer = writer(env, descriptor, contents);
    for (head, rows) in contents.heads.iter().zip(contents.rows.iter().cycle()) {
        writer.begin_partition(head).unwrap();
        for row in rows {
            writer.add(row).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
}

#[inline(never)]
fn write_plain(env: &Arc<dyn Env>, descriptor: &Descriptor, contents: &Contents) {
    let mut writer = writer(env, descriptor, contents);
    let partitions: Vec<Vec<Parts<'_>>> = contents
        .rows
        .iter()
        .map(|rows| rows.iter().map(Parts::of).collect())
        .collect();
    for (head, rows) in contents.heads.iter().zip(partitions.iter().cycle()) {
        let key = &head.key;
        if contents.shape.rows_each == 1 {
            assert!(writer.add_plain(&key.token, &rows[0].row_of(key)).unwrap());
            continue;
        }
        writer.begin_partition(head).unwrap();
        for row in rows {
            assert!(writer.add_plain_row(&row.row_of(key)).unwrap());
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
}

/// The values of a row where they lie.
struct Parts<'r> {
    clustering: Vec<Option<&'r [u8]>>,
    cells: Vec<(ColumnId, &'r [u8])>,
}

impl<'r> Parts<'r> {
    fn of(unfiltered: &'r Unfiltered) -> Self {
        let Unfiltered::Row(row) = unfiltered else {
            panic!("there are only rows");
        };
        let cells = row.columns.iter().map(|column| match &column.data {
            Data::Simple(cell) => (column.column, &cell.value[..]),
            Data::Complex(_) => panic!("it has simple columns"),
        });
        let clustering = row.clustering.values().iter();
        Self {
            clustering: clustering.map(Option::as_deref).collect(),
            cells: cells.collect(),
        }
    }

    fn row_of(&'r self, key: &'r DecoratedKey) -> PlainRow<'r> {
        PlainRow {
            key: &key.key,
            token: Some(&key.token),
            clustering: &self.clustering,
            timestamp_micros: Some(MICROS + 5),
            cells: &self.cells,
            stored: None,
        }
    }
}
