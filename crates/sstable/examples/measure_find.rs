//! Measures opening an SSTable and finding partitions in it: `measure_find PARTITIONS [LOOKUPS [ROUNDS [FINDING]]]`.
//!
//! Measures each way of finding partitions, with keys of the index summary ("near") and keys half an interval away ("far"). The
//! files are in a temporary directory, in the page cache.

#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_env::{Env, RealEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey,
    Liveness, Partition, PartitionUpdate, Row,
};
use ilion_sstable::{
    ChunkCache, Component, Descriptor, Finding, Format, OpenOptions, SSTable, SSTableId, SSTableWriter,
    Version, WriterOptions,
};
use ilion_types::Partitioner;

const INTERVAL: usize = 128;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (partitions, lookups) = (number(1_000_000), number(50_000));
    // With a profiler, the difference between two numbers of rounds is the cost of the lookups.
    let rounds = number(1);
    let only = arguments.next();
    let directory = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = RealEnv::new();
    let table = parse_table("k bigint pk, v blob").unwrap();
    let descriptor = Descriptor::new(directory.path(), Version::NB, SSTableId::Sequence(1), Format::Big);
    let mut keys: Vec<DecoratedKey> = (0..partitions)
        .map(|key| DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key.to_be_bytes())))
        .collect();
    keys.sort();
    let options = WriterOptions {
        estimated_partitions: partitions,
        ..WriterOptions::default()
    };
    let started = Instant::now();
    let mut writer = SSTableWriter::new(&env, &descriptor, &table, options).unwrap();
    let comparator = ClusteringComparator::of(&table);
    let column = table.column_named("v").unwrap().id;
    for key in &keys {
        let value = Bytes::copy_from_slice(&[&key.key[..]; 8].concat());
        let row = Row {
            liveness: Liveness::live(1),
            columns: vec![ColumnData {
                column,
                data: Data::Simple(Cell::live(1, value)),
            }],
            ..Row::empty(Clustering::of([]))
        };
        let update = PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        };
        let partition = Partition::of(key.clone(), update, &comparator);
        writer.begin_partition(&partition.head).unwrap();
        for unfiltered in &partition.unfiltereds {
            writer.add(unfiltered).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
    let bytes = env.file_size(&descriptor.path(&Component::Tokens)).unwrap();
    println!(
        "{partitions} partitions written in {:.2?}; token map: {:.2} bytes a partition",
        started.elapsed(),
        bytes as f64 / partitions as f64
    );
    for finding in [Finding::TokenMap, Finding::Summary, Finding::WholeIndex] {
        if only.as_ref().is_some_and(|only| *only != format!("{finding:?}")) {
            continue;
        }
        let options = OpenOptions {
            chunk_cache: Some(Arc::new(ChunkCache::new(1 << 30))),
            finding,
            ..OpenOptions::default()
        };
        let started = Instant::now();
        let sstable = Arc::new(SSTable::open(&env, &descriptor, &options).unwrap());
        let opened = started.elapsed();
        let filter = Arc::new(ClusteringFilter::all());
        let step = (keys.len() / lookups as usize).next_multiple_of(INTERVAL);
        let find = |offset: usize| {
            let started = Instant::now();
            for index in 0..lookups as usize {
                let at = (index * step + offset + index * step / keys.len() * INTERVAL) % keys.len();
                let mut cursor = sstable.partition(&table, &keys[at], &filter).unwrap().unwrap();
                black_box(cursor.next_partition().unwrap().unwrap());
                black_box(cursor.next_unfiltered().unwrap());
            }
            started.elapsed()
        };
        find(0);
        let (near, far) = (find(0), find(INTERVAL / 2));
        for round in 0..rounds {
            find(usize::try_from(round % 2).unwrap() * INTERVAL / 2);
        }
        println!("{finding:?}: opened in {opened:.2?}; {lookups} look-ups: near {near:.2?}, far {far:.2?}");
        let started = Instant::now();
        for index in 0..lookups as usize {
            black_box(sstable.may_have(&keys[index * 7919 % keys.len()]));
        }
        let per_key = started.elapsed() / u32::try_from(lookups).unwrap();
        println!("  membership alone: {per_key:.0?} a key");
    }
}
