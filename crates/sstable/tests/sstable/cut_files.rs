//! Tests with side components that are cut, or cannot be read, while an SSTable is open: the result is right, or an error. The
//! process continues.

use std::fs::OpenOptions as FileOptions;
use std::path::Path;
use std::sync::Arc;

use crate::support::{int_keys, try_read_all, write_all};
use bytes::Bytes;
use ilion_env::{Env, FaultEnv, RealEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Data, Liveness, Partition,
    PartitionUpdate, Row,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    CellMapLimits, Component, Descriptor, Format, OpenOptions, SSTable, SSTableId, Version, WriterOptions,
};

/// Their token maps have many pages.
const PARTITIONS: i32 = 12_000;

struct Case {
    _directory: tempfile::TempDir,
    faults: Arc<FaultEnv>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitions: Vec<Partition>,
}

impl Case {
    fn write() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faults = FaultEnv::new(RealEnv::new());
        let env: Arc<dyn Env> = faults.clone();
        let table = parse_table("k int pk, c int ck, a text").unwrap();
        let descriptor = Descriptor::new(directory.path(), Version::NB, SSTableId::Sequence(1), Format::Big);
        let options = WriterOptions {
            estimated_partitions: PARTITIONS.unsigned_abs().into(),
            cell_map: Some(CellMapLimits {
                row_bytes_min: 64,
                row_bytes_per_map_byte: 0,
            }),
            ..WriterOptions::default()
        };
        let partitions = partitions(&table);
        write_all(&env, &descriptor, &table, options, &partitions);
        Self {
            _directory: directory,
            faults,
            table,
            descriptor,
            partitions,
        }
    }

    fn open(&self) -> Arc<SSTable> {
        let env: Arc<dyn Env> = self.faults.clone();
        Arc::new(SSTable::open(&env, &self.descriptor, &OpenOptions::default()).unwrap())
    }

    fn path(&self, component: &Component) -> std::path::PathBuf {
        self.descriptor.path(component)
    }

    /// Looks up every 29th partition: returns how many were right; the others were errors.
    fn look_up(&self, sstable: &Arc<SSTable>) -> usize {
        let filter = Arc::new(ClusteringFilter::all());
        let mut right = 0;
        for partition in self.partitions.iter().step_by(29) {
            match sstable.partition(&self.table, &partition.head.key, &filter) {
                Ok(Some(mut cursor)) => {
                    if let Ok(found) = try_read_all(&mut cursor) {
                        assert_eq!(found, std::slice::from_ref(partition));
                        right += 1;
                    }
                }
                Ok(None) => panic!("a partition that is there was denied"),
                Err(_) => {}
            }
        }
        right
    }

    fn looked_up(&self) -> usize {
        self.partitions.iter().step_by(29).count()
    }
}

fn partitions(table: &TableSchema) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let column = table.column_named("a").unwrap().id;
    let row = || Row {
        liveness: Liveness::live(5),
        columns: vec![ColumnData {
            column,
            data: Data::Simple(Cell::live(5, Bytes::from("value".repeat(20)))),
        }],
        ..Row::empty(Clustering::of([Bytes::copy_from_slice(&7_i32.to_be_bytes())]))
    };
    let partition = |key| {
        let update = PartitionUpdate {
            rows: vec![row()],
            ..PartitionUpdate::default()
        };
        Partition::of(key, update, &comparator)
    };
    int_keys(PARTITIONS).into_iter().map(partition).collect()
}

fn cut(path: &Path, length: u64) {
    FileOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(length)
        .unwrap();
}

#[test]
fn a_side_component_that_is_cut_while_it_is_open_kills_nobody() {
    for component in [Component::Tokens, Component::Cells] {
        for length in [0, 5000] {
            let case = Case::write();
            let sstable = case.open();
            let size = std::fs::metadata(case.path(&component)).unwrap().len();
            assert!(size > 30_000, "{component} has many pages: {size}");
            // It is open, and one page of it was read.
            let filter = Arc::new(ClusteringFilter::all());
            let key = &case.partitions[0].head.key;
            assert!(sstable.partition(&case.table, key, &filter).unwrap().is_some());
            assert!(sstable.cell_map_bytes().unwrap().is_some());
            cut(&case.path(&component), length);
            // Without it, lookups use the rest.
            assert_eq!(case.look_up(&sstable), case.looked_up(), "{component}");
        }
    }
}

#[test]
fn what_the_disk_cannot_give_of_a_side_component_is_an_error_of_the_disk() {
    for component in [Component::Tokens, Component::Cells] {
        let case = Case::write();
        let sstable = case.open();
        assert!(sstable.cell_map_bytes().unwrap().is_some());
        case.faults
            .add(&format!("fail read \"*-{component}\" from 3"))
            .unwrap();
        let right = case.look_up(&sstable);
        match component {
            // Lookups use the index.
            Component::Tokens => assert_eq!(right, case.looked_up()),
            _ => assert!(right <= case.looked_up()),
        }
        case.faults.clear();
        assert_eq!(case.look_up(&sstable), case.looked_up());
    }
}
