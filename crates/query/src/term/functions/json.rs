//! `to_json` and `from_json`.

use ilion_types::CqlType;
use ilion_types::json::Json;

use super::lookup::Lookup;
use super::scalar::{ScalarFunction, failure};
use crate::Error;

/// `to_json` of a value of any type.
pub(super) fn make_to_json(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    let signature = format!("system.{}(any)", lookup.name);
    let [given] = lookup.arguments else {
        return Err(Error::Invalid(format!(
            "Invalid number of arguments for function {signature}"
        )));
    };
    let ty = given.known_type(lookup.context).ok_or_else(|| {
        Error::Invalid(format!(
            "Cannot infer type of argument {given} in call to function {signature}: use type casts to disambiguate"
        ))
    })?;
    let argument = ty.clone();
    let body = move |arguments: super::Arguments<'_>, _: &crate::context::Execution<'_>| {
        Ok(Some(match arguments {
            [Some(value)] if !(value.is_empty() && is_null_if_empty(&ty)) => ty.print_json(value)?.into(),
            _ => "null".into(),
        }))
    };
    Ok(ScalarFunction::new(lookup.name, [argument], CqlType::Text, body))
}

/// True if an empty value of this type is null to a function. Compat: for these types an empty value has no meaning.
fn is_null_if_empty(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::BigInt
            | CqlType::Boolean
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Inet
            | CqlType::Int
            | CqlType::Timestamp
            | CqlType::TimeUuid
            | CqlType::Uuid
            | CqlType::Varint
    )
}

/// `from_json` of a text, for the type of its receiver.
pub(super) fn make_from_json(lookup: &Lookup<'_>) -> Result<ScalarFunction, Error> {
    if lookup.arguments.len() != 1 {
        return Err(Error::Invalid(format!(
            "Invalid number of arguments for function system.{}(text)",
            lookup.name
        )));
    }
    let receiver = lookup.receiver.cloned().ok_or_else(|| {
        Error::invalid("from_json() cannot be used in the selection clause of a SELECT statement")
    })?;
    let (ty, name) = (receiver.clone(), lookup.name.to_owned());
    let body = move |text: &bytes::Bytes| {
        let text = String::from_utf8_lossy(text);
        let types = || vec!["text".to_owned()];
        let json = Json::parse(&text).map_err(|error| {
            failure(
                &name,
                types(),
                format!("Could not decode JSON string '{text}': {error}"),
            )
        })?;
        let parsed = ty
            .parse_json(&json)
            .map_err(|error| failure(&name, types(), error))?;
        Ok(parsed.map(bytes::Bytes::from))
    };
    Ok(ScalarFunction::of_value(
        lookup.name,
        CqlType::Text,
        receiver,
        body,
    ))
}
