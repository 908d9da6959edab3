//! Tests of Deleted.db: reads jump over rows that are only deletions and over no others, and a damaged or lying file is found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{int_keys, read_all, write_all};
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::random::Dice;
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Cursor, Data,
    DeletionTime, KeyRange, Liveness, Partition, PartitionUpdate, RangeTombstone, ReadError, Row, Slice,
    Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::verify::verify;
use ilion_sstable::{
    Component, Descriptor, EncodingStats, OpenOptions, RangeCursor, SSTable, SSTableId, Scan, Version,
    WriterOptions,
};

const VERSIONS: [Version; 3] = [Version::NB, Version::OA, Version::DA];
/// Shorter runs are not in the file.
const RUN_ROWS_MIN: usize = 64;
const MICROS: i64 = 1_700_000_000_000_000;

struct Case {
    mem: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitions: Vec<Partition>,
}

fn clustering(number: i32) -> Clustering {
    Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())])
}

/// A row that is only a deletion, or has a value, or both.
fn row(table: &TableSchema, number: i32, is_deleted: bool, dice: &mut Dice) -> Row {
    let mut row = Row::empty(clustering(number));
    if is_deleted || dice.one_in(9) {
        row.deletion = DeletionTime::new(MICROS, 1_700_000_000);
    }
    if !is_deleted {
        let column = table.column_named("a").unwrap().id;
        let data = Data::Simple(Cell::live(MICROS + 1, Bytes::from("value".repeat(dice.below(9)))));
        row.columns = vec![ColumnData { column, data }];
        if dice.one_in(2) {
            row.liveness = Liveness::live(MICROS + 1);
        }
    }
    row
}

/// Stretches of deletions and of other rows, and some deleted ranges.
fn random_update(table: &TableSchema, dice: &mut Dice) -> PartitionUpdate {
    let mut update = PartitionUpdate::default();
    let mut number = 0;
    for _ in 0..2 + dice.below(6) {
        let is_deleted = !dice.one_in(3);
        let length = 1 + dice.below(if is_deleted { 300 } else { 20 });
        for _ in 0..length {
            number += 1 + i32::from(dice.byte() % 2);
            update.rows.push(row(table, number, is_deleted, dice));
        }
    }
    for _ in 0..dice.below(3) {
        let mut ends = [(); 2].map(|()| i32::try_from(dice.below(900)).unwrap());
        ends.sort_unstable();
        let bound = |kind, at: i32| Bound::new(kind, clustering(at).values().clone());
        update.ranges.push(RangeTombstone {
            start: bound(BoundKind::InclStart, ends[0]),
            end: bound(BoundKind::InclEnd, ends[1]),
            deletion: DeletionTime::new(MICROS - 1, 1_700_000_000),
        });
    }
    update
}

impl Case {
    fn write(version: Version, dice: &mut Dice) -> Self {
        let table = parse_table("k int pk, c int ck, a text").unwrap();
        let mut builder = table.to_builder();
        let class = *dice.pick(&["LZ4Compressor", ""]);
        builder.options.compression = [("class".to_owned(), class.to_owned())].into();
        let table = builder.build();
        let comparator = ClusteringComparator::of(&table);
        let keys = int_keys(1 + i32::from(dice.byte() % 4));
        let update = |key| Partition::of(key, random_update(&table, dice), &comparator);
        let partitions: Vec<Partition> = keys.into_iter().map(update).collect();
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let id = SSTableId::Sequence(1);
        let descriptor = Descriptor::new(Path::new("ks/t"), version, id, version.format());
        let options = WriterOptions {
            column_index_bytes: Some(*dice.pick(&[1, 500, 65_536])),
            encoding_stats: EncodingStats {
                min_timestamp_micros: MICROS,
                ..EncodingStats::NONE
            },
            ..WriterOptions::default()
        };
        write_all(&env, &descriptor, &table, options, &partitions);
        Self {
            mem,
            env,
            table,
            descriptor,
            partitions,
        }
    }

    fn path(&self) -> PathBuf {
        self.descriptor.path(&Component::Deleted)
    }

    fn open(&self) -> Arc<SSTable> {
        let options = OpenOptions::default();
        Arc::new(SSTable::open(&self.env, &self.descriptor, &options).unwrap())
    }

    /// Reads all partitions.
    fn scan(&self) -> RangeCursor {
        let all = Arc::new(ClusteringFilter::all());
        self.open()
            .cursor(&self.table, KeyRange::all(), all, Scan::Sequential)
    }

    /// True if some deletions follow each other long enough.
    fn has_runs(&self) -> bool {
        let mut longest = 0;
        for partition in &self.partitions {
            let mut length = 0;
            for unfiltered in &partition.unfiltereds {
                length = if is_deletion(unfiltered) { length + 1 } else { 0 };
                longest = longest.max(length);
            }
        }
        longest >= RUN_ROWS_MIN
    }

    fn replace(&self, bytes: &[u8]) {
        let mut file = self.env.create_or_truncate(&self.path()).unwrap();
        file.append(bytes).unwrap();
    }

    fn findings(&self) -> Vec<String> {
        let verified = verify(&*self.env, &self.descriptor, &mut |_| {}).unwrap();
        assert!(verified.unchecked.is_empty());
        verified.findings.kept().iter().map(ToString::to_string).collect()
    }
}

fn is_deletion(unfiltered: &Unfiltered) -> bool {
    matches!(unfiltered, Unfiltered::Row(row) if row.is_deletion())
}

/// Reads the current partition, and behind each unfiltered asks to skip deletions up to the bound that `before` returns. Returns what is
/// read, each with that bound.
fn read_skipping(
    cursor: &mut dyn Cursor,
    mut before: impl FnMut(&Unfiltered) -> Option<Bound>,
) -> Result<Vec<(Unfiltered, Option<Bound>)>, ReadError> {
    let mut read = Vec::new();
    while let Some(unfiltered) = cursor.next_unfiltered()? {
        let bound = before(&unfiltered);
        cursor.skip_deleted(bound.as_ref())?;
        read.push((unfiltered, bound));
    }
    Ok(read)
}

/// Skips all deletions behind a deletion.
fn without_limit(unfiltered: &Unfiltered) -> Option<Bound> {
    (!is_deletion(unfiltered)).then(Bound::bottom)
}

/// Checks that only deletions before the bounds are missing. Returns how many are.
fn compare(
    whole: &[Unfiltered],
    read: &[(Unfiltered, Option<Bound>)],
    is_reversed: bool,
    comparator: &ClusteringComparator,
) -> usize {
    let mut read = read.iter().peekable();
    let (mut bound, mut missing) = (None, 0);
    for unfiltered in whole {
        if read.peek().is_some_and(|(next, _)| next == unfiltered) {
            bound = Some(&read.next().unwrap().1);
            continue;
        }
        let (Unfiltered::Row(row), Some(bound)) = (unfiltered, bound) else {
            panic!("{unfiltered:?} is missing");
        };
        assert!(row.is_deletion(), "{row:?} is missing");
        let is_before = |bound: &Bound| {
            let order = comparator.compare_bound_to_row(bound, &row.clustering);
            if is_reversed { order.is_lt() } else { order.is_gt() }
        };
        assert!(
            bound.as_ref().is_none_or(is_before),
            "{row:?} is not before {bound:?}"
        );
        missing += 1;
    }
    assert!(read.next().is_none());
    missing
}

#[test]
fn deletions_are_skipped_in_whole_partitions_and_slices_and_nothing_else_is() {
    // Rows skipped by forward and by reversed reads, and files of runs.
    let (mut missing, mut files) = ([0, 0], 0);
    for seed in 0..60 {
        let dice = &mut Dice::new(seed);
        let case = Case::write(*dice.pick(&VERSIONS), dice);
        assert_eq!(case.env.exists(&case.path()), case.has_runs(), "seed {seed}");
        files += usize::from(case.has_runs());
        assert_eq!(case.findings(), [""; 0], "seed {seed}");
        let sstable = case.open();
        let comparator = ClusteringComparator::of(&case.table);
        let mut cursor = sstable.cursor(
            &case.table,
            KeyRange::all(),
            Arc::new(ClusteringFilter::all()),
            Scan::Sequential,
        );
        for partition in &case.partitions {
            cursor.next_partition().unwrap().unwrap();
            let read = read_skipping(&mut cursor, without_limit).unwrap();
            missing[0] += compare(&partition.unfiltereds, &read, false, &comparator);
        }
        for partition in &case.partitions {
            let bound = |kind, dice: &mut Dice| {
                let at = i32::try_from(dice.below(1_000)).unwrap();
                Bound::new(kind, clustering(at).values().clone())
            };
            let (start, end) = (bound(BoundKind::InclStart, dice), bound(BoundKind::ExclEnd, dice));
            let filter = ClusteringFilter {
                slices: match comparator.compare_bounds(&start, &end).is_lt() {
                    true => vec![Slice { start, end }],
                    false => vec![Slice::all()],
                },
                reversed: dice.one_in(2),
                ..ClusteringFilter::all()
            };
            let filter = Arc::new(filter);
            let open = || {
                sstable
                    .partition(&case.table, &partition.head.key, &filter)
                    .unwrap()
            };
            let whole = read_all(&mut open().unwrap()).remove(0).unfiltereds;
            let mut cursor = open().unwrap();
            cursor.next_partition().unwrap().unwrap();
            let kind = match filter.reversed {
                false => BoundKind::ExclEnd,
                true => BoundKind::ExclStart,
            };
            // Behind other rows than deletions, too.
            let before = |_: &Unfiltered| (!dice.one_in(3)).then(|| bound(kind, dice));
            let read = read_skipping(&mut cursor, before).unwrap();
            missing[usize::from(filter.reversed)] += compare(&whole, &read, filter.reversed, &comparator);
        }
    }
    assert!(
        missing.iter().all(|rows| *rows > 3_000) && files > 40,
        "{missing:?} rows, {files} files"
    );
}

#[test]
fn a_run_is_left_by_one_jump() {
    let dice = &mut Dice::new(1);
    for version in VERSIONS {
        let mut case = Case::write(version, dice);
        let rows = |from: i32, to: i32, dice: &mut Dice| {
            let table = &case.table;
            (from..to)
                .map(|number| row(table, number, to - from > 1, dice))
                .collect::<Vec<Row>>()
        };
        let rows = [rows(0, 1, dice), rows(1, 5_000, dice), rows(5_000, 5_001, dice)].concat();
        let update = PartitionUpdate {
            rows,
            ..PartitionUpdate::default()
        };
        let comparator = ClusteringComparator::of(&case.table);
        case.partitions = vec![Partition::of(int_keys(1).remove(0), update, &comparator)];
        case.descriptor.id = SSTableId::Sequence(2);
        write_all(
            &case.env,
            &case.descriptor,
            &case.table,
            WriterOptions::default(),
            &case.partitions,
        );
        for (reversed, expected) in [(false, [0, 5_000]), (true, [5_000, 0])] {
            let filter = Arc::new(ClusteringFilter {
                reversed,
                ..ClusteringFilter::all()
            });
            let opened = case.open().partition(&case.table, &int_keys(1)[0], &filter);
            let mut cursor = opened.unwrap().unwrap();
            cursor.next_partition().unwrap().unwrap();
            let read = read_skipping(&mut cursor, |_| None).unwrap();
            let numbers = read.into_iter().map(|(unfiltered, _)| match unfiltered {
                Unfiltered::Row(row) => row.clustering,
                Unfiltered::Marker(marker) => panic!("{marker:?} was not written"),
            });
            assert!(numbers.eq(expected.map(clustering)));
        }
    }
}

/// An SSTable with a file of runs.
fn with_runs(version: Version) -> Case {
    (0..)
        .map(|seed| Case::write(version, &mut Dice::new(seed)))
        .find(|case| case.has_runs() && case.env.file_size(&case.path()).unwrap() > 60)
        .unwrap()
}

#[test]
fn every_flipped_byte_is_found_by_verify_and_changes_no_read() {
    for version in VERSIONS {
        let case = with_runs(version);
        for at in 0..case.env.file_size(&case.path()).unwrap() {
            case.mem.corrupt_byte(&case.path(), at, 1 << (at % 8)).unwrap();
            assert!(!case.findings().is_empty(), "byte {at}");
            let mut cursor = case.scan();
            for partition in &case.partitions {
                cursor.next_partition().unwrap().unwrap();
                let read = read_skipping(&mut cursor, without_limit).unwrap();
                let read = read.into_iter().map(|(unfiltered, _)| unfiltered);
                assert!(read.eq(partition.unfiltereds.iter().cloned()), "byte {at}");
            }
            case.mem.corrupt_byte(&case.path(), at, 1 << (at % 8)).unwrap();
        }
        // Cut at any length, it is damaged, too.
        let bytes = case.env.read_all(&case.path(), 1 << 20).unwrap();
        for length in 0..bytes.len() {
            case.replace(&bytes[..length]);
            assert!(!case.findings().is_empty(), "{length} bytes");
        }
    }
}

#[test]
fn a_file_that_lies_is_found_by_verify_and_is_never_a_panic() {
    /// Magic, version, lengths and fingerprint.
    const HEAD_LEN: usize = 29;
    let dice = &mut Dice::new(7);
    let mut found = 0;
    for version in VERSIONS {
        let case = with_runs(version);
        let comparator = ClusteringComparator::of(&case.table);
        let whole = case.env.read_all(&case.path(), 1 << 20).unwrap();
        for _ in 0..300 {
            let mut bytes = whole.clone();
            let body = bytes.len() - 4;
            for _ in 0..1 + dice.below(3) {
                bytes[HEAD_LEN + dice.below(body - HEAD_LEN)] = dice.byte();
            }
            let crc = ilion_codec::crc32(&bytes[..body]).to_le_bytes();
            bytes[body..].copy_from_slice(&crc);
            case.replace(&bytes);
            let is_found = !case.findings().is_empty();
            let mut cursor = case.scan();
            let mut partitions = case.partitions.iter();
            while let Ok(Some(_)) = cursor.next_partition() {
                let read = read_skipping(&mut cursor, without_limit);
                // Some changes mean the same, such as a longer form of a number.
                if !is_found {
                    compare(
                        &partitions.next().unwrap().unfiltereds,
                        &read.unwrap(),
                        false,
                        &comparator,
                    );
                }
            }
            found += usize::from(is_found);
        }
    }
    assert!(found > 800, "{found} of 900");
}

#[test]
fn the_file_of_another_sstable_is_not_used() {
    let (case, other) = (with_runs(Version::NB), with_runs(Version::OA));
    let bytes = other.env.read_all(&other.path(), 1 << 20).unwrap();
    case.replace(&bytes);
    assert!(!case.findings().is_empty());
    let mut cursor = case.scan();
    for partition in &case.partitions {
        cursor.next_partition().unwrap().unwrap();
        assert_eq!(
            read_skipping(&mut cursor, without_limit).unwrap().len(),
            partition.unfiltereds.len()
        );
    }
}
