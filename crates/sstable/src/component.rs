//! The files that make up one SSTable.

use std::fmt;

/// One file of an SSTable, by the last part of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Partitions.
    Data,
    /// All partition keys with their positions, and row indexes (BIG).
    Index,
    /// Trie of partition keys (BTI).
    Partitions,
    /// Tries of rows (BTI).
    Rows,
    /// Statistics, serialization header and other metadata.
    Statistics,
    /// Offsets of compressed chunks; exists if and only if Data.db is compressed.
    CompressionInfo,
    /// Checksums of uncompressed data.
    Crc,
    /// Checksum of the whole Data.db.
    Digest,
    /// Bloom filter of the partition keys.
    Filter,
    /// A sample of Index.db (BIG).
    Summary,
    /// The names of the components.
    Toc,
    /// Ilion's token map: tokens and positions of partitions.
    Tokens,
    /// Ilion's cell map: positions of cells in large rows.
    Cells,
    /// Ilion's deleted runs: positions of rows that are only deletions.
    Deleted,
    /// Ilion's checksums of the components that have none.
    Checksums,
    /// Any other file with the SSTable's name, such as `SAI+...`. It is kept and removed with the SSTable, but never read.
    Other(String),
}

const NAMES: [(Component, &str); 15] = [
    (Component::Data, "Data.db"),
    (Component::Index, "Index.db"),
    (Component::Partitions, "Partitions.db"),
    (Component::Rows, "Rows.db"),
    (Component::Statistics, "Statistics.db"),
    (Component::CompressionInfo, "CompressionInfo.db"),
    (Component::Crc, "CRC.db"),
    (Component::Digest, "Digest.crc32"),
    (Component::Filter, "Filter.db"),
    (Component::Summary, "Summary.db"),
    (Component::Toc, "TOC.txt"),
    (Component::Tokens, "Tokens.db"),
    (Component::Cells, "Cells.db"),
    (Component::Deleted, "Deleted.db"),
    (Component::Checksums, "Checksums.db"),
];

impl Component {
    /// The component with a name such as `Data.db`.
    pub fn from_name(name: &str) -> Self {
        NAMES.iter().find(|(_, known)| *known == name).map_or_else(
            || Self::Other(name.to_owned()),
            |(component, _)| component.clone(),
        )
    }

    /// The name of the component: the last part of the file's name.
    pub fn name(&self) -> &str {
        if let Self::Other(name) = self {
            return name;
        }
        NAMES
            .iter()
            .find(|(component, _)| component == self)
            .map_or("", |(_, name)| name)
    }

    /// All components with fixed names.
    pub fn known() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(component, _)| component.clone())
    }

    /// True for Ilion's own components, which Cassandra neither writes nor reads, and TOC.txt does not list.
    pub fn is_side(&self) -> bool {
        match self {
            Self::Tokens | Self::Cells | Self::Deleted | Self::Checksums => true,
            // Components of attached indexes.
            Self::Other(name) => name.starts_with("Index+"),
            _ => false,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_a_name_of_its_own() {
        for (component, name) in NAMES {
            assert_eq!(Component::from_name(name), component);
            assert_eq!(component.name(), name);
        }
        let other = Component::from_name("SAI+ba+GroupMeta.db");
        assert_eq!(other.name(), "SAI+ba+GroupMeta.db");
        assert!(!other.is_side());
        assert!(Component::from_name("Index+Rows.db").is_side());
    }
}
