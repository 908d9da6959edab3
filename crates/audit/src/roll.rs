//! Decides when a file is complete, and which files are removed. Pure.
//!
//! `audit.log` is the current file. A complete file becomes `audit-<number>.log`; a higher number is newer.

/// Name of the file that is written.
pub(crate) const CURRENT_NAME: &str = "audit.log";

/// A file is complete at `log_bytes_max` divided by this, so that removing a file removes only a small part of the history.
const FILES_OF_LOG: u64 = 8;

/// Limits of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A file has the entries of one period: of a minute, an hour or a day.
    pub period_secs: u32,
    /// Bytes of complete files beyond which the oldest are removed.
    pub log_bytes_max: u64,
}

impl Limits {
    /// Number of the period that contains this time.
    pub(crate) fn period_of(&self, now_secs: i64) -> i64 {
        now_secs.div_euclid(i64::from(self.period_secs.max(1)))
    }

    /// True if a file is complete, so that these bytes go into the next one. An empty file is never complete.
    pub(crate) fn is_complete(&self, file: Written, now_secs: i64, more_bytes: u64) -> bool {
        let bytes_max = self.log_bytes_max / FILES_OF_LOG;
        file.bytes > 0
            && (file.period != self.period_of(now_secs) || file.bytes.saturating_add(more_bytes) > bytes_max)
    }
}

/// The content of the current file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub bytes: u64,
    pub period: i64,
}

/// The name of a complete file.
pub(crate) fn name_of(number: u64) -> String {
    format!("audit-{number:06}.log")
}

/// The number of a complete file; `None` for other names.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-")?.strip_suffix(".log")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// The complete files to remove, as numbers and sizes: the oldest, until the others fit.
pub(crate) fn to_remove(mut files: Vec<(u64, u64)>, log_bytes_max: u64) -> Vec<u64> {
    files.sort_unstable();
    let mut bytes: u64 = files.iter().map(|(_, size)| size).sum();
    let mut removed = Vec::new();
    for (number, size) in files {
        if bytes <= log_bytes_max {
            break;
        }
        bytes -= size;
        removed.push(number);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURLY: Limits = Limits {
        period_secs: 3600,
        log_bytes_max: 800,
    };

    #[test]
    fn a_file_is_complete_in_the_next_period_or_when_it_is_large() {
        let written = |bytes| Written { bytes, period: 2 };
        assert!(!HOURLY.is_complete(written(10), 7200, 10));
        assert!(!HOURLY.is_complete(written(10), 10_799, 10));
        assert!(HOURLY.is_complete(written(10), 10_800, 10));
        assert!(
            HOURLY.is_complete(written(10), 7199, 10),
            "the clock stepped back"
        );
        assert!(!HOURLY.is_complete(written(90), 7200, 10));
        assert!(HOURLY.is_complete(written(91), 7200, 10));
        assert!(!HOURLY.is_complete(written(0), 10_800, 1000), "it is empty");
    }

    #[test]
    fn the_oldest_files_are_removed_until_the_others_fit() {
        let files = || vec![(9, 300), (11, 400), (10, 300)];
        assert!(to_remove(files(), 1000).is_empty());
        assert_eq!(to_remove(files(), 999), [9]);
        assert_eq!(to_remove(files(), 400), [9, 10]);
        assert_eq!(to_remove(files(), 0), [9, 10, 11]);
    }

    #[test]
    fn names_have_their_number_and_other_files_have_none() {
        for number in [0, 7, 999_999, 1_000_000, u64::MAX] {
            assert_eq!(number_of(&name_of(number)), Some(number));
        }
        for name in [
            "audit.log",
            "audit-.log",
            "audit-+1.log",
            "audit-1.log.gz",
            "x-1.log",
            "audit-99999999999999999999.log",
        ] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
