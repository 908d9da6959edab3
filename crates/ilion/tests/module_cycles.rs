//! Modules that need each other cannot be understood apart. The cycles that are left are listed in `testdata/module_cycles.txt`,
//! for each crate the modules of each cycle; a new one fails this test. `REWRITE=1` writes the list: it should only get shorter.
//!
//! A module needs another if a `use` of it begins with `crate::` or `super::` and names the other. Re-exports are not followed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The sources of a crate by module, tests left out.
fn modules(root: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" && name != "bin" {
                modules(&path, &format!("{prefix}{name}::"), found);
            }
            continue;
        }
        let Some(stem) = name
            .strip_suffix(".rs")
            .filter(|stem| !["tests", "lib", "main"].contains(stem))
        else {
            continue;
        };
        let module = match stem {
            "mod" => prefix.trim_end_matches("::").to_owned(),
            stem => format!("{prefix}{stem}"),
        };
        let text = fs::read_to_string(&path).unwrap();
        let production = text.split("\n#[cfg(test)]").next().unwrap().to_owned();
        found.insert(module, production);
    }
}

/// The paths of modules that are used, as `use` lines have them: `crate::a::b`, `super::c`.
fn used_paths(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let uses = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let visible = line
            .strip_prefix("pub")
            .map_or(line, |rest| match rest.split_once("use ") {
                Some((visibility, _)) if visibility.len() < 20 => &rest[visibility.len()..],
                _ => "",
            });
        visible.trim_start().strip_prefix("use ")
    });
    uses.map(|path| {
        let end = path.find(['{', ';', ' ']).unwrap_or(path.len());
        path[..end].split("::").filter(|part| !part.is_empty()).collect()
    })
}

fn graph(found: &BTreeMap<String, String>) -> Graph {
    let mut graph = Graph::new();
    for (module, text) in found {
        let mut targets = BTreeSet::new();
        for path in used_paths(text) {
            let base: Vec<&str> = match path.first() {
                Some(&"crate") => Vec::new(),
                Some(&"super") => {
                    let parts: Vec<&str> = module.split("::").collect();
                    parts[..parts.len() - 1].to_vec()
                }
                _ => continue,
            };
            let named: Vec<&str> = base.into_iter().chain(path[1..].iter().copied()).collect();
            let target = (1..=named.len()).rev().map(|len| named[..len].join("::"));
            targets.extend(
                target
                    .into_iter()
                    .find(|target| found.contains_key(target))
                    .filter(|target| target != module),
            );
        }
        graph.insert(module.clone(), targets);
    }
    graph
}

fn reachable<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&str> = graph[from].iter().map(String::as_str).collect();
    while let Some(module) = left.pop() {
        if seen.insert(module) {
            left.extend(graph[module].iter().map(String::as_str));
        }
    }
    seen
}

/// The sets of modules of which each needs all others.
fn cycles(graph: &Graph) -> BTreeSet<Vec<&str>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|module| (module.as_str(), reachable(graph, module)))
        .collect();
    let cycle_of = |module: &str| -> Vec<&str> {
        let others = reachable[module].iter().copied();
        others.filter(|other| reachable[other].contains(module)).collect()
    };
    let cycles = graph.keys().map(|module| cycle_of(module));
    cycles.filter(|cycle| cycle.len() > 1).collect()
}

#[test]
fn no_crate_has_a_cycle_of_modules_that_is_not_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names: Vec<String> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| crates.join(name).join("src").is_dir())
        .collect();
    names.sort();
    let mut list = String::new();
    for name in &names {
        let mut found = BTreeMap::new();
        modules(&crates.join(name).join("src"), "", &mut found);
        for cycle in cycles(&graph(&found)) {
            list += &format!("{name}: {}\n", cycle.join(" "));
        }
    }
    let path = crates.join("ilion/testdata/module_cycles.txt");
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &list).unwrap();
    }
    assert_eq!(
        list,
        fs::read_to_string(&path).unwrap(),
        "a cycle of modules came or went"
    );
}
