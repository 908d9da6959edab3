//! The purpose of a file, derived from its name.

use std::path::Path;

/// The purpose of a file, derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// SSTable rows.
    Data,
    /// SSTable partition index, of either format, and indexes attached to it.
    Index,
    /// SSTable partition summary.
    Summary,
    /// SSTable Bloom filter.
    Filter,
    /// SSTable chunk offsets.
    CompressionInfo,
    /// SSTable statistics.
    Statistics,
    /// Ilion's token map.
    Tokens,
    /// Ilion's cell map.
    Cells,
    /// Ilion's deleted runs.
    Deleted,
    /// Commit log segments.
    CommitLog,
    /// Directories, where names are synced.
    Directory,
    /// Everything else.
    Other,
}

impl FileKind {
    /// All kinds, in the order of [`account::totals`](crate::account::totals).
    pub const ALL: [Self; 12] = [
        Self::Data,
        Self::Index,
        Self::Summary,
        Self::Filter,
        Self::CompressionInfo,
        Self::Statistics,
        Self::Tokens,
        Self::Cells,
        Self::Deleted,
        Self::CommitLog,
        Self::Directory,
        Self::Other,
    ];

    /// Derives the kind from the file's name.
    pub fn of(path: &Path) -> Self {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with("ilion-1-") && name.ends_with(".log") {
            return Self::CommitLog;
        }
        match name.rsplit('-').next().unwrap_or_default() {
            "Data.db" => Self::Data,
            "Index.db" | "Partitions.db" | "Rows.db" => Self::Index,
            "Summary.db" => Self::Summary,
            "Filter.db" => Self::Filter,
            "CompressionInfo.db" => Self::CompressionInfo,
            "Statistics.db" => Self::Statistics,
            "Tokens.db" => Self::Tokens,
            "Cells.db" => Self::Cells,
            "Deleted.db" => Self::Deleted,
            name if name.starts_with("Index+") => Self::Index,
            _ => Self::Other,
        }
    }

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Index => "index",
            Self::Summary => "summary",
            Self::Filter => "filter",
            Self::CompressionInfo => "compression_info",
            Self::Statistics => "statistics",
            Self::Tokens => "tokens",
            Self::Cells => "cells",
            Self::Deleted => "deleted",
            Self::CommitLog => "commit_log",
            Self::Directory => "directory",
            Self::Other => "other",
        }
    }
}
