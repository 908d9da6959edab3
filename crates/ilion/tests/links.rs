//! Pages of the project link to files and headings that are there, and the site's table of contents names every page of `docs/`.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages outside of `docs/`.
const OTHERS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "python/README.md",
];

/// The pages below a directory, relative to the root of the project.
fn pages_below(directory: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(Path::new(ROOT).join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            pages_below(&path, found);
        } else if path.ends_with(".md") {
            found.push(path.into());
        }
    }
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of the links in a page.
fn links(text: &str) -> Vec<String> {
    // A link may go over the end of a line.
    let text = prose(text).map(without_code).collect::<Vec<_>>().join("\n");
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.trim().to_owned()).collect()
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let headings = prose(text).filter_map(|line| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.strip_prefix(' '))?
    });
    headings
        .map(|heading| {
            let slug = slug(heading);
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            match *count {
                1 => slug,
                count => format!("{slug}-{}", count - 1),
            }
        })
        .collect()
}

fn slug(heading: &str) -> String {
    // Of a link in a heading, its text.
    let mut text = String::new();
    for part in heading.split("](") {
        match (text.is_empty(), part.split_once(')')) {
            (false, Some((_, rest))) => text.push_str(rest),
            _ => text.push_str(part),
        }
    }
    text.trim()
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(normal.pop(), "{} is outside of the project", path.display()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

fn read(page: &Path) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap()
}

/// Why a link of a page leads nowhere; `None` if it leads somewhere, or out of the project.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => normal(&page.parent().unwrap().join(file)),
    };
    let is_page = target.extension().is_some_and(|extension| extension == "md");
    if !Path::new(ROOT).join(&target).is_file() {
        return Some(format!("{}: {link}: there is no such file", page.display()));
    }
    let is_known = anchor.is_empty() || (is_page && anchors(&read(&target)).contains(anchor));
    (!is_known).then(|| format!("{}: {link}: there is no such heading", page.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages: Vec<PathBuf> = OTHERS.map(PathBuf::from).into();
    pages_below("docs", &mut pages);
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in &pages {
        let links = links(&read(page));
        count += links.len();
        wrong.extend(links.iter().filter_map(|link| broken(page, link)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} links were found");
}

#[test]
fn the_table_of_contents_names_every_page_once() {
    let summary = Path::new("docs/SUMMARY.md");
    let mut named: Vec<PathBuf> = links(&read(summary))
        .iter()
        .map(|link| normal(&Path::new("docs").join(link)))
        .collect();
    named.sort();
    let mut expected: Vec<PathBuf> = OTHERS.map(PathBuf::from).into();
    pages_below("docs", &mut expected);
    expected.retain(|page| page != summary);
    expected.sort();
    assert_eq!(named, expected);
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# Über `x`: a, b & c\n```\n# no heading\n```\n## Same\n## Same\n### [A link](x.md) here\n";
    let expected = ["über-x-a-b--c", "same", "same-1", "a-link-here"];
    assert_eq!(anchors(text), expected.map(str::to_owned).into());
    assert_eq!(links("[a](b.md) `[c](d)` [e\nf](g#h)"), ["b.md", "g#h"]);
}
