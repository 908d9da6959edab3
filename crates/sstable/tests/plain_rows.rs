//! Plain partitions go from SSTables to an SSTable with the bytes that they have if their rows are taken apart.
//!
//! Random histories of tables of one row a partition, in several SSTables, are merged twice: row by row, and with what is plain shown to
//! the writer. `SEEDS=1000` for more of them; a failure prints its seed, `SEED=n` runs just that.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::random::{Dice, NOW_SECS, random_update};
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, CompactionPurge, Cursor, Data,
    DecoratedKey, Direction, Flow, KeyRange, Liveness, MergeCursor, Partition, PartitionUpdate, PlainRow,
    PlainVisitor, Row,
};
use ilion_schema::{ColumnKind, DroppedColumn, TableBuilder, TableId, TableSchema};
use ilion_sstable::{
    CellMapLimits, Descriptor, EncodingStats, Format, OpenOptions, SSTable, SSTableId, SSTableWriter, Scan,
    Version, WriterOptions,
};
use ilion_types::{CqlType, Partitioner, Uuid};

/// A table of which most rows are laid out alike.
const EVEN: &str = "even";
const SEEDS_DEFAULT: u64 = 40;
const MICROS: i64 = NOW_SECS as i64 * 1_000_000;
const KEYS: usize = 400;

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// One row a partition, of simple columns.
fn random_table(dice: &mut Dice) -> Arc<TableSchema> {
    let name = *dice.pick(&["t", "t", EVEN]);
    let mut table = TableBuilder::new("ks", name, TableId(Uuid::from_u128(1)));
    table = table.partition_key("k", CqlType::Blob);
    let types = [CqlType::Blob, CqlType::Text, CqlType::Int, CqlType::BigInt];
    for index in 0..dice.below(6) {
        table = table.regular(format!("r{index}"), dice.pick(&types).clone());
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

/// The table as it is when the SSTables are merged: perhaps a column has come, was dropped, or was dropped and has come again.
fn altered(table: &Arc<TableSchema>, dice: &mut Dice) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    if dice.one_in(4) {
        builder = builder.regular("r9", CqlType::Text);
    }
    let first = table
        .regulars()
        .next()
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

fn value(table: &TableSchema, ty: &CqlType, dice: &mut Dice) -> Bytes {
    let len = match (ty, dice.below(60)) {
        (_, 0) => 0,
        (CqlType::Int, _) => 4,
        (CqlType::BigInt, _) => 8,
        (_, 3..) if table.name == EVEN => 11,
        (_, 1) => 126 + dice.below(4),
        (_, 2) => 1000 + dice.below(4000),
        (_, _) => dice.below(40),
    };
    (0..len).map(|_| b'a' + dice.byte() % 16).collect()
}

/// Most of them plain.
fn random_partition(table: &Arc<TableSchema>, dice: &mut Dice) -> PartitionUpdate {
    if dice.one_in(12) {
        return random_update(table, dice);
    }
    let mut row = Row::empty(Clustering::empty());
    let micros = MICROS + dice.below(1000) as i64;
    row.liveness = match dice.below(20) {
        0 => Liveness::NONE,
        1 => Liveness::expiring(micros, 60, NOW_SECS + 60),
        _ => Liveness::live(micros),
    };
    let has_all = table.name == EVEN || dice.one_in(2);
    for column in table.regulars() {
        if !has_all && dice.one_in(3) {
            continue;
        }
        let value = value(table, &column.ty, dice);
        let cell = match dice.below(60) {
            0 => Cell::live(micros - 1, value),
            1 => Cell::tombstone(micros, NOW_SECS - 10),
            2 => Cell::expiring(micros, 60, NOW_SECS + 60, value),
            _ => Cell::live(micros, value),
        };
        row.columns.push(ColumnData {
            column: column.id,
            data: Data::Simple(cell),
        });
    }
    let rows = if row.is_empty() { vec![] } else { vec![row] };
    PartitionUpdate {
        rows,
        ..PartitionUpdate::default()
    }
}

struct Case {
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    sources: Vec<Arc<SSTable>>,
    options: WriterOptions,
    version: Version,
}

fn descriptor(directory: &str, id: u32, version: Version) -> Descriptor {
    let format = match version {
        Version::DA => Format::Bti,
        _ => Format::Big,
    };
    Descriptor::new(Path::new(directory), version, SSTableId::Sequence(id), format)
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
        let count = *dice.pick(&[1, 2, 3, 4]);
        let sources = (0..count).map(|id| {
            let descriptor = descriptor("in", id, *dice.pick(&versions));
            write_source(&env, &descriptor, &table, partitioner, &mut dice);
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
            version: *dice.pick(&versions),
            env,
        }
    }

    fn merged(&self) -> CompactionPurge<MergeCursor> {
        let filter = Arc::new(ClusteringFilter::all());
        let cursors = self.sources.iter().map(|sstable| -> Box<dyn Cursor> {
            Box::new(sstable.cursor(&self.table, KeyRange::all(), filter.clone(), Scan::Sequential))
        });
        let merged = MergeCursor::new(cursors.collect(), self.table.clone(), Direction::Forward);
        let gc_before_secs = NOW_SECS - 5;
        CompactionPurge::new(merged, NOW_SECS, gc_before_secs, Box::new(|_| i64::MAX))
    }

    /// Merges into that directory and gives its files, and how many partitions were plain.
    fn merge(&self, directory: &str, mut way: impl FnMut(&mut dyn Cursor, &mut Shown)) -> (Files, u64) {
        self.env.create_dir_all(Path::new(directory)).unwrap();
        let descriptor = descriptor(directory, 1, self.version);
        let writer = SSTableWriter::new(&self.env, &descriptor, &self.table, self.options.clone()).unwrap();
        let mut shown = Shown {
            writer,
            partitioner: self.options.partitioner,
            taken: 0,
            dice: Dice::new(7),
        };
        let mut cursor = self.merged();
        loop {
            way(&mut cursor, &mut shown);
            let Some(head) = cursor.next_partition().unwrap() else {
                break;
            };
            shown.writer.begin_partition(&head).unwrap();
            while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
                shown.writer.add(&unfiltered).unwrap();
            }
            shown.writer.finish_partition().unwrap();
        }
        if shown.writer.partitions() == 0 {
            shown.writer.abandon();
        } else {
            shown.writer.finish().unwrap();
        }
        (self.files(directory), shown.taken)
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
    dice: &mut Dice,
) {
    let comparator = ClusteringComparator::of(table);
    let cannot_hold = |micros: i64| descriptor.version != Version::NB && micros < 0;
    let mut partitions = BTreeMap::new();
    for _ in 0..1 + dice.below(KEYS) {
        let key = Bytes::from(format!("key {}", dice.below(KEYS)));
        let key = DecoratedKey::new(partitioner, key);
        let mut update = random_partition(table, dice);
        update.deletion = update
            .deletion
            .filter(|deletion| !cannot_hold(deletion.marked_at_micros));
        if update == PartitionUpdate::default() {
            update.rows.push(Row {
                liveness: Liveness::live(MICROS),
                ..Row::empty(Clustering::empty())
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

/// Has what is plain written as it lies; leaves some of it alone, and ends some runs.
struct Shown {
    writer: SSTableWriter,
    partitioner: Partitioner,
    taken: u64,
    dice: Dice,
}

impl PlainVisitor for Shown {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let token = self.partitioner.token(row.key);
        assert!(row.token.is_none_or(|known| *known == token));
        if self.dice.one_in(20) || !self.writer.add_plain(&token, row).unwrap() {
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
    let (mut taken, mut cases) = (0, 0);
    for seed in seeds {
        let case = Case::new(seed);
        let (expected, _) = case.merge("rows", |_, _| {});
        let (found, plain) = case.merge("plain", |cursor, shown| {
            let before = shown.taken;
            let run = cursor.plain_partitions(None, shown).unwrap();
            assert_eq!(run.map_or(0, |run| run.count), shown.taken - before);
        });
        assert!(
            expected.keys().eq(found.keys()),
            "seed {seed}: the same components"
        );
        for (name, bytes) in &expected {
            assert!(*bytes == found[name], "seed {seed}: {name} differs");
        }
        taken += plain;
        cases += 1;
    }
    assert!(
        taken >= 20 * cases,
        "only {taken} partitions of {cases} merges were plain"
    );
}
