//! Tests that entries of hidden tables are written with the same bytes as rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::random::{Dice, NOW_SECS};
use ilion_rows::{
    Clustering, ClusteringComparator, DecoratedKey, DeletionTime, EntryRow, Liveness, PartitionHead, Row,
    Unfiltered, Values,
};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_sstable::{
    CellMapLimits, Descriptor, EncodingStats, Format, SSTableId, SSTableWriter, Version, WriterOptions,
};
use ilion_types::{CqlType, KeyOrder, Partitioner, Uuid};

const MICROS: i64 = NOW_SECS as i64 * 1_000_000;

fn random_table(dice: &mut Dice) -> Arc<TableSchema> {
    let keys = CqlType::partition_keys(Partitioner::Murmur3);
    let mut table = TableBuilder::new("ks", "t.by_v", TableId(Uuid::from_u128(1)))
        .partition_key("v", CqlType::Int)
        .clustering("partition_key", keys, ClusteringOrder::Asc);
    for index in 0..dice.below(3) {
        let ty = dice.pick(&[CqlType::Int, CqlType::Text]).clone();
        let order = *dice.pick(&[ClusteringOrder::Asc, ClusteringOrder::Desc]);
        table = table.clustering(format!("c{index}"), ty, order);
    }
    table.key_order = Some(KeyOrder::of(CqlType::Int, false));
    table.build()
}

fn random_value(ty: &CqlType, dice: &mut Dice) -> Option<Bytes> {
    let len = match (ty, dice.below(30)) {
        (_, 0) => return None,
        (_, 1) => 0,
        (CqlType::Int, _) => 4,
        (_, 2) => 100 + dice.below(9000),
        (_, _) => 1 + dice.below(12),
    };
    Some((0..len).map(|_| dice.byte()).collect())
}

fn random_row(table: &TableSchema, dice: &mut Dice) -> Row {
    let values: Values = table
        .clustering()
        .enumerate()
        .map(|(index, column)| match index {
            0 => Some(Bytes::from(format!("key {}", dice.below(500)))),
            _ => random_value(&column.ty, dice),
        })
        .collect();
    let mut row = Row::empty(Clustering::new(values));
    let micros = MICROS + dice.below(1000) as i64;
    match dice.below(6) {
        0 => row.liveness = Liveness::expiring(micros, 60, NOW_SECS + 60),
        1 => row.deletion = DeletionTime::new(micros, NOW_SECS),
        2 => {
            row.liveness = Liveness::live(micros + 1);
            row.deletion = DeletionTime::new(micros, NOW_SECS);
        }
        _ => row.liveness = Liveness::live(micros),
    }
    row
}

fn random_partitions(table: &Arc<TableSchema>, dice: &mut Dice) -> BTreeMap<DecoratedKey, Vec<Row>> {
    let comparator = ClusteringComparator::of(table);
    let partitioner = table.partitioner(Partitioner::default());
    let keys = (0..1 + dice.below(60)).map(|_| dice.below(100) as i32 - 50);
    let keys: Vec<i32> = keys.collect();
    let partitions = keys.into_iter().map(|key| {
        let key = DecoratedKey::new(partitioner, Bytes::copy_from_slice(&key.to_be_bytes()));
        let count = if dice.one_in(10) { 300 } else { 4 };
        let mut rows: Vec<Row> = (0..1 + dice.below(count))
            .map(|_| random_row(table, dice))
            .collect();
        rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
        rows.dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
        (key, rows)
    });
    partitions.collect()
}

fn written(
    env: &Arc<dyn Env>,
    (table, options, version): (&Arc<TableSchema>, &WriterOptions, Version),
    partitions: &BTreeMap<DecoratedKey, Vec<Row>>,
    directory: &str,
    add: impl Fn(&mut SSTableWriter, &Row),
) -> BTreeMap<String, Vec<u8>> {
    let directory = Path::new(directory);
    env.create_dir_all(directory).unwrap();
    let format = if version == Version::DA {
        Format::Bti
    } else {
        Format::Big
    };
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), format);
    let mut writer = SSTableWriter::new(env, &descriptor, table, options.clone()).unwrap();
    for (key, rows) in partitions {
        let head = PartitionHead {
            key: key.clone(),
            deletion: DeletionTime::LIVE,
            static_row: None,
        };
        writer.begin_partition(&head).unwrap();
        rows.iter().for_each(|row| add(&mut writer, row));
        writer.finish_partition().unwrap();
    }
    writer.finish().unwrap();
    let files = env.list(directory).unwrap().into_iter().map(|entry| {
        let bytes = env.read_all(&directory.join(&entry.name), u64::MAX).unwrap();
        (entry.name, bytes)
    });
    files.collect()
}

#[test]
fn entries_are_written_as_rows_are() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(seed));
        let table = random_table(&mut dice);
        let partitions = random_partitions(&table, &mut dice);
        let options = WriterOptions {
            partitioner: table.partitioner(Partitioner::default()),
            estimated_partitions: partitions.len() as u64,
            encoding_stats: EncodingStats {
                min_timestamp_micros: MICROS - dice.below(3) as i64 * 1_000_000,
                ..EncodingStats::NONE
            },
            column_index_bytes: Some(*dice.pick(&[1, 100, 65_536])),
            writes_token_map: true,
            has_static_rows: false,
            cell_map: dice.one_in(2).then(|| CellMapLimits {
                row_bytes_min: *dice.pick(&[100, 4000]),
                row_bytes_per_map_byte: 0,
            }),
            ..WriterOptions::default()
        };
        let version = *dice.pick(&[Version::NB, Version::OA, Version::DA]);
        let form = (&table, &options, version);
        let expected = written(&env, form, &partitions, "rows", |writer, row| {
            writer.add(&Unfiltered::Row(row.clone())).unwrap();
        });
        let found = written(&env, form, &partitions, "entries", |writer, row| {
            let values = row.clustering.values().iter();
            writer
                .add_entry(&EntryRow {
                    clustering: values.map(Option::as_deref).collect(),
                    liveness: row.liveness,
                    deletion: row.deletion,
                })
                .unwrap();
        });
        assert!(
            expected.keys().eq(found.keys()),
            "seed {seed}: the same components"
        );
        for (name, bytes) in &expected {
            assert!(*bytes == found[name], "seed {seed}: {name} differs");
        }
    }
}
