//! Tests that SSTables of Cassandra are read and written again with the same bytes, except for what compressors choose.

use std::path::Path;
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_env::{Env, MemEnv, RealEnv};
use ilion_rows::{ClusteringFilter, Cursor, KeyRange};
use ilion_schema::TableSchema;
use ilion_sstable::crc_file::CrcFile;
use ilion_sstable::{
    ChunkReader, Component, Descriptor, SSTable, SSTableWriter, Scan, Statistics, TransactionKind,
    WriterOptions, read_component,
};

use crate::support::{Case, cases};

/// The whole header except the compression, so that chunks are the same.
fn table_of(env: &dyn Env, descriptor: &Descriptor, table: &TableSchema, fp_chance: f64) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    builder.options.bloom_filter_fp_chance = fp_chance;
    builder.options.compression.clear();
    let chunks = ChunkReader::open(env, descriptor, None).unwrap();
    if let Some(info) = chunks.compression() {
        let option = |key: &str, value: String| (key.to_owned(), value);
        builder.options.compression = [
            option("class", info.class.clone()),
            option("chunk_length_in_kb", (info.chunk_length >> 10).to_string()),
        ]
        .into();
    }
    builder.build()
}

fn options_of(sstable: &SSTable, statistics: &Statistics, case: &Case) -> WriterOptions {
    let stats = &statistics.stats;
    let intervals = stats.commit_log_intervals.iter().map(|(start, end)| {
        let of = |position: &ilion_sstable::CommitLogPosition| {
            (position.segment.unsigned_abs(), position.offset.unsigned_abs())
        };
        (of(start), of(end))
    });
    WriterOptions {
        partitioner: case.partitioner,
        // As many partitions as the memtable had.
        estimated_partitions: stats.partition_sizes.count(),
        commit_log_intervals: intervals.collect(),
        encoding_stats: sstable.header().stats,
        level: stats.level,
        repaired_at_millis: stats.repaired_at_millis,
        pending_repair: stats.pending_repair,
        originating_host: stats.originating_host,
        kind: TransactionKind::Compaction,
        ..WriterOptions::default()
    }
}

fn statistics_of(env: &dyn Env, descriptor: &Descriptor) -> Statistics {
    let bytes = read_component(env, descriptor, &Component::Statistics)
        .unwrap()
        .unwrap();
    Statistics::decode(&bytes, descriptor.version, Path::new("Statistics.db")).unwrap()
}

fn data_of(env: &dyn Env, descriptor: &Descriptor) -> Vec<u8> {
    let chunks = ChunkReader::open(env, descriptor, None).unwrap();
    let length = usize::try_from(chunks.data_length()).unwrap();
    chunks.read_at(0, length).unwrap().to_vec()
}

fn assert_same(case: &str, what: &Component, expected: &[u8], found: &[u8]) {
    let at = expected
        .iter()
        .zip(found)
        .position(|(expected, found)| expected != found);
    let at = at.or((expected.len() != found.len()).then_some(expected.len().min(found.len())));
    if let Some(at) = at {
        let around = |bytes: &[u8]| {
            format!(
                "{:02x?}",
                &bytes[at.saturating_sub(40)..(at + 24).min(bytes.len())]
            )
        };
        panic!(
            "{case}: {what} differs at byte {at}:\n{}\n{}",
            around(expected),
            around(found)
        );
    }
}

fn rewrite(case: &Case, index: usize) {
    let real: Arc<dyn Env> = RealEnv::new();
    let original = &case.sstables[index];
    let (sstable, table) = case.open(index);
    let statistics = statistics_of(&*real, original);
    let fp_chance = statistics.validation.as_ref().unwrap().bloom_filter_fp_chance;
    let written_table = table_of(&*real, original, &table, fp_chance);

    let mem: Arc<dyn Env> = Arc::new(MemEnv::new(1));
    mem.create_dir_all(&original.directory).unwrap();
    let options = options_of(&sstable, &statistics, case);
    let mut writer = SSTableWriter::new(&mem, original, &written_table, options).unwrap();
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(&table, KeyRange::all(), filter, Scan::Sequential);
    while let Some(head) = cursor.next_partition().unwrap() {
        writer.begin_partition(&head).unwrap();
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            writer.add(&unfiltered).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();

    let data = Component::Data;
    assert_same(
        &case.name,
        &data,
        &data_of(&*real, original),
        &data_of(&*mem, original),
    );
    check_crcs(&*mem, original, &data_of(&*real, original));
    for component in [
        Component::Index,
        Component::Summary,
        Component::Partitions,
        Component::Rows,
        Component::Filter,
    ] {
        let of = |env: &dyn Env| {
            read_component(env, original, &component)
                .unwrap()
                .unwrap_or_default()
        };
        assert_same(&case.name, &component, &of(&*real), &of(&*mem));
    }
    let mut found = statistics_of(&*mem, original);
    found.stats.compression_ratio = statistics.stats.compression_ratio;
    assert_eq!(format!("{found:#?}"), format!("{statistics:#?}"), "{}", case.name);
}

#[test]
fn what_cassandra_wrote_is_written_again_byte_for_byte() {
    for case in cases() {
        for index in 0..case.sstables.len() {
            rewrite(&case, index);
        }
    }
}

/// Not compared with Cassandra's, whose chunks are longer.
fn check_crcs(env: &dyn Env, descriptor: &Descriptor, data: &[u8]) {
    let Some(bytes) = read_component(env, descriptor, &Component::Crc).unwrap() else {
        return;
    };
    let found = CrcFile::decode(&bytes, &descriptor.path(&Component::Crc)).unwrap();
    let chunks = data.chunks(found.chunk_length as usize);
    assert_eq!(found.crcs, chunks.map(crc32).collect::<Vec<_>>());
}
