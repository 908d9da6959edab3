//! Tests that damage is found: every byte of a small SSTable is flipped, and every component cut at every length or removed.
//! Every kind of read must return the same rows or an error. Uncompressed SSTables have CRC.db instead of CompressionInfo.db;
//! all have Tokens.db, Cells.db and Checksums.db.
//!
//! By default, one bit of every third byte is flipped. With `ILION_ALL_FLIPS` set: all eight bits of every byte, and every
//! length.

use std::path::Path;
use std::sync::Arc;

use crate::support::{int_keys, try_read_all, write_all};
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Data, KeyRange,
    Liveness, Partition, PartitionUpdate, Row, Slice,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    CellMapLimits, Component, Descriptor, EncodingStats, Finding, OpenOptions, SSTable, SSTableId, Scan,
    Version, WriterOptions, list_directory,
};

const MICROS: i64 = 1_700_000_000_000_000;
/// Statistics.db is by far the longest, and has checksums throughout.
const STATISTICS_STEP: usize = 29;

struct Small {
    mem: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitions: Vec<Partition>,
}

/// The ways to find partitions.
const FINDINGS: [Finding; 2] = [Finding::TokenMap, Finding::Summary];

/// Results of reads of all columns and of one, of whole partitions and of slices; `None` for an error.
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
        let id = SSTableId::Sequence(1);
        let descriptor = Descriptor::new(Path::new("ks/t"), version, id, version.format());
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

    fn answers(&self, finding: Finding) -> Answers {
        let options = OpenOptions {
            chunk_cache: None,
            finding,
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
        let backward = Arc::new(ClusteringFilter {
            reversed: true,
            ..ClusteringFilter::all()
        });
        let slices = [slice_of(1, 1), slice_of(3, 3), slice_of(2, 9)].map(Arc::new);
        for filter in [all, one, backward].into_iter().chain(slices) {
            for partition in &self.partitions {
                let cursor = sstable.partition(&self.table, &partition.head.key, &filter);
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

/// The rows with numbers in a range.
fn slice_of(from: i32, to: i32) -> ClusteringFilter {
    let bound = |kind, number: i32| {
        let value = Bytes::copy_from_slice(&number.to_be_bytes());
        Bound::new(kind, [Some(value)].into_iter().collect())
    };
    ClusteringFilter {
        slices: vec![Slice {
            start: bound(BoundKind::InclStart, from),
            end: bound(BoundKind::InclEnd, to),
        }],
        ..ClusteringFilter::all()
    }
}

/// Partitions with one row, and with several: those have a row index.
fn partitions(table: &TableSchema) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let partition = |(number, key)| {
        let rows = if number % 3 == 0 { 4 } else { 1 };
        let update = PartitionUpdate {
            rows: (0..rows).map(|row| row_of(table, number, row)).collect(),
            ..PartitionUpdate::default()
        };
        Partition::of(key, update, &comparator)
    };
    (0_i32..).zip(int_keys(6)).map(partition).collect()
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

/// Each result must be the original one, or an error.
fn check(small: &Small, whole: &Answers, what: &str) {
    for finding in FINDINGS {
        for (found, expected) in small.answers(finding).iter().zip(whole) {
            assert!(
                found.is_none() || found == expected,
                "{}: {what}, by {finding:?}: {found:?}",
                small.descriptor
            );
        }
    }
}

fn flips_all() -> bool {
    std::env::var_os("ILION_ALL_FLIPS").is_some()
}

/// Number of bytes that are skipped between flips.
fn step_of(component: &Component) -> usize {
    match component {
        _ if flips_all() => 1,
        Component::Statistics => STATISTICS_STEP,
        _ => 3,
    }
}

#[test]
fn every_flipped_byte_is_an_error_or_changes_nothing() {
    let mut trials = 0_u32;
    for small in all() {
        let whole = small.answers(Finding::TokenMap);
        assert_eq!(whole[0].as_ref(), Some(&small.partitions));
        assert!(whole.iter().all(Option::is_some) && whole == small.answers(Finding::Summary));
        let components = small.components();
        for side in [Component::Tokens, Component::Cells, Component::Checksums] {
            assert!(components.contains(&side));
        }
        for component in components {
            let path = small.descriptor.path(&component);
            let size = usize::try_from(small.env.file_size(&path).unwrap()).unwrap();
            for at in (0..size).step_by(step_of(&component)) {
                for bit in 0..8 {
                    if !flips_all() && bit != at % 8 {
                        continue;
                    }
                    small.mem.corrupt_byte(&path, at as u64, 1 << bit).unwrap();
                    check(&small, &whole, &format!("{component}: byte {at}, bit {bit}"));
                    trials += 1;
                    small.mem.corrupt_byte(&path, at as u64, 1 << bit).unwrap();
                }
            }
        }
    }
    println!("campaign | flipped bits of small SSTables | {trials} | the same rows or an error");
}

#[test]
fn every_truncation_is_an_error_or_changes_nothing() {
    for small in all() {
        let whole = small.answers(Finding::TokenMap);
        for component in small.components() {
            let path = small.descriptor.path(&component);
            let bytes = small.env.read_all(&path, 1 << 20).unwrap();
            for length in (0..bytes.len()).step_by(step_of(&component)) {
                replace(&small, &path, &bytes[..length]);
                check(&small, &whole, &format!("{component} of {length} bytes"));
            }
            replace(&small, &path, &bytes);
        }
    }
}

#[test]
fn every_missing_component_is_an_error_that_names_it_or_changes_nothing() {
    for small in all() {
        let whole = small.answers(Finding::TokenMap);
        for component in small.components() {
            let path = small.descriptor.path(&component);
            let bytes = small.env.read_all(&path, 1 << 20).unwrap();
            small.env.remove_file(&path).unwrap();
            check(&small, &whole, &format!("no {component}"));
            let done_without = [
                Component::Digest,
                Component::Filter,
                Component::Summary,
                Component::Toc,
            ];
            let opened = SSTable::open(&small.env, &small.descriptor, &OpenOptions::default());
            match opened {
                Ok(_) => assert!(component.is_side() || done_without.contains(&component)),
                Err(error) => assert!(error.to_string().contains(component.name()), "{error}"),
            }
            replace(&small, &path, &bytes);
        }
    }
}

#[test]
fn a_set_of_files_without_its_data_is_not_passed_over() {
    for small in all() {
        let directory = &small.descriptor.directory;
        small
            .env
            .remove_file(&small.descriptor.path(&Component::Data))
            .unwrap();
        let found = list_directory(&*small.env, directory).unwrap();
        let opened = SSTable::open_found(&small.env, &found[0], &OpenOptions::default());
        let message = opened.unwrap_err().to_string();
        assert!(message.contains("Data.db"), "{message}");
        // An incomplete file that a crash left is ignored.
        small
            .env
            .remove_file(&small.descriptor.path(&Component::Toc))
            .unwrap();
        assert!(list_directory(&*small.env, directory).unwrap().is_empty());
    }
}

#[test]
fn checksums_that_are_missing_or_damaged_are_made_again_and_then_protect_as_before() {
    for small in all() {
        let path = small.descriptor.path(&Component::Checksums);
        let bytes = small.env.read_all(&path, 1 << 20).unwrap();
        let whole = small.answers(Finding::TokenMap);
        for is_damaged in [false, true] {
            match is_damaged {
                true => small.mem.corrupt_byte(&path, 30, 4).unwrap(),
                false => small.env.remove_file(&path).unwrap(),
            }
            let open = || SSTable::open(&small.env, &small.descriptor, &OpenOptions::default()).unwrap();
            let sstable = Arc::new(open());
            // Damage is found when the data is opened.
            sstable.data_scan(&small.table).unwrap();
            assert!(sstable.wants_checksums());
            assert!(!sstable.make_checksums(&mut || false).unwrap());
            assert!(sstable.make_checksums(&mut || true).unwrap());
            assert!(!sstable.wants_checksums() && !open().wants_checksums());
            assert_eq!(small.env.read_all(&path, 1 << 20).unwrap(), bytes);
        }
        check(&small, &whole, "new checksums");
    }
}

fn replace(small: &Small, path: &Path, bytes: &[u8]) {
    let mut file = small.env.create_or_truncate(path).unwrap();
    file.append(bytes).unwrap();
}
