//! `convert`, `merge` and `split` write the same files whether plain rows are copied in place or row by row, with the same checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{DirEntry, Env, MemEnv};
use ilion_rows::Partition;
use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_schema::TableSchema;
use ilion_sstable::{Component, Descriptor, Format, SSTableId, SSTableWriter, Version, WriterOptions};
use ilion_types::Partitioner;

use super::super::{
    Command, ConvertArguments, Files, MergeArguments, OutputFormat, ScrubArguments, SplitArguments,
};
use super::{copied, ran, small_fixtures};

/// Wide partitions. Most rows are plain, many with the same layout, with deletions around and between them.
fn wide() -> (&'static str, String) {
    let mut text = String::new();
    for partition in 0..6 {
        let deleted = ["", " del@3/3"][partition % 2];
        text += &format!("partition {partition}{deleted}\n");
        for row in 0..400 {
            text += &match row {
                100 => "  [100, 180) del@4/4\n".to_owned(),
                200 => format!("  row {row} live@5 ttl=60/1000 a=1@5 b='x'@5\n"),
                300 => format!("  row {row} live@5 a=del@6/6 b='x'@5\n"),
                row if row % 37 == 0 => format!("  row {row} live@5 b='{row}'@9\n"),
                row => format!("  row {row} live@5 a={partition}@5 b='x{}'@5\n", row % 8),
            };
        }
    }
    ("k int pk, c int ck, s text static, a int, b text", text)
}

/// Partitions of one row.
fn narrow() -> (&'static str, String) {
    let row = |key: usize| match key % 50 {
        7 => format!("partition {key} del@3/3\n  row live@5 a=1@5 b='x'@5\n"),
        8 => format!("partition {key}\n  row live@5 ttl=60/1000 a=1@5\n"),
        9 => format!("partition {key}\n  row live@5 a=del@6/6 b='y'@5\n"),
        _ => format!(
            "partition {key}\n  row live@5 a={key}@5 b='text {}'@5\n",
            key % 10
        ),
    };
    ("k int pk, a int, b text", (0..600).map(row).collect())
}

fn partitions((table, text): &(&str, String)) -> (Arc<TableSchema>, Vec<Partition>) {
    let mut builder = parse_table(table).unwrap().to_builder();
    builder.options.compression = [("class".to_owned(), String::new())].into();
    let table = builder.build();
    let partitions = parse_partitions(text, &table, Partitioner::Murmur3).unwrap();
    (table, partitions)
}

/// Writes the partitions in turn to `count` SSTables, without checksums.
fn written(table: &Arc<TableSchema>, partitions: &[Partition], count: usize) -> (MemEnv, Vec<PathBuf>) {
    let mem = MemEnv::new(1);
    let env = mem.shared();
    let directory = Path::new("/in");
    env.create_dir_all(directory).unwrap();
    let write = |index: usize| {
        let id = SSTableId::Sequence(u32::try_from(index).unwrap() + 1);
        let descriptor = Descriptor::new(directory, Version::NB, id, Format::Big);
        let mut writer = SSTableWriter::new(&env, &descriptor, table, WriterOptions::default()).unwrap();
        for partition in partitions.iter().skip(index).step_by(count) {
            writer.begin_partition(&partition.head).unwrap();
            for unfiltered in &partition.unfiltereds {
                writer.add(unfiltered).unwrap();
            }
            writer.finish_partition().unwrap();
        }
        writer.finish().unwrap();
        // No other file refers to the checksums.
        for component in [Component::Crc, Component::Toc, Component::Checksums] {
            env.remove_file(&descriptor.path(&component)).unwrap();
        }
        descriptor.path(&Component::Data)
    };
    let paths = (0..count).map(write).collect();
    (mem, paths)
}

fn files(files: &[PathBuf]) -> Files {
    Files {
        files: files.to_vec(),
    }
}

fn convert(paths: &[PathBuf]) -> Command {
    Command::Convert(ConvertArguments {
        to: OutputFormat::Nb,
        directory: PathBuf::from("/convert"),
        files: files(paths),
    })
}

fn merge(paths: &[PathBuf]) -> Command {
    Command::Merge(MergeArguments {
        to: None,
        directory: PathBuf::from("/merge"),
        files: files(paths),
    })
}

fn split(path: &Path) -> Command {
    Command::Split(SplitArguments {
        size_mib: 0,
        directory: PathBuf::from("/split"),
        file: path.to_path_buf(),
    })
}

/// A cursor that hides plain rows, so that all are read row by row.
fn scrub(paths: &[PathBuf]) -> Command {
    Command::Scrub(ScrubArguments {
        directory: PathBuf::from("/scrub"),
        files: files(paths),
    })
}

/// Names and bytes of all files.
fn contents(env: &Arc<dyn Env>, directory: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(directory);
    let entries = env.list(directory).unwrap().into_iter();
    let read = |entry: DirEntry| {
        let bytes = env.read_all(&directory.join(&entry.name), 1 << 30).unwrap();
        (entry.name, bytes)
    };
    entries.map(read).collect()
}

fn data(env: &Arc<dyn Env>, path: &str) -> Vec<u8> {
    env.read_all(Path::new(path), 1 << 30).unwrap()
}

#[test]
fn what_is_passed_on_is_what_is_made_of_rows_one_by_one() {
    for contained in [wide(), narrow()] {
        let (table, partitions) = partitions(&contained);
        let (mem, paths) = written(&table, &partitions, 1);
        let env = mem.shared();
        ran(&env, &convert(&paths)).unwrap();
        ran(&env, &scrub(&paths)).unwrap();
        assert!(
            contents(&env, "/convert") == contents(&env, "/scrub"),
            "{table:?}"
        );

        let (mem, halves) = written(&table, &partitions, 2);
        let of_halves = mem.shared();
        ran(&of_halves, &merge(&halves)).unwrap();
        let whole = data(&env, "/convert/nb-1-big-Data.db");
        assert!(data(&of_halves, "/merge/nb-1-big-Data.db") == whole, "{table:?}");

        ran(&env, &split(&paths[0])).unwrap();
        ran(&env, &merge(&[PathBuf::from("/split")])).unwrap();
        assert!(data(&env, "/merge/nb-1-big-Data.db") == whole, "{table:?}");
    }
}

#[test]
fn fixtures_are_passed_on_as_their_rows_are_one_by_one() {
    for fixture in small_fixtures() {
        let (env, path) = copied(&fixture, "");
        let format = OutputFormat::like(&Descriptor::from_path(&path).unwrap().0);
        let paths = [path];
        let to_itself = Command::Convert(ConvertArguments {
            to: format,
            directory: PathBuf::from("/convert"),
            files: files(&paths),
        });
        ran(&env, &to_itself).unwrap();
        ran(&env, &scrub(&paths)).unwrap();
        assert!(
            contents(&env, "/convert") == contents(&env, "/scrub"),
            "{}",
            fixture.name
        );
    }
}

/// Every tool fails with this message, and leaves no output.
fn assert_refused(env: &Arc<dyn Env>, paths: &[PathBuf], expected: &str) {
    for (command, directory) in [
        (convert(paths), "/convert"),
        (merge(paths), "/merge"),
        (split(&paths[0]), "/split"),
    ] {
        let error = format!("{:#}", ran(env, &command).unwrap_err());
        assert!(error.contains(expected), "{error}");
        let left = contents(env, directory);
        // Complete pieces of a split stay.
        assert!(directory == "/split" || left.is_empty(), "{left:?}");
    }
}

/// Flips bits in the last byte of the first match.
fn corrupt(mem: &MemEnv, path: &Path, found: &[u8], flipped: u8) {
    let bytes = mem.shared().read_all(path, 1 << 30).unwrap();
    let at = bytes
        .windows(found.len())
        .position(|bytes| bytes == found)
        .unwrap();
    mem.corrupt_byte(path, (at + found.len() - 1) as u64, flipped)
        .unwrap();
}

#[test]
fn plain_rows_that_are_out_of_order_are_refused() {
    let (table, partitions) = partitions(&wide());
    // Among rows with the same layout, at their start, and after a row that is not plain.
    for (row, flipped) in [(21, 0x10), (3, 0x02), (201, 0x08)] {
        let (mem, paths) = written(&table, &partitions, 1);
        let usual_flags = 0x24;
        corrupt(&mem, &paths[0], &[usual_flags, 0, 0, 0, 0, row], flipped);
        let expected = "a row or marker that sorts above the one before";
        assert_refused(&mem.shared(), &paths, expected);
    }
}

#[test]
fn plain_partitions_that_are_out_of_order_are_refused() {
    let (table, partitions) = partitions(&narrow());
    let (mem, paths) = written(&table, &partitions, 1);
    corrupt(&mem, &paths[0], &[0, 4, 0, 0, 1, 0xF4], 1);
    let expected = "a partition whose key is above that of the partition before";
    assert_refused(&mem.shared(), &paths, expected);
}
