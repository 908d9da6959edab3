//! Specification of SSTables, by the files of `testdata/spec`. `REWRITE=1 cargo test` writes the answers.
//!
//! `write` writes an SSTable on a disk in memory; the directives that follow read it.
//!
//! * `write [version=nb|oa|da] [block=BYTES] [chunk_kib=N] [token_map=no] [rows=N value=BYTES [deleted=N]]`: the input is the
//!   table and its partitions, in the notation of `ilion_rows::notation`. `block` is the size of the blocks of row indexes,
//!   `chunk_kib` that of chunks, which are then stored by NoopCompressor; without it, the SSTable is uncompressed. `rows` adds
//!   rows with the clusterings 0 to N - 1 and values of this size to the last partition; `deleted=N` adds an older range
//!   deletion of all rows up to N. Prints the partitions in order.
//! * `components`: the components with their sizes, and the content of some.
//! * `presence [by=summary]`: for each key of the input, what `SSTable::presence` returns, and the position of its partition.
//!   By default, keys are looked up in the token map.
//! * `ranges [by=summary]`: for each range of keys of the input, a lower bound of its partitions.
//! * `blocks`: the blocks of each row index, by the rows that start in them.
//! * `slices [reversed]`: what a read of these slices of the last partition returns, and the rows that it fetches.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::support::write_all;
use bytes::Bytes;
use datadriven::TestCase;
use ilion_env::account::{begin_trace, finish_trace};
use ilion_env::{Env, FileKind, IoVerb, MemEnv};
use ilion_rows::notation::{parse_mutations, parse_partitions, parse_table, print_cursor};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringFilter, ColumnData, Data, DecoratedKey, DeletionTime,
    KeyBound, KeyRange, Liveness, Marker, NO_DELETION_TIME, Partition, Row, Slice, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::compression_info::CompressionInfo;
use ilion_sstable::crc_file::CrcFile;
use ilion_sstable::{
    ChunkReader, Component, Descriptor, EncodingStats, Finding, IndexScan, KeyHash, OpenOptions, Presence,
    SSTable, SSTableId, Statistics, Version, WriterOptions, list_directory, read_component,
};
use ilion_types::Partitioner;

/// Bytes of the CRC behind each compressed chunk.
const CHUNK_CRC_BYTES: u64 = 4;

/// The SSTable of the last `write`.
struct Written {
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    table: Arc<TableSchema>,
    partitions: Vec<Partition>,
}

fn argument<T: std::str::FromStr>(test: &TestCase, name: &str) -> Option<T> {
    test.args
        .get(name)
        .and_then(|values| values.first()?.parse().ok())
}

/// The partitions of a text in token order.
fn partitions_of(text: &str, table: &Arc<TableSchema>) -> Vec<Partition> {
    parse_partitions(text, table, Partitioner::Murmur3).unwrap()
}

/// Rows with ascending clusterings and large values.
fn generated_rows(table: &TableSchema, count: i32, value_bytes: usize) -> impl Iterator<Item = Unfiltered> {
    let column = table.regulars().next().unwrap().id;
    (0..count).map(move |number| {
        let clustering = Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]);
        Unfiltered::Row(Row {
            liveness: Liveness::live(10),
            columns: vec![ColumnData {
                column,
                data: Data::Simple(Cell::live(10, Bytes::from(vec![b'x'; value_bytes]))),
            }],
            ..Row::empty(clustering)
        })
    })
}

/// Adds a range deletion from the start of the partition to `until`, older than its rows.
fn delete_until(until: i32, partition: &mut Partition) {
    let deletion = DeletionTime::new(5, 5);
    let end = Bound::new(
        BoundKind::InclEnd,
        [Some(Bytes::copy_from_slice(&until.to_be_bytes()))]
            .into_iter()
            .collect(),
    );
    let marker = |bound, end, start| Unfiltered::Marker(Marker { bound, end, start });
    let rows = &mut partition.unfiltereds;
    rows.insert(
        usize::try_from(until).unwrap() + 1,
        marker(end, Some(deletion), None),
    );
    rows.insert(0, marker(Bound::bottom(), None, Some(deletion)));
}

fn write(test: &TestCase) -> (Written, String) {
    let (first_line, text) = test.input.split_once('\n').unwrap();
    let mut builder = parse_table(first_line).unwrap().to_builder();
    builder.options.compression = match argument::<u32>(test, "chunk_kib") {
        None => [("enabled".to_owned(), "false".to_owned())].into(),
        Some(kib) => [
            ("class".to_owned(), "NoopCompressor".to_owned()),
            ("chunk_length_in_kb".to_owned(), kib.to_string()),
        ]
        .into(),
    };
    let table = builder.build();
    let mut partitions = partitions_of(text, &table);
    if let Some(rows) = argument(test, "rows") {
        let value_bytes = argument(test, "value").unwrap();
        let last = partitions.last_mut().unwrap();
        last.unfiltereds.extend(generated_rows(&table, rows, value_bytes));
        if let Some(until) = argument(test, "deleted") {
            delete_until(until, last);
        }
    }
    let version =
        argument::<String>(test, "version").map_or(Version::NB, |text| Version::parse(&text).unwrap());
    let env = MemEnv::new(1).shared();
    let directory = Path::new("data/ks/t-1");
    env.create_dir_all(directory).unwrap();
    let descriptor = Descriptor::new(directory, version, SSTableId::Sequence(1), version.format());
    let options = WriterOptions {
        column_index_bytes: argument(test, "block"),
        estimated_partitions: partitions.len() as u64,
        has_static_rows: table.has_statics(),
        writes_token_map: argument::<String>(test, "token_map").as_deref() != Some("no"),
        encoding_stats: EncodingStats {
            min_timestamp_micros: 0,
            min_local_deletion_secs: 0,
            min_ttl_secs: 0,
        },
        ..WriterOptions::default()
    };
    write_all(&env, &descriptor, &table, options, &partitions);
    let written = Written {
        env,
        descriptor,
        table,
        partitions,
    };
    let keys: Vec<String> = written
        .partitions
        .iter()
        .map(|partition| name_of(&partition.head.key))
        .collect();
    let answer = format!("partitions: {}\n", keys.join(" "));
    (written, answer)
}

/// A local deletion time.
fn secs_text(secs: u32) -> String {
    match secs {
        NO_DELETION_TIME => "none".to_owned(),
        secs => secs.to_string(),
    }
}

/// The name of a key of one int.
fn name_of(key: &DecoratedKey) -> String {
    i32::from_be_bytes(key.key[..].try_into().unwrap()).to_string()
}

fn key_named(name: &str) -> DecoratedKey {
    let number: i32 = name.trim().parse().unwrap();
    DecoratedKey::new(
        Partitioner::Murmur3,
        Bytes::copy_from_slice(&number.to_be_bytes()),
    )
}

impl Written {
    fn open(&self, test: &TestCase) -> Arc<SSTable> {
        let options = OpenOptions {
            finding: match argument::<String>(test, "by").as_deref() {
                Some("summary") => Finding::Summary,
                _ => Finding::TokenMap,
            },
            ..OpenOptions::default()
        };
        Arc::new(SSTable::open(&self.env, &self.descriptor, &options).unwrap())
    }

    fn bytes_of(&self, component: &Component) -> Vec<u8> {
        read_component(&*self.env, &self.descriptor, component)
            .unwrap()
            .unwrap()
    }

    fn data(&self) -> Arc<ChunkReader> {
        Arc::new(ChunkReader::open(&*self.env, &self.descriptor, None).unwrap())
    }

    fn index(&self) -> IndexScan {
        let sstable = SSTable::open(&self.env, &self.descriptor, &OpenOptions::default()).unwrap();
        let partitioner = Partitioner::Murmur3;
        let (header, data) = (sstable.header(), self.data());
        IndexScan::open(
            &*self.env,
            &self.descriptor,
            &data,
            header,
            &self.table,
            partitioner,
        )
        .unwrap()
    }

    /// Start and end in Data.db of each unfiltered, and its clustering if it is a row.
    fn unfiltereds(&self) -> Vec<(u64, u64, String)> {
        let sstable = Arc::new(SSTable::open(&self.env, &self.descriptor, &OpenOptions::default()).unwrap());
        let mut scan = sstable.data_scan(&self.table).unwrap();
        let mut found = Vec::new();
        while scan.next_partition().unwrap().is_some() {
            loop {
                let start = scan.position();
                let Some(unfiltered) = scan.next_unfiltered().unwrap() else {
                    break;
                };
                let name = match unfiltered {
                    Unfiltered::Row(row) if row.clustering.is_empty() => "row".to_owned(),
                    Unfiltered::Row(row) => {
                        let value = row.clustering.values()[0].clone().unwrap();
                        i32::from_be_bytes(value[..].try_into().unwrap()).to_string()
                    }
                    Unfiltered::Marker(_) => "marker".to_owned(),
                };
                found.push((start, scan.position(), name));
            }
        }
        found
    }

    fn components(&self) -> String {
        let mut out = String::new();
        let found = list_directory(&*self.env, &self.descriptor.directory).unwrap();
        let mut components = found[0].components.clone();
        components.sort_by(|a, b| a.0.name().cmp(b.0.name()));
        for (component, size) in components {
            let path = self.descriptor.path(&component);
            let _ = writeln!(out, "{component}: {size} bytes");
            match component {
                Component::Data => {
                    for partition in &self.partitions {
                        let key = name_of(&partition.head.key);
                        let _ = writeln!(
                            out,
                            "  partition {key}: {} unfiltereds",
                            partition.unfiltereds.len()
                        );
                    }
                }
                Component::Index | Component::Partitions => {
                    let mut index = self.index();
                    while let Some(entry) = index.next_partition().unwrap() {
                        let key = entry.key.clone().map_or("key in Data.db".to_owned(), |key| {
                            name_of(&DecoratedKey::new(Partitioner::Murmur3, key))
                        });
                        let blocks = index.blocks(&entry).unwrap().len();
                        let _ = writeln!(out, "  {key}: at {}, {blocks} blocks of rows", entry.position);
                    }
                }
                Component::Crc => {
                    let crcs = CrcFile::decode(&self.bytes_of(&component), &path).unwrap();
                    let _ = writeln!(out, "  {} CRCs of {} bytes", crcs.crcs.len(), crcs.chunk_length);
                }
                Component::CompressionInfo => {
                    let bytes = self.bytes_of(&component);
                    let info = CompressionInfo::decode(&bytes, self.descriptor.version, &path).unwrap();
                    let _ = writeln!(
                        out,
                        "  {}: {} chunks of {} bytes",
                        info.class,
                        info.offsets.len(),
                        info.chunk_length
                    );
                }
                Component::Statistics => {
                    let bytes = self.bytes_of(&component);
                    let stats = Statistics::decode(&bytes, self.descriptor.version, &path)
                        .unwrap()
                        .stats;
                    let _ = writeln!(
                        out,
                        "  rows {}, columns {}, timestamps {} to {}, TTLs {} to {}, deletion times {} to {}",
                        stats.total_rows,
                        stats.total_columns,
                        stats.min_timestamp_micros,
                        stats.max_timestamp_micros,
                        stats.min_ttl_secs,
                        stats.max_ttl_secs,
                        secs_text(stats.min_local_deletion_secs),
                        secs_text(stats.max_local_deletion_secs),
                    );
                }
                Component::Toc => {
                    for line in String::from_utf8(self.bytes_of(&component)).unwrap().lines() {
                        let _ = writeln!(out, "  {line}");
                    }
                }
                _ => {}
            }
        }
        out
    }

    fn presence(&self, test: &TestCase) -> String {
        let sstable = self.open(test);
        let mut out = String::new();
        for name in test.input.lines() {
            let key = key_named(name);
            let presence = match sstable.presence(&key, &KeyHash::of(&key.key)) {
                Presence::Outside => "outside",
                Presence::Absent => "absent",
                Presence::Possible(_) => "possible",
            };
            let position = match sstable.position_of(&key).unwrap() {
                Some(position) => format!("at {position}"),
                None => "not here".to_owned(),
            };
            let _ = writeln!(out, "{name}: {presence}, {position}");
        }
        out
    }

    fn ranges(&self, test: &TestCase) -> String {
        let sstable = self.open(test);
        let mut out = String::new();
        for line in test.input.lines() {
            let (start, end) = line[1..line.len() - 1].split_once(',').unwrap();
            let range = KeyRange {
                start: match (start.trim(), line.starts_with('[')) {
                    ("*", _) => KeyBound::Start,
                    (key, true) => KeyBound::Before(key_named(key)),
                    (key, false) => KeyBound::After(key_named(key)),
                },
                end: match (end.trim(), line.ends_with(']')) {
                    ("*", _) => KeyBound::End,
                    (key, true) => KeyBound::After(key_named(key)),
                    (key, false) => KeyBound::Before(key_named(key)),
                },
            };
            let bound = match sstable.lower_bound(&range) {
                None => "none".to_owned(),
                Some(bound) => {
                    let mut keys = self.partitions.iter().map(|partition| &partition.head.key);
                    keys.find(|key| **key >= bound)
                        .map_or("the end".to_owned(), name_of)
                }
            };
            let _ = writeln!(out, "{line}: from {bound}");
        }
        out
    }

    fn blocks(&self) -> String {
        let mut out = String::new();
        let unfiltereds = self.unfiltereds();
        let mut index = self.index();
        while let Some(entry) = index.next_partition().unwrap() {
            let starts: Vec<u64> = index
                .blocks(&entry)
                .unwrap()
                .iter()
                .map(|block| block.position)
                .collect();
            for (number, start) in starts.iter().enumerate() {
                let end = starts.get(number + 1).copied().unwrap_or(u64::MAX);
                let rows: Vec<&str> = unfiltereds
                    .iter()
                    .filter(|(at, ..)| (*start..end).contains(at))
                    .map(|(.., name)| name.as_str())
                    .collect();
                let _ = writeln!(out, "block at {start}: {}", rows.join(" "));
            }
        }
        match out.is_empty() {
            true => "no row index\n".to_owned(),
            false => out,
        }
    }

    fn slices(&self, test: &TestCase) -> String {
        let ranges: String = test
            .input
            .lines()
            .map(|line| format!("  {line} del@1\n"))
            .collect();
        let mutations = parse_mutations(
            &format!("partition 1\n{ranges}"),
            &self.table,
            Partitioner::Murmur3,
        )
        .unwrap();
        let filter = ClusteringFilter {
            slices: mutations[0]
                .update
                .ranges
                .iter()
                .map(|range| Slice {
                    start: range.start.clone(),
                    end: range.end.clone(),
                })
                .collect(),
            reversed: test.args.contains_key("reversed"),
            ..ClusteringFilter::all()
        };
        let sstable = self.open(test);
        let key = &self.partitions.last().unwrap().head.key;
        begin_trace();
        let mut cursor = sstable
            .partition(&self.table, key, &Arc::new(filter))
            .unwrap()
            .unwrap();
        let text = print_cursor(&mut cursor, &self.table).unwrap();
        let events = finish_trace();
        let chunk_bytes = u64::from(self.data().chunk_length()) + CHUNK_CRC_BYTES;
        let chunks: Vec<u64> = events
            .iter()
            .filter(|event| event.verb == IoVerb::Read && FileKind::of(&event.path) == FileKind::Data)
            .flat_map(|event| event.offset / chunk_bytes..(event.offset + event.bytes).div_ceil(chunk_bytes))
            .collect();
        let is_fetched = |start: u64, end: u64| {
            let length = u64::from(self.data().chunk_length());
            (start / length..end.div_ceil(length)).any(|chunk| chunks.contains(&chunk))
        };
        let names: Vec<String> = self
            .unfiltereds()
            .into_iter()
            .filter(|(start, end, _)| is_fetched(*start, *end))
            .map(|(.., name)| name)
            .collect();
        let rows: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.split(" v=").next().unwrap().trim().to_owned())
            .collect();
        let rows = match rows.is_empty() {
            true => "no rows".to_owned(),
            false => rows.join("\n"),
        };
        format!("{rows}\nfetched: {}\n", names.join(" "))
    }
}

#[test]
fn sstables_are_as_the_files_specify() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/spec"), |file| {
        let mut written = None;
        file.run(|test| match (test.directive.as_str(), &written) {
            ("write", _) => {
                let (sstable, answer) = write(test);
                written = Some(sstable);
                answer
            }
            ("components", Some(sstable)) => sstable.components(),
            ("presence", Some(sstable)) => sstable.presence(test),
            ("ranges", Some(sstable)) => sstable.ranges(test),
            ("blocks", Some(sstable)) => sstable.blocks(),
            ("slices", Some(sstable)) => sstable.slices(test),
            (other, _) => panic!("unknown directive {other}, or no SSTable written"),
        });
    });
}
