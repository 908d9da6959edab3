//! The values of a request, put in the order of the bind markers.

use std::borrow::Cow;

use crate::{ColumnSpec, Error, Value, Values};

/// Whose words are used for a wrong count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundBy {
    /// A text with its values.
    Query,
    /// A prepared statement.
    Execute,
    /// A member of a protocol batch.
    Batch,
}

/// One value for each marker.
///
/// # Errors
/// There are too few or too many.
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

/// Compat: markers without a value are left out, so that the count tells; values without a marker are ignored.
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
