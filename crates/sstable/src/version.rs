//! Format versions: two lower-case letters, compared as strings, and the changes of each version.
//!
//! Read: ma..me (3.x), na and nb (4.x and 5.0's default), oa (5.0), da (5.0, trie index). Written: nb, oa and da.

use std::fmt;

use crate::statistics::SECONDS_MAX_BEFORE_OA;
use crate::{Error, Result};

/// The format of the partition index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Index.db and Summary.db.
    Big,
    /// Partitions.db and Rows.db: tries.
    Bti,
}

impl Format {
    /// Its name in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Bti => "bti",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "big" => Some(Self::Big),
            "bti" => Some(Self::Bti),
            _ => None,
        }
    }
}

/// A format version: the two letters of a file name before the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u8; 2]);

impl Version {
    /// The default of Cassandra 4.0 to 5.0.
    pub const NB: Self = Self(*b"nb");
    /// The version of Cassandra 5.0 without storage compatibility.
    pub const OA: Self = Self(*b"oa");
    /// The trie-indexed version of Cassandra 5.0.
    pub const DA: Self = Self(*b"da");

    /// The index format of new files of this version.
    pub fn format(self) -> Format {
        if self == Self::DA {
            Format::Bti
        } else {
            Format::Big
        }
    }

    /// The version of two lower-case letters.
    pub fn parse(text: &str) -> Option<Self> {
        let letters: [u8; 2] = text.as_bytes().try_into().ok()?;
        letters
            .iter()
            .all(u8::is_ascii_lowercase)
            .then_some(Self(letters))
    }

    /// The two letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("??")
    }

    /// Checks that Ilion can read files of this version.
    ///
    /// # Errors
    /// Refused, with a reason for the operator: the version is older than 3.0 or newer than 5.0.
    pub fn check_readable(self) -> Result<()> {
        let known = matches!(&self.0, [b'm', b'a'..=b'e'] | [b'n', b'a' | b'b'] | b"oa" | b"da");
        if known {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "SSTable version {self} is not supported: upgrade it with Cassandra 3.0 to 5.0 first"
        )))
    }

    /// True if the version has the changes of 5.0: `u32` deletion times, one byte for the deletion of a live partition, a covered
    /// slice instead of two lists, first and last key in the statistics.
    #[inline]
    pub fn is_oa_or_later(self) -> bool {
        self.0 == *b"da" || self.0[0] >= b'o'
    }

    /// True if the version has CRCs in Statistics.db, Bloom filter bits without swapped words, raw chunks, and pending repairs.
    #[inline]
    pub(crate) fn is_na_or_later(self) -> bool {
        self.0 == *b"da" || self.0[0] >= b'n'
    }

    /// The last second at which data in a file of this version can expire.
    pub fn expiry_secs_max(self) -> u32 {
        if self.is_oa_or_later() {
            // Compat: `Cell.MAX_DELETION_TIME`.
            u32::MAX - 2
        } else {
            SECONDS_MAX_BEFORE_OA
        }
    }

    pub(crate) fn has_commit_log_lower_bound(self) -> bool {
        self.is_na_or_later() || self.0[1] >= b'b'
    }

    pub(crate) fn has_commit_log_intervals(self) -> bool {
        self.is_na_or_later() || self.0[1] >= b'c'
    }

    /// False for versions ma to mc, whose lists of clusterings do not cover range tombstones.
    pub(crate) fn has_trustworthy_clustering_lists(self) -> bool {
        self.is_na_or_later() || self.0[1] >= b'd'
    }

    pub(crate) fn has_originating_host(self) -> bool {
        self.is_oa_or_later() || self.0 == *b"nb" || self.0 == *b"me"
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn gates_follow_the_versions() {
        let version = |text| Version::parse(text).unwrap();
        for text in ["ma", "me", "na", "nb", "oa", "da"] {
            assert!(version(text).check_readable().is_ok(), "{text}");
        }
        for text in ["la", "nc", "ob", "zz", "db"] {
            assert!(version(text).check_readable().is_err(), "{text}");
        }
        assert!(version("da").is_oa_or_later() && version("da").is_na_or_later());
        assert!(!version("nb").is_oa_or_later() && version("nb").has_originating_host());
        assert!(!version("na").has_originating_host() && version("na").is_na_or_later());
        assert!(!version("me").is_na_or_later() && version("me").has_commit_log_intervals());
        assert!(!version("mb").has_commit_log_intervals() && version("mb").has_commit_log_lower_bound());
        assert_eq!(Version::parse("NB"), None);
    }
}
