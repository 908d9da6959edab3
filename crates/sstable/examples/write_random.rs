//! Writes SSTables of random tables, to be checked with Cassandra's own tools: `write_random DIR FIRST_SEED COUNT [nb|oa|da]`.
//!
//! Each SSTable is in `DIR/ks/seedN-ID/`, one table per seed, with one wide partition among many small ones. `DIR/schema.cql`
//! creates the tables. `expected.jsonl` beside each SSTable is the output of `sstabledump -l -t`, without positions and
//! expirations.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, RealEnv};
use ilion_rows::random::{Dice, NOW_SECS, random_table, random_update};
use ilion_rows::{
    Clustering, ClusteringComparator, ClusteringFilter, DecoratedKey, KeyRange, Partition, PartitionUpdate,
    Row,
};
use ilion_schema::TableSchema;
use ilion_schema::describe::{Internals, describe_table, describe_type};
use ilion_sstable::{
    Descriptor, EncodingStats, OpenOptions, SSTable, SSTableId, SSTableWriter, Scan, Version, WriterOptions,
    dump,
};
use ilion_types::{CqlType, Partitioner};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, first_seed, count, rest @ ..] = &arguments[..] else {
        return Err("usage: write_random DIR FIRST_SEED COUNT [nb|oa|da]".into());
    };
    let version = rest
        .first()
        .map_or(Some(Version::NB), |text| Version::parse(text));
    let version = version.ok_or("a version has two letters")?;
    let first_seed: u64 = first_seed.parse()?;
    let env: Arc<dyn Env> = RealEnv::new();
    let directory = Path::new(directory);
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    let mut schema = format!("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {replication};\n");
    for seed in first_seed..first_seed + count.parse::<u64>()? {
        let mut dice = Dice::new(seed);
        let table = named(&random_table(&mut dice), seed, &mut dice);
        describe(&table, &mut schema)?;
        write_seed(&env, directory, &table, version, &mut dice)?;
    }
    env.write_atomically(&directory.join("schema.cql"), schema.as_bytes())?;
    Ok(())
}

fn named(table: &Arc<TableSchema>, seed: u64, dice: &mut Dice) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    builder.name = format!("seed{seed}");
    let class = *dice.pick(&[
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
        "",
    ]);
    builder.options.compression.clear();
    if !class.is_empty() {
        builder.options.compression = [
            (
                "class".to_owned(),
                format!("org.apache.cassandra.io.compress.{class}"),
            ),
            (
                "chunk_length_in_kb".to_owned(),
                dice.pick(&[4, 16, 64]).to_string(),
            ),
        ]
        .into();
    }
    builder.build()
}

fn describe(table: &TableSchema, schema: &mut String) -> Result<()> {
    for column in table.regulars().chain(table.statics()) {
        if let CqlType::Udt { definition, .. } = &column.ty {
            let text = describe_type(definition);
            writeln!(
                schema,
                "{}",
                text.replace("CREATE TYPE", "CREATE TYPE IF NOT EXISTS")
            )?;
        }
    }
    writeln!(schema, "{}", describe_table(table, Internals::Shown))?;
    Ok(())
}

fn write_seed(
    env: &Arc<dyn Env>,
    directory: &Path,
    table: &Arc<TableSchema>,
    version: Version,
    dice: &mut Dice,
) -> Result<()> {
    let folder = format!("{}-{}", table.name, table.id.0.simple());
    let directory = directory.join("ks").join(folder);
    env.create_dir_all(&directory)?;
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), version.format());
    let options = WriterOptions {
        encoding_stats: EncodingStats {
            min_timestamp_micros: i64::from(NOW_SECS) * 1_000_000,
            min_local_deletion_secs: NOW_SECS,
            min_ttl_secs: 0,
        },
        column_index_bytes: Some(*dice.pick(&[512, 4096, 65536])),
        ..WriterOptions::default()
    };
    let mut writer = SSTableWriter::new(env, &descriptor, table, options)?;
    for partition in partitions(table, dice, version) {
        writer.begin_partition(&partition.head)?;
        for unfiltered in &partition.unfiltereds {
            writer.add(unfiltered)?;
        }
        writer.finish_partition()?;
    }
    writer.finish()?;
    let dumped = dump_all(env, &descriptor)?;
    env.write_atomically(&descriptor.directory.join("expected.jsonl"), dumped.as_bytes())?;
    println!("{}", descriptor.path(&ilion_sstable::Component::Data).display());
    Ok(())
}

fn dump_all(env: &Arc<dyn Env>, descriptor: &Descriptor) -> Result<String> {
    let sstable = Arc::new(SSTable::open(env, descriptor, &OpenOptions::default())?);
    let table = sstable.header().to_table("ks", "t")?;
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(&table, KeyRange::all(), filter, Scan::Sequential);
    let mut out = String::new();
    while dump::dump_partition(&mut cursor, &table, &mut out)? {}
    Ok(out)
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
        let can_hold = |micros: i64| micros >= 0 || version == Version::NB;
        update.deletion = update
            .deletion
            .filter(|deletion| can_hold(deletion.marked_at_micros));
        update
            .ranges
            .retain(|range| can_hold(range.deletion.marked_at_micros));
        partitions.insert(key.clone(), Partition::of(key, update, &comparator));
    }
    partitions.into_values().collect()
}

/// Adds many rows and ranges. Some of their clusterings never occur in other random data.
fn widen(
    update: &mut PartitionUpdate,
    table: &Arc<TableSchema>,
    dice: &mut Dice,
    comparator: &ClusteringComparator,
) {
    for _ in 0..3_000 {
        let more = random_update(table, dice);
        update.ranges.extend(more.ranges.into_iter().take(1));
        let first = Bytes::copy_from_slice(&dice.next_u64().to_be_bytes()[..4]);
        update
            .rows
            .extend(more.rows.into_iter().map(|row| moved(row, &first)));
    }
    let rows = &mut update.rows;
    rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    rows.dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
}

/// The row with another first clustering value: four ASCII bytes are valid as int and as text.
fn moved(mut row: Row, first: &[u8]) -> Row {
    let mut values = row.clustering.values().clone();
    if let Some(value) = values.first_mut() {
        *value = Some(first.iter().map(|byte| byte & 0x7F).collect());
    }
    row.clustering = Clustering::new(values);
    row
}
