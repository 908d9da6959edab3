//! Tests with damaged files: a clear error or the right rows, and no panic.

use std::sync::Arc;

use ilion_env::Seeded;
use ilion_rows::{Bound, BoundKind, ClusteringFilter, KeyRange, Partition, ReadError, Slice, Unfiltered};
use ilion_schema::TableSchema;
use ilion_sstable::{ChunkReader, Component, Error, OpenOptions, SSTable, Scan, digest};

use crate::support::{Case, Files, disk_with, small_cases, try_read_all};

/// Number of damaged bytes per component.
const PLACES: u64 = 30;

fn open(files: &Files, case: &Case) -> Result<(Arc<SSTable>, Arc<TableSchema>), Error> {
    let env = disk_with(files, &case.sstables[0]);
    let options = OpenOptions {
        partitioner: case.partitioner,
        chunk_cache: None,
        ..OpenOptions::default()
    };
    let sstable = SSTable::open(&env, &case.sstables[0], &options)?;
    let table = sstable.header().to_table("fx", "fixture");
    let table = table.map_err(|error| Error::Refused(error.to_string()))?;
    Ok((Arc::new(sstable), table))
}

fn scan(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> Result<Vec<Partition>, ReadError> {
    let filter = Arc::new(ClusteringFilter::all());
    try_read_all(&mut sstable.cursor(table, KeyRange::all(), filter, Scan::Sequential))
}

/// Reads in every way, whatever the result.
fn exercise(files: &Files, case: &Case, whole: &[Partition]) {
    let Ok((sstable, table)) = open(files, case) else {
        return;
    };
    let _ = scan(&sstable, &table);
    for reversed in [false, true] {
        for partition in whole.iter().step_by(1 + whole.len() / 3) {
            let filter = Arc::new(ClusteringFilter {
                slices: vec![middle_of(partition)],
                reversed,
                ..ClusteringFilter::all()
            });
            if let Ok(Some(mut cursor)) = sstable.partition(&table, &partition.head.key, &filter) {
                let _ = try_read_all(&mut cursor);
            }
        }
    }
}

/// From the middle of a partition on.
fn middle_of(partition: &Partition) -> Slice {
    let mut slice = Slice::all();
    if let Some(Unfiltered::Row(row)) = partition.unfiltereds.get(partition.unfiltereds.len() / 2) {
        slice.start = Bound::new(BoundKind::InclStart, row.clustering.values().clone());
    }
    slice
}

/// The same rows without compression and checksums, so that damage reaches the decoders.
fn unprotected(case: &Case) -> Files {
    let descriptor = &case.sstables[0];
    let env = disk_with(&case.components(0), descriptor);
    let data = ChunkReader::open(env.as_ref(), descriptor, None).unwrap();
    let bytes = data
        .read_at(0, usize::try_from(data.data_length()).unwrap())
        .unwrap();
    let kept = [
        Component::Index,
        Component::Partitions,
        Component::Rows,
        Component::Statistics,
        Component::Summary,
        Component::Filter,
    ];
    let mut files = case.components(0);
    files.retain(|(component, _)| kept.contains(component));
    files.insert(0, (Component::Data, bytes.to_vec()));
    files
}

#[test]
fn damaged_bytes_never_panic() {
    let mut dice = Seeded::new(3);
    for case in small_cases() {
        let files = unprotected(&case);
        let (sstable, table) = open(&files, &case).unwrap();
        let whole = scan(&sstable, &table).unwrap();
        for at in 0..files.len() {
            for _ in 0..PLACES {
                let mut damaged = files.clone();
                let bytes = &mut damaged[at].1;
                if bytes.is_empty() {
                    continue;
                }
                let place = usize::try_from(dice.below(bytes.len() as u64)).unwrap();
                match dice.below(4) {
                    0 => bytes.truncate(place),
                    1 => bytes[place] = 0xFF,
                    2 => bytes[place] = 0,
                    _ => bytes[place] ^= 1 << dice.below(8),
                }
                exercise(&damaged, &case, &whole);
            }
        }
    }
}

#[test]
fn damaged_chunks_are_told_with_file_and_offset() {
    let mut dice = Seeded::new(4);
    for case in small_cases() {
        let files = case.components(0);
        let (sstable, table) = open(&files, &case).unwrap();
        let whole = scan(&sstable, &table).unwrap();
        assert!(digest::verify(disk_with(&files, &case.sstables[0]).as_ref(), &case.sstables[0]).unwrap());
        for _ in 0..PLACES {
            let mut damaged = files.clone();
            assert_eq!(damaged[0].0, Component::Data);
            let place = usize::try_from(dice.below(damaged[0].1.len() as u64)).unwrap();
            damaged[0].1[place] ^= 1 << dice.below(8);
            let (sstable, table) = open(&damaged, &case).unwrap();
            match scan(&sstable, &table) {
                Err(ReadError::Corrupt { file, offset, .. }) => {
                    assert_eq!(file, case.sstables[0].path(&Component::Data));
                    assert!(offset <= sstable.data_length());
                }
                other => panic!("{}: byte {place}: {:?}", case.name, other.map(|all| all == whole)),
            }
        }
    }
}

#[test]
fn files_without_summary_and_filter_are_read_all_the_same() {
    for case in small_cases() {
        let files = case.components(0);
        let (sstable, table) = open(&files, &case).unwrap();
        let whole = scan(&sstable, &table).unwrap();
        for missing in [Component::Summary, Component::Filter, Component::Toc] {
            let mut files = files.clone();
            files.retain(|(component, _)| *component != missing);
            let (sstable, table) = open(&files, &case).unwrap();
            assert_eq!(scan(&sstable, &table).unwrap(), whole);
            let key = &whole[whole.len() / 2].head.key;
            let filter = Arc::new(ClusteringFilter::all());
            assert!(sstable.partition(&table, key, &filter).unwrap().is_some());
        }
        let needed = [
            Component::Data,
            Component::Index,
            Component::Partitions,
            Component::Rows,
            Component::Statistics,
            Component::CompressionInfo,
        ];
        let has = |component: &Component| files.iter().any(|(other, _)| other == component);
        for missing in needed.iter().filter(|needed| has(needed)) {
            let mut files = files.clone();
            files.retain(|(component, _)| component != missing);
            let error = open(&files, &case).map(|_| ()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(missing.name()), "{missing}: {message}");
        }
    }
}
