//! [`Release`]: the oldest Cassandra that must be able to read the files.
//!
//! A directory of Cassandra 4.x stays readable for Cassandra 4.x: its system tables keep the columns of 4.x, and objects that 4.x
//! cannot load are refused.

use crate::Error;
use crate::error::invalid;

/// A release of Cassandra, if its tables and objects differ from those of other releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// 4.0
    V4_0,
    /// 4.1
    V4_1,
    /// 5.0, the release whose behaviour Ilion follows.
    #[default]
    V5_0,
}

impl Release {
    /// The release for the value of `system.local.release_version`.
    ///
    /// # Errors
    /// Directories of that release are not supported.
    pub fn of(version: &str) -> Result<Release, Error> {
        let mut numbers = version.split(['.', '-', '~']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(4)), Some(Ok(0))) => Ok(Release::V4_0),
            (Some(Ok(4)), Some(Ok(1))) => Ok(Release::V4_1),
            (Some(Ok(5)), Some(Ok(0))) => Ok(Release::V5_0),
            _ => invalid(format!(
                "the data directory is one of Cassandra {version:?}; Ilion opens those of 4.0, 4.1 and 5.0: bring it there with Cassandra first"
            )),
        }
    }

    /// True if this release does not have a class of compaction.
    pub fn lacks_compaction(self, class: &str) -> bool {
        self < Release::V5_0 && class.ends_with("UnifiedCompactionStrategy")
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V4_0 => "Cassandra 4.0",
            Self::V4_1 => "Cassandra 4.1",
            Self::V5_0 => "Cassandra 5.0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_releases_that_are_not_understood_are_refused() {
        assert_eq!(Release::of("4.0.19"), Ok(Release::V4_0));
        assert_eq!(Release::of("4.1-beta1"), Ok(Release::V4_1));
        assert_eq!(Release::of("5.0.9-SNAPSHOT"), Ok(Release::V5_0));
        for strange in ["3.11.17", "5.1.0", "6.0", "", "four"] {
            assert!(Release::of(strange).is_err(), "{strange}");
        }
    }
}
