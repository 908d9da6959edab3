//! Tests that write random tables with random options and read them: whole, by partition, by slice, in both directions.
//!
//! `SEEDS=1000` runs more of them. A failure prints its seed; `SEED=n` runs only that.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::support::{read_all, write_all};
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::random::{
    Dice, NOW_SECS, enlarge, random_bound, random_clustering, random_table, random_update,
};
use ilion_rows::{
    BoundKind, ClusteringComparator, ClusteringFilter, DecoratedKey, FilterCursor, KeyBound, KeyRange,
    Partition, PartitionUpdate, Slice, VecCursor,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    CellMapLimits, ChunkCache, Descriptor, EncodingStats, Finding, OpenOptions, SSTable, SSTableId, Scan,
    Version, WriterOptions,
};
use ilion_types::Partitioner;

use crate::projection::{random_columns, random_elements, rows_of, without_unwanted};

const SEEDS_DEFAULT: u64 = 12;
const FILTERS_A_PARTITION: usize = 6;

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

fn seeds() -> Range<u64> {
    match number_of("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("SEEDS").unwrap_or(SEEDS_DEFAULT),
    }
}

/// An SSTable, and what was written to it.
struct Case {
    seed: u64,
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    partitioner: Partitioner,
    partitions: Vec<Partition>,
    sstable: Arc<SSTable>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let table = with_options(&random_table(&mut dice), &mut dice);
        let comparator = ClusteringComparator::of(&table);
        let partitioner = *dice.pick(&[
            Partitioner::Murmur3,
            Partitioner::ByteOrdered,
            Partitioner::Random,
        ]);
        let version = *dice.pick(&[Version::NB, Version::OA, Version::DA]);
        let mut partitions = random_partitions(&table, partitioner, version, &mut dice);
        if dice.one_in(2) {
            rows_of(&mut partitions).for_each(|row| enlarge(row, &table, &mut dice));
        }
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(seed));
        let descriptor = write(&env, &table, &partitions, partitioner, version, &mut dice);
        let options = OpenOptions {
            partitioner,
            chunk_cache: dice.one_in(2).then(|| Arc::new(ChunkCache::new(1 << 20))),
            finding: *dice.pick(&[
                Finding::TokenMap,
                Finding::TokenMap,
                Finding::Summary,
                Finding::WholeIndex,
            ]),
            held_row_bytes_max: *dice.pick(&[0, 2_000, 1 << 30]),
            ..OpenOptions::default()
        };
        let sstable = SSTable::open(&env, &descriptor, &options).unwrap();
        if sstable.wants_token_map() && dice.one_in(2) {
            assert!(sstable.make_token_map(&mut || true).unwrap());
        }
        Self {
            seed,
            table,
            comparator,
            partitioner,
            partitions,
            sstable: Arc::new(sstable),
        }
    }

    fn assert_same(&self, what: &str, expected: &[Partition], found: &[Partition]) {
        for (expected, found) in expected.iter().zip(found) {
            assert_eq!(expected.head, found.head, "seed {}: {what}", self.seed);
            for (expected, found) in expected.unfiltereds.iter().zip(&found.unfiltereds) {
                assert_eq!(expected, found, "seed {}: {what}", self.seed);
            }
            let counts = (expected.unfiltereds.len(), found.unfiltereds.len());
            assert_eq!(counts.0, counts.1, "seed {}: {what}: unfiltereds", self.seed);
        }
        assert_eq!(
            expected.len(),
            found.len(),
            "seed {}: {what}: partitions",
            self.seed
        );
    }
}

/// Few keys per index sample, small chunks, every compressor: then even files of a few kilobytes have many parts.
fn with_options(table: &Arc<TableSchema>, dice: &mut Dice) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    let option = |key: &str, value: String| (key.to_owned(), value);
    let class = *dice.pick(&[
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
        "",
    ]);
    builder.options.compression = [
        option("class", class.to_owned()),
        option("chunk_length_in_kb", dice.pick(&[1, 4, 16]).to_string()),
        option("min_compress_ratio", dice.pick(&[0, 2]).to_string()),
    ]
    .into();
    builder.options.min_index_interval = *dice.pick(&[1, 3, 128]);
    builder.options.bloom_filter_fp_chance = *dice.pick(&[1.0, 0.1, 0.01]);
    builder.build()
}

fn random_partitions(
    table: &Arc<TableSchema>,
    partitioner: Partitioner,
    version: Version,
    dice: &mut Dice,
) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mut partitions = BTreeMap::new();
    for _ in 0..1 + dice.below(40) {
        #[expect(clippy::cast_possible_truncation, reason = "even numbers below 128")]
        let number = 2 * dice.below(64) as u32;
        let key = DecoratedKey::new(partitioner, Bytes::copy_from_slice(&number.to_be_bytes()));
        let mut update = random_update(table, dice);
        if dice.one_in(6) {
            widen(&mut update, table, &comparator, dice);
        }
        let cannot_hold = |micros: i64| version != Version::NB && micros < 0;
        update.deletion = update
            .deletion
            .filter(|deletion| !cannot_hold(deletion.marked_at_micros));
        // Empty partitions are not written.
        if update != PartitionUpdate::default() {
            partitions.insert(key.clone(), Partition::of(key, update, &comparator));
        }
    }
    if partitions.is_empty() {
        return random_partitions(table, partitioner, version, dice);
    }
    partitions.into_values().collect()
}

/// As many rows and ranges as the few values allow.
fn widen(
    update: &mut PartitionUpdate,
    table: &Arc<TableSchema>,
    comparator: &ClusteringComparator,
    dice: &mut Dice,
) {
    for _ in 0..200 {
        let more = random_update(table, dice);
        update.rows.extend(more.rows);
        if dice.one_in(4) {
            update.ranges.extend(more.ranges);
        }
    }
    let rows = &mut update.rows;
    rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    rows.dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
}

fn write(
    env: &Arc<dyn Env>,
    table: &Arc<TableSchema>,
    partitions: &[Partition],
    partitioner: Partitioner,
    version: Version,
    dice: &mut Dice,
) -> Descriptor {
    let directory = Path::new("data/ks/random-1");
    env.create_dir_all(directory).unwrap();
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), version.format());
    let seen = EncodingStats {
        min_timestamp_micros: i64::from(NOW_SECS) * 1_000_000,
        min_local_deletion_secs: NOW_SECS,
        min_ttl_secs: 1,
    };
    let options = WriterOptions {
        partitioner,
        estimated_partitions: *dice.pick(&[1, 100]),
        encoding_stats: *dice.pick(&[seen, EncodingStats::NONE]),
        column_index_bytes: Some(*dice.pick(&[1, 100, 2_000, 65_536])),
        writes_token_map: !dice.one_in(3),
        cell_map: (!dice.one_in(4)).then(|| CellMapLimits {
            row_bytes_min: *dice.pick(&[0, 200, 16 << 10]),
            row_bytes_per_map_byte: *dice.pick(&[0, 0, 10, 100]),
        }),
        ..WriterOptions::default()
    };
    write_all(env, &descriptor, table, options, partitions);
    descriptor
}

fn random_filter(case: &Case, dice: &mut Dice) -> ClusteringFilter {
    let mut bounds: Vec<_> = (0..2 * dice.below(4))
        .map(|_| match dice.one_in(2) {
            true => random_bound(&case.table, &[BoundKind::InclStart, BoundKind::ExclStart], dice),
            false => Slice::exactly(&random_clustering(&case.table, dice)).start,
        })
        .collect();
    bounds.sort_by(|a, b| case.comparator.compare_bounds(a, b));
    let slices = bounds.chunks(2).map(|pair| Slice {
        start: pair[0].clone(),
        end: pair[1].invert(),
    });
    let slices: Vec<Slice> = slices.filter(|slice| !slice.is_empty(&case.comparator)).collect();
    ClusteringFilter {
        slices: match dice.one_in(8) {
            true => vec![Slice::all()],
            false => slices,
        },
        reversed: dice.one_in(2),
        columns: dice.one_in(2).then(|| random_columns(&case.table, dice).into()),
        elements: dice.one_in(2).then(|| random_elements(&case.table, dice).into()),
        liveness: dice.one_in(2),
        now_secs: None,
    }
}

fn filtered(case: &Case, partitions: &[Partition], filter: &Arc<ClusteringFilter>) -> Vec<Partition> {
    let source = VecCursor::new(without_unwanted(partitions, filter));
    read_all(&mut FilterCursor::new(
        source,
        filter.clone(),
        case.comparator.clone(),
    ))
}

#[test]
fn what_was_written_is_read() {
    for case in seeds().map(Case::new) {
        for scan in [Scan::Point, Scan::Sequential] {
            let filter = Arc::new(ClusteringFilter::all());
            let mut cursor = case.sstable.cursor(&case.table, KeyRange::all(), filter, scan);
            case.assert_same("scan", &case.partitions, &read_all(&mut cursor));
        }
        let keys = case.partitions.iter().map(|partition| &partition.head.key);
        assert_eq!(Some(case.sstable.first_key()), keys.clone().next());
        assert_eq!(Some(case.sstable.last_key()), keys.last());
    }
}

#[test]
fn every_partition_is_found_and_no_other() {
    for case in seeds().map(Case::new) {
        let mut dice = Dice::new(case.seed);
        for number in 0..130u32 {
            let key = DecoratedKey::new(case.partitioner, Bytes::copy_from_slice(&number.to_be_bytes()));
            let expected = case.partitions.iter().find(|partition| partition.head.key == key);
            for _ in 0..FILTERS_A_PARTITION {
                let filter = Arc::new(random_filter(&case, &mut dice));
                let found = case.sstable.partition(&case.table, &key, &filter).unwrap();
                let found = found.map(|mut cursor| read_all(&mut cursor)).unwrap_or_default();
                let Some(expected) = expected else {
                    assert_eq!(found, [], "seed {}", case.seed);
                    break;
                };
                let expected = filtered(&case, std::slice::from_ref(expected), &filter);
                let found = without_unwanted(&found, &filter);
                case.assert_same(&format!("{filter:?}"), &expected, &found);
            }
        }
    }
}

#[test]
fn ranges_of_partitions_are_read_with_filters() {
    for case in seeds().map(Case::new) {
        let mut dice = Dice::new(case.seed);
        for _ in 0..FILTERS_A_PARTITION {
            let key = |dice: &mut Dice| {
                #[expect(clippy::cast_possible_truncation, reason = "below 130")]
                let number = dice.below(130) as u32;
                DecoratedKey::new(case.partitioner, Bytes::copy_from_slice(&number.to_be_bytes()))
            };
            let start = key(&mut dice);
            let range = KeyRange {
                start: match dice.below(3) {
                    0 => KeyBound::Start,
                    1 => KeyBound::AfterToken(start.token),
                    _ => KeyBound::Before(start),
                },
                end: match dice.one_in(2) {
                    true => KeyBound::End,
                    false => KeyBound::After(key(&mut dice)),
                },
            };
            let filter = Arc::new(random_filter(&case, &mut dice));
            let scan = *dice.pick(&[Scan::Point, Scan::Sequential]);
            let wanted = case
                .partitions
                .iter()
                .filter(|partition| range.contains(&partition.head.key));
            let wanted: Vec<Partition> = wanted.cloned().collect();
            let mut cursor = case.sstable.cursor(&case.table, range, filter.clone(), scan);
            let found = without_unwanted(&read_all(&mut cursor), &filter);
            case.assert_same("range", &filtered(&case, &wanted, &filter), &found);
        }
    }
}

#[test]
fn statistics_bound_what_was_written() {
    for case in seeds().map(Case::new) {
        let stats = case.sstable.stats();
        let (mut rows, mut micros) = (0, Vec::new());
        for partition in &case.partitions {
            let of_rows = partition
                .unfiltereds
                .iter()
                .filter_map(|unfiltered| match unfiltered {
                    ilion_rows::Unfiltered::Row(row) => Some(row),
                    ilion_rows::Unfiltered::Marker(_) => None,
                });
            for row in of_rows.chain(&partition.head.static_row) {
                rows += 1;
                micros.extend(Some(row.liveness.timestamp_micros).filter(|_| !row.liveness.is_none()));
                micros.extend(Some(row.deletion.marked_at_micros).filter(|_| !row.deletion.is_live()));
            }
        }
        assert_eq!(stats.total_rows, rows, "seed {}", case.seed);
        let bounds = stats.min_timestamp_micros..=stats.max_timestamp_micros;
        assert!(
            micros.iter().all(|micros| bounds.contains(micros)),
            "seed {}",
            case.seed
        );
        let covered = case.sstable.covered();
        let within = filtered(
            &case,
            &case.partitions,
            &Arc::new(ClusteringFilter {
                slices: vec![covered.clone()],
                ..ClusteringFilter::all()
            }),
        );
        case.assert_same("covered", &case.partitions, &within);
        assert!(stats.partition_sizes.count() == case.partitions.len() as u64);
    }
}
