//! Options of SASI indexes, with the checks of Cassandra, and their meaning. Pure.
//!
//! SASI uses the terms of storage-attached indexes: `mode` selects the LIKE patterns, the analyzer the terms of a text. Stemming
//! and stop words are not implemented.

use ilion_schema::ColumnKind;
use ilion_types::CqlType;

use super::analyzer::{Analyzer, Case, Filters};
use super::options::{config, refuse_unknown};
use super::patterns::Patterns;
use super::sorter::MEMORY_BYTES;
use crate::{Definition, Error};

const OWN: [&str; 5] = [
    "mode",
    "analyzed",
    "analyzer_class",
    "is_literal",
    "max_compaction_flush_memory_in_mb",
];
const ANALYSIS: [&str; 9] = [
    "case_sensitive",
    "normalize_lowercase",
    "normalize_uppercase",
    "delimiter",
    "tokenization_enable_stemming",
    "tokenization_skip_stop_words",
    "tokenization_locale",
    "tokenization_normalize_lowercase",
    "tokenization_normalize_uppercase",
];
const ANALYZERS: &str = "org.apache.cassandra.index.sasi.analyzer.";

/// The parsed options.
pub(super) struct Options {
    pub(super) analyzer: Analyzer,
    pub(super) patterns: Patterns,
    /// The index does not keep the order of texts: it serves LIKE and equality only.
    pub(super) is_literal: bool,
    /// Memory for terms while an SSTable is written, in bytes.
    pub(super) memory_bytes: usize,
}

/// Checks options and column.
///
/// # Errors
/// An option or the column is invalid; the error has the message for the client.
pub(super) fn check(definition: &Definition) -> Result<Options, Error> {
    refuse_unknown(definition, "SASIIndex", &[&OWN, &ANALYSIS])?;
    let column = &definition.column;
    if column.ty.is_multi_cell() {
        return config("complex columns are not yet supported by SASI");
    }
    if column.kind == ColumnKind::PartitionKey {
        return config("partition key columns are not yet supported by SASI");
    }
    let is_text = matches!(column.ty, CqlType::Text | CqlType::Ascii);
    let analyzer = analyzer_of(definition, is_text)?;
    let is_literal = is_text && definition.option("is_literal").is_none_or(is_true);
    let mode = definition.option("mode").unwrap_or("PREFIX");
    let patterns = match mode.to_ascii_uppercase().as_str() {
        "PREFIX" => Patterns::Prefix,
        "CONTAINS" => Patterns::Contains,
        "SPARSE" if is_literal => return config("SPARSE mode is only supported on non-literal columns."),
        "SPARSE" if !analyzer.is_none() => return config("SPARSE mode doesn't support analyzers."),
        "SPARSE" => Patterns::None,
        _ => return config(format!("Incorrect index mode: {mode}")),
    };
    let megabytes = definition.option("max_compaction_flush_memory_in_mb");
    let memory_bytes = match megabytes.map(str::parse::<usize>) {
        None => MEMORY_BYTES,
        Some(Ok(megabytes)) => megabytes.clamp(1, 1 << 10) << 20,
        Some(Err(_)) => return config("max_compaction_flush_memory_in_mb is not a number of megabytes"),
    };
    Ok(Options {
        analyzer,
        patterns: if is_literal { patterns } else { Patterns::None },
        is_literal,
        memory_bytes,
    })
}

fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

fn analyzer_of(definition: &Definition, is_text: bool) -> Result<Analyzer, Error> {
    let is_on = |name: &str| definition.option(name).is_some_and(is_true);
    let Some(class) = definition.option("analyzer_class") else {
        // Compat: `analyzed` without an analyzer class splits texts into words.
        return if is_text && is_on("analyzed") {
            words(definition)
        } else {
            Ok(Analyzer::None)
        };
    };
    let simple = class.strip_prefix(ANALYZERS).unwrap_or(class);
    let analyzer = match simple {
        "NoOpAnalyzer" => return Ok(Analyzer::None),
        _ if !is_text => {
            let ty = &definition.column.ty;
            return config(format!("{simple} does not support type {ty}"));
        }
        "NonTokenizingAnalyzer" => Analyzer::Whole(whole_filters(definition)?),
        "StandardAnalyzer" => words(definition)?,
        "DelimiterAnalyzer" => Analyzer::Delimited(delimiter(definition)?, Filters::default()),
        _ => return config(format!("Unable to find analyzer class '{class}'")),
    };
    let is_analyzed = definition.option("analyzed").is_none_or(is_true);
    Ok(if is_analyzed { analyzer } else { Analyzer::None })
}

fn whole_filters(definition: &Definition) -> Result<Filters, Error> {
    let is_on = |name: &str| definition.option(name).is_some_and(is_true);
    let normalized = ["normalize_lowercase", "normalize_uppercase"];
    let sensitivity = definition.option("case_sensitive");
    if sensitivity.is_some() && normalized.iter().any(|name| definition.option(name).is_some()) {
        return config(
            "case_sensitive option cannot be specified together with either normalize_lowercase or \
             normalize_uppercase",
        );
    }
    let case = if sensitivity.is_some_and(|text| !is_true(text)) || is_on("normalize_lowercase") {
        Case::Lower
    } else if is_on("normalize_uppercase") {
        Case::Upper
    } else {
        Case::Kept
    };
    Ok(Filters {
        case,
        ..Filters::default()
    })
}

fn words(definition: &Definition) -> Result<Analyzer, Error> {
    let is_on = |name: &str| definition.option(name).is_some_and(is_true);
    for name in ["tokenization_enable_stemming", "tokenization_skip_stop_words"] {
        if is_on(name) {
            return config(format!(
                "Ilion has no lists of words and stems: {name} cannot be set"
            ));
        }
    }
    let case = if is_on("tokenization_normalize_uppercase") {
        Case::Upper
    } else if is_on("tokenization_normalize_lowercase") {
        Case::Lower
    } else {
        Case::Kept
    };
    Ok(Analyzer::Words(Filters {
        case,
        ..Filters::default()
    }))
}

fn delimiter(definition: &Definition) -> Result<char, Error> {
    let text = definition.option("delimiter").unwrap_or(",");
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) => Ok(one),
        _ => config(format!("Only single character delimiters supported, was {text}")),
    }
}
