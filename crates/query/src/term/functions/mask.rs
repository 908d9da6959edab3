//! Masking functions: `mask_null`, `mask_default`, `mask_replace`, `mask_inner`, `mask_outer`; `mask_hash` in `hash`.

mod hash;

use bytes::Bytes;
use ilion_types::{CqlType, encode_list, encode_tuple, encode_vector, min_time_uuid};

use super::lookup::Lookup;
use super::{Arguments, ScalarFunction};
use crate::Error;

/// The function of this name for the types of its arguments; `None` if no function here has the name.
pub(super) fn make(lookup: &Lookup<'_>) -> Result<Option<ScalarFunction>, Error> {
    Ok(Some(match lookup.name {
        "mask_null" => {
            let ty = masked_type(lookup, 1..=1)?;
            ScalarFunction::new(lookup.name, [ty.clone()], ty, |_, _| Ok(None))
        }
        "mask_default" => {
            let ty = masked_type(lookup, 1..=1)?;
            let masked = Bytes::from(default_of(&ty));
            // Compat: null is masked, too.
            ScalarFunction::new(lookup.name, [ty.clone()], ty, move |_, _| {
                Ok(Some(masked.clone()))
            })
        }
        "mask_replace" => {
            let ty = masked_type(lookup, 2..=2)?;
            ScalarFunction::new(lookup.name, [ty.clone(), ty.clone()], ty, |arguments, _| {
                Ok(arguments.get(1).cloned().flatten())
            })
        }
        "mask_inner" => partial(lookup, |position, begin, end| {
            position >= begin && position <= end
        })?,
        "mask_outer" => partial(lookup, |position, begin, end| position < begin || position > end)?,
        "mask_hash" => hash::make(lookup)?,
        _ => return Ok(None),
    }))
}

fn first<'a>(arguments: Arguments<'a>) -> Option<&'a Bytes> {
    arguments.first()?.as_ref()
}

/// The type of the masked value.
fn masked_type(lookup: &Lookup<'_>, counts: std::ops::RangeInclusive<usize>) -> Result<CqlType, Error> {
    check_count(lookup, counts)?;
    let known = lookup.arguments[0]
        .known_type(lookup.context)
        .or(lookup.receiver.cloned());
    known.ok_or_else(|| untyped(lookup))
}

fn check_count(lookup: &Lookup<'_>, counts: std::ops::RangeInclusive<usize>) -> Result<(), Error> {
    let given = lookup.arguments.len();
    if counts.contains(&given) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "Invalid number of arguments for function system.{}: {given} given",
        lookup.name
    )))
}

/// The error for a masked value whose type is not known. Requires: the call has an argument.
fn untyped(lookup: &Lookup<'_>) -> Error {
    Error::Invalid(format!(
        "Cannot infer type of argument {} in call to function system.{}: use type casts to disambiguate",
        lookup.arguments[0], lookup.name
    ))
}

/// The value that masks all values of a type (`AbstractType.getMaskedValue`).
fn default_of(ty: &CqlType) -> Vec<u8> {
    let components =
        |types: &mut dyn Iterator<Item = &CqlType>| -> Vec<Vec<u8>> { types.map(default_of).collect() };
    match ty {
        CqlType::Ascii | CqlType::Text => b"****".to_vec(),
        CqlType::Boolean | CqlType::TinyInt | CqlType::Varint => vec![0],
        CqlType::SmallInt => vec![0; 2],
        CqlType::Int | CqlType::Float | CqlType::Inet => vec![0; 4],
        CqlType::BigInt | CqlType::Counter | CqlType::Double | CqlType::Time | CqlType::Timestamp => {
            vec![0; 8]
        }
        CqlType::Decimal => vec![0; 5],
        CqlType::Duration => vec![0; 3],
        CqlType::Date => vec![0x80, 0, 0, 0],
        CqlType::Uuid => vec![0; 16],
        CqlType::TimeUuid => min_time_uuid(0).as_bytes().to_vec(),
        CqlType::Blob | CqlType::Empty | CqlType::Custom(_) => Vec::new(),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => encode_list([]),
        CqlType::Tuple(types) => {
            let parts = components(&mut types.iter());
            encode_tuple(parts.iter().map(|part| Some(part.as_slice())))
        }
        CqlType::Udt { definition, .. } => {
            let parts = components(&mut definition.fields.iter().map(|(_, ty)| ty));
            encode_tuple(parts.iter().map(|part| Some(part.as_slice())))
        }
        CqlType::Vector { element, dimension } => {
            let part = default_of(element);
            encode_vector((0..*dimension).map(|_| part.as_slice()), element)
        }
    }
}

/// Masks the characters whose position `masks` selects.
fn partial(lookup: &Lookup<'_>, masks: fn(i64, i64, i64) -> bool) -> Result<ScalarFunction, Error> {
    let ty = masked_type(lookup, 3..=4)?;
    if !matches!(ty, CqlType::Text | CqlType::Ascii) {
        return Err(Error::Invalid(format!(
            "Function system.{} requires an argument of type [text|varchar|ascii], but found argument {} of type {ty}",
            lookup.name, lookup.arguments[0]
        )));
    }
    let mut types = vec![ty.clone(), CqlType::Int, CqlType::Int];
    if lookup.arguments.len() == 4 {
        types.push(CqlType::Text);
    }
    let name = lookup.name.to_owned();
    Ok(ScalarFunction::new(
        lookup.name,
        types,
        ty,
        move |arguments, _| {
            let Some(value) = first(arguments) else {
                return Ok(None);
            };
            let padding = padding(&name, arguments)?;
            let (begin, end) = (int(arguments, 1), int(arguments, 2));
            let text = String::from_utf8_lossy(value);
            let last = i64::try_from(text.chars().count()).unwrap_or(i64::MAX) - 1 - end;
            let masked: String = (0..)
                .zip(text.chars())
                .map(|(position, c)| if masks(position, begin, last) { padding } else { c })
                .collect();
            Ok(Some(masked.into()))
        },
    ))
}

/// An int argument; null is 0.
fn int(arguments: Arguments<'_>, index: usize) -> i64 {
    let bytes = arguments.get(index).and_then(Option::as_deref);
    let value = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    value.map_or(0, |bytes| i64::from(i32::from_be_bytes(bytes)))
}

fn padding(function: &str, arguments: Arguments<'_>) -> Result<char, Error> {
    let Some(Some(padding)) = arguments.get(3) else {
        return Ok('*');
    };
    let text = String::from_utf8_lossy(padding);
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(Error::Invalid(format!(
            "The padding argument for function system.{function} should be single-character, but '{text}' has {} characters.",
            text.chars().count()
        ))),
    }
}
