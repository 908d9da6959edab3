//! A wrapper of a cursor that does not forward a fast path returns the same rows, only slowly. So `testdata/cursors.txt` lists every
//! implementation of `Cursor`, with the fast paths that it has of its own or forwards, and those that it is without. A change of the
//! list fails this test. `REWRITE=1` writes the list: a name that moves to `without` makes reads slower, so say why.
//!
//! What the wrappers do when they are called is tested in their crates (`ilion_rows::recorder`).

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FAST: [&str; 5] = [
    "lower_bound",
    "peek",
    "plain_partitions",
    "plain_rows",
    "skip_deleted",
];

/// The implementations in a file outside of its tests: the name of each type, and the fast paths that it is without.
fn implementations(text: &str) -> Vec<(String, BTreeSet<&str>)> {
    let production = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    for block in production.split("\nimpl").skip(1) {
        let head = block.lines().next().unwrap();
        let Some((_, name)) = head.split_once(" Cursor for ") else {
            continue;
        };
        let body = block.split("\n}").next().unwrap();
        let mut without = BTreeSet::new();
        for part in body.split("cursor_methods!(without:").skip(1) {
            without.extend(part.split(')').next().unwrap().split_whitespace());
        }
        found.push((name.trim_end_matches(" {").to_owned(), without));
    }
    found
}

/// Adds a line for each implementation below a directory.
fn list(directory: &Path, name: &str, lines: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            list(&path, name, lines);
            continue;
        }
        if !file.ends_with(".rs") || file == "tests.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (cursor, without) in implementations(&text) {
            let of = |is_without: bool| {
                let chosen = FAST
                    .iter()
                    .filter(|method| without.contains(*method) == is_without);
                let names: Vec<&str> = chosen.copied().collect();
                if names.is_empty() {
                    "-".to_owned()
                } else {
                    names.join(" ")
                }
            };
            lines.insert(format!(
                "{name} {cursor}: has {}; without {}",
                of(false),
                of(true)
            ));
        }
    }
}

#[test]
fn every_cursor_is_listed_with_its_fast_paths() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(root.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.join("src").is_dir() {
            list(&path.join("src"), name, &mut lines);
        }
    }
    let found: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = root.join("testdata/cursors.txt");
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let known = fs::read_to_string(&path).unwrap();
    assert_eq!(found, known, "REWRITE=1 writes the list");
}

#[test]
fn implementations_are_found_with_their_macros() {
    let text = "
impl<C: Cursor> Cursor for Held<C> {
    fn peek(&mut self) {
    }
    ilion_rows::cursor_methods!(forward cursor: plain_rows);
    ilion_rows::cursor_methods!(without: lower_bound
        plain_partitions);
}

impl Other {
}

#[cfg(test)]
mod tests {
impl Cursor for Numbers {
";
    let without = BTreeSet::from(["lower_bound", "plain_partitions"]);
    assert_eq!(implementations(text), [("Held<C>".to_owned(), without)]);
}
