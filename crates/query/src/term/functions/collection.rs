//! Functions of whole collections and vectors (`CollectionFcts`, `VectorFcts`).

use std::sync::Arc;

use bytes::Bytes;
use ilion_types::{CqlType, collection_elements, encode_list, map_entries, vector_elements};

use super::lookup::Lookup;
use super::{Argument, ScalarFunction};
use crate::Error;
use crate::aggregate::{AggregateKind, Running};

/// The function of this name for the type of its argument; `None` if no function here has the name.
pub(super) fn make(lookup: &Lookup<'_>) -> Result<Option<ScalarFunction>, Error> {
    Ok(Some(match lookup.name {
        "map_keys" | "map_values" => map_parts(lookup)?,
        "collection_count" => count(lookup)?,
        "collection_min" | "collection_max" => extreme(lookup)?,
        "collection_sum" | "collection_avg" => total(lookup)?,
        "similarity_cosine" | "similarity_euclidean" | "similarity_dot_product" => similarity(lookup)?,
        _ => return Ok(None),
    }))
}

/// The only argument has a wrong type.
fn wrong(lookup: &Lookup<'_>, expected: &str, ty: &CqlType) -> Error {
    // Requires: `Lookup::one_argument` has succeeded.
    wrong_argument(lookup, &lookup.arguments[0], expected, ty)
}

fn wrong_argument(lookup: &Lookup<'_>, argument: &Argument<'_>, expected: &str, ty: &CqlType) -> Error {
    Error::Invalid(format!(
        "Function system.{} requires a {expected} argument, but found argument {argument} of type {ty}",
        lookup.name
    ))
}

fn map_parts(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let ty = lookup.one_argument()?;
    let CqlType::Map { key, value, .. } = &ty else {
        return Err(wrong(lookup, "map", &ty));
    };
    let wants_keys = lookup.name == "map_keys";
    let result = if wants_keys {
        CqlType::Set {
            element: key.clone(),
            frozen: false,
        }
    } else {
        CqlType::List {
            element: value.clone(),
            frozen: false,
        }
    };
    let body = move |map: &Bytes| {
        let mut parts = Vec::new();
        for entry in map_entries(map)? {
            let (key, value) = entry?;
            parts.push(if wants_keys { key } else { value });
        }
        Ok(Some(encode_list(parts).into()))
    };
    Ok(ScalarFunction::of_value(lookup.name, ty.clone(), result, body))
}

fn count(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let ty = lookup.one_argument()?;
    if !ty.is_collection() {
        return Err(wrong(lookup, "collection", &ty));
    }
    let is_map = matches!(ty, CqlType::Map { .. });
    let body = move |value: &Bytes| {
        let count = collection_elements_or_entries(value, is_map)?;
        Ok(Some(Bytes::copy_from_slice(
            &i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes(),
        )))
    };
    Ok(ScalarFunction::of_value(lookup.name, ty, CqlType::Int, body))
}

fn collection_elements_or_entries(value: &[u8], is_map: bool) -> Result<usize, Error> {
    if is_map {
        Ok(map_entries(value)?.count())
    } else {
        Ok(collection_elements(value)?.remaining())
    }
}

/// The element type of a list or set.
fn element_of(lookup: &Lookup<'_>, expected: &str) -> Result<(CqlType, Arc<CqlType>), Error> {
    let ty = lookup.one_argument()?;
    match &ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => Ok((ty.clone(), element.clone())),
        _ => Err(wrong(lookup, expected, &ty)),
    }
}

fn extreme(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let (ty, element) = element_of(lookup, "set or list")?;
    let wants_least = lookup.name == "collection_min";
    let result = (*element).clone();
    let body = move |value: &Bytes| {
        let parts = collection_elements(value)?.collect::<Result<Vec<_>, _>>()?;
        let compare = |a: &&[u8], b: &&[u8]| element.compare(a, b);
        let found = if wants_least {
            parts.into_iter().min_by(compare)
        } else {
            parts.into_iter().max_by(compare)
        };
        Ok(found.map(|part| value.slice_ref(part)))
    };
    Ok(ScalarFunction::of_value(lookup.name, ty, result, body))
}

fn total(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let (ty, element) = element_of(lookup, "numeric set or list")?;
    if !element.is_numeric() {
        return Err(wrong(lookup, "numeric set or list", &ty));
    }
    let kind = if lookup.name == "collection_avg" {
        AggregateKind::Avg
    } else {
        AggregateKind::Sum
    };
    let result = (*element).clone();
    let body = move |value: &Bytes| {
        let mut running = Running::new(kind, &element);
        for part in collection_elements(value)? {
            running.add(part?)?;
        }
        Ok(running.result())
    };
    Ok(ScalarFunction::of_value(lookup.name, ty, result, body))
}

/// The similarity of two vectors; higher is nearer.
pub(crate) type Score = fn(&[f32], &[f32]) -> f32;

/// The function of this name: `cosine`, `euclidean` or `dot_product`.
pub(crate) fn score_function(name: &str) -> Score {
    match name {
        "cosine" => |a, b| (1.0 + dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) / 2.0,
        "euclidean" => |a, b| {
            let squares: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            1.0 / (1.0 + squares)
        },
        _ => |a, b| (1.0 + dot(a, b)) / 2.0,
    }
}

/// Compat: the scores of Lucene, between 0 and 1.
fn similarity(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let name = lookup.name;
    let signature = format!("system.{name}(vector<float, n>, vector<float, n>)");
    let [left, right] = lookup.arguments else {
        return Err(Error::Invalid(format!(
            "Invalid number of arguments for function {signature}"
        )));
    };
    let dimension = match (dimension_of(lookup, left)?, dimension_of(lookup, right)?) {
        (Some(left), Some(right)) if left != right => {
            return Err(Error::invalid(
                "All arguments must have the same vector dimensions",
            ));
        }
        (Some(dimension), _) | (None, Some(dimension)) => dimension,
        (None, None) => {
            return Err(Error::Invalid(format!(
                "Cannot infer type of argument {left} in call to function {signature}: use type casts to disambiguate"
            )));
        }
    };
    let ty = CqlType::Vector {
        element: Arc::new(CqlType::Float),
        dimension,
    };
    let score = score_function(name.trim_start_matches("similarity_"));
    let is_cosine = name == "similarity_cosine";
    let types = [ty.clone(), ty];
    Ok(ScalarFunction::new(
        name,
        types,
        CqlType::Float,
        move |arguments, _| {
            let [Some(left), Some(right)] = arguments else {
                return Ok(None);
            };
            let (left, right) = (floats(left, dimension)?, floats(right, dimension)?);
            let is_zero = |vector: &[f32]| vector.iter().all(|part| *part == 0.0);
            if is_cosine && (is_zero(&left) || is_zero(&right)) {
                return Err(Error::invalid(
                    "Function system.similarity_cosine doesn't support all-zero vectors.",
                ));
            }
            Ok(Some(Bytes::copy_from_slice(&score(&left, &right).to_be_bytes())))
        },
    ))
}

/// The dimension of an argument that must be a vector of floats; `None` if its type is not known.
fn dimension_of(lookup: &Lookup<'_>, argument: &Argument<'_>) -> Result<Option<u32>, Error> {
    if let Argument::Term(ilion_cql::ast::Term::List(terms)) = argument {
        return match u32::try_from(terms.len()) {
            Ok(dimension) if dimension > 0 => Ok(Some(dimension)),
            _ => Err(Error::Invalid(format!(
                "vectors may only have positive dimensions; given {}",
                terms.len()
            ))),
        };
    }
    match argument.known_type(lookup.context) {
        None => Ok(None),
        Some(CqlType::Vector { element, dimension }) if *element == CqlType::Float => Ok(Some(dimension)),
        Some(ty) => Err(wrong_argument(lookup, argument, "float vector", &ty)),
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The components of a serialized vector.
///
/// # Errors
/// The bytes are not a vector of that dimension.
pub(crate) fn floats(vector: &[u8], dimension: u32) -> Result<Vec<f32>, Error> {
    vector_elements(vector, &CqlType::Float, dimension)
        .map(|part| {
            let part = part?.try_into();
            part.map(f32::from_be_bytes)
                .map_err(|_| Error::invalid("Expected 4 byte floats"))
        })
        .collect()
}
