//! Plain partitions, shown where they lie, are what the decoder of all rows makes of them: also of damaged ones that no checksum
//! keeps from being read.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::MemEnv;
use ilion_rows::notation::{parse_mutations, parse_table};
use ilion_rows::{
    ClusteringComparator, ClusteringFilter, Cursor, Data, Flow, KeyRange, NO_TTL, Partition, PlainRow,
    PlainVisitor, Row, Unfiltered,
};
use ilion_schema::{ColumnId, TableSchema};
use ilion_sstable::{
    Component, Descriptor, Format, OpenOptions, RangeCursor, SSTable, SSTableId, Scan, Version, WriterOptions,
};
use ilion_types::Partitioner;
use support::write_all;

const TEXT: &str = "\
partition 'all'
  row live@5 a=1@5 b='x'@5 c='y'@5
partition 'one is missing'
  row live@5 a=1@5 c='y'@5
partition 'own times'
  row live@5 a=1@7 b='x'@6
partition 'only cells'
  row b='x'@6
partition 'no cells'
  row live@5
partition 'tombstone'
  row live@5 a=del@7/7 b='x'@5
partition 'it expires'
  row live@5 ttl=60/1000 b='x'@5
partition 'deleted' del@3/3
  row live@5 b='x'@5
partition 'empty value'
  row live@5 b=''@5
partition 'one more'
  row live@5 a=1@5 b='x'@5 c='y'@5
partition 'and one'
  row live@5 a=2@5 b='z'@5 c='w'@5
";

/// What a scan gives: a plain partition, or any.
#[derive(Debug)]
enum Seen {
    Plain(Bytes, Vec<(ColumnId, Bytes)>),
    Whole(Partition),
}

#[derive(Default)]
struct Watch(Vec<Seen>);

impl PlainVisitor for Watch {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let cells = row.cells.iter();
        let cells = cells.map(|(column, value)| (*column, Bytes::copy_from_slice(value)));
        let key = Bytes::copy_from_slice(row.key);
        self.0.push(Seen::Plain(key, cells.collect()));
        Flow::Next
    }
}

struct Small {
    mem: MemEnv,
    table: Arc<TableSchema>,
    data: PathBuf,
    data_len: u64,
    sstable: Arc<SSTable>,
}

impl Small {
    /// Without compression and CRC.db, so that damage reaches the decoders.
    fn write(version: Version, format: Format) -> Self {
        let mut builder = parse_table("k text pk, a int, b text, c text")
            .unwrap()
            .to_builder();
        builder.options.compression = [("class".to_owned(), String::new())].into();
        let table = builder.build();
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("d")).unwrap();
        let descriptor = Descriptor::new(Path::new("d"), version, SSTableId::Sequence(1), format);
        write_all(
            &env,
            &descriptor,
            &table,
            WriterOptions::default(),
            &partitions(&table),
        );
        env.remove_file(&descriptor.path(&Component::Crc)).unwrap();
        let data = descriptor.path(&Component::Data);
        Self {
            data_len: env.file_size(&data).unwrap(),
            sstable: Arc::new(SSTable::open(&env, &descriptor, &OpenOptions::default()).unwrap()),
            mem,
            table,
            data,
        }
    }

    fn cursor(&self) -> RangeCursor {
        let filter = Arc::new(ClusteringFilter::all());
        self.sstable
            .cursor(&self.table, KeyRange::all(), filter, Scan::Sequential)
    }

    /// All partitions up to the first error, and whether there was one.
    fn read(&self) -> (Vec<Partition>, bool) {
        let mut cursor = self.cursor();
        let mut read = Vec::new();
        loop {
            match Partition::read_next(&mut cursor) {
                Ok(Some(partition)) => read.push(partition),
                end => return (read, end.is_err()),
            }
        }
    }

    /// The same, the plain ones as they are shown.
    fn watch(&self) -> (Vec<Seen>, bool) {
        let mut cursor = self.cursor();
        let mut watch = Watch::default();
        loop {
            if cursor.plain_partitions(None, &mut watch).is_err() {
                return (watch.0, true);
            }
            match Partition::read_next(&mut cursor) {
                Ok(Some(partition)) => watch.0.push(Seen::Whole(partition)),
                end => return (watch.0, end.is_err()),
            }
        }
    }
}

fn partitions(table: &Arc<TableSchema>) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mutations = parse_mutations(TEXT, table, Partitioner::Murmur3).unwrap();
    let partitions = mutations
        .into_iter()
        .map(|mutation| Partition::of(mutation.key, mutation.update, &comparator));
    let mut partitions: Vec<_> = partitions.collect();
    partitions.sort_by(|a, b| a.head.key.cmp(&b.head.key));
    partitions
}

/// The cells of a partition that may be shown as a plain one.
fn plain_cells(partition: &Partition) -> Option<Vec<(ColumnId, Bytes)>> {
    let [Unfiltered::Row(row)] = &partition.unfiltereds[..] else {
        return None;
    };
    let is_plain = partition.head.deletion.is_live()
        && partition.head.static_row.is_none()
        && row.deletion.is_live()
        && row.liveness.ttl_secs == NO_TTL;
    is_plain.then(|| live_cells(row))?
}

fn live_cells(row: &Row) -> Option<Vec<(ColumnId, Bytes)>> {
    let cell = |entry: &ilion_rows::ColumnData| match &entry.data {
        Data::Simple(cell) if !cell.is_tombstone() && cell.ttl_secs == NO_TTL => {
            Some((entry.column, cell.value.clone()))
        }
        _ => None,
    };
    row.columns.iter().map(cell).collect()
}

/// Compares both ways to read; gives how many partitions were shown as plain ones.
fn check(small: &Small, what: &str) -> usize {
    let ((read, has_failed), (seen, has_failed_too)) = (small.read(), small.watch());
    assert_eq!((seen.len(), has_failed_too), (read.len(), has_failed), "{what}");
    let mut plain = 0;
    for (seen, partition) in seen.into_iter().zip(&read) {
        match seen {
            Seen::Whole(seen) => assert_eq!(&seen, partition, "{what}"),
            Seen::Plain(key, cells) => {
                plain += 1;
                assert_eq!(key, partition.head.key.key, "{what}");
                assert_eq!(Some(cells), plain_cells(partition), "{what}");
            }
        }
    }
    plain
}

fn all() -> [Small; 2] {
    [
        Small::write(Version::NB, Format::Big),
        Small::write(Version::DA, Format::Bti),
    ]
}

#[test]
fn plain_partitions_are_shown_as_they_are() {
    for small in all() {
        let (read, _) = small.read();
        assert_eq!(read, partitions(&small.table));
        assert!(check(&small, "whole") >= 4);
    }
}

#[test]
fn every_flipped_bit_is_seen_alike() {
    for small in all() {
        for at in 0..small.data_len {
            for bit in 0..8 {
                small.mem.corrupt_byte(&small.data, at, 1 << bit).unwrap();
                check(&small, &format!("bit {bit} of byte {at}"));
                small.mem.corrupt_byte(&small.data, at, 1 << bit).unwrap();
            }
        }
    }
}
