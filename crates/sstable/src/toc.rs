//! TOC.txt: the names of an SSTable's components, including itself, sorted, one per line.

use std::collections::BTreeSet;

use crate::Component;

/// Parses the component; keeps unknown names. The file is a list for operators; the directory has the same information.
pub(crate) fn parse(bytes: &[u8]) -> BTreeSet<Component> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(Component::from_name)
        .collect()
}

/// The bytes of the component.
pub(crate) fn print(components: &BTreeSet<Component>) -> Vec<u8> {
    let mut names: Vec<&str> = components.iter().map(Component::name).collect();
    names.sort_unstable();
    names
        .iter()
        .flat_map(|name| [name, "\n"])
        .collect::<String>()
        .into_bytes()
}
