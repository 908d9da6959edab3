//! Measures the writer: `measure_write [PARTITIONS] [ROWS_A_PARTITION]`, files in memory.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv, RealEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, DeletionTime, Liveness, PartitionHead, Row, Unfiltered,
};
use ilion_sstable::{
    Component, Descriptor, EncodingStats, Format, SSTableId, SSTableWriter, Version, WriterOptions,
};
use ilion_types::Partitioner;

const MICROS: i64 = 1_700_000_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let partitions = numbers.first().copied().unwrap_or(200_000);
    let rows = numbers.get(1).copied().unwrap_or(5);
    let table = parse_table("k int pk, c int ck, a int, b text, d bigint, e text, f blob")?;
    let clock = RealEnv::new();
    let mut keys: Vec<DecoratedKey> = (0..partitions)
        .map(|key| DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key.to_be_bytes())))
        .collect();
    keys.sort();
    let row: Vec<Row> = (0..rows).map(|row| sample_row(&table, row)).collect();
    let unfiltereds: Vec<Unfiltered> = row.into_iter().map(Unfiltered::Row).collect();
    for class in ["", "LZ4Compressor", "ZstdCompressor"] {
        let mut builder = table.to_builder();
        builder.options.compression = [("class".to_owned(), class.to_owned())].into();
        let table = builder.build();
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        env.create_dir_all(Path::new("d"))?;
        let descriptor = Descriptor::new(Path::new("d"), Version::NB, SSTableId::Sequence(1), Format::Big);
        let options = WriterOptions {
            estimated_partitions: u64::from(partitions),
            encoding_stats: EncodingStats {
                min_timestamp_micros: MICROS,
                ..EncodingStats::NONE
            },
            ..WriterOptions::default()
        };
        let start = clock.monotonic_nanos();
        let mut writer = SSTableWriter::new(&env, &descriptor, &table, options)?;
        for key in &keys {
            writer.begin_partition(&PartitionHead {
                key: key.clone(),
                deletion: DeletionTime::LIVE,
                static_row: None,
            })?;
            for unfiltered in &unfiltereds {
                writer.add(unfiltered)?;
            }
            writer.finish_partition()?;
        }
        let bytes = writer.data_bytes();
        writer.finish()?;
        let nanos = clock.monotonic_nanos() - start;
        let count = u64::from(partitions) * u64::from(rows);
        println!(
            "{class:16} {bytes} bytes ({} stored), {} ms: {} ns a row, {} MB/s",
            env.file_size(&descriptor.path(&Component::Data))?,
            nanos / 1_000_000,
            nanos / count.max(1),
            bytes * 1000 / nanos.max(1),
        );
    }
    Ok(())
}

fn sample_row(table: &ilion_schema::TableSchema, number: u32) -> Row {
    let cells = ["a", "b", "d", "e", "f"].map(|name| {
        let value: &[u8] = match name {
            "a" => &number.to_be_bytes(),
            "b" => b"some text of a user",
            "d" => &[0, 0, 0, 1, 2, 3, 4, 5],
            "e" => b"another column with a little more text in it",
            _ => &[7; 24],
        };
        let column = table.column_named(name).map(|column| column.id);
        column.map(|column| ColumnData {
            column,
            data: Data::Simple(Cell::live(MICROS + 5, Bytes::copy_from_slice(value))),
        })
    });
    Row {
        clustering: Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]),
        liveness: Liveness::live(MICROS + 5),
        deletion: DeletionTime::LIVE,
        columns: cells.into_iter().flatten().collect(),
    }
}
