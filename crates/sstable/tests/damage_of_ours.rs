//! Every byte of a small SSTable of ours flipped, and every component cut at every length: the same rows or an error, however they are
//! asked for. Uncompressed ones have CRC.db in the place of CompressionInfo.db; all have Tokens.db and Cells.db.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Data, DecoratedKey, KeyRange,
    Liveness, Partition, PartitionUpdate, Row,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    CellMapLimits, Component, Descriptor, EncodingStats, Format, OpenOptions, SSTable, SSTableId, Scan,
    Version, WriterOptions,
};
use ilion_types::Partitioner;
use support::{try_read_all, write_all};

const MICROS: i64 = 1_700_000_000_000_000;
/// Statistics.db is by far the longest, and has checksums throughout.
const STATISTICS_STEP: usize = 7;

struct Small {
    mem: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitions: Vec<Partition>,
}

/// What was read, of all columns and of one; nothing where there was an error.
type Answers = Vec<Option<Vec<Partition>>>;

impl Small {
    fn write(version: Version, class: &str) -> Self {
        let table = parse_table("k int pk, c int ck, a text, b text").unwrap();
        let mut builder = table.to_builder();
        builder.options.compression = [("class".to_owned(), class.to_owned())].into();
        let table = builder.build();
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let format = match version {
            Version::DA => Format::Bti,
            _ => Format::Big,
        };
        let descriptor = Descriptor::new(Path::new("ks/t"), version, SSTableId::Sequence(1), format);
        let options = WriterOptions {
            estimated_partitions: 6,
            column_index_bytes: Some(100),
            encoding_stats: EncodingStats {
                min_timestamp_micros: MICROS,
                ..EncodingStats::NONE
            },
            cell_map: Some(CellMapLimits {
                row_bytes_min: 64,
                row_bytes_per_map_byte: 0,
            }),
            ..WriterOptions::default()
        };
        let partitions = partitions(&table);
        write_all(&env, &descriptor, &table, options, &partitions);
        Self {
            mem,
            env,
            table,
            descriptor,
            partitions,
        }
    }

    fn components(&self) -> Vec<Component> {
        let known = Component::known();
        known
            .filter(|component| self.env.exists(&self.descriptor.path(component)))
            .collect()
    }

    fn answers(&self) -> Answers {
        let options = OpenOptions {
            chunk_cache: None,
            ..OpenOptions::default()
        };
        let Ok(sstable) = SSTable::open(&self.env, &self.descriptor, &options) else {
            return Vec::new();
        };
        let sstable = Arc::new(sstable);
        let all = Arc::new(ClusteringFilter::all());
        let one = Arc::new(ClusteringFilter {
            columns: Some([self.table.column_named("b").unwrap().id].into()),
            ..ClusteringFilter::all()
        });
        let mut answers = Vec::new();
        let mut scan = sstable.cursor(&self.table, KeyRange::all(), all.clone(), Scan::Sequential);
        answers.push(try_read_all(&mut scan).ok());
        for filter in [&all, &one] {
            for partition in &self.partitions {
                let cursor = sstable.partition(&self.table, &partition.head.key, filter);
                answers.push(match cursor {
                    Ok(Some(mut cursor)) => try_read_all(&mut cursor).ok(),
                    Ok(None) => Some(Vec::new()),
                    Err(_) => None,
                });
            }
        }
        answers
    }
}

/// Partitions of one row, and of some: those have a row index.
fn partitions(table: &TableSchema) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mut keys: Vec<DecoratedKey> = (0..6_i32)
        .map(|key| DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key.to_be_bytes())))
        .collect();
    keys.sort();
    let partition = |(number, key)| {
        let rows = if number % 3 == 0 { 4 } else { 1 };
        let update = PartitionUpdate {
            rows: (0..rows).map(|row| row_of(table, number, row)).collect(),
            ..PartitionUpdate::default()
        };
        Partition::of(key, update, &comparator)
    };
    (0_i32..).zip(keys).map(partition).collect()
}

fn row_of(table: &TableSchema, partition: i32, number: i32) -> Row {
    let cell = |name: &str, len: usize| ColumnData {
        column: table.column_named(name).unwrap().id,
        data: Data::Simple(Cell::live(
            MICROS + i64::from(number),
            Bytes::from(format!("{name}{partition}{number} ").repeat(len)),
        )),
    };
    Row {
        liveness: Liveness::live(MICROS + i64::from(number)),
        columns: vec![cell("a", 2), cell("b", 12)],
        ..Row::empty(Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]))
    }
}

fn all() -> impl Iterator<Item = Small> {
    let versions = [Version::NB, Version::OA, Version::DA];
    let classes = ["", "LZ4Compressor"];
    let pairs = versions
        .into_iter()
        .flat_map(move |version| classes.map(|class| (version, class)));
    pairs.map(|(version, class)| Small::write(version, class))
}

/// Each answer is what it was, or an error.
fn check(small: &Small, whole: &Answers, what: &str) {
    for (found, expected) in small.answers().iter().zip(whole) {
        assert!(
            found.is_none() || found == expected,
            "{}: {what}: {found:?}",
            small.descriptor
        );
    }
}

#[test]
fn every_flipped_byte_is_an_error_or_changes_nothing() {
    for small in all() {
        let whole = small.answers();
        assert_eq!(whole[0].as_ref(), Some(&small.partitions));
        let components = small.components();
        assert!(components.contains(&Component::Tokens) && components.contains(&Component::Cells));
        for component in components {
            let path = small.descriptor.path(&component);
            let size = usize::try_from(small.env.file_size(&path).unwrap()).unwrap();
            let step = if component == Component::Statistics {
                STATISTICS_STEP
            } else {
                1
            };
            for at in (0..size).step_by(step) {
                let mask = 1 << (at % 8);
                small.mem.corrupt_byte(&path, at as u64, mask).unwrap();
                check(&small, &whole, &format!("{component}: byte {at}"));
                small.mem.corrupt_byte(&path, at as u64, mask).unwrap();
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error_or_changes_nothing() {
    for small in all() {
        let whole = small.answers();
        for component in small.components() {
            let path = small.descriptor.path(&component);
            let bytes = small.env.read_all(&path, 1 << 20).unwrap();
            let step = if component == Component::Statistics {
                STATISTICS_STEP
            } else {
                1
            };
            for length in (0..bytes.len()).step_by(step) {
                replace(&small, &path, &bytes[..length]);
                check(&small, &whole, &format!("{component} of {length} bytes"));
            }
            replace(&small, &path, &bytes);
        }
    }
}

fn replace(small: &Small, path: &Path, bytes: &[u8]) {
    let mut file = small.env.create_or_truncate(path).unwrap();
    file.append(bytes).unwrap();
}
