//! Format versions: two lower-case letters, compared as strings, and what each of them changed.
//!
//! Read: ma..me (3.x), na and nb (4.x and 5.0's default), oa (5.0), da (5.0, trie index). Written: nb, oa and da.

use std::fmt;

use crate::statistics::SECONDS_MAX_BEFORE_OA;
use crate::{Error, Format, Result};

/// The two letters before the id of a file name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u8; 2]);

impl Version {
    /// What Cassandra 4.0 to 5.0 write by default.
    pub const NB: Self = Self(*b"nb");
    /// What Cassandra 5.0 writes without storage compatibility.
    pub const OA: Self = Self(*b"oa");
    /// The trie-indexed format of Cassandra 5.0.
    pub const DA: Self = Self(*b"da");

    /// The format that new files of this version are in.
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

    /// Whether Ilion reads files of this version, with a reason for the operator if it does not.
    ///
    /// # Errors
    /// Refused: the version is older than 3.0 or newer than 5.0.
    pub fn check_readable(self) -> Result<()> {
        let known = matches!(&self.0, [b'm', b'a'..=b'e'] | [b'n', b'a' | b'b'] | b"oa" | b"da");
        if known {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "SSTable version {self} is not supported: upgrade it with Cassandra 3.0 to 5.0 first"
        )))
    }

    /// Everything that 5.0 changed: `u32` deletion times, one byte for a live partition deletion, a covered slice
    /// instead of two lists, first and last key in the statistics.
    #[inline]
    pub fn is_oa_or_later(self) -> bool {
        self.0 == *b"da" || self.0[0] >= b'o'
    }

    /// CRCs in Statistics.db, plain bloom bits, raw chunks, pending repair.
    #[inline]
    pub fn is_na_or_later(self) -> bool {
        self.0 == *b"da" || self.0[0] >= b'n'
    }

    /// The last second at which data in such a file may expire.
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

    /// ma to mc wrote lists that do not cover range tombstones.
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
