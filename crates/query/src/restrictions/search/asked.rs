//! From a restriction to the predicates that indexes are searched for.

use ilion_index::{Limit, Predicate as Asked};
use ilion_schema::Column;

use super::super::expression::supported;
use super::super::like;
use super::super::restriction::{Contained, Edge, Predicate, Restriction};
use crate::Error;
use crate::context::Execution;

/// Longest value that a table index can have.
const TABLE_VALUE_LEN_MAX: usize = 0xFFFF;

/// The predicates of a restriction, column by column; all must hold.
pub(super) fn asked<'r>(
    restriction: &'r Restriction,
    execution: &Execution<'_>,
) -> Result<Vec<(&'r Column, Asked)>, Error> {
    let columns = &restriction.columns;
    let column = restriction.first();
    let value = |term: &crate::term::Term, what: &str| supported(term.evaluate(execution)?, what, column);
    Ok(match &restriction.predicate {
        Predicate::Equal(expression) => {
            let values = expression.evaluate_supported(columns, execution)?;
            let pairs = columns.iter().zip(values);
            pairs
                .filter_map(|(column, value)| Some((column, Asked::Equal(value?))))
                .collect()
        }
        Predicate::In(_) if restriction.is_multi => Vec::new(),
        Predicate::In(expressions) => {
            let members = expressions.evaluate_supported(columns, execution)?;
            let values = members
                .into_iter()
                .filter_map(|values| values.into_iter().flatten().next());
            vec![(column, Asked::AnyOf(values.collect()))]
        }
        Predicate::Slice { .. } if restriction.is_multi => Vec::new(),
        Predicate::Slice { start, end } => {
            let limit = |edge: &Option<Edge>| limit(edge.as_ref(), columns, execution);
            vec![(
                column,
                Asked::Range {
                    from: limit(start)?,
                    to: limit(end)?,
                },
            )]
        }
        Predicate::Contains(contained) => contained
            .iter()
            .map(|contained| {
                let asked = match contained {
                    Contained::Value(term) => Asked::Contains(value(term, "value")?),
                    Contained::Key(term) => Asked::ContainsKey(value(term, "value")?),
                    Contained::Entry(key, term) => {
                        Asked::Entry(value(key, "map key")?, value(term, "map value")?)
                    }
                };
                Ok((column, asked))
            })
            .collect::<Result<_, Error>>()?,
        Predicate::Like(term) => vec![(column, like::pattern(&value(term, "value")?)?)],
        Predicate::Matches(term) => vec![(column, Asked::Matches(value(term, "value")?))],
    })
}

fn limit(edge: Option<&Edge>, columns: &[Column], execution: &Execution<'_>) -> Result<Option<Limit>, Error> {
    let Some(edge) = edge else {
        return Ok(None);
    };
    let values = edge.expression.evaluate_supported(columns, execution)?;
    Ok(values.into_iter().flatten().next().map(|value| Limit {
        value,
        is_inclusive: edge.is_inclusive,
    }))
}

/// True if the value is too long for a table index.
pub(super) fn is_too_long(asked: &Asked) -> bool {
    match asked {
        Asked::Equal(value) | Asked::Contains(value) | Asked::ContainsKey(value) => {
            value.len() > TABLE_VALUE_LEN_MAX
        }
        Asked::Entry(key, value) => key.len() + value.len() > TABLE_VALUE_LEN_MAX,
        _ => false,
    }
}
