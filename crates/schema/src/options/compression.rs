//! `WITH compression = {...}`.
//!
//! The stored form is Cassandra's: the full class name, always the chunk length, and `min_compress_ratio` if it is not the
//! default. The map is empty if the table is not compressed.

use std::collections::BTreeMap;

use super::java_double::java_double;
use crate::error::config;
use crate::{Error, TableOptions};

const PACKAGE: &str = "org.apache.cassandra.io.compress.";
const CHUNK_LENGTH_KIB_DEFAULT: u32 = 16;

/// Largest chunk of a compressed Data.db in KiB, for statements and files. Cassandra accepts up to 1 GiB, and then needs that
/// much memory for each read.
pub const CHUNK_LENGTH_KIB_MAX: u32 = 64 << 10;

/// The compressors, each with its own options, without those that all compressors have.
const COMPRESSORS: [(&str, &[&str]); 5] = [
    ("DeflateCompressor", &[]),
    (
        "LZ4Compressor",
        &["lz4_compressor_type", "lz4_high_compressor_level"],
    ),
    ("NoopCompressor", &[]),
    ("SnappyCompressor", &[]),
    ("ZstdCompressor", &["compression_level"]),
];

impl TableOptions {
    /// The compression map in the form of `system_schema` and DESCRIBE.
    pub(crate) fn compression_map(&self) -> BTreeMap<String, String> {
        if self.compression.is_empty() {
            return [("enabled".to_owned(), "false".to_owned())].into();
        }
        self.compression.clone()
    }
}

pub(crate) fn parse(given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    let mut rest = given.clone();
    let is_enabled = rest
        .remove("enabled")
        .is_none_or(|text| text.eq_ignore_ascii_case("true"));
    if !is_enabled {
        if rest.is_empty() {
            return Ok(BTreeMap::new());
        }
        return config("If the 'enabled' option is set to false no other options must be specified");
    }
    if given.is_empty() {
        return Ok(BTreeMap::new());
    }
    let class = match rest.remove("class") {
        None => return config("Missing sub-option 'class' for the 'compression' option."),
        Some(class) if class.is_empty() => {
            return config(
                "The 'class' option must not be empty. To disable compression use 'enabled' : false",
            );
        }
        Some(class) => class,
    };
    let chunk_kib = chunk_length(rest.remove("chunk_length_in_kb"))?;
    let ratio = min_compress_ratio(rest.remove("min_compress_ratio"))?;
    let mut options = rest;
    options.insert("class".to_owned(), check_class(&class, &options)?);
    options.insert("chunk_length_in_kb".to_owned(), chunk_kib.to_string());
    if ratio != 0.0 {
        options.insert("min_compress_ratio".to_owned(), java_double(ratio));
    }
    Ok(options)
}

fn chunk_length(text: Option<String>) -> Result<u32, Error> {
    let Some(text) = text else {
        return Ok(CHUNK_LENGTH_KIB_DEFAULT);
    };
    let Ok(kib) = text.parse::<i32>() else {
        return config("Invalid value for chunk_length_in_kb");
    };
    if kib > i32::MAX / 1024 {
        return config(format!("Value of chunk_length_in_kb is too large ({kib})"));
    }
    match u32::try_from(kib) {
        Ok(kib) if kib.is_power_of_two() && kib > CHUNK_LENGTH_KIB_MAX => config(format!(
            "Value of chunk_length_in_kb is too large ({kib}): Ilion takes up to {CHUNK_LENGTH_KIB_MAX}"
        )),
        Ok(kib) if kib.is_power_of_two() => Ok(kib),
        Ok(1..) => config("chunk_length_in_kb must be a power of 2"),
        _ => config("Invalid negative or null chunk_length_in_kb"),
    }
}

fn min_compress_ratio(text: Option<String>) -> Result<f64, Error> {
    match text.map(|text| text.parse::<f64>()) {
        None => Ok(0.0),
        Some(Ok(ratio)) if ratio == 0.0 || (ratio >= 1.0 && ratio.is_finite()) => Ok(ratio),
        Some(Ok(_)) => config("min_compress_ratio can either be 0 or greater than or equal to 1"),
        Some(Err(_)) => config("Invalid value for min_compress_ratio"),
    }
}

/// The full class name. Fails if the compressor is unknown or does not have the options.
fn check_class(class: &str, options: &BTreeMap<String, String>) -> Result<String, Error> {
    let short = class.strip_prefix(PACKAGE).unwrap_or(class);
    let Some((_, known)) = COMPRESSORS.iter().find(|(name, _)| *name == short) else {
        let full = if class.contains('.') {
            class.to_owned()
        } else {
            format!("{PACKAGE}{class}")
        };
        return config(format!("Could not create Compression for type {full}"));
    };
    for (name, value) in options {
        if !known.contains(&name.as_str()) {
            return config(format!("Unknown compression options {name}"));
        }
        check_value(name, value)?;
    }
    Ok(format!("{PACKAGE}{short}"))
}

fn check_value(name: &str, value: &str) -> Result<(), Error> {
    let in_range = |low: i32, high: i32| {
        value
            .parse()
            .is_ok_and(|level: i32| (low..=high).contains(&level))
    };
    match name {
        "lz4_compressor_type" if !["fast", "high"].contains(&value) => config(format!(
            "Invalid compressor type '{value}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options \
             are [high, fast]."
        )),
        "lz4_high_compressor_level" if !in_range(1, 17) => config(format!(
            "Invalid value '{value}' specified for LZ4 parameter 'lz4_high_compressor_level'. Value must be \
             between 1 and 17."
        )),
        "compression_level" if !in_range(-131_072, 22) => config(format!(
            "ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException compression_level={value} is \
                 invalid"
        )),
        _ => Ok(()),
    }
}
