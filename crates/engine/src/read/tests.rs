//! Reads of a partition against the merge of everything that there is: random tables, random histories over memtables
//! and SSTables, random filters. A failing seed is printed.

use std::path::Path;

use ilion_commitlog::Position;
use ilion_env::{Env, MemEnv, cost};
use ilion_memtable::Memtable;
use ilion_rows::random::{self, Dice, NOW_SECS};
use ilion_rows::{ColumnData, Data, FilterCursor, Mutation, ReadLaw, ReadPurge, Row, Slice, WantedElements};
use ilion_schema::ColumnId;
use ilion_sstable::{CellMapLimits, OpenOptions, SSTableWriter, Version, WriterOptions};
use ilion_types::Partitioner;

use super::*;
use crate::live_sstable::LiveSSTable;

/// Later than everything but a third of what expires.
const READ_AT_SECS: u32 = NOW_SECS + 61;

pub(super) struct Case {
    disk: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    pub(super) store: TableStore,
    dice: Dice,
}

fn later(micros: &mut i64, by: i64) {
    *micros = micros.saturating_add(by);
}

/// All timestamps of a change, moved.
fn move_in_time(mutation: &mut Mutation, by: i64) {
    let update = &mut mutation.update;
    if let Some(deletion) = &mut update.deletion {
        // Versions from oa on have no negative ones.
        deletion.marked_at_micros = deletion.marked_at_micros.max(0);
        later(&mut deletion.marked_at_micros, by);
    }
    for range in &mut update.ranges {
        later(&mut range.deletion.marked_at_micros, by);
    }
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        if !row.liveness.is_none() {
            later(&mut row.liveness.timestamp_micros, by);
        }
        if !row.deletion.is_live() {
            later(&mut row.deletion.marked_at_micros, by);
        }
        for entry in &mut row.columns {
            match &mut entry.data {
                Data::Simple(cell) => later(&mut cell.timestamp_micros, by),
                Data::Complex(complex) => {
                    if !complex.deletion.is_live() {
                        later(&mut complex.deletion.marked_at_micros, by);
                    }
                    for (_, cell) in &mut complex.cells {
                        later(&mut cell.timestamp_micros, by);
                    }
                }
            }
        }
    }
}

impl Case {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let table = random::random_table(&mut dice);
        let disk = MemEnv::new(seed);
        let env = disk.shared();
        let store = TableStore::new(
            &*env,
            Path::new("/data"),
            table.clone(),
            1,
            Position::START,
            Arc::default(),
        );
        env.create_dir_all(&store.directory).unwrap();
        let mut case = Self {
            disk,
            env,
            table,
            store,
            dice,
        };
        // Half of the histories go forward in time, so that reads can end early.
        let step = if case.dice.one_in(2) { 8 } else { 0 };
        let has_large_values = case.dice.one_in(10);
        let (files, memtables) = (case.dice.below(6), 1 + case.dice.below(2));
        for at in 0..files + memtables {
            let memtable = Arc::new(Memtable::new(case.table.clone(), 1 + case.dice.below(3)));
            for _ in 0..1 + case.dice.below(8) {
                let mut mutation = random::random_mutation(&case.table, &mut case.dice);
                move_in_time(&mut mutation, step * at as i64);
                if has_large_values {
                    let update = &mut mutation.update;
                    let rows = update.static_row.iter_mut().chain(&mut update.rows);
                    rows.for_each(|row| random::enlarge(row, &case.table, &mut case.dice));
                }
                memtable.apply(&mutation);
            }
            if at < files {
                case.flush(&memtable);
            } else {
                case.store.change_view(|view| {
                    let mut view = view.clone();
                    view.memtables.insert(0, memtable);
                    view
                });
            }
        }
        case
    }

    fn flush(&mut self, memtable: &Arc<Memtable>) {
        let versions = [Version::NB, Version::OA, Version::DA];
        let descriptor = self.store.next_descriptor(&*self.env, *self.dice.pick(&versions));
        let options = WriterOptions {
            cell_map: (!self.dice.one_in(3)).then(|| CellMapLimits {
                row_bytes_min: *self.dice.pick(&[0, 100, 16 << 10]),
                row_bytes_per_map_byte: *self.dice.pick(&[0, 0, 100]),
            }),
            column_index_bytes: Some(*self.dice.pick(&[1, 2_000, 65_536])),
            ..WriterOptions::default()
        };
        let mut writer = SSTableWriter::new(&self.env, &descriptor, &self.table, options).unwrap();
        let mut cursor = memtable.flush_cursor();
        while let Some(head) = cursor.next_partition().unwrap() {
            writer.begin_partition(&head).unwrap();
            while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
                writer.add(&unfiltered).unwrap();
            }
            writer.finish_partition().unwrap();
        }
        if writer.partitions() == 0 {
            return writer.abandon();
        }
        writer.finish().unwrap();
        let sstable = SSTable::open(&self.env, &descriptor, &OpenOptions::default()).unwrap();
        self.store
            .add_sstables(vec![LiveSSTable::new(self.env.clone(), Arc::default(), sstable)]);
    }

    /// Rows by their clusterings, or any slices; any columns; either direction.
    fn filter(&mut self) -> ClusteringFilter {
        let comparator = ClusteringComparator::of(&self.table);
        let mut filter = ClusteringFilter::all();
        if !self.dice.one_in(8) && !comparator.is_empty() {
            let (table, dice) = (&self.table, &mut self.dice);
            let mut slices: Vec<Slice> = Vec::new();
            if dice.one_in(3) {
                let range = random::random_range(table, dice);
                slices.extend(range.map(|range| Slice {
                    start: range.start,
                    end: range.end,
                }));
            } else {
                let mut rows: Vec<_> = (0..1 + dice.below(4))
                    .map(|_| random::random_clustering(table, dice))
                    .collect();
                rows.sort_by(|a, b| comparator.compare(a, b));
                rows.dedup_by(|a, b| comparator.compare(a, b).is_eq());
                slices.extend(rows.iter().map(Slice::exactly));
            }
            filter.slices = slices;
        }
        if self.dice.one_in(2) {
            let columns = self.table.regulars().chain(self.table.statics());
            let columns: Vec<ColumnId> = columns.map(|column| column.id).collect();
            filter.columns = Some(columns.into_iter().filter(|_| self.dice.one_in(2)).collect());
            filter.elements = self.elements();
        }
        filter.reversed = self.dice.one_in(2);
        filter.liveness = self.dice.one_in(3);
        filter
    }

    /// Some elements of some maps, and of some columns only the times.
    fn elements(&mut self) -> Option<Arc<[WantedElements]>> {
        let (table, dice) = (&self.table, &mut self.dice);
        let mut elements = Vec::new();
        for column in table.regulars().chain(table.statics()) {
            let paths = match column.is_complex() {
                true if dice.one_in(3) => (0..6_u32).filter(|_| dice.one_in(3)).collect(),
                _ if dice.one_in(4) => Vec::new(),
                _ => continue,
            };
            let path = |key: u32| bytes::Bytes::copy_from_slice(&key.to_be_bytes());
            elements.push(WantedElements {
                column: column.id,
                paths: paths.into_iter().map(path).collect(),
            });
        }
        (!elements.is_empty()).then(|| elements.into())
    }

    /// What `read` gives; it must be charged what the disk served.
    fn charged<T>(&self, read: impl FnOnce() -> T) -> T {
        let (reads, bytes) = self.disk.served();
        let scope = cost::begin();
        let given = read();
        let io = scope.so_far().io;
        let (reads_after, bytes_after) = self.disk.served();
        assert_eq!(
            (io.reads, io.bytes_read),
            (reads_after - reads, bytes_after - bytes)
        );
        given
    }

    /// Every source, whatever its statistics say.
    fn everything(&self, key: &DecoratedKey, filter: &ClusteringFilter) -> Box<dyn Cursor> {
        let view = self.store.view();
        let all = Arc::new(ClusteringFilter::all());
        let range = KeyRange::exactly(key);
        let mut sources: Vec<Box<dyn Cursor>> = Vec::new();
        for memtable in &view.memtables {
            sources.push(Box::new(memtable.cursor(range.clone(), all.clone())));
        }
        for live in &view.sstables {
            sources.push(scan(live, &self.table, &range, &all, Scan::Sequential));
        }
        let merged = MergeCursor::new(sources, self.table.clone(), Direction::Forward);
        let comparator = ClusteringComparator::of(&self.table);
        Box::new(FilterCursor::new(merged, Arc::new(filter.clone()), comparator))
    }

    /// A range of partitions, one after another.
    fn range(&self, filter: &ClusteringFilter) -> Vec<(Option<Row>, Vec<Row>)> {
        let mut keys: Vec<DecoratedKey> = (0..5_u32)
            .map(|number| {
                let key = bytes::Bytes::copy_from_slice(&number.to_be_bytes());
                DecoratedKey::new(Partitioner::Murmur3, key)
            })
            .collect();
        keys.sort();
        let partition = |key: &DecoratedKey| {
            let range = KeyRange::exactly(key);
            self.seen(self.store.read_range(&self.table, &range, filter), filter)
        };
        keys.iter().map(partition).collect()
    }

    /// What a client sees: the static row if something of it is wanted, and the rows with the wanted columns.
    fn seen(&self, cursor: Box<dyn Cursor>, filter: &ClusteringFilter) -> (Option<Row>, Vec<Row>) {
        let law = ReadLaw::without_limits(READ_AT_SECS);
        let mut cursor = ReadPurge::new(cursor, self.table.clone(), law);
        let Some(head) = cursor.next_partition().unwrap() else {
            return (None, Vec::new());
        };
        let wanted = |row: Row| {
            let mut row = projected(row, filter);
            if !filter.liveness {
                row.liveness = ilion_rows::Liveness::NONE;
            }
            row
        };
        let wants_static = self.table.statics().any(|column| filter.wants(column.id));
        let static_row = head.static_row.filter(|_| wants_static).map(wanted);
        let mut rows = Vec::new();
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            if let Unfiltered::Row(row) = unfiltered {
                rows.push(wanted(row));
            }
        }
        assert!(cursor.next_partition().unwrap().is_none());
        (static_row, rows)
    }
}

/// What is wanted of a row.
fn projected(mut row: Row, filter: &ClusteringFilter) -> Row {
    row.columns
        .retain(|entry: &ColumnData| filter.wants(entry.column));
    for entry in &mut row.columns {
        let Some(paths) = filter.paths_of(entry.column) else {
            continue;
        };
        match &mut entry.data {
            Data::Simple(cell) => cell.value.clear(),
            Data::Complex(complex) => {
                let cells = complex.cells.iter_mut();
                cells
                    .filter(|(path, _)| !paths.contains(path))
                    .for_each(|(_, cell)| cell.value.clear());
            }
        }
    }
    row
}

#[test]
fn a_partition_reads_as_the_merge_of_all_sources() {
    for seed in 0..250 {
        let mut case = Case::new(seed);
        for _ in 0..12 {
            let number = u32::try_from(case.dice.below(5)).unwrap();
            let key = bytes::Bytes::copy_from_slice(&number.to_be_bytes());
            let key = DecoratedKey::new(Partitioner::Murmur3, key);
            let filter = case.filter();
            let read = case.charged(|| {
                let cursor = case
                    .store
                    .read_partition(&case.table, &key, &filter, READ_AT_SECS);
                case.seen(cursor.unwrap(), &filter)
            });
            assert_eq!(
                read,
                case.seen(case.everything(&key, &filter), &filter),
                "seed {seed}: {key:?} {filter:?}"
            );
        }
    }
}

#[test]
fn a_range_reads_some_columns_as_it_reads_all() {
    for seed in 0..60 {
        let mut case = Case::new(seed);
        for _ in 0..4 {
            let filter = case.filter();
            let all = ClusteringFilter {
                columns: None,
                elements: None,
                ..filter.clone()
            };
            let projected = |rows: Vec<(Option<Row>, Vec<Row>)>| -> Vec<(Option<Row>, Vec<Row>)> {
                let wanted = |row: Row| projected(row, &filter);
                let wants_static = case.table.statics().any(|column| filter.wants(column.id));
                rows.into_iter()
                    .map(|(static_row, rows)| {
                        let static_row = static_row.filter(|_| wants_static).map(wanted);
                        (static_row, rows.into_iter().map(wanted).collect())
                    })
                    .collect()
            };
            let read = case.charged(|| case.range(&filter));
            assert_eq!(read, projected(case.range(&all)), "seed {seed}: {filter:?}");
        }
    }
}
