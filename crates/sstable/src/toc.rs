//! TOC.txt: the names of an SSTable's components, sorted, one a line, itself included.

use std::collections::BTreeSet;

use crate::Component;

/// Reads the component. Names that are unknown stay; the file is a list for operators, and never says more than the
/// directory does.
pub fn parse(bytes: &[u8]) -> BTreeSet<Component> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Component::from_name)
        .collect()
}

/// The bytes of the component.
pub fn print(components: &BTreeSet<Component>) -> Vec<u8> {
    let mut names: Vec<&str> = components.iter().map(Component::name).collect();
    names.sort_unstable();
    names
        .iter()
        .flat_map(|name| [name, "\n"])
        .collect::<String>()
        .into_bytes()
}
