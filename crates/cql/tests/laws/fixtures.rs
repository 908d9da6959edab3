//! Statements that a real Cassandra 5 accepted, and schemas as it printed them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use ilion_cql::{parse, split_statements};

fn fixtures() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/cassandra-5.0");
    if !folder.is_dir() {
        println!("skipped: no fixtures at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// Every file below `folder` that `wanted` accepts, decompressed.
fn texts(folder: &Path, wanted: &dyn Fn(&str) -> bool, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned();
        if path.is_dir() {
            texts(&path, wanted, found);
        } else if wanted(&name) {
            let bytes = fs::read(&path).expect("a readable file");
            let mut text = String::new();
            if name.ends_with(".gz") {
                flate2::read::GzDecoder::new(&bytes[..])
                    .read_to_string(&mut text)
                    .expect("gzip of text");
            } else {
                text = String::from_utf8(bytes).expect("text");
            }
            found.push((path, text));
        }
    }
}

/// Parses all statements, and prints and parses some again. Returns their number.
fn check(files: &[(PathBuf, String)]) -> usize {
    let mut count = 0;
    for (path, text) in files {
        for statement in split_statements(text) {
            let parsed = parse(statement);
            let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}: {statement}", path.display()));
            if count % 8 == 0 {
                let printed = parsed.statement.to_string();
                assert_eq!(parse(&printed), Ok(parsed), "{}: {printed}", path.display());
            }
            count += 1;
        }
    }
    count
}

#[test]
fn statements_that_cassandra_took_parse() {
    let Some(folder) = fixtures() else { return };
    let mut files = Vec::new();
    texts(
        &folder.join("statements"),
        &|name| name.contains(".cql"),
        &mut files,
    );
    let count = check(&files);
    println!("{count} statements of {} files", files.len());
    assert!(count > 1000);
}

#[test]
fn schemas_that_cassandra_printed_parse() {
    let Some(folder) = fixtures() else { return };
    let mut files = Vec::new();
    texts(
        &folder,
        &|name| name == "schema.cql" || name == "describe.cql",
        &mut files,
    );
    assert!(check(&files) >= files.len());
}
