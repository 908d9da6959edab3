//! Tests that write whole SSTables and look at their components.

use std::path::Path;

use ilion_env::{FaultEnv, MemEnv};
use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_rows::random::{Dice, random_table, random_update};
use ilion_rows::{Bound, BoundKind, Partition, PartitionUpdate, Slice, Values};
use ilion_types::Partitioner;

use super::*;
use crate::{ChunkReader, EncodingStats, SSTableId, list_directory, read_component};

fn partitions(table: &Arc<TableSchema>, text: &str) -> Vec<Partition> {
    parse_partitions(text, table, Partitioner::Murmur3).unwrap()
}

fn mem() -> (Arc<dyn Env>, Descriptor) {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new(7));
    let directory = Path::new("data/ks/t-1");
    env.create_dir_all(directory).unwrap();
    let descriptor = Descriptor::new(directory, Version::NB, SSTableId::Sequence(1), Format::Big);
    (env, descriptor)
}

fn write(writer: &mut SSTableWriter, partitions: &[Partition]) -> Result<()> {
    for partition in partitions {
        writer.begin_partition(&partition.head)?;
        for unfiltered in &partition.unfiltereds {
            writer.add(unfiltered)?;
        }
        writer.finish_partition()?;
    }
    Ok(())
}

fn options() -> WriterOptions {
    WriterOptions {
        encoding_stats: EncodingStats {
            min_timestamp_micros: 0,
            min_local_deletion_secs: 0,
            min_ttl_secs: 0,
        },
        ..WriterOptions::default()
    }
}

fn write_all(text_of_table: &str, text: &str, options: WriterOptions) -> (Arc<dyn Env>, Descriptor) {
    let table = parse_table(text_of_table).unwrap();
    let (env, descriptor) = mem();
    let mut writer = SSTableWriter::new(&env, &descriptor, &table, options).unwrap();
    write(&mut writer, &partitions(&table, text)).unwrap();
    writer.finish().unwrap();
    (env, descriptor)
}

fn data(env: &dyn Env, descriptor: &Descriptor) -> Vec<u8> {
    let reader = ChunkReader::open(env, descriptor, None).unwrap();
    let length = usize::try_from(reader.data_length()).unwrap();
    reader.read_at(0, length).unwrap().to_vec()
}

fn statistics(env: &dyn Env, descriptor: &Descriptor) -> Statistics {
    let bytes = read_component(env, descriptor, &Component::Statistics)
        .unwrap()
        .unwrap();
    Statistics::decode(&bytes, descriptor.version, Path::new("Statistics.db")).unwrap()
}

/// The example of the format notes: `INSERT ... USING TTL`, the first row of `key`.
#[test]
fn a_row_is_stored_as_cassandra_stores_it() {
    let (env, descriptor) = write_all(
        "k text pk, n int, v text",
        "partition 'key'\n  row live@7 ttl=60/100 v='x'@7 ttl=60/100 n=5@8\n",
        options(),
    );
    let live_head = [
        0, 3, b'k', b'e', b'y', 0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0,
    ];
    // Flags, body size, previous size; ts, ttl, end; n: flags, ts, value; v: flags, value; end of partition.
    let row = [0x2C, 13, 17, 7, 60, 100, 0, 8, 0, 0, 0, 5, 0x1A, 1, b'x', 1];
    assert_eq!(data(&*env, &descriptor), [&live_head[..], &row].concat());
}

#[test]
fn statics_markers_and_collections_are_stored_as_cassandra_stores_them() {
    let (env, descriptor) = write_all(
        "k text pk, c int ck, s int static, m map<text, int>",
        "partition 'k' del@4/9\n  row 1 m=del@5/9 m['a']=2@6\n  [2, *] del@7/9\n",
        options(),
    );
    let head = [0, 1, b'k', 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4];
    let empty_static = [0x80, 1, 2, 0, 1];
    // Flags, clustering, sizes; deletion, count; cell: flags, ts, path, value with its length.
    let row = [0x60, 0, 0, 0, 0, 1, 13, 20, 5, 9, 1, 0, 6, 1, b'a', 4, 0, 0, 0, 2];
    // Kind, count, values; sizes; deletion.
    let start = [2, 1, 0, 1, 0, 0, 0, 0, 2, 3, 20, 7, 9];
    let end = [2, 6, 0, 0, 3, 13, 7, 9];
    let expected = [&head[..], &empty_static, &row, &start, &end, &[1]].concat();
    assert_eq!(data(&*env, &descriptor), expected);
}

#[test]
fn statistics_say_what_was_written() {
    let intervals = vec![((5, 10), (5, 20)), ((5, 30), (6, 1))];
    let (env, descriptor) = write_all(
        "k int pk, c int ck, s int static, v int, w int",
        "partition 1\n  static s=1@3\n  row 4 live@10 v=1@10 w=del@11/70\n  row 9 v=1@12 ttl=5/200\n\
         partition 2 del@20/500\n  (3, 7] del@30/600\n",
        WriterOptions {
            commit_log_intervals: intervals,
            level: 3,
            ..options()
        },
    );
    let statistics = statistics(&*env, &descriptor);
    let stats = &statistics.stats;
    assert_eq!((stats.min_timestamp_micros, stats.max_timestamp_micros), (3, 30));
    assert_eq!(
        (stats.min_local_deletion_secs, stats.max_local_deletion_secs),
        (70, u32::MAX)
    );
    assert_eq!((stats.min_ttl_secs, stats.max_ttl_secs), (0, 5));
    assert_eq!((stats.total_rows, stats.total_columns, stats.level), (3, 4, 3));
    // The partition deletion, and both ends of the range.
    assert_eq!(
        stats.tombstone_drop_times.bins(),
        [(120, 1), (240, 1), (540, 1), (600, 2)]
    );
    let bound = |kind, value: i32| {
        Bound::new(
            kind,
            Values::from_iter([Some(Bytes::copy_from_slice(&value.to_be_bytes()))]),
        )
    };
    // Lists do not record that 3 is excluded.
    assert_eq!(stats.covered_clusterings.start, bound(BoundKind::InclStart, 3));
    assert_eq!(stats.covered_clusterings.end, bound(BoundKind::InclEnd, 9));
    assert_eq!(stats.commit_log_intervals.len(), 2);
    assert_eq!(stats.partition_sizes.count(), 2);
    assert_eq!(statistics.cardinality.unwrap().estimate(), 2);
}

#[test]
fn all_components_are_there_and_named_in_the_table_of_contents() {
    let written = |version, format| {
        let table = parse_table("k int pk, v int").unwrap();
        let (env, mut descriptor) = mem();
        (descriptor.version, descriptor.format) = (version, format);
        let mut writer = SSTableWriter::new(&env, &descriptor, &table, options()).unwrap();
        write(&mut writer, &partitions(&table, "partition 1\n  row v=1@1\n")).unwrap();
        writer.finish().unwrap();
        let toc = read_component(&*env, &descriptor, &Component::Toc).unwrap();
        (env, descriptor, toc.unwrap())
    };
    let (_, _, toc) = written(Version::DA, Format::Bti);
    assert_eq!(
        String::from_utf8(toc).unwrap(),
        "CompressionInfo.db\nData.db\nDigest.crc32\nFilter.db\nPartitions.db\nRows.db\nStatistics.db\nTOC.txt\n"
    );
    let (env, descriptor, toc) = written(Version::NB, Format::Big);
    let found = list_directory(&*env, &descriptor.directory).unwrap();
    assert_eq!(
        found[0]
            .components
            .iter()
            .map(|(component, _)| component.clone())
            .collect::<BTreeSet<_>>(),
        &toc::parse(&toc) | &BTreeSet::from([Component::Tokens, Component::Checksums])
    );
    assert_eq!(
        String::from_utf8(toc).unwrap(),
        "CompressionInfo.db\nData.db\nDigest.crc32\nFilter.db\nIndex.db\nStatistics.db\nSummary.db\nTOC.txt\n"
    );
}

#[test]
fn wrong_calls_are_refused() {
    let table = parse_table("k int pk, c int ck, v int").unwrap();
    let (env, descriptor) = mem();
    let all = partitions(
        &table,
        "partition 1\n  row 1 v=1@1\npartition 2\n  row 1 v=0x00@1\n",
    );
    let begin = |descriptor: &Descriptor| SSTableWriter::new(&env, descriptor, &table, options());
    let mut writer = begin(&descriptor).unwrap();
    assert!(writer.add(&all[0].unfiltereds[0]).is_err());
    assert!(writer.finish_partition().is_err());
    writer.begin_partition(&all[0].head).unwrap();
    writer.add(&all[0].unfiltereds[0]).unwrap();
    assert!(writer.begin_partition(&all[1].head).is_err());
    writer.finish_partition().unwrap();
    let error = writer.begin_partition(&all[0].head).unwrap_err();
    assert!(error.to_string().contains("do not ascend"), "{error}");
    writer.begin_partition(&all[1].head).unwrap();
    let error = writer.add(&all[1].unfiltereds[0]).unwrap_err();
    assert!(error.to_string().contains("length of its type"), "{error}");
    writer.abandon();
    assert_eq!(env.list(&descriptor.directory).unwrap(), []);
    assert!(
        begin(&descriptor).unwrap().finish().is_err(),
        "nothing was written"
    );
    let mixed = Descriptor::new(Path::new("d"), Version::DA, SSTableId::Sequence(1), Format::Big);
    assert!(begin(&mixed).is_err());
}

#[test]
fn columns_that_were_dropped_meanwhile_are_left_out() {
    let old = parse_table("k int pk, v int, w int").unwrap();
    let new = old.to_builder().remove("v").build();
    let all = partitions(&old, "partition 1\n  row v=1@1 w=2@2\npartition 2\n  row v=1@1\n");
    let (env, descriptor) = mem();
    let mut writer = SSTableWriter::new(&env, &descriptor, &new, options()).unwrap();
    write(&mut writer, &all).unwrap();
    writer.finish().unwrap();
    let statistics = statistics(&*env, &descriptor);
    assert_eq!(
        (statistics.stats.total_rows, statistics.stats.total_columns),
        (1, 1)
    );
    assert_eq!(statistics.header.regulars.len(), 1);
}

#[test]
fn a_failed_write_or_sync_of_any_component_fails_the_writer() {
    let table = parse_table("k int pk, v int").unwrap();
    let all = partitions(&table, "partition 1\n  row v=1@1\n");
    let common = ["Data", "CompressionInfo", "Digest", "Filter", "Statistics", "TOC"];
    let formats = [
        (Version::NB, Format::Big, ["Index", "Summary"]),
        (Version::DA, Format::Bti, ["Partitions", "Rows"]),
    ];
    for (version, format, own) in formats {
        for component in common.iter().chain(&own) {
            for operation in ["create", "write", "sync"] {
                // Rows.db stays empty.
                if (*component, operation) == ("Rows", "write") {
                    continue;
                }
                let (env, mut descriptor) = mem();
                (descriptor.version, descriptor.format) = (version, format);
                let fault = FaultEnv::new(env);
                fault
                    .add(&format!("fail {operation} \"*-{component}.*\""))
                    .unwrap();
                let env: Arc<dyn Env> = fault.clone();
                let written =
                    SSTableWriter::new(&env, &descriptor, &table, options()).and_then(|mut writer| {
                        write(&mut writer, &all)?;
                        writer.finish()
                    });
                assert!(written.is_err(), "{operation} {component}");
            }
        }
    }
}

#[test]
fn random_tables_are_written_in_every_version_and_compression() {
    let compressions = [
        "",
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
    ];
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let mut builder = table.to_builder();
        builder.options.compression = [("class".to_owned(), (*dice.pick(&compressions)).to_owned())].into();
        let table = builder.build();
        let comparator = ClusteringComparator::of(&table);
        let (env, mut descriptor) = mem();
        let formats = [
            (Version::NB, Format::Big),
            (Version::OA, Format::Big),
            (Version::DA, Format::Bti),
        ];
        (descriptor.version, descriptor.format) = *dice.pick(&formats);
        let mut writer = SSTableWriter::new(&env, &descriptor, &table, options()).unwrap();
        let mut bytes = 0;
        for number in 0..50u8 {
            let key = DecoratedKey::new(Partitioner::ByteOrdered, Bytes::copy_from_slice(&[number]));
            let mut update: PartitionUpdate = random_update(&table, &mut dice);
            update.deletion = update.deletion.filter(|deletion| deletion.marked_at_micros >= 0);
            write(&mut writer, &[Partition::of(key, update, &comparator)]).unwrap();
            assert!(writer.data_bytes() >= bytes, "seed {seed}");
            bytes = writer.data_bytes();
        }
        let count = writer.partitions();
        writer.finish().unwrap();
        assert_eq!(data(&*env, &descriptor).len() as u64, bytes, "seed {seed}");
        assert!(crate::digest::verify(&*env, &descriptor).unwrap());
        assert_eq!(
            statistics(&*env, &descriptor).stats.partition_sizes.count(),
            count
        );
    }
}

#[test]
fn partitions_with_nothing_in_them_are_not_written() {
    let table = parse_table("k int pk, c int ck, s int static, v int").unwrap();
    let blank = |text: &str| partitions(&table, text).remove(0);
    let all = [
        blank("partition 5\n"),
        blank("partition 10\n  row 1 v=1@1\n"),
        blank("partition 16\n"),
    ];
    assert!(all[0].head.key < all[1].head.key);
    let (env, descriptor) = mem();
    let mut writer = SSTableWriter::new(&env, &descriptor, &table, options()).unwrap();
    write(&mut writer, &all[..1]).unwrap();
    assert_eq!((writer.partitions(), writer.data_bytes()), (0, 0));
    write(&mut writer, &all[1..]).unwrap();
    assert_eq!(writer.partitions(), 1);
    writer.finish().unwrap();
    let stats = statistics(&*env, &descriptor).stats;
    assert_eq!(stats.partition_sizes.count(), 1);
    assert_eq!(data(&*env, &descriptor)[..6], [0, 4, 0, 0, 0, 10]);
}

#[test]
fn a_clustering_too_long_for_the_statistics_only_makes_them_vague() {
    let table = parse_table("k int pk, c text ck, v int").unwrap();
    let long = "x".repeat(70_000);
    let text = format!("partition 1\n  row '{long}' v=1@1\n");
    let (env, descriptor) = mem();
    let mut writer = SSTableWriter::new(&env, &descriptor, &table, options()).unwrap();
    write(&mut writer, &partitions(&table, &text)).unwrap();
    writer.finish().unwrap();
    let stats = statistics(&*env, &descriptor).stats;
    assert_eq!(stats.covered_clusterings, Slice::all());
}

#[test]
fn an_empty_clustering_is_told_and_may_be_null_where_lists_tell_it() {
    let (env, descriptor) = write_all(
        "k int pk, c text ck, d int ck, v int",
        "partition 1\n  row '':5 v=1@1\n  row 'a':7 v=1@1\n",
        options(),
    );
    let stats = statistics(&*env, &descriptor).stats;
    let value = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
    let start = Bound::new(
        BoundKind::InclStart,
        Values::from_iter([value(b""), value(&[0, 0, 0, 5])]),
    );
    let end = Bound::new(
        BoundKind::InclEnd,
        Values::from_iter([value(b"a"), value(&[0, 0, 0, 7])]),
    );
    assert_eq!(
        (&stats.covered_clusterings.start, &stats.covered_clusterings.end),
        (&start, &end)
    );
    let from_all = Bound::new(BoundKind::InclStart, Values::new());
    let covered = stats.covered(descriptor.version);
    assert_eq!((&covered.start, &covered.end), (&from_all, &end));
    // A slice of oa and later has null.
    assert_eq!(stats.covered(Version::OA).start, start);
}
