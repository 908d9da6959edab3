//! Crates depend only on crates of lower layers, as the table of ARCHITECTURE.md promises, and the table names what they depend on.
//! Dependencies of tests do not count.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A row of the table of crates.
struct Described {
    layer: u32,
    depends_on: BTreeSet<String>,
}

/// The rows of the table by the name of the crate; checks that they are in the order of layers.
fn table(text: &str) -> BTreeMap<String, Described> {
    let mut described = BTreeMap::new();
    let mut last = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [layer, name, .., depends_on] = cells[..] else {
            continue;
        };
        let Ok(layer) = layer.parse() else {
            continue;
        };
        assert!(
            layer >= last,
            "the row of {name} is behind a row of a higher layer"
        );
        last = layer;
        let words = depends_on
            .split(',')
            .filter_map(|part| part.split_whitespace().next());
        let row = Described {
            layer,
            depends_on: words.map(str::to_owned).collect(),
        };
        let is_new = described.insert(name.trim_matches('`').to_owned(), row).is_none();
        assert!(is_new, "the table has two rows for {name}");
    }
    described
}

/// The crates of the workspace that a manifest depends on, outside of tests.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut is_counted = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_counted = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        let name = line.split(['.', '=', ' ']).next().unwrap();
        let is_ours = name == "ilion" || name.starts_with("ilion-");
        if is_counted && is_ours {
            found.insert(name.strip_prefix("ilion-").unwrap_or(name).to_owned());
        }
    }
    found
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let table = table(&fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).unwrap());
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(Path::new(ROOT).join("crates")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let Some(row) = table.get(&name) else {
            wrong.push(format!("{name} has no row in the table"));
            continue;
        };
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let dependencies = dependencies(&manifest);
        for other in &dependencies {
            if table.get(other).is_none_or(|other| other.layer >= row.layer) {
                wrong.push(format!("{name} depends on {other}, whose layer is not lower"));
            }
        }
        // The row of `ilion` names the dependencies of the program in words.
        if name != "ilion" && dependencies != row.depends_on {
            let named = &row.depends_on;
            wrong.push(format!("{name}: its row names {named:?}, not {dependencies:?}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        count,
        table.len(),
        "the table has a row for a crate that does not exist"
    );
}
