//! Tests of row numbers against a sorted list of places.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv, Seeded};
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, Row};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner};

use super::{MAGIC, RowNumbersFile, RowNumbersWriter};
use crate::paged::hostile;
use crate::{Error, Place, RowNumbers, RowPart};

const BASE: &str = "nb-1-big-";
const FILE: &str = "nb-1-big-Index+Rows.db";

pub(crate) fn table(has_clustering: bool) -> Arc<TableSchema> {
    let builder =
        TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t")).partition_key("k", CqlType::Blob);
    let builder = if has_clustering {
        builder
            .clustering("a", CqlType::Int, ClusteringOrder::Desc)
            .clustering("b", CqlType::Text, ClusteringOrder::Asc)
            .static_column("s", CqlType::Int)
    } else {
        builder
    };
    builder.regular("v", CqlType::Int).build()
}

fn random_clustering(random: &mut Seeded) -> Clustering {
    let number = (random.below(40) as i32 - 20).to_be_bytes();
    let text: Vec<u8> = (0..random.below(40))
        .map(|_| b'a' + random.below(2) as u8)
        .collect();
    Clustering::of([Bytes::copy_from_slice(&number), Bytes::from(text)])
}

fn random_place(has_clustering: bool, partitioner: Partitioner, random: &mut Seeded) -> Place {
    let len = 1 + random.below(3) * random.below(3) * random.below(40);
    let key: Vec<u8> = (0..len).map(|_| random.below(9) as u8).collect();
    let row = match has_clustering {
        true if random.one_in(5) => RowPart::Static,
        true => RowPart::Row(random_clustering(random)),
        false => RowPart::Row(Clustering::empty()),
    };
    Place {
        key: DecoratedKey::new(partitioner, Bytes::from(key)),
        row,
    }
}

pub(crate) fn write_places(
    env: &Arc<dyn Env>,
    table: &TableSchema,
    partitioner: Partitioner,
    places: &[Place],
) {
    let mut writer = RowNumbersWriter::create(env, BASE, table, partitioner).unwrap();
    for (index, place) in places.iter().enumerate() {
        let clustering = match &place.row {
            RowPart::Static => Clustering::empty(),
            RowPart::Row(clustering) => clustering.clone(),
        };
        let number = writer.add(&place.key, &Row::empty(clustering)).unwrap();
        assert_eq!(number as usize, index);
    }
    writer.finish().unwrap();
}

struct Case {
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    partitioner: Partitioner,
    places: Vec<Place>,
}

impl Case {
    fn new(has_clustering: bool, partitioner: Partitioner, count: u64, random: &mut Seeded) -> Self {
        let table = table(has_clustering);
        let comparator = ClusteringComparator::of(&table);
        let mut places: Vec<Place> = (0..count)
            .map(|_| random_place(has_clustering, partitioner, random))
            .collect();
        places.sort_by(|a, b| a.compare(b, &comparator));
        places.dedup();
        let env = MemEnv::new(1).shared();
        write_places(&env, &table, partitioner, &places);
        Self {
            env,
            table,
            partitioner,
            places,
        }
    }

    fn open(&self) -> Result<RowNumbersFile, Error> {
        RowNumbersFile::open(&self.env, BASE, &self.table, self.partitioner)
    }

    fn check(&self, random: &mut Seeded) {
        let file = self.open().unwrap();
        let comparator = ClusteringComparator::of(&self.table);
        assert_eq!(file.len() as usize, self.places.len());
        for (number, place) in self.places.iter().enumerate() {
            assert_eq!(file.place(number as u32).unwrap(), *place);
            assert_eq!(file.number_from(place).unwrap() as usize, number);
        }
        assert!(file.place(file.len()).is_err());
        for _ in 0..300 {
            let place = random_place(self.table.clustering().len() > 0, self.partitioner, random);
            let expected = self
                .places
                .partition_point(|known| known.compare(&place, &comparator).is_lt());
            assert_eq!(file.number_from(&place).unwrap() as usize, expected);
        }
    }
}

#[test]
fn a_row_has_the_number_of_its_place() {
    let mut random = Seeded::new(3);
    for partitioner in [
        Partitioner::Murmur3,
        Partitioner::Random,
        Partitioner::ByteOrdered,
    ] {
        for has_clustering in [false, true] {
            for count in [0, 1, 31, 32, 33, 64, 700] {
                Case::new(has_clustering, partitioner, count, &mut random).check(&mut random);
            }
        }
    }
}

#[test]
fn a_file_of_another_table_or_partitioner_is_unusable() {
    let mut random = Seeded::new(4);
    let mut case = Case::new(true, Partitioner::Murmur3, 100, &mut random);
    case.partitioner = Partitioner::Random;
    assert!(matches!(case.open(), Err(Error::Unusable { .. })));
    case.partitioner = Partitioner::Murmur3;
    case.open().unwrap();
    case.table = table(false);
    assert!(matches!(case.open(), Err(Error::Unusable { .. })));
}

#[test]
fn hostile_bytes_are_refused_or_read_without_a_panic() {
    let mut random = Seeded::new(5);
    for round in 0..400 {
        let case = Case::new(round % 2 == 0, Partitioner::Murmur3, 150, &mut random);
        hostile::rewrite(&case.env, Path::new(FILE), MAGIC, |body, fields| {
            for _ in 0..1 + random.below(4) {
                let bytes = if random.one_in(4) {
                    &mut *fields
                } else {
                    &mut *body
                };
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
        });
        let Ok(file) = case.open() else { continue };
        for place in &case.places {
            let _ = file.number_from(place);
        }
        for number in 0..file.len().min(1000) {
            let _ = file.place(number);
        }
    }
}

#[test]
fn rows_of_long_partitions_take_few_bytes() {
    let partitioner = Partitioner::Murmur3;
    let table = TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t"))
        .partition_key("k", CqlType::Uuid)
        .clustering("at", CqlType::Timestamp, ClusteringOrder::Asc)
        .build();
    let env = MemEnv::new(1).shared();
    let key = DecoratedKey::new(partitioner, Bytes::from_static(&[7; 16]));
    let places: Vec<Place> = (0..10_000_i64)
        .map(|second| (1_700_000_000 + second) * 1000)
        .map(|millis| Clustering::of([Bytes::copy_from_slice(&millis.to_be_bytes())]))
        .map(|row| Place {
            key: key.clone(),
            row: RowPart::Row(row),
        })
        .collect();
    write_places(&env, &table, partitioner, &places);
    let file = RowNumbersFile::open(&env, BASE, &table, partitioner).unwrap();
    assert!(file.size_bytes() < 5 * 10_000, "{}", file.size_bytes());
}
