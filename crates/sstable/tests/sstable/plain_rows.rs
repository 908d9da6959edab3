//! Tests that plain partitions and rows are copied from SSTable to SSTable with the same bytes as row by row.
//!
//! Random histories of tables with and without clustering columns, in several SSTables, are merged twice: row by row, and with
//! plain rows shown to the writer. `SEEDS=1000` runs more of them. A failure prints its seed; `SEED=n` runs only that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::random_tables::{EVEN, MICROS, number_of, random_row, random_rows, with_clustering};
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::random::{Dice, NOW_SECS, random_clustering, random_update};
use ilion_rows::{
    AlikeRows, Clustering, ClusteringComparator, ClusteringFilter, CompactionPurge, Cursor, DecoratedKey,
    Direction, Flow, KeyRange, Liveness, MergeCursor, Partition, PartitionUpdate, PlainRow, PlainVisitor,
    Row,
};
use ilion_schema::{ColumnKind, DroppedColumn, TableBuilder, TableId, TableSchema};
use ilion_sstable::{
    CellMapLimits, Descriptor, EncodingStats, OpenOptions, SSTable, SSTableId, SSTableWriter, Scan, Version,
    WriterOptions,
};
use ilion_types::{CqlType, Partitioner, Uuid};

const SEEDS_DEFAULT: u64 = 40;
/// Keys of partitions with one row, and of others.
const KEYS: usize = 400;
const WIDE_KEYS: usize = 10;

/// Half of the tables have clustering columns; those without have simple columns only.
fn random_table(dice: &mut Dice) -> Arc<TableSchema> {
    let name = *dice.pick(&["t", "t", EVEN]);
    let mut table = TableBuilder::new("ks", name, TableId(Uuid::from_u128(1)));
    table = table.partition_key("k", CqlType::Blob);
    let types = [CqlType::Blob, CqlType::Text, CqlType::Int, CqlType::BigInt];
    if dice.one_in(2) {
        table = with_clustering(table, &types, dice);
    }
    // The later columns may come from ALTER TABLE, so their names may sort before others.
    let descends = dice.one_in(3);
    for index in 0..dice.below(6) {
        let name = match descends {
            true => format!("r{}", 8 - index),
            false => format!("r{index}"),
        };
        table = table.regular(name, dice.pick(&types).clone());
    }
    let option = |key: &str, value: &&str| (key.to_owned(), (*value).to_owned());
    table.options.compression = [
        option("class", dice.pick(&["LZ4Compressor", ""])),
        option("chunk_length_in_kb", dice.pick(&["1", "16"])),
    ]
    .into();
    table.options.min_index_interval = *dice.pick(&[1, 128]);
    table.build()
}

/// The table at the time of the merge: possibly with a column added, dropped, or dropped and added again.
fn altered(table: &Arc<TableSchema>, dice: &mut Dice) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    if dice.one_in(4) {
        builder = builder.regular("r9", CqlType::Text);
    }
    let first = table
        .regulars()
        .find(|column| !column.is_complex())
        .map(|column| (column.name.clone(), column.ty.clone()));
    if let Some((name, ty)) = first.filter(|_| dice.one_in(4)) {
        builder.dropped.insert(
            name.clone(),
            DroppedColumn {
                name: name.clone(),
                kind: ColumnKind::Regular,
                ty: ty.clone(),
                dropped_micros: MICROS,
            },
        );
        if dice.one_in(2) {
            builder = builder.remove(&name);
        }
    }
    builder.build()
}

fn is_wide(table: &TableSchema) -> bool {
    table.clustering().next().is_some()
}

/// Most rows are plain.
fn random_partition(table: &Arc<TableSchema>, dice: &mut Dice) -> PartitionUpdate {
    if !is_wide(table) {
        return match dice.one_in(12) {
            true => random_update(table, dice),
            false => PartitionUpdate {
                rows: vec![random_row(table, Clustering::empty(), dice)],
                ..PartitionUpdate::default()
            },
        };
    }
    random_rows(table, dice)
}

struct Case {
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    sources: Vec<Arc<SSTable>>,
    options: WriterOptions,
    version: Version,
    /// Purges tombstones that are older than the data of all other sources.
    purgeable_below_micros: i64,
}

/// How a merge is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    RowByRow,
    Plain,
}

fn descriptor(directory: &str, id: u32, version: Version) -> Descriptor {
    Descriptor::new(
        Path::new(directory),
        version,
        SSTableId::Sequence(id),
        version.format(),
    )
}

fn random_stats(dice: &mut Dice) -> EncodingStats {
    EncodingStats {
        min_timestamp_micros: MICROS - dice.below(3) as i64 * 1_000_000,
        ..EncodingStats::NONE
    }
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(seed));
        let table = random_table(&mut dice);
        let partitioner = *dice.pick(&[Partitioner::Murmur3, Partitioner::Murmur3, Partitioner::Random]);
        env.create_dir_all(Path::new("in")).unwrap();
        let versions = [Version::NB, Version::OA, Version::DA];
        let version = *dice.pick(&versions);
        let count = *dice.pick(&[1, 2, 3, 4]);
        let sources = (0..count).map(|id| {
            let descriptor = descriptor("in", id, *dice.pick(&versions));
            let can_hold = |micros: i64| micros >= 0 || [descriptor.version, version] == [Version::NB; 2];
            write_source(&env, &descriptor, &table, partitioner, can_hold, &mut dice);
            let options = OpenOptions {
                partitioner,
                ..OpenOptions::default()
            };
            Arc::new(SSTable::open(&env, &descriptor, &options).unwrap())
        });
        Self {
            sources: sources.collect(),
            table: altered(&table, &mut dice),
            options: WriterOptions {
                partitioner,
                estimated_partitions: KEYS as u64,
                encoding_stats: random_stats(&mut dice),
                column_index_bytes: Some(*dice.pick(&[1, 100, 65_536])),
                writes_token_map: true,
                cell_map: dice.one_in(2).then(|| CellMapLimits {
                    row_bytes_min: *dice.pick(&[100, 4000]),
                    row_bytes_per_map_byte: 0,
                }),
                ..WriterOptions::default()
            },
            version,
            purgeable_below_micros: *dice.pick(&[i64::MAX, MICROS, i64::MIN]),
            env,
        }
    }

    fn merged(&self) -> CompactionPurge<MergeCursor> {
        let filter = Arc::new(ClusteringFilter::all());
        let cursors = self.sources.iter().map(|sstable| -> Box<dyn Cursor> {
            Box::new(sstable.cursor(&self.table, KeyRange::all(), filter.clone(), Scan::Sequential))
        });
        let merged = MergeCursor::new(cursors.collect(), self.table.clone(), Direction::Forward);
        let (gc_before_secs, below) = (NOW_SECS - 5, self.purgeable_below_micros);
        CompactionPurge::new(merged, NOW_SECS, gc_before_secs, Box::new(move |_| below)).of_table(&self.table)
    }

    /// Merges into a directory; returns its files, the number of plain partitions or rows, and how many of these came in
    /// batches.
    fn merge(&self, directory: &str, way: Way) -> (Files, u64, u64) {
        self.env.create_dir_all(Path::new(directory)).unwrap();
        let descriptor = descriptor(directory, 1, self.version);
        let writer = SSTableWriter::new(&self.env, &descriptor, &self.table, self.options.clone()).unwrap();
        let mut shown = Shown {
            writer,
            partitioner: self.options.partitioner,
            key: None,
            taken: 0,
            alike: 0,
            dice: Dice::new(7),
        };
        let mut cursor = self.merged();
        loop {
            if way == Way::Plain {
                shown.take_partitions(&mut cursor);
            }
            let Some(head) = cursor.next_partition().unwrap() else {
                break;
            };
            shown.writer.begin_partition(&head).unwrap();
            loop {
                if way == Way::Plain {
                    shown.take_rows(&mut cursor, &head.key);
                }
                let Some(unfiltered) = cursor.next_unfiltered().unwrap() else {
                    break;
                };
                shown.writer.add(&unfiltered).unwrap();
            }
            shown.writer.finish_partition().unwrap();
        }
        if shown.writer.partitions() == 0 {
            shown.writer.abandon();
        } else {
            shown.writer.finish().unwrap();
        }
        (self.files(directory), shown.taken, shown.alike)
    }

    fn files(&self, directory: &str) -> Files {
        let directory = Path::new(directory);
        let files = self.env.list(directory).unwrap().into_iter().map(|entry| {
            let bytes = self.env.read_all(&directory.join(&entry.name), u64::MAX).unwrap();
            (entry.name, bytes)
        });
        files.collect()
    }
}

type Files = BTreeMap<String, Vec<u8>>;

fn write_source(
    env: &Arc<dyn Env>,
    descriptor: &Descriptor,
    table: &Arc<TableSchema>,
    partitioner: Partitioner,
    can_hold: impl Fn(i64) -> bool,
    dice: &mut Dice,
) {
    let comparator = ClusteringComparator::of(table);
    let mut partitions = BTreeMap::new();
    let keys = if is_wide(table) { WIDE_KEYS } else { KEYS };
    for _ in 0..1 + dice.below(keys) {
        let key = Bytes::from(format!("key {}", dice.below(keys)));
        let key = DecoratedKey::new(partitioner, key);
        let mut update = random_partition(table, dice);
        update.deletion = update
            .deletion
            .filter(|deletion| can_hold(deletion.marked_at_micros));
        update.rows.retain(|row| !row.is_empty());
        if update == PartitionUpdate::default() {
            update.rows.push(Row {
                liveness: Liveness::live(MICROS),
                ..Row::empty(random_clustering(table, dice))
            });
        }
        partitions.insert(key.clone(), Partition::of(key, update, &comparator));
    }
    let options = WriterOptions {
        partitioner,
        encoding_stats: random_stats(dice),
        ..WriterOptions::default()
    };
    let mut writer = SSTableWriter::new(env, descriptor, table, options).unwrap();
    for partition in partitions.values() {
        writer.begin_partition(&partition.head).unwrap();
        for unfiltered in &partition.unfiltereds {
            writer.add(unfiltered).unwrap();
        }
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
}

/// Writes plain rows as they are shown; refuses some of them, and stops some runs.
struct Shown {
    writer: SSTableWriter,
    partitioner: Partitioner,
    /// Key of the partition whose rows are shown.
    key: Option<DecoratedKey>,
    taken: u64,
    /// Number of rows that were shown in batches.
    alike: u64,
    dice: Dice,
}

impl Shown {
    fn take_partitions(&mut self, cursor: &mut dyn Cursor) {
        let before = self.taken;
        self.key = None;
        let run = cursor.plain_partitions(None, self).unwrap();
        assert_eq!(run.map_or(0, |run| run.count), self.taken - before);
    }

    fn take_rows(&mut self, cursor: &mut dyn Cursor, key: &DecoratedKey) {
        let before = self.taken;
        self.key = Some(key.clone());
        let count = cursor.plain_rows(key, None, self).unwrap();
        assert_eq!(count, self.taken - before);
    }

    fn write(&mut self, row: &PlainRow<'_>) -> bool {
        let written = match &self.key {
            Some(key) => {
                assert_eq!((row.key, row.token), (&key.key[..], Some(&key.token)));
                self.writer.add_plain_row(row)
            }
            None => {
                let token = self.partitioner.token(row.key);
                assert!(row.token.is_none_or(|known| *known == token));
                self.writer.add_plain(&token, row)
            }
        };
        written.unwrap()
    }
}

impl PlainVisitor for Shown {
    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let (taken, flow) = rows.each(|row| self.row(row));
        self.alike += taken as u64;
        (taken, flow)
    }

    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        assert!(row.cells.is_sorted_by_key(|(id, _)| *id), "{:?}", row.cells);
        if self.dice.one_in(20) || !self.write(row) {
            return Flow::Leave;
        }
        self.taken += 1;
        match self.dice.one_in(20) {
            true => Flow::Last,
            false => Flow::Next,
        }
    }
}

#[test]
fn what_is_plain_is_written_as_row_by_row() {
    let seeds = match number_of("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("SEEDS").unwrap_or(SEEDS_DEFAULT),
    };
    // Of tables without clustering columns, and with.
    let (mut taken, mut cases) = ([0, 0], [0, 0]);
    let mut alike = 0;
    for seed in seeds {
        let case = Case::new(seed);
        let (expected, ..) = case.merge("rows", Way::RowByRow);
        let (found, plain, plain_alike) = case.merge("plain", Way::Plain);
        assert!(
            expected.keys().eq(found.keys()),
            "seed {seed}: the same components"
        );
        for (name, bytes) in &expected {
            assert!(*bytes == found[name], "seed {seed}: {name} differs");
        }
        let kind = usize::from(is_wide(&case.table));
        taken[kind] += plain;
        alike += plain_alike;
        cases[kind] += 1;
    }
    for (taken, cases) in taken.into_iter().zip(cases) {
        assert!(taken >= 20 * cases, "only {taken} of {cases} merges were plain");
    }
    assert!(alike >= 5 * cases[1], "only {alike} rows were shown with others");
}
