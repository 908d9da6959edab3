//! Tests that plain partitions and rows, shown in place, are those that the general decoder returns, even for damaged rows that
//! no checksum covers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::shown::{compare, read, watch};
use crate::support::{read_all, write_all};
use ilion_env::MemEnv;
use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_rows::{ClusteringFilter, Cursor, Flow, KeyRange, Partition, may_be_plain};
use ilion_schema::TableSchema;
use ilion_sstable::{
    Component, DataScan, Descriptor, Format, OpenOptions, RangeCursor, SSTable, SSTableId, Scan, Version,
    WriterOptions,
};
use ilion_types::Partitioner;

/// A table, its partitions, and the number of their plain rows.
type Contents = (&'static str, &'static str, usize);

const ONE_ROW_EACH: Contents = (
    "k text pk, a int, b text, c text",
    "\
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
",
    // Except the first one, which is read when the cursor starts.
    6,
);

const ROWS: Contents = (
    "k text pk, c text ck, d int ck desc, s text static, a int, b text, m set<int>",
    "\
partition 'rows'
  static s='s'@5
  row '':0 live@5 b='x'@5
  row 'a':9 live@5 a=1@5 b='x'@5
  row 'a':8 live@5 a=1@5
  row 'a':7 live@5 a=1@7 b='x'@6
  row 'a':6 b='x'@6
  row 'b':5 live@5
  row 'b':4 live@5 a=del@7/7 b='x'@5
  row 'b':3 live@5 b='x'@5
  row 'b':2 live@5 ttl=60/1000 b='x'@5
  row 'c':2 live@5 b='x'@5
  row 'c':1 live@5 b='x'@5 m[1]@5
partition 'deleted' del@3/3
  row 'a':9 live@5 a=1@5 b='x'@5
  row 'a':8 live@5 a=1@5 b='x'@5
partition 'ranges'
  row 'a':9 live@5 a=1@5 b='x'@5
  ['b', 'c') del@4/4
  row 'b':9 live@5 a=1@5 b='x'@5
  row 'd':8 live@5 a=1@5 b='x'@5
  row 'd':7 del@4/4 live@5 a=1@5 b='x'@5
partition 'static only'
  static s='s'@5
",
    13,
);

struct Small {
    mem: MemEnv,
    table: Arc<TableSchema>,
    partitions: Vec<Partition>,
    plain: usize,
    data: PathBuf,
    data_len: u64,
    sstable: Arc<SSTable>,
}

impl Small {
    /// Without compression and CRC.db, so that damage reaches the decoders.
    fn write((table, text, plain): Contents, version: Version, format: Format) -> Self {
        let mut builder = parse_table(table).unwrap().to_builder();
        builder.options.compression = [("class".to_owned(), String::new())].into();
        let table = builder.build();
        let partitions = partitions(text, &table);
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("d")).unwrap();
        let descriptor = Descriptor::new(Path::new("d"), version, SSTableId::Sequence(1), format);
        write_all(&env, &descriptor, &table, WriterOptions::default(), &partitions);
        // TOC.txt does not name it.
        for component in [Component::Crc, Component::Toc, Component::Checksums] {
            env.remove_file(&descriptor.path(&component)).unwrap();
        }
        let data = descriptor.path(&Component::Data);
        Self {
            data_len: env.file_size(&data).unwrap(),
            sstable: Arc::new(SSTable::open(&env, &descriptor, &OpenOptions::default()).unwrap()),
            mem,
            table,
            partitions,
            plain,
            data,
        }
    }

    fn cursor(&self) -> RangeCursor {
        let filter = Arc::new(ClusteringFilter::all());
        self.sstable
            .cursor(&self.table, KeyRange::all(), filter, Scan::Sequential)
    }

    fn data_scan(&self) -> DataScan {
        self.sstable.data_scan(&self.table).unwrap()
    }

    /// Compares both ways to read, with the index and without; returns the number of rows that were shown.
    fn check(&self, what: &str) -> [usize; 2] {
        [shown(what, || self.cursor()), shown(what, || self.data_scan())]
    }
}

fn shown<C: Cursor>(what: &str, cursor: impl Fn() -> C) -> usize {
    let seen = watch(&mut cursor(), || Flow::Next);
    match compare(seen, read(&mut cursor()), &ClusteringFilter::all()) {
        Ok(shown) => shown,
        Err(difference) => panic!("{what}: {difference}"),
    }
}

fn partitions(text: &str, table: &Arc<TableSchema>) -> Vec<Partition> {
    parse_partitions(text, table, Partitioner::Murmur3).unwrap()
}

fn all() -> impl Iterator<Item = Small> {
    let contents = [ONE_ROW_EACH, ROWS].into_iter();
    contents.flat_map(|contents| {
        [
            Small::write(contents, Version::NB, Format::Big),
            Small::write(contents, Version::DA, Format::Bti),
        ]
    })
}

#[test]
fn what_is_plain_is_shown_as_it_is() {
    for small in all() {
        assert_eq!(read_all(&mut small.cursor()), small.partitions);
        assert_eq!(read_all(&mut small.data_scan()), small.partitions);
        // Without the index, the first partition is shown, too.
        let first = usize::from(may_be_plain(&small.table));
        assert_eq!(small.check("whole"), [small.plain, small.plain + first]);
    }
}

#[test]
fn every_flipped_bit_is_seen_alike() {
    for small in all() {
        for at in 0..small.data_len {
            for bit in 0..8 {
                small.mem.corrupt_byte(&small.data, at, 1 << bit).unwrap();
                small.check(&format!("bit {bit} of byte {at}"));
                small.mem.corrupt_byte(&small.data, at, 1 << bit).unwrap();
            }
        }
    }
}
