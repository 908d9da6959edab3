//! Tests with damaged and hostile Partitions.db and Rows.db. They have no checksums, so every byte may have any value.

use std::path::Path;
use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_rows::{
    Bound, BoundKind, ClusteringFilter, Cursor, DecoratedKey, KeyRange, Partition, ReadError, Slice,
};
use ilion_schema::TableSchema;
use ilion_sstable::{
    Component, Descriptor, Format, KeyHash, OpenOptions, SSTable, SSTableId, Scan, Version, WriterOptions,
    read_component,
};
use ilion_types::Partitioner;

const TEXT: &str = "\
partition 'narrow'
  row 1 v='x'@5
partition 'other'
  row 1 v='x'@5
partition 'wide'
  row 1 v='a'@5
  row 2 v='b'@5
  [3, 300) del@9/9
  row 100 v='c'@15
  row 200 v='d'@15
  row 1000 v='e'@5
";

/// A small SSTable with a block for every unfiltered.
struct Small {
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    files: Vec<(Component, Vec<u8>)>,
    whole: Vec<Partition>,
}

impl Small {
    fn new() -> Self {
        let table = parse_table("k text pk, c int ck, v text").unwrap();
        let table = uncompressed(&table);
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        env.create_dir_all(Path::new("d")).unwrap();
        let descriptor = Descriptor::new(Path::new("d"), Version::DA, SSTableId::Sequence(1), Format::Bti);
        let options = WriterOptions {
            column_index_bytes: Some(1),
            ..WriterOptions::default()
        };
        let whole = partitions(&table);
        crate::support::write_all(&env, &descriptor, &table, options, &whole);
        let kept = [
            Component::Data,
            Component::Statistics,
            Component::Partitions,
            Component::Rows,
        ];
        let files = kept.iter().cloned().filter_map(|component| {
            let bytes = read_component(&*env, &descriptor, &component).unwrap()?;
            Some((component, bytes))
        });
        Self {
            files: files.collect(),
            table,
            descriptor,
            whole,
        }
    }

    fn bytes(&self, component: &Component) -> &[u8] {
        let found = self.files.iter().find(|(other, _)| other == component);
        &found.unwrap().1
    }

    fn open_with(&self, component: &Component, bytes: &[u8]) -> Result<Arc<SSTable>, ReadError> {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        env.create_dir_all(Path::new("d")).unwrap();
        for (other, whole) in &self.files {
            let bytes = if other == component { bytes } else { whole };
            let mut file = env.create(&self.descriptor.path(other)).unwrap();
            file.append(bytes).unwrap();
        }
        let sstable = SSTable::open(&env, &self.descriptor, &OpenOptions::default())?;
        Ok(Arc::new(sstable))
    }

    /// Reads in every way: returns all results and errors.
    fn exercise(&self, sstable: &Arc<SSTable>) -> (Vec<Partition>, Vec<ReadError>) {
        let mut given = Vec::new();
        let mut errors = Vec::new();
        for filter in filters() {
            for scan in [Scan::Point, Scan::Sequential] {
                let mut cursor = sstable.cursor(&self.table, KeyRange::all(), filter.clone(), scan);
                take(&mut cursor, &mut given, &mut errors);
            }
        }
        for filter in filters() {
            for partition in &self.whole {
                match sstable.partition(&self.table, &partition.head.key, &filter) {
                    Ok(Some(mut cursor)) => take(&mut cursor, &mut given, &mut errors),
                    Ok(None) => {}
                    Err(error) => errors.push(error),
                }
            }
        }
        (given, errors)
    }

    /// Replaces the bytes of one component; returns the errors.
    fn check(&self, component: &Component, bytes: &[u8]) -> Vec<ReadError> {
        let errors = match self.open_with(component, bytes) {
            Ok(sstable) => self.exercise(&sstable).1,
            Err(error) => vec![error],
        };
        for error in &errors {
            let ReadError::Corrupt { file, offset, .. } = error else {
                // A damaged row may look like one that is not supported.
                assert!(error.to_string().contains("Data.db: at byte"), "{error}");
                continue;
            };
            let (_, damaged) = Descriptor::from_path(file).unwrap();
            let len = if damaged == *component {
                bytes.len()
            } else {
                self.bytes(&damaged).len()
            };
            // An offset that was read may have any value; offsets that were read from are inside the file.
            assert!(
                *offset <= len as u64 || error.to_string().contains("more bytes"),
                "{error}"
            );
        }
        errors
    }
}

fn take(cursor: &mut dyn Cursor, given: &mut Vec<Partition>, errors: &mut Vec<ReadError>) {
    loop {
        match Partition::read_next(cursor) {
            Ok(Some(partition)) => given.push(partition),
            Ok(None) => return,
            Err(error) => return errors.push(error),
        }
    }
}

fn uncompressed(table: &Arc<TableSchema>) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    builder.options.compression = [("class".to_owned(), String::new())].into();
    builder.options.bloom_filter_fp_chance = 1.0;
    builder.build()
}

fn partitions(table: &Arc<TableSchema>) -> Vec<Partition> {
    parse_partitions(TEXT, table, Partitioner::Murmur3).unwrap()
}

fn filters() -> Vec<Arc<ClusteringFilter>> {
    let bound = |kind, number: u32| {
        Bound::new(
            kind,
            [Some(number.to_be_bytes().to_vec().into())].into_iter().collect(),
        )
    };
    let slice = |from: u32, to: u32| Slice {
        start: bound(BoundKind::InclStart, from),
        end: bound(BoundKind::InclEnd, to),
    };
    let mut filters = Vec::new();
    for slices in [
        vec![Slice::all()],
        vec![slice(2, 2), slice(100, 200), slice(5_000, 6_000)],
    ] {
        for reversed in [false, true] {
            filters.push(Arc::new(ClusteringFilter {
                slices: slices.clone(),
                reversed,
                ..ClusteringFilter::all()
            }));
        }
    }
    filters
}

#[test]
fn undamaged_the_small_sstable_is_whole() {
    let small = Small::new();
    let sstable = small.open_with(&Component::Toc, &[]).unwrap();
    let (given, errors) = small.exercise(&sstable);
    assert!(errors.is_empty(), "{errors:?}");
    // All filters: two ways to scan, and one by one.
    assert_eq!(given.len(), 3 * 4 * small.whole.len());
    assert_eq!(given[..small.whole.len()], small.whole);
    assert!(
        small.bytes(&Component::Rows).len() > 40,
        "the wide partition has an index"
    );
}

#[test]
fn every_byte_may_be_wrong() {
    let small = Small::new();
    for component in [Component::Partitions, Component::Rows] {
        let whole = small.bytes(&component);
        let mut told = 0;
        for at in 0..whole.len() {
            let flips = (0..8).map(|bit| whole[at] ^ (1 << bit));
            for byte in flips.chain([0, 0xFF]) {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                told += usize::from(!small.check(&component, &bytes).is_empty());
            }
        }
        assert!(told > whole.len(), "most damage is seen: {told}");
    }
}

#[test]
fn every_truncation_is_told() {
    let small = Small::new();
    for component in [Component::Partitions, Component::Rows] {
        let whole = small.bytes(&component);
        for len in 0..whole.len() {
            let errors = small.check(&component, &whole[..len]);
            // The last field of an index's header is not needed for reads.
            assert!(
                !errors.is_empty() || len + 3 > whole.len(),
                "{component}, {len} of {} bytes",
                whole.len()
            );
        }
    }
}

/// A trie in which every node is the child of the next one, twice: with 200 levels, it has too many paths to walk.
fn endless(leaf: &[u8]) -> (Vec<u8>, usize) {
    let mut bytes = leaf.to_vec();
    let mut root = 0;
    for _ in 0..200 {
        let distance = u8::try_from(bytes.len() - root).unwrap();
        root = bytes.len();
        bytes.extend([0x50, 2, 0x40, 0x90, distance, distance]);
    }
    (bytes, root)
}

#[test]
fn a_trie_of_shared_nodes_does_not_hold_a_reader_up() {
    let small = Small::new();
    // Payload with eight bits and more: a hash, then ~0.
    let (mut partitions, root) = endless(&[0x08, 0x00, 0xFF]);
    let keys_at = partitions.len() as u64;
    for key in [&small.whole[0], small.whole.last().unwrap()].map(|partition| &partition.head.key.key) {
        partitions.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
        partitions.extend_from_slice(key);
    }
    for number in [keys_at, 3, root as u64] {
        partitions.extend(number.to_be_bytes());
    }
    let errors = small.check(&Component::Partitions, &partitions);
    assert!(
        errors
            .iter()
            .any(|error| error.to_string().contains("above that of the key before"))
    );
}

#[test]
fn a_row_index_of_shared_nodes_does_not_hold_a_reader_up() {
    let small = Small::new();
    let key = wide_key(&small);
    let sstable = small.open_with(&Component::Toc, &[]).unwrap();
    let position = sstable.position_of(&key).unwrap().unwrap();
    // Key and deletion of the partition take seven bytes; its first block is behind them.
    let (trie, root) = endless(&[0x01, 7]);
    let mut rows = trie;
    // The root has a payload too, for lower bounds: an offset of 0.
    rows[root] |= 1;
    rows.push(0);
    let head_at = rows.len();
    rows.extend(u16::try_from(key.key.len()).unwrap().to_be_bytes());
    rows.extend_from_slice(&key.key);
    let distance = i64::try_from(rows.len() - root).unwrap();
    let mut head = ilion_codec::Writer::new();
    head.uvint(position);
    head.svint(-distance);
    head.uvint(2);
    head.u8(0x80);
    rows.extend_from_slice(head.as_slice());

    // One key: the root is its leaf.
    let mut partitions = vec![0x09, KeyHash::of(&key.key).low_byte()];
    partitions.extend(u16::try_from(head_at).unwrap().to_be_bytes());
    let keys_at = partitions.len() as u64;
    for _ in 0..2 {
        partitions.extend(u16::try_from(key.key.len()).unwrap().to_be_bytes());
        partitions.extend_from_slice(&key.key);
    }
    for number in [keys_at, 1, 0] {
        partitions.extend(number.to_be_bytes());
    }
    let mut hostile = small;
    for (component, bytes) in &mut hostile.files {
        if *component == Component::Partitions {
            bytes.clone_from(&partitions);
        }
    }
    let errors = hostile.check(&Component::Rows, &rows);
    let expected = "an offset below that of the block after it";
    assert!(
        errors.iter().any(|error| error.to_string().contains(expected)),
        "{errors:?}"
    );
}

fn wide_key(small: &Small) -> DecoratedKey {
    let wide = small
        .whole
        .iter()
        .max_by_key(|partition| partition.unfiltereds.len());
    wide.unwrap().head.key.clone()
}
