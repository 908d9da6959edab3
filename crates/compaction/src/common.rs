//! Options that all strategies have, and how options are read.

use std::collections::BTreeMap;
use std::str::FromStr;

/// The sub-options of the table option `compaction`.
pub type Options = BTreeMap<String, String>;

/// Options that all strategies have.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// Whether compactions start in the background (`enabled`).
    pub is_enabled: bool,
    /// An SSTable with more than this share of droppable tombstones may be compacted alone.
    pub tombstone_threshold: f64,
    /// Minimum age of an SSTable that is compacted alone.
    pub tombstone_compaction_interval_secs: i64,
    /// An SSTable is compacted alone even if others may have the same partitions.
    pub unchecked_tombstone_compaction: bool,
    /// Tombstones are only purged after a repair.
    pub only_purge_repaired_tombstones: bool,
}

impl Common {
    /// Reads the options. The schema has validated them; an invalid value means the default.
    pub fn of_options(options: &Options) -> Self {
        Self {
            is_enabled: is_true(options, "enabled", true),
            tombstone_threshold: number(options, "tombstone_threshold", 0.2),
            tombstone_compaction_interval_secs: number(options, "tombstone_compaction_interval", 86_400),
            unchecked_tombstone_compaction: is_true(options, "unchecked_tombstone_compaction", false),
            only_purge_repaired_tombstones: is_true(options, "only_purge_repaired_tombstones", false),
        }
    }
}

pub(crate) fn number<T: FromStr>(options: &Options, name: &str, default: T) -> T {
    let text = options.get(name);
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

pub(crate) fn is_true(options: &Options, name: &str, default: bool) -> bool {
    options
        .get(name)
        .map_or(default, |text| text.eq_ignore_ascii_case("true"))
}

/// Parses sizes as `100MiB` or `1.5 GB` to bytes. Compat: `FBUtilities.parseHumanReadableBytes`.
pub(crate) fn size(options: &Options, name: &str, default: u64) -> u64 {
    let text = options.get(name).map(String::as_str);
    text.and_then(size_of).unwrap_or(default)
}

fn size_of(text: &str) -> Option<u64> {
    let text = text.strip_suffix('B')?;
    let (text, base) = match text.strip_suffix('i') {
        Some(text) => (text, 1024.0),
        None => (text, 1000.0),
    };
    let exponent = text
        .chars()
        .last()
        .and_then(|prefix| " KMGTPEZY".find(prefix).filter(|_| prefix != ' '));
    let number = match exponent {
        Some(_) => &text[..text.len() - 1],
        None => text,
    };
    let exponent = i32::try_from(exponent.unwrap_or(0)).unwrap_or(0);
    let number: f64 = number.trim().parse().ok()?;
    Some((number * f64::powi(base, exponent)) as u64)
}

/// Parses a fraction or a percentage. Compat: `FBUtilities.parsePercent`.
pub(crate) fn percent(options: &Options, name: &str, default: f64) -> f64 {
    let Some(text) = options.get(name) else {
        return default;
    };
    let parsed = match text.strip_suffix('%') {
        Some(percents) => percents.trim().parse::<f64>().map(|percents| percents / 100.0),
        None => text.trim().parse(),
    };
    parsed.unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_cassandra_writes_them() {
        assert_eq!(size_of("100MiB"), Some(100 << 20));
        assert_eq!(size_of("1.5 GB"), Some(1_500_000_000));
        assert_eq!(size_of("512B"), Some(512));
        assert_eq!(size_of("512"), None);
        assert_eq!(size_of("1XiB"), None);
    }

    #[test]
    fn shares_are_fractions_or_percents() {
        let options = |text: &str| Options::from([("x".to_owned(), text.to_owned())]);
        let share = |text: &str| (percent(&options(text), "x", 9.0) * 1000.0).round();
        assert_eq!(
            [share("0.333"), share("33.3%"), share("?")].map(|share| share as i64),
            [333, 333, 9000]
        );
    }
}
