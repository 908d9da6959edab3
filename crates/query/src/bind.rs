//! The values of a request, put in the order of the bind markers.

use std::borrow::Cow;

use crate::{ColumnSpec, Error, Value, Values};

/// Where the values come from. It selects the message for a wrong number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundBy {
    /// A text with its values.
    Query,
    /// A prepared statement.
    Execute,
    /// A member of a protocol batch.
    Batch,
}

/// Returns one value for each marker.
///
/// # Errors
/// The request has too few or too many values.
pub(crate) fn bind<'v>(
    variables: &[ColumnSpec],
    values: &'v Values,
    bound_by: BoundBy,
) -> Result<Cow<'v, [Value]>, Error> {
    let bound: Cow<'v, [Value]> = match values {
        Values::None => Cow::Borrowed(&[]),
        Values::Positional(values) => Cow::Borrowed(values),
        Values::Named(values) => Cow::Owned(by_name(variables, values)),
    };
    if bound.len() == variables.len() {
        Ok(bound)
    } else {
        Err(wrong_count(variables.len(), bound.len(), bound_by))
    }
}

/// Compat: a marker without a value is left out, so that the number of values is wrong and `bind` fails. A value without a marker is
/// ignored.
fn by_name(variables: &[ColumnSpec], values: &[(String, Value)]) -> Vec<Value> {
    variables
        .iter()
        .filter_map(|variable| {
            let named = values.iter().find(|(name, _)| **name == *variable.name);
            named.map(|(_, value)| value.clone())
        })
        .collect()
}

fn wrong_count(markers: usize, values: usize, bound_by: BoundBy) -> Error {
    Error::invalid(match bound_by {
        BoundBy::Query => "Invalid amount of bind variables".to_owned(),
        BoundBy::Execute => format!("there were {markers} markers(?) in CQL but {values} bound variables"),
        BoundBy::Batch => format!("There were {markers} markers(?) in CQL but {values} bound variables"),
    })
}

#[cfg(test)]
mod tests {
    use ilion_types::CqlType;

    use super::*;

    fn variables(names: &[&str]) -> Vec<ColumnSpec> {
        let spec = |name: &&str| ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: (*name).into(),
            ty: CqlType::Int,
        };
        names.iter().map(spec).collect()
    }

    fn value(byte: u8) -> Value {
        Value::Bytes(vec![byte].into())
    }

    #[test]
    fn a_named_value_goes_to_every_marker_of_its_name() {
        let values = Values::Named(vec![("b".into(), value(2)), ("a".into(), value(1))]);
        let bound = bind(&variables(&["a", "b", "a"]), &values, BoundBy::Query).unwrap();
        assert_eq!(*bound, [value(1), value(2), value(1)]);
    }

    #[test]
    fn superfluous_names_are_ignored_and_missing_ones_are_not() {
        let values = Values::Named(vec![("a".into(), value(1)), ("z".into(), value(9))]);
        assert!(bind(&variables(&["a"]), &values, BoundBy::Query).is_ok());
        assert!(bind(&variables(&["a", "b"]), &values, BoundBy::Query).is_err());
    }

    #[test]
    fn positional_values_are_counted() {
        let values = Values::Positional(vec![value(1)]);
        let refused = bind(&variables(&["a", "b"]), &values, BoundBy::Execute).unwrap_err();
        assert_eq!(
            refused.message(),
            "there were 2 markers(?) in CQL but 1 bound variables"
        );
    }
}
