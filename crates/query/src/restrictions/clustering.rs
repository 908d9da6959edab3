//! The rows of a partition that WHERE selects: clustering restrictions that can be slices.

use ilion_rows::{Clustering, ClusteringComparator, Slice, Values};

use super::expression::null_value;
use super::partition::check_product;
use super::restriction::{Edge, Predicate, Restriction};
use super::slices::{EdgeValues, Side, extend_prefixes, is_stored_above, slices_below, sort_prefixes};
use crate::Error;
use crate::context::Execution;
use crate::guardrails;

/// Restrictions on the leading clustering columns, without a gap: `=` and `IN`, then at most one range.
#[derive(Debug)]
pub(super) struct ClusteringRestrictions {
    pub comparator: ClusteringComparator,
    pub sliced: Vec<Restriction>,
}

/// Splits restrictions into those that slices can express, and those that need filtering.
pub(super) fn split(restrictions: Vec<Restriction>) -> (Vec<Restriction>, Vec<Restriction>) {
    let mut position = 0;
    let mut sliced: Vec<Restriction> = Vec::new();
    let mut filtered = Vec::new();
    for restriction in restrictions {
        let continues = usize::from(restriction.first().position) == position
            && !restriction.is_contains()
            && !restriction.needs_index()
            && !sliced.last().is_some_and(Restriction::is_slice);
        if continues {
            position = restriction.next_position();
            sliced.push(restriction);
        } else {
            filtered.push(restriction);
        }
    }
    (sliced, filtered)
}

/// True if slices cannot express all of these restrictions.
pub(super) fn needs_filtering(restrictions: &[Restriction]) -> bool {
    let mut position = 0;
    restrictions.iter().any(|restriction| {
        let is_gap = restriction.is_contains()
            || restriction.needs_index()
            || usize::from(restriction.first().position) != position;
        if !restriction.is_slice() {
            position = restriction.next_position();
        }
        is_gap
    })
}

impl ClusteringRestrictions {
    /// True if `=` or `IN` gives every clustering column.
    pub fn are_all_given(&self) -> bool {
        let given = self.sliced.iter().filter(|restriction| !restriction.is_slice());
        given.map(|restriction| restriction.columns.len()).sum::<usize>() == self.comparator.len()
    }

    /// The prefix given by `=` on the leading columns; `None` if an IN is among them.
    fn only_prefix(&self, execution: &Execution<'_>) -> Result<Option<Clustering>, Error> {
        let mut prefix = Values::new();
        for restriction in &self.sliced {
            match &restriction.predicate {
                Predicate::Equal(expression) => {
                    prefix.extend(expression.evaluate(&restriction.columns, execution)?);
                }
                Predicate::In(_) => return Ok(None),
                _ => break,
            }
        }
        Ok(Some(Clustering::new(prefix)))
    }

    /// The prefixes given by `=` and `IN` on the leading columns, in stored order.
    fn prefixes(&self, execution: &Execution<'_>) -> Result<Vec<Clustering>, Error> {
        if let Some(prefix) = self.only_prefix(execution)? {
            return Ok(vec![prefix]);
        }
        let mut prefixes = vec![Clustering::empty()];
        for restriction in &self.sliced {
            let columns = &restriction.columns;
            let values = match &restriction.predicate {
                Predicate::Equal(expression) => vec![expression.evaluate(columns, execution)?],
                Predicate::In(expressions) => expressions.evaluate(columns, execution)?,
                _ => break,
            };
            let count = prefixes.len().saturating_mul(values.len());
            check_product("clustering key", count, execution.query_options.in_slices_max)?;
            guardrails::check_product("clustering key", count, execution)?;
            prefixes = extend_prefixes(&prefixes, &values);
        }
        sort_prefixes(&self.comparator, &mut prefixes);
        Ok(prefixes)
    }

    /// The exact rows, if every clustering column is given.
    pub fn clusterings(&self, execution: &Execution<'_>) -> Result<Option<Vec<Clustering>>, Error> {
        if self.are_all_given() {
            self.prefixes(execution).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Refuses null and unset ends of slices. Compat: Cassandra fails to delete rows up to null.
    pub fn check_edges(&self, execution: &Execution<'_>) -> Result<(), Error> {
        let Some(restriction) = self.sliced.last() else {
            return Ok(());
        };
        let Predicate::Slice { start, end } = &restriction.predicate else {
            return Ok(());
        };
        for edge in start.iter().chain(end) {
            let values = edge.expression.evaluate_edge(&restriction.columns, execution)?;
            values.ok_or_else(|| null_value(&restriction.columns))?;
        }
        Ok(())
    }

    /// The slices, in stored order, not overlapping.
    pub fn slices(&self, execution: &Execution<'_>) -> Result<Vec<Slice>, Error> {
        if self.sliced.is_empty() {
            return Ok(vec![Slice::all()]);
        }
        let prefixes = self.prefixes(execution)?;
        let Some(restriction) = self.sliced.last().filter(|last| last.is_slice()) else {
            return Ok(prefixes.iter().map(Slice::exactly).collect());
        };
        let Some(edges) = edges_of(restriction, execution)? else {
            return Ok(Vec::new());
        };
        let below = |prefix: &Clustering| {
            slices_below(&self.comparator, prefix.values(), &restriction.columns, &edges)
        };
        Ok(prefixes.iter().flat_map(below).collect())
    }
}

/// The ends of a slice; `None` if it is empty.
fn edges_of(restriction: &Restriction, execution: &Execution<'_>) -> Result<Option<Vec<EdgeValues>>, Error> {
    let Predicate::Slice { start, end } = &restriction.predicate else {
        return Ok(None);
    };
    let mut edges = Vec::with_capacity(2);
    for (edge, side) in [(start, Side::Above), (end, Side::Below)] {
        let Some(Edge {
            expression,
            is_inclusive,
        }) = edge
        else {
            continue;
        };
        let Some(values) = expression.evaluate_edge(&restriction.columns, execution)? else {
            // Compat: null comes before all values in stored order.
            match is_stored_above(side, restriction.first().order) {
                true => continue,
                false => return Ok(None),
            }
        };
        edges.push(EdgeValues {
            side,
            values,
            is_inclusive: *is_inclusive,
        });
    }
    Ok(Some(edges))
}
