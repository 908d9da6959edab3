//! The tools on files that Cassandra wrote, compared with the output of Cassandra's own tools. The small cases of the SSTable crate
//! are always used; the whole collection if `ILION_FIXTURES` names it, or if a parent folder contains it.

mod annotate;
mod copied;
mod damage;
mod dump;
mod metadata;
mod rewrite;
mod scrub;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use ilion_env::{Env, MemEnv, RealEnv};

use super::{Command, DumpArguments, Files, run_with};

/// One SSTable of a fixture.
struct Fixture {
    name: String,
    /// Directory of the case, with the expected texts.
    directory: PathBuf,
    data: PathBuf,
    expected: String,
    metadata: String,
    written_secs: i64,
}

const FORMATS: [&str; 3] = ["nb", "oa", "da"];

fn small_fixtures() -> Vec<Fixture> {
    fixtures_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../sstable/testdata"))
}

fn fixtures() -> Vec<Fixture> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let collection = std::env::var_os("ILION_FIXTURES").map(PathBuf::from).or_else(|| {
        above
            .map(|folder| folder.join("shared/fixtures/cassandra-5.0"))
            .find(|folder| folder.is_dir())
    });
    collection.map_or_else(small_fixtures, |folder| fixtures_in(&folder))
}

fn fixtures_in(folder: &Path) -> Vec<Fixture> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("case.json").is_file())
        .collect();
    cases.sort();
    cases.iter().flat_map(|case| load(case)).collect()
}

fn load(directory: &Path) -> Vec<Fixture> {
    let json: serde_json::Value = serde_json::from_str(&text(&directory.join("case.json"))).unwrap();
    let field = |name: &str| json[name].as_str().unwrap().to_owned();
    if !FORMATS.contains(&field("format").as_str()) {
        return Vec::new();
    }
    let files = directory.join(field("keyspace")).join(field("table"));
    let written = ilion_types::CqlType::Timestamp
        .parse_plain(&field("written"))
        .unwrap();
    let written_secs = i64::from_be_bytes(written.try_into().unwrap()) / 1000;
    let sstables = json["sstables"].as_array().unwrap();
    let fixture = |(index, entry): (usize, &serde_json::Value)| {
        let name = |stem: &str, extension: &str| match sstables.len() {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}.{}.{extension}", index + 1),
        };
        Fixture {
            name: format!(
                "{} {}",
                directory.file_name().unwrap().to_string_lossy(),
                index + 1
            ),
            directory: directory.to_path_buf(),
            data: files.join(format!("{}-Data.db", entry["sstable"].as_str().unwrap())),
            expected: name("expected", "jsonl"),
            metadata: name("metadata", "txt"),
            written_secs,
        }
    };
    sstables.iter().enumerate().map(fixture).collect()
}

/// The text of a file, which may be zipped.
fn text(path: &Path) -> String {
    if let Ok(text) = std::fs::read_to_string(path) {
        return text;
    }
    let zipped = std::fs::File::open(format!("{}.gz", path.display())).unwrap();
    std::io::read_to_string(GzDecoder::new(zipped)).unwrap()
}

/// A copy of the fixture's files in memory, without those whose names end with `without`; and the path of its Data.db.
fn copied(fixture: &Fixture, without: &str) -> (Arc<dyn Env>, PathBuf) {
    let env = MemEnv::new(1).shared();
    let directory = PathBuf::from("/ks/t");
    env.create_dir_all(&directory).unwrap();
    for entry in std::fs::read_dir(fixture.data.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if without.is_empty() || !name.ends_with(without) {
            let mut file = env.create(&directory.join(name)).unwrap();
            file.append(&std::fs::read(&path).unwrap()).unwrap();
        }
    }
    let data = directory.join(fixture.data.file_name().unwrap());
    (env, data)
}

/// The output of a command.
fn ran(env: &Arc<dyn Env>, command: &Command) -> anyhow::Result<String> {
    let mut out = Vec::new();
    run_with(env, command, &mut out)?;
    Ok(String::from_utf8(out)?)
}

/// Rows without positions.
fn rows(env: &Arc<dyn Env>, path: &Path) -> Vec<String> {
    let command = Command::Dump(DumpArguments {
        annotate: false,
        debug: false,
        files: Files {
            files: vec![path.to_path_buf()],
        },
        lines: true,
        raw_times: true,
        keys_only: false,
        keys: Vec::new(),
        excluded: Vec::new(),
    });
    let text = ran(env, &command).unwrap();
    text.lines().map(without_positions).collect()
}

fn without_positions(line: &str) -> String {
    let mut pieces = line.split(",\"position\":");
    let mut out = pieces.next().unwrap().to_owned();
    for piece in pieces {
        out.push_str(piece.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    out
}

fn real_env() -> Arc<dyn Env> {
    RealEnv::new()
}
