//! Modules that need each other cannot be understood apart. The cycles that are left are listed in `testdata/module_cycles.txt`,
//! for each crate the modules of each cycle; a new one fails this test. `REWRITE=1` writes the list: it should only get shorter.
//!
//! A module needs another if its code names something of the other by a path that begins with `crate::`, `super::` or `self::`. A name
//! that is re-exported is followed to the module that has it. Tests do not count, and neither do re-exports by themselves.
//!
//! It reads the sources of all crates, so it also checks that crates without doctests have no example.

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
            .filter(|stem| !["tests", "main"].contains(stem))
        else {
            continue;
        };
        let module = match stem {
            "mod" | "lib" => prefix.trim_end_matches("::").to_owned(),
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

/// The code of a file in one line, without its re-exports and comments; and the re-exported paths, each with ` as ` and the other name if it
/// has one.
fn split_exports(text: &str) -> (String, Vec<String>) {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    let (mut code, mut exports) = (String::new(), Vec::new());
    for statement in lines.join(" ").split_inclusive(';') {
        match export_at(statement) {
            Some((start, path)) => {
                code += &statement[..start];
                add_paths(&statement[path..], "", &mut exports);
            }
            None => code += statement,
        }
    }
    (code, exports)
}

/// Where `pub use`, with any visibility, and its path begin.
fn export_at(statement: &str) -> Option<(usize, usize)> {
    let use_at = statement.rfind("use ")?;
    let before = statement[..use_at].trim_end();
    let before = match before.strip_suffix(')') {
        Some(before) => &before[..before.rfind("pub(")? + 3],
        None => before,
    };
    let start = before.strip_suffix("pub")?.len();
    Some((start, use_at + 4))
}

/// The paths of this crate that the code names, one for each name in braces: `crate::a::b`, `super::c`, `child::d`.
fn named_paths(code: &str, children: &[&str]) -> Vec<String> {
    let mut paths = Vec::new();
    for first in ["crate", "super", "self"].iter().chain(children) {
        for (at, _) in code.match_indices(&format!("{first}::")) {
            let before = &code[..at];
            // `pub(in crate::a)` names no item.
            if !before.ends_with(is_of_path) && !before.ends_with("(in ") {
                add_paths(&code[at..], "", &mut paths);
            }
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
        let alias = rest
            .strip_prefix(" as ")
            .map(|alias| alias.split([',', '}', ';']).next());
        match alias.flatten() {
            Some(alias) => paths.push(format!("{path} as {}", alias.trim())),
            None => paths.push(path),
        }
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

/// Where a module re-exports names from: by module and name, the path of the module that has it and its name there.
type Exports = BTreeMap<(String, String), Vec<String>>;

/// A path from the root of the crate, for a path that a module names; `None` if it begins with another crate.
fn absolute(module: &str, path: &str, found: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let mut base: Vec<&str> = module.split("::").filter(|name| !name.is_empty()).collect();
    let mut names = path.split("::").peekable();
    match names.peek().copied()? {
        "crate" => {
            names.next();
            base.clear();
        }
        "self" => drop(names.next()),
        "super" => {
            while names.next_if_eq(&"super").is_some() {
                base.pop();
            }
        }
        child => {
            let child = base.iter().copied().chain([child]).collect::<Vec<_>>().join("::");
            found.get(&child)?;
        }
    }
    Some(base.into_iter().chain(names).map(str::to_owned).collect())
}

/// The re-exports of all modules.
fn exports(found: &BTreeMap<String, String>) -> Exports {
    let mut exports = Exports::new();
    for (module, text) in found {
        for export in split_exports(text).1 {
            let (path, alias) = export.split_once(" as ").unwrap_or((&export, ""));
            let Some(path) = absolute(module, path, found) else {
                continue;
            };
            let name = match alias {
                "" => path.last().unwrap().clone(),
                alias => alias.to_owned(),
            };
            exports.insert((module.clone(), name), path);
        }
    }
    exports
}

/// The module that has what a path names. Re-exports are followed.
fn owner(mut path: Vec<String>, found: &BTreeMap<String, String>, exports: &Exports) -> Option<String> {
    loop {
        let lengths = (0..=path.len()).rev();
        let (length, module) = lengths
            .map(|length| (length, path[..length].join("::")))
            .find(|(_, module)| found.contains_key(module))?;
        let name = path.get(length);
        let next = name.and_then(|name| exports.get(&(module.clone(), name.clone())));
        match next {
            Some(next) if *next != path => path = next.clone(),
            _ => return Some(module),
        }
    }
}

/// The modules directly inside of a module.
fn children<'f>(module: &str, found: &'f BTreeMap<String, String>) -> Vec<&'f str> {
    let prefix = match module {
        "" => String::new(),
        module => format!("{module}::"),
    };
    let inside = found.keys().filter_map(|other| other.strip_prefix(&prefix));
    inside
        .filter(|name| !name.is_empty() && !name.contains("::"))
        .collect()
}

fn graph(found: &BTreeMap<String, String>) -> Graph {
    let exports = exports(found);
    let needed = |module: &String, text: &String| -> BTreeSet<String> {
        let paths = named_paths(&split_exports(text).0, &children(module, found)).into_iter();
        let paths = paths.filter_map(|path| {
            let (path, _) = path.split_once(" as ").unwrap_or((&path, ""));
            absolute(module, path, found)
        });
        let owners = paths.filter_map(|path| owner(path, found, &exports));
        owners
            .filter(|owner| owner != module && !owner.is_empty())
            .collect()
    };
    let modules = found.iter().filter(|(module, _)| !module.is_empty());
    modules
        .map(|(module, text)| (module.clone(), needed(module, text)))
        .collect()
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
    crate::l::m(super::N, child::o);
}
";
    let (code, exports) = split_exports(&without_tests(text));
    assert_eq!(exports, ["super::super::g::H"]);
    let mut paths = named_paths(&code, &["child"]);
    paths.sort();
    assert_eq!(
        paths,
        [
            "child::o",
            "crate::a::B",
            "crate::a::c::D as E",
            "crate::a::c::f",
            "crate::l::m",
            "super::N",
        ]
    );
}

#[test]
fn re_exports_are_followed_to_the_module_that_has_the_name() {
    let sources = [
        (
            "",
            "mod a; mod b; pub use a::A; pub(crate) use b::inner::{B as C, D};",
        ),
        ("a", "use crate::C;"),
        ("b", "mod inner; fn f() { inner::g() }"),
        ("b::inner", "use crate::A; pub(in crate::b) fn g() {}"),
    ];
    let found = sources.map(|(module, text)| (module.to_owned(), text.to_owned()));
    let graph = graph(&BTreeMap::from(found));
    assert_eq!(cycles(&graph), BTreeSet::from([vec!["a", "b::inner"]]));
    assert_eq!(graph["b"], BTreeSet::from(["b::inner".to_owned()]));
}

/// Whether a line of a doc comment opens a block of Rust code. `fenced` is whether the line before was within a block.
fn opens_rust_code(line: &str, fenced: &mut bool) -> bool {
    let Some(text) = line
        .trim_start()
        .strip_prefix("//!")
        .or_else(|| line.trim_start().strip_prefix("///"))
    else {
        *fenced = false;
        return false;
    };
    let Some(language) = text.trim().strip_prefix("```") else {
        return false;
    };
    *fenced = !*fenced;
    let is_rust = [
        "rust",
        "no_run",
        "should_panic",
        "compile_fail",
        "ignore",
        "edition",
    ];
    *fenced && (language.is_empty() || is_rust.iter().any(|word| language.contains(word)))
}

/// `cargo test` is quicker if it does not look for examples where there are none.
#[test]
fn crates_whose_examples_in_docs_are_not_run_have_none() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
        if !manifest.contains("\ndoctest = false\n") {
            continue;
        }
        let mut found = BTreeMap::new();
        modules(&path.join("src"), "", &mut found);
        for (module, text) in found {
            let mut fenced = false;
            let example = text.lines().find(|line| opens_rust_code(line, &mut fenced));
            let name = path.file_name().unwrap().display();
            assert_eq!(
                example, None,
                "remove `doctest = false` from {name}: {module} has an example"
            );
        }
    }
}

#[test]
fn blocks_of_rust_code_in_docs_are_told_from_others() {
    let opened = |text: &str| {
        let mut fenced = false;
        text.lines()
            .filter(|line| opens_rust_code(line, &mut fenced))
            .count()
    };
    assert_eq!(
        opened("//! ```text\n//! a\n//! ```\n//! ```\n//! f();\n//! ```"),
        1
    );
    assert_eq!(opened("/// ```no_run\n/// ```\n/// ```json\n/// ```"), 1);
    assert_eq!(
        opened("    /// ```text\n    /// a\n    /// ```\n    fn a() {}"),
        0
    );
}
