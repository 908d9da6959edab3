//! Modules that need each other cannot be understood apart. The cycles that are left are listed in `testdata/module_cycles.txt`,
//! for each crate the modules of each cycle; a new one fails this test. `REWRITE=1` writes the list: it should only get shorter.
//!
//! A module needs another if its code names the other by a path that begins with `crate::` or `super::`. Tests do not count, and
//! re-exports are not followed.

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
        found.insert(module, without_tests(&text));
    }
}

/// The lines of a file without the items that are marked with `#[cfg(test)]`. The files are formatted: an item ends with the first
/// line of its own indentation that closes it.
fn without_tests(text: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let (mut production, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            production += line;
            production.push('\n');
            continue;
        }
        let is_last = |of_item: &&str| {
            let is_open = of_item.starts_with(' ') && indentation(of_item) > indentation(line);
            let is_attribute = of_item.trim_start().starts_with(['#', '/']);
            !is_open && !is_attribute && of_item.ends_with([';', '}', ','])
        };
        lines.find(is_last).unwrap();
    }
    production
}

/// The paths of this crate that the code names, one for each name in braces: `crate::a::b`, `super::c`.
fn named_paths(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let code: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    let code = code.join(" ");
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let is_start = !code[..at].ends_with(is_of_path);
        if is_start {
            add_paths(&code[at..], "", &mut paths);
        }
    }
    paths
}

fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// Adds the paths of the tree of names at the start of the code, as `a::{b, c::{d, e}}`; returns the code after it.
fn add_paths<'c>(code: &'c str, prefix: &str, paths: &mut Vec<String>) -> &'c str {
    let end = code.find(|letter| !is_of_path(letter)).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let path = format!("{prefix}{name}");
    let Some(mut rest) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else {
        paths.push(path);
        return rest;
    };
    loop {
        rest = add_paths(rest.trim_start(), &path, paths);
        let end = rest.find([',', '}']).unwrap();
        let is_last = rest[end..].starts_with('}');
        rest = &rest[end + 1..];
        if is_last {
            return rest;
        }
    }
}

fn graph(found: &BTreeMap<String, String>) -> Graph {
    let mut graph = Graph::new();
    for (module, text) in found {
        let mut targets = BTreeSet::new();
        for path in named_paths(text) {
            let mut base: Vec<&str> = module.split("::").collect();
            let mut names = path.split("::").peekable();
            match names.peek() {
                Some(&"crate") => {
                    names.next();
                    base.clear();
                }
                _ => {
                    while names.next_if_eq(&"super").is_some() {
                        base.pop();
                    }
                }
            }
            let named: Vec<&str> = base.into_iter().chain(names).collect();
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

#[test]
fn names_behind_tests_in_braces_and_without_use_count() {
    let text = "\
use crate::a::{B, c::{D as E, f}};
#[cfg(test)]
use crate::only::tests;
// crate::comment
#[cfg(test)]
mod tests;
pub(super) use super::super::g::H;

#[cfg(test)]
impl I {
    fn j() {
        crate::only::tests()
    }
}

fn k() {
    crate::l::m(super::N);
}
";
    let mut paths = named_paths(&without_tests(text));
    paths.sort();
    assert_eq!(
        paths,
        [
            "crate::a::B",
            "crate::a::c::D",
            "crate::a::c::f",
            "crate::l::m",
            "super::N",
            "super::super::g::H",
        ]
    );
}
