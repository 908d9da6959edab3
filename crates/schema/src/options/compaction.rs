//! `WITH compaction = {...}`: the options of each strategy, checked one by one.
//!
//! The stored form is Cassandra's: the full class name, the given options, and the thresholds for the strategies that have
//! them.

use std::collections::BTreeMap;

use super::java_double::java_double;
use super::unified;
use crate::Error;
use crate::error::config;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// The rule for a value. As in Cassandra, the message of a refusal differs by strategy.
#[derive(Clone, Copy)]
enum Rule {
    /// `true` or `false`.
    Boolean(BooleanWords),
    /// A number that is not below this minimum.
    Float(f64),
    /// An integer that is not below this minimum.
    Integer(i64, IntegerWords),
    /// One of these words, in upper case.
    Word(&'static [&'static str]),
    /// A function that checks name and value.
    Own(fn(&str, &str) -> Result<(), Error>),
}

/// The message for a value that is neither true nor false.
#[derive(Clone, Copy)]
enum BooleanWords {
    ShouldBeEither,
    ShouldEitherBe,
    IsNot,
}

/// The message for a number that is too small.
#[derive(Clone, Copy)]
enum IntegerWords {
    NonNegative,
    GreaterThanZero,
    LargerThanZero,
    GreaterThanOne,
    NotNegative,
    ShouldBePositive,
    Any,
}

type Rules = &'static [(&'static str, Rule)];

const COMMON: Rules = &[
    ("enabled", Rule::Boolean(BooleanWords::ShouldEitherBe)),
    ("log_all", Rule::Boolean(BooleanWords::ShouldEitherBe)),
    ("only_purge_repaired_tombstones", Rule::Own(|_, _| Ok(()))),
    ("provide_overlapping_tombstones", Rule::Own(check_overlapping)),
    (
        "tombstone_compaction_interval",
        Rule::Integer(0, IntegerWords::GreaterThanZero),
    ),
    ("tombstone_threshold", Rule::Float(0.0)),
    (
        "unchecked_tombstone_compaction",
        Rule::Boolean(BooleanWords::ShouldBeEither),
    ),
];
const THRESHOLDS: Rules = &[
    ("min_threshold", Rule::Own(|_, _| Ok(()))),
    ("max_threshold", Rule::Own(|_, _| Ok(()))),
];
const SIZE_TIERED: Rules = &[
    ("bucket_high", Rule::Float(f64::NEG_INFINITY)),
    ("bucket_low", Rule::Float(f64::NEG_INFINITY)),
    ("min_sstable_size", Rule::Integer(0, IntegerWords::NonNegative)),
];
const LEVELED: Rules = &[
    ("fanout_size", Rule::Integer(1, IntegerWords::LargerThanZero)),
    ("single_sstable_uplevel", Rule::Own(|_, _| Ok(()))),
    (
        "sstable_size_in_mb",
        Rule::Integer(1, IntegerWords::LargerThanZero),
    ),
];
const TIME_WINDOW: Rules = &[
    (
        "compaction_window_size",
        Rule::Integer(1, IntegerWords::GreaterThanOne),
    ),
    (
        "compaction_window_unit",
        Rule::Word(&["MINUTES", "HOURS", "DAYS"]),
    ),
    (
        "expired_sstable_check_frequency_seconds",
        Rule::Integer(0, IntegerWords::NotNegative),
    ),
    (
        "timestamp_resolution",
        Rule::Word(&["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"]),
    ),
    (
        "unsafe_aggressive_sstable_expiration",
        Rule::Own(check_aggressive),
    ),
];
const UNIFIED: Rules = &[
    (
        "base_shard_count",
        Rule::Integer(1, IntegerWords::ShouldBePositive),
    ),
    (
        "expired_sstable_check_frequency_seconds",
        Rule::Integer(1, IntegerWords::ShouldBePositive),
    ),
    ("flush_size_override", Rule::Own(unified::check_size)),
    (
        "max_sstables_to_compact",
        Rule::Integer(i64::MIN, IntegerWords::Any),
    ),
    ("min_sstable_size", Rule::Own(unified::check_min_size)),
    ("overlap_inclusion_method", Rule::Own(unified::check_inclusion)),
    ("scaling_parameters", Rule::Own(unified::check_scaling)),
    ("sstable_growth", Rule::Own(unified::check_growth)),
    ("target_sstable_size", Rule::Own(unified::check_size)),
    (
        "unsafe_aggressive_sstable_expiration",
        Rule::Boolean(BooleanWords::ShouldEitherBe),
    ),
];

/// The strategies, each with the rules of its own options.
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
    if short == "UnifiedCompactionStrategy" {
        unified::check_sizes(given)?;
    }
    if rule_of("min_threshold").is_some() {
        check_buckets(given)?;
        complete_thresholds(&mut stored)?;
    }
    Ok(stored)
}

fn check(name: &str, value: &str, rule: Rule) -> Result<(), Error> {
    match rule {
        Rule::Boolean(words) => check_boolean(name, value, words),
        Rule::Float(min) => match value.parse::<f64>() {
            Ok(number) if number >= min => Ok(()),
            Ok(number) => config(format!("{name} must be greater than 0, but was {number:.6}")),
            Err(_) => config(format!("{value} is not a parsable int (base10) for {name}")),
        },
        Rule::Integer(min, words) => match value.parse::<i64>() {
            Ok(number) if number >= min => Ok(()),
            Ok(number) => config(too_small(name, number, words)),
            // Compat: Cassandra parses this option as a long.
            Err(_) if name.starts_with("expired") && matches!(words, IntegerWords::ShouldBePositive) => {
                config(format!("{value} is not a parsable long (base10) for {name}"))
            }
            Err(_) => config(format!("{value} is not a parsable int (base10) for {name}")),
        },
        Rule::Word(words) if !words.contains(&value) => config(format!("{value} is not valid for {name}")),
        Rule::Word(_) => Ok(()),
        Rule::Own(check) => check(name, value),
    }
}

fn check_boolean(name: &str, value: &str, words: BooleanWords) -> Result<(), Error> {
    if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") {
        return Ok(());
    }
    config(match words {
        BooleanWords::ShouldBeEither => format!("'{name}' should be either 'true' or 'false', not '{value}'"),
        BooleanWords::ShouldEitherBe => format!("{name} should either be 'true' or 'false', not {value}"),
        BooleanWords::IsNot => format!("{name} is not 'true' or 'false' ({value})"),
    })
}

fn too_small(name: &str, number: i64, words: IntegerWords) -> String {
    match words {
        IntegerWords::NonNegative => format!("{name} must be non negative: {number}"),
        IntegerWords::GreaterThanZero => format!("{name} must be greater than 0, but was {number}"),
        IntegerWords::LargerThanZero => format!("{name} must be larger than 0, but was {number}"),
        IntegerWords::GreaterThanOne => format!("{number} must be greater than 1 for {name}"),
        IntegerWords::NotNegative => format!("{name} must not be negative, but was {number}"),
        IntegerWords::ShouldBePositive | IntegerWords::Any => {
            format!("Invalid configuration, {name} should be positive: {number}")
        }
    }
}

/// Compat: `CompactionParams.create`.
fn check_overlapping(name: &str, value: &str) -> Result<(), Error> {
    let upper = value.to_ascii_uppercase();
    if ["NONE", "ROW", "CELL"].contains(&upper.as_str()) {
        return Ok(());
    }
    config(format!(
        "Invalid value {upper} for '{name}' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
    ))
}

/// Compat: refuses `true`, like a Cassandra without the JVM property that allows it.
fn check_aggressive(name: &str, value: &str) -> Result<(), Error> {
    check_boolean(name, value, BooleanWords::IsNot)?;
    if value.eq_ignore_ascii_case("false") {
        return Ok(());
    }
    config(format!(
        "{name} is requested but not allowed, restart cassandra with \
         -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it"
    ))
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

/// Adds missing thresholds, and checks them against each other.
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
