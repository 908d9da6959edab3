//! Finds fixtures and normalizes their texts; writes and reads whole SSTables.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv, RealEnv};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, Partition, ReadError};
use ilion_schema::TableSchema;
use ilion_sstable::{
    ChunkCache, Component, Descriptor, OpenOptions, SSTable, SSTableWriter, Scan, WriterOptions,
};
use ilion_types::Partitioner;

/// One fixture: the SSTables of a table, and their expected content.
pub struct Case {
    pub name: String,
    pub directory: PathBuf,
    pub partitioner: Partitioner,
    pub sstables: Vec<Descriptor>,
}

const FORMATS: [&str; 3] = ["nb", "oa", "da"];

/// The cases of `testdata/`, and of the whole collection if it exists.
pub fn cases() -> Vec<Case> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")];
    match collection() {
        Some(folder) => folders.push(folder),
        None => eprintln!("note: only the fixtures of testdata/ are tested; set ILION_FIXTURES for all"),
    }
    let mut cases: Vec<Case> = folders.iter().flat_map(|folder| cases_in(folder)).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases.dedup_by(|a, b| a.name == b.name);
    cases
}

fn collection() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("ILION_FIXTURES") {
        return Some(folder.into());
    }
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .map(|folder| folder.join("shared/fixtures/cassandra-5.0"))
        .find(|folder| folder.is_dir())
}

/// The cases of `testdata/`.
pub fn small_cases() -> Vec<Case> {
    cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata"))
}

fn cases_in(folder: &Path) -> Vec<Case> {
    let mut directories: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("case.json").is_file())
        .collect();
    directories.sort();
    let cases = directories.into_iter().map(Case::load);
    cases.filter(Case::is_readable).collect()
}

impl Case {
    fn load(directory: PathBuf) -> Self {
        let text = std::fs::read_to_string(directory.join("case.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let files = directory
            .join(json["keyspace"].as_str().unwrap())
            .join(json["table"].as_str().unwrap());
        let sstables = json["sstables"].as_array().unwrap().iter().map(|entry| {
            let name = format!("{}-Data.db", entry["sstable"].as_str().unwrap());
            let (descriptor, component) = Descriptor::from_path(&files.join(name)).unwrap();
            assert_eq!(component, Component::Data);
            descriptor
        });
        Self {
            name: directory.file_name().unwrap().to_str().unwrap().to_owned(),
            partitioner: Partitioner::from_class(json["partitioner"].as_str().unwrap()).unwrap(),
            sstables: sstables.collect(),
            directory,
        }
    }

    fn is_readable(&self) -> bool {
        self.sstables
            .iter()
            .all(|descriptor| FORMATS.contains(&descriptor.version.as_str()))
    }

    /// Opens an SSTable, with the table of its header.
    pub fn open(&self, index: usize) -> (Arc<SSTable>, Arc<TableSchema>) {
        let env: Arc<dyn Env> = RealEnv::new();
        let options = OpenOptions {
            partitioner: self.partitioner,
            chunk_cache: Some(Arc::new(ChunkCache::new(1 << 20))),
            ..OpenOptions::default()
        };
        let sstable = SSTable::open(&env, &self.sstables[index], &options).unwrap();
        let table = sstable.header().to_table("fx", "fixture").unwrap();
        (Arc::new(sstable), table)
    }

    /// The bytes of each component of an SSTable.
    pub fn components(&self, index: usize) -> Files {
        let descriptor = &self.sstables[index];
        Component::known()
            .filter_map(|component| {
                let bytes = std::fs::read(descriptor.path(&component)).ok()?;
                Some((component, bytes))
            })
            .collect()
    }

    /// The output of `sstabledump`, without what depends on the clock and on positions.
    pub fn expected(&self, index: usize) -> String {
        let name = match self.sstables.len() {
            1 => "expected.jsonl".to_owned(),
            _ => format!("expected.{}.jsonl", index + 1),
        };
        let text = without(&self.text(&name), "\"position\":");
        without(&text, "\"expired\":")
    }

    /// A text file of the case, decompressed if needed.
    pub fn text(&self, name: &str) -> String {
        let path = self.directory.join(name);
        if let Ok(text) = std::fs::read_to_string(&path) {
            return text;
        }
        let zipped = std::fs::read(path.with_file_name(format!("{name}.gz"))).unwrap();
        String::from_utf8(gunzip(&zipped)).unwrap()
    }
}

/// The components of an SSTable, with their bytes.
pub type Files = Vec<(Component, Vec<u8>)>;

/// A disk in memory with the components of an SSTable.
pub fn disk_with(files: &Files, descriptor: &Descriptor) -> Arc<dyn Env> {
    let env = MemEnv::new(1).shared();
    env.create_dir_all(&descriptor.directory).unwrap();
    for (component, bytes) in files {
        let mut file = env.create(&descriptor.path(component)).unwrap();
        file.append(bytes).unwrap();
    }
    env
}

/// The keys of the numbers below `count`, in the order of partitions.
pub fn int_keys(count: i32) -> Vec<DecoratedKey> {
    let key = |number: i32| Bytes::copy_from_slice(&number.to_be_bytes());
    let mut keys: Vec<DecoratedKey> = (0..count)
        .map(|number| DecoratedKey::new(Partitioner::Murmur3, key(number)))
        .collect();
    keys.sort();
    keys
}

/// Writes an SSTable with these partitions.
pub fn write_all(
    env: &Arc<dyn Env>,
    descriptor: &Descriptor,
    table: &Arc<TableSchema>,
    options: WriterOptions,
    partitions: &[Partition],
) {
    let mut writer = SSTableWriter::new(env, descriptor, table, options).unwrap();
    for partition in partitions {
        write_partition(&mut writer, partition);
    }
    writer.finish().unwrap();
}

/// Writes one partition.
pub fn write_partition(writer: &mut SSTableWriter, partition: &Partition) {
    writer.begin_partition(&partition.head).unwrap();
    for unfiltered in &partition.unfiltereds {
        writer.add(unfiltered).unwrap();
    }
    writer.finish_partition().unwrap();
}

/// All partitions of the cursor.
pub fn read_all(cursor: &mut dyn Cursor) -> Vec<Partition> {
    try_read_all(cursor).unwrap()
}

/// The same, for a source that may be damaged.
pub fn try_read_all(cursor: &mut dyn Cursor) -> Result<Vec<Partition>, ReadError> {
    std::iter::from_fn(|| Partition::read_next(cursor).transpose()).collect()
}

/// All partitions of the SSTable.
pub fn scan_all(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> Vec<Partition> {
    let filter = Arc::new(ClusteringFilter::all());
    read_all(&mut sstable.cursor(table, KeyRange::all(), filter, Scan::Sequential))
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut text)
        .unwrap();
    text
}

/// The text without the fields of this name (numbers or words), and the comma before each.
fn without(text: &str, name: &str) -> String {
    let mut pieces = text.split(name);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let value_len = piece.find([',', '}']).unwrap();
        assert_eq!(out.pop(), Some(','));
        out.push_str(&piece[value_len..]);
    }
    out
}

/// Compares line by line, so that a failure shows one partition.
pub fn assert_same_lines(case: &Case, expected: &str, found: &str) {
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        if expected != found && !is_same_but_for_floats(expected, found) {
            let at = expected
                .bytes()
                .zip(found.bytes())
                .take_while(|(expected, found)| expected == found)
                .count();
            let around = |text: &str| {
                let bytes = text.as_bytes();
                let range = at.saturating_sub(120)..(at + 120).min(bytes.len());
                String::from_utf8_lossy(&bytes[range]).into_owned()
            };
            panic!(
                "{}: line {number}:\nexpected {}\nfound    {}",
                case.name,
                around(expected),
                around(found)
            );
        }
    }
    assert_eq!(expected.lines().count(), found.lines().count(), "{}", case.name);
}

/// Java before 19 prints some floats with an extra digit.
fn is_same_but_for_floats(expected: &str, found: &str) -> bool {
    fn tokens(text: &str) -> std::str::Split<'_, [char; 7]> {
        text.split([',', ':', '{', '}', '[', ']', ' '])
    }
    let is_same = |expected: &str, found: &str| {
        if expected == found {
            return true;
        }
        match (expected.parse::<f64>(), found.parse::<f64>()) {
            (Ok(a), Ok(b)) if found.contains('.') => (a - b).abs() <= a.abs() * 1e-7,
            _ => false,
        }
    };
    tokens(expected).count() == tokens(found).count()
        && tokens(expected)
            .zip(tokens(found))
            .all(|(expected, found)| is_same(expected, found))
}
