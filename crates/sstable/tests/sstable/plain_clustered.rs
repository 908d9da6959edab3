//! Tests that plain rows of partitions with clustering columns, shown in place, are those that row-by-row reads return: of one
//! SSTable and of several merged, of all rows and of slices, with and without deletions around them.
//!
//! `SEEDS=1000` runs more random tables. A failure prints its seed; `SEED=n` runs only that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::random_tables::{EVEN, MICROS, number_of, random_rows, with_clustering};
use crate::shown::{Seen, compare, read, watch};
use crate::support::{cases, read_all, write_all};
use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::random::{Dice, NOW_SECS};
use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringComparator, ClusteringFilter, CompactionPurge, Cursor,
    DecoratedKey, Direction, Flow, KeyRange, MergeCursor, Partition, ReadLaw, ReadPurge, Slice,
    TombstoneLimits, VecCursor,
};
use ilion_schema::{TableBuilder, TableId, TableSchema};
use ilion_sstable::{
    CellMapLimits, Descriptor, EncodingStats, Format, OpenOptions, SSTable, SSTableId, Scan, Version,
    WriterOptions,
};
use ilion_types::{CqlType, Partitioner, Uuid};

const SEEDS_DEFAULT: u64 = 60;

fn random_table(dice: &mut Dice) -> Arc<TableSchema> {
    let name = *dice.pick(&["t", "t", EVEN]);
    let mut table = TableBuilder::new("ks", name, TableId(Uuid::from_u128(1)));
    table = table.partition_key("k", CqlType::Int);
    let types = [CqlType::Text, CqlType::Int, CqlType::Blob];
    table = with_clustering(table, &types, dice);
    for index in 0..dice.below(5) {
        table = table.regular(format!("r{index}"), dice.pick(&types).clone());
    }
    let option = |key: &str, value: &&str| (key.to_owned(), (*value).to_owned());
    table.options.compression = [
        option("class", dice.pick(&["LZ4Compressor", ""])),
        option("chunk_length_in_kb", dice.pick(&["1", "4", "16"])),
    ]
    .into();
    table.build()
}

/// Partitions as in a memtable: without what their own deletions cover.
fn random_partitions(table: &Arc<TableSchema>, dice: &mut Dice) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mut partitions = BTreeMap::new();
    for _ in 0..1 + dice.below(6) {
        let key = Bytes::copy_from_slice(&[0, 0, 0, dice.byte() % 8]);
        let key = DecoratedKey::new(Partitioner::Murmur3, key);
        let update = random_rows(table, dice);
        partitions.insert(key.clone(), Partition::of(key, update, &comparator));
    }
    let source: Box<dyn Cursor> = Box::new(VecCursor::new(partitions.into_values().collect()));
    read_all(&mut MergeCursor::new(
        vec![source],
        table.clone(),
        Direction::Forward,
    ))
}

struct Tables {
    table: Arc<TableSchema>,
    sources: Vec<Arc<SSTable>>,
    /// Clusterings of its rows.
    places: Vec<Clustering>,
}

impl Tables {
    fn random(dice: &mut Dice) -> Self {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        env.create_dir_all(Path::new("d")).unwrap();
        let table = random_table(dice);
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for id in 0..*dice.pick(&[1, 1, 2, 3]) {
            let (version, format) = *dice.pick(&[
                (Version::NB, Format::Big),
                (Version::OA, Format::Big),
                (Version::DA, Format::Bti),
            ]);
            let descriptor = Descriptor::new(Path::new("d"), version, SSTableId::Sequence(id), format);
            let mut partitions = random_partitions(&table, dice);
            // Values that these types cannot have, and none.
            partitions.retain(|Partition { head, unfiltereds }| {
                let is_live = head.deletion.is_live();
                let can_be_held = version == Version::NB || head.deletion.marked_at_micros >= 0 || is_live;
                can_be_held && !(is_live && head.static_row.is_none() && unfiltereds.is_empty())
            });
            if partitions.is_empty() {
                continue;
            }
            for unfiltered in partitions.iter().flat_map(|partition| &partition.unfiltereds) {
                if let ilion_rows::Unfiltered::Row(row) = unfiltered {
                    places.push(row.clustering.clone());
                }
            }
            let options = WriterOptions {
                encoding_stats: EncodingStats {
                    min_timestamp_micros: MICROS,
                    ..EncodingStats::NONE
                },
                column_index_bytes: Some(*dice.pick(&[1, 1000, 65_536])),
                writes_token_map: dice.one_in(2),
                cell_map: dice.one_in(2).then_some(CellMapLimits {
                    row_bytes_min: 2000,
                    row_bytes_per_map_byte: 0,
                }),
                ..WriterOptions::default()
            };
            write_all(&env, &descriptor, &table, options, &partitions);
            sources.push(Arc::new(
                SSTable::open(&env, &descriptor, &OpenOptions::default()).unwrap(),
            ));
        }
        Self {
            table,
            sources,
            places,
        }
    }

    fn random_bound(&self, kinds: &[BoundKind], dice: &mut Dice) -> Bound {
        let values = match self.places.is_empty() {
            true => &Clustering::empty(),
            false => dice.pick(&self.places),
        };
        let values = values.values();
        let len = match dice.one_in(2) {
            true => values.len(),
            false => dice.below(values.len() + 1),
        };
        Bound::new(*dice.pick(kinds), values[..len].iter().cloned().collect())
    }

    fn random_filter(&self, dice: &mut Dice) -> ClusteringFilter {
        let mut filter = ClusteringFilter::all();
        let comparator = ClusteringComparator::of(&self.table);
        if dice.one_in(2) {
            let starts = [BoundKind::InclStart, BoundKind::ExclStart];
            let count = 2 * (1 + dice.below(3));
            let bounds = (0..count).map(|_| self.random_bound(&starts, dice));
            let mut bounds: Vec<Bound> = bounds.collect();
            bounds.sort_by(|a, b| comparator.compare_bounds(a, b));
            if dice.one_in(2) {
                bounds[count - 1] = Bound::top().invert();
            }
            let slices = bounds.chunks(2).map(|pair| Slice {
                start: pair[0].clone(),
                end: pair[1].invert(),
            });
            filter.slices = slices.filter(|slice| !slice.is_empty(&comparator)).collect();
        }
        filter.reversed = dice.one_in(5);
        if dice.one_in(4) {
            let wanted = self.table.regulars().map(|column| column.id);
            filter.columns = Some(wanted.filter(|_| dice.one_in(2)).collect());
        }
        filter
    }

    fn merged(&self, filter: &ClusteringFilter, scan: Scan) -> Box<dyn Cursor> {
        let filter = Arc::new(filter.clone());
        let cursors = self.sources.iter().map(|sstable| -> Box<dyn Cursor> {
            Box::new(sstable.cursor(&self.table, KeyRange::all(), filter.clone(), scan))
        });
        self.as_one(cursors.collect(), Direction::of(filter.reversed))
    }

    /// All rows, without an index.
    fn data_scans(&self) -> Box<dyn Cursor> {
        let scans = self
            .sources
            .iter()
            .map(|sstable| -> Box<dyn Cursor> { Box::new(sstable.data_scan(&self.table).unwrap()) });
        self.as_one(scans.collect(), Direction::Forward)
    }

    fn as_one(&self, mut cursors: Vec<Box<dyn Cursor>>, direction: Direction) -> Box<dyn Cursor> {
        match cursors.len() {
            1 => cursors.remove(0),
            _ => Box::new(MergeCursor::new(cursors, self.table.clone(), direction)),
        }
    }

    /// Purged as by a SELECT or by a compaction, or not purged.
    fn purged(&self, filter: &ClusteringFilter, scan: Scan, how: usize) -> Box<dyn Cursor> {
        let merged = self.merged(filter, scan);
        let law = ReadLaw {
            now_secs: NOW_SECS,
            gc_before_secs: NOW_SECS - 5,
            limits: TombstoneLimits::NONE,
            spend: ReadLaw::patient,
        };
        match how {
            0 => merged,
            1 => Box::new(ReadPurge::new(merged, self.table.clone(), law)),
            _ => Box::new(CompactionPurge::new(
                merged,
                NOW_SECS,
                NOW_SECS - 5,
                Box::new(|_| i64::MAX),
            )),
        }
    }
}

/// Shows rows to a visitor that sometimes stops.
fn watch_fitfully(cursor: &mut dyn Cursor, dice: &Dice) -> (Vec<Seen>, bool) {
    let mut flows = dice.clone();
    watch(cursor, || match flows.below(30) {
        0 => Flow::Leave,
        1 => Flow::Last,
        _ => Flow::Next,
    })
}

/// Reads it twice; returns the number of rows that were shown.
fn check(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let tables = Tables::random(&mut dice);
    let mut shown = 0;
    let seen = watch_fitfully(&mut *tables.data_scans(), &dice);
    if let Err(difference) = compare(seen, read(&mut *tables.data_scans()), &ClusteringFilter::all()) {
        panic!("seed {seed}, without index: {difference}");
    }
    for turn in 0..6 {
        let filter = match turn {
            0 => ClusteringFilter::all(),
            _ => tables.random_filter(&mut dice),
        };
        // A compaction reads all rows.
        let how = match turn {
            0 => dice.below(3),
            _ => dice.below(2),
        };
        let scan = *dice.pick(&[Scan::Point, Scan::Sequential]);
        let expected = read(&mut *tables.purged(&filter, scan, how));
        let seen = watch_fitfully(&mut *tables.purged(&filter, scan, how), &dice);
        match compare(seen, expected, &filter) {
            Ok(count) => shown += count,
            Err(difference) => panic!("seed {seed}, {filter:?}: {difference}"),
        }
    }
    shown
}

#[test]
fn rows_shown_where_they_lie_are_those_that_are_read() {
    let seeds = match number_of("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("SEEDS").unwrap_or(SEEDS_DEFAULT),
    };
    let count = usize::try_from(seeds.end - seeds.start).unwrap();
    let shown: usize = seeds.map(check).sum();
    assert!(
        shown >= 50 * count,
        "only {shown} rows of {count} tables were plain"
    );
}

#[test]
fn rows_of_real_files_are_shown_as_they_are() {
    for case in cases() {
        for index in 0..case.sstables.len() {
            let (sstable, table) = case.open(index);
            for scan in [Scan::Point, Scan::Sequential] {
                let filter = Arc::new(ClusteringFilter::all());
                let cursor = || sstable.cursor(&table, KeyRange::all(), filter.clone(), scan);
                let seen = watch(&mut cursor(), || Flow::Next);
                if let Err(difference) = compare(seen, read(&mut cursor()), &filter) {
                    panic!("{}: {difference}", case.name);
                }
            }
        }
    }
}
