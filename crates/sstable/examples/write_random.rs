//! Writes SSTables of random tables, for Cassandra's own tools to judge: `write_random DIR FIRST_SEED COUNT [nb|oa]`.
//!
//! Each goes to `DIR/ks/seedN-ID/`, one table a seed; a wide partition is among them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, RealEnv};
use ilion_rows::random::{Dice, NOW_SECS, random_table, random_update};
use ilion_rows::{
    Clustering, ClusteringComparator, DecoratedKey, Partition, PartitionUpdate, RangeTombstone, Row,
};
use ilion_schema::TableSchema;
use ilion_sstable::{Descriptor, EncodingStats, Format, SSTableId, SSTableWriter, Version, WriterOptions};
use ilion_types::Partitioner;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, first_seed, count, rest @ ..] = &arguments[..] else {
        return Err("usage: write_random DIR FIRST_SEED COUNT [nb|oa]".into());
    };
    let version = rest
        .first()
        .map_or(Some(Version::NB), |text| Version::parse(text));
    let version = version.ok_or("a version has two letters")?;
    let first_seed: u64 = first_seed.parse()?;
    let env: Arc<dyn Env> = RealEnv::new();
    for seed in first_seed..first_seed + count.parse::<u64>()? {
        write_seed(&env, Path::new(directory), seed, version)?;
    }
    Ok(())
}

fn write_seed(
    env: &Arc<dyn Env>,
    directory: &Path,
    seed: u64,
    version: Version,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut dice = Dice::new(seed);
    let table = random_table(&mut dice);
    let name = format!("seed{seed}-{}", table.id.0.simple());
    let directory = directory.join("ks").join(name);
    env.create_dir_all(&directory)?;
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), Format::Big);
    let options = WriterOptions {
        encoding_stats: EncodingStats {
            min_timestamp_micros: i64::from(NOW_SECS) * 1_000_000,
            min_local_deletion_secs: NOW_SECS,
            min_ttl_secs: 0,
        },
        column_index_bytes: 4096,
        ..WriterOptions::default()
    };
    let mut writer = SSTableWriter::new(env, &descriptor, &table, options)?;
    for partition in partitions(&table, &mut dice, version) {
        writer.begin_partition(&partition.head)?;
        for unfiltered in &partition.unfiltereds {
            writer.add(unfiltered)?;
        }
        writer.finish_partition()?;
    }
    writer.finish()?;
    println!("{}", descriptor.path(&ilion_sstable::Component::Data).display());
    Ok(())
}

fn partitions(table: &Arc<TableSchema>, dice: &mut Dice, version: Version) -> Vec<Partition> {
    let comparator = ClusteringComparator::of(table);
    let mut partitions = BTreeMap::new();
    for number in 0..300u32 {
        let key = Bytes::copy_from_slice(&number.to_be_bytes());
        let key = DecoratedKey::new(Partitioner::Murmur3, key);
        let mut update = random_update(table, dice);
        if number == 0 {
            widen(&mut update, table, dice, &comparator);
        }
        if version == Version::OA {
            update.deletion = update.deletion.filter(|deletion| deletion.marked_at_micros >= 0);
        }
        partitions.insert(key.clone(), Partition::of(key, update, &comparator));
    }
    partitions.into_values().collect()
}

/// Many rows, by clusterings that random data does not have, and every range that it had.
fn widen(
    update: &mut PartitionUpdate,
    table: &Arc<TableSchema>,
    dice: &mut Dice,
    comparator: &ClusteringComparator,
) {
    let mut rows: Vec<Row> = std::mem::take(&mut update.rows);
    let mut ranges: Vec<RangeTombstone> = Vec::new();
    for _ in 0..3_000 {
        let more = random_update(table, dice);
        ranges.extend(more.ranges.into_iter().take(1));
        let first = Bytes::copy_from_slice(&dice.next_u64().to_be_bytes()[..4]);
        for mut row in more.rows {
            let mut values = row.clustering.values().clone();
            if let Some(value) = values.first_mut() {
                // Four ASCII bytes are an int and a text.
                *value = Some(first.iter().map(|byte| byte & 0x7F).collect());
            }
            row.clustering = Clustering::new(values);
            rows.push(row);
        }
    }
    rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    rows.dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
    update.rows = rows;
    update.ranges = ranges;
}
