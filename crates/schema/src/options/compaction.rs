//! `WITH compaction = {...}`: the strategies' options, checked one by one.
//!
//! The stored form is what Cassandra stores: the full class name, the options as given, and the thresholds for the
//! strategies that have them.

use std::collections::BTreeMap;

use super::parse::java_double;
use crate::Error;
use crate::error::config;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// What a value has to be.
#[derive(Clone, Copy)]
enum Rule {
    /// `true` or `false`.
    Boolean,
    /// A number of at least this.
    Float(f64),
    /// An integer of at least this.
    Integer(i64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Numbers of shards, levels and sizes whose syntax is the strategy's.
    Text(fn(&str) -> bool),
}

type Rules = &'static [(&'static str, Rule)];

const COMMON: Rules = &[
    ("enabled", Rule::Boolean),
    ("log_all", Rule::Boolean),
    ("only_purge_repaired_tombstones", Rule::Boolean),
    (
        "provide_overlapping_tombstones",
        Rule::Word(&["NONE", "ROW", "CELL"]),
    ),
    ("tombstone_compaction_interval", Rule::Integer(0)),
    ("tombstone_threshold", Rule::Float(0.0)),
    ("unchecked_tombstone_compaction", Rule::Boolean),
];
const THRESHOLDS: Rules = &[
    ("min_threshold", Rule::Text(|_| true)),
    ("max_threshold", Rule::Text(|_| true)),
];
const SIZE_TIERED: Rules = &[
    ("bucket_high", Rule::Float(0.0)),
    ("bucket_low", Rule::Float(0.0)),
    ("min_sstable_size", Rule::Integer(0)),
];
const LEVELED: Rules = &[
    ("fanout_size", Rule::Integer(1)),
    ("single_sstable_uplevel", Rule::Boolean),
    ("sstable_size_in_mb", Rule::Integer(1)),
];
const TIME_WINDOW: Rules = &[
    ("compaction_window_size", Rule::Integer(1)),
    (
        "compaction_window_unit",
        Rule::Word(&["MINUTES", "HOURS", "DAYS"]),
    ),
    ("expired_sstable_check_frequency_seconds", Rule::Integer(0)),
    (
        "timestamp_resolution",
        Rule::Word(&[
            "NANOSECONDS",
            "MICROSECONDS",
            "MILLISECONDS",
            "SECONDS",
            "MINUTES",
            "HOURS",
            "DAYS",
        ]),
    ),
    ("unsafe_aggressive_sstable_expiration", Rule::Boolean),
];
const UNIFIED: Rules = &[
    ("base_shard_count", Rule::Integer(1)),
    ("expired_sstable_check_frequency_seconds", Rule::Integer(0)),
    ("flush_size_override", Rule::Text(is_size)),
    ("max_sstables_to_compact", Rule::Integer(-1)),
    ("min_sstable_size", Rule::Text(is_size)),
    (
        "overlap_inclusion_method",
        Rule::Word(&["NONE", "SINGLE", "TRANSITIVE"]),
    ),
    ("scaling_parameters", Rule::Text(is_scaling)),
    ("sstable_growth", Rule::Text(is_growth)),
    ("target_sstable_size", Rule::Text(is_size)),
    ("unsafe_aggressive_sstable_expiration", Rule::Boolean),
];

/// Strategies and the rules of their options beside the common ones.
const STRATEGIES: [(&str, &[Rules]); 4] = [
    ("LeveledCompactionStrategy", &[THRESHOLDS, SIZE_TIERED, LEVELED]),
    ("SizeTieredCompactionStrategy", &[THRESHOLDS, SIZE_TIERED]),
    (
        "TimeWindowCompactionStrategy",
        &[THRESHOLDS, SIZE_TIERED, TIME_WINDOW],
    ),
    ("UnifiedCompactionStrategy", &[UNIFIED]),
];

/// The strategy's class without Cassandra's package.
pub(crate) fn class_of(compaction: &BTreeMap<String, String>) -> &str {
    let class = compaction.get("class").map_or("", String::as_str);
    class.strip_prefix(PACKAGE).unwrap_or(class)
}

pub(crate) fn parse(given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    let Some(class) = given.get("class") else {
        return config("Missing sub-option 'class' for the 'compaction' option");
    };
    let short = class_of(given);
    let Some((_, rules)) = STRATEGIES.iter().find(|(name, _)| *name == short) else {
        let full = if class.contains('.') {
            class.clone()
        } else {
            format!("{PACKAGE}{class}")
        };
        return config(format!("Unable to find compaction strategy class '{full}'"));
    };
    let rule_of = |option: &str| {
        rules
            .iter()
            .chain([&COMMON])
            .flat_map(|rules| rules.iter())
            .find(|(name, _)| *name == option)
    };
    let options = given.iter().filter(|(name, _)| *name != "class");
    let unknown: Vec<&str> = options
        .clone()
        .map(|(name, _)| name.as_str())
        .filter(|name| rule_of(name).is_none())
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Properties specified [{}] are not understood by {short}",
            unknown.join(", ")
        ));
    }
    for (name, value) in options {
        if let Some((_, rule)) = rule_of(name) {
            check(name, value, *rule)?;
        }
    }
    let mut stored = given.clone();
    stored.insert("class".to_owned(), format!("{PACKAGE}{short}"));
    if rule_of("min_threshold").is_some() {
        check_buckets(given)?;
        complete_thresholds(&mut stored)?;
    }
    Ok(stored)
}

fn check(name: &str, value: &str, rule: Rule) -> Result<(), Error> {
    match rule {
        Rule::Boolean if !value.eq_ignore_ascii_case("true") && !value.eq_ignore_ascii_case("false") => {
            config(format!(
                "'{name}' should be either 'true' or 'false', not '{value}'"
            ))
        }
        Rule::Float(min) => match value.parse::<f64>() {
            Ok(number) if number >= min => Ok(()),
            Ok(number) => config(format!("{name} must be greater than {min}, but was {number:.6}")),
            Err(_) => config(format!("{value} is not a parsable int (base10) for {name}")),
        },
        Rule::Integer(min) => match value.parse::<i64>() {
            Ok(number) if number >= min => Ok(()),
            Ok(number) if min == 0 => config(format!("{name} must be non negative: {number}")),
            Ok(number) => config(format!(
                "{name} must be larger than {}, but was {number}",
                min - 1
            )),
            Err(_) => config(format!("{value} is not a parsable int (base10) for {name}")),
        },
        Rule::Word(words) if !words.contains(&value.to_ascii_uppercase().as_str()) => {
            config(format!("{value} is not valid for {name}"))
        }
        Rule::Text(is_valid) if !is_valid(value) => config(format!("{value} is not valid for {name}")),
        _ => Ok(()),
    }
}

fn check_buckets(given: &BTreeMap<String, String>) -> Result<(), Error> {
    let bound = |name: &str, default: f64| {
        given
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (low, high): (f64, f64) = (bound("bucket_low", 0.5), bound("bucket_high", 1.5));
    if high > low {
        return Ok(());
    }
    config(format!(
        "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
        java_double(high),
        java_double(low)
    ))
}

/// Puts in the thresholds that were not given, and checks them against each other.
fn complete_thresholds(stored: &mut BTreeMap<String, String>) -> Result<(), Error> {
    let mut threshold = |name: &str, default: &str| {
        let text = stored
            .entry(name.to_owned())
            .or_insert_with(|| default.to_owned());
        match text.parse::<i32>() {
            Ok(value) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(value),
            _ => config(format!(
                "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
            )),
        }
    };
    let (min, max) = (
        threshold("min_threshold", "4")?,
        threshold("max_threshold", "32")?,
    );
    if min == 0 || max == 0 {
        return config(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction \
             option 'enabled' to false instead.",
        );
    }
    if min == 1 {
        return config(format!(
            "Min compaction threshold cannot be less than 2 (got {min})"
        ));
    }
    if min > max {
        return config(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        ));
    }
    Ok(())
}

/// `100MiB`, `1GiB`, `1.5 GB`, a plain number of bytes.
fn is_size(text: &str) -> bool {
    let number = text
        .trim()
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .trim_end();
    let unit = text.trim()[number.len()..].trim();
    let units = [
        "", "B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB", "k", "M", "G", "T",
    ];
    number.parse::<f64>().is_ok_and(|size| size >= 0.0) && units.contains(&unit)
}

/// `T4, L8, N, -3`: one for each level.
fn is_scaling(text: &str) -> bool {
    let is_one = |word: &str| match word.split_at_checked(1) {
        Some(("N", "")) => true,
        Some(("T" | "L", number)) => number.parse::<i32>().is_ok_and(|fanout| fanout >= 2),
        _ => word.parse::<i32>().is_ok(),
    };
    !text.is_empty() && text.split(',').all(|word| is_one(word.trim()))
}

/// A fraction or percentage.
fn is_growth(text: &str) -> bool {
    let (number, max) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    number
        .trim()
        .parse::<f64>()
        .is_ok_and(|growth| (0.0..=max).contains(&growth))
}
