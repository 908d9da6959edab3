//! Tests of the cell map: the cost of a read of one column with it and without, and the handling of a damaged one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::FileKind;
use ilion_env::account::{IoEvent, begin_trace, finish_trace};
use ilion_env::{Env, MemEnv, Seeded};
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, ComplexColumn, Cursor, Data,
    DecoratedKey, DeletionTime, Liveness, Partition, PartitionUpdate, Row, Slice, Unfiltered, WantedElements,
};
use ilion_schema::{ClusteringOrder, ColumnId, TableBuilder, TableId, TableSchema};
use ilion_sstable::verify::verify;
use ilion_sstable::{
    CellMapLimits, ChunkCache, Component, Descriptor, KeyHash, OpenOptions, Presence, SSTable, SSTableId,
    SSTableWriter, Unwanted, Version, WriterOptions,
};
use ilion_types::{CqlType, Partitioner, Uuid};

const VERSIONS: [Version; 3] = [Version::NB, Version::OA, Version::DA];
const CHUNK_BYTES: u64 = 16 << 10;
const PARTITIONS: u32 = 6;
const ROWS: i32 = 3;

struct Shape {
    version: Version,
    columns: usize,
    value_bytes: usize,
    has_clustering: bool,
    is_compressed: bool,
    /// Columns whose cells are deleted or expire.
    mortal: &'static [usize],
    cell_map: Option<CellMapLimits>,
}

impl Shape {
    /// A hundred blobs of 10,000 bytes per row.
    fn wide(version: Version) -> Self {
        Self {
            version,
            columns: 100,
            value_bytes: 10_000,
            has_clustering: false,
            is_compressed: true,
            mortal: &[],
            cell_map: Some(CellMapLimits::default()),
        }
    }
}

struct Case {
    mem: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitions: Vec<Partition>,
}

impl Case {
    fn write(shape: &Shape) -> Self {
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let (version, id) = (shape.version, SSTableId::Sequence(3));
        let descriptor = Descriptor::new(Path::new("ks/t"), version, id, version.format());
        let table = table_of(shape);
        let options = WriterOptions {
            cell_map: shape.cell_map,
            ..WriterOptions::default()
        };
        let partitions = partitions_of(&table, shape);
        crate::support::write_all(&env, &descriptor, &table, options, &partitions);
        Self {
            mem,
            env,
            table,
            descriptor,
            partitions,
        }
    }

    fn open(&self) -> Arc<SSTable> {
        let options = OpenOptions {
            chunk_cache: Some(Arc::new(ChunkCache::new(1 << 26))),
            ..OpenOptions::default()
        };
        Arc::new(SSTable::open(&self.env, &self.descriptor, &options).unwrap())
    }

    fn open_without_cache(&self) -> Arc<SSTable> {
        Arc::new(SSTable::open(&self.env, &self.descriptor, &OpenOptions::default()).unwrap())
    }

    fn column(&self, number: usize) -> ColumnId {
        let name = format!("v{number:02}");
        self.table.column_named(&name).unwrap().id
    }

    fn path(&self) -> PathBuf {
        self.descriptor.path(&Component::Cells)
    }

    /// Reads a column of every row, another one each time; returns the number of bytes of values.
    fn read_columns(&self, sstable: &Arc<SSTable>, reversed: bool) -> u64 {
        let mut bytes = 0;
        for (index, partition) in self.partitions.iter().enumerate() {
            for (number, unfiltered) in partition.unfiltereds.iter().enumerate() {
                let Unfiltered::Row(row) = unfiltered else {
                    panic!("no ranges were written");
                };
                let column = self.column((index * 37 + number * 11 + 3) % row.columns.len());
                let filter = Arc::new(ClusteringFilter {
                    slices: vec![Slice::exactly(&row.clustering)],
                    reversed,
                    columns: Some([column].into()),
                    ..ClusteringFilter::all()
                });
                let mut cursor = sstable
                    .partition(&self.table, &partition.head.key, &filter)
                    .unwrap()
                    .unwrap();
                cursor.next_partition().unwrap().unwrap();
                let Some(Unfiltered::Row(found)) = cursor.next_unfiltered().unwrap() else {
                    panic!("the row is there");
                };
                assert_eq!(cursor.next_unfiltered().unwrap(), None);
                assert_eq!(found.column(column), row.column(column));
                assert_eq!(found.columns.len(), row.columns.len());
                assert_eq!(found.liveness, row.liveness);
                if let Some(Data::Simple(cell)) = found.column(column) {
                    bytes += cell.value.len() as u64;
                }
            }
        }
        bytes
    }

    fn rows(&self) -> u64 {
        let rows = self
            .partitions
            .iter()
            .map(|partition| partition.unfiltereds.len());
        rows.sum::<usize>() as u64
    }
}

fn table_of(shape: &Shape) -> Arc<TableSchema> {
    let mut table =
        TableBuilder::new("ks", "t", TableId(Uuid::from_u128(1))).partition_key("k", CqlType::Text);
    if shape.has_clustering {
        table = table.clustering("c", CqlType::Int, ClusteringOrder::Asc);
    }
    if !shape.is_compressed {
        table.options.compression = [("class".to_owned(), String::new())].into();
    }
    for number in 0..shape.columns {
        table = table.regular(format!("v{number:02}"), CqlType::Blob);
    }
    table.build()
}

fn partitions_of(table: &Arc<TableSchema>, shape: &Shape) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mut random = Seeded::new(5);
    let mut value = || -> Bytes {
        let words = (0..shape.value_bytes.div_ceil(8)).map(|_| random.below(u64::MAX).to_be_bytes());
        words.flatten().take(shape.value_bytes).collect()
    };
    let mut row_of = |number: i32| {
        let clustering = match shape.has_clustering {
            true => Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]),
            false => Clustering::empty(),
        };
        let mut row = Row::empty(clustering);
        row.liveness = Liveness::live(10);
        for column in table.regulars() {
            // Some columns were updated later, one by one.
            let micros = if column.id.0 % 7 == 0 { 12 } else { 10 };
            let cell = Cell::live(micros, value());
            let is_mortal = |number: &usize| column.name == format!("v{number:02}");
            let cell = match shape.mortal.iter().position(is_mortal) {
                None => cell,
                Some(0) => Cell::tombstone(11, 7),
                Some(_) => Cell {
                    ttl_secs: 100,
                    local_deletion_secs: 1_700_000_000,
                    ..cell
                },
            };
            row.columns.push(ColumnData {
                column: column.id,
                data: Data::Simple(cell),
            });
        }
        row.columns.sort_by_key(|entry| entry.column);
        row
    };
    let rows = if shape.has_clustering { ROWS } else { 1 };
    let mut partitions: Vec<Partition> = (0..PARTITIONS)
        .map(|number| {
            let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::from(format!("key {number}")));
            let update = PartitionUpdate {
                rows: (0..rows).map(&mut row_of).collect(),
                ..PartitionUpdate::default()
            };
            Partition::of(key, update, &comparator)
        })
        .collect();
    partitions.sort_by(|a, b| a.head.key.cmp(&b.head.key));
    partitions
}

/// Number of bytes read of all files, and of Data.db.
fn bytes_read<T>(read: impl FnOnce() -> T) -> (u64, u64) {
    begin_trace();
    read();
    let events = finish_trace();
    let data = events
        .iter()
        .filter(|event| FileKind::of(&event.path) == FileKind::Data);
    let data = data.map(|event| event.bytes).sum();
    (events.iter().map(|event| event.bytes).sum(), data)
}

#[test]
fn one_column_of_a_wide_row_costs_its_bytes_and_a_chunk() {
    for version in VERSIONS {
        let case = Case::write(&Shape::wide(version));
        let sstable = case.open();
        assert!(sstable.cell_map_bytes().unwrap().is_some());
        let mut returned = 0;
        let (all, data) = bytes_read(|| returned = case.read_columns(&sstable, false));
        assert_eq!(returned, 10_000 * case.rows());
        // Of Data.db, only the chunks of the value, including their CRCs.
        let in_chunks = case.rows() * 2 * (CHUNK_BYTES + 128);
        assert!(data <= in_chunks, "{version:?}: {data} bytes");
        let bound = 2 * returned + case.rows() * CHUNK_BYTES;
        // The bytes of CompressionInfo.db that are read when Data.db is opened do not count.
        let opening = case
            .env
            .file_size(&case.descriptor.path(&Component::CompressionInfo));
        let bound = bound + opening.unwrap() + 1000;
        assert!(all <= bound, "{version:?}: {all} bytes, {data} of Data.db");
    }
}

/// Number of reads of Data.db.
fn data_reads_of<T>(read: impl FnOnce() -> T) -> usize {
    begin_trace();
    read();
    let is_data = |event: &&IoEvent| FileKind::of(&event.path) == FileKind::Data;
    finish_trace().iter().filter(is_data).count()
}

#[test]
fn one_column_of_a_hundred_takes_as_many_reads_as_a_blob_in_a_row_of_its_own() {
    for version in VERSIONS {
        let wide = Case::write(&Shape::wide(version));
        let lone = Case::write(&Shape {
            columns: 1,
            ..Shape::wide(version)
        });
        for case in [&wide, &lone] {
            let mut counts = Vec::new();
            for column in (0..case.table.regulars().count()).step_by(11) {
                for partition in &case.partitions {
                    // No chunk of Data.db is cached.
                    let sstable = case.open_without_cache();
                    sstable.cell_map_bytes().unwrap();
                    let filter = Arc::new(ClusteringFilter {
                        columns: Some([case.column(column)].into()),
                        ..ClusteringFilter::all()
                    });
                    let mut value = None;
                    let data = data_reads_of(|| {
                        let key = &partition.head.key;
                        let mut cursor = sstable.partition(&case.table, key, &filter).unwrap().unwrap();
                        cursor.next_partition().unwrap().unwrap();
                        value = cursor.next_unfiltered().unwrap();
                    });
                    let Some(Unfiltered::Row(row)) = value else {
                        panic!("the row is there");
                    };
                    let Some(Data::Simple(cell)) = row.column(case.column(column)) else {
                        panic!("the column is there");
                    };
                    assert_eq!(cell.value.len(), 10_000);
                    counts.push(data);
                }
            }
            assert!(counts.iter().all(|reads| *reads == 1), "{version:?}: {counts:?}");
        }
    }
}

#[test]
fn a_wide_row_among_others_costs_no_more_in_either_direction() {
    for version in VERSIONS {
        let case = Case::write(&Shape {
            has_clustering: true,
            columns: 40,
            ..Shape::wide(version)
        });
        for reversed in [false, true] {
            let sstable = case.open();
            let (_, data) = bytes_read(|| case.read_columns(&sstable, reversed));
            // The start of a partition is read once; a walk to the third row reads the starts of those before.
            let bound =
                case.rows() * 2 * (CHUNK_BYTES + 128) + u64::from(PARTITIONS) * 3 * (CHUNK_BYTES + 128);
            assert!(data <= bound, "{version:?} {reversed}: {data} bytes");
        }
    }
}

#[test]
fn a_blob_in_a_row_of_its_own_costs_its_bytes_and_a_chunk() {
    for version in VERSIONS {
        let case = Case::write(&Shape {
            has_clustering: true,
            columns: 1,
            ..Shape::wide(version)
        });
        for reversed in [false, true] {
            let sstable = case.open();
            let mut returned = 0;
            let (_, data) = bytes_read(|| returned = case.read_columns(&sstable, reversed));
            let bound = 2 * returned + case.rows() * CHUNK_BYTES;
            assert!(data <= bound, "{version:?} {reversed}: {data} bytes");
        }
    }
}

#[test]
fn without_a_map_chunks_between_the_starts_of_cells_are_left_alone() {
    for version in VERSIONS {
        let case = Case::write(&Shape {
            columns: 8,
            value_bytes: 200_000,
            cell_map: None,
            ..Shape::wide(version)
        });
        let sstable = case.open();
        assert_eq!(sstable.cell_map_bytes().unwrap(), None);
        let (_, data) = bytes_read(|| case.read_columns(&sstable, false));
        // The value, and a chunk or two for the start of each cell.
        let bound = case.rows() * (200_000 + 2 * 9 * (CHUNK_BYTES + 128));
        assert!(data <= bound, "{version:?}: {data} bytes");
        assert!(data < case.rows() * 8 * 200_000 / 3);
    }
}

#[test]
fn the_map_takes_less_than_a_hundredth_of_the_data() {
    for value_bytes in [200, 1000, 10_000] {
        let case = Case::write(&Shape {
            value_bytes,
            ..Shape::wide(Version::NB)
        });
        let map = case.open().cell_map_bytes().unwrap().unwrap();
        let data = case.open().data_length();
        assert!(map < data / 100 + 4096, "{map} bytes for {data}");
    }
}

#[test]
fn small_rows_have_no_map() {
    let case = Case::write(&Shape {
        columns: 8,
        value_bytes: 1000,
        ..Shape::wide(Version::NB)
    });
    assert!(!case.env.exists(&case.path()));
    assert_eq!(case.open().cell_map_bytes().unwrap(), None);
}

#[test]
fn a_damaged_or_foreign_map_is_not_used() {
    let shape = Shape {
        columns: 30,
        ..Shape::wide(Version::NB)
    };
    let case = Case::write(&shape);
    let path = case.path();
    let size = case.env.file_size(&path).unwrap();
    for at in (0..size).step_by(61) {
        case.mem.corrupt_byte(&path, at, 0x55).unwrap();
        let sstable = case.open();
        case.read_columns(&sstable, false);
        case.read_columns(&sstable, true);
        case.mem.corrupt_byte(&path, at, 0x55).unwrap();
    }
    let other = Case::write(&Shape { columns: 31, ..shape });
    let bytes = other.env.read_all(&other.path(), 1 << 20).unwrap();
    let mut file = case.env.create_or_truncate(&path).unwrap();
    file.append(&bytes).unwrap();
    let sstable = case.open();
    assert_eq!(sstable.cell_map_bytes().unwrap(), None);
    case.read_columns(&sstable, false);
}

/// One row with a map of 60 blobs, after a column of another name.
fn map_of_blobs(version: Version) -> (Case, ColumnId) {
    let mut case = Case::write(&Shape {
        columns: 1,
        ..Shape::wide(version)
    });
    let map = CqlType::Map {
        key: Arc::new(CqlType::Int),
        value: Arc::new(CqlType::Blob),
        frozen: false,
    };
    case.table = TableBuilder::new("ks", "t", TableId(Uuid::from_u128(1)))
        .partition_key("k", CqlType::Text)
        .regular("a", CqlType::Int)
        .regular("m", map)
        .build();
    let column = case.table.column_named("m").unwrap().id;
    let cells = (0..60_u32).map(|key| {
        let value = case.partitions[key as usize % case.partitions.len()].clone();
        let Unfiltered::Row(row) = &value.unfiltereds[0] else {
            panic!("a row");
        };
        let Data::Simple(cell) = &row.columns[0].data else {
            panic!("a simple cell");
        };
        let path = Bytes::copy_from_slice(&key.to_be_bytes());
        (path, Cell::live(10 + i64::from(key), cell.value.clone()))
    });
    let complex = ComplexColumn {
        deletion: DeletionTime::new(5, 5),
        cells: cells.collect(),
    };
    let mut row = Row::empty(Clustering::empty());
    row.liveness = Liveness::live(10);
    row.columns.push(ColumnData {
        column,
        data: Data::Complex(Box::new(complex)),
    });
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    let comparator = ClusteringComparator::of(&case.table);
    let key = case.partitions[0].head.key.clone();
    case.partitions = vec![Partition::of(key, update, &comparator)];
    case.descriptor.id = SSTableId::Sequence(4);
    let mut writer =
        SSTableWriter::new(&case.env, &case.descriptor, &case.table, WriterOptions::default()).unwrap();
    writer.begin_partition(&case.partitions[0].head).unwrap();
    writer.add(&case.partitions[0].unfiltereds[0]).unwrap();
    writer.finish_partition().unwrap();
    writer.finish().unwrap();
    (case, column)
}

#[test]
fn one_element_of_a_map_costs_its_bytes_and_a_chunk() {
    for version in VERSIONS {
        let (case, column) = map_of_blobs(version);
        let sstable = case.open();
        let key = Bytes::copy_from_slice(&41_u32.to_be_bytes());
        let filter = Arc::new(ClusteringFilter {
            columns: Some([column].into()),
            elements: Some(
                [WantedElements {
                    column,
                    paths: vec![key.clone()],
                }]
                .into(),
            ),
            ..ClusteringFilter::all()
        });
        let mut found = None;
        let (_, data) = bytes_read(|| {
            let partition = &case.partitions[0].head.key;
            let mut cursor = sstable
                .partition(&case.table, partition, &filter)
                .unwrap()
                .unwrap();
            cursor.next_partition().unwrap().unwrap();
            found = cursor.next_unfiltered().unwrap();
        });
        assert!(data <= 2 * (CHUNK_BYTES + 128), "{version:?}: {data} bytes");
        let (Some(Unfiltered::Row(found)), Unfiltered::Row(whole)) =
            (found, &case.partitions[0].unfiltereds[0])
        else {
            panic!("a row");
        };
        let (Some(Data::Complex(found)), Some(Data::Complex(whole))) =
            (found.column(column), whole.column(column))
        else {
            panic!("a map");
        };
        assert_eq!(found.deletion, whole.deletion);
        for ((path, found), (same, whole)) in found.cells.iter().zip(&whole.cells) {
            assert_eq!((path, found.timestamp_micros), (same, whole.timestamp_micros));
            assert_eq!(found.value.is_empty(), *path != key);
            if *path == key {
                assert_eq!(found, whole);
            }
        }
        assert_eq!(found.cells.len(), 60);
    }
}

#[test]
fn verify_finds_every_damaged_byte_of_a_cell_map() {
    for version in VERSIONS {
        let (case, _) = map_of_blobs(version);
        let wide = Case::write(&Shape {
            has_clustering: true,
            columns: 10,
            ..Shape::wide(version)
        });
        for case in [case, wide] {
            let verified = || verify(&*case.env, &case.descriptor, &mut |_| {}).unwrap();
            let whole = verified();
            assert!(whole.findings.is_empty(), "{:?}", whole.findings);
            let size = case.env.file_size(&case.path()).unwrap();
            for at in (0..size).step_by(size as usize / 5).chain([size - 1]) {
                case.mem.corrupt_byte(&case.path(), at, 1).unwrap();
                assert!(!verified().findings.is_empty(), "byte {at}");
                case.mem.corrupt_byte(&case.path(), at, 1).unwrap();
            }
        }
    }
}

/// Recomputes the CRC of every page of the body.
fn forge(bytes: &mut [u8]) {
    let body_length_at = bytes.len() - 57 + 29;
    let body_length = u64::from_le_bytes(*bytes[body_length_at..].first_chunk().unwrap());
    let (body, crcs) = bytes.split_at_mut(usize::try_from(body_length).unwrap());
    for (page, crc) in body.chunks(4096).zip(crcs.chunks_mut(4)) {
        crc.copy_from_slice(&ilion_codec::crc32(page).to_le_bytes());
    }
}

#[test]
fn a_map_that_lies_is_an_error_or_left_alone_and_never_a_panic() {
    let mut random = Seeded::new(3);
    let (with_map, column) = map_of_blobs(Version::OA);
    let wide = Case::write(&Shape {
        columns: 20,
        has_clustering: true,
        ..Shape::wide(Version::DA)
    });
    for (case, column) in [(&with_map, column), (&wide, wide.column(7))] {
        let whole = case.env.read_all(&case.path(), 1 << 20).unwrap();
        for _ in 0..80 {
            let mut bytes = whole.clone();
            let body = bytes.len() - 57 - 4;
            for _ in 0..1 + random.below(3) {
                let at = usize::try_from(random.below(body as u64)).unwrap();
                bytes[at] = random.below(256).to_be_bytes()[7];
            }
            forge(&mut bytes);
            let mut file = case.env.create_or_truncate(&case.path()).unwrap();
            file.append(&bytes).unwrap();
            drop(file);
            let sstable = case.open();
            let filter = Arc::new(ClusteringFilter {
                columns: Some([column].into()),
                reversed: random.one_in(2),
                ..ClusteringFilter::all()
            });
            for partition in case.partitions.iter().take(2) {
                let key = &partition.head.key;
                let Ok(Some(mut cursor)) = sstable.partition(&case.table, key, &filter) else {
                    continue;
                };
                let _ = cursor.next_partition();
                while let Ok(Some(_)) = cursor.next_unfiltered() {}
            }
        }
    }
}

/// Number of bytes of Data.db that a read of one row takes, without a cache.
fn data_bytes_of(case: &Case, partition: &Partition, filter: ClusteringFilter) -> (u64, Row) {
    let sstable = case.open_without_cache();
    sstable.cell_map_bytes().unwrap();
    let filter = Arc::new(filter);
    let mut found = None;
    let (_, data) = bytes_read(|| {
        let key = &partition.head.key;
        let mut cursor = sstable.partition(&case.table, key, &filter).unwrap().unwrap();
        cursor.next_partition().unwrap().unwrap();
        found = cursor.next_unfiltered().unwrap();
    });
    match found {
        Some(Unfiltered::Row(row)) => (data, row),
        other => panic!("{other:?} instead of a row"),
    }
}

#[test]
fn all_of_a_large_row_costs_that_row_whichever_are_before_it() {
    let value_bytes = 20_000;
    for (version, is_compressed) in VERSIONS
        .iter()
        .flat_map(|version| [(*version, true), (*version, false)])
    {
        let case = Case::write(&Shape {
            has_clustering: true,
            columns: 1,
            value_bytes,
            is_compressed,
            ..Shape::wide(version)
        });
        // Its own chunks, including their CRCs.
        let chunks = value_bytes as u64 / CHUNK_BYTES + 2;
        for partition in &case.partitions {
            for (unfiltered, reversed) in partition
                .unfiltereds
                .iter()
                .flat_map(|row| [(row, false), (row, true)])
            {
                let Unfiltered::Row(row) = unfiltered else {
                    panic!("no ranges were written");
                };
                let filter = ClusteringFilter {
                    slices: vec![Slice::exactly(&row.clustering)],
                    reversed,
                    ..ClusteringFilter::all()
                };
                let (data, found) = data_bytes_of(&case, partition, filter);
                assert_eq!(found, *row);
                // The row index of `da` has an entry for the end of the partition, which a backward walk reads first.
                let end_chunks = u64::from(reversed && version == Version::DA);
                let bound = (chunks + end_chunks) * (CHUNK_BYTES + 128);
                assert!(
                    data <= bound,
                    "{version:?} {is_compressed} {reversed}: {data} bytes"
                );
            }
        }
    }
}

#[test]
fn the_last_of_large_rows_is_read_without_those_before_it() {
    let value_bytes = 30_000;
    for version in VERSIONS {
        let case = Case::write(&Shape {
            has_clustering: true,
            columns: 1,
            value_bytes,
            ..Shape::wide(version)
        });
        // Its own chunks, and that of the end of the partition.
        let bound = (value_bytes as u64 / CHUNK_BYTES + 3) * (CHUNK_BYTES + 128);
        for partition in &case.partitions {
            let filter = ClusteringFilter {
                reversed: true,
                ..ClusteringFilter::all()
            };
            let (data, found) = data_bytes_of(&case, partition, filter);
            assert_eq!(Some(&Unfiltered::Row(found)), partition.unfiltereds.last());
            assert!(data <= bound, "{version:?}: {data} bytes");
        }
    }
}

#[test]
fn rows_are_the_same_from_the_last_to_the_first() {
    for version in VERSIONS {
        let case = Case::write(&Shape {
            has_clustering: true,
            columns: 3,
            ..Shape::wide(version)
        });
        let sstable = case.open();
        for partition in &case.partitions {
            let filter = Arc::new(ClusteringFilter {
                reversed: true,
                ..ClusteringFilter::all()
            });
            let key = &partition.head.key;
            let mut cursor = sstable.partition(&case.table, key, &filter).unwrap().unwrap();
            cursor.next_partition().unwrap().unwrap();
            let mut rows = Vec::new();
            while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
                rows.push(unfiltered);
            }
            rows.reverse();
            assert_eq!(rows, partition.unfiltereds, "{version:?}");
        }
    }
}

/// What a read of this column returns of a row with [`Unwanted::Newest`].
fn in_short(case: &Case, column: ColumnId) -> Row {
    let sstable = case.open();
    let partition = &case.partitions[0];
    let filter = Arc::new(ClusteringFilter {
        columns: Some([column].into()),
        ..ClusteringFilter::all()
    });
    let key = &partition.head.key;
    let Presence::Possible(whereabouts) = sstable.presence(key, &KeyHash::of(&key.key)) else {
        panic!("the partition is there");
    };
    let cursor = sstable.partition_at(&case.table, key, &whereabouts, &filter, Unwanted::Newest);
    let mut cursor = cursor.unwrap().unwrap();
    cursor.next_partition().unwrap().unwrap();
    match cursor.next_unfiltered().unwrap() {
        Some(Unfiltered::Row(row)) => row,
        other => panic!("{other:?} instead of a row"),
    }
}

#[test]
fn the_newest_cell_that_lives_for_ever_stands_for_the_others() {
    for version in VERSIONS {
        let case = Case::write(&Shape::wide(version));
        let Unfiltered::Row(whole) = &case.partitions[0].unfiltereds[0] else {
            panic!("a row");
        };
        for column in [0, 1, 50, 98, 99].map(|number| case.column(number)) {
            let row = in_short(&case, column);
            assert_eq!(row.column(column), whole.column(column), "{version:?}");
            assert_eq!(row.columns.len(), 2, "{version:?}: {column:?}");
            assert!(row.columns.is_sorted_by_key(|entry| entry.column));
            let other = row.columns.iter().find(|entry| entry.column != column).unwrap();
            let Data::Simple(cell) = &other.data else {
                panic!("a simple cell");
            };
            // Every seventh column was written at 12, the others at 10.
            assert_eq!((cell.timestamp_micros, cell.is_live(u32::MAX - 1)), (12, true));
        }
    }
}

#[test]
fn cells_that_are_dead_or_expire_are_never_left_out() {
    for version in VERSIONS {
        let mut shape = Shape::wide(version);
        shape.columns = 70;
        shape.mortal = &[3, 20, 69];
        let case = Case::write(&shape);
        let Unfiltered::Row(whole) = &case.partitions[0].unfiltereds[0] else {
            panic!("a row");
        };
        for wanted in [0, 3, 4, 69] {
            let row = in_short(&case, case.column(wanted));
            for number in shape.mortal.iter().filter(|number| **number != wanted) {
                let (Some(Data::Simple(found)), Some(Data::Simple(cell))) = (
                    row.column(case.column(*number)),
                    whole.column(case.column(*number)),
                ) else {
                    panic!("column {number} is there");
                };
                let times = |cell: &Cell| (cell.timestamp_micros, cell.ttl_secs, cell.local_deletion_secs);
                assert_eq!(times(found), times(cell), "{version:?}: {number}");
            }
            assert!(row.columns.len() <= 5);
        }
    }
}
