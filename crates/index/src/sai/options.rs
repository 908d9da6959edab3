//! Options of storage-attached indexes, with the checks of Cassandra 5.0. Pure.

use ilion_types::CqlType;

use super::analyzer::{Analyzer, Case, Filters};
use crate::vectors::VectorIndex;
use crate::{Definition, Error};

/// Options of every index.
pub(super) const COMMON: [&str; 2] = ["class_name", "target"];
const ANALYSIS: [&str; 3] = ["ascii", "case_sensitive", "normalize"];
/// Ilion's own option.
pub(super) const INDEX_ANALYZER: &str = "index_analyzer";
const VECTORS: [&str; 4] = [
    "maximum_node_connections",
    "construction_beam_width",
    "similarity_function",
    "optimize_for",
];

/// Checks options and type; returns the analyzer.
///
/// # Errors
/// An option or the type is invalid; the error has the message for the client.
pub(super) fn check(definition: &Definition) -> Result<Analyzer, Error> {
    refuse_unknown(
        definition,
        "StorageAttachedIndex",
        &[&ANALYSIS, &[INDEX_ANALYZER], &VECTORS],
    )?;
    let given: Vec<String> = ANALYSIS
        .iter()
        .chain(&[INDEX_ANALYZER])
        .filter_map(|name| Some(format!("'{name}': '{}'", definition.option(name)?)))
        .collect();
    if definition.column.is_primary_key() && !given.is_empty() {
        return invalid(format!(
            "Analysis options are not supported on primary key columns, but found {{{}}}",
            given.join(", ")
        ));
    }
    let types = indexed_types(definition);
    let is_entry = types.len() > 1;
    let ty = types.first().copied().unwrap_or(&definition.column.ty);
    let analyzer = if given.is_empty() {
        Analyzer::None
    } else if matches!(ty, CqlType::Text | CqlType::Ascii) && !is_entry {
        analyzer_of(definition)?
    } else {
        return invalid(format!("CQL type {ty} cannot be analyzed."));
    };
    let has_vector_options = VECTORS.iter().any(|name| definition.option(name).is_some());
    if has_vector_options && !matches!(ty, CqlType::Vector { .. }) {
        return invalid(format!("CQL type {ty} cannot have vector options"));
    }
    if VectorIndex::is_of(definition) {
        return Ok(analyzer);
    }
    match types.iter().find(|ty| !is_supported(ty)) {
        Some(ty) => invalid(format!("Unsupported type: {ty}")),
        None => Ok(analyzer),
    }
}

/// Compat: the message of `IndexMetadata.validateCustomIndexOptions`.
pub(super) fn refuse_unknown(definition: &Definition, class: &str, known: &[&[&str]]) -> Result<(), Error> {
    let is_known = |name: &&String| {
        let name = name.as_str();
        COMMON.contains(&name) || known.iter().any(|names| names.contains(&name))
    };
    let options = definition.schema.options.keys();
    let unknown: Vec<&str> = options
        .filter(|name| !is_known(name))
        .map(String::as_str)
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    config(format!(
        "Properties specified [{}] are not understood by {class}",
        unknown.join(", ")
    ))
}

/// The analyzers of `index_analyzer`, with the names of DataStax's SAI.
fn index_analyzer(name: &str) -> Result<Analyzer, Error> {
    let lower = Filters {
        case: Case::Lower,
        ..Filters::default()
    };
    Ok(match name.to_ascii_lowercase().as_str() {
        "standard" => Analyzer::Words(lower),
        "simple" => Analyzer::Letters(lower),
        "whitespace" => Analyzer::Spaced(Filters::default()),
        "lowercase" => Analyzer::Whole(lower),
        "keyword" => Analyzer::Whole(Filters::default()),
        _ => {
            return invalid(format!(
                "Unknown index_analyzer '{name}': it is one of standard, simple, whitespace, lowercase, keyword"
            ));
        }
    })
}

fn analyzer_of(definition: &Definition) -> Result<Analyzer, Error> {
    if let Some(name) = definition.option(INDEX_ANALYZER) {
        if ANALYSIS.iter().any(|option| definition.option(option).is_some()) {
            return invalid(format!(
                "index_analyzer cannot be given together with {}",
                ANALYSIS.join(", ")
            ));
        }
        if definition.column.ty.is_collection() {
            return invalid("index_analyzer is for columns of one text, not for collections");
        }
        return index_analyzer(name);
    }
    let flag = |name: &'static str, default: bool| match definition.option(name) {
        None => Ok(default),
        Some(text) => parse_bool(name, text),
    };
    let filters = Filters {
        case: if flag("case_sensitive", true)? {
            Case::Kept
        } else {
            Case::Lower
        },
        is_normalized: flag("normalize", false)?,
        is_ascii: flag("ascii", false)?,
    };
    // Compat: options that all have their default values mean no analyzer.
    Ok(if filters == Filters::default() {
        Analyzer::None
    } else {
        Analyzer::Whole(filters)
    })
}

pub(super) fn parse_bool(name: &str, text: &str) -> Result<bool, Error> {
    match text {
        "" => invalid(format!("Empty value for boolean option '{name}'")),
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => invalid(format!("Illegal value for boolean option '{name}': {text}")),
    }
}

/// The types whose values become terms; for entries of a map, the types of key and value.
pub(super) fn indexed_types(definition: &Definition) -> Vec<&CqlType> {
    use ilion_schema::IndexPart::{Entries, Keys};
    match (&definition.column.ty, definition.part) {
        (
            CqlType::List {
                element,
                frozen: false,
            }
            | CqlType::Set {
                element,
                frozen: false,
            },
            _,
        ) => vec![element],
        (
            CqlType::Map {
                key, frozen: false, ..
            },
            Keys,
        ) => vec![key],
        (
            CqlType::Map {
                key,
                value,
                frozen: false,
            },
            Entries,
        ) => vec![key, value],
        (
            CqlType::Map {
                value, frozen: false, ..
            },
            _,
        ) => vec![value],
        (ty, _) => vec![ty],
    }
}

/// Compat: `StorageAttachedIndex.SUPPORTED_TYPES`, and all frozen types.
fn is_supported(ty: &CqlType) -> bool {
    !matches!(
        ty,
        CqlType::Blob
            | CqlType::Counter
            | CqlType::Duration
            | CqlType::Empty
            | CqlType::Custom(_)
            | CqlType::Vector { .. }
    ) && !ty.is_multi_cell()
}

pub(super) fn invalid<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid(message.into()))
}

pub(super) fn config<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Config(message.into()))
}
